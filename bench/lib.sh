# shellcheck shell=bash
# SPDX-License-Identifier: ISC
#
# What the demo and some tests share: a temporary folder, a scratch
# PostgreSQL cluster, poolers in front of it, pgbench, and the measuring of
# a process. Sourced, never run.
#
# Two promises are kept here and nowhere else: whatever is written goes into
# $BENCH_TMP, which bench_end removes; whatever is started is remembered by
# its pid in BENCH_PIDS, and only those pids are ever signalled.
#
# Needs bash 5, coreutils, util-linux and awk.

set -u
export LC_ALL=C                 # decimal points, sorting, messages
unset PGHOST PGPORT PGUSER PGDATABASE PGPASSWORD PGSERVICE PGOPTIONS PGSSLMODE
export PGCONNECT_TIMEOUT=30

BENCH_TMP=
BENCH_USER=                     # whom the servers run as; empty: whom we are
BENCH_AS=()                     # the words that make a command run as that user
BENCH_PIDS=()                   # in the order of their start
PAGE_KIB=$(($(getconf PAGESIZE) / 1024))
PG_BIN=
PG_PORT=
PG_HOST=127.0.0.1               # where poolers look for PostgreSQL
SPAWNED=                        # the pid of what was started last
PORT=
RUN_FROM=
# shellcheck disable=SC2034 # for those who source this
RUN_TO=

BENCH_MIDLINE=                  # a newline while a line of output is unfinished

die()
{
	printf '%s%s: %s\n' "$BENCH_MIDLINE" "${0##*/}" "$*" >&2
	exit 1
}

# -- begin and end ---------------------------------------------------------

