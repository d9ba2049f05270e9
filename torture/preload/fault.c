/*
 * Makes the n-th I/O call below a folder fail, or ends the process there.
 *
 *   TORTURE_ROOT    the folder whose files are watched
 *   TORTURE_CALLS   letters of the calls that count: w write, s sync, t truncate, o create a file, r rename, u unlink,
 *                   l link, m make a folder, p map a file for writing, R read, e open an existing file
 *   TORTURE_AT      the number of the call, from 0; without it, calls are only counted
 *   TORTURE_ERRNO   the error of this call and of all later ones
 *   TORTURE_ONCE    if set, only this call fails
 *   TORTURE_SIGNAL  instead of an error: the signal that the process gets before the call
 *   TORTURE_GROUP   if set, its whole process group gets the signal
 *   TORTURE_COUNT   the file to which the number of calls is appended at the end
 */
#include "intercept.h"
#include <signal.h>

static const char *counted = "wstorulm";
static long at = -1, calls;
static int error = EIO, once, signal_number, whole_group;

static void report_calls(void)
{
	char text[32];
	const char *path = getenv("TORTURE_COUNT");
	int fd = path ? (int)syscall(SYS_openat, AT_FDCWD, path, O_WRONLY | O_CREAT | O_APPEND, 0600) : -1;
	if (fd < 0)
		return;
	int length = snprintf(text, sizeof text, "%ld\n", calls);
	if (syscall(SYS_write, fd, text, length) < 0)
		abort();
	syscall(SYS_close, fd);
}

__attribute__((constructor)) static void read_environment(void)
{
	if (!watched_folder())
		return;
	/* Programs that the program starts, such as git, are none of its calls. */
	unsetenv("LD_PRELOAD");
	const char *value;
	if ((value = getenv("TORTURE_CALLS")))
		counted = value;
	if ((value = getenv("TORTURE_AT")))
		at = atol(value);
	if ((value = getenv("TORTURE_ERRNO")))
		error = atoi(value);
	if ((value = getenv("TORTURE_SIGNAL")))
		signal_number = atoi(value);
	once = getenv("TORTURE_ONCE") != NULL;
	whole_group = getenv("TORTURE_GROUP") != NULL;
	atexit(report_calls);
}

/* Counts a call; returns whether it fails, and sets errno then. */
static int fails(char call)
{
	if (!strchr(counted, call))
		return 0;
	long number = __atomic_fetch_add(&calls, 1, __ATOMIC_SEQ_CST);
	if (at < 0 || number < at || (number > at && (once || signal_number)))
		return 0;
	if (signal_number) {
		kill(whole_group ? 0 : getpid(), signal_number);
		/* No later call may run in a process that is being killed. */
		while (signal_number == SIGKILL)
			pause();
		return 0;
	}
	errno = error;
	return 1;
}

/* The calls that find a path change errno; a call that succeeds must not, as the program may read an earlier error. */
static int fails_on(int fd, char call)
{
	char path[PATH_MAX];
	struct stat status;
	int saved = errno;
	int watched = watched_file(fd, path, &status) != 0;
	errno = saved;
	return watched && fails(call);
}

static int fails_at(int dirfd, const char *path, char call)
{
	char whole[PATH_MAX];
	int saved = errno;
	int watched = watched_folder() && watched_path(dirfd, path, whole);
	errno = saved;
	return watched && fails(call);
}

/* Only a call that creates a file changes the disk, and only it can meet a full disk. */
static int fails_to_create(int dirfd, const char *path, int flags)
{
	int saved = errno;
	int creates = (flags & O_CREAT) && faccessat(dirfd, path, F_OK, AT_SYMLINK_NOFOLLOW);
	errno = saved;
	return creates && fails_at(dirfd, path, 'o');
}

static int fails_to_open(int dirfd, const char *path, int flags)
{
	return !(flags & (O_CREAT | __O_TMPFILE)) && fails_at(dirfd, path, 'e');
}

ssize_t pwrite64(int fd, const void *bytes, size_t size, off64_t offset)
{
	REAL("pwrite64", ssize_t, int, const void *, size_t, off64_t);
	return fails_on(fd, 'w') ? -1 : real(fd, bytes, size, offset);
}

ssize_t pwrite(int fd, const void *bytes, size_t size, off_t offset)
{
	return pwrite64(fd, bytes, size, offset);
}

ssize_t write(int fd, const void *bytes, size_t size)
{
	REAL("write", ssize_t, int, const void *, size_t);
	return fails_on(fd, 'w') ? -1 : real(fd, bytes, size);
}

