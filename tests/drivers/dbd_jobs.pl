# SPDX-License-Identifier: ISC
# DBD::Pg: server-side statements dbdpg_p<pid>_<n> from the second use on, given up with DEALLOCATE.

use strict;
use warnings;
use DBI;
use DBD::Pg qw(:pg_types :async);
use Digest::MD5 qw(md5_hex);

$| = 1;
my $SESSION = $ENV{DRIVER_SESSION};
my ($N_TEXTS, $ROUNDS) = (6, 8);
my $BIG = 'select i, md5(i::text) from generate_series(1, 3000) i';

sub say_line { my ($job, $text) = @_; print "$job: $text\n"; }

sub connect_db
{
	my $db = DBI->connect('dbi:Pg:', '', '', {RaiseError => 1, PrintError => 0, AutoCommit => 0, pg_server_prepare => 1})
		or die $DBI::errstr;
	$db->{pg_switch_prepared} = 1;
	return $db;
}

sub failure
{
	my ($db) = @_;
	my ($first) = split /\n/, $db->errstr;
	return $db->state . " $first";
}

sub show_rows { return join ' ', map { '(' . join(', ', map { $_ // 'null' } @$_) . ')' } @{$_[0]}; }

# Runs sql, or a statement, with arguments.
sub attempt
{
	my ($db, $sql, @args) = @_;
	my $text = eval {
		my $st = ref $sql ? $sql : $db->prepare($sql);
		$st->execute(@args);
		$st->{NUM_OF_FIELDS} ? 'fine ' . show_rows($st->fetchall_arrayref) : 'fine ' . $st->rows;
	};
	return $text // failure($db);
}

sub digest { my ($rows) = @_; return @$rows . ' rows ' . md5_hex(join '', map { join('|', @$_) . "\n" } @$rows); }

sub blob { my ($n) = @_; my $period = pack 'C*', map { $_ * 31 % 251 } 0 .. 250; return substr $period x ($n / 251 + 1), 0, $n; }

my @jobs = (
	prepared => sub {
		my ($db) = @_;
		my @st = map { $db->prepare('select ?::int + ' . (1000 * $SESSION + $_)) } 0 .. $N_TEXTS - 1;
		my @sums = (0) x $N_TEXTS;
		for my $i (0 .. $ROUNDS - 1) {
			for my $k (0 .. $N_TEXTS - 1) {
				$st[$k]->execute($i);
				$sums[$k] += $st[$k]->fetchrow_array - 1000 * $SESSION;
			}
			$i % 2 ? $db->rollback : $db->commit;
		}
		say_line 'prepared', "@sums";
		say_line 'prepared', $st[0]->{pg_prepare_name} =~ /^dbdpg_p/ ? 'named by the driver' : 'not named';
		my $st = $db->prepare('select ?::bytea, ?::text, ?::int[]');
		$st->bind_param(1, undef, {pg_type => PG_BYTEA});
		for my $n (1 .. 3) {
			$st->execute("\0\xff", "text $n", [1, undef, $n]);
			my @row = $st->fetchrow_array;
			say_line 'prepared', unpack('H*', $row[0]) . " $row[1] " . join ',', map { $_ // 'null' } @{$row[2]};
		}
		$db->commit;
	},
	reuse => sub {
		my ($db) = @_;
		$db->do("insert into account values (?, 500, 1, 'reuse')", undef, $SESSION);
		$db->commit;
		my $note = $db->prepare('select note from account where s = ? and id = ?');
		my $divide = $db->prepare('select 1 / ?::int');
		for (1 .. 5) {
			say_line 'reuse', attempt($db, $note, $SESSION, 500);
			$db->commit;
			say_line 'reuse', attempt($db, $divide, 0);
			$db->rollback;
		}
		# Each handle that goes away is a DEALLOCATE, in or out of a transaction.
		my $total = 0;
		for my $i (0 .. 4 * $N_TEXTS - 1) {
			my $st = $db->prepare('select ?::int * ' . (1000 + $i % 7));
			for (1 .. 3) {
				$st->execute(2);
				$total += $st->fetchrow_array;
			}
			undef $st;
			$db->commit if $i % 3 == 0;
		}
		$db->commit;
		say_line 'reuse', $total;
	},
	'changed-table' => sub {
		my ($db) = @_;
		my $table = "changing_$SESSION";
		$db->do("create table $table as select 1 as a");
		$db->commit;
		for my $change ("add b text default 'b'", 'alter a type text', 'drop b') {
			my $st = $db->prepare("select * from $table where a::text = ?");
			say_line 'changed-table', attempt($db, $st, '1') for 1 .. 2;
			$db->commit;
			$db->do("alter table $table $change");
			$db->commit;
			say_line 'changed-table', attempt($db, $st, '1');
			$db->rollback;
			undef $st;
			say_line 'changed-table', attempt($db, "select * from $table where a::text = ?", '1');
			$db->commit;
		}
		$db->do("drop table $table");
		$db->commit;
	},
	transaction => sub {
		my ($db) = @_;
		$db->do("insert into account values (?, 1, 100, 'one'), (?, 2, 50, 'two')", undef, $SESSION, $SESSION);
		$db->commit;
		for my $i (0 .. $ROUNDS - 1) {
			$db->do('update account set balance = balance - ? where s = ? and id = 1', undef, $i, $SESSION);
			$db->do('update account set balance = balance + ? where s = ? and id = 2', undef, $i, $SESSION);
			$i % 2 ? $db->rollback : $db->commit;
		}
		say_line 'transaction', attempt($db, 'select id, balance from account where s = ? order by id', $SESSION);
		$db->commit;
	},
	savepoint => sub {
		my ($db) = @_;
		my $st = $db->prepare('insert into account values (?, ?, 1, ?)');
		$st->execute($SESSION, 10, 'kept');
		$db->pg_savepoint('a');
		$st->execute($SESSION, 11, 'undone');
		$db->pg_rollback_to('a');
		say_line 'savepoint', attempt($db, $st, $SESSION, 10, 'twice');
		$db->pg_rollback_to('a');
		$st->execute($SESSION, 12, 'kept');
		$db->pg_release('a');
		$db->commit;
		say_line 'savepoint', attempt($db, 'select id, note from account where s = ? and id between 10 and 12 order by id', $SESSION);
		$db->commit;
	},
	error => sub {
		my ($db) = @_;
		for my $sql ('select 1 / ?::int', 'selec ?::int', 'select * from missing where a = ?', "select 'x'::int + ?") {
			say_line 'error', attempt($db, $sql, 0);
			say_line 'error', attempt($db, 'select ?::int', 1);
			say_line 'error', $db->ping;
			$db->rollback;
			say_line 'error', attempt($db, 'select ?::int', 1);
			$db->commit;
		}
		$db->{AutoCommit} = 1;
		say_line 'error', attempt($db, 'select 5 / ?::int', 0);
		say_line 'error', attempt($db, 'select 1; select 1 / 0; select 2');
		say_line 'error', attempt($db, 'select ?::int', 1);
		$db->{AutoCommit} = 0;
	},
	cancel => sub {
		my ($db) = @_;
		for (1 .. 3) {
			$db->do("select pg_sleep(60) -- $SESSION", {pg_async => PG_ASYNC});
			say_line 'cancel', $db->pg_ready ? 'ready' : 'runs';
			# One cancel may come before the statement: the driver then waits for its end, so look for it first.
			wait_for_sleep();
			say_line 'cancel', eval { $db->pg_cancel } ? 'cancelled' : failure($db);
			$db->rollback;
			say_line 'cancel', attempt($db, 'select ?::int', 1);
			$db->commit;
		}
	},
	copy => sub {
		my ($db) = @_;
		$db->do('copy copied from stdin');
		$db->pg_putcopydata("$SESSION\t$_\tnote $_\n") for 0 .. 4999;
		$db->pg_putcopyend;
		$db->do("copy (select id, note from copied where s = $SESSION order by id) to stdout");
		my ($line, @rows) = ('');
		while ($db->pg_getcopydata($line) >= 0) {
			chomp $line;
			push @rows, [split /\t/, $line];
		}
		say_line 'copy', digest(\@rows);
		$db->commit;
		$db->do('copy copied from stdin');
		$db->pg_putcopydata("$SESSION\tnot a number\tx\n");
		say_line 'copy', eval { $db->pg_putcopyend } ? 'fine' : failure($db);
		$db->rollback;
		say_line 'copy', attempt($db, 'select count(*) from copied where s = ?', $SESSION);
		$db->commit;
	},
	cursor => sub {
		my ($db) = @_;
		$db->do("declare walk scroll cursor for $BIG");
		my @rows;
		while (my $page = $db->selectall_arrayref('fetch 700 from walk')) {
			last unless @$page;
			push @rows, @$page;
		}
		say_line 'cursor', digest(\@rows);
		$db->do('move absolute 500 in walk');
		say_line 'cursor', attempt($db, 'fetch backward 2 from walk');
		$db->commit;
	},
	'large-result' => sub {
		my ($db) = @_;
		say_line 'large-result', digest($db->selectall_arrayref($BIG));
		my $st = $db->prepare("select repeat('0123456789', 300000), ?::bytea");
		$st->bind_param(1, blob(1000000), {pg_type => PG_BYTEA});
		$st->execute;
		my ($text, $data) = $st->fetchrow_array;
		say_line 'large-result', length($text) . ($data eq blob(1000000) ? ' equal' : ' different');
		$db->commit;
	},
	'large-object' => sub { # FunctionCall
		my ($db) = @_;
		my $oid = $db->pg_lo_creat($db->{pg_INV_READ} | $db->{pg_INV_WRITE});
		my $lob = $db->pg_lo_open($oid, $db->{pg_INV_WRITE});
		$db->pg_lo_write($lob, blob(300000), 300000);
		$db->pg_lo_close($lob);
		$db->commit;
		$lob = $db->pg_lo_open($oid, $db->{pg_INV_READ} | $db->{pg_INV_WRITE});
		my ($data, $part) = ('', '');
		while ((my $n = $db->pg_lo_read($lob, $part, 50000)) > 0) {
			$data .= substr $part, 0, $n;
		}
		$db->pg_lo_lseek($lob, 1000, 0);
		$db->pg_lo_write($lob, 'changed', 7);
		$db->pg_lo_lseek($lob, 990, 0);
		$db->pg_lo_read($lob, $part, 30);
		say_line 'large-object', ($data eq blob(300000) ? 'equal ' : 'different ') . unpack 'H*', $part;
		$db->pg_lo_close($lob);
		$db->commit;
		$db->pg_lo_unlink($oid);
		$db->commit;
		say_line 'large-object', attempt($db, "select lo_get($oid)") =~ s/$oid/OID/r;
		$db->rollback;
	},
	batch => sub {
		my ($db) = @_;
		my $st = $db->prepare('insert into account values (?, ?, ?)');
		say_line 'batch', $st->execute_array({}, $SESSION, [100 .. 399], [100 .. 399]);
		$db->commit;
		say_line 'batch', attempt($db, 'select count(*), sum(balance) from account where s = ? and id between 100 and 399', $SESSION);
		$db->commit;
	},
	reconnect => sub {
		for my $i (0 .. 4) {
			my $db = connect_db();
			my $st = $db->prepare("select ?::int, $i");
			say_line 'reconnect', attempt($db, $st, $i) for 1 .. 3;
			$db->commit;
			$db->do("insert into account values (?, 9000, 0, 'left in a transaction')", undef, $SESSION) if $i % 2;
			undef $st;
			$db->disconnect;
		}
	},
	sessions => sub {
		my ($db) = @_;
		my @db = (connect_db(), connect_db());
		my @st = map { $db[$_]->prepare('insert into account values (?, ' . (1000 + $_) . ' + ?, ?)') } 0 .. 1;
		for my $i (0 .. $ROUNDS - 1) {
			for my $k (0 .. 1) {
				$st[$k]->execute($SESSION, 2 * $i, $i);
				$db[$k]->commit;
			}
		}
		say_line 'sessions', attempt($db, 'select count(*), sum(balance) from account where s = ? and id between 1000 and 8999', $SESSION);
		$db->commit;
		@st = ();
		$_->disconnect for @db;
	},
);

# Until the server runs the statement of this session.
sub wait_for_sleep
{
	my $observer = DBI->connect('dbi:Pg:' . $ENV{OBSERVER} =~ tr/ /;/r, 'postgres', '', {RaiseError => 1, AutoCommit => 1});
	1 while !$observer->selectrow_array(
		"select count(*) from pg_sleep(0.01), pg_stat_activity where query = ? and wait_event = 'PgSleep'",
		undef, "select pg_sleep(60) -- $SESSION");
	$observer->disconnect;
}

my $db = connect_db();
while (my ($name, $job) = splice @jobs, 0, 2) {
	next if eval { $job->($db); 1 };
	say_line $name, "raised $@" =~ s/ at \S+ line.*//sr;
	$db->disconnect;
	$db = connect_db();
}
$db->disconnect;
