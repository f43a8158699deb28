-- YCSB's read: a row of ten fields of 100 bytes by its key. Keys follow Zipf's law with 0.99; permute() spreads the
-- popular ones over the table. Needs: rows, zetan, second, eta, alpha (pgweir-bench computes them), pgbench 14.
\set u random(0, 999999999) / 1000000000.0
\set uz :u * :zetan
\set rank case when :uz < 1 then 0 when :uz < :second then 1 else least(:rows - 1, int(:rows * pow(:eta * :u - :eta + 1, :alpha))) end
\set key permute(:rank, :rows, 42)
select field0, field1, field2, field3, field4, field5, field6, field7, field8, field9 from ycsb where key = :key;
