/* Tasks on the pool of threads, from several threads at once and in a child of a fork; compiled by test_native_pool.py,
 * after the sources of the runtime. It prints "done" if all sums are right. */

#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

enum { SIZE = 5000, TASKS = 3000, CALLERS = 3 };

static int wanted = 3;
static int threads_wanted(void) { return wanted; }

struct sums {
    const int64_t *x;
    int64_t *out;
};

static void add_one(void *argument, int64_t begin, int64_t end) {
    const struct sums *y = argument;
    for (int64_t i = begin; i < end; i++) y->out[i] = y->x[i] + 1;
}

static void nested(void *argument, int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; i++) parallel(add_one, (struct sums *)argument + i, SIZE, 100);
}

static void *call(void *argument) {
    static const int64_t chunks[] = {1, 7, 100, 4999, 5000, 6000};
    int64_t *x = malloc(SIZE * sizeof *x), *out = calloc(SIZE, sizeof *out);
    struct sums y = {x, out};
    for (int64_t i = 0; i < SIZE; i++) x[i] = i + (intptr_t)argument;
    for (int64_t task = 0; task < TASKS; task++) {
        parallel(add_one, &y, SIZE, chunks[task % 6]);
        for (int64_t i = 0; i < SIZE; i++) {
            if (out[i] != x[i] + 1) {
                printf("expected %lld, got %lld\n", (long long)(x[i] + 1), (long long)out[i]);
                exit(1);
            }
            out[i] = 0;
        }
    }
    free(x);
    free(out);
    return NULL;
}

int main(int count, char **arguments) {
    pthread_t threads[CALLERS];
    const int forks = count > 1 && arguments[1][0] == 'f'; /* a thread sanitizer knows no forks beside threads */
    use_threads_of(threads_wanted);
    for (intptr_t i = 0; i < CALLERS; i++) pthread_create(&threads[i], NULL, call, (void *)i);
    for (int i = 0; i < CALLERS; i++) pthread_join(threads[i], NULL);

    int64_t x[SIZE] = {0}, out[4][SIZE];
    struct sums all[4];
    for (int i = 0; i < 4; i++) all[i] = (struct sums){x, out[i]};
    parallel(nested, all, 4, 1);
    for (int i = 0; i < 4; i++)
        if (out[i][SIZE - 1] != 1) return 2;
    parallel(add_one, all, 0, 1); /* of nothing */

    if (forks) {
        const pid_t child = fork();
        int status = 1;
        if (!child) {
            call(NULL);
            _exit(0);
        }
        waitpid(child, &status, 0);
        if (status) return 3;
    }
    wanted = 1;
    call(NULL);
    printf("done\n");
    return 0;
}
