/* SPDX-License-Identifier: ISC */
/* results.json: an array, an object a line, valid after each run. It is for other programs; nothing here reads it. */
#include "result_fields.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define ARRAY_END "\n]\n"

static void
append_string(struct buf *b, const char *text)
{
	buf_append_u8(b, '"');
	for (const unsigned char *p = (const unsigned char *)text; *p != '\0'; p++) {
		if (*p == '"' || *p == '\\')
			buf_printf(b, "\\%c", *p);
		else if (*p < ' ')
			buf_printf(b, "\\u%04x", *p);
		else
			buf_append_u8(b, *p);
	}
	buf_append_u8(b, '"');
}

static void
append_value(struct buf *b, const struct result *r, const struct result_field *f)
{
	if (f->kind == RESULT_TEXT)
		append_string(b, result_text(r, f));
	else if (f->kind == RESULT_COUNT && result_count(r, f) != RESULT_UNKNOWN)
		buf_printf(b, "%lld", (long long)result_count(r, f));
	else if (f->kind == RESULT_REAL && isfinite(result_real(r, f)))
		buf_printf(b, "%.15g", result_real(r, f));
	else
		buf_append_str(b, "null");
}

static void
append_object(struct buf *b, const struct result *r)
{
	for (size_t i = 0; i < RESULT_N_FIELDS; i++) {
		buf_append_str(b, i == 0 ? "{" : ", ");
		append_string(b, result_fields[i].name);
		buf_append_str(b, ": ");
		append_value(b, r, &result_fields[i]);
	}
	buf_append_u8(b, '}');
}

/* Where the array's end begins, to be overwritten; -1: the file does not end as it should. */
static off_t
end_of_array(int fd)
{
	char tail[sizeof(ARRAY_END) - 1];
	off_t end = lseek(fd, 0, SEEK_END) - (off_t)sizeof(tail);

	if (end <= 0 || pread(fd, tail, sizeof(tail), end) != (ssize_t)sizeof(tail))
		return -1;
	return memcmp(tail, ARRAY_END, sizeof(tail)) == 0 ? end : -1;
}

/* The whole file from the runs of results.csv, the newest among them. */
static bool
append_all(struct buf *b, const char *dir, FILE *errors)
{
	struct result_set set = {0};
	bool done = result_read(dir, &set, errors);

	for (size_t i = 0; i < set.n; i++) {
		buf_append_str(b, i == 0 ? "[\n" : ",\n");
		append_object(b, &set.rows[i]);
	}
	result_set_fini(&set);
	return done;
}

bool
result_json_append(const char *dir, const struct result *r, FILE *errors)
{
	char path[4096];
	struct buf b;
	off_t end;
	bool done = true;

	snprintf(path, sizeof(path), "%s/results.json", dir);
	int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
	if (fd < 0) {
		fprintf(errors, "%s: %s\n", path, strerror(errno));
		return false;
	}
	buf_init(&b);
	end = end_of_array(fd);
	if (end >= 0) {
		buf_append_str(&b, ",\n");
		append_object(&b, r);
	} else {
		end = 0;
		done = append_all(&b, dir, errors);
	}
	buf_append_str(&b, ARRAY_END);
	if (done && !result_write_at(fd, &b, end)) {
		fprintf(errors, "%s: %s\n", path, strerror(errno));
		done = false;
	}
	buf_fini(&b);
	close(fd);
	return done;
}
