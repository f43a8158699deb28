#!/usr/bin/env bash
# SPDX-License-Identifier: ISC
#
# Compares pgweir with pgbouncer, with haproxy as the floor, and with no pooler
# at all, on one machine in one go. bench/README.md explains what is measured
# and holds the results; `bench/compare.sh --help` lists the options.

cd "$(dirname "$0")/.." || exit 1
. bench/lib.sh

usage()
{
	cat << TEXT
usage: bench/compare.sh [OPTION...]

Throughput and CPU (the default):
  --systems LIST   with commas                              [${SYSTEMS[*]}]
  --clients LIST   [${CLIENTS[*]}]
  --modes LIST     pgbench's -M: simple, extended, prepared [${MODES[*]}]
  --skip LIST      SYSTEM:CLIENTS that take too long to connect, as direct:1000
  --script NAME    pgbench's -b, or a file                  [$SCRIPT]
  --rounds N       measured runs of each cell               [$ROUNDS]
  --discard N      runs before them that do not count       [$DISCARD]
  --seconds N      of each run                              [$LENGTH]
  --latency        record p99 too (costs pgbench some CPU)
  --unix           Unix sockets instead of TCP over loopback
  --pool N         server connections of a pooler           [$POOL]
  --proxies N      of pgweir                                [$PROXIES]
  --threads N      of pgbench                               [$THREADS]
  --scale N        of pgbench's tables                      [$SCALE]
Instead of that:
  --strace         system calls per transaction
  --idle N         memory of N idle clients, and what they cost 64 active ones
  --report DIR     print the report of an earlier run again
Common:
  --quick          one short round, 16 and 250 clients
  --out DIR        where results go     [a new folder in \${TMPDIR:-/tmp}]

PGWEIR and PGBOUNCER name the binaries; default ./pgweir and the one in PATH.
TEXT
}

SYSTEMS=(pgweir pgbouncer haproxy direct)
CLIENTS=(16 64 250 1000)
MODES=(simple extended)
SKIP=
SCRIPT=select-only
ROUNDS=3
DISCARD=1
LENGTH=5
POOL=16
PROXIES=1
THREADS=2
SCALE=10
WHAT=load
IDLE=
OUT=
LATENCY=
UNIX=
PGWEIR=${PGWEIR:-./pgweir}
PGBOUNCER=${PGBOUNCER:-$(PATH=$PATH:/usr/sbin command -v pgbouncer)}
HAPROXY=$(PATH=$PATH:/usr/sbin command -v haproxy)

parse_arguments()
{
	while [ $# -gt 0 ]; do
		case $1 in
		--latency) LATENCY=-l ;;
		--unix) UNIX=1 ;;
		--strace) WHAT=strace ;;
		--quick) ROUNDS=1 DISCARD=0 LENGTH=3 CLIENTS=(16 250) ;;
		-h | --help) usage && exit 0 ;;
		--?*)
			[ $# -ge 2 ] || die "$1 wants a value (see --help)"
			parse_value "$1" "$2"
			shift
			;;
		*) die "unknown argument $1 (see --help)" ;;
		esac
		shift
	done
}

parse_value()
{
	case $1 in
	--systems) IFS=, read -ra SYSTEMS <<< "$2" ;;
	--clients) IFS=, read -ra CLIENTS <<< "$2" ;;
	--modes) IFS=, read -ra MODES <<< "$2" ;;
	--skip) SKIP=,$2, ;;
	--script) SCRIPT=$2 ;;
	--report) WHAT=report OUT=$2 ;;
	--out) OUT=$2 ;;
	--rounds | --discard | --seconds | --pool | --proxies | --threads | --scale | --idle)
		[[ $2 =~ ^[0-9]+$ ]] || die "$1 wants a number, not '$2'"
		;;&
	--rounds) ROUNDS=$2 ;;
	--discard) DISCARD=$2 ;;
	--seconds) LENGTH=$2 ;;
	--pool) POOL=$2 ;;
	--proxies) PROXIES=$2 ;;
	--threads) THREADS=$2 ;;
	--scale) SCALE=$2 ;;
	--idle) WHAT=idle IDLE=$2 ;;
	*) [[ $1 =~ ^--(rounds|discard|seconds|pool|proxies|threads|scale|idle)$ ]] ||
		die "unknown option $1 (see --help)" ;;
	esac
}

# -- the systems -----------------------------------------------------------

# system_binary NAME: empty when there is none.
system_binary()
{
	case $1 in
	pgweir) realpath "$PGWEIR" ;;
	pgbouncer) echo "$PGBOUNCER" ;;
	haproxy) echo "$HAPROXY" ;;
	direct) echo "$PG_BIN/postgres" ;;
	*) die "unknown system $1 (pgweir, pgbouncer, haproxy, direct)" ;;
	esac
}

