/* A pool of threads that share out ranges.
 *
 * A call of `parallel` is a task: a function to be called for ranges of 0 to `total`, in as many
 * parts as there are threads. Each thread starts with the ranges of its own part, the caller with
 * the first part, and then takes the ranges that are left of the following parts. So without other
 * load a thread reads what it wrote in the previous task, which is still in the cache of its core.
 * The caller does not wait for helpers that come late: on a busy machine it does all the work, at
 * the speed of one thread.
 *
 *     caller:  publishes the task, wakes helpers -> takes ranges -> closes the task
 *              -> waits for the helpers in it
 *     helper:  polls for a new task for a while, then sleeps -> enters if the task is open
 *              -> takes ranges -> leaves
 *
 * A helper that sleeps begins some 50 us late. So it polls for longer than Python needs between
 * two kernels of eager mode. Where other threads want its core, polling would take its share of
 * the core from the next task: they interrupt it, which it sees by the clock, and for some tasks
 * it then polls for a short time.
 *
 * Besides the task they share only `state`: the number of the task, whether it is open, how many
 * helpers may enter, and how many have entered and not left.
 */

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <time.h>

#if defined(__SSE2__)
#define PAUSE() _mm_pause()
#elif defined(__aarch64__)
#define PAUSE() __asm__ volatile("yield")
#else
#define PAUSE() ((void)0)
#endif

enum { MOST_HELPERS = 63, BUSY_LOOKS = 10000 };

/* How long a helper polls, in ns, in general and after an interruption; how many looks it takes
 * between readings of the clock, and the time between readings that shows an interruption; the
 * number of tasks after an interruption for which it polls for the short time. */
enum {
    LONG_WAIT = 300000,
    SHORT_WAIT = 13000,
    LOOKS = 32,
    INTERRUPTION = 500000,
    CAUTIOUS_TASKS = 1000,
};

static struct {
    range_function function;
    void *argument;
    int64_t total, chunk;
    int part_count;
} task;

/* The untaken rest of each part of the task, on its own cache line. */
static struct {
    _Alignas(64) _Atomic int64_t next;
    int64_t end;
} parts_of_task[MOST_HELPERS + 1];

/* The number of the task in the high half, then OPEN, the number of helpers that may enter, and the
 * number of helpers inside. */
#define OPEN ((uint64_t)1 << 31)
#define ALLOWED(state) (((state) >> 16) & 0x7fff)
#define INSIDE(state) ((state) & 0xffff)
#define NUMBER(state) ((state) >> 32)
static _Atomic uint64_t state;

static pthread_mutex_t owner = PTHREAD_MUTEX_INITIALIZER; /* held by the owner of the task */
static pthread_mutex_t bed = PTHREAD_MUTEX_INITIALIZER;   /* for waiting on `wake` */
static pthread_cond_t wake = PTHREAD_COND_INITIALIZER;
static _Atomic int asleep;
static int helpers; /* number of helpers started; only the owner changes it */
static _Thread_local int working, helping;
static _Thread_local int32_t raised;      /* exceptions of this thread's tasks, until taken */
static _Atomic int32_t raised_by_helpers; /* exceptions of helpers in the current task */

static int (*current_threads)(void); /* number of threads that the process wants, with the caller */

/* Divide the task; a part may be empty. */
static void make_parts(int count) {
    const int64_t chunks = (task.total + task.chunk - 1) / task.chunk;
    int64_t begin = 0;
    for (int i = 0; i < count; i++) {
        const int64_t end = i + 1 < count ? chunks * (i + 1) / count * task.chunk : task.total;
        atomic_store_explicit(&parts_of_task[i].next, begin, memory_order_relaxed);
        parts_of_task[i].end = end;
        begin = end;
    }
    task.part_count = count;
}

/* Take ranges of all parts, starting with the part `first`. */
static void take_ranges(int first) {
    working = 1;
    for (int i = 0; i < task.part_count; i++) {
        const int part = (first + i) % task.part_count;
        for (;;) {
            const int64_t begin = atomic_fetch_add(&parts_of_task[part].next, task.chunk),
                          end = begin + task.chunk;
            if (begin >= parts_of_task[part].end) break;
            task.function(task.argument, begin,
                          end < parts_of_task[part].end ? end : parts_of_task[part].end);
        }
    }
    working = 0;
}

static int64_t now_in_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

