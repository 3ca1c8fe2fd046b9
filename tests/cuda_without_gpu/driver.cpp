// libcudart and libcuda on the host: memory, streams, events, graphs, modules and launches.
//
// Work is queued, and done when something waits for it: a stream that nobody waits for has not begun. Streams that are
// made as non-blocking run apart, the others with the default stream. What CUDA refuses is refused with its status.
// All launches are counted by name, and memory that was freed cannot be accessed: counters.py reads what tests need.
#include <cuda.h>
#include <cuda_runtime_api.h>
#include <dlfcn.h>
#include <elf.h>
#include <malloc.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstring>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "blocks.h"
#include "driver.h"
#include "freed.h"

namespace {

std::recursive_mutex lock;
using Guard = std::lock_guard<std::recursive_mutex>;

// Calls of one name: launched on a stream, recorded in a capture, launched by a graph
struct Calls { long launched = 0, captured = 0, replayed = 0; };
using Named = std::pair<const std::string, Calls>;

struct Node { Named *named; Work work; };  // events and waits have no name

struct Graph { std::vector<Node> nodes; };

struct Stream {
    std::deque<Node> queue;
    long submitted = 0, done = 0;
    bool invalid = false;
    std::unique_ptr<Graph> capture;
    std::thread::id capturer;
};

struct Event {
    Stream *stream = nullptr;
    long position = 0;
    bool captured = false;
    std::chrono::steady_clock::time_point time;
};

const long longest_queue = 1000;
const int sms = 16;

Stream legacy;
std::set<Stream *> streams;           // non-blocking
std::set<Stream *> blocking;          // names of the legacy stream
std::set<Stream *> per_thread;        // default streams of threads, which wait for the legacy stream and it for them
std::map<char *, size_t> memory, pinned;
size_t used = 0;
cudaError_t failed = cudaSuccess;     // of a kernel, and then for good
cudaError_t last = cudaSuccess;
// Counters for tests: kernels run, allocations, launches of graphs
struct Counters { long kernels, allocations, graphs; } counters;
std::map<std::string, Calls> calls;
std::deque<std::string> grids;        // of the last launches of kernels
const size_t most_grids = 10000;

size_t capacity = (size_t)8 << 30;  // which tests change

cudaError_t error(cudaError_t status) { return status == cudaSuccess ? status : (last = status); }

Stream *find(void *handle) {
    if (handle == nullptr || handle == cudaStreamLegacy) return &legacy;
    if (handle == cudaStreamPerThread) {
        static thread_local Stream *own = nullptr;
        if (!own) per_thread.insert(own = new Stream);
        return own;
    }
    auto stream = (Stream *)handle;
    if (blocking.count(stream)) return stream->capture ? stream : &legacy;
    return streams.count(stream) ? stream : nullptr;
}

void perform(const Node &node) {
    if (node.named) running = node.named->first.c_str();  // for the message about memory that was freed
    node.work();
}

cudaError_t run(Stream *stream, long position) {
    while (stream->done < position && !stream->queue.empty()) {
        Node node = std::move(stream->queue.front());
        stream->queue.pop_front();
        perform(node);
        ++stream->done;
    }
    return failed;
}

cudaError_t run(Stream *stream) { return run(stream, stream->submitted); }

Named *count(const std::string &name, bool capturing) {
    auto &named = *calls.try_emplace(name).first;
    ++(capturing ? named.second.captured : named.second.launched);
    return &named;
}

void push(Stream *stream, Node node) {
    stream->queue.push_back(std::move(node));
    ++stream->submitted;
}

// Queue work, or add it to the graph that the stream captures; work with a name is counted.
cudaError_t submit(Stream *stream, const char *name, Work work) {
    if (!stream) return cudaErrorInvalidResourceHandle;
    if (failed) return failed;
    if (stream->invalid && stream->capture) return cudaErrorStreamCaptureInvalidated;
    Node node{name ? count(name, stream->capture != nullptr) : nullptr, std::move(work)};
    if (stream->capture) {
        stream->capture->nodes.push_back(std::move(node));
        return cudaSuccess;
    }
    for (Stream *other : per_thread) {  // all that was queued before on the legacy stream, or on the streams of threads
        Stream *before = stream == &legacy ? other : stream == other ? &legacy : nullptr;
        if (before) push(stream, {nullptr, [before, position = before->submitted] { run(before, position); }});
    }
    push(stream, std::move(node));
    return stream->submitted - stream->done > longest_queue ? run(stream) : cudaSuccess;
}

// The streams in the reverse of the order of their addresses, so that missing waits between them show.
cudaError_t run_all() {
    for (auto stream = streams.rbegin(); stream != streams.rend(); ++stream) run(*stream);
    for (auto stream : per_thread) run(stream);
    return run(&legacy);
}

cudaError_t refuse_capture(Stream *stream) {
    if (!stream->capture) return cudaSuccess;
    stream->invalid = true;
    return error(cudaErrorStreamCaptureUnsupported);
}

bool within(const std::map<char *, size_t> &blocks, const void *address, size_t size) {
    auto next = blocks.upper_bound((char *)address);
    if (next == blocks.begin()) return false;
    auto [start, length] = *--next;
    return (char *)address + size <= start + length;
}

// Whether the thread that calls captures, in which nothing may be freed that the capture uses
bool captures() {
    for (auto set : {&streams, &blocking})
        for (auto stream : *set) if (stream->capture && stream->capturer == std::this_thread::get_id()) return true;
    return false;
}

bool owns(const void *address, size_t size) { return size == 0 || within(memory, address, size); }

cudaError_t copy(void *target, const void *source, size_t size, cudaMemcpyKind kind, void *handle) {
    Guard guard(lock);
    Stream *stream = find(handle);
    if (!stream) return error(cudaErrorInvalidResourceHandle);
    bool to = kind == cudaMemcpyDeviceToHost, from = kind == cudaMemcpyHostToDevice;
    if (kind == cudaMemcpyDefault) to = !owns(target, size), from = !owns(source, size);
    if ((!to && !owns(target, size)) || (!from && !owns(source, size))) return error(cudaErrorInvalidValue);
    bool paged = (to && !within(pinned, target, size)) || (from && !within(pinned, source, size));
    if (paged && stream->capture) return refuse_capture(stream);
    const char *name = to ? "copy to host" : from ? "copy from host" : "copy on device";
    if (paged && from) {  // staged, as CUDA does
        auto staged = std::make_shared<std::string>((const char *)source, size);
        return error(submit(stream, name, [=] { memcpy(target, staged->data(), size); }));
    }
    auto status = submit(stream, name, [=] { memmove(target, source, size); });
    return error(paged && !status ? run(stream) : status);
}

}  // namespace

