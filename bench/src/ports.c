/* SPDX-License-Identifier: ISC */
#include "ports.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define FIRST 12000
#define N_PORTS 20000 /* up to 31999 */

static bool
is_free_at(const char *host, int port)
{
	struct sockaddr_in in = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), one = 1;
	bool ok;

	/* What waits after its close (TIME_WAIT) does not keep a server from listening. */
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	ok = inet_pton(AF_INET, host, &in.sin_addr) == 1 && bind(fd, (struct sockaddr *)&in, sizeof(in)) == 0;
	if (fd >= 0)
		close(fd);
	return ok;
}

bool
ports_is_free(int n_hosts, int port)
{
	for (int host = 1; host <= n_hosts; host++) {
		char address[32];

		snprintf(address, sizeof(address), "127.0.0.%d", host);
		if (!is_free_at(address, port))
			return false;
	}
	return true;
}

int
ports_find(int n_hosts)
{
	static bool given[N_PORTS];
	static unsigned seed;

	if (seed == 0)
		seed = (unsigned)getpid() * 2654435761u ^ (unsigned)time(NULL);
	for (int tries = 0; tries < 4 * N_PORTS; tries++) {
		int i = rand_r(&seed) % N_PORTS;

		if (!given[i] && ports_is_free(n_hosts, FIRST + i)) {
			given[i] = true;
			return FIRST + i;
		}
	}
	return 0;
}
