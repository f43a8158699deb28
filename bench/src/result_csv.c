/* SPDX-License-Identifier: ISC */
/* results.csv: a line is a run, whatever its texts hold, so that a torn file loses its last line only. */
#include "result.h"

#include "result_fields.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/str.h"

#define CSV_NAME "results.csv"

/* --- writing --- */

/* Quoted if it must be. Control characters, line breaks among them, become blanks: a line stays a line. */
static void
append_text(struct buf *b, const char *text)
{
	bool quote = strpbrk(text, ",\"") != NULL;

	if (quote)
		buf_append_u8(b, '"');
	for (const char *p = text; *p != '\0'; p++) {
		if (*p == '"')
			buf_append_u8(b, '"');
		buf_append_u8(b, (uint8_t)((unsigned char)*p < ' ' ? ' ' : *p));
	}
	if (quote)
		buf_append_u8(b, '"');
}

static void
append_field(struct buf *b, const struct result *r, const struct result_field *f)
{
	switch (f->kind) {
	case RESULT_TEXT:
		append_text(b, result_text(r, f));
		break;
	case RESULT_COUNT:
		if (result_count(r, f) != RESULT_UNKNOWN)
			buf_printf(b, "%lld", (long long)result_count(r, f));
		break;
	case RESULT_REAL:
		if (isfinite(result_real(r, f)))
			buf_printf(b, "%.15g", result_real(r, f));
		break;
	}
}

static void
append_header(struct buf *b)
{
	for (size_t i = 0; i < RESULT_N_FIELDS; i++)
		buf_printf(b, "%s%s", i == 0 ? "" : ",", result_fields[i].name);
	buf_append_u8(b, '\n');
}

static void
append_line(struct buf *b, const struct result *r)
{
	for (size_t i = 0; i < RESULT_N_FIELDS; i++) {
		if (i > 0)
			buf_append_u8(b, ',');
		append_field(b, r, &result_fields[i]);
	}
	buf_append_u8(b, '\n');
}

bool
result_write_at(int fd, const struct buf *b, off_t offset)
{
	if (b->failed) {
		errno = ENOMEM;
		return false;
	}
	for (size_t done = 0; done < b->len;) {
		ssize_t n = pwrite(fd, buf_head(b) + done, b->len - done, offset + (off_t)done);
		if (n > 0) {
			done += (size_t)n;
		} else if (n == 0 || errno != EINTR) {
			int saved = n == 0 ? ENOSPC : errno;
			(void)!ftruncate(fd, offset); /* half a line is worse than none */
			errno = saved;
			return false;
		}
	}
	return ftruncate(fd, offset + (off_t)b->len) == 0;
}

/* Where the last whole line ends; -1: errno. */
static off_t
end_of_lines(int fd)
{
	char block[4096];
	off_t end = lseek(fd, 0, SEEK_END);

	while (end > 0) {
		size_t want = end < (off_t)sizeof(block) ? (size_t)end : sizeof(block);
		ssize_t n = pread(fd, block, want, end - (off_t)want);
		if (n != (ssize_t)want) {
			errno = n < 0 ? errno : EIO;
			return -1;
		}
		const char *newline = memrchr(block, '\n', want);
		if (newline != NULL)
			return end - (off_t)want + (newline - block) + 1;
		end -= (off_t)want;
	}
	return end;
}

/* Whether the file begins with `header`. */
static bool
has_header(int fd, const struct buf *header)
{
	char *start = malloc(header->len);
	bool same = start != NULL && pread(fd, start, header->len, 0) == (ssize_t)header->len &&
	            memcmp(start, buf_head(header), header->len) == 0;

	free(start);
	return same;
}

static bool
append_csv(int fd, const struct result *r, const char *path, FILE *errors)
{
	struct buf b;
	off_t end = end_of_lines(fd);
	bool done = false;

	buf_init(&b);
	append_header(&b);
	if (end > 0 && !b.failed && !has_header(fd, &b)) {
		fprintf(errors, "%s: its columns are not those of this version: choose another folder\n", path);
		buf_fini(&b);
		return false;
	}
	if (end > 0)
		buf_reset(&b);
	append_line(&b, r);
	done = end >= 0 && result_write_at(fd, &b, end);
	if (!done)
		fprintf(errors, "%s: %s\n", path, strerror(errno));
	buf_fini(&b);
	return done;
}

bool
result_append(const char *dir, const struct result *r, FILE *errors)
{
	char path[4096];
	int fd;
	bool done;

	snprintf(path, sizeof(path), "%s/" CSV_NAME, dir);
	fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
	if (fd < 0) {
		fprintf(errors, "%s: %s\n", path, strerror(errno));
		return false;
	}
	done = append_csv(fd, r, path, errors);
	close(fd);
	return done && result_json_append(dir, r, errors);
}

/* --- reading --- */

struct reader {
	const char *path;
	FILE *file;
	FILE *errors;
	char *line; /* of getline() */
	size_t cap;
	unsigned number; /* of the line, from 1 */
	const struct result_field *columns[RESULT_N_FIELDS];
	size_t n_columns;
};