// libcudart

cudaError_t cudaMalloc(void **address, size_t size) {
    Guard guard(lock);
    ++counters.allocations;
    count("cudaMalloc", captures());
    if (used + size > capacity) return error(cudaErrorMemoryAllocation);
    *address = allocate(size);
    if (!*address) return error(cudaErrorMemoryAllocation);
    memset(*address, 0xEE, size);
    memory[(char *)*address] = size;
    used += size;
    return cudaSuccess;
}
cudaError_t cudaFree(void *address) {
    Guard guard(lock);
    if (!address) return cudaSuccess;
    auto block = memory.find((char *)address);
    if (block == memory.end()) return error(cudaErrorInvalidValue);
    count("cudaFree", captures());
    run_all();
    used -= block->second;
    protect(address, block->second);
    memory.erase(block);
    return cudaSuccess;
}
cudaError_t cudaHostAlloc(void **address, size_t size, unsigned) {
    Guard guard(lock);
    *address = memalign(512, size ? size : 1);
    pinned[(char *)*address] = size;
    return cudaSuccess;
}
cudaError_t cudaFreeHost(void *address) {
    Guard guard(lock);
    run_all();
    if (!pinned.erase((char *)address)) return error(cudaErrorInvalidValue);
    free(address);
    return cudaSuccess;
}
cudaError_t cudaMemGetInfo(size_t *free, size_t *total) {
    *total = capacity;
    *free = capacity - used;
    return cudaSuccess;
}
cudaError_t cudaPointerGetAttributes(cudaPointerAttributes *attributes, const void *address) {
    Guard guard(lock);
    *attributes = {};
    bool device = within(memory, address, 0), host = within(pinned, address, 0);
    attributes->type = device ? cudaMemoryTypeDevice : host ? cudaMemoryTypeHost : cudaMemoryTypeUnregistered;
    attributes->device = device || host ? 0 : -2;
    attributes->devicePointer = device ? (void *)address : nullptr;
    attributes->hostPointer = host ? (void *)address : nullptr;
    return cudaSuccess;
}

