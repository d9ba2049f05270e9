/*
 * Functions that the preloaded libraries share: the paths below the watched folder, and the calls of the C
 * library that lie beneath an intercepted one.
 *
 * Apart, because the recorder and the fault injector intercept the same calls and must agree on which files
 * they watch.
 */
#ifndef TORTURE_INTERCEPT_H
#define TORTURE_INTERCEPT_H

#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <unistd.h>

/* Declares `real`, the next definition of the function in which it stands. */
#define REAL(name, type, ...)                                  \
	static type (*real)(__VA_ARGS__);                      \
	if (!real)                                             \
		real = (type(*)(__VA_ARGS__))dlsym(RTLD_NEXT, name)

/* The mode argument of open exists only if the call may create a file. */
#define READ_MODE(mode, flags)                                 \
	mode_t mode = 0;                                       \
	if ((flags) & (O_CREAT | __O_TMPFILE)) {               \
		va_list rest;                                  \
		va_start(rest, flags);                         \
		mode = (mode_t)va_arg(rest, int);              \
		va_end(rest);                                  \
	}

/* Returns the folder whose files are watched, without a slash at its end, or NULL if none is. */
static const char *watched_folder(void)
{
	static const char *folder;
	if (!folder)
		folder = getenv("TORTURE_ROOT");
	return folder;
}

static int is_watched(const char *path)
{
	const char *folder = watched_folder();
	size_t length = folder ? strlen(folder) : 0;
	return length && !strncmp(path, folder, length) && (path[length] == '/' || !path[length]);
}

/*
 * Writes the absolute path that `path` means for `dirfd` to `out`, which has PATH_MAX bytes, with the links in
 * its folders resolved. Returns whether the path is watched.
 */
static int watched_path(int dirfd, const char *path, char *out)
{
	char folder[PATH_MAX], whole[PATH_MAX + NAME_MAX + 2], name[NAME_MAX + 1];
	if (path[0] == '/') {
		snprintf(whole, sizeof whole, "%s", path);
	} else if (dirfd == AT_FDCWD) {
		if (!getcwd(folder, sizeof folder))
			return 0;
		snprintf(whole, sizeof whole, "%s/%s", folder, path);
	} else {
		char link[64];
		snprintf(link, sizeof link, "/proc/self/fd/%d", dirfd);
		ssize_t length = readlink(link, folder, sizeof folder - 1);
		if (length < 0)
			return 0;
		folder[length] = 0;
		snprintf(whole, sizeof whole, "%s/%s", folder, path);
	}
	char *slash = strrchr(whole, '/');
	if (!slash || strlen(slash + 1) > NAME_MAX)
		return 0;
	strcpy(name, slash + 1);
	*slash = 0;
	if (!realpath(*whole ? whole : "/", folder))
		return 0;
	if (snprintf(out, PATH_MAX, "%s/%s", strcmp(folder, "/") ? folder : "", name) >= PATH_MAX)
		return 0;
	return is_watched(out);
}

/*
 * Returns the type of the watched file behind a descriptor (S_IFREG or S_IFDIR), or 0 if it is not watched.
 * `out` gets its path, `status` its status.
 */
static mode_t watched_file(int fd, char *out, struct stat *status)
{
	char link[64];
	if (fd < 0 || !watched_folder())
		return 0;
	snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
	ssize_t length = readlink(link, out, PATH_MAX - 1);
	if (length < 0)
		return 0;
	out[length] = 0;
	if (!is_watched(out) || fstat(fd, status))
		return 0;
	mode_t type = status->st_mode & S_IFMT;
	return type == S_IFREG || type == S_IFDIR ? type : 0;
}

#endif
