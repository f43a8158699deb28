/* SPDX-License-Identifier: ISC */
#include "pgbench.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

void
pgbench_arguments(const struct pgbench_how *how, struct text_list *argv)
{
	const struct workload *w = how->cell->workload;

	text_list_add(argv, how->program);
	text_list_add(argv, "--no-vacuum");
	text_list_addf(argv, "--client=%d", how->clients);
	text_list_addf(argv, "--jobs=%d", how->threads < how->clients ? how->threads : how->clients);
	text_list_addf(argv, "--protocol=%s", how->cell->mode);
	if (how->seconds > 0)
		text_list_addf(argv, "--time=%d", how->seconds);
	else
		text_list_addf(argv, "--transactions=%d", how->transactions);
	if (w->client == CLIENT_RECONNECTS)
		text_list_add(argv, "--connect");
	if (how->rate > 0)
		text_list_addf(argv, "--rate=%.3f", how->rate);
	if (how->log_prefix != NULL) {
		text_list_add(argv, "--log");
		text_list_addf(argv, "--log-prefix=%s", how->log_prefix);
	}
	if (w->tables == TABLES_PGBENCH)
		text_list_addf(argv, "--define=scale=%d", how->cell->scale);
	workload_arguments(w, how->workloads, workload_rows(w, how->cell->scale), argv);
	text_list_add(argv, how->conninfo);
}

/* The number after `key` at the start of a line; NAN: no such line. */
static double
number_after(const char *text, const char *key)
{
	size_t len = strlen(key);

	for (const char *line = text; line != NULL && *line != '\0'; line = strchr(line, '\n')) {
		line += *line == '\n';
		if (strncmp(line, key, len) == 0) {
			char *end;
			double value = strtod(line + len, &end);

			return end > line + len ? value : NAN;
		}
	}
	return NAN;
}

static int64_t
count_after(const char *text, const char *key)
{
	double value = number_after(text, key);

	return isnan(value) ? -1 : (int64_t)value;
}

bool
pgbench_parse(const char *text, int clients, struct pgbench_report *out)
{
	double tps = number_after(text, "tps = "), per_connection = number_after(text, "average connection time = ");
	double n;

	out->transactions = count_after(text, "number of transactions actually processed: ");
	out->failed = count_after(text, "number of failed transactions: ");
	out->skipped = count_after(text, "number of transactions skipped: ");
	out->connect_ms = number_after(text, "initial connection time = ");
	out->latency_ms = number_after(text, "latency average = ");
	if (out->failed < 0)
		out->failed = 0; /* older than 15 */
	if (out->transactions < 0 || isnan(tps))
		return false;
	n = (double)out->transactions;
	out->tps = out->tps_connecting = tps;
	if (!isnan(per_connection)) {
		/* A client that needs t seconds for a transaction spends c of them connecting. */
		out->connect_ms = per_connection;
		out->tps = 1 / (1 / tps - per_connection / 1000 / clients);
		if (!(out->tps > 0))
			out->tps = NAN;
	} else if (!isnan(out->connect_ms) && n > 0 && tps > 0) {
		out->tps_connecting = n / (n / tps + out->connect_ms / 1000);
	}
	return true;
}
