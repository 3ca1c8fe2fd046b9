// Memory of the device in whole pages, which cannot be accessed once it was freed.
#include "freed.h"

#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdio>
#include <deque>

const char *running = "";

namespace {

struct Block { char *address; size_t size, pages; };

// At most so many blocks and bytes of addresses are kept: a process may have 65530 mappings
const size_t most_blocks = 8192, most_bytes = (size_t)1 << 40;

std::deque<Block> freed;
size_t kept = 0;
struct sigaction previous;

size_t whole_pages(size_t size) {
    size_t page = sysconf(_SC_PAGESIZE);
    return (size / page + (size % page || !size)) * page;
}

// The instruction is run again when this returns, now with the handler that was there before.
void explain(int signal, siginfo_t *info, void *) {
    auto accessed = (char *)info->si_addr;
    for (auto &block : freed) {
        if (accessed < block.address || accessed >= block.address + block.pages) continue;
        char text[300];
        int length = snprintf(text, sizeof text, "cuda_without_gpu: %s accesses memory that was freed: byte %zd of %zu bytes at %p\n",
                              running, accessed - block.address, block.size, (void *)block.address);
        if (write(STDERR_FILENO, text, length) < 0) break;
    }
    sigaction(signal, &previous, nullptr);
}

void install() {
    struct sigaction own = {};
    own.sa_sigaction = explain;
    own.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER;
    sigaction(SIGSEGV, &own, &previous);
}

}  // namespace

void *allocate(size_t size) {
    static bool installed = (install(), true);
    (void)installed;
    void *address = mmap(nullptr, whole_pages(size), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return address == MAP_FAILED ? nullptr : address;
}

void protect(void *address, size_t size) {
    size_t pages = whole_pages(size);
    const int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED;
    if (mmap(address, pages, PROT_NONE, flags, -1, 0) == MAP_FAILED) {
        perror("cuda_without_gpu: memory that is freed cannot be protected");
        munmap(address, pages);
        return;
    }
    freed.push_back({(char *)address, size, pages});
    for (kept += pages; freed.size() > most_blocks || kept > most_bytes; freed.pop_front()) {
        munmap(freed.front().address, freed.front().pages);
        kept -= freed.front().pages;
    }
}