cudaError_t cudaMemcpyAsync(void *target, const void *source, size_t size, cudaMemcpyKind kind, cudaStream_t stream) {
    return copy(target, source, size, kind, stream);
}
cudaError_t cudaMemcpy(void *target, const void *source, size_t size, cudaMemcpyKind kind) {
    Guard guard(lock);
    auto status = copy(target, source, size, kind, nullptr);
    return status ? status : error(run(&legacy));
}
cudaError_t cudaMemcpyPeerAsync(void *target, int, const void *source, int, size_t size, cudaStream_t stream) {
    return copy(target, source, size, cudaMemcpyDeviceToDevice, stream);
}
cudaError_t cudaMemsetAsync(void *address, int value, size_t size, cudaStream_t stream) {
    Guard guard(lock);
    if (!owns(address, size)) return error(cudaErrorInvalidValue);
    return error(submit(find(stream), "memset", [=] { memset(address, value, size); }));
}
cudaError_t cudaMemset(void *address, int value, size_t size) { return cudaMemsetAsync(address, value, size, nullptr); }

cudaError_t cudaGetDevice(int *device) { *device = 0; return cudaSuccess; }
cudaError_t cudaSetDevice(int device) { return error(device ? cudaErrorInvalidDevice : cudaSuccess); }
cudaError_t cudaGetDeviceCount(int *count) { *count = 1; return cudaSuccess; }
cudaError_t cudaDeviceCanAccessPeer(int *access, int, int) { *access = 0; return cudaSuccess; }
cudaError_t cudaDriverGetVersion(int *version) { *version = CUDA_VERSION; return cudaSuccess; }
cudaError_t cudaRuntimeGetVersion(int *version) { *version = CUDART_VERSION; return cudaSuccess; }
cudaError_t cudaDeviceSynchronize() {
    Guard guard(lock);
    for (auto set : {&streams, &blocking}) for (auto stream : *set) if (refuse_capture(stream)) return last;
    return error(run_all());
}
cudaError_t cudaDeviceGetAttribute(int *value, cudaDeviceAttr attribute, int) {
    static const std::map<int, int> values = {
        {cudaDevAttrComputeCapabilityMajor, 9}, {cudaDevAttrComputeCapabilityMinor, 0},
        {cudaDevAttrMultiProcessorCount, sms}, {cudaDevAttrMaxThreadsPerBlock, 1024}, {cudaDevAttrWarpSize, 32},
        {cudaDevAttrMaxThreadsPerMultiProcessor, 2048}, {cudaDevAttrMaxSharedMemoryPerBlock, shared_limit},
        {cudaDevAttrMaxSharedMemoryPerBlockOptin, shared_limit}, {cudaDevAttrMaxBlockDimX, 1024},
        {cudaDevAttrMaxBlockDimY, 1024}, {cudaDevAttrMaxBlockDimZ, 64}, {cudaDevAttrMaxGridDimX, 2147483647},
        {cudaDevAttrMaxGridDimY, 65535}, {cudaDevAttrMaxGridDimZ, 65535}, {cudaDevAttrMaxRegistersPerBlock, 65536},
        {cudaDevAttrTotalConstantMemory, 65536},
    };
    auto found = values.find(attribute);
    *value = found == values.end() ? 0 : found->second;
    return cudaSuccess;
}
cudaError_t cudaGetDeviceProperties(cudaDeviceProp *properties, int) {
    *properties = {};
    strcpy(properties->name, "emulated on the host");
    properties->totalGlobalMem = capacity;
    properties->major = 9;
    properties->warpSize = 32;
    properties->multiProcessorCount = sms;
    properties->maxThreadsPerBlock = 1024;
    properties->sharedMemPerBlock = shared_limit;
    return cudaSuccess;
}

