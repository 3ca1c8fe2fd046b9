// CUB's loads of a tile by the threads of a block, as CuPy's reductions use them.
#pragma once

namespace cub {

enum BlockLoadAlgorithm { BLOCK_LOAD_DIRECT };

template <typename T, int threads, int items, BlockLoadAlgorithm> struct BlockLoad {
    struct TempStorage {};
    BlockLoad(TempStorage &) {}
    template <typename Input> void Load(const Input *source, T (&values)[items], int valid, T otherwise) {
        for (int i = 0; i < items; ++i) {
            int index = cuda_thread() * items + i;
            values[i] = index < valid ? static_cast<T>(source[index]) : otherwise;
        }
    }
};

}  // namespace cub
