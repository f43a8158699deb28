/* SPDX-License-Identifier: ISC */
/*
 * A thread that watches the server over a connection of its own while a test
 * loads the daemon: it runs a query that returns one number, over and over.
 */
#ifndef PGWEIR_TEST_SAMPLER_H
#define PGWEIR_TEST_SAMPLER_H

#include "cluster.h"

struct sampler;

#define SAMPLE_BACKENDS                                                                                                \
	"select count(*) from pg_stat_activity where backend_type = 'client backend' and application_name <> 'direct'"

struct sampler *sampler_start(const struct cluster *pg, const char *sql);
long sampler_max(struct sampler *s);  /* so far */
long sampler_stop(struct sampler *s); /* frees it; the largest number seen; asserts that it worked all the time */

#endif
