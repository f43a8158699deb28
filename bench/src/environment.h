/* SPDX-License-Identifier: ISC */
/* environment.txt: the machine, versions, settings, configurations and command lines of a folder of results. */
#ifndef PGWEIR_BENCH_ENVIRONMENT_H
#define PGWEIR_BENCH_ENVIRONMENT_H

#include "stage.h"

#include <stdbool.h>

/* Before the first run; of a run that is resumed, only when and how busy the machine was. */
bool environment_note(const struct stage *s, const struct plan *plan, int argc, char **argv, bool resumed,
                      struct why *why);
/* The configuration that a system was started with. */
bool environment_note_config(const char *out, const struct system_spec *spec);

#endif
