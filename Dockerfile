# xgrad with CuPy on CUDA 13. Not yet run on a GPU.
#
#   docker build --tag xgrad .
#   docker run --rm --gpus all xgrad
#
# docs/gpu.md has the command for a program of your own.
# The image has CUDA's runtime, and NCCL for several GPUs; the extra has the headers with which CuPy compiles kernels.
# Ubuntu 24.04 has Python 3.12.
FROM nvidia/cuda:13.0.2-runtime-ubuntu24.04

RUN apt-get update \
 && apt-get install --yes --no-install-recommends python3 python3-venv \
 && rm -rf /var/lib/apt/lists/* \
 && useradd --create-home xgrad \
 && python3 -m venv /opt/xgrad
ENV PATH=/opt/xgrad/bin:$PATH

COPY pyproject.toml setup.py README.md LICENSE /source/
COPY xgrad /source/xgrad
COPY backends /source/backends
RUN pip install --no-cache-dir '/source[cuda13,cli,special]'

USER xgrad
WORKDIR /home/xgrad
CMD ["xgrad", "info"]
