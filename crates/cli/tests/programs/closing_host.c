/* Loads and closes a library 50 times; writes to FILE how often it slept.
       closing_host LIBRARY FILE [kill]
   With "kill", larder is killed first. */
#include <dlfcn.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

static long sleeps(void)
{
	struct rusage usage;
	getrusage(RUSAGE_SELF, &usage);
	return usage.ru_nvcsw;
}

int main(int count, char **arguments)
{
	char name[300];
	int larder = getppid();
	if (count > 3) {
		kill(larder, SIGKILL);
		/* Until it has closed its socket. */
		while (kill(larder, 0) == 0)
			usleep(1000);
	}
	long before = sleeps();
	for (int round = 0; round < 50; round++) {
		void *library = dlopen(arguments[1], RTLD_NOW);
		if (library == NULL)
			return 1;
		((void (*)(void))dlsym(library, "work"))();
		dlclose(library);
	}
	long after = sleeps();
	snprintf(name, sizeof name, "%s.new", arguments[2]);
	FILE *file = fopen(name, "w");
	fprintf(file, "%ld\n", after - before);
	fclose(file);
	return rename(name, arguments[2]) != 0;
}
