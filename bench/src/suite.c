/* SPDX-License-Identifier: ISC */
#include "suite.h"

#include "nearest.h"

#include <string.h>

#define END                                                                                                            \
	{                                                                                                              \
		.workloads = NULL                                                                                      \
	}

static const struct suite_line poolers_2019[] = {
	{.workloads = "tpcb,select-only,ycsb-a",
         .clients = "10,25,50,100,250,500,1000",
         .scale = 1,
         .seconds = 20,
         .runs = 4,
         .discard = 1},
	END,
};

static const struct suite_line poolers_2019_quick[] = {
	{.workloads = "select-only", .clients = "10,100,250", .scale = 1, .seconds = 2, .runs = 1},
	{.workloads = "tpcb,ycsb-a", .clients = "50", .scale = 1, .seconds = 2, .runs = 1},
	END,
};

/* The author's clients and threads, and then as many clients as he could not reach. */
static const struct suite_line postgres_xc_2013[] = {
	{.workloads = "tpcb",
         .clients = "16/8,16/16,96/8,64/32,64/64,104/8,200/8,300/8",
         .scale = 100,
         .seconds = 60,
         .runs = 3},
	{.workloads = "select-only",
         .setups = "replicas:2",
         .hosts = HOSTS_ALL,
         .clients = "16/8,16/16,96/8,64/32,64/64,104/8,200/8,300/8",
         .scale = 100,
         .seconds = 60,
         .runs = 3},
	END,
};

static const struct suite_line postgres_xc_2013_quick[] = {
	{.workloads = "tpcb", .clients = "16/8,96/8,300/8", .scale = 10, .seconds = 3, .runs = 1},
	{.workloads = "select-only",
         .setups = "replicas:2",
         .hosts = HOSTS_ALL,
         .clients = "16/8,96/8,300/8",
         .scale = 10,
         .seconds = 3,
         .runs = 1},
	END,
};

static const struct suite_line pgcluster[] = {
	{.workloads = "tpcb,select-only",
         .setups = "replicas:1,sync",
         .clients = "10/1,20/1",
         .scale = 1,
         .transactions = 5,
         .runs = 5,
         .discard = 1},
	END,
};

static const struct suite_line pgcluster_quick[] = {
	{.workloads = "tpcb,select-only",
         .setups = "replicas:1,sync",
         .clients = "10/1,20/1",
         .scale = 1,
         .transactions = 5,
         .runs = 2},
	END,
};

static const struct suite_line filesystems_2006[] = {
	{.workloads = "tpcb",
         .clients = "20/1",
         .scale = 100,
         .transactions = 10000,
         .runs = 20,
         .discard = 3,
         .data = DATA_AFRESH},
	END,
};

static const struct suite_line filesystems_2006_quick[] = {
	{.workloads = "tpcb",
         .clients = "20/1",
         .scale = 10,
         .transactions = 200,
         .runs = 4,
         .discard = 1,
         .data = DATA_AFRESH},
	END,
};

static const struct suite_line replicated_storage_2007[] = {
	{.workloads = "tpcb",
         .setups = "single,sync,single synchronous_commit=off",
         .clients = "100/2",
         .scale = 200,
         .transactions = 500,
         .runs = 10},
	END,
};

static const struct suite_line replicated_storage_2007_quick[] = {
	{.workloads = "tpcb",
         .setups = "single,sync,single synchronous_commit=off",
         .clients = "100/2",
         .scale = 10,
         .transactions = 20,
         .runs = 2},
	END,
};

static const struct suite_line overhead[] = {
	{.workloads = "select1,select-only",
         .modes = "simple,extended,prepared",
         .clients = "1,4,16,64,250,1000",
         .scale = 10,
         .seconds = 10,
         .runs = 4,
         .discard = 1},
	END,
};

static const struct suite_line overhead_quick[] = {
	{.workloads = "select1", .clients = "1,16,100", .scale = 1, .seconds = 2, .runs = 1},
	{.workloads = "select1", .modes = "extended,prepared", .clients = "16", .scale = 1, .seconds = 2, .runs = 1},
	{.workloads = "select-only", .clients = "16,100", .scale = 1, .seconds = 2, .runs = 1},
	END,
};