cudaError_t cudaGetLastError() { auto status = last; last = cudaSuccess; return status; }
const char *cudaGetErrorName(cudaError_t status) {
    switch (status) {
        case cudaErrorMemoryAllocation: return "cudaErrorMemoryAllocation";
        case cudaErrorInvalidValue: return "cudaErrorInvalidValue";
        case cudaErrorInvalidResourceHandle: return "cudaErrorInvalidResourceHandle";
        case cudaErrorInvalidDevice: return "cudaErrorInvalidDevice";
        case cudaErrorLaunchFailure: return "cudaErrorLaunchFailure";
        case cudaErrorStreamCaptureUnsupported: return "cudaErrorStreamCaptureUnsupported";
        case cudaErrorStreamCaptureInvalidated: return "cudaErrorStreamCaptureInvalidated";
        case cudaErrorNotSupported: return "cudaErrorNotSupported";
        default: return "cudaError";
    }
}
const char *cudaGetErrorString(cudaError_t) { return "refused by tests/cuda_without_gpu"; }

cudaError_t cudaStreamCreateWithFlags(cudaStream_t *handle, unsigned flags) {
    Guard guard(lock);
    auto stream = new Stream;
    (flags & cudaStreamNonBlocking ? streams : blocking).insert(stream);
    *handle = (cudaStream_t)stream;
    return cudaSuccess;
}
cudaError_t cudaStreamCreateWithPriority(cudaStream_t *handle, unsigned flags, int) {
    return cudaStreamCreateWithFlags(handle, flags);
}
cudaError_t cudaStreamCreate(cudaStream_t *handle) { return cudaStreamCreateWithFlags(handle, 0); }
cudaError_t cudaStreamDestroy(cudaStream_t handle) {
    Guard guard(lock);
    auto stream = (Stream *)handle;
    run(stream);
    // Not freed: no address is used again, so that handles of destroyed streams are refused
    return error(streams.erase(stream) + blocking.erase(stream) ? cudaSuccess : cudaErrorInvalidResourceHandle);
}
cudaError_t cudaStreamSynchronize(cudaStream_t handle) {
    Guard guard(lock);
    Stream *stream = find(handle);
    if (!stream) return error(cudaErrorInvalidResourceHandle);
    return refuse_capture(stream) ? last : error(run(stream));
}
cudaError_t cudaStreamQuery(cudaStream_t handle) { return cudaStreamSynchronize(handle); }
cudaError_t cudaStreamGetFlags(cudaStream_t handle, unsigned *flags) {
    Guard guard(lock);
    *flags = streams.count((Stream *)handle) ? cudaStreamNonBlocking : cudaStreamDefault;
    return cudaSuccess;
}
cudaError_t cudaStreamGetPriority(cudaStream_t, int *priority) { *priority = 0; return cudaSuccess; }

