/* SPDX-License-Identifier: ISC */
/*
 * What is wrong with a configuration: errors and warnings in the order in which they
 * were found, all of them, each with its place. Filled by the loaders, printed by
 * `pgweir --check` and at start, logged by a reload. One thread.
 */
#ifndef PGWEIR_OPS_CONFIG_MESSAGES_H
#define PGWEIR_OPS_CONFIG_MESSAGES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

struct config_place {
	const char *file; /* NULL: nowhere in particular */
	int line;         /* 0: the file as a whole */
};

struct config_message {
	bool is_error; /* else a warning */
	char *text;    /* "file:line: ..." */
};

struct config_messages {
	struct config_message *list;
	size_t n, cap;
	size_t n_errors; /* counts also those there was no room for */
};

#define CONFIG_MESSAGES_MAX 200 /* more are counted, not kept */

void config_messages_init(struct config_messages *m);
void config_messages_fini(struct config_messages *m);
void config_error(struct config_messages *m, struct config_place where, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
void config_warning(struct config_messages *m, struct config_place where, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

void config_messages_print(const struct config_messages *m, FILE *to); /* a line each; "warning: " before warnings */
void config_messages_log(const struct config_messages *m);

/* For "did you mean": offer every candidate, then see whether one was near enough (best is NULL if none). */
struct config_nearest {
	const char *name;
	const char *best;
	int distance;
};
void config_nearest_init(struct config_nearest *x, const char *name);
void config_nearest_offer(struct config_nearest *x, const char *candidate);

#endif
