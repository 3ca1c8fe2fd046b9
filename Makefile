# Every target sets up what it needs, on a machine with only Python (3.11 or newer) and pip.
#
#   make train       train a network, on MNIST where there is one, else on the digits that come with xgrad
#   make test        lint, types and tests; PEERS="torch==2.13.0" also compares with PyTorch
#   make bench       xgrad beside other libraries, written to benchmarks/results; BENCH=step for one benchmark
#   make gpu-check   the tests and a short training on a GPU; results as JSON
#   make conformance SUITE=FOLDER  the array API standard's own suite, of which FOLDER is a checkout
#   make lint        ruff alone
#   make clean       remove what these targets made
#
# The environment VENV is made with PYTHON. Where VENV is empty, PYTHON itself is used and nothing is installed.
# ARGS go to the command: make train ARGS="--epochs 3".

PYTHON ?= python3
VENV ?= .venv
CUDA ?= 12
PEERS ?=
BENCH ?= all
SUITE ?= ../array-api-tests
ARGS ?=
comma := ,

ifeq ($(strip $(VENV)),)
RUN := PYTHONPATH="$(CURDIR):$(CURDIR)/backends$${PYTHONPATH:+:$$PYTHONPATH}" $(PYTHON)
has = xgrad.egg-info/entry_points.txt
else
RUN := $(VENV)/bin/python
has = $(VENV)/.has-$(subst $(comma),-,$(1))
endif

# Only where there is a GPU is it worth to install a gigabyte of CuPy and CUDA.
gpu_extras = test$(shell nvidia-smi -L >/dev/null 2>&1 && echo ,cuda$(CUDA))

.PHONY: train test lint bench conformance gpu-check clean peers
.DELETE_ON_ERROR:
.SECONDEXPANSION:

train: $(call has,cli)
	$(RUN) -m xgrad train mnist --no-download --fallback digits $(ARGS)

# Two threads of each of two workers on two cores get in each other's way.
test: lint peers
	$(RUN) -m mypy
	OPENBLAS_NUM_THREADS=1 $(RUN) -m pytest -n auto $(ARGS)

lint: $(call has,test)
	$(RUN) -m ruff check
	$(RUN) -m ruff format --check

bench: $(call has,benchmarks)
	$(RUN) -m benchmarks $(BENCH) --save $(ARGS)

conformance: $(call has,test)
	$(RUN) tests/conformance/run.py "$(SUITE)" $(ARGS)

gpu-check: $$(call has,$$(gpu_extras))
	@$(RUN) -m benchmarks.gpu_check $(ARGS)

peers: $(call has,test)
	$(if $(and $(strip $(VENV)),$(PEERS)),$(RUN) -m pip install --quiet $(foreach peer,$(PEERS),'$(peer)'))

clean:
	rm -rf $(VENV) build *.egg-info .mypy_cache .pytest_cache .ruff_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

# The stamp of a set of extras, which are installed again when what they are may have changed.
$(VENV)/.has-%: pyproject.toml
	test -x $(VENV)/bin/pip || $(PYTHON) -m venv $(VENV)
	$(RUN) -m pip install --quiet --disable-pip-version-check --editable '.[$(subst -,$(comma),$*)]'
	touch $@

# Without an installation, this is what the backends are found by.
xgrad.egg-info/entry_points.txt: pyproject.toml
	$(PYTHON) -c 'from setuptools import setup; setup()' --quiet egg_info
