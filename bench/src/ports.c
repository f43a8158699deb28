/* SPDX-License-Identifier: ISC */
#include "ports.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define FIRST 12000
#define N_PORTS 20000 /* up to 31999 */

/* Whether a server could listen there. */
static bool
is_free(const char *host, int port)
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

int
ports_find(int n_hosts)
{
	static bool given[N_PORTS];
	static unsigned seed;

	if (seed == 0)
		seed = (unsigned)getpid() * 2654435761u ^ (unsigned)time(NULL);
	for (int tries = 0; tries < 4 * N_PORTS; tries++) {
		int i = rand_r(&seed) % N_PORTS;
		bool ok = !given[i];

		for (int host = 1; ok && host <= n_hosts; host++) {
			char address[32];

			snprintf(address, sizeof(address), "127.0.0.%d", host);
			ok = is_free(address, FIRST + i);
		}
		if (ok) {
			given[i] = true;
			return FIRST + i;
		}
	}
	return 0;
}
