<?php
// SPDX-License-Identifier: ISC
// PDO: server-side statements pdo_stmt_<n>, each given up with DEALLOCATE; and pg_* functions for what PDO has not.

define('SESSION', (int) getenv('DRIVER_SESSION'));
const N_TEXTS = 6;
const ROUNDS = 8;
const BIG = 'select i, md5(i::text) from generate_series(1, 3000) i';

function say($job, $text)
{
	echo "$job: $text\n";
}

function connect()
{
	$dsn = sprintf('pgsql:host=%s;port=%s;dbname=%s', getenv('PGHOST'), getenv('PGPORT'), getenv('PGDATABASE'));
	return new PDO($dsn, getenv('PGUSER'), '', [PDO::ATTR_ERRMODE => PDO::ERRMODE_EXCEPTION,
		PDO::ATTR_DEFAULT_FETCH_MODE => PDO::FETCH_NUM]);
}

function failure($e)
{
	return $e->errorInfo[0] . ' ' . strtok($e->errorInfo[2], "\n");
}

function attempt($db, $sql, $args = [])
{
	try {
		$st = is_string($sql) ? $db->prepare($sql) : $sql;
		$st->execute($args);
		return 'fine ' . ($st->columnCount() ? json_encode($st->fetchAll()) : $st->rowCount());
	} catch (PDOException $e) {
		return failure($e);
	}
}

function digest($rows)
{
	$md5 = hash_init('md5');
	$n = 0;
	foreach ($rows as $row) {
		hash_update($md5, implode('|', $row) . "\n");
		$n++;
	}
	return "$n rows " . hash_final($md5);
}

function blob($size)
{
	$period = implode('', array_map(fn ($i) => chr($i * 31 % 251), range(0, 250)));
	return substr(str_repeat($period, intdiv($size, 251) + 1), 0, $size);
}

$jobs = [];

$jobs['prepared'] = function ($db) {
	$statements = [];
	for ($k = 0; $k < N_TEXTS; $k++)
		$statements[] = $db->prepare('select ?::int + ' . (1000 * SESSION + $k));
	$sums = array_fill(0, N_TEXTS, 0);
	for ($i = 0; $i < ROUNDS; $i++) {
		$db->beginTransaction();
		foreach ($statements as $k => $st) {
			$st->execute([$i]);
			$sums[$k] += $st->fetchColumn() - 1000 * SESSION;
		}
		$db->commit();
	}
	say('prepared', implode(' ', $sums));
	$st = $db->prepare('select :a::text, :b::int, :a || :b');
	for ($i = 0; $i < 3; $i++)
		say('prepared', attempt($db, $st, ['a' => 'x', 'b' => $i]));
	$st = $db->prepare('select ?::bytea, ?::bool, ?::text');
	$st->bindValue(1, "\0\xff", PDO::PARAM_LOB);
	$st->bindValue(2, true, PDO::PARAM_BOOL);
	$st->bindValue(3, null, PDO::PARAM_NULL);
	$st->execute();
	$row = $st->fetch();
	say('prepared', bin2hex(stream_get_contents($row[0])) . json_encode(array_slice($row, 1)));
};

$jobs['reuse'] = function ($db) {
	attempt($db, "insert into account values (?, 500, 1, 'reuse')", [SESSION]);
	$note = $db->prepare('select note from account where s = ? and id = ?');
	$divide = $db->prepare('select 1 / ?::int');
	for ($i = 0; $i < 5; $i++) {
		say('reuse', attempt($db, $note, [SESSION, 500]));
		say('reuse', attempt($db, $divide, [0]));
	}
	// Each statement that goes away is a DEALLOCATE, in or out of a transaction.
	$total = 0;
	for ($i = 0; $i < 4 * N_TEXTS; $i++) {
		if ($i % 4 == 0)
			$db->beginTransaction();
		$st = $db->prepare('select ?::int * ' . (1000 + $i % 7));
		$st->execute([2]);
		$total += $st->fetchColumn();
		$st = null;
		if ($i % 4 == 3)
			$db->commit();
	}
	say('reuse', $total);
};

