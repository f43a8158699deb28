/* SPDX-License-Identifier: ISC */
/* The tcp_* settings, applied to a socket of either side. What the system refuses stays at its default. */
#ifndef PGWEIR_CORE_SOCKET_OPTIONS_H
#define PGWEIR_CORE_SOCKET_OPTIONS_H

#include <stdint.h>

struct config;

void socket_set(int fd, int level, int name, int64_t value);
void socket_tune(const struct config *c, int fd); /* a TCP socket */

#endif
