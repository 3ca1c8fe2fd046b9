// Blocks of threads: a loop over the threads of a kernel without barriers, fibers for one with barriers.
#include "blocks.h"

#include <setjmp.h>
#include <ucontext.h>

#include <cstdio>
#include <cstdlib>
#include <memory>
#include <vector>

namespace {

enum class Status { ready, block, warp, done };

struct Fiber {
    Status status = Status::done;
    unsigned mask = 0;
    jmp_buf context;
    std::unique_ptr<char[]> stack;
};

const size_t stack_size = 64 << 10;

std::vector<Fiber> fibers(1024);
Fiber *current;
jmp_buf scheduler;
ucontext_t origin;
const Kernel *kernel;
void **arguments;

void yield(Status status) {
    current->status = status;
    if (!_setjmp(current->context)) _longjmp(scheduler, 1);
}

void wait(Scope scope, unsigned mask) {
    current->mask = mask;
    yield(scope == Scope::block ? Status::block : Status::warp);
}

void loop() {
    if (!_setjmp(current->context)) {
        ucontext_t here;
        swapcontext(&here, &origin);  // back to `start`
    }
    for (;;) {
        kernel->thread(arguments);
        yield(Status::done);
    }
}

// A fiber is made once, and runs a thread of each block from then on.
void start(Fiber &fiber) {
    ucontext_t context;
    getcontext(&context);
    fiber.stack.reset(new char[stack_size]);
    context.uc_stack.ss_sp = fiber.stack.get();
    context.uc_stack.ss_size = stack_size;
    context.uc_link = nullptr;
    makecontext(&context, loop, 0);
    current = &fiber;
    swapcontext(&origin, &context);
}

void resume(Fiber &fiber, CudaState &state, unsigned index, const dim3 &size) {
    current = &fiber;
    state.thread = {index % size.x, index / size.x % size.y, index / size.x / size.y};
    if (!_setjmp(scheduler)) _longjmp(fiber.context, 1);
}

// Let go those that wait where all others that must have come there have, or have ended. Return whether there are any.
bool release(unsigned count) {
    bool all = true, any = false;
    for (unsigned i = 0; i < count; ++i)
        if (fibers[i].status != Status::block && fibers[i].status != Status::done) all = false;
    for (unsigned i = 0; i < count; ++i) {
        Fiber &fiber = fibers[i];
        bool free = fiber.status == Status::block && all;
        if (fiber.status == Status::warp) {
            free = true;
            for (unsigned lane = 0; lane < 32 && i / 32 * 32 + lane < count; ++lane) {
                Status other = fibers[i / 32 * 32 + lane].status;
                if (fiber.mask >> lane & 1 && other != Status::warp && other != Status::done && other != Status::ready)
                    free = false;
            }
        }
        if (free) fiber.status = Status::ready, any = true;
    }
    return any;
}

bool run_block(CudaState &state, unsigned count, const dim3 &size) {
    for (unsigned i = 0; i < count; ++i) {
        if (!fibers[i].stack) start(fibers[i]);
        fibers[i].status = Status::ready;
    }
    for (;;) {
        bool waiting = false;
        for (unsigned i = 0; i < count; ++i) {
            if (fibers[i].status == Status::ready) resume(fibers[i], state, i, size);
            waiting |= fibers[i].status != Status::done;
        }
        if (!waiting) return true;
        if (!release(count)) {
            fprintf(stderr, "cuda_without_gpu: %s: threads wait for others that do not come\n", kernel->name);
            return false;
        }
    }
}

}  // namespace

bool valid(const Launch &launch) {
    const dim3 &grid = launch.grid, &block = launch.block;
    return grid.x && grid.y && grid.z && grid.x < 1u << 31 && grid.y < 1 << 16 && grid.z < 1 << 16 && block.x &&
           block.y && block.z && block.z <= 64 && (size_t)block.x * block.y * block.z <= 1024 && launch.shared <= shared_limit;
}

bool execute(const Kernel &called, const Launch &launch, void **args) {
    CudaState &state = *called.state;
    std::vector<char> shared(launch.shared + 16, (char)0xEE);
    state.block_size = launch.block;
    state.grid_size = launch.grid;
    state.shared = shared.data() + (16 - (size_t)shared.data() % 16);
    state.wait = wait;
    if (called.blocks) {
        called.blocks(args);
        return true;
    }
    kernel = &called;
    arguments = args;
    unsigned count = launch.block.x * launch.block.y * launch.block.z;
    for (unsigned z = 0; z < launch.grid.z; ++z) for (unsigned y = 0; y < launch.grid.y; ++y)
    for (unsigned x = 0; x < launch.grid.x; ++x) {
        state.block = {x, y, z};
        if (!run_block(state, count, launch.block)) return false;
    }
    return true;
}