# Keeps in SYSTEMS what can be run, and says what cannot.
systems_check()
{
	local name binary kept=()

	for name in "${SYSTEMS[@]}"; do
		binary=$(system_binary "$name") || exit 1
		if [ -x "$binary" ]; then
			kept+=("$name")
		else
			echo "$name is left out: ${binary:-no such program in PATH} (pgweir: make; others: apt install $name)"
		fi
	done
	SYSTEMS=("${kept[@]}")
	[ ${#SYSTEMS[@]} -gt 0 ] || die 'nothing to measure'
}

# systems_leave_out NAME...: those that a measurement makes no sense of.
systems_leave_out()
{
	local name kept=()

	for name in "${SYSTEMS[@]}"; do
		[[ " $* " == *" $name "* ]] || kept+=("$name")
	done
	SYSTEMS=("${kept[@]}")
	[ ${#SYSTEMS[@]} -gt 0 ] || die 'nothing to measure'
}

system_version()
{
	case $1 in
	direct) echo "PostgreSQL $(pg_version)" ;;
	haproxy) "$HAPROXY" -v | awk 'NR == 1 { print "haproxy", $3 }' ;;
	*) "$(system_binary "$1")" -V | head -n 1 ;;
	esac
}

# system_start NAME MAX_CLIENTS: a fresh process, so that each run begins with
# the same memory. Leaves SYSTEM_PID (empty for direct) and SYSTEM_PORT.
system_start()
{
	local name=$1 max=$2

	SYSTEM_PID=
	SYSTEM_PORT=$PG_PORT
	case $name in
	direct) return 0 ;;
	haproxy) haproxy_start "$max" || return 1 ;;
	*)
		pooler_start "$(system_binary "$name")" bench "$PROXIES" \
			"default_pool_size = $POOL" "max_client_conn = $max" \
			'listen_backlog = 1024' 'log_connections = 0' \
			'log_disconnections = 0' 'log_stats = 0' || return 1
		;;
	esac
	SYSTEM_PID=$SPAWNED
	SYSTEM_PORT=$PORT
}

haproxy_start()
{
	local config=$BENCH_TMP/haproxy.cfg log=$BENCH_TMP/haproxy.log

	bench_find_port
	cat > "$config" << TEXT
global
	nbthread 1
	maxconn $1
defaults
	mode tcp
	timeout connect 30s
	timeout client 1h
	timeout server 1h
listen postgresql
	bind 127.0.0.1:$PORT
	bind $BENCH_TMP/.s.PGSQL.$PORT mode 777
	server postgresql $([ -n "$UNIX" ] && echo "$PG_HOST/.s.PGSQL.$PG_PORT" || echo "$PG_HOST:$PG_PORT")
TEXT
	bench_spawn "$log" "${BENCH_AS[@]}" "$HAPROXY" -db -f "$config"
	bench_wait_for "$SPAWNED" "$log" haproxy \
		psql -XAtq -h 127.0.0.1 -p "$PORT" -U bench -c 'select 1' bench
}

system_stop()
{
	[ -z "$SYSTEM_PID" ] || bench_stop "$SYSTEM_PID"
	pg_wait_disconnected bench
}

# -- results ---------------------------------------------------------------

# describe_machine: what the reader of the figures has to know.
describe_machine()
{
	local name

	awk -F': *' '/^model name/ { model = $2; n++ } END {
		printf "* %d x %s, ", n, model != "" ? model : "unknown CPU" }' /proc/cpuinfo
	awk '/^MemTotal/ { printf "%.0f GiB\n", $2 / 1048576 }' /proc/meminfo
	printf '* %s, Linux %s\n' "$(. /etc/os-release && echo "$PRETTY_NAME")" "$(uname -r)"
	printf '* PostgreSQL %s; ' "$(pg_version)"
	for name in "${SYSTEMS[@]}"; do
		[ "$name" = direct ] || printf '%s; ' "$(system_version "$name")"
	done
	printf 'pgbench -b %s -j %s, scale %s, over %s\n' "$SCRIPT" "$THREADS" "$SCALE" \
		"$([ -n "$UNIX" ] && echo 'Unix sockets' || echo 'TCP on loopback')"
	printf '* pool of %s server connections, pgweir with %s proxy thread(s), haproxy with one thread\n' \
		"$POOL" "$PROXIES"
	printf '* %s; load average at the start %s\n' "$(date +%Y-%m-%d)" \
		"$(cut -d' ' -f1-3 /proc/loadavg)"
}

