"""CUDA kernels, by the part of the library whose rules they replace, with their CUDA C++.

| module | contents |
|---|---|
| `table` | the table of kernels: begin here |
| `raw`, `c_types` | compilation and launches of kernels, for the types of their arguments |
| `elementwise`, `gelu` | activations, and division with remainder |
| `optimizers` | updates of SGD and Adam |
| `random_bits`, `philox` | random bits, uniform numbers and dropout |
| `rows` | reductions of rows, with which other sources begin |
| `softmax`, `cross_entropy` | softmax along axes, and the loss of classes |
| `sums` | sums over all axes but one group of adjacent axes, in two stages |
| `normalization` | layer, group, batch, instance and root-mean-square normalization |
| `running_statistics` | running statistics of batch normalization |
| `attention` | the softmax of scores, with masks and dropout |
| `recurrent` | one step of an LSTM or a GRU |
| `windows` | arguments of kernels on sliding windows |
| `convolution` | elements under a window as columns, and sums of columns |
| `pooling` | the largest element, or the sum, of each window |
| `copies` | copies of several arrays by one launch |

Each module has the CUDA C++ of its kernels, of their gradients, and the functions that launch them.

A kernel that multiplies matrices is a `ComposedKernel`: cuBLAS makes the products, so that a CUDA
graph can contain them.
"""