/* Poll for a task after the one that was seen; return whether there is one. */
static int poll_for_task(uint64_t seen) {
    static _Thread_local int cautious; /* number of tasks for which it polls for the short time */
    const int64_t begin = now_in_ns(), patience = cautious ? SHORT_WAIT : LONG_WAIT;
    if (cautious) cautious--;
    for (int64_t before = begin, now;; before = now) {
        for (int i = 0; i < LOOKS; i++) {
            if (NUMBER(atomic_load(&state)) != seen) return 1;
            PAUSE();
        }
        now = now_in_ns();
        if (now - before > INTERRUPTION) cautious = CAUTIOUS_TASKS;
        if (now - before > INTERRUPTION || now - begin > patience) return 0;
    }
}

static void wait_for_task(uint64_t seen) {
    if (poll_for_task(seen)) return;
    pthread_mutex_lock(&bed);
    atomic_fetch_add(&asleep, 1);
    while (NUMBER(atomic_load(&state)) == seen) pthread_cond_wait(&wake, &bed);
    atomic_fetch_sub(&asleep, 1);
    pthread_mutex_unlock(&bed);
}

static void *help(void *argument) {
    helping = 1;
    const uint64_t index = (uintptr_t)argument;
    uint64_t seen = 0;
    for (;;) {
        wait_for_task(seen);
        uint64_t now = atomic_load(&state);
        seen = NUMBER(now);
        while (now & OPEN && seen == NUMBER(now) && index < ALLOWED(now)) {
            if (atomic_compare_exchange_weak(&state, &now, now + 1)) {
                take_ranges((int)index + 1);
                atomic_fetch_sub(&state, 1);
                break;
            }
        }
    }
    return NULL;
}

/* Forget the helpers and the task in the child of a fork, which has neither. */
static void forget_helpers(void) {
    helpers = 0;
    atomic_store(&state, 0);
    atomic_store(&asleep, 0);
    pthread_mutex_init(&owner, NULL);
    pthread_mutex_init(&bed, NULL);
    pthread_cond_init(&wake, NULL);
    working = 0;
    atomic_store(&raised_by_helpers, 0);
}

/* Start helpers up to a number. All signals are blocked in them: Python's threads handle
 * signals. */
static void start_helpers(int wanted) {
    static int prepared;
    sigset_t all, before;
    if (!prepared) prepared = !pthread_atfork(NULL, NULL, forget_helpers);
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    while (helpers < wanted) {
        pthread_t thread;
        if (pthread_create(&thread, NULL, help, (void *)(uintptr_t)helpers)) break;
        pthread_detach(thread);
        helpers++;
    }
    pthread_sigmask(SIG_SETMASK, &before, NULL);
}

/* Call a function for all of 0 to `total`, in ranges of `chunk`, on up to `threads` threads.
 *
 * Within a range, and while another thread has the pool, the calling thread does all the work.
 */
static void parallel_on(int threads, range_function function, void *argument, int64_t total,
                        int64_t chunk) {
    if (threads - 1 > MOST_HELPERS) threads = MOST_HELPERS + 1;
    if (threads < 2 || total <= chunk || working || pthread_mutex_trylock(&owner)) {
        if (total > 0) function(argument, 0, total);
        return;
    }
    if (helpers < threads - 1) start_helpers(threads - 1);
    task.function = function;
    task.argument = argument;
    task.total = total;
    task.chunk = chunk;
    make_parts(threads);
    const uint64_t number = (NUMBER(atomic_load(&state)) + 1) & 0xffffffff;
    atomic_store(&state, number << 32 | OPEN | (uint64_t)(threads - 1) << 16);
    if (atomic_load(&asleep)) {
        pthread_mutex_lock(&bed);
        pthread_cond_broadcast(&wake);
        pthread_mutex_unlock(&bed);
    }
    take_ranges(0);
    atomic_fetch_and(&state, ~OPEN);
    for (int i = 0; INSIDE(atomic_load(&state)); i++) {
        if (i < BUSY_LOOKS) PAUSE();
        else sched_yield();
    }
    raised |= atomic_exchange(&raised_by_helpers, 0);
    pthread_mutex_unlock(&owner);
}

void parallel(range_function function, void *argument, int64_t total, int64_t chunk) {
    parallel_on(current_threads ? current_threads() : 1, function, argument, total, chunk);
}

void note(int32_t bits) {
    if (!bits) return;
    if (helping) atomic_fetch_or(&raised_by_helpers, bits);
    else raised |= bits;
}

/* Return the exceptions of this thread's tasks since the last call. */
int32_t take_raised(void) {
    const int32_t bits = raised;
    raised = 0;
    return bits;
}

/* Set the function that returns how many threads the process wants. */
void use_threads_of(int (*function)(void)) { current_threads = function; }