# bench_begin NAME: the temporary folder, and the promise to remove it.
bench_begin()
{
	local parent=${TMPDIR:-/tmp} group

	trap bench_end EXIT
	trap 'exit 130' INT
	trap 'echo "stopped by SIGHUP" >&2; exit 129' HUP
	trap 'echo "stopped by SIGTERM" >&2; exit 143' TERM
	pg_find
	bench_find_user
	# A Unix socket's path has room for 107 bytes, and the servers' user
	# must be able to get there.
	if [ ${#parent} -gt 60 ] || ! "${BENCH_AS[@]}" test -x "$parent"; then
		parent=/tmp
	fi
	BENCH_TMP=$(mktemp -d "$parent/pgweir-$1.XXXXXX") || exit 1
	if [ -n "$BENCH_USER" ]; then
		group=$(id -g "$BENCH_USER")
		chown "$BENCH_USER:$group" "$BENCH_TMP" || exit 1
	fi
	mkfifo "$BENCH_TMP/never" || exit 1
	exec {BENCH_NEVER}<> "$BENCH_TMP/never"
}

# Runs however the script ends: stops what was started, last one first.
bench_end()
{
	local status=$? i

	trap '' HUP INT TERM
	for ((i = ${#BENCH_PIDS[@]} - 1; i >= 0; i--)); do
		bench_stop "${BENCH_PIDS[i]}"
	done
	[ -z "$BENCH_TMP" ] || rm -rf "$BENCH_TMP"
	exit "$status"
}

# PostgreSQL and pgweir refuse to run as root.
bench_find_user()
{
	local name

	[ "$(id -u)" = 0 ] || return 0
	command -v setpriv > /dev/null || die 'setpriv (util-linux) is missing'
	for name in postgres nobody; do
		id -u "$name" > /dev/null 2>&1 || continue
		BENCH_USER=$name
		# setpriv becomes its command: the pid stays the same.
		BENCH_AS=(setpriv --reuid="$name" --regid="$(id -g "$name")" --init-groups --)
		return 0
	done
	die 'run as root, but there is neither a user postgres nor nobody'
}

# -- processes -------------------------------------------------------------

# Waits a moment without starting a process.
bench_nap()
{
	read -rt "$1" -u "$BENCH_NEVER" || return 0
}

# bench_spawn LOG COMMAND...: starts a server in a session of its own, so
# that Ctrl-C reaches only the script, which then stops things in order.
# The pid is left in SPAWNED.
bench_spawn()
{
	local log=$1
	shift
	(cd "$BENCH_TMP" && exec setsid "$@") >> "$log" 2>&1 < /dev/null &
	SPAWNED=$!
	BENCH_PIDS+=("$SPAWNED")
}

# bench_run COMMAND...: runs it to its end, but gives way to signals at
# once, which a command in the foreground would not.
bench_run()
{
	local status

	(cd "$BENCH_TMP" && exec "$@") &
	SPAWNED=$!
	BENCH_PIDS+=("$SPAWNED")
	wait "$SPAWNED"
	status=$?
	bench_forget "$SPAWNED"
	return "$status"
}

bench_forget()
{
	local pid kept=()

	for pid in "${BENCH_PIDS[@]}"; do
		[ "$pid" = "$1" ] || kept+=("$pid")
	done
	BENCH_PIDS=("${kept[@]}")
}

bench_is_running()
{
	local stat

	# A zombie still answers to kill -0.
	read -r stat 2> /dev/null < "/proc/$1/stat" || return 1
	stat=${stat##*) }
	[ "${stat%% *}" != Z ]
}

# bench_stop PID: SIGINT to PostgreSQL is its fast shutdown, to a pooler it
# would be a wait for transactions; nobody has a claim on those any more.
bench_stop()
{
	local pid=$1 first=TERM signal tries

	case $(cat "/proc/$pid/comm" 2> /dev/null) in
	postgres) first=INT ;;
	pgweir* | pgbouncer*) first=QUIT ;;
	esac
	for signal in "$first" QUIT KILL; do
		kill -"$signal" "$pid" 2> /dev/null || break
		for ((tries = 0; tries < 200; tries++)); do
			bench_is_running "$pid" || break 2
			bench_nap 0.02
		done
	done
	wait "$pid" 2> /dev/null
	bench_forget "$pid"
}

# bench_wait_for PID LOG WHAT COMMAND...: until COMMAND succeeds; gives up
# with the log's end when the process dies or 20 seconds have passed.
bench_wait_for()
{
	local pid=$1 log=$2 what=$3 tries
	shift 3

	for ((tries = 0; tries < 1000; tries++)); do
		"$@" > /dev/null 2>&1 && return 0
		bench_is_running "$pid" || break
		bench_nap 0.02
	done
	printf '%s%s did not start; its last words:\n' "$BENCH_MIDLINE" "$what" >&2
	tail -n 12 "$log" | sed 's/^/  /' >&2
	return 1
}

# -- ports -----------------------------------------------------------------

declare -A BENCH_PORTS_TAKEN=()

# Leaves in PORT a port that nothing is bound to, below the range from which
# the kernel takes ports for outgoing connections.
bench_find_port()
{
	local used

	used=" $(awk 'FNR > 1 { split($2, a, ":"); printf "%s ", a[2] }' \
		/proc/net/tcp /proc/net/tcp6 2> /dev/null)"
	while :; do
		PORT=$((12000 + RANDOM % 20000))
		[ -z "${BENCH_PORTS_TAKEN[$PORT]:-}" ] || continue
		[[ $used == *" $(printf %04X "$PORT") "* ]] || break
	done
	BENCH_PORTS_TAKEN[$PORT]=1
}

# -- PostgreSQL ------------------------------------------------------------

# The newest server in Debian's layout, else pg_config's, else PATH's.
pg_find()
{
	local dir

	while read -r dir; do
		if [ -x "$dir/initdb" ] && [ -x "$dir/postgres" ]; then
			PG_BIN=$dir
			break
		fi
	done < <(
		printf '%s\n' /usr/lib/postgresql/*/bin | sort -rV
		pg_config --bindir 2> /dev/null
		dirname "$(command -v initdb)" 2> /dev/null
	)
	[ -n "$PG_BIN" ] ||
		die "no PostgreSQL server found (Debian and Ubuntu: apt install postgresql)"
	PATH=$PG_BIN:$PATH
	command -v pgbench > /dev/null ||
		die "no pgbench found (Debian and Ubuntu: apt install postgresql)"
}

pg_version()
{
	"$PG_BIN/postgres" -V | awk '{ print $3 }'
}

# pg_start NAME MAX_CONNECTIONS [SETTING...]: a scratch cluster with a role
# and a database of that name. Everybody is trusted: it listens on loopback
# and on a socket in the temporary folder. Its data are thrown away, so they
# need not survive a crash.
pg_start()
{
	local name=$1 max=$2 data=$BENCH_TMP/data log=$BENCH_TMP/postgres.log setting
	shift 2

	bench_find_port
	PG_PORT=$PORT
	bench_run "${BENCH_AS[@]}" initdb -D "$data" -U postgres -A trust -E UTF8 \
		--locale=C --no-sync > "$BENCH_TMP/initdb.log" 2>&1 ||
		die "initdb failed: $(tail -n 5 "$BENCH_TMP/initdb.log")"
	for setting in "port = $PG_PORT" "max_connections = $max" \
		"listen_addresses = '127.0.0.1'" \
		"unix_socket_directories = '$BENCH_TMP'" \
		'shared_buffers = 256MB' 'fsync = off' 'full_page_writes = off' \
		'max_wal_size = 4GB' 'autovacuum = off' "$@"; do
		printf '%s\n' "$setting" >> "$data/postgresql.conf"
	done
	bench_spawn "$log" "${BENCH_AS[@]}" postgres -D "$data"
	bench_wait_for "$SPAWNED" "$log" PostgreSQL \
		pg_isready -q -h "$BENCH_TMP" -p "$PG_PORT" || exit 1
	pg_query "create role $name login" || die "cannot create the role $name"
	pg_query "create database $name owner $name" ||
		die "cannot create the database $name"
}

# pg_query SQL [DATABASE]: as the superuser, not through a pooler.
pg_query()
{
	psql -XAtq -h "$BENCH_TMP" -p "$PG_PORT" -U postgres -d "${2:-postgres}" -c "$1"
}

# pg_wait_disconnected NAME: until the last server process of that database
# is gone, so that one run does not weigh on the next.
pg_wait_disconnected()
{
	local tries n=

	for ((tries = 0; tries < 600; tries++)); do
		n=$(pg_query "select count(*) from pg_stat_activity where datname = '$1'")
		[ "$n" != 0 ] || return 0
		bench_nap 0.05
	done
	die "${n:-unknown} connections to $1 do not go away"
}

# pg_watch_connections NAME FILE: writes the number of NAME's server
# connections to FILE five times a second, over one connection to another
# database. Ends with bench_stop $SPAWNED.
pg_watch_connections()
{
	printf '%s\n' "select count(*) from pg_stat_activity where datname = '$1' \\watch 0.2" \
		> "$2.sql"
	bench_spawn "$2" psql -XAtq -h "$BENCH_TMP" -p "$PG_PORT" -U postgres \
		-d postgres -f "$2.sql"
}

# -- poolers ---------------------------------------------------------------

# pooler_start BINARY DATABASE PROXIES SETTING...: pgweir or pgbouncer, which
# read the same file; only pgweir knows of proxies. BINARY is an absolute path.
# Leaves SPAWNED and PORT.
pooler_start()
{
	local binary=$1 database=$2 proxies=$3 name=${1##*/} log setting
	shift 3

	bench_find_port
	log=$BENCH_TMP/$name.log
	printf '"%s" ""\n' "$database" > "$BENCH_TMP/users.txt"
	{
		printf '[databases]\n%s = host=%s port=%s dbname=%s\n\n' \
			"$database" "$PG_HOST" "$PG_PORT" "$database"
		case $name in
		pgbouncer*) printf '[pgbouncer]\n' ;;
		*) printf '[pgweir]\nproxies = %s\n' "$proxies" ;;
		esac
		# As root it drops to that user itself: the binary may lie in a
		# folder that only root can enter.
		[ -z "$BENCH_USER" ] || printf 'user = %s\n' "$BENCH_USER"
		printf '%s\n' "unix_socket_dir = $BENCH_TMP" \
			'listen_addr = 127.0.0.1' "listen_port = $PORT" \
			'auth_type = trust' "auth_file = $BENCH_TMP/users.txt" \
			'pool_mode = transaction' "$@"
	} > "$BENCH_TMP/$name.ini"
	bench_spawn "$log" "$binary" "$BENCH_TMP/$name.ini"
	bench_wait_for "$SPAWNED" "$log" "$name" \
		psql -XAtq -h 127.0.0.1 -p "$PORT" -U "$database" -c 'select 1' "$database"
}

# -- measuring -------------------------------------------------------------

# process_look PID: leaves in CPU_NS the nanoseconds on a CPU, user and system,
# of all its threads, and in RSS_KIB its resident memory. Starts no process.
# The clock ticks of /proc/PID/stat (10 ms) serve where the kernel keeps no
# schedstat.
process_look()
{
	local ns file stat pages

	CPU_NS=0
	for file in /proc/"$1"/task/*/schedstat; do
		read -r ns _ 2> /dev/null < "$file" && CPU_NS=$((CPU_NS + ns))
	done
	if [ "$CPU_NS" = 0 ] && read -r stat 2> /dev/null < "/proc/$1/stat"; then
		read -ra stat <<< "${stat##*) }"
		CPU_NS=$(((stat[11] + stat[12]) * 10000000))
	fi
	read -r _ pages _ 2> /dev/null < "/proc/$1/statm" || return 1
	RSS_KIB=$((pages * PAGE_KIB))
}

# process_watch PID FILE: in the background, ten times a second, a line with
# the time, CPU_NS and RSS_KIB; until it ends or bench_stop $SPAWNED.
process_watch()
{
	process_watch_loop "$1" > "$2" &
	SPAWNED=$!
	BENCH_PIDS+=("$SPAWNED")
}

process_watch_loop()
{
	while process_look "$1"; do
		printf '%s %s %s\n' "$EPOCHREALTIME" "$CPU_NS" "$RSS_KIB"
		bench_nap 0.1
	done
}

# process_cpu_share FILE FROM TO: CPU seconds per second between two times,
# from the file of process_watch.
process_cpu_share()
{
	awk -v from="$2" -v to="$3" '
	$1 >= from && $1 <= to { if (!n++) { t0 = $1; c0 = $2 }; t1 = $1; c1 = $2 }
	END { if (t1 > t0) printf "%.5f", (c1 - c0) / (t1 - t0) / 1e9 }' "$1"
}

# -- pgbench ---------------------------------------------------------------

# pgbench_run OUT CLIENTS SECONDS ARGUMENT...: a run that measures for about
# SECONDS. pgbench's -T counts from its start, its figures count from the
# moment when all clients are connected; so it is told a longer time, by what
# ten clients need to connect, and once more with more of it when that was too
# short. Leaves RUN_FROM and RUN_TO, times safely inside of what was measured,
# OUT.out and OUT.err, and with -l OUT.log.*. Fails when pgbench does, or one of
# its clients, or when connecting left no time.
pgbench_run()
{
	local out=$1 clients=$2 seconds=$3 connecting factor
	shift 3

	[[ " $* " != *" -l "* ]] || set -- --log-prefix="$out.log" "$@"
	bench_run pgbench -n -t 1 -c 10 "$@" > "$out.out" 2> "$out.err" || return 1
	connecting=$(pgbench_field "$out.out" connecting)
	for factor in 1.2 3; do
		pgbench_timed_run "$out" "$clients" "$(awk -v ms="$connecting" -v n="$clients" \
			-v t="$seconds" -v factor="$factor" \
			'BEGIN { print int(t + ms / 1e4 * n * factor + 0.9) }')" "$@" || return 1
		awk -v from="$RUN_FROM" -v to="$RUN_TO" -v t="$seconds" \
			-v n="$(pgbench_field "$out.out" transactions)" \
			'BEGIN { exit to - from < t / 2 || n == 0 }' && return 0
	done
	echo "error: connecting left no time to measure" >> "$out.err"
	return 1
}

pgbench_timed_run()
{
	local out=$1 clients=$2 total=$3 begin=$EPOCHREALTIME
	shift 3

	rm -f "$out".log.*
	bench_run pgbench -n -T "$total" -c "$clients" "$@" > "$out.out" 2> "$out.err" ||
		return 1
	RUN_FROM=$(awk -v begin="$begin" -v ms="$(pgbench_field "$out.out" connecting)" \
		'BEGIN { printf "%.6f", begin + ms / 1000 + 0.1 }')
	RUN_TO=$(awk -v begin="$begin" -v t="$total" 'BEGIN { printf "%.6f", begin + t - 0.1 }')
}

# pgbench_field FILE NAME: one figure of pgbench's report.
pgbench_field()
{
	awk -v want="$2" '
	want == "tps" && /^tps = / && /without initial|excluding/ { print $3 }
	want == "transactions" && /^number of transactions actually/ { split($NF, a, "/"); print a[1] }
	want == "failed" && /^number of failed transactions/ { print $5 }
	want == "latency" && /^latency average = / { print $4 }
	want == "connecting" && /^initial connection time = / { print $5 }
	' "$1"
}

# pgbench_percentile PREFIX P: milliseconds, from the per-transaction logs.
pgbench_percentile()
{
	cut -d' ' -f3 "$1".* | sort -n | awk -v p="$2" '
	{ us[NR] = $1 }
	END { if (NR) { i = int(NR * p / 100); printf "%.1f", us[i < 1 ? 1 : i] / 1000 } }'
}
