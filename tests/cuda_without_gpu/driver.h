// What the libraries of this folder share: work on a stream, done when something waits for it.
#pragma once
#include <functional>

using Work = std::function<void()>;

// Queue work on a stream, or add it to the graph that the stream captures. Return a cudaError_t.
extern "C" int cuda_host_submit(void *stream, Work *work);
// Return whether an address range is memory of the device.
extern "C" bool cuda_host_owns(const void *address, size_t size);
