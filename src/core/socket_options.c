/* SPDX-License-Identifier: ISC */
#include "core/socket_options.h"

#include "core/config.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

void
socket_set(int fd, int level, int name, int64_t value)
{
	int v = (int)value;

	(void)setsockopt(fd, level, name, &v, sizeof(v));
}

void
socket_tune(const struct config *c, int fd)
{
	socket_set(fd, IPPROTO_TCP, TCP_NODELAY, 1);
	socket_set(fd, SOL_SOCKET, SO_KEEPALIVE, c->tcp_keepalive);
	if (c->tcp_keepcnt > 0)
		socket_set(fd, IPPROTO_TCP, TCP_KEEPCNT, c->tcp_keepcnt);
	if (c->tcp_keepidle > 0)
		socket_set(fd, IPPROTO_TCP, TCP_KEEPIDLE, c->tcp_keepidle);
	if (c->tcp_keepintvl > 0)
		socket_set(fd, IPPROTO_TCP, TCP_KEEPINTVL, c->tcp_keepintvl);
	if (c->tcp_user_timeout > 0)
		socket_set(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, c->tcp_user_timeout);
	if (c->tcp_socket_buffer > 0) {
		socket_set(fd, SOL_SOCKET, SO_SNDBUF, c->tcp_socket_buffer);
		socket_set(fd, SOL_SOCKET, SO_RCVBUF, c->tcp_socket_buffer);
	}
}
