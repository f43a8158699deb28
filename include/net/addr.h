/* SPDX-License-Identifier: ISC */
/* Socket addresses: TCP (IPv4, IPv6) and Unix sockets, abstract ones written with a leading '@'. Pure values. */
#ifndef PGWEIR_NET_ADDR_H
#define PGWEIR_NET_ADDR_H

#include "base/status.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/un.h>

struct addr {
	socklen_t len;
	union {
		struct sockaddr sa;
		struct sockaddr_un un;
		struct sockaddr_storage ss;
	};
};

#define ADDR_TEXT_MAX 128 /* enough for addr_text of any address */

/* Numeric IPv4 or IPv6 text; false: it is a name that must be resolved. */
bool addr_from_ip(struct addr *a, const char *text, uint16_t port);
/* "<dir>/.s.PGSQL.<port>", dir "@x" = abstract. STATUS_TOO_BIG: over the 107 bytes of a socket path. */
enum status addr_from_unix_dir(struct addr *a, const char *dir, unsigned port) must_check;
bool addr_is_unix(const struct addr *a);
uint16_t addr_port(const struct addr *a); /* 0 for Unix sockets */
/* "127.0.0.1:6432", "[::1]:6432", "unix" or "unix:/dir/.s.PGSQL.6432"; host-only variants without the port. */
const char *addr_text(const struct addr *a, char out[ADDR_TEXT_MAX]);
const char *addr_host_text(const struct addr *a, char out[ADDR_TEXT_MAX]);

#endif
