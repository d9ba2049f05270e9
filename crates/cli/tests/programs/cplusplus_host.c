/* A program of C that loads a library of C++, which no other library sees. */
#include <dlfcn.h>

int main(int count, char **arguments)
{
	void *library = dlopen(arguments[1], RTLD_NOW | RTLD_LOCAL);
	int (*count_exceptions)(unsigned long) = dlsym(library, "count_exceptions");
	return count_exceptions(1ul << 62) == 20 ? 0 : 1;
}
