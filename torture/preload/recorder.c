/*
 * Records every change below a folder, in order and with its bytes, so that the state of the disk at each moment
 * can be built again (harness/disk.py reads the record).
 *
 *   TORTURE_ROOT    the folder whose files are watched
 *   TORTURE_RECORD  the file to which the record is appended
 *
 * An entry is a header, the path, the second path, and the bytes written. Syncs are recorded and not done: the
 * record says what was synced, and the real disk is not of interest. A shared map that is written (SQLite's -shm
 * file) is not recorded; its content is lost in a power cut anyway.
 */
#include "intercept.h"
#include <pthread.h>

/* Letters of the changes, as harness/disk.py knows them. */
enum change {
	CREATED = 'O', WRITTEN = 'W', TRUNCATED = 'T', SYNCED = 'S', FOLDER_SYNCED = 'F', RENAMED = 'R',
	UNLINKED = 'U', LINKED = 'K', FOLDER_MADE = 'M',
};

/* The format of the header must be that of harness/disk.py. */
struct header {
	uint32_t magic;
	uint8_t change;
	uint8_t unused[3];
	uint64_t inode, offset, size;
	uint32_t path_size, second_path_size;
} __attribute__((packed));

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int record = -1;

__attribute__((constructor)) static void open_record(void)
{
	const char *path = getenv("TORTURE_RECORD");
	if (!watched_folder() || !path)
		return;
	/* Programs that the program starts, such as git, are none of its changes. */
	unsetenv("LD_PRELOAD");
	int fd = (int)syscall(SYS_openat, AT_FDCWD, path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
	/* A high number, so that the program gets the numbers that it would get without the recorder. */
	record = fcntl(fd, F_DUPFD_CLOEXEC, 900);
	syscall(SYS_close, fd);
	if (record < 0)
		abort();
}

static void put(enum change change, uint64_t inode, uint64_t offset, const void *bytes, uint64_t size,
		const char *path, const char *second_path)
{
	struct header header = {0x52524f54, (uint8_t)change, {0}, inode, offset, size,
		path ? (uint32_t)strlen(path) : 0, second_path ? (uint32_t)strlen(second_path) : 0};
	struct iovec parts[] = {
		{&header, sizeof header},
		{(void *)path, header.path_size},
		{(void *)second_path, header.second_path_size},
		{(void *)bytes, bytes ? size : 0},
	};
	size_t whole = sizeof header + header.path_size + header.second_path_size + parts[3].iov_len;
	if (syscall(SYS_writev, record, parts, 4) != (long)whole)
		abort();
}

/* Returns whether the descriptor is a watched file, and its inode. */
static int is_file(int fd, uint64_t *inode, off64_t *size)
{
	char path[PATH_MAX];
	struct stat status;
	if (record < 0 || watched_file(fd, path, &status) != S_IFREG)
		return 0;
	*inode = status.st_ino;
	*size = status.st_size;
	return 1;
}

/* Runs a call and, if it succeeded, the statement that records it; no other thread records in between. */
#define RECORDED(type, call, statement)                        \
	do {                                                   \
		pthread_mutex_lock(&lock);                     \
		type result = (call);                          \
		int kept = errno;                              \
		if (result >= 0) {                             \
			statement;                             \
		}                                              \
		pthread_mutex_unlock(&lock);                   \
		errno = kept;                                  \
		return result;                                 \
	} while (0)

ssize_t pwrite64(int fd, const void *bytes, size_t size, off64_t offset)
{
	REAL("pwrite64", ssize_t, int, const void *, size_t, off64_t);
	uint64_t inode;
	off64_t end;
	if (!is_file(fd, &inode, &end))
		return real(fd, bytes, size, offset);
	RECORDED(ssize_t, real(fd, bytes, size, offset), put(WRITTEN, inode, offset, bytes, result, 0, 0));
}

ssize_t pwrite(int fd, const void *bytes, size_t size, off_t offset)
{
	return pwrite64(fd, bytes, size, offset);
}

ssize_t write(int fd, const void *bytes, size_t size)
{
	REAL("write", ssize_t, int, const void *, size_t);
	uint64_t inode;
	off64_t end;
	if (!is_file(fd, &inode, &end))
		return real(fd, bytes, size);
	off64_t offset = fcntl(fd, F_GETFL) & O_APPEND ? end : lseek64(fd, 0, SEEK_CUR);
	RECORDED(ssize_t, real(fd, bytes, size), put(WRITTEN, inode, offset, bytes, result, 0, 0));
}

ssize_t writev(int fd, const struct iovec *parts, int count)
{
	REAL("writev", ssize_t, int, const struct iovec *, int);
	uint64_t inode;
	off64_t end;
	if (!is_file(fd, &inode, &end))
		return real(fd, parts, count);
	/* Part by part, as the kernel may also do. */
	ssize_t sum = 0;
	for (int i = 0; i < count; i++) {
		if (!parts[i].iov_len)
			continue;
		ssize_t size = write(fd, parts[i].iov_base, parts[i].iov_len);
		if (size < 0)
			return sum ? sum : size;
		sum += size;
		if ((size_t)size < parts[i].iov_len)
			break;
	}
	return sum;
}

/* A copy inside the kernel has no bytes to record; the callers then read and write. */
ssize_t copy_file_range(int from, off64_t *from_offset, int to, off64_t *to_offset, size_t size, unsigned flags)
{
	REAL("copy_file_range", ssize_t, int, off64_t *, int, off64_t *, size_t, unsigned);
	uint64_t inode;
	off64_t end;
	if (!is_file(to, &inode, &end))
		return real(from, from_offset, to, to_offset, size, flags);
	errno = EXDEV;
	return -1;
}

ssize_t sendfile64(int to, int from, off64_t *offset, size_t size)
{
	REAL("sendfile64", ssize_t, int, int, off64_t *, size_t);
	uint64_t inode;
	off64_t end;
	if (!is_file(to, &inode, &end))
		return real(to, from, offset, size);
	errno = EINVAL;
	return -1;
}

int ftruncate64(int fd, off64_t size)
{
	REAL("ftruncate64", int, int, off64_t);
	uint64_t inode;
	off64_t end;
	if (!is_file(fd, &inode, &end))
		return real(fd, size);
	RECORDED(int, real(fd, size), put(TRUNCATED, inode, size, 0, 0, 0, 0));
}

int ftruncate(int fd, off_t size)
{
	return ftruncate64(fd, size);
}

/* Records a sync; returns 0 if the descriptor is not watched. */
static int record_sync(int fd)
{
	char path[PATH_MAX];
	struct stat status;
	mode_t type = record < 0 ? 0 : watched_file(fd, path, &status);
	if (!type)
		return 0;
	pthread_mutex_lock(&lock);
	put(type == S_IFDIR ? FOLDER_SYNCED : SYNCED, status.st_ino, 0, 0, 0, path, 0);
	pthread_mutex_unlock(&lock);
	return 1;
}

int fsync(int fd)
{
	REAL("fsync", int, int);
	return record_sync(fd) ? 0 : real(fd);
}

int fdatasync(int fd)
{
	REAL("fdatasync", int, int);
	return record_sync(fd) ? 0 : real(fd);
}

/* Records that an opened file was created or emptied. */
static void record_open(int fd, int flags, int existed, const char *path)
{
	struct stat status;
	if (fstat(fd, &status))
		abort();
	if (!existed && (flags & O_CREAT))
		put(CREATED, status.st_ino, 0, 0, 0, path, 0);
	else if (existed && (flags & O_TRUNC) && S_ISREG(status.st_mode))
		put(TRUNCATED, status.st_ino, 0, 0, 0, 0, 0);
}

int openat64(int dirfd, const char *path, int flags, ...)
{
	READ_MODE(mode, flags);
	REAL("openat64", int, int, const char *, int, ...);
	char whole[PATH_MAX];
	struct stat status;
	if (record < 0 || !watched_path(dirfd, path, whole))
		return real(dirfd, path, flags, mode);
	int existed = !stat(whole, &status);
	RECORDED(int, real(dirfd, path, flags, mode), record_open(result, flags, existed, whole));
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

int renameat2(int from_dir, const char *from, int to_dir, const char *to, unsigned flags)
{
	REAL("renameat2", int, int, const char *, int, const char *, unsigned);
	char source[PATH_MAX], target[PATH_MAX];
	if (record < 0 || !(watched_path(from_dir, from, source) | watched_path(to_dir, to, target)))
		return real(from_dir, from, to_dir, to, flags);
	RECORDED(int, real(from_dir, from, to_dir, to, flags), put(RENAMED, 0, 0, 0, 0, source, target));
}

int rename(const char *from, const char *to)
{
	return renameat2(AT_FDCWD, from, AT_FDCWD, to, 0);
}

int unlinkat(int dirfd, const char *path, int flags)
{
	REAL("unlinkat", int, int, const char *, int);
	char whole[PATH_MAX];
	if (record < 0 || !watched_path(dirfd, path, whole))
		return real(dirfd, path, flags);
	RECORDED(int, real(dirfd, path, flags), put(UNLINKED, 0, 0, 0, 0, whole, 0));
}

int unlink(const char *path)
{
	return unlinkat(AT_FDCWD, path, 0);
}

int linkat(int from_dir, const char *from, int to_dir, const char *to, int flags)
{
	REAL("linkat", int, int, const char *, int, const char *, int);
	char source[PATH_MAX], target[PATH_MAX];
	if (record < 0 || !(watched_path(from_dir, from, source) | watched_path(to_dir, to, target)))
		return real(from_dir, from, to_dir, to, flags);
	RECORDED(int, real(from_dir, from, to_dir, to, flags), put(LINKED, 0, 0, 0, 0, source, target));
}

int link(const char *from, const char *to)
{
	return linkat(AT_FDCWD, from, AT_FDCWD, to, 0);
}

int mkdir(const char *path, mode_t mode)
{
	REAL("mkdir", int, const char *, mode_t);
	char whole[PATH_MAX];
	struct stat status;
	if (record < 0 || !watched_path(AT_FDCWD, path, whole))
		return real(path, mode);
	RECORDED(int, real(path, mode),
		put(FOLDER_MADE, stat(whole, &status) ? 0 : status.st_ino, 0, 0, 0, whole, 0));
}
