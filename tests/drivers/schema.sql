-- SPDX-License-Identifier: ISC
-- What the jobs work on, the same in both databases. Rows belong to the session number s.
create table account (s int, id int, balance numeric not null, note text, primary key (s, id));
create table copied (s int, id int, note text);
