// CUB's reductions by the threads of a block, as CuPy's reductions use them: the result is that of thread 0.
#pragma once

namespace cub {

template <typename T, int threads> struct BlockReduce {
    struct TempStorage { alignas(T) char values[threads][sizeof(T)]; };
    TempStorage &storage;
    BlockReduce(TempStorage &storage) : storage(storage) {}

    template <int items, typename Combine> T Reduce(const T (&values)[items], Combine combine) {
        T result = values[0];
        for (int i = 1; i < items; ++i) result = combine(result, values[i]);
        auto shared = (T *)storage.values;
        unsigned thread = cuda_thread();
        shared[thread] = result;
        __syncthreads();
        if (thread == 0)
            for (int step = 1; step < threads; step *= 2)
                for (int i = 0; i + step < threads; i += 2 * step) shared[i] = combine(shared[i], shared[i + step]);
        __syncthreads();
        return shared[0];
    }
};

}  // namespace cub
