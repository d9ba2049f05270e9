// Uses the operators of pool.cpp; fails if one of another kind is called. The compiler calls forms
// with sizes, which the pool has not.
#include <cstdio>
#include <new>

struct Number {
	long value;
};
extern Number *make_number();
extern void release_number(Number *);
extern long pool_news(), pool_deletes();

int main()
{
	delete (Number *)nullptr;
	delete make_number();
	Number *volatile number = new Number;
	release_number(number);
	number = new Number;
	delete number;
	number = new (std::nothrow) Number;
	delete number;
	long *volatile many = new long[20];
	delete[] many;
	many = new (std::nothrow) long[20];
	::operator delete[](many, std::nothrow);
	printf("%ld %ld\n", pool_news(), pool_deletes());
	return pool_news() != 6 || pool_deletes() != 6;
}
