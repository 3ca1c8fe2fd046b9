// A kernel as the driver sees it.
#pragma once
#include <cstddef>

#include "cuda_state.h"

struct Kernel {
    const char *name;
    const size_t *sizes;           // of the arguments, ended by 0
    void (*thread)(void **args);   // one thread
    void (*blocks)(void **args);   // all blocks of a kernel without barriers; null for one with barriers
    CudaState *state;
};
