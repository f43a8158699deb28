/* SPDX-License-Identifier: ISC */
#include "metric.h"

#include <math.h>
#include <stdio.h>

#define MIB_IN_KIB 1024.0

static double
count(int64_t n, double divisor)
{
	return n == RESULT_UNKNOWN ? NAN : (double)n / divisor;
}

/*
 * pgbench reads its clock once for all that it does between two waits. If the answer is there when it looks for it, a whole
 * transaction lies between two waits, and its latency is 0: nobody knows how long it took.
 */
static double
percentile(double ms)
{
	return ms > 0 ? ms : NAN;
}

#define GETTER(name, value)                                                                                            \
	static double name(const struct result *r)                                                                     \
	{                                                                                                              \
		return value;                                                                                          \
	}
GETTER(tps, r->tps)
GETTER(tps_connecting, r->tps_connecting)
GETTER(mb_per_s, r->mb_per_s)
GETTER(connect_ms, r->connect_ms)
GETTER(avg_ms, r->latency_avg_ms)
GETTER(p50_ms, percentile(r->latency_p50_ms))
GETTER(p90_ms, percentile(r->latency_p90_ms))
GETTER(p99_ms, percentile(r->latency_p99_ms))
GETTER(p999_ms, percentile(r->latency_p999_ms))
GETTER(max_ms, r->latency_max_ms)
GETTER(pooler_calls, r->pooler_calls)
GETTER(pooler_sends, r->pooler_sends)
GETTER(pooler_receives, r->pooler_receives)
GETTER(pooler_waits, r->pooler_waits)
GETTER(rss_before_mib, count(r->pooler_rss_before_kb, MIB_IN_KIB))
GETTER(rss_peak_mib, count(r->pooler_rss_peak_kb, MIB_IN_KIB))
GETTER(rss_after_mib, count(r->pooler_rss_after_kb, MIB_IN_KIB))
GETTER(server_connections, count(r->server_connections, 1))
GETTER(failures, count(r->failures, 1))
GETTER(skipped, count(r->skipped, 1))

static double
pooler_switches(const struct result *r)
{
	int64_t n = r->cpu_transactions != RESULT_UNKNOWN ? r->cpu_transactions : r->transactions;

	return n > 0 ? count(r->pooler_switches, (double)n) : NAN;
}

static double
rss_client_kib(const struct result *r)
{
	if (r->clients <= 0)
		return NAN;
	return (count(r->pooler_rss_peak_kb, 1) - count(r->pooler_rss_before_kb, 1)) / (double)r->clients;
}

const struct metric_info metric_infos[METRIC_N] = {
	[METRIC_TPS] = {"tps", "transactions per second", BETTER_MORE, tps},
	[METRIC_TPS_CONNECTING] = {"tps with connecting", "transactions per second with the time to connect",
                                   BETTER_MORE, tps_connecting},
	[METRIC_MB_PER_S] = {"MB/s", "megabytes per second", BETTER_MORE, mb_per_s},
	[METRIC_CONNECT_MS] = {"connect ms", "time to connect, ms", BETTER_LESS, connect_ms},
	[METRIC_AVG_MS] = {"mean ms", "mean latency, ms", BETTER_LESS, avg_ms},
	[METRIC_P50_MS] = {"p50 ms", "median latency, ms", BETTER_LESS, p50_ms},
	[METRIC_P90_MS] = {"p90 ms", "90th percentile of latency, ms", BETTER_LESS, p90_ms},
	[METRIC_P99_MS] = {"p99 ms", "99th percentile of latency, ms", BETTER_LESS, p99_ms},
	[METRIC_P999_MS] = {"p99.9 ms", "99.9th percentile of latency, ms", BETTER_LESS, p999_ms},
	[METRIC_MAX_MS] = {"max ms", "longest latency, ms", BETTER_LESS, max_ms},
	[METRIC_POOLER_US] = {"CPU us", "CPU of the pooler, \302\265s per transaction", BETTER_LESS, result_pooler_us},
	[METRIC_SERVER_US] = {"server us", "CPU of the server, \302\265s per transaction", BETTER_LESS,
                              result_server_us},
	[METRIC_PGBENCH_US] = {"pgbench us", "CPU of pgbench, \302\265s per transaction", BETTER_NEITHER,
                               result_pgbench_us},
	[METRIC_POOLER_SWITCHES] = {"switches", "context switches of the pooler per transaction", BETTER_LESS,
                                    pooler_switches},
	[METRIC_POOLER_CALLS] = {"system calls", "system calls of the pooler per transaction", BETTER_LESS,
                                 pooler_calls},
	[METRIC_POOLER_SENDS] = {"sends", "sends and writes of the pooler per transaction", BETTER_NEITHER,
                                 pooler_sends},
	[METRIC_POOLER_RECEIVES] = {"receives", "receives and reads of the pooler per transaction", BETTER_NEITHER,
                                    pooler_receives},
	[METRIC_POOLER_WAITS] = {"waits", "waits of the pooler for events per transaction", BETTER_NEITHER,
                                 pooler_waits},
	[METRIC_RSS_BEFORE_MIB] = {"MiB before", "memory of the pooler without clients, MiB", BETTER_LESS,
                                   rss_before_mib},
	[METRIC_RSS_PEAK_MIB] = {"MiB", "memory of the pooler, MiB", BETTER_LESS, rss_peak_mib},
	[METRIC_RSS_CLIENT_KIB] = {"KiB/client", "memory per client, KiB", BETTER_LESS, rss_client_kib},
	[METRIC_RSS_AFTER_MIB] = {"MiB after", "memory of the pooler when the clients have left, MiB", BETTER_LESS,
                                  rss_after_mib},
	[METRIC_SERVER_CONNECTIONS] = {"server conns", "server connections", BETTER_NEITHER, server_connections},
	[METRIC_FAILURES] = {"failures", "failures", BETTER_LESS, failures},
	[METRIC_SKIPPED] = {"skipped", "transactions given up as too late", BETTER_LESS, skipped},
};

const char *
metric_format(char text[METRIC_TEXT], double value)
{
	double size = fabs(value);
	int decimals = size >= 99.95 ? 0 : size >= 9.995 ? 1 : size >= 0.9995 ? 2 : 3;

	if (isnan(value))
		snprintf(text, METRIC_TEXT, "-");
	else if (value == floor(value) && size < 1e15)
		snprintf(text, METRIC_TEXT, "%.0f", value);
	else
		snprintf(text, METRIC_TEXT, "%.*f", decimals, value);
	return text;
}
