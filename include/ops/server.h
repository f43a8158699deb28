/* SPDX-License-Identifier: ISC */
/* The running daemon: threads, listeners, signals, console, until it is told to end. Main thread. */
#ifndef PGWEIR_OPS_SERVER_H
#define PGWEIR_OPS_SERVER_H

#include "core/config.h"

#include <stdbool.h>

/* Serves until a signal ends it. Consumes *c. ready() is called once all listeners are open. Answers the exit status. */
int server_run(struct config **c, void (*ready)(void));

#endif
