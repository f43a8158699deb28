/* SPDX-License-Identifier: ISC */
/* The frame of a real-server test program: unprivileged, one cluster, one Check suite. */
#ifndef PGWEIR_TEST_SUITE_H
#define PGWEIR_TEST_SUITE_H

#include "cluster.h"
#include "crowd.h"
#include "daemon.h"
#include "fake_server.h"
#include "proc.h"
#include "query.h"
#include "rawconn.h"
#include "sampler.h"

#include <check.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

extern struct cluster *pg; /* the program's cluster, while its tests run */

/* timeout_s: of each test. Returns the exit code for main(). */
int suite_run(const char *name, const TTest **tests, size_t n_tests, int timeout_s);

#define SUITE_MAIN(name, timeout_s, ...)                                                                               \
	int main(void)                                                                                                 \
	{                                                                                                              \
		const TTest *tests[] = {__VA_ARGS__};                                                                  \
		return suite_run(name, tests, sizeof(tests) / sizeof(tests[0]), timeout_s);                            \
	}

#endif
