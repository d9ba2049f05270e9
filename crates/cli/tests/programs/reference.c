/* The slow reference of the recorder: a preloaded library that writes a line for each call that it
 * sees. It is loaded after the recorder, so it sees the calls that the recorder passes on, in the
 * same process: NAME ADDRESS SIZE OLD, with numbers in hexadecimal. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void *(*real_malloc)(size_t), *(*real_calloc)(size_t, size_t), *(*real_realloc)(void *, size_t);
static void *(*real_memalign)(size_t, size_t), *(*real_aligned_alloc)(size_t, size_t);
static void *(*real_valloc)(size_t), *(*real_pvalloc)(size_t);
static int (*real_posix_memalign)(void **, size_t, size_t);
static void (*real_free)(void *);
/* The file for the lines; opened when libc has its environment. */
static int output = -1;
static char buffer[1 << 16];
static size_t used;
static int is_ending;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static void resolve(void)
{
	if (real_malloc)
		return;
	real_calloc = dlsym(RTLD_NEXT, "calloc");
	real_realloc = dlsym(RTLD_NEXT, "realloc");
	real_memalign = dlsym(RTLD_NEXT, "memalign");
	real_aligned_alloc = dlsym(RTLD_NEXT, "aligned_alloc");
	real_valloc = dlsym(RTLD_NEXT, "valloc");
	real_pvalloc = dlsym(RTLD_NEXT, "pvalloc");
	real_posix_memalign = dlsym(RTLD_NEXT, "posix_memalign");
	real_free = dlsym(RTLD_NEXT, "free");
	real_malloc = dlsym(RTLD_NEXT, "malloc");
}

static void flush(void)
{
	size_t done = 0;
	if (output < 0)
		output = open(getenv("REFERENCE_LINES"), O_WRONLY | O_CREAT | O_APPEND, 0600);
	while (done < used) {
		ssize_t count = write(output, buffer + done, used - done);
		if (count <= 0)
			_exit(97);
		done += count;
	}
	used = 0;
}

static void number(uintptr_t value)
{
	char digits[20];
	int count = 0;
	do
		digits[count++] = "0123456789abcdef"[value & 15];
	while (value >>= 4);
	while (count)
		buffer[used++] = digits[--count];
}

static void note(const char *name, void *address, size_t size, void *old)
{
	int error = errno;
	pthread_mutex_lock(&lock);
	if (used > sizeof buffer - 128)
		flush();
	size_t length = strlen(name);
	memcpy(buffer + used, name, length);
	used += length;
	buffer[used++] = ' ';
	number((uintptr_t)address);
	buffer[used++] = ' ';
	number(size);
	buffer[used++] = ' ';
	number((uintptr_t)old);
	buffer[used++] = '\n';
	if (is_ending)
		flush();
	pthread_mutex_unlock(&lock);
	errno = error;
}

void *malloc(size_t size)
{
	resolve();
	void *address = real_malloc(size);
	note("malloc", address, size, 0);
	return address;
}

void *calloc(size_t count, size_t size)
{
	resolve();
	void *address = real_calloc(count, size);
	size_t product;
	if (__builtin_mul_overflow(count, size, &product))
		product = SIZE_MAX;
	note("calloc", address, product, 0);
	return address;
}

void *realloc(void *old, size_t size)
{
	resolve();
	void *address = real_realloc(old, size);
	note("realloc", address, size, old);
	return address;
}

void free(void *address)
{
	resolve();
	note("free", address, 0, 0);
	real_free(address);
}

int posix_memalign(void **result, size_t alignment, size_t size)
{
	resolve();
	int code = real_posix_memalign(result, alignment, size);
	note("posix_memalign", code ? 0 : *result, size, 0);
	return code;
}

void *aligned_alloc(size_t alignment, size_t size)
{
	resolve();
	void *address = real_aligned_alloc(alignment, size);
	note("aligned_alloc", address, size, 0);
	return address;
}

void *memalign(size_t alignment, size_t size)
{
	resolve();
	void *address = real_memalign(alignment, size);
	note("memalign", address, size, 0);
	return address;
}

void *valloc(size_t size)
{
	resolve();
	void *address = real_valloc(size);
	note("valloc", address, size, 0);
	return address;
}

void *pvalloc(size_t size)
{
	resolve();
	void *address = real_pvalloc(size);
	note("pvalloc", address, size, 0);
	return address;
}

/* Other libraries may end later: what they call is written at once. */
__attribute__((destructor)) static void at_exit(void)
{
	pthread_mutex_lock(&lock);
	is_ending = 1;
	flush();
	pthread_mutex_unlock(&lock);
}
