/* Threads that sleep, wait for a lock and compute. Each writes its
   /proc/…/schedstat to a file. */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <unistd.h>

static volatile double sink;
static FILE *out;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

__attribute__((noinline)) void compute(int n) {
    for (int i = 0; i < n; i++)
        sink = sink * 1.0001 + 1;
}

__attribute__((noinline)) void naps(int n) {
    for (int i = 0; i < n; i++) {
        usleep(2000);
        compute(200000);
    }
}

__attribute__((noinline)) void locked(int n) {
    for (int i = 0; i < n; i++) {
        pthread_mutex_lock(&lock);
        compute(300000);
        usleep(100);
        pthread_mutex_unlock(&lock);
    }
}

static void say(void) {
    int tid = (int)syscall(SYS_gettid);
    char path[64], text[128];
    snprintf(path, sizeof path, "/proc/self/task/%d/schedstat", tid);
    FILE *f = fopen(path, "r");
    if (f && fgets(text, sizeof text, f))
        fprintf(out, "thread %d %s", tid, text);
    if (f)
        fclose(f);
}

static void *sleeper(void *p) {
    naps(60);
    say();
    return p;
}

static void *locker(void *p) {
    locked(60);
    say();
    return p;
}

int main(int argc, char **argv) {
    out = argc > 1 ? fopen(argv[1], "w") : stdout;
    if (!out)
        return 1;
    pthread_t t[3];
    pthread_create(&t[0], 0, sleeper, 0);
    pthread_create(&t[1], 0, locker, 0);
    pthread_create(&t[2], 0, locker, 0);
    for (int i = 0; i < 3; i++)
        pthread_join(t[i], 0);
    say();
    return 0;
}