$jobs['changed-table'] = function ($db) {
	$table = 'changing_' . SESSION;
	$db->exec("create table $table as select 1 as a");
	foreach (["add b text default 'b'", 'alter a type text', 'drop b'] as $change) {
		$st = $db->prepare("select * from $table where a::text = ?");
		say('changed-table', attempt($db, $st, ['1']));
		$db->exec("alter table $table $change");
		say('changed-table', attempt($db, $st, ['1']));
		$st = null;
		say('changed-table', attempt($db, "select * from $table where a::text = ?", ['1']));
	}
	$db->exec("drop table $table");
};

$jobs['transaction'] = function ($db) {
	attempt($db, "insert into account values (?, 1, 100, 'one'), (?, 2, 50, 'two')", [SESSION, SESSION]);
	for ($i = 0; $i < ROUNDS; $i++) {
		$db->beginTransaction();
		attempt($db, 'update account set balance = balance - ? where s = ? and id = 1', [$i, SESSION]);
		attempt($db, 'update account set balance = balance + ? where s = ? and id = 2', [$i, SESSION]);
		$i % 2 ? $db->rollBack() : $db->commit();
	}
	say('transaction', attempt($db, 'select id, balance from account where s = ? order by id', [SESSION]));
};

$jobs['savepoint'] = function ($db) {
	$insert = $db->prepare('insert into account values (?, ?, 1, ?)');
	$db->beginTransaction();
	$insert->execute([SESSION, 10, 'kept']);
	$db->exec('savepoint a');
	$insert->execute([SESSION, 11, 'undone']);
	$db->exec('rollback to a');
	say('savepoint', attempt($db, $insert, [SESSION, 10, 'twice']));
	$db->exec('rollback to a');
	$insert->execute([SESSION, 12, 'kept']);
	$db->commit();
	say('savepoint', attempt($db, 'select id, note from account where s = ? and id between 10 and 12 order by id', [SESSION]));
};

$jobs['error'] = function ($db) {
	foreach (['select 1 / ?::int', 'selec ?::int', 'select * from missing where a = ?', "select 'x'::int + ?"] as $sql) {
		$db->beginTransaction();
		say('error', attempt($db, $sql, [0]));
		say('error', attempt($db, 'select ?::int', [1]));
		$db->rollBack();
		say('error', attempt($db, 'select ?::int', [1]));
	}
	try {
		$db->exec('select 1; select 1 / 0; select 2');
	} catch (PDOException $e) {
		say('error', failure($e));
	}
	say('error', attempt($db, 'select ?::int', [1]));
};

$jobs['cancel'] = function () {
	$pg = pg_connect('');
	for ($i = 0; $i < 3; $i++) {
		pg_send_query($pg, 'select pg_sleep(60) -- ' . SESSION);
		wait_for_sleep(); // the driver's cancel waits for the end, so it must not come too early
		say('cancel', pg_cancel_query($pg) ? 'cancelled' : 'not cancelled');
		$result = pg_query($pg, 'select 1');
		say('cancel', pg_fetch_result($result, 0, 0));
	}
	pg_close($pg);
};

$jobs['copy'] = function ($db) {
	$rows = [];
	for ($i = 0; $i < 5000; $i++)
		$rows[] = SESSION . "\t$i\tnote $i";
	say('copy', $db->pgsqlCopyFromArray('copied', $rows) ? 'in' : 'not in');
	$out = $db->pgsqlCopyToArray('(select id, note from copied where s = ' . SESSION . ' order by id)');
	say('copy', digest(array_map(fn ($line) => explode("\t", rtrim($line)), $out)));
	try {
		$db->pgsqlCopyFromArray('copied', [SESSION . "\tnot a number\tx"]);
	} catch (PDOException $e) {
		say('copy', failure($e));
	}
	say('copy', attempt($db, 'select count(*) from copied where s = ?', [SESSION]));
};

