-- One indexed select.
\set aid random(1, :rows)
select abalance from pgbench_accounts where aid = :aid;
