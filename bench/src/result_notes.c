/* SPDX-License-Identifier: ISC */
/* environment.txt: what the runs were made with. */
#include "result.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/str.h"
#include "result_fields.h"

static void
notes_path(char *path, size_t size, const char *dir)
{
	snprintf(path, size, "%s/environment.txt", dir);
}

/* Line breaks in a value go on with a tab; one at its end is left out. */
static void
append_note(struct buf *b, const char *name, const char *value)
{
	size_t n = strlen(value);

	for (const char *p = name; *p != '\0'; p++)
		buf_append_u8(b, (uint8_t)((unsigned char)*p < ' ' ? ' ' : *p));
	buf_append_str(b, ":");
	while (n > 0 && value[n - 1] == '\n')
		n--;
	for (size_t i = 0; i < n; i++) {
		if (i == 0 && value[0] != '\n')
			buf_append_u8(b, ' ');
		buf_append_u8(b, (uint8_t)value[i]);
		if (value[i] == '\n')
			buf_append_u8(b, '\t');
	}
	buf_append_u8(b, '\n');
}

bool
result_note_append(const char *dir, const char *name, const char *value, FILE *errors)
{
	char path[4096], last = '\n';
	struct buf b;
	bool done = false;

	notes_path(path, sizeof(path), dir);
	int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
	if (fd >= 0) {
		off_t end = lseek(fd, 0, SEEK_END);
		buf_init(&b);
		if (end > 0 && pread(fd, &last, 1, end - 1) == 1 && last != '\n')
			buf_append_u8(&b, '\n');
		append_note(&b, name, value);
		done = end >= 0 && result_write_at(fd, &b, end);
		buf_fini(&b);
	}
	if (!done)
		fprintf(errors, "%s: %s\n", path, strerror(errno));
	if (fd >= 0)
		close(fd);
	return done;
}

static bool
add_note(struct result_notes *notes, const char *name, const char *value)
{
	struct result_note note = {str_dup(name), str_dup(value)};

	if (notes->n == notes->cap) {
		size_t cap = notes->cap == 0 ? 32 : 2 * notes->cap;
		struct result_note *grown = realloc(notes->notes, cap * sizeof(*grown));
		if (grown != NULL) {
			notes->notes = grown;
			notes->cap = cap;
		}
	}
	if (note.name == NULL || note.value == NULL || notes->n == notes->cap) {
		free(note.name);
		free(note.value);
		return false;
	}
	notes->notes[notes->n++] = note;
	return true;
}

static bool
continue_note(struct result_note *note, const char *line)
{
	size_t had = strlen(note->value), n = strlen(line);
	char *value = realloc(note->value, had + n + 2);

	if (value == NULL)
		return false;
	note->value = value;
	value[had] = '\n';
	memcpy(value + had + 1, line, n + 1);
	return true;
}

/* A name may hold a colon (pgweir:16/1), so it ends at one that a blank or the end of the line follows. */
static bool
take_line(struct result_notes *notes, char *line)
{
	char *colon;

	if (line[0] == '\t' && notes->n > 0)
		return continue_note(&notes->notes[notes->n - 1], line + 1);
	for (colon = strchr(line, ':'); colon != NULL; colon = strchr(colon + 1, ':')) {
		if (colon[1] == ' ' || colon[1] == '\0')
			break;
	}
	if (colon == NULL)
		return line[0] == '\0' || add_note(notes, "", line);
	*colon = '\0';
	return add_note(notes, line, colon[1] == ' ' ? colon + 2 : colon + 1);
}

bool
result_notes_read(const char *dir, struct result_notes *out, FILE *errors)
{
	char path[4096], *line = NULL;
	size_t cap = 0;
	ssize_t n;
	bool done = true;

	*out = (struct result_notes){0};
	notes_path(path, sizeof(path), dir);
	FILE *file = fopen(path, "re");
	if (file == NULL) {
		done = errno == ENOENT;
		if (!done)
			fprintf(errors, "%s: %s\n", path, strerror(errno));
		return done;
	}
	while (done && (n = getline(&line, &cap, file)) > 0) {
		if (line[n - 1] == '\n')
			line[n - 1] = '\0';
		done = take_line(out, line);
	}
	if (!done)
		fprintf(errors, "%s: out of memory\n", path);
	free(line);
	fclose(file);
	return done;
}

void
result_notes_fini(struct result_notes *notes)
{
	for (size_t i = 0; i < notes->n; i++) {
		free(notes->notes[i].name);
		free(notes->notes[i].value);
	}
	free(notes->notes);
	*notes = (struct result_notes){0};
}
