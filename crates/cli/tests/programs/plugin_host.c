/* Loads two libraries in turn, each where the other one was, and lets them allocate. Prints how often
   a library was where the one before was. */
#include <dlfcn.h>
#include <stdio.h>

int main(int count, char **arguments)
{
	void *before = NULL;
	int times = 0;
	for (int round = 0; round < 20; round++) {
		void *library = dlopen(arguments[1 + round % 2], RTLD_NOW);
		void *work = library == NULL ? NULL : dlsym(library, "work");
		if (work == NULL)
			return 1;
		((void (*)(void))work)();
		times += work == before;
		before = work;
		dlclose(library);
	}
	printf("%d\n", times);
	return 0;
}