cudaError_t cudaEventCreateWithFlags(cudaEvent_t *event, unsigned) { *event = (cudaEvent_t) new Event; return cudaSuccess; }
cudaError_t cudaEventCreate(cudaEvent_t *event) { return cudaEventCreateWithFlags(event, 0); }
cudaError_t cudaEventDestroy(cudaEvent_t) { return cudaSuccess; }  // may be queued
cudaError_t cudaEventRecord(cudaEvent_t handle, cudaStream_t on) {
    Guard guard(lock);
    auto event = (Event *)handle;
    Stream *stream = find(on);
    if (!stream) return error(cudaErrorInvalidResourceHandle);
    event->captured = stream->capture != nullptr;
    auto status = submit(stream, nullptr, [=] { event->time = std::chrono::steady_clock::now(); });
    event->stream = stream;
    event->position = stream->submitted;
    return error(status);
}
cudaError_t cudaEventSynchronize(cudaEvent_t handle) {
    Guard guard(lock);
    auto event = (Event *)handle;
    if (event->captured) return error(cudaErrorStreamCaptureUnsupported);
    return event->stream ? error(run(event->stream, event->position)) : cudaSuccess;
}
cudaError_t cudaEventQuery(cudaEvent_t handle) {  // makes progress, once it has said that there was none
    Guard guard(lock);
    auto event = (Event *)handle;
    if (event->captured) return error(cudaErrorStreamCaptureUnsupported);
    if (!event->stream || event->stream->done >= event->position) return cudaSuccess;
    auto status = run(event->stream, event->position);
    return status ? error(status) : cudaErrorNotReady;
}
cudaError_t cudaStreamWaitEvent(cudaStream_t handle, cudaEvent_t awaited, unsigned) {
    Guard guard(lock);
    auto event = (Event *)awaited;
    Stream *stream = find(handle);
    if (!stream) return error(cudaErrorInvalidResourceHandle);
    if (event->captured && !stream->capture) return error(cudaErrorStreamCaptureUnsupported);
    if (!event->stream || event->stream == stream) return cudaSuccess;
    if (stream->capture) return refuse_capture(stream);  // a join of streams in a capture, which nothing here uses
    return error(submit(stream, nullptr, [source = event->stream, position = event->position] { run(source, position); }));
}
cudaError_t cudaEventElapsedTime(float *milliseconds, cudaEvent_t start, cudaEvent_t end) {
    std::chrono::duration<float, std::milli> elapsed = ((Event *)end)->time - ((Event *)start)->time;
    *milliseconds = elapsed.count();
    return cudaSuccess;
}

cudaError_t cudaStreamBeginCapture(cudaStream_t handle, cudaStreamCaptureMode) {
    Guard guard(lock);
    auto stream = (Stream *)handle;
    if (!streams.count(stream) && !blocking.count(stream)) return error(cudaErrorStreamCaptureUnsupported);
    if (stream->capture) return error(cudaErrorIllegalState);
    stream->capture = std::make_unique<Graph>();
    stream->capturer = std::this_thread::get_id();
    stream->invalid = false;
    return cudaSuccess;
}
cudaError_t cudaStreamEndCapture(cudaStream_t handle, cudaGraph_t *graph) {
    Guard guard(lock);
    auto stream = (Stream *)handle;
    *graph = nullptr;
    if (!stream->capture) return error(cudaErrorIllegalState);
    auto captured = std::move(stream->capture);
    if (stream->invalid) return error(cudaErrorStreamCaptureInvalidated);
    *graph = (cudaGraph_t)captured.release();
    return cudaSuccess;
}
cudaError_t cudaStreamIsCapturing(cudaStream_t handle, cudaStreamCaptureStatus *status) {
    Guard guard(lock);
    Stream *stream = find(handle);
    if (!stream) return error(cudaErrorInvalidResourceHandle);
    *status = !stream->capture ? cudaStreamCaptureStatusNone
              : stream->invalid ? cudaStreamCaptureStatusInvalidated : cudaStreamCaptureStatusActive;
    return cudaSuccess;
}
// An executable graph shares its nodes with the graph.
cudaError_t cudaGraphInstantiate(cudaGraphExec_t *executable, cudaGraph_t graph, unsigned long long) {
    Guard guard(lock);
    *executable = (cudaGraphExec_t) new std::shared_ptr<Graph>(new Graph(*(Graph *)graph));
    return cudaSuccess;
}
cudaError_t cudaGraphLaunch(cudaGraphExec_t executable, cudaStream_t stream) {
    Guard guard(lock);
    ++counters.graphs;
    auto graph = *(std::shared_ptr<Graph> *)executable;
    auto status = submit(find(stream), "cudaGraphLaunch", [=] { for (auto &node : graph->nodes) perform(node); });
    if (!status) for (auto &node : graph->nodes) if (node.named) ++node.named->second.replayed;
    return error(status);
}
cudaError_t cudaGraphUpload(cudaGraphExec_t, cudaStream_t) { return cudaSuccess; }
cudaError_t cudaGraphDestroy(cudaGraph_t graph) { delete (Graph *)graph; return cudaSuccess; }
cudaError_t cudaGraphExecDestroy(cudaGraphExec_t executable) {
    Guard guard(lock);
    delete (std::shared_ptr<Graph> *)executable;
    return cudaSuccess;
}

