#!/usr/bin/env bash
# SPDX-License-Identifier: ISC
# psql: one script, in which every \echo of a job's name labels what follows it; and a SIGINT.

session=$DRIVER_SESSION
job=

# Prefixes each line with the job it belongs to; without psql's place in the script and the numbers of large objects.
label()
{
	local line
	while IFS= read -r line; do
		if [[ $line == '@ '* ]]; then
			job=${line#@ }
			continue
		fi
		line=${line#psql:<stdin>:+([0-9]): }
		printf '%s: %s\n' "$job" "${line/large object +([0-9])/large object OID}"
	done
}
shopt -s extglob

run_psql()
{
	psql -XAtq -v VERBOSITY=terse -v SHOW_CONTEXT=never -v s="$session" -f - 2>&1
}

echo 'prepared: not in this driver: before version 16 it names no statements'
echo 'reuse: not in this driver: before version 16 it names no statements'

run_psql <<'SQL' | label
\echo @ changed-table
select 'changing_' || :s as t \gset
create table :t as select 1 as a;
select * from :t;
alter table :t add b text default 'b';
select * from :t;
select * from :t \gdesc
drop table :t;

\echo @ transaction
insert into account values (:s, 1, 100, 'one'), (:s, 2, 50, 'two');
begin;
update account set balance = balance - 1 where s = :s and id = 1;
commit;
begin;
update account set balance = balance + 1 where s = :s and id = 2;
rollback and chain;
update account set balance = balance + 10 where s = :s and id = 2;
commit and chain;
update account set balance = balance + 100 where s = :s and id = 2;
rollback;
begin isolation level serializable read only;
show transaction_isolation;
update account set balance = 0 where s = :s;
commit;
\set AUTOCOMMIT off
select id, balance from account where s = :s order by id;
update account set balance = balance + 1000 where s = :s and id = 1;
rollback;
select id, balance from account where s = :s order by id;
commit;
\set AUTOCOMMIT on

\echo @ savepoint
begin;
insert into account values (:s, 10, 1, 'kept');
savepoint a;
insert into account values (:s, 11, 1, 'undone');
rollback to a;
insert into account values (:s, 10, 2, 'twice');
rollback to a;
insert into account values (:s, 12, 1, 'kept');
release a;
commit;
select id, note from account where s = :s and id between 10 and 12 order by id;
\set ON_ERROR_ROLLBACK on
begin;
select 1 / 0;
select 'goes on';
commit;
\set ON_ERROR_ROLLBACK off

\echo @ error
begin;
select 1 / 0;
select 1;
\echo :SQLSTATE :ERROR
commit;
selec 1;
select 1\; select 1 / 0\; select 2;
select * from missing \gdesc
select 1 as a, 'x'::text as b \gdesc
select format('select %s', i) from generate_series(1, 5) i \gexec
select 'fine';

\echo @ copy
\copy (select :s) to /dev/null
copy (select i from generate_series(1, 3) i) to stdout;
copy copied from stdin;
1	1	x
1	not a number	x
\.
begin;
copy copied (s, id, note) from stdin;
1	1	given up with the transaction
\.
rollback;
select count(*) from copied where s = 1;

\echo @ cursor
begin;
declare walk scroll cursor for select i, md5(i::text) from generate_series(1, 3000) i;
fetch 3 from walk;
move absolute 4000 in walk;
fetch backward 2 from walk;
fetch all from walk \g | md5sum
commit;
\set FETCH_COUNT 700
select i, md5(i::text) from generate_series(1, 3000) i \g | md5sum
\set FETCH_COUNT 0

\echo @ large-result
select i, md5(i::text) from generate_series(1, 3000) i \g | md5sum
select repeat('0123456789', 300000) \g | md5sum

\echo @ batch
select 1\; select 2\; select 3;
begin\; insert into account values (:s, 100, 1)\; commit;
insert into account values (:s, 101, 1)\; select 1 / 0;
select id from account where s = :s and id >= 100;

\echo @ reconnect
\c
select 'again';
\c - - - :PORT
select 'and again';
SQL

# FunctionCall, a file, and a copy of a file.
file=$(mktemp) || exit 1
trap 'rm -f "$file" "$file.out"' EXIT
seq 5000 | sed "s/.*/$session	&	note &/" > "$file"
run_psql <<SQL | label
\\echo @ large-object
\\lo_import $file
\\lo_export :LASTOID $file.out
\\! cmp $file $file.out && echo equal
\\lo_unlink :LASTOID
\\lo_export :LASTOID $file.out
\\echo @ copy
\\copy copied from $file
\\copy (select * from copied where s = $session order by id) to $file.out
\\! cmp $file $file.out && echo equal
SQL

# Two at once, their transactions mixed.
for first in 1000 1001; do
	for ((i = 0; i < 8; i++)); do
		printf 'begin; insert into account values (%d, %d, %d); commit;\n' "$session" $((first + 2 * i)) $i
	done | run_psql &
done
wait
echo "sessions: $(psql -XAtq -c "select count(*), sum(balance) from account where s = $session and id between 1000 and 8999")"

# Ctrl-C once the server runs the statement: it ends with an error, and psql with its script.
psql -XAtq -v VERBOSITY=terse -c "select pg_sleep(60) -- $session" > "$file" 2>&1 &
pid=$!
until [ "$(psql -XAtq -d "$OBSERVER" -c "select count(*) from pg_sleep(0.1), pg_stat_activity
	where query = 'select pg_sleep(60) -- $session' and wait_event = 'PgSleep'")" = 1 ]; do :; done
kill -INT $pid
wait $pid
echo "cancel: exit status $?"
sed 's/^/cancel: /' "$file"
