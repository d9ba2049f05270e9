// Fails unless each operator calls the new-handler as often as it is set: three times.
#include <cstdlib>
#include <new>

static int calls;

static void handle()
{
	if (++calls % 3 == 0)
		std::set_new_handler(nullptr);
}

struct alignas(64) Wide {
	char bytes[64];
};

int main()
{
	volatile std::size_t huge = std::size_t(1) << 56;
	std::set_new_handler(handle);
	if (new (std::nothrow) char[huge])
		return 1;
	std::set_new_handler(handle);
	if (new (std::nothrow) Wide[huge / 64])
		return 2;
	std::set_new_handler(handle);
	if (::operator new(huge, std::nothrow))
		return 3;
	std::set_new_handler(handle);
	try {
		new char[huge];
		return 4;
	} catch (std::bad_alloc &) {
	}
	return calls == 12 ? 0 : 5;
}
