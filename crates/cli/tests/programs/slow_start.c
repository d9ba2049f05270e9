/* A library that takes its time when it is loaded. */
#include <unistd.h>

__attribute__((constructor)) static void load(void)
{
	usleep(50000);
}