# The report is made from the files alone, so it can be made again.
report()
{
	local file

	cat "$OUT/machine.md" || exit 1
	for file in "$OUT"/{load,strace,idle}.csv; do
		[ -s "$file" ] || continue
		awk -f bench/report.awk -v what="$(basename "$file" .csv)" "$file"
	done
}

# announce N TEXT: a progress line, with the time that is left.
PROGRESS_DONE=0
PROGRESS_ALL=0
announce()
{
	local left=

	if [ "$PROGRESS_DONE" -gt 0 ]; then
		left=$(((SECONDS - PROGRESS_BEGIN) * (PROGRESS_ALL - PROGRESS_DONE) / PROGRESS_DONE))
		left=$(printf ', %d:%02d left' $((left / 60)) $((left % 60)))
	fi
	PROGRESS_DONE=$((PROGRESS_DONE + 1))
	printf '[%d/%d%s] %s ' "$PROGRESS_DONE" "$PROGRESS_ALL" "$left" "$*"
}

# -- load: tps, CPU, latency, memory ---------------------------------------

pgbench_arguments()
{
	ARGUMENTS=(-M "$1" -j "$THREADS" -h "$CLIENT_HOST" -p "$SYSTEM_PORT" -U bench)
	if [ -f "$SCRIPT" ]; then
		ARGUMENTS+=(-f "$(realpath "$SCRIPT")")
	else
		ARGUMENTS+=(-b "$SCRIPT")
	fi
	[ -z "$LATENCY" ] || ARGUMENTS+=("$LATENCY")
	ARGUMENTS+=(bench)
}

# load_cell ROUND SYSTEM MODE CLIENTS: one row of load.csv. A run that fails is
# a result, too.
load_cell()
{
	local round=$1 name=$2 mode=$3 clients=$4 run=$BENCH_TMP/run status=ok
	local tps='' average='' p99='' share='' cpu='' rss='' connections='' watch

	rm -f "$run".*
	if ! system_start "$name" $((clients + 50)) 2> "$run.err"; then
		status=failed
	else
		if [ -n "$SYSTEM_PID" ]; then
			process_watch "$SYSTEM_PID" "$run.watch"
			watch=$SPAWNED
		fi
		pgbench_arguments "$mode"
		pgbench_run "$run" "$clients" "$LENGTH" "${ARGUMENTS[@]}" || status=failed
		[ "$name" = direct ] || [ "$name" = haproxy ] ||
			connections=$(pg_query "select count(*) from pg_stat_activity where datname = 'bench'")
		[ -z "$SYSTEM_PID" ] || bench_stop "$watch"
		system_stop
	fi
	if [ $status = ok ]; then
		tps=$(pgbench_field "$run.out" tps)
		average=$(pgbench_field "$run.out" latency)
		[ -z "$LATENCY" ] || p99=$(pgbench_percentile "$run.log" 99)
		if [ -n "$SYSTEM_PID" ]; then
			share=$(process_cpu_share "$run.watch" "$RUN_FROM" "$RUN_TO")
			cpu=$(awk -v s="$share" -v tps="$tps" 'BEGIN { printf "%.2f", s / tps * 1e6 }')
			rss=$(awk '$3 > max { max = $3 } END { print max }' "$run.watch")
		fi
		printf '%.0f tps%s\n' "$tps" "${cpu:+, $cpu us}"
	else
		printf 'failed: %s\n' "$(grep -m 1 -i -E 'error|fatal|did not' "$run.err" || tail -n 1 "$run.err")"
	fi
	echo "$round,$name,$mode,$clients,$status,$tps,$average,$p99,$share,$cpu,$rss,$connections" >> "$OUT/load.csv"
}

