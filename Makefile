# Every target sets up what it needs, on a machine with only Python (3.11 or newer) and pip.
#
#   make train        train a network, on MNIST where there is one, else on the digits that come with xgrad
#   make test         the tests
#   make check        lint, types and tests; make lint, make types for one of them
#   make test-peers   the tests that need PyTorch, JAX or onnxruntime, which it installs beside, into .venv-peers
#   make test-distributed  the tests of several processes, which need MPI, in .venv-mpi
#   make test-oldest  the tests with the oldest dependencies that pyproject.toml allows, in .venv-oldest
#   make test-cuda-without-gpu  the tests of the device cuda, with the real CuPy and CUDA emulated on the host
#   make test-sanitized  the tests of native kernels with the sanitizers of the C compiler, and warnings as errors
#   make test-extras  the wheel with combinations of extras, each in an environment of its own
#   make docs         the site, in build/site, without a warning or a dead link, laid out in Chromium; make docs-serve shows it
#   make bench        xgrad beside other libraries, written to benchmarks/results; BENCH=step for one benchmark
#   make gpu-check    checks and measurements on a GPU, in ten minutes; called again, it continues
#   make conformance  the array API standard's own suite, of which SUITE=FOLDER is a checkout
#   make peer-suites  tests of SciPy, array-api-extra and einops on xgrad; ARGS="signal stats" for some of them
#   make peer-programs  PyTorch programs of others on xgrad.compat.torch; PROGRAMS=FOLDER has their repositories
#   make pytorch-samples  PyTorch's own samples of calls on xgrad.compat.torch; ARGS="functions sum" for some of them
#   make clean        remove what these targets made
#
# The environment VENV is made with PYTHON. Where VENV is empty, PYTHON itself is used and nothing is installed.
# ARGS go to the command: make train ARGS="--epochs 3".

PYTHON ?= python3
VENV ?= .venv
PEERS ?= torch==2.13.0 expecttest==0.3.0 jax==0.10.2 ndonnx==0.23.0 onnxruntime==1.32.0 dask[array,distributed]==2026.8.0 mlx[cpu]==0.32.4
BENCH ?= all
SUITE ?= ../array-api-tests
PROGRAMS ?= ../pytorch-programs
ARGS ?=
# What the emulation of CUDA is built with: CuPy, and Cython and headers of CUDA, which compile modules of CuPy.
EMULATION := cupy-cuda13x==14.2.0 nvidia-cuda-runtime==13.2.* nvidia-cuda-crt==13.2.* cython 'setuptools>=77'
EMULATED = $(RUN) -m tests.cuda_without_gpu run $(VENV)/cuda env $(PYTEST)
comma := ,

ifeq ($(strip $(VENV)),)
RUN := PYTHONPATH="$(CURDIR):$(CURDIR)/backends$${PYTHONPATH:+:$$PYTHONPATH}" $(PYTHON)
has = xgrad.egg-info/entry_points.txt
else
RUN := $(VENV)/bin/python
has = $(VENV)/.has-$(subst $(comma),-,$(1))
endif
PIP_INSTALL := $(RUN) -m pip install --quiet --disable-pip-version-check

# One thread for each of the workers: two threads of each of two workers on two cores wait for each other.
PYTEST := OPENBLAS_NUM_THREADS=1 $(RUN) -m pytest -n auto

# Extras of targets; CuPy is for the version of CUDA that the driver has.
mpi_extras = mpi,test
gpu_extras = test,cuda$(CUDA)

.PHONY: train test check lint types test-peers with-peers test-distributed with-distributed test-oldest with-oldest \
        test-sanitized test-extras docs with-docs docs-serve bench conformance peer-suites with-suites \
        peer-programs with-programs pytorch-samples with-samples gpu-check on-gpu clean
.NOTPARALLEL:  # targets install into one environment
.DELETE_ON_ERROR:
.SECONDEXPANSION:

train: $(call has,cli)
	$(RUN) -m xgrad train mnist --no-download --fallback digits $(ARGS)

test: $(call has,test)
	$(PYTEST) $(ARGS)

check: lint types test

lint: $(call has,check)
	$(RUN) -m ruff check
	$(RUN) -m ruff format --check

types: $(call has,check)
	$(RUN) -m mypy
	$(RUN) -m pytest tests/typing

# Environments of their own, so that `make test` stays what it is on a machine without these packages.
test-peers:
	@$(MAKE) --no-print-directory with-peers VENV="$(VENV:%=%-peers)"

with-peers: $(call has,test)
	$(if $(and $(strip $(VENV)),$(strip $(PEERS))),$(PIP_INSTALL) $(PEERS:%='%'))
	$(PYTEST) --peers $(ARGS)

test-oldest:
	@$(MAKE) --no-print-directory with-oldest VENV="$(VENV:%=%-oldest)"

with-oldest: $(if $(strip $(VENV)),$(VENV)/.has-oldest,$(call has,test))
	$(PYTEST) $(ARGS)

test-distributed:
	@$(MAKE) --no-print-directory with-distributed VENV="$(VENV:%=%-mpi)"

with-distributed: $(call has,$(mpi_extras))
	OPENBLAS_NUM_THREADS=1 $(RUN) -m pytest tests/distributed $(ARGS)

# CuPy's wheel, with its modules that contain CUDA's runtime rebuilt: in an environment of its own.
test-cuda-without-gpu:
	@$(MAKE) --no-print-directory with-cuda-emulation VENV="$(VENV:%=%-cuda)"

