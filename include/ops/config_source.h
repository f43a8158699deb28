/* SPDX-License-Identifier: ISC */
/*
 * The lines of a configuration file and of the files it includes, one after the
 * other, each with its place. Names in places and texts of lines stay valid until
 * config_sources_fini, which wipes the texts, since they may hold passwords.
 */
#ifndef PGWEIR_OPS_CONFIG_SOURCE_H
#define PGWEIR_OPS_CONFIG_SOURCE_H

#include "ops/config_messages.h"

#define CONFIG_LINE_MAX 131072 /* bytes; room for a password of 64 KiB with every byte quoted */

struct config_source;

struct config_sources {
	struct config_source *current; /* its parents are the files that include it */
	struct config_source *known;   /* all of them */
	int depth;
	bool files_allowed; /* else %include is refused */
	struct config_messages *messages;
};

void config_sources_init(struct config_sources *s, bool files_allowed, struct config_messages *m);
void config_sources_fini(struct config_sources *s);

/* The first source: a file, or bytes that are copied. False: reported. */
bool config_sources_open(struct config_sources *s, const char *path);
bool config_sources_use(struct config_sources *s, const char *name, const char *text, size_t n);

/*
 * The next line that says something, trimmed, the caller's to change: no comments, no empty lines, %include followed.
 * NULL: the end. Lines too long or with zero bytes in them are reported and left out.
 */
char *config_sources_next(struct config_sources *s);
struct config_place config_sources_place(const struct config_sources *s); /* of the line last taken */

#endif