// libcuda

namespace {

struct Module { void *library; };

CUresult load(CUmodule *module, const char *image, size_t size) {
    char path[] = "/tmp/cuda_without_gpu-XXXXXX";
    int file = mkstemp(path);
    bool written = write(file, image, size) == (ssize_t)size;
    close(file);
    void *library = written ? dlopen(path, RTLD_NOW | RTLD_LOCAL) : nullptr;
    unlink(path);
    if (!library) {
        fprintf(stderr, "cuda_without_gpu: %s\n", dlerror());
        return CUDA_ERROR_INVALID_IMAGE;
    }
    *module = (CUmodule) new Module{library};
    return CUDA_SUCCESS;
}

}  // namespace

CUresult cuGetErrorName(CUresult status, const char **text) { *text = cudaGetErrorName((cudaError_t)status); return CUDA_SUCCESS; }
CUresult cuGetErrorString(CUresult, const char **text) { *text = "refused by tests/cuda_without_gpu"; return CUDA_SUCCESS; }
CUresult cuInit(unsigned) { return CUDA_SUCCESS; }
CUresult cuDriverGetVersion(int *version) { *version = CUDA_VERSION; return CUDA_SUCCESS; }
CUresult cuDeviceGetCount(int *count) { *count = 1; return CUDA_SUCCESS; }
CUresult cuCtxGetCurrent(CUcontext *context) { *context = (CUcontext)1; return CUDA_SUCCESS; }
CUresult cuCtxSetCurrent(CUcontext) { return CUDA_SUCCESS; }
CUresult cuCtxGetDevice(CUdevice *device) { *device = 0; return CUDA_SUCCESS; }
CUresult cuStreamGetCtx(CUstream, CUcontext *context) { return cuCtxGetCurrent(context); }
CUresult cuModuleLoadData(CUmodule *module, const void *image) {
    Guard guard(lock);
    // CUDA may load it, or wait for the device and fail, so nothing should depend on it
    for (auto stream : streams) if (stream->capturer == std::this_thread::get_id() && refuse_capture(stream)) return (CUresult)last;
    auto header = (const Elf64_Ehdr *)image;
    if (memcmp(header->e_ident, ELFMAG, SELFMAG)) return CUDA_ERROR_INVALID_IMAGE;
    return load(module, (const char *)image, header->e_shoff + header->e_shnum * header->e_shentsize);
}
CUresult cuModuleUnload(CUmodule) { return CUDA_SUCCESS; }  // its kernels may be queued, or part of a graph
CUresult cuModuleGetFunction(CUfunction *function, CUmodule module, const char *name) {
    auto kernel = (const Kernel *)dlsym(((Module *)module)->library, (std::string(name) + "__kernel").c_str());
    *function = (CUfunction)kernel;
    return kernel ? CUDA_SUCCESS : CUDA_ERROR_NOT_FOUND;
}
CUresult cuModuleGetGlobal_v2(CUdeviceptr *address, size_t *size, CUmodule module, const char *name) {
    *address = (CUdeviceptr)dlsym(((Module *)module)->library, name);
    if (size) *size = 0;
    return *address ? CUDA_SUCCESS : CUDA_ERROR_NOT_FOUND;
}
CUresult cuLaunchKernel(
    CUfunction function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz, unsigned shared,
    CUstream stream, void **params, void **
) {
    Guard guard(lock);
    auto kernel = (const Kernel *)function;
    Launch launch{{gx, gy, gz}, {bx, by, bz}, shared};
    if (!valid(launch)) {
        fprintf(stderr, "cuda_without_gpu: %s: grid (%u, %u, %u) of (%u, %u, %u) threads, %u bytes\n", kernel->name, gx, gy, gz, bx, by, bz, shared);
        return CUDA_ERROR_INVALID_VALUE;
    }
    auto args = std::make_shared<std::vector<std::string>>();
    for (int i = 0; kernel->sizes[i]; ++i) args->emplace_back((const char *)params[i], kernel->sizes[i]);
    char text[200];
    bool capturing = find(stream) && find(stream)->capture;
    snprintf(text, sizeof text, "\t%u\t%u\t%u\t%u\t%u\t%u\t%u\t%d\n", gx, gy, gz, bx, by, bz, shared, capturing);
    grids.push_back(kernel->name + std::string(text));
    if (grids.size() > most_grids) grids.pop_front();
    return (CUresult)error(submit(find(stream), kernel->name, [=] {
        ++counters.kernels;
        std::vector<void *> addresses;
        for (auto &arg : *args) addresses.push_back(arg.data());
        if (!execute(*kernel, launch, addresses.data())) failed = cudaErrorLaunchFailure;
    }));
}
CUresult cuFuncGetAttribute(int *value, CUfunction_attribute attribute, CUfunction) {
    *value = attribute == CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK ? 1024 : 0;
    return CUDA_SUCCESS;
}
CUresult cuFuncSetAttribute(CUfunction, CUfunction_attribute, int) { return CUDA_SUCCESS; }
CUresult cuOccupancyMaxActiveBlocksPerMultiprocessor(int *blocks, CUfunction, int, size_t) { *blocks = 2; return CUDA_SUCCESS; }
CUresult cuOccupancyMaxPotentialBlockSize(int *grid, int *block, CUfunction, CUoccupancyB2DSize, size_t, int) {
    *grid = 2 * sms;
    *block = 1024;
    return CUDA_SUCCESS;
}

