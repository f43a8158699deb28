-- Holds a transaction, so a server connection, while the client thinks.
\set aid random(1, :rows)
begin;
select abalance from pgbench_accounts where aid = :aid;
\sleep 20 ms
select abalance from pgbench_accounts where aid = :aid;
commit;
