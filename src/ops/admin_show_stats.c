/* SPDX-License-Identifier: ISC */
/* SHOW STATS and its relatives, and the line of log_stats. */
#include "base/log.h"
#include "core/group.h"
#include "ops/admin_reply.h"
#include "ops/admin_show.h"
#include "ops/stats.h"

#include <inttypes.h>
#include <stdio.h>

/* How the relatives call the counters, in the order of enum stat. */
static const struct {
	const char *total, *average;       /* SHOW STATS */
	const char *plain, *plain_average; /* SHOW STATS_TOTALS, STATS_AVERAGES */
	const char *sum;                   /* SHOW TOTALS, behind total_ and avg_ */
} names[STAT_N] = {
	[STAT_ASSIGNMENTS] = {"total_server_assignment_count", "avg_server_assignment_count", "server_assignment_count",
                              "server_assignment_count", "server_assignment_count"},
	[STAT_XACTS] = {"total_xact_count", "avg_xact_count", "xact_count", "xact_count", "xact_count"},
	[STAT_QUERIES] = {"total_query_count", "avg_query_count", "query_count", "query_count", "query_count"},
	[STAT_RECEIVED] = {"total_received", "avg_recv", "bytes_received", "bytes_received", "client_bytes"},
	[STAT_SENT] = {"total_sent", "avg_sent", "bytes_sent", "bytes_sent", "server_bytes"},
	[STAT_XACT_US] = {"total_xact_time", "avg_xact_time", "xact_time", "xact_time", "xact_time"},
	[STAT_QUERY_US] = {"total_query_time", "avg_query_time", "query_time", "query_time", "query_time"},
	[STAT_WAIT_US] = {"total_wait_time", "avg_wait_time", "wait_time", "wait_time", "wait_time"},
	[STAT_CLIENT_PARSES] = {"total_client_parse_count", "avg_client_parse_count", "client_parse_count",
                                "avg_client_parse_count", "ps_client_parse_count"},
	[STAT_SERVER_PARSES] = {"total_server_parse_count", "avg_server_parse_count", "server_parse_count",
                                "avg_server_parse_count", "ps_server_parse_count"},
	[STAT_BINDS] = {"total_bind_count", "avg_bind_count", "bind_count", "avg_bind_count", "ps_bind_count"},
	[STAT_LOGINS] = {"total_client_login_count", "avg_client_login_count", "client_login_count",
                         "avg_client_login_count", "client_login_count"},
};

/* ---- reading ---- */

static void
counts_of(const struct snapshot_pool *pool, uint64_t out[STAT_N])
{
	out[STAT_ASSIGNMENTS] = pool->n_assignments;
	out[STAT_XACTS] = pool->n_xacts;
	out[STAT_QUERIES] = pool->n_queries;
	out[STAT_RECEIVED] = pool->bytes_received;
	out[STAT_SENT] = pool->bytes_sent;
	out[STAT_XACT_US] = pool->xact_us;
	out[STAT_QUERY_US] = pool->query_us;
	out[STAT_WAIT_US] = pool->wait_us;
	out[STAT_CLIENT_PARSES] = pool->n_client_parses;
	out[STAT_SERVER_PARSES] = pool->n_server_parses;
	out[STAT_BINDS] = pool->n_binds;
	out[STAT_LOGINS] = pool->n_client_logins;
}

bool
admin_read_stats(struct stats *st, const struct ask *a)
{
	uint64_t counts[STAT_N];

	stats_begin(st);
	for (size_t i = 0; i < a->n; i++) {
		for (size_t k = 0; k < a->answer[i]->n; k++) {
			const struct snapshot_pool *pool = &a->answer[i]->pools[k];

			counts_of(pool, counts);
			if (!stats_add(st, pool->group->database, counts))
				return false;
		}
	}
	return true;
}

static bool
read_stats(struct admin_call *call)
{
	if (admin_read_stats(call->stats, call->ask))
		return true;
	reply_error(call->out, "53200", "out of memory");
	return false;
}

