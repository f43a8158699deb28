/* SPDX-License-Identifier: ISC */
/*
 * pgbench's log of every transaction. A line is
 *     client  number  latency_us  script  epoch_s  us  [schedule_lag_us]  [retries]
 * where the latency may be a word instead: skipped, failed, serialization, deadlock.
 */
#include "stats.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct log_reader {
	FILE *errors;
	uint64_t from_us, to_us;
	double *ms;
	size_t n;
	size_t cap;
	struct stats_latency *out;
};

static bool
add_latency(struct log_reader *in, double ms)
{
	if (in->n == in->cap) {
		size_t cap = in->cap == 0 ? 65536 : 2 * in->cap;
		double *grown = realloc(in->ms, cap * sizeof(*grown));
		if (grown == NULL)
			return false;
		in->ms = grown;
		in->cap = cap;
	}
	in->ms[in->n++] = ms;
	return true;
}

/* The next word as a number; false: it is something else, `*s` is at it. */
static bool
take_number(const char **s, uint64_t *out)
{
	char *end;

	while (**s == ' ')
		(*s)++;
	if (!isdigit((unsigned char)**s))
		return false;
	*out = strtoull(*s, &end, 10);
	*s = end;
	return *end == ' ' || *end == '\n';
}

static bool
take_word(const char **s, const char *word)
{
	size_t n = strlen(word);

	if (strncmp(*s, word, n) != 0 || (*s)[n] != ' ')
		return false;
	*s += n;
	return true;
}

enum outcome { EXECUTED, FAILED, SKIPPED, MALFORMED };

static enum outcome
parse_log_line(const char *line, uint64_t *latency_us, uint64_t *end_us)
{
	uint64_t client, number, script, seconds, us;
	enum outcome outcome = EXECUTED;

	if (!take_number(&line, &client) || !take_number(&line, &number))
		return MALFORMED;
	if (!take_number(&line, latency_us)) {
		if (take_word(&line, "skipped"))
			outcome = SKIPPED;
		else if (take_word(&line, "failed") || take_word(&line, "serialization") ||
		         take_word(&line, "deadlock"))
			outcome = FAILED;
		else
			return MALFORMED;
	}
	if (!take_number(&line, &script) || !take_number(&line, &seconds) || !take_number(&line, &us))
		return MALFORMED;
	*end_us = seconds * 1000000 + us;
	return outcome;
}

static bool
take_log_line(struct log_reader *in, const char *line, const char *path, unsigned number)
{
	uint64_t latency_us = 0, end_us = 0;
	enum outcome outcome = line[strlen(line) - 1] == '\n' ? parse_log_line(line, &latency_us, &end_us) : MALFORMED;

	if (outcome != MALFORMED && (end_us < in->from_us || end_us > in->to_us))
		return true;
	switch (outcome) {
	case EXECUTED:
		return add_latency(in, (double)latency_us / 1e3);
	case FAILED:
		in->out->failed++;
		break;
	case SKIPPED:
		in->out->skipped++;
		break;
	case MALFORMED:
		fprintf(in->errors, "%s:%u: malformed line skipped\n", path, number);
		break;
	}
	return true;
}

static bool
read_log_file(struct log_reader *in, const char *path)
{
	char *line = NULL;
	size_t cap = 0;
	unsigned number = 0;
	bool done = true;
	FILE *file = fopen(path, "re");

	if (file == NULL) {
		fprintf(in->errors, "%s: %s\n", path, strerror(errno));
		return false;
	}
	while (done && getline(&line, &cap, file) > 0)
		done = take_log_line(in, line, path, ++number);
	if (!done)
		fprintf(in->errors, "%s: out of memory\n", path);
	if (ferror(file)) {
		fprintf(in->errors, "%s: cannot be read\n", path);
		done = false;
	}
	free(line);
	fclose(file);
	return done;
}

/* Whether `name` is PREFIX.PID or PREFIX.PID.THREAD. */
static bool
is_log_of(const char *name, const char *prefix)
{
	size_t n = strlen(prefix), dots = 0;

	if (strncmp(name, prefix, n) != 0 || name[n] != '.' || !isdigit((unsigned char)name[n + 1]))
		return false;
	for (const char *p = name + n; *p != '\0'; p++) {
		if (*p == '.')
			dots++;
		else if (!isdigit((unsigned char)*p))
			return false;
	}
	return dots <= 2;
}

static bool
read_folder(struct log_reader *in, const char *folder, const char *base, size_t *n_files)
{
	char path[4096 + 256];
	bool done = true;
	DIR *d = opendir(folder);

	if (d == NULL) {
		fprintf(in->errors, "%s: %s\n", folder, strerror(errno));
		return false;
	}
	for (const struct dirent *e; done && (e = readdir(d)) != NULL;) {
		if (!is_log_of(e->d_name, base))
			continue;
		snprintf(path, sizeof(path), "%s/%s", folder, e->d_name);
		(*n_files)++;
		done = read_log_file(in, path);
	}
	closedir(d);
	return done;
}

bool
stats_read_log(const char *prefix, uint64_t from_us, uint64_t to_us, struct stats_latency *out, FILE *errors)
{
	struct log_reader in = {.errors = errors, .from_us = from_us, .to_us = to_us, .out = out};
	const char *slash = strrchr(prefix, '/');
	char folder[4096];
	size_t n_files = 0;
	bool done;

	*out = (struct stats_latency){0};
	snprintf(folder, sizeof(folder), "%.*s", slash == NULL ? 1 : (int)(slash - prefix) + 1,
	         slash == NULL ? "." : prefix);
	done = read_folder(&in, folder, slash == NULL ? prefix : slash + 1, &n_files);
	if (done && n_files == 0) {
		fprintf(errors, "%s.*: no log of pgbench\n", prefix);
		done = false;
	}
	stats_latency_from(in.ms, in.n, out);
	free(in.ms);
	return done;
}
