/* SPDX-License-Identifier: ISC */
#include "sampler.h"

#include "proc.h"

#include <check.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

struct sampler {
	pthread_t thread;
	PGconn *conn;
	char *sql;
	atomic_long max, n_samples;
	atomic_bool stop, failed;
};

static void *
run(void *arg)
{
	struct sampler *s = arg;

	while (!atomic_load(&s->stop)) {
		PGresult *r = PQexec(s->conn, s->sql);
		long v;

		if (PQresultStatus(r) != PGRES_TUPLES_OK) {
			PQclear(r);
			atomic_store(&s->failed, true);
			break;
		}
		v = strtol(PQgetvalue(r, 0, 0), NULL, 10);
		if (v > atomic_load(&s->max))
			atomic_store(&s->max, v);
		atomic_fetch_add(&s->n_samples, 1);
		PQclear(r);
		proc_nap(0);
	}
	return NULL;
}

struct sampler *
sampler_start(const struct cluster *pg, const char *sql)
{
	struct sampler *s = calloc(1, sizeof(*s));

	ck_assert(s != NULL);
	s->conn = cluster_connect(pg, "postgres");
	s->sql = strdup(sql);
	ck_assert_int_eq(pthread_create(&s->thread, NULL, run, s), 0);
	return s;
}

long
sampler_max(struct sampler *s)
{
	return atomic_load(&s->max);
}

long
sampler_stop(struct sampler *s)
{
	long max, n;
	bool failed;

	atomic_store(&s->stop, true);
	pthread_join(s->thread, NULL);
	max = s->max;
	n = s->n_samples;
	failed = s->failed;
	PQfinish(s->conn);
	free(s->sql);
	free(s);
	ck_assert_msg(!failed && n > 0, "the sampler's query failed");
	return max;
}