measure_load()
{
	local round mode clients name

	echo "round,system,mode,clients,status,tps,latency_ms,p99_ms,cpu_share,cpu_us_per_tx,rss_kib,server_connections" > "$OUT/load.csv"
	PROGRESS_ALL=$(((ROUNDS + DISCARD) * ${#MODES[@]} * ${#CLIENTS[@]} * ${#SYSTEMS[@]}))
	# Rounds up to 0 are the discarded ones.
	for ((round = 1 - DISCARD; round <= ROUNDS; round++)); do
		for mode in "${MODES[@]}"; do
			for clients in "${CLIENTS[@]}"; do
				for name in "${SYSTEMS[@]}"; do
					announce "$mode, $clients clients, $name:"
					if [[ $SKIP == *",$name:$clients,"* ]]; then
						echo skipped
					else
						load_cell "$round" "$name" "$mode" "$clients"
					fi
				done
			done
		done
	done
}

# -- strace: system calls per transaction ----------------------------------

# Waits until transactions run, then counts for two seconds. pgbench's log
# tells afterwards how many transactions fell into them.
strace_watch()
{
	local pid=$1 run=$2 tracer

	# More than the ten clients of pgbench_run's first look write.
	until [ -n "$(find "$BENCH_TMP" -path "$run.log.*" -size +3k 2> /dev/null)" ]; do
		bench_nap 0.1
	done
	strace -f -c -o "$run.strace" -p "$pid" 2> "$run.strace-err" &
	tracer=$!
	trap 'kill "$tracer" 2> /dev/null; exit 1' TERM
	while grep -q '^TracerPid:[[:space:]]*0$' "/proc/$pid/status"; do
		bench_is_running "$tracer" || return 1
		bench_nap 0.02
	done
	echo "$EPOCHREALTIME" > "$run.strace-time"
	bench_nap 2
	echo "$EPOCHREALTIME" >> "$run.strace-time"
	kill "$tracer"
	wait "$tracer"
}

strace_cell()
{
	local name=$1 mode=$2 clients=$3 run=$BENCH_TMP/run watch n

	rm -f "$run".*
	system_start "$name" $((clients + 50)) || return 1
	pgbench_arguments "$mode"
	strace_watch "$SYSTEM_PID" "$run" &
	watch=$!
	BENCH_PIDS+=("$watch")
	if pgbench_run "$run" "$clients" 4 -l "${ARGUMENTS[@]}" && [ -s "$run.strace" ]; then
		n=$(cat "$run".log.* | awk -v times="$(tr '\n' ' ' < "$run.strace-time")" '
			BEGIN { split(times, t, " ") }
			{ at = $5 + $6 / 1e6 } at >= t[1] && at <= t[2] { n++ }
			END { print n }')
		awk -v n="$n" -v row="$name,$mode,$clients" '
			$1 ~ /^[0-9.]+$/ && $NF != "total" {
				printf "%s,%s,%.3f\n", row, $NF, $4 / n }' "$run.strace" >> "$OUT/strace.csv"
		echo "$n transactions"
	else
		echo "failed: $(cat "$run.err" "$run.strace-err" 2> /dev/null | head -n 2)"
	fi
	bench_stop "$watch"
	system_stop
}

measure_strace()
{
	local mode clients name

	command -v strace > /dev/null || die 'strace is not installed'
	echo "system,mode,clients,syscall,calls_per_tx" > "$OUT/strace.csv"
	systems_leave_out direct
	PROGRESS_ALL=$((${#MODES[@]} * ${#CLIENTS[@]} * ${#SYSTEMS[@]}))
	for mode in "${MODES[@]}"; do
		for clients in "${CLIENTS[@]}"; do
			for name in "${SYSTEMS[@]}"; do
				announce "$mode, $clients clients, $name:"
				strace_cell "$name" "$mode" "$clients"
			done
		done
	done
}

# -- idle: what idle clients weigh -----------------------------------------

idle_clients_build()
{
	IDLE_CLIENTS=$BENCH_TMP/idle_clients
	# shellcheck disable=SC2046 # flags, a word each
	${CC:-cc} -std=gnu11 -O2 -o "$IDLE_CLIENTS" bench/idle_clients.c \
		$(pkg-config --cflags --libs libpq) || die 'cannot build bench/idle_clients.c'
}

# idle_clients_open OUT: returns when all are connected. Leaves IDLE_PID.
idle_clients_open()
{
	(
		cd "$BENCH_TMP" || exit 1
		exec "$IDLE_CLIENTS" "host=$CLIENT_HOST port=$SYSTEM_PORT user=bench dbname=bench" \
			"$IDLE" 'select 1' < "$BENCH_TMP/leave" > "$1.idle" 2>&1
	) &
	IDLE_PID=$!
	BENCH_PIDS+=("$IDLE_PID")
	until grep -q ready "$1.idle" 2> /dev/null; do
		bench_is_running "$IDLE_PID" || return 1
		bench_nap 0.05
	done
}

# Lets them go and waits until the pooler has closed their sockets.
idle_clients_leave()
{
	local tries open

	echo go >& "$IDLE_LEAVE"
	wait "$IDLE_PID" || return 1
	bench_forget "$IDLE_PID"
	for ((tries = 0; tries < 400; tries++)); do
		open=(/proc/"$SYSTEM_PID"/fd/*)
		[ ${#open[@]} -gt $((POOL + 100)) ] || break
		bench_nap 0.05
	done
	# Memory may be given back a little later.
	bench_nap 3
}

# idle_load RUN: 64 active clients; leaves ACTIVE_TPS and ACTIVE_CPU.
idle_load()
{
	local watch status

	process_watch "$SYSTEM_PID" "$1.watch"
	watch=$SPAWNED
	pgbench_run "$1" 64 "$LENGTH" "${ARGUMENTS[@]}"
	status=$?
	bench_stop "$watch"
	[ "$status" = 0 ] || return 1
	ACTIVE_TPS=$(pgbench_field "$1.out" tps)
	ACTIVE_CPU=$(awk -v s="$(process_cpu_share "$1.watch" "$RUN_FROM" "$RUN_TO")" \
		-v tps="$ACTIVE_TPS" 'BEGIN { printf "%.2f", s / tps * 1e6 }')
}

idle_cell()
{
	local round=$1 name=$2 run=$BENCH_TMP/run before with after tps cpu

	rm -f "$run".*
	system_start "$name" $((IDLE + 200)) || return 1
	pgbench_arguments simple
	idle_load "$run" || return 1
	tps=$ACTIVE_TPS cpu=$ACTIVE_CPU
	process_look "$SYSTEM_PID"
	before=$RSS_KIB
	idle_clients_open "$run" || return 1
	process_look "$SYSTEM_PID"
	with=$RSS_KIB
	idle_load "$run" || return 1
	idle_clients_leave || return 1
	process_look "$SYSTEM_PID"
	after=$RSS_KIB
	echo "$round,$name,$IDLE,$before,$with,$after,$tps,$ACTIVE_TPS,$cpu,$ACTIVE_CPU" >> "$OUT/idle.csv"
	awk -v b="$before" -v w="$with" -v a="$after" -v n="$IDLE" 'BEGIN {
		printf "%.2f KiB a client; RSS %d, %d, %d KiB\n", (w - b) / n, b, w, a }'
}

measure_idle()
{
	local round name limit

	limit=$(ulimit -n)
	if [ "$limit" != unlimited ] && [ $((IDLE + 300)) -gt "$limit" ]; then
		IDLE=$((limit - 300))
		echo "only $IDLE idle clients: the limit of open files is $limit"
	fi
	systems_leave_out direct haproxy
	idle_clients_build
	mkfifo "$BENCH_TMP/leave"
	# Held open at this end, so that opening it blocks nobody.
	exec {IDLE_LEAVE}<> "$BENCH_TMP/leave"
	echo "round,system,idle,rss_before,rss_with,rss_after,tps_alone,tps_beside,cpu_alone,cpu_beside" > "$OUT/idle.csv"
	PROGRESS_ALL=$((ROUNDS * ${#SYSTEMS[@]}))
	for ((round = 1; round <= ROUNDS; round++)); do
		for name in "${SYSTEMS[@]}"; do
			announce "$IDLE idle clients, $name:"
			idle_cell "$round" "$name" || echo "failed: $(cat "$BENCH_TMP"/run.{err,idle} 2> /dev/null | tail -n 2)"
			system_stop
		done
	done
}

# -- main ------------------------------------------------------------------

start_server()
{
	local max=0 clients

	for clients in "${CLIENTS[@]}"; do
		[ "$clients" -le "$max" ] || max=$clients
	done
	echo "making a scratch cluster, loading pgbench's tables at scale $SCALE"
	pg_start bench $((max + 100)) 'jit = off'
	bench_run pgbench -i -q -s "$SCALE" -h 127.0.0.1 -p "$PG_PORT" -U bench bench \
		> "$BENCH_TMP/load.log" 2>&1 || die "pgbench -i failed: $(tail -n 3 "$BENCH_TMP/load.log")"
	pg_query 'vacuum analyze' bench && pg_query checkpoint
}

parse_arguments "$@"
if [ "$WHAT" = report ]; then
	report
	exit
fi
ulimit -n "$(ulimit -H -n)"
bench_begin compare
systems_check
CLIENT_HOST=127.0.0.1
if [ -n "$UNIX" ]; then
	CLIENT_HOST=$BENCH_TMP
	PG_HOST=$BENCH_TMP
fi
OUT=${OUT:-${TMPDIR:-/tmp}/pgweir-bench-$(date +%Y%m%d-%H%M%S)}
mkdir -p "$OUT" || exit 1
OUT=$(realpath "$OUT")
describe_machine > "$OUT/machine.md"
echo "results go to $OUT"
start_server
PROGRESS_BEGIN=$SECONDS
"measure_$WHAT"
report | tee "$OUT/report.md"