$jobs['cursor'] = function ($db) {
	$db->beginTransaction();
	$st = $db->prepare(BIG, [PDO::ATTR_CURSOR => PDO::CURSOR_SCROLL]); // DECLARE and FETCH
	$st->execute();
	$rows = [];
	for ($i = 0; $i < 300; $i++)
		$rows[] = $st->fetch();
	$rows[] = $st->fetch(PDO::FETCH_NUM, PDO::FETCH_ORI_PRIOR);
	say('cursor', digest($rows));
	$st = null;
	$db->exec('declare walk cursor for ' . BIG);
	$rows = [];
	while ($page = $db->query('fetch 700 from walk')->fetchAll())
		array_push($rows, ...$page);
	say('cursor', digest($rows));
	$db->commit();
};

$jobs['large-result'] = function ($db) {
	say('large-result', digest($db->query(BIG)));
	$st = $db->prepare("select repeat('0123456789', 300000), ?::bytea");
	$st->bindValue(1, blob(1000000), PDO::PARAM_LOB);
	$st->execute();
	$row = $st->fetch();
	say('large-result', strlen($row[0]) . (stream_get_contents($row[1]) === blob(1000000) ? ' equal' : ' different'));
};

$jobs['large-object'] = function ($db) { // FunctionCall
	$db->beginTransaction();
	$oid = $db->pgsqlLOBCreate();
	$lob = $db->pgsqlLOBOpen($oid, 'w');
	fwrite($lob, blob(300000));
	$lob = null;
	$db->commit();
	$db->beginTransaction();
	$lob = $db->pgsqlLOBOpen($oid, 'r+');
	$data = stream_get_contents($lob);
	fseek($lob, 1000);
	say('large-object', ($data === blob(300000) ? 'equal ' : 'different ') . bin2hex(fread($lob, 30)));
	$lob = null;
	$db->commit();
	$db->beginTransaction();
	say('large-object', $db->pgsqlLOBUnlink($oid) ? 'unlinked' : 'not unlinked');
	$db->commit();
	say('large-object', str_replace($oid, 'OID', attempt($db, "select lo_get($oid)")));
};

$jobs['batch'] = function () {
	say('batch', 'not in this driver: one statement at a time');
};

$jobs['reconnect'] = function () {
	for ($i = 0; $i < 5; $i++) {
		$db = connect();
		say('reconnect', attempt($db, "select ?::int, $i", [$i]));
		if ($i % 2) {
			$db->beginTransaction();
			attempt($db, "insert into account values (?, 9000, 0, 'left in a transaction')", [SESSION]);
		}
		$db = null;
	}
};

$jobs['sessions'] = function ($db) {
	$two = [connect(), connect()];
	$statements = [];
	foreach ($two as $k => $own)
		$statements[] = $own->prepare('insert into account values (?, ' . (1000 + $k) . ' + ?, ?)');
	for ($i = 0; $i < ROUNDS; $i++) {
		foreach ($two as $k => $own) {
			$own->beginTransaction();
			$statements[$k]->execute([SESSION, 2 * $i, $i]);
			$own->commit();
		}
	}
	say('sessions', attempt($db, 'select count(*), sum(balance) from account where s = ? and id between 1000 and 8999', [SESSION]));
};

// Until the server runs the statement of this session.
function wait_for_sleep()
{
	$observer = pg_connect(getenv('OBSERVER'), PGSQL_CONNECT_FORCE_NEW);
	do {
		$result = pg_query_params($observer, 'select count(*) from pg_sleep(0.01), pg_stat_activity'
			. " where query = $1 and wait_event = 'PgSleep'", ['select pg_sleep(60) -- ' . SESSION]);
	} while (pg_fetch_result($result, 0, 0) == '0');
	pg_close($observer);
}

$db = connect();
foreach ($jobs as $name => $job) {
	try {
		$job($db);
	} catch (Throwable $e) {
		say($name, 'raised ' . get_class($e) . ': ' . strtok($e->getMessage(), "\n"));
		$db = connect();
	}
}
