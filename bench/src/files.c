/* SPDX-License-Identifier: ISC */
#include "files.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#define READ_MAX (16l << 20)

char *
files_read(const char *path)
{
	FILE *f = fopen(path, "re");
	size_t n = 0, cap = 4096, got;
	char *s = text_alloc(cap);

	if (f == NULL)
		return s;
	/* What is no ordinary file, as in /proc, refuses to seek or tells no size: read from where we are. */
	if (fseek(f, 0, SEEK_END) == 0)
		(void)fseek(f, ftell(f) > READ_MAX ? -READ_MAX : -ftell(f), SEEK_END);
	else
		rewind(f);
	while ((got = fread(s + n, 1, cap - n - 1, f)) > 0) {
		n += got;
		if (cap - n < 2) {
			char *larger = text_alloc(cap * 2);

			memcpy(larger, s, n);
			free(s);
			s = larger;
			cap *= 2;
		}
	}
	fclose(f);
	s[n] = '\0';
	return s;
}

long
files_size(const char *path)
{
	struct stat st;

	return stat(path, &st) == 0 ? (long)st.st_size : 0;
}

char *
files_read_from(const char *path, long offset)
{
	char *text = files_read(path), *part;
	long size = files_size(path), len = (long)strlen(text);

	/* `text` is the end of the file, if that is very long. */
	part = text_dup(text + (size - offset < len ? len - (size - offset > 0 ? size - offset : 0) : 0));
	free(text);
	return part;
}

static bool
put(const char *path, const char *how, const char *text, struct why *why)
{
	FILE *f = fopen(path, how);
	bool ok = f != NULL && fputs(text, f) != EOF;

	if (f != NULL && fclose(f) != 0)
		ok = false;
	return ok ? true : why_set(why, "cannot write %s: %s", path, strerror(errno));
}

bool
files_write(const char *path, const char *text, struct why *why)
{
	return put(path, "we", text, why);
}

bool
files_append(const char *path, const char *text, struct why *why)
{
	return put(path, "ae", text, why);
}

bool
files_copy(const char *from, const char *to, mode_t mode, struct why *why)
{
	int in = open(from, O_RDONLY | O_CLOEXEC), out = -1;
	char bytes[65536];
	ssize_t n = -1;

	if (in >= 0)
		out = open(to, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, mode);
	if (out >= 0)
		while ((n = read(in, bytes, sizeof(bytes))) > 0)
			if (write(out, bytes, (size_t)n) != n) {
				n = -1;
				break;
			}
	if (n != 0)
		why_set(why, "cannot copy %s to %s: %s", from, to, strerror(errno));
	if (in >= 0)
		close(in);
	if (out >= 0 && close(out) != 0 && n == 0)
		return why_set(why, "cannot write %s: %s", to, strerror(errno));
	return n == 0;
}

bool
files_make_folder(const char *path, struct why *why)
{
	char *partial = text_dup(path);
	bool ok = true;

	for (char *p = partial + 1; ok && *p != '\0'; p++)
		if (*p == '/') {
			*p = '\0';
			ok = mkdir(partial, 0755) == 0 || errno == EEXIST;
			*p = '/';
		}
	ok = ok && (mkdir(partial, 0755) == 0 || errno == EEXIST);
	free(partial);
	return ok ? true : why_set(why, "cannot make the folder %s: %s", path, strerror(errno));
}

static int
remove_entry(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	(void)st, (void)type, (void)ftw;
	return remove(path) != 0 && errno != ENOENT;
}

void
files_remove_tree(const char *path)
{
	/* A server that was killed may write a little longer. */
	for (int i = 0; i < 50 && files_exist(path); i++) {
		nftw(path, remove_entry, 16, FTW_DEPTH | FTW_PHYS);
		if (files_exist(path))
			usleep(20000);
	}
}

bool
files_exist(const char *path)
{
	return access(path, F_OK) == 0;
}

uint64_t
files_free_bytes(const char *folder)
{
	struct statvfs st;

	return statvfs(folder, &st) == 0 ? (uint64_t)st.f_bavail * st.f_frsize : 0;
}

static bool
is_program(const char *path)
{
	struct stat st;

	return stat(path, &st) == 0 && S_ISREG(st.st_mode) && access(path, X_OK) == 0;
}

static char *
absolute(const char *path)
{
	char real[PATH_MAX];

	return is_program(path) && realpath(path, real) != NULL ? text_dup(real) : NULL;
}

char *
files_find_program(const char *name)
{
	const char *path = getenv("PATH");
	char *all, *found = NULL;
	struct text_list folders = {0};

	if (strchr(name, '/') != NULL)
		return absolute(name);
	all = text_fmt("%s:/usr/local/bin:/usr/bin:/usr/local/sbin:/usr/sbin:/sbin", path != NULL ? path : "");
	text_list_split(&folders, all, ':');
	for (size_t i = 0; found == NULL && i < folders.n; i++) {
		char *candidate = text_fmt("%s/%s", folders.items[i], name);

		found = absolute(candidate);
		free(candidate);
	}
	text_list_fini(&folders);
	free(all);
	return found;
}

char *
files_own_folder(void)
{
	char path[PATH_MAX];
	ssize_t n = readlink("/proc/self/exe", path, sizeof(path) - 1);
	char *slash;

	if (n <= 0)
		return text_dup(".");
	path[n] = '\0';
	slash = strrchr(path, '/');
	if (slash != NULL)
		*slash = '\0';
	return text_dup(path);
}