void
admin_log_stats(const struct stats *st)
{
	uint64_t a[STAT_N];
	char msg[512];

	stats_average(st, NULL, a);
	snprintf(msg, sizeof(msg),
	         "stats: %" PRIu64 " xacts/s, %" PRIu64 " queries/s, %" PRIu64 " client parses/s, %" PRIu64
	         " server parses/s, %" PRIu64 " binds/s, in %" PRIu64 " B/s, out %" PRIu64 " B/s, xact %" PRIu64
	         " us, query %" PRIu64 " us, wait %" PRIu64 " us",
	         a[STAT_XACTS], a[STAT_QUERIES], a[STAT_CLIENT_PARSES], a[STAT_SERVER_PARSES], a[STAT_BINDS],
	         a[STAT_RECEIVED], a[STAT_SENT], a[STAT_XACT_US], a[STAT_QUERY_US], a[STAT_WAIT_US]);
	log_event(LOG_INFO_, "stats", LOG_S("msg", msg));
}

/* ---- rows ---- */

static void
add_values(struct reply *r, const uint64_t values[STAT_N])
{
	for (int i = 0; i < STAT_N; i++)
		reply_uint(r, values[i]);
}

void
admin_show_stats(struct admin_call *call)
{
	struct reply_column columns[1 + 2 * STAT_N] = {{"database", REPLY_TEXT}};
	uint64_t average[STAT_N];
	struct reply r;

	if (!read_stats(call))
		return;
	for (int i = 0; i < STAT_N; i++) {
		columns[1 + i] = (struct reply_column){names[i].total, REPLY_NUMERIC};
		columns[1 + STAT_N + i] = (struct reply_column){names[i].average, REPLY_NUMERIC};
	}
	REPLY_BEGIN(&r, call->out, columns);
	for (const struct stats_database *d = stats_next(call->stats, NULL); d != NULL;
	     d = stats_next(call->stats, d)) {
		stats_average(call->stats, d, average);
		reply_text(&r, stats_name(d));
		add_values(&r, stats_total(d));
		add_values(&r, average);
	}
	reply_end(&r);
}

static void
show_half(struct admin_call *call, bool averages)
{
	struct reply_column columns[1 + STAT_N] = {{"database", REPLY_TEXT}};
	uint64_t average[STAT_N];
	struct reply r;

	if (!read_stats(call))
		return;
	for (int i = 0; i < STAT_N; i++)
		columns[1 + i] =
			(struct reply_column){averages ? names[i].plain_average : names[i].plain, REPLY_NUMERIC};
	REPLY_BEGIN(&r, call->out, columns);
	for (const struct stats_database *d = stats_next(call->stats, NULL); d != NULL;
	     d = stats_next(call->stats, d)) {
		stats_average(call->stats, d, average);
		reply_text(&r, stats_name(d));
		add_values(&r, averages ? average : stats_total(d));
	}
	reply_end(&r);
}

void
admin_show_stats_totals(struct admin_call *call)
{
	show_half(call, false);
}

void
admin_show_stats_averages(struct admin_call *call)
{
	show_half(call, true);
}

static void
add_pairs(struct reply *r, const char *prefix, const uint64_t values[STAT_N])
{
	for (int i = 0; i < STAT_N; i++) {
		reply_printf(r, "%s%s", prefix, names[i].sum);
		reply_uint(r, values[i]);
	}
}

void
admin_show_totals(struct admin_call *call)
{
	static const struct reply_column columns[] = {{"name", REPLY_TEXT}, {"value", REPLY_NUMERIC}};
	uint64_t total[STAT_N], average[STAT_N];
	struct reply r;

	if (!read_stats(call))
		return;
	stats_sum(call->stats, total);
	stats_average(call->stats, NULL, average);
	REPLY_BEGIN(&r, call->out, columns);
	add_pairs(&r, "total_", total);
	add_pairs(&r, "avg_", average);
	reply_end(&r);
}
