/* SPDX-License-Identifier: ISC */
/*
 * The record of one run, and the files of a folder of results. One thread.
 *
 *   results.csv       a header and a line for each run, appended as it ends: the record
 *   results.json      the same as an array of objects, for other programs
 *   environment.txt   "name: value" lines, in the order they are to be shown; a line that begins with a tab goes on
 *                     with the value (configurations, command lines)
 *
 * A run that was interrupted leaves at worst half a last line in results.csv: it is skipped with a warning when the file
 * is read, and cut off before the next one is appended. An empty field is a figure that was not measured.
 */
#ifndef PGWEIR_BENCH_RESULT_H
#define PGWEIR_BENCH_RESULT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#define RESULT_UNKNOWN (-1) /* of a COUNT */

struct result {
#define TEXT(name, size, meaning) char name[size];
#define COUNT(name, meaning) int64_t name;
#define REAL(name, meaning) double name;
#include "result.def"
#undef TEXT
#undef COUNT
#undef REAL
};

/* Runs in the order of the file. All zero is an empty set. */
struct result_set {
	struct result *rows;
	size_t n;
	size_t cap;
};

/* One line of environment.txt with what it goes on with, without the tabs. */
struct result_note {
	char *name;
	char *value;
};

struct result_notes {
	struct result_note *notes;
	size_t n;
	size_t cap;
};

/* Texts empty, status "ok", discarded 0, everything else unknown. */
void result_init(struct result *r);
/* The status with its reason: result_set_status(r, "failed", "pgbench: %s", ...). A line break becomes a blank, a long
   reason is cut. */
void result_set_status(struct result *r, const char *status, const char *reason, ...)
	__attribute__((format(printf, 3, 4)));
/* Whether its figures count: status ok and not discarded. */
bool result_counts(const struct result *r);
/* Whether both are runs of one cell, of one system. */
bool result_same_cell(const struct result *a, const struct result *b);
/* As result_same_cell(), of whichever systems. */
bool result_same_setup(const struct result *a, const struct result *b);

/* CPU seconds (user and system) per transaction of "pooler", "server", "pgbench" in microseconds; NAN: unknown. */
double result_pooler_us(const struct result *r);
double result_server_us(const struct result *r);
double result_pgbench_us(const struct result *r);

/*
 * Appends to both files of the folder, which exists; creates the files. Each is one write, so that an interruption leaves
 * whole lines. False: why is on `errors` (no space, not writable, columns of another version).
 */
bool result_append(const char *dir, const struct result *r, FILE *errors) __attribute__((warn_unused_result));
/*
 * Adds the runs of DIR/results.csv to the set. Columns are found by their names; one that is missing is unknown, one that
 * nobody knows is an error that names it. A line with too few fields or a malformed number is skipped, with a warning that
 * names file:line. False: not readable or not ours; why is on `errors`.
 */
bool result_read(const char *dir, struct result_set *set, FILE *errors) __attribute__((warn_unused_result));
bool result_set_add(struct result_set *set, const struct result *r)
	__attribute__((warn_unused_result)); /* false: no memory */
void result_set_fini(struct result_set *set);

/* Appends to DIR/environment.txt; the value may have several lines. */
bool result_note_append(const char *dir, const char *name, const char *value, FILE *errors)
	__attribute__((warn_unused_result));
/* No file: no notes, true. */
bool result_notes_read(const char *dir, struct result_notes *out, FILE *errors) __attribute__((warn_unused_result));
void result_notes_fini(struct result_notes *notes);

#endif
