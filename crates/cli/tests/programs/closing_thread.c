/* Loads two libraries of C++ that no other library sees. The second asks for more memory than there
   is, while threads load and close further libraries, one each:
       closing_thread FIRST SECOND LIBRARY...
   The library of C++ is loaded before the second, so the operators are looked for in all. */
#include <dlfcn.h>
#include <pthread.h>

static volatile int is_over;

static void *close_libraries(void *path)
{
	while (!is_over)
		dlclose(dlopen(path, RTLD_NOW | RTLD_LOCAL));
	return NULL;
}

int main(int count, char **arguments)
{
	pthread_t threads[count];
	if (dlopen(arguments[1], RTLD_NOW | RTLD_LOCAL) == NULL)
		return 1;
	void *library = dlopen(arguments[2], RTLD_NOW | RTLD_LOCAL);
	int (*count_exceptions)(unsigned long) = dlsym(library, "count_exceptions");
	for (int number = 3; number < count; number++)
		pthread_create(&threads[number], NULL, close_libraries, arguments[number]);
	int failures = 0;
	for (int round = 0; round < 2000; round++)
		failures += count_exceptions(1ul << 62) != 20;
	is_over = 1;
	for (int number = 3; number < count; number++)
		pthread_join(threads[number], NULL);
	return failures != 0;
}