with-cuda-emulation: $(if $(shell command -v g++),$(VENV)/cuda/version)
	$(if $<,$(EMULATED) $(or $(ARGS),tests/cuda_without_gpu),@echo "skipped: the emulation of CUDA needs g++")
	$(if $<,$(if $(ARGS),,$(EMULATED) --device cuda $(patsubst %,tests/%.py,backends/test_cuda_graph backends/test_cuda_kernels backends/test_cupy \
	  backends/test_local_rank backends/test_self_check backends/test_fused parity/test_compare test_ops \
	  capture/test_changes capture/test_special_values capture/test_table capture/test_training \
	  optim/test_grad_scaler optim/test_flat test_float16_table test_linalg_nonfinite) \
	  -k 'test_cu or test_fused or test_change_between or test_special or matmul or softmax or cross_entropy or dropout \
	  or relu or sigmoid or tanh or elsewhere or test_flat or vecdot or attention or nonfinite \
	  or local_rank or self_check or grad_scaler'))

test-extras:
	$(PYTHON) tests/extras.py $(ARGS)

docs:
	@$(MAKE) --no-print-directory with-docs VENV="$(VENV:%=%-docs)"

# From nothing: pages of an earlier build, whose source is gone, would remain.
with-docs: $(call has,docs)
	rm -rf build/site build/doctrees
	$(RUN) -m sphinx --quiet --fail-on-warning -j auto -c docs -d build/doctrees . build/site $(ARGS)
	$(RUN) docs/sphinx/layout.py build/site
	$(RUN) docs/sphinx/links.py build/site

docs-serve: docs
	$(PYTHON) -m http.server --bind localhost --directory build/site 8000

bench: $(call has,benchmarks)
	$(RUN) -m benchmarks $(BENCH) --save $(ARGS)

conformance: $(call has,test)
	$(RUN) tests/conformance/run.py "$(SUITE)" $(ARGS)

# In an environment of its own, with what the tests of array-api-extra need.
peer-suites:
	@$(MAKE) --no-print-directory with-suites VENV="$(VENV:%=%-suites)"

with-suites: $(call has,test)
	$(if $(strip $(VENV)),$(PIP_INSTALL) hypothesis typing_extensions)
	$(RUN) tests/peer_suites/run.py $(ARGS)

# A compiler without sanitizers skips them. Undefined behaviour ends the process, an error of memory is printed.
SANITIZED = cc -Wall -Wextra -Werror -fsanitize=address,undefined -fsanitize-undefined-trap-on-error
test-sanitized: $(call has,test)
	@if command -v cc >/dev/null; then \
	  LD_PRELOAD=$$(cc -print-file-name=libasan.so) ASAN_OPTIONS=detect_leaks=0 CC="$(SANITIZED)" $(PYTEST) \
	  $(addprefix tests/backends/test_,native_kernels.py native_calls.py native_convolution.py native_pairs.py \
	  native_recurrent.py rule_kernels.py rule_programs.py update_kernels.py) $(ARGS); \
	else echo "skipped: sanitizers need a C compiler"; fi

# In the environment of test-peers, with what the programs and PyTorch's own tests need.
peer-programs:
	@$(MAKE) --no-print-directory with-programs VENV="$(VENV:%=%-peers)"

with-programs: $(call has,test)
	$(if $(strip $(VENV)),$(PIP_INSTALL) torch==2.13.0 einops matplotlib)
	$(RUN) -m tests.peer_programs "$(PROGRAMS)" $(ARGS)

pytorch-samples:
	@$(MAKE) --no-print-directory with-samples VENV="$(VENV:%=%-peers)"

with-samples: $(call has,test)
	$(if $(strip $(VENV)),$(PIP_INSTALL) torch==2.13.0 expecttest)
	$(RUN) -m tests.pytorch_samples $(ARGS)

# CuPy and CUDA take a gigabyte, and are installed only where there is a GPU.
gpu-check:
	@$(if $(strip $(VENV)),cuda=$$($(PYTHON) benchmarks/cuda_major.py) && )$(MAKE) --no-print-directory on-gpu CUDA=$$cuda

on-gpu: $$(call has,$$(gpu_extras))
	@$(RUN) -m benchmarks.gpu_check $(ARGS)

clean:
	rm -rf $(VENV) $(VENV:%=%-check) $(VENV:%=%-peers) $(VENV:%=%-oldest) $(VENV:%=%-mpi) $(VENV:%=%-suites) $(VENV:%=%-docs) build docs/reference *.egg-info .mypy_cache .pytest_cache .ruff_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

$(VENV)/.has-oldest: pyproject.toml tests/oldest.py
	test -x $(VENV)/bin/pip || $(PYTHON) -m venv $(VENV)
	lowest=$$($(PYTHON) tests/oldest.py special cli test) && $(PIP_INSTALL) --editable . $$lowest
	touch $@

# The stamp of a set of extras, which are installed again when what they are may have changed.
$(VENV)/.has-%: pyproject.toml
	test -x $(VENV)/bin/pip || $(PYTHON) -m venv $(VENV)
	$(PIP_INSTALL) --editable '.[$(subst -,$(comma),$*)]'
	touch $@

$(VENV)/cuda/version: $(call has,test) $(wildcard tests/cuda_without_gpu/*.* tests/cuda_without_gpu/include/*)
	$(PIP_INSTALL) $(EMULATION)
	$(RUN) -m tests.cuda_without_gpu build $(VENV)/cuda

# Without an installation, this is what the backends are found by. A Python without an installation may lack setuptools.
xgrad.egg-info/entry_points.txt: pyproject.toml
	$(PYTHON) tests/entry_points.py
