// Operators that take memory of a pool, from which the others of the standard library follow. Their
// counts are kept by calloc.
#include <cstdlib>
#include <new>

static char pool[1 << 20];
static std::size_t used;
static long *counts;

static void count(int index)
{
	if (!counts)
		counts = (long *)calloc(100, sizeof *counts);
	counts[index]++;
}

void *operator new(std::size_t bytes)
{
	count(0);
	void *address = pool + used;
	used += (bytes + 15) & ~15ul;
	return address;
}

void operator delete(void *address) noexcept
{
	if (!address)
		return;
	if ((char *)address < pool || (char *)address >= pool + sizeof pool)
		abort(); // not of the pool
	count(1);
}

struct Number {
	long value;
};

Number *make_number()
{
	return new Number{7};
}

void release_number(Number *number)
{
	delete number;
}

long pool_news()
{
	return counts[0];
}

long pool_deletes()
{
	return counts[1];
}