ssize_t writev(int fd, const struct iovec *parts, int count)
{
	REAL("writev", ssize_t, int, const struct iovec *, int);
	return fails_on(fd, 'w') ? -1 : real(fd, parts, count);
}

ssize_t copy_file_range(int from, off64_t *from_offset, int to, off64_t *to_offset, size_t size, unsigned flags)
{
	REAL("copy_file_range", ssize_t, int, off64_t *, int, off64_t *, size_t, unsigned);
	return fails_on(to, 'w') ? -1 : real(from, from_offset, to, to_offset, size, flags);
}

ssize_t sendfile64(int to, int from, off64_t *offset, size_t size)
{
	REAL("sendfile64", ssize_t, int, int, off64_t *, size_t);
	return fails_on(to, 'w') ? -1 : real(to, from, offset, size);
}

ssize_t pread64(int fd, void *bytes, size_t size, off64_t offset)
{
	REAL("pread64", ssize_t, int, void *, size_t, off64_t);
	return fails_on(fd, 'R') ? -1 : real(fd, bytes, size, offset);
}

ssize_t read(int fd, void *bytes, size_t size)
{
	REAL("read", ssize_t, int, void *, size_t);
	return fails_on(fd, 'R') ? -1 : real(fd, bytes, size);
}

int ftruncate64(int fd, off64_t size)
{
	REAL("ftruncate64", int, int, off64_t);
	return fails_on(fd, 't') ? -1 : real(fd, size);
}

int ftruncate(int fd, off_t size)
{
	return ftruncate64(fd, size);
}

int fsync(int fd)
{
	REAL("fsync", int, int);
	return fails_on(fd, 's') ? -1 : real(fd);
}

int fdatasync(int fd)
{
	REAL("fdatasync", int, int);
	return fails_on(fd, 's') ? -1 : real(fd);
}

int openat64(int dirfd, const char *path, int flags, ...)
{
	READ_MODE(mode, flags);
	REAL("openat64", int, int, const char *, int, ...);
	if (fails_to_create(dirfd, path, flags) || fails_to_open(dirfd, path, flags))
		return -1;
	return real(dirfd, path, flags, mode);
}

int openat(int dirfd, const char *path, int flags, ...)
{
	READ_MODE(mode, flags);
	return openat64(dirfd, path, flags, mode);
}

int open64(const char *path, int flags, ...)
{
	READ_MODE(mode, flags);
	return openat64(AT_FDCWD, path, flags, mode);
}

int open(const char *path, int flags, ...)
{
	READ_MODE(mode, flags);
	return openat64(AT_FDCWD, path, flags, mode);
}

int rename(const char *from, const char *to)
{
	REAL("rename", int, const char *, const char *);
	return fails_at(AT_FDCWD, to, 'r') ? -1 : real(from, to);
}

int renameat2(int from_dir, const char *from, int to_dir, const char *to, unsigned flags)
{
	REAL("renameat2", int, int, const char *, int, const char *, unsigned);
	return fails_at(to_dir, to, 'r') ? -1 : real(from_dir, from, to_dir, to, flags);
}

int unlink(const char *path)
{
	REAL("unlink", int, const char *);
	return fails_at(AT_FDCWD, path, 'u') ? -1 : real(path);
}

int unlinkat(int dirfd, const char *path, int flags)
{
	REAL("unlinkat", int, int, const char *, int);
	return fails_at(dirfd, path, 'u') ? -1 : real(dirfd, path, flags);
}

int linkat(int from_dir, const char *from, int to_dir, const char *to, int flags)
{
	REAL("linkat", int, int, const char *, int, const char *, int);
	return fails_at(to_dir, to, 'l') ? -1 : real(from_dir, from, to_dir, to, flags);
}

int link(const char *from, const char *to)
{
	return linkat(AT_FDCWD, from, AT_FDCWD, to, 0);
}

int mkdir(const char *path, mode_t mode)
{
	REAL("mkdir", int, const char *, mode_t);
	return fails_at(AT_FDCWD, path, 'm') ? -1 : real(path, mode);
}

void *mmap64(void *address, size_t size, int protection, int flags, int fd, off64_t offset)
{
	REAL("mmap64", void *, void *, size_t, int, int, int, off64_t);
	if ((protection & PROT_WRITE) && (flags & MAP_SHARED) && fails_on(fd, 'p'))
		return MAP_FAILED;
	return real(address, size, protection, flags, fd, offset);
}
