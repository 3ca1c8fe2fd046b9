"""CUDA kernels, by the part of the library whose rules they replace, with their CUDA C++.

| module | kernels |
|---|---|
| `raw` | compilation and launches; constants of all sources |
| `rows` | reductions of rows, which other sources include |
| `sums` | sums over the leading axes, or over all axes but one, in two stages |
| `normalization` | layer, group, batch, instance and root-mean-square normalization |
| `gelu` | GELU and its derivative |
| `attention` | softmax of scores, with masks and dropout, and its gradient |
| `recurrent` | one step of an LSTM or a GRU, and its gradient |
| `windows` | arguments of kernels on sliding windows |
| `convolution` | elements under a window as columns, and the sums that are their gradient |
| `pooling` | the largest element or the sum of each window, and their gradients |

A kernel that multiplies matrices is a `ComposedKernel`: cuBLAS makes the products, so that a CUDA
graph can contain them.
"""
