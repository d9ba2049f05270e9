// Writes a title over its arguments and its environment, as a server does, then works in a child.
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

int main(int count, char **arguments) {
    char *end = arguments[0];
    for (char **variable = environ; *variable; variable++) {
        end = *variable + strlen(*variable);
    }
    free(malloc(1));
    memset(arguments[0], 0, end - arguments[0]);
    strcpy(arguments[0], "worker");
    if (fork() == 0) {
        for (int i = 0; i < 1000; i++) {
            malloc(100);
        }
        _exit(0);
    }
    wait(NULL);
    return 0;
}
