// Calls every entry point of the allocators of C and C++, in one thread and in several.
#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <malloc.h>
#include <new>
#include <stdlib.h>
#include <string>
#include <thread>
#include <unistd.h>
#include <vector>

extern "C" void free_sized(void *, size_t) __attribute__((weak));
extern "C" void free_aligned_sized(void *, size_t, size_t) __attribute__((weak));
extern "C" void cfree(void *) __attribute__((weak));

struct alignas(64) Wide {
	char bytes[192];
};

static void call_each(unsigned seed)
{
	void *a = malloc(10 + seed % 7);
	void *b = calloc(3, 100);
	a = realloc(a, 5000);
	a = realloc(a, 20);
	void *c = realloc(nullptr, 77);
	c = realloc(c, 0); // releases
	if (c)
		free(c);
	void *d = reallocarray(nullptr, 4, 25);
	d = reallocarray(d, 40, 25);
	void *e = nullptr;
	if (posix_memalign(&e, 256, 300))
		abort();
	void *f = aligned_alloc(128, 256);
	void *g = memalign(64, 99);
	void *h = valloc(123);
	void *i = pvalloc(321);
	void *big = malloc(9000000); // a size that needs a word of its own
	free(nullptr);
	free(a), free(b), free(d), free(e), free(f), free(g), free(h), free(i), free(big);
	if (free_sized)
		free_sized(malloc(31), 31);
	if (free_aligned_sized)
		free_aligned_sized(aligned_alloc(64, 64), 64, 64);
	if (cfree)
		cfree(malloc(41));

	volatile auto one = new int(1);
	volatile auto many = new char[1000];
	auto quiet = new (std::nothrow) long(2);
	auto quiets = new (std::nothrow) long[20];
	auto wide = new Wide;
	auto wides = new Wide[3];
	auto wide_quiet = new (std::nothrow) Wide;
	auto wides_quiet = new (std::nothrow) Wide[2];
	delete one;
	delete[] many;
	delete quiet;
	delete[] quiets;
	delete wide;
	delete[] wides;
	delete wide_quiet;
	delete[] wides_quiet;
	::operator delete(::operator new(50), std::nothrow);
	::operator delete[](::operator new[](60), std::nothrow);
	::operator delete((void *)nullptr);
}

static void fail_each()
{
	volatile size_t huge = SIZE_MAX / 2;
	if (malloc(huge) || calloc(huge, 8) || realloc(nullptr, huge) || aligned_alloc(64, huge))
		abort();
	void *kept = malloc(64);
	if (realloc(kept, huge))
		abort();
	free(kept);
	if (new (std::nothrow) char[huge])
		abort();
	try {
		volatile auto none = new char[huge];
		abort();
		delete[] none;
	} catch (const std::bad_alloc &) {
	}
}

// Threads that release each other's memory, and change sizes of it.
static std::atomic<void *> slots[64];

static void exchange(unsigned seed, int rounds)
{
	unsigned x = seed * 2654435761u + 1;
	for (int round = 0; round < rounds; round++) {
		x = x * 1664525 + 1013904223;
		void *mine = malloc(x >> 20 & 511);
		if (x & 1024)
			mine = realloc(mine, (x >> 12 & 1023) + 1);
		free(slots[x >> 8 & 63].exchange(mine));
	}
}

int main(int, char **arguments)
{
	for (unsigned seed = 0; seed < 50; seed++)
		call_each(seed);
	fail_each();
	int rounds = atoi(arguments[1]);
	if (rounds) {
		std::vector<std::thread> threads;
		for (unsigned seed = 1; seed <= 4; seed++)
			threads.emplace_back(exchange, seed, rounds);
		for (auto &thread : threads)
			thread.join();
		for (auto &slot : slots)
			free(slot.exchange(nullptr));
	}
	return 0;
}
