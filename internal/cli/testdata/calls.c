/* Functions that call each other, also recursively, under three names of threads. */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

static volatile unsigned long sink;

__attribute__((noipa)) static void leaf(int n) {
    for (int i = 0; i < n; i++)
        sink += sink * 31 + 7;
    __asm__ volatile("");
}

__attribute__((noipa)) static void left(int n) {
    leaf(n);
    leaf(n / 2);
    sink++;
}

__attribute__((noipa)) static void right(int n) {
    leaf(n);
    for (int i = 0; i < n / 4; i++)
        sink ^= sink >> 3;
    sink++;
}

__attribute__((noipa)) static void recurse(int depth, int n) {
    left(n);
    if (depth > 0)
        recurse(depth - 1, n);
    right(n / 2);
    sink++;
}

__attribute__((noipa)) static void reads(void) {
    char text[4096];
    FILE *f = fopen("/proc/self/smaps", "r");
    while (f && fgets(text, sizeof text, f))
        sink += strlen(text);
    if (f)
        fclose(f);
    sink++;
}

static void *work(void *name) {
    prctl(PR_SET_NAME, name);
    for (int i = 0; i < 150; i++) {
        recurse(i % 4, 40000);
        reads();
    }
    return name;
}

int main(void) {
    pthread_t t[2];
    pthread_create(&t[0], 0, work, "first");
    pthread_create(&t[1], 0, work, "second");
    work("main thread");
    for (int i = 0; i < 2; i++)
        pthread_join(t[i], 0);
    return 0;
}
