// A library of C++ for a program of C: its function NAME asks for more memory than there is, and
// counts the exceptions.
#include <new>

extern "C" int NAME(unsigned long bytes)
{
	int exceptions = 0;
	for (int round = 0; round < 10; round++) {
		try {
			delete[] new char[bytes];
		} catch (const std::bad_alloc &) {
			exceptions++;
		}
		try {
			::operator delete(::operator new(bytes, std::align_val_t(64)), std::align_val_t(64));
		} catch (const std::bad_alloc &) {
			exceptions++;
		}
	}
	return exceptions;
}