// For the other libraries, and for tests

int cuda_host_submit(const char *name, void *stream, Work *work) {
    Guard guard(lock);
    std::shared_ptr<Work> owned(work);
    return error(submit(find(stream), name, [=] { ++counters.kernels; (*owned)(); }));
}
void cuda_host_finish() { Guard guard(lock); run_all(); }
void cuda_host_fail(const char *reason) {
    fprintf(stderr, "cuda_without_gpu: %s\n", reason);
    failed = cudaErrorLaunchFailure;
}
bool cuda_host_owns(const void *address, size_t size) { Guard guard(lock); return owns(address, size); }
extern "C" Counters *cuda_host_counters() { return &counters; }
extern "C" size_t *cuda_host_capacity() { return &capacity; }
// A line for each name: launched, captured, replayed
extern "C" const char *cuda_host_calls() {
    static std::string text;
    Guard guard(lock);
    text.clear();
    for (auto &[name, n] : calls)
        text += name + '\t' + std::to_string(n.launched) + '\t' + std::to_string(n.captured) + '\t' + std::to_string(n.replayed) + '\n';
    return text.c_str();
}
// A line for each launch of a kernel, the last ones: name, grid, block, shared memory, whether captured
extern "C" const char *cuda_host_grids() {
    static std::string text;
    Guard guard(lock);
    text.clear();
    for (auto &line : grids) text += line;
    return text.c_str();
}
// Graphs keep the names, so they stay.
extern "C" void cuda_host_reset() {
    Guard guard(lock);
    for (auto &[name, n] : calls) n = {};
    grids.clear();
}
