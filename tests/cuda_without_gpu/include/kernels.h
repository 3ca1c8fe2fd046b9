// Precompiled: what every kernel includes.
#pragma once
#include "cuda_on_host.h"
#include "kernel.h"
#include <cupy/complex.cuh>
#include <cupy/carray.cuh>
#include <cupy/atomics.cuh>
#include <cupy/math_constants.h>
#include <cupy/float16.cuh>
#include <cupy/bfloat16.cuh>
