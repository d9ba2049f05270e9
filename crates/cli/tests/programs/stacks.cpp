// Functions whose memory a test finds by their call stacks.

#include <stdlib.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

namespace app {

static void *kept[2000];
static void *grown;

void *keep(size_t size) { return malloc(size); }

void use(size_t size) { free(malloc(size)); }

// 2 MB that stay.
void build() {
	for (void *&place : kept)
		place = keep(1000);
}

// 4 MB that are released at once.
void churn() {
	for (int i = 0; i < 40000; i++)
		use(100);
}

// 1 MB in the end.
void grow() {
	for (int i = 1; i <= 1000; i++)
		grown = realloc(grown, i * 1000);
}

} // namespace app

int main(int count, char **) {
	if (count > 1 && fork() == 0) {
		app::churn();
		_exit(0);
	}
	if (count > 1)
		return wait(nullptr) < 0;
	app::grow();
	std::thread(app::churn).join();
	app::build();
}
