/* SPDX-License-Identifier: ISC */
/* Reading the auth file. */
#include "auth/users.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define FILE_MAX (64 * 1024 * 1024) /* bytes: a million users; more is a wrong file */

/* What is left of one line. */
struct line {
	const char *at;
	const char *end;
};

static bool
next_is(const struct line *line, char c)
{
	return line->at < line->end && *line->at == c;
}

static void
skip_blanks(struct line *line)
{
	while (line->at < line->end && (*line->at == ' ' || (*line->at >= '\t' && *line->at <= '\r')))
		line->at++;
}

/* The quoted string that starts here, with "" for a quote inside, into out[0..max]. Answers NULL or what is wrong. */
static const char *
take_quoted(struct line *line, char *out, size_t max)
{
	size_t n = 0;
	for (line->at++; line->at < line->end; line->at++) {
		if (*line->at == '"') {
			line->at++;
			if (!next_is(line, '"')) {
				out[n] = 0;
				return NULL;
			}
		}
		if (*line->at == 0)
			return "a zero byte in a string";
		if (n == max)
			return "too long: a user name has at most 127 bytes, a secret 2047";
		out[n++] = *line->at;
	}
	return "the closing double quote is missing";
}

/* Answers NULL or what is wrong. */
static const char *
load_line(struct users *u, struct line line, enum status *status)
{
	char name[USERS_NAME_MAX + 1], secret[USERS_SECRET_MAX + 1];
	*status = STATUS_BAD;
	const char *wrong = "a line starts with a user name in double quotes, or with a semicolon";
	if (next_is(&line, '"'))
		wrong = take_quoted(&line, name, USERS_NAME_MAX);
	if (wrong == NULL) {
		while (line.at < line.end && *line.at != '"')
			line.at++;
		wrong = next_is(&line, '"') ? take_quoted(&line, secret, USERS_SECRET_MAX)
		                            : "behind the user name a secret in double quotes is missing";
	}
	if (wrong == NULL) {
		*status = users_add(u, name, secret);
		wrong = *status == STATUS_OK ? NULL : "out of memory";
	}
	secret_wipe_bytes(secret, sizeof(secret));
	return wrong;
}

enum status
users_load_text(struct users *u, const char *text, size_t n, const char *path, char *why, size_t why_cap)
{
	const char *end = text + n;
	for (unsigned number = 1; text < end; number++) {
		const char *newline = memchr(text, '\n', (size_t)(end - text));
		struct line line = {text, newline == NULL ? end : newline};
		text = newline == NULL ? end : newline + 1;
		skip_blanks(&line);
		if (line.at == line.end || *line.at == ';')
			continue;
		enum status status;
		const char *wrong = load_line(u, line, &status);
		if (wrong != NULL) {
			snprintf(why, why_cap, "%s:%u: %s", path, number, wrong);
			return status;
		}
	}
	return STATUS_OK;
}

/* Not realloc: it would leave the old bytes behind. */
static bool
grow(char **text, size_t n, size_t *cap)
{
	if (*cap >= FILE_MAX) {
		errno = EFBIG;
		return false;
	}
	char *bigger = malloc(*cap * 2);
	if (bigger == NULL)
		return false;
	memcpy(bigger, *text, n);
	secret_wipe_bytes(*text, n);
	free(*text);
	*text = bigger;
	*cap *= 2;
	return true;
}

/* All of a file on the heap, to be wiped by the caller; NULL with errno. */
static char *
read_whole(int fd, size_t *n)
{
	struct stat st;
	if (fstat(fd, &st) != 0)
		return NULL;
	/* one byte more than its size, to see the end without growing; a pipe has no size */
	size_t cap = st.st_size > 0 && st.st_size < FILE_MAX ? (size_t)st.st_size + 1 : 4096;
	char *text = malloc(cap);
	*n = 0;
	while (text != NULL && (*n < cap || grow(&text, *n, &cap))) {
		ssize_t got = read(fd, text + *n, cap - *n);
		if (got == 0)
			return text;
		if (got > 0)
			*n += (size_t)got;
		else if (errno != EINTR)
			break;
	}
	int saved = errno;
	if (text != NULL)
		secret_wipe_bytes(text, *n);
	free(text);
	errno = saved;
	return NULL;
}

enum status
users_load_file(struct users *u, const char *path, char *why, size_t why_cap)
{
	size_t n;
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	char *text = fd < 0 ? NULL : read_whole(fd, &n);
	int saved = errno;
	if (fd >= 0)
		close(fd);
	if (text == NULL) {
		errno = saved;
		snprintf(why, why_cap, "%s: %s", path, strerror(errno));
		return STATUS_CLOSED;
	}
	enum status status = users_load_text(u, text, n, path, why, why_cap);
	secret_wipe_bytes(text, n);
	free(text);
	return status;
}