/* Takes the next field off *rest, unquoted in place; NULL: there is none. *rest becomes NULL after the last. */
static char *
next_field(char **rest)
{
	char *start = *rest, *in = start, *out = start;
	bool quoted;

	if (start == NULL)
		return NULL;
	quoted = *in == '"';
	if (quoted)
		in++;
	while (*in != '\0' && (quoted || *in != ',')) {
		if (quoted && *in == '"') {
			in++;
			if (*in != '"') {
				quoted = false;
				continue;
			}
		}
		*out++ = *in++;
	}
	*rest = *in == ',' ? in + 1 : NULL;
	*out = '\0';
	return start;
}

static bool
set_real(struct result *r, const struct result_field *f, const char *text)
{
	char *end;
	double value = strtod(text, &end);

	if (*end != '\0' || !isfinite(value))
		return false;
	*(double *)((char *)r + f->offset) = value;
	return true;
}

/* Others may have edited the file: what would move the cursor of a terminal becomes a blank. Returns `text`. */
static char *
tame(char *text)
{
	for (char *p = text; *p != '\0'; p++) {
		if ((unsigned char)*p < ' ' || *p == 0x7f)
			*p = ' ';
	}
	return text;
}

static bool
set_text(struct result *r, const struct result_field *f, const char *text)
{
	char *to = (char *)r + f->offset;

	if (!str_copy(to, f->size, text))
		return false;
	tame(to);
	return true;
}

static bool
set_field(struct result *r, const struct result_field *f, const char *text)
{
	switch (f->kind) {
	case RESULT_TEXT:
		return set_text(r, f, text);
	case RESULT_COUNT:
		return *text == '\0' || str_parse_int(text, 0, INT64_MAX, (int64_t *)((char *)r + f->offset));
	case RESULT_REAL:
		return *text == '\0' || set_real(r, f, text);
	}
	return false;
}

/* The next line without its end. A last line without a newline was torn: a number in it may be half a number. */
static bool
next_line(struct reader *in)
{
	ssize_t n = getline(&in->line, &in->cap, in->file);

	if (n <= 0)
		return false;
	in->number++;
	if (in->line[n - 1] != '\n') {
		fprintf(in->errors, "%s:%u: incomplete last line skipped\n", in->path, in->number);
		return false;
	}
	in->line[--n] = '\0';
	if (n > 0 && in->line[n - 1] == '\r')
		in->line[n - 1] = '\0';
	return true;
}

static bool
read_header(struct reader *in)
{
	char *rest, *name;

	if (!next_line(in))
		return true; /* no runs yet, or read_lines() says what is wrong */
	rest = in->line;
	while ((name = next_field(&rest)) != NULL) {
		const struct result_field *f = result_field_find(name);
		if (f == NULL) {
			fprintf(in->errors, "%s:1: unknown column \"%.64s\"\n", in->path, tame(name));
			return false;
		}
		for (size_t i = 0; i < in->n_columns; i++) {
			if (in->columns[i] == f) {
				fprintf(in->errors, "%s:1: column \"%s\" comes twice\n", in->path, name);
				return false;
			}
		}
		in->columns[in->n_columns++] = f;
	}
	return true;
}

static bool
parse_line(struct reader *in, struct result *r)
{
	char *rest = in->line, *text;
	size_t n = 0;

	result_init(r);
	while ((text = next_field(&rest)) != NULL) {
		if (n == in->n_columns) {
			fprintf(in->errors, "%s:%u: skipped: more than %zu fields\n", in->path, in->number, n);
			return false;
		}
		if (!set_field(r, in->columns[n], text)) {
			fprintf(in->errors, "%s:%u: skipped: %s \"%.64s\"\n", in->path, in->number,
			        in->columns[n]->name, tame(text));
			return false;
		}
		n++;
	}
	if (n < in->n_columns) {
		fprintf(in->errors, "%s:%u: skipped: %zu fields instead of %zu\n", in->path, in->number, n,
		        in->n_columns);
		return false;
	}
	return true;
}

static bool
read_lines(struct reader *in, struct result_set *set)
{
	struct result r;

	if (!read_header(in))
		return false;
	while (next_line(in)) {
		if (parse_line(in, &r) && !result_set_add(set, &r)) {
			fprintf(in->errors, "%s: out of memory\n", in->path);
			return false;
		}
	}
	if (ferror(in->file))
		fprintf(in->errors, "%s: cannot be read: %s\n", in->path, strerror(errno));
	return !ferror(in->file);
}

bool
result_read(const char *dir, struct result_set *set, FILE *errors)
{
	char path[4096];
	struct reader in = {.path = path, .errors = errors};
	bool done;

	snprintf(path, sizeof(path), "%s/" CSV_NAME, dir);
	in.file = fopen(path, "re");
	if (in.file == NULL) {
		fprintf(errors, "%s: %s\n", path, strerror(errno));
		return false;
	}
	done = read_lines(&in, set);
	free(in.line);
	fclose(in.file);
	return done;
}
