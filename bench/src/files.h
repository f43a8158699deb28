/* SPDX-License-Identifier: ISC */
/* Files, folders, and where programs are. */
#ifndef PGWEIR_BENCH_FILES_H
#define PGWEIR_BENCH_FILES_H

#include "text.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* The whole file, up to 16 MiB from its end; "" if it cannot be read. Allocated. */
char *files_read(const char *path);
long files_size(const char *path);                    /* 0: there is none */
char *files_read_from(const char *path, long offset); /* what was written since; as files_read() */
bool files_write(const char *path, const char *text, struct why *why);
bool files_append(const char *path, const char *text, struct why *why);
bool files_copy(const char *from, const char *to, mode_t mode, struct why *why);
bool files_make_folder(const char *path, struct why *why); /* with its parents; one that exists is fine */
void files_remove_tree(const char *path);
bool files_exist(const char *path);
uint64_t files_free_bytes(const char *folder); /* 0: not known */

/*
 * A program by its name or path: a path as it is, a name in PATH, then in the folders that an ordinary user's PATH leaves
 * out. NULL: none that can be run. Allocated.
 */
char *files_find_program(const char *name);
/* The folder of this program itself. Allocated. */
char *files_own_folder(void);

#endif
