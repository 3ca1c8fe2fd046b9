// libnvrtc: kernels compiled by the C++ compiler of the host. A "cubin" is a shared library.
//
// Environment variables: CUDA_WITHOUT_GPU, the folder that `python -m tests.cuda_without_gpu build` made.
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <map>
#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#define API extern "C" __attribute__((visibility("default")))

namespace {

enum { success, out_of_memory, failure, invalid_input, invalid_program, invalid_option, compilation };

struct Program {
    std::string source, log, library;
    std::map<std::string, std::string> names;  // of instances of templates, by their expressions
};

std::string read(const std::string &path) {
    std::ifstream file(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
}

std::string replaced(const std::string &text, const char *pattern, const char *by) {
    return std::regex_replace(text, std::regex(pattern), by);
}

// Threads of a kernel with one of these run in turns.
bool has_barrier(const std::string &source) {
    for (auto name : {"__sync", "__shfl", "__ballot", "__any_sync", "__all_sync", "cub/block", "cub::"})
        if (source.find(name) != std::string::npos) return true;
    return false;
}

std::string entry(const std::string &symbol, const std::string &kernel, bool barrier) {
    std::string type = "CudaKernel<" + kernel + ">";
    return "extern \"C\" __attribute__((externally_visible)) const Kernel " + symbol + "__kernel = {\"" + symbol + "\", " +
           type + "::sizes, " + type + "::thread, " + (barrier ? "nullptr" : type + "::blocks") + ", &cuda_state};\n";
}

// The source for the host: what is left of CUDA's syntax rewritten, and the kernels listed for the driver.
std::string translated(Program &program) {
    // extern __shared__ T name[];  ->  T *name = ...
    std::string code = replaced(program.source, "extern\\s+__shared__\\s+([^;\\[]+?)\\s*(\\w+)\\[\\]\\s*;", "$1 *$2 = ($1 *)cuda_state.shared;");
    bool barrier = has_barrier(code);
    std::string text = "#include \"kernels.h\"\n" + code + "\n";
    std::set<std::string> found;
    std::regex kernel("extern\\s+\"C\"\\s+__global__\\s+void\\s+(?:__launch_bounds__\\s*\\([^)]*\\)\\s*)?(\\w+)\\s*\\(");
    for (std::sregex_iterator it(code.begin(), code.end(), kernel), end; it != end; ++it)
        if (found.insert((*it)[1]).second) text += entry((*it)[1], (*it)[1], barrier);
    int number = 0;
    for (auto &[expression, symbol] : program.names) text += entry(symbol = "instance_" + std::to_string(number++), expression, barrier);
    return text;
}

}  // namespace

API const char *nvrtcGetErrorString(int status) { return status == compilation ? "NVRTC_ERROR_COMPILATION" : "NVRTC_ERROR"; }
API int nvrtcVersion(int *major, int *minor) { *major = 13; *minor = 2; return success; }
API int nvrtcGetNumSupportedArchs(int *count) { *count = 1; return success; }
API int nvrtcGetSupportedArchs(int *archs) { *archs = 90; return success; }
API int nvrtcCreateProgram(Program **program, const char *source, const char *, int headers, const char **, const char **) {
    if (headers) return invalid_input;
    *program = new Program{source, "", "", {}};
    return success;
}
API int nvrtcDestroyProgram(Program **program) { delete *program; return success; }
API int nvrtcAddNameExpression(Program *program, const char *name) { program->names[name] = ""; return success; }
API int nvrtcGetLoweredName(Program *program, const char *name, const char **symbol) {
    *symbol = program->names.at(name).c_str();
    return success;
}
API int nvrtcCompileProgram(Program *program, int count, const char **options) {
    if (program->source.empty()) return success;  // CuPy asks for the version
    const char *folder = getenv("CUDA_WITHOUT_GPU");
    if (!folder) {
        program->log = "cuda_without_gpu: expected the environment variable CUDA_WITHOUT_GPU";
        return compilation;
    }
    std::string base = folder, stem = "/tmp/cuda_without_gpu-XXXXXX";
    if (!mkdtemp(stem.data())) return failure;
    std::string source = stem + "/kernels.cpp", library = stem + "/kernels.so", log = stem + "/log";
    std::ofstream(source) << translated(*program);
    std::string command = read(base + "/compiler") + " -shared -o " + library + " " + source;
    for (int i = 0; i < count; ++i) if (!strncmp(options[i], "-D", 2)) command += std::string(" '") + options[i] + "'";
    int status = system((command + " 2> " + log).c_str());
    program->log = read(log);
    program->library = read(library);
    if (!getenv("CUDA_WITHOUT_GPU_KEEP") || !status) {
        for (auto &path : {source, library, log}) unlink(path.c_str());
        rmdir(stem.c_str());
    }
    return status ? compilation : success;
}
API int nvrtcGetCUBINSize(Program *program, size_t *size) { *size = program->library.size() + 1; return success; }
API int nvrtcGetCUBIN(Program *program, char *text) {
    memcpy(text, program->library.c_str(), program->library.size() + 1);
    return success;
}
// The version of the compiler and of the headers, by which CuPy tells its cached kernels apart.
API int nvrtcGetPTXSize(Program *, size_t *size) { *size = read(std::string(getenv("CUDA_WITHOUT_GPU")) + "/version").size() + 1; return success; }
API int nvrtcGetPTX(Program *, char *text) {
    strcpy(text, read(std::string(getenv("CUDA_WITHOUT_GPU")) + "/version").c_str());
    return success;
}
API int nvrtcGetProgramLogSize(Program *program, size_t *size) { *size = program->log.size() + 1; return success; }
API int nvrtcGetProgramLog(Program *program, char *text) { strcpy(text, program->log.c_str()); return success; }
API int nvrtcGetLTOIRSize(Program *, size_t *) { return invalid_option; }
API int nvrtcGetLTOIR(Program *, char *) { return invalid_option; }
