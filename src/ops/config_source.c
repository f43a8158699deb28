/* SPDX-License-Identifier: ISC */
#include "ops/config_source.h"

#include "base/secret.h"
#include "base/status.h"
#include "base/str.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define FILE_MAX (64u << 20) /* bytes */
#define INCLUDE_DEPTH_MAX 10

struct config_source {
	struct config_source *parent;     /* NULL: not included */
	struct config_source *next_known; /* all sources, to be freed at the end */
	char *name;
	char *text;
	size_t len, pos;
	int line; /* number of the line last taken */
};

void
config_sources_init(struct config_sources *s, bool files_allowed, struct config_messages *m)
{
	*s = (struct config_sources){.files_allowed = files_allowed, .messages = m};
}

void
config_sources_fini(struct config_sources *s)
{
	while (s->known != NULL) {
		struct config_source *x = s->known;
		s->known = x->next_known;
		secret_wipe_bytes(x->text, x->len);
		free(x->text);
		free(x->name);
		free(x);
	}
	s->current = NULL;
}

struct config_place
config_sources_place(const struct config_sources *s)
{
	return (struct config_place){s->current->name, s->current->line};
}

/* Consumes text, of len bytes and one to spare. */
static bool
push(struct config_sources *s, const char *name, char *text, size_t len)
{
	struct config_source *x = calloc(1, sizeof *x);

	if (x != NULL)
		x->name = str_dup(name);
	if (x == NULL || x->name == NULL) {
		config_error(s->messages, (struct config_place){name, 0}, "out of memory");
		free(x);
		free(text);
		return false;
	}
	x->text = text;
	x->len = len;
	if (len >= 3 && memcmp(text, "\xef\xbb\xbf", 3) == 0)
		x->pos = 3; /* a byte order mark */
	x->parent = s->current;
	s->current = x;
	x->next_known = s->known;
	s->known = x;
	s->depth++;
	return true;
}

/* One byte more than the text is allocated. STATUS_BAD: errno. */
static enum status
read_whole(FILE *f, char **text, size_t *len)
{
	size_t cap = 16384, n = 0;
	char *buf = malloc(cap + 1);

	while (buf != NULL) {
		char *bigger;
		n += fread(buf + n, 1, cap - n, f);
		if (n < cap)
			break;
		if (cap >= FILE_MAX) {
			free(buf);
			return STATUS_TOO_BIG;
		}
		cap *= 2;
		bigger = realloc(buf, cap + 1);
		if (bigger == NULL)
			free(buf);
		buf = bigger;
	}
	if (buf == NULL)
		return STATUS_NO_MEM;
	if (ferror(f)) {
		int why = errno;
		free(buf);
		errno = why;
		return STATUS_BAD;
	}
	*text = buf;
	*len = n;
	return STATUS_OK;
}

/* `where` is the place that names the file. */
static bool
open_file(struct config_sources *s, const char *path, struct config_place where)
{
	FILE *f = fopen(path, "re");
	char *text = NULL;
	size_t len = 0;
	enum status status = STATUS_BAD;
	int why = errno;

	if (f != NULL) {
		status = read_whole(f, &text, &len);
		why = errno;
		fclose(f);
	}
	if (status == STATUS_OK)
		return push(s, path, text, len);
	if (status == STATUS_TOO_BIG)
		config_error(s->messages, where, "\"%s\" is larger than %u MiB", path, FILE_MAX >> 20);
	else if (status == STATUS_NO_MEM)
		config_error(s->messages, where, "out of memory");
	else
		config_error(s->messages, where, "can't read \"%s\": %s", path, strerror(why));
	return false;
}

bool
config_sources_open(struct config_sources *s, const char *path)
{
	return open_file(s, path, (struct config_place){NULL, 0});
}

bool
config_sources_use(struct config_sources *s, const char *name, const char *text, size_t n)
{
	char *copy = malloc(n + 1);

	if (copy == NULL) {
		config_error(s->messages, (struct config_place){name, 0}, "out of memory");
		return false;
	}
	if (n > 0)
		memcpy(copy, text, n);
	return push(s, name, copy, n);
}

static void
include(struct config_sources *s, char *line)
{
	const char *directive = "%include";
	size_t n = strlen(directive);
	struct config_place where = config_sources_place(s);

	if (strncmp(line, directive, n) != 0 || (line[n] != ' ' && line[n] != '\t'))
		config_error(s->messages, where, "expected %%include and the name of a file");
	else if (!s->files_allowed)
		config_error(s->messages, where, "%%include is not possible here");
	else if (s->depth >= INCLUDE_DEPTH_MAX)
		config_error(s->messages, where, "includes are nested more than %d deep", INCLUDE_DEPTH_MAX);
	else
		(void)open_file(s, str_trim(line + n), where); /* reported; what follows is read all the same */
}

/* The next line of the current source, trimmed and terminated in place; NULL at its end, "" for a bad one. */
static char *
take_line(struct config_sources *s)
{
	struct config_source *x = s->current;
	char *line = x->text + x->pos, *end;
	size_t n;

	if (x->pos >= x->len)
		return NULL;
	x->line++;
	end = memchr(line, '\n', x->len - x->pos);
	n = end != NULL ? (size_t)(end - line) : x->len - x->pos;
	x->pos += n + (end != NULL ? 1 : 0);
	line[n] = '\0';
	if (n > CONFIG_LINE_MAX)
		config_error(s->messages, config_sources_place(s), "the line is longer than %d bytes", CONFIG_LINE_MAX);
	else if (strlen(line) != n)
		config_error(s->messages, config_sources_place(s), "the line has a zero byte in it");
	else
		return str_trim(line);
	return line + n;
}

char *
config_sources_next(struct config_sources *s)
{
	while (s->current != NULL) {
		char *line = take_line(s);
		if (line == NULL) {
			s->current = s->current->parent;
			s->depth--;
		} else if (line[0] == '%') {
			include(s, line);
		} else if (line[0] != '\0' && line[0] != ';' && line[0] != '#') {
			return line;
		}
	}
	return NULL;
}
