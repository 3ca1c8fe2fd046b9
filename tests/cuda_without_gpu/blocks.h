// Launches of kernels.
#pragma once
#include "include/kernel.h"

const unsigned shared_limit = 232448;

struct Launch {
    dim3 grid, block;
    unsigned shared;
};

bool valid(const Launch &launch);
// Run all blocks, one after the other. Return false where threads wait for others that do not come.
bool execute(const Kernel &kernel, const Launch &launch, void **args);
