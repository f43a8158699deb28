-- Keeps one server process busy for some tens of milliseconds.
select count(*) from generate_series(1, 200000) as n where n % 7 = 0;