static const struct suite_line scale[] = {
	{.workloads = "select-only",
         .clients = "100,1000,2500,5000,10000",
         .scale = 10,
         .seconds = 15,
         .runs = 3,
         .discard = 1},
	{.workloads = "idle,idle-tls", .clients = "1000,4000,10000", .runs = 3},
	{.workloads = "beside-idle",
         .clients = "64",
         .idle = "0,1000,10000",
         .scale = 10,
         .seconds = 15,
         .runs = 3,
         .discard = 1},
	{.workloads = "storm", .clients = "100,1000,4000", .runs = 3},
	{.workloads = "reconnect,reconnect-tls", .clients = "16,64", .seconds = 10, .runs = 3},
	END,
};

static const struct suite_line scale_quick[] = {
	{.workloads = "select-only", .clients = "100,2000", .scale = 1, .seconds = 3, .runs = 1},
	{.workloads = "idle", .clients = "500,2000", .runs = 1},
	{.workloads = "idle-tls", .clients = "500", .runs = 1},
	{.workloads = "beside-idle", .clients = "16", .idle = "0,1000", .scale = 1, .seconds = 2, .runs = 1},
	{.workloads = "storm", .clients = "500", .runs = 1},
	{.workloads = "reconnect", .clients = "16", .seconds = 3, .runs = 1},
	END,
};

static const struct suite_line traffic[] = {
	{.workloads = "simple-update,ycsb-b,ycsb-c,tls,reconnect,mixed,idle-in-transaction",
         .clients = "16,64,250",
         .scale = 10,
         .seconds = 15,
         .runs = 4,
         .discard = 1},
	{.workloads = "open-loop", .clients = "64", .scale = 10, .seconds = 20, .runs = 4, .discard = 1, .rate = 2000},
	{.workloads = "copy-out,copy-in", .clients = "1", .runs = 4, .discard = 1, .copy_mb = 1024},
	END,
};

static const struct suite_line traffic_quick[] = {
	{.workloads = "ycsb-b,tls,reconnect,mixed,idle-in-transaction",
         .clients = "64",
         .scale = 1,
         .seconds = 2,
         .runs = 1},
	{.workloads = "open-loop", .clients = "64", .scale = 1, .seconds = 2, .runs = 1, .rate = 1000},
	{.workloads = "copy-out,copy-in", .clients = "1", .runs = 1, .copy_mb = 128},
	END,
};

static const struct suite suites[] = {
	{"poolers-2019", "read-write, select-only and YCSB-like, 10 to 1000 connections, one host",
         "direct,pgbouncer:16,pgbouncer:32,odyssey:32/2,odyssey:64/4,pgweir:16/1,pgweir:16/2", poolers_2019,
         poolers_2019_quick},
	{"postgres-xc-2013", "TPC-B and select-only at scale 100; select-only over three servers behind one address",
         "direct,pgbouncer:64,pgweir:64/2", postgres_xc_2013, postgres_xc_2013_quick},
	{"pgcluster-normal-reliable", "10 and 20 clients of 5 transactions, asynchronous and synchronous replication",
         "direct,pgweir:16/1", pgcluster, pgcluster_quick},
	{"filesystems-2006", "TPC-B at scale 100, 20 clients, data loaded anew for each run, on each --datadir",
         "direct", filesystems_2006, filesystems_2006_quick},
	{"replicated-storage-2007", "TPC-B at scale 200, 100 clients: local, synchronously replicated, not flushed",
         "direct,pgweir:16/1", replicated_storage_2007, replicated_storage_2007_quick},
	{"overhead", "select 1 and select-only, 1 to 1000 clients, all query modes",
         "direct,pgweir:16/1,pgbouncer:16,odyssey:16/1,haproxy", overhead, overhead_quick},
	{"scale", "up to 10,000 clients: throughput, memory of idle ones, logins",
         "pgweir:16/1,pgbouncer:16,odyssey:16/1", scale, scale_quick},
	{"traffic", "TLS, reconnecting, long queries among short ones, idle in transaction, open loop, COPY",
         "direct,pgweir:16/1,pgbouncer:16,odyssey:16/1,haproxy", traffic, traffic_quick},
};

#define N_SUITES (sizeof(suites) / sizeof(suites[0]))

const struct suite *
suite_at(size_t i)
{
	return i < N_SUITES ? &suites[i] : NULL;
}

const struct suite *
suite_find(const char *name)
{
	for (size_t i = 0; i < N_SUITES; i++)
		if (strcmp(suites[i].name, name) == 0)
			return &suites[i];
	return NULL;
}

/* "all", which is no suite, is among the names. */
static const char *
name_at(size_t i)
{
	return i < N_SUITES ? suites[i].name : i == N_SUITES ? "all" : NULL;
}

bool
suite_refuse(const char *name, struct why *why)
{
	return nearest_refuse(why, "suite", name, name_at, "pgweir-bench list");
}
