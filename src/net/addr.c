/* SPDX-License-Identifier: ISC */
#include "net/addr.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

bool
addr_from_ip(struct addr *a, const char *text, uint16_t port)
{
	struct sockaddr_in in = {.sin_family = AF_INET, .sin_port = htons(port)};
	struct sockaddr_in6 in6 = {.sin6_family = AF_INET6, .sin6_port = htons(port)};

	memset(a, 0, sizeof(*a));
	if (inet_pton(AF_INET, text, &in.sin_addr) == 1) {
		memcpy(&a->ss, &in, sizeof(in));
		a->len = sizeof(in);
		return true;
	}
	if (inet_pton(AF_INET6, text, &in6.sin6_addr) == 1) {
		memcpy(&a->ss, &in6, sizeof(in6));
		a->len = sizeof(in6);
		return true;
	}
	return false;
}

enum status
addr_from_unix_dir(struct addr *a, const char *dir, unsigned port)
{
	char path[sizeof(a->un.sun_path)];
	int n = snprintf(path, sizeof(path), "%s/.s.PGSQL.%u", dir, port);

	if (n < 0 || (size_t)n >= sizeof(path))
		return STATUS_TOO_BIG;
	memset(a, 0, sizeof(*a));
	a->un.sun_family = AF_UNIX;
	memcpy(a->un.sun_path, path, (size_t)n);
	if (path[0] == '@') {
		/* abstract: first byte NUL, and the length says where the name ends */
		a->un.sun_path[0] = '\0';
		a->len = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + (size_t)n);
	} else {
		a->len = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + (size_t)n + 1);
	}
	return STATUS_OK;
}

bool
addr_is_unix(const struct addr *a)
{
	return a->sa.sa_family == AF_UNIX;
}

uint16_t
addr_port(const struct addr *a)
{
	struct sockaddr_in in;
	struct sockaddr_in6 in6;

	switch (a->sa.sa_family) {
	case AF_INET:
		memcpy(&in, &a->ss, sizeof(in));
		return ntohs(in.sin_port);
	case AF_INET6:
		memcpy(&in6, &a->ss, sizeof(in6));
		return ntohs(in6.sin6_port);
	default:
		return 0;
	}
}

const char *
addr_host_text(const struct addr *a, char out[ADDR_TEXT_MAX])
{
	struct sockaddr_in in;
	struct sockaddr_in6 in6;
	const char *ok = NULL;

	switch (a->sa.sa_family) {
	case AF_INET:
		memcpy(&in, &a->ss, sizeof(in));
		ok = inet_ntop(AF_INET, &in.sin_addr, out, ADDR_TEXT_MAX);
		break;
	case AF_INET6:
		memcpy(&in6, &a->ss, sizeof(in6));
		ok = inet_ntop(AF_INET6, &in6.sin6_addr, out, ADDR_TEXT_MAX);
		break;
	default:
		break;
	}
	if (ok == NULL)
		snprintf(out, ADDR_TEXT_MAX, "unix");
	return out;
}

const char *
addr_text(const struct addr *a, char out[ADDR_TEXT_MAX])
{
	char host[ADDR_TEXT_MAX];

	if (addr_is_unix(a)) {
		size_t path_max = a->len > offsetof(struct sockaddr_un, sun_path)
		                          ? a->len - offsetof(struct sockaddr_un, sun_path)
		                          : 0;

		if (path_max == 0)
			snprintf(out, ADDR_TEXT_MAX, "unix");
		else if (a->un.sun_path[0] == '\0')
			snprintf(out, ADDR_TEXT_MAX, "unix:@%.*s", (int)path_max - 1, a->un.sun_path + 1);
		else
			snprintf(out, ADDR_TEXT_MAX, "unix:%.*s", (int)path_max, a->un.sun_path);
		return out;
	}
	addr_host_text(a, host);
	snprintf(out, ADDR_TEXT_MAX, a->sa.sa_family == AF_INET6 ? "[%.100s]:%u" : "%.100s:%u", host, addr_port(a));
	return out;
}
