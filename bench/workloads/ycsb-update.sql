-- YCSB's update: one field of a row by its key. See ycsb-read.sql.
\set u random(0, 999999999) / 1000000000.0
\set uz :u * :zetan
\set rank case when :uz < 1 then 0 when :uz < :second then 1 else least(:rows - 1, int(:rows * pow(:eta * :u - :eta + 1, :alpha))) end
\set key permute(:rank, :rows, 42)
\set filling random(100000000, 999999999)
update ycsb set field0 = repeat(:filling::int::text, 11) where key = :key;
