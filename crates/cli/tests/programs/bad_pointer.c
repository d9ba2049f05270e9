// Asks for the access to files at pointers that lead nowhere, then emits a mark.
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

int main(void) {
    if (access((char *)8, F_OK) != -1 || errno != EFAULT) {
        return 1;
    }
    if (faccessat(AT_FDCWD, (char *)8, F_OK, 0) != -1 || errno != EFAULT) {
        return 2;
    }
    if (access("/larder", F_OK) != -1 || errno != ENOENT) {
        return 3;
    }
    free(malloc(1));
    errno = 0;
    return access("/larder/mark/checked", F_OK) != 0 || errno != 0 ? 4 : 0;
}
