#!/usr/bin/env bash
# SPDX-License-Identifier: ISC
#
# make demo: 200 clients on a scratch PostgreSQL, directly and through pgweir
# with 16 server connections. Takes about 20 seconds, then waits for Enter so
# that one can look around (DEMO_WAIT=0: does not wait), and leaves nothing
# behind. PGWEIR names another binary, DEMO_SECONDS the length of one run.

cd "$(dirname "$0")/.." || exit 1
. bench/lib.sh

PGWEIR=$(realpath "${PGWEIR:-./pgweir}")
CLIENTS=200
BACKENDS=16
PROXIES=2
SCALE=5
SECONDS_EACH=${DEMO_SECONDS:-3}
WEIR_PID=

say()
{
	printf '%s\n' "$*"
}

# step TEXT COMMAND...: says what takes a while, and how long it took.
step()
{
	local text=$1 begin=$EPOCHREALTIME
	shift

	printf '  %-57s' "$text"
	BENCH_MIDLINE=$'\n'
	"$@"
	BENCH_MIDLINE=
	awk -v a="$begin" -v b="$EPOCHREALTIME" 'BEGIN { printf "%6.1f s\n", b - a }'
}

load_tables()
{
	local log=$BENCH_TMP/load.log

	bench_run pgbench -i -q -s "$SCALE" -h 127.0.0.1 -p "$PG_PORT" -U demo demo \
		> "$log" 2>&1 || die "pgbench -i failed: $(tail -n 3 "$log")"
}

start_pgweir()
{
	pooler_start "$PGWEIR" demo "$PROXIES" \
		"default_pool_size = $BACKENDS" 'max_client_conn = 1000' \
		'admin_users = demo' 'log_connections = 0' 'log_disconnections = 0' ||
		exit 1
	WEIR_PID=$SPAWNED
	WEIR_PORT=$PORT
}

# measure NAME PORT SCRIPT: one run of pgbench; leaves a row of figures in
# $BENCH_TMP/NAME.row. It does not care who answers on that port.
measure()
{
	local name=$1 port=$2 script=$3 out=$BENCH_TMP/$1 watches=() pid cpu=

	pg_watch_connections demo "$out.connections"
	watches+=("$SPAWNED")
	if [ -n "$WEIR_PID" ]; then
		process_watch "$WEIR_PID" "$out.watch"
		watches+=("$SPAWNED")
	fi
	pgbench_run "$out" "$CLIENTS" "$SECONDS_EACH" -b "$script" -j 2 -l \
		-h 127.0.0.1 -p "$port" -U demo demo ||
		die "pgbench failed: $(tail -n 3 "$out.err")"
	for pid in "${watches[@]}"; do
		bench_stop "$pid"
	done
	[ -z "$WEIR_PID" ] ||
		cpu=$(process_cpu_share "$out.watch" "$RUN_FROM" "$RUN_TO")
	awk -v tps="$(pgbench_field "$out.out" tps)" -v cpu="$cpu" \
		-v avg="$(pgbench_field "$out.out" latency)" \
		-v p99="$(pgbench_percentile "$out.log" 99)" \
		-v connections="$(sort -n "$out.connections" | tail -n 1)" 'BEGIN {
		printf "%9.0f %9.1f %8.1f %11d %16s\n", tps, avg, p99, connections,
			(cpu != "" && tps > 0) ? sprintf("%.1f", cpu / tps * 1e6) : "-"
	}' > "$out.row"
}

table()
{
	local rule=-------------------------------------------------------------------------

	say
	say '                              latency in ms          server       CPU us per'
	say '                         tps   average      p99 connections      transaction'
	say "  $rule"
	printf '  %-10s %-6s %s\n' \
		'read only' direct "$(cat "$BENCH_TMP/read-direct.row")" \
		'' pgweir "$(cat "$BENCH_TMP/read-pgweir.row")" \
		'read/write' direct "$(cat "$BENCH_TMP/write-direct.row")" \
		'' pgweir "$(cat "$BENCH_TMP/write-pgweir.row")"
	say "  $rule"
}

# TPC-B's books: what was added to the accounts is what history recorded.
books()
{
	local sums

	sums=$(pg_query 'select (select sum(abalance) from pgbench_accounts),
		(select sum(bbalance) from pgbench_branches),
		(select sum(delta) from pgbench_history)' demo)
	[[ $sums =~ ^(-?[0-9]+)\|(-?[0-9]+)\|(-?[0-9]+)$ ]] ||
		die "cannot read the books: $sums"
	if [ "${BASH_REMATCH[1]}" != "${BASH_REMATCH[2]}" ] ||
		[ "${BASH_REMATCH[1]}" != "${BASH_REMATCH[3]}" ]; then
		die "the books do not balance: accounts|branches|history = $sums"
	fi
	say "  The books balance: accounts, branches and history all add up to ${BASH_REMATCH[1]}."
}

look_around()
{
	say
	say '  Look around from another terminal:'
	say
	say "    psql -h 127.0.0.1 -p $WEIR_PORT -U demo demo"
	say "    psql -h 127.0.0.1 -p $WEIR_PORT -U demo pgweir -xc 'SHOW POOLS'"
	say "    cat $BENCH_TMP/${PGWEIR##*/}.ini"
	say
	if [ "${DEMO_WAIT:-1}" = 0 ] || [ ! -t 0 ]; then
		say '  (Not waiting: DEMO_WAIT=0 or no terminal.)'
		return
	fi
	printf '  Press Enter to stop and remove everything. '
	trap 'echo; exit 0' INT
	read -r
}

[ -x "$PGWEIR" ] || die "$PGWEIR is not built yet: run make"
bench_begin demo
say
say "pgweir demo: $CLIENTS clients, $BACKENDS server connections, $PROXIES proxies"
say
step "making a scratch cluster of PostgreSQL $(pg_version)" pg_start demo $((CLIENTS + 20))
step "loading pgbench's tables at scale $SCALE" load_tables
step 'reading, directly' measure read-direct "$PG_PORT" select-only
pg_wait_disconnected demo
step 'writing (TPC-B), directly' measure write-direct "$PG_PORT" tpcb-like
pg_wait_disconnected demo
step "starting pgweir with $PROXIES proxies in front of it" start_pgweir
step 'reading, through pgweir' measure read-pgweir "$WEIR_PORT" select-only
step 'writing (TPC-B), through pgweir' measure write-pgweir "$WEIR_PORT" tpcb-like
table
books
look_around
