// What the libraries of this folder share: work on a stream, done when something waits for it.
#pragma once
#include <functional>

using Work = std::function<void()>;

// Queue work on a stream, or add it to the graph that the stream captures, and count it by a name. Return a cudaError_t.
extern "C" int cuda_host_submit(const char *name, void *stream, Work *work);
// Do all work that is queued, as CUDA does before it frees something.
extern "C" void cuda_host_finish();
// Print why work cannot be done; from then on, all calls fail as after a failed launch.
extern "C" void cuda_host_fail(const char *reason);
// Return whether an address range is memory of the device.
extern "C" bool cuda_host_owns(const void *address, size_t size);
