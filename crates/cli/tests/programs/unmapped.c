// A thread with a small stack allocates, while the memory above its stack comes and goes.
#define _GNU_SOURCE
#include <pthread.h>
#include <stdlib.h>
#include <sys/mman.h>

enum { STACK = 65536, CALLS = 20000 };
static volatile int is_done;

static void *allocate(void *unused) {
    for (int i = 0; i < CALLS; i++) {
        free(malloc(1000));
    }
    is_done = 1;
    return NULL;
}

static void *map(void *place, int flags) {
    int access = PROT_READ | PROT_WRITE;
    return mmap(place, place ? STACK : 2 * STACK, access, MAP_PRIVATE | MAP_ANONYMOUS | flags, -1, 0);
}

int main(void) {
    char *stack = map(NULL, 0);
    pthread_attr_t attributes;
    pthread_t thread;
    pthread_attr_init(&attributes);
    pthread_attr_setstack(&attributes, stack, STACK);
    pthread_create(&thread, &attributes, allocate, NULL);
    while (!is_done) {
        munmap(stack + STACK, STACK);
        map(stack + STACK, MAP_FIXED);
    }
    pthread_join(thread, NULL);
    return 0;
}
