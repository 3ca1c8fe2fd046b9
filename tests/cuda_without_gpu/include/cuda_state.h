// The state of the thread that runs: set by the driver, read by kernels.
#pragma once

#ifndef __VECTOR_TYPES_H__  // CUDA's, for the driver
struct uint3 { unsigned x, y, z; };
struct dim3 { unsigned x = 1, y = 1, z = 1; };
struct float2 { float x, y; };
struct double2 { double x, y; };
#endif

enum class Scope { block, warp };

struct CudaState {
    uint3 thread, block;
    dim3 block_size, grid_size;
    char *shared;
    void (*wait)(Scope, unsigned mask);  // for the threads of a block, or for those of a warp in the mask
    char slots[1024][16];                // values that the threads of a warp exchange
};
