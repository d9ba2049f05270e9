// Four threads allocate and count their calls in a file, which is shared memory; after a million
// the program kills itself.
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

static long *count;

static void *allocate(void *unused) {
    for (;;) {
        malloc(24);
        if (__atomic_add_fetch(count, 1, __ATOMIC_SEQ_CST) == 1000000) {
            kill(getpid(), SIGKILL);
        }
    }
    return NULL;
}

int main(int argc, char **arguments) {
    int file = open(arguments[1], O_RDWR | O_CREAT | O_TRUNC, 0600);
    pthread_t thread;
    ftruncate(file, 4096);
    count = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    for (int i = 0; i < 4; i++) {
        pthread_create(&thread, NULL, allocate, NULL);
    }
    pause();
    return 0;
}
