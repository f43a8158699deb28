# SPDX-License-Identifier: ISC
"""psycopg2: the driver puts parameters into the text, so everything is the simple protocol."""

import io
import threading

import psycopg2
import psycopg2.extras

from transcript import BIG, ROUNDS, SESSION, blob, digest, not_here, run_jobs, say


def connect():
    return psycopg2.connect("")


def failure(error):
    return f"{error.pgcode} {error.diag.message_primary}"


def attempt(cursor, sql, *args):
    try:
        cursor.execute(sql, *args)
        return "fine"
    except psycopg2.Error as error:
        return failure(error)


def job_transaction(db):
    with db, db.cursor() as cur:
        cur.execute("insert into account values (%s, 1, 100, 'one'), (%s, 2, 50, 'two')", (SESSION, SESSION))
    for i in range(ROUNDS):
        cur = db.cursor()
        cur.execute("update account set balance = balance - 1 where s = %s and id = 1", (SESSION,))
        cur.execute("update account set balance = balance + 1 where s = %s and id = 2", (SESSION,))
        if i % 2:
            db.commit()
        else:
            db.rollback()
    with db, db.cursor() as cur:
        cur.execute("select id, balance from account where s = %s order by id", (SESSION,))
        say("transaction", cur.fetchall())
    db.set_session(isolation_level="SERIALIZABLE")  # psycopg2 sends it with every BEGIN
    with db, db.cursor() as cur:
        cur.execute("show transaction_isolation")
        say("transaction", cur.fetchone()[0])
    db.set_session(isolation_level="DEFAULT")


def job_savepoint(db):
    with db, db.cursor() as cur:
        cur.execute("insert into account values (%s, 10, 1, 'kept')", (SESSION,))
        cur.execute("savepoint a")
        cur.execute("insert into account values (%s, 11, 1, 'undone')", (SESSION,))
        cur.execute("rollback to savepoint a")
        say("savepoint", attempt(cur, "insert into account values (%s, 10, 2, 'twice')", (SESSION,)))
        cur.execute("rollback to savepoint a")
        cur.execute("insert into account values (%s, 12, 1, 'kept')", (SESSION,))
        cur.execute("release savepoint a")
    with db, db.cursor() as cur:
        cur.execute("select id, note from account where s = %s and id >= 10 order by id", (SESSION,))
        say("savepoint", cur.fetchall())


def job_error(db):
    for sql in ("select 1 / 0", "selec 1", "select * from missing", "select 'x'::int"):
        cur = db.cursor()
        say("error", attempt(cur, sql))
        say("error", attempt(cur, "select 1"))
        db.rollback()
        say("error", attempt(cur, "select 1"))
        db.commit()
    db.autocommit = True
    cur = db.cursor()
    say("error", attempt(cur, "select 1; select 1 / 0; select 2"))
    say("error", attempt(cur, "select 1"))
    db.autocommit = False


def job_cancel(db):
    for _ in range(3):
        ended = threading.Event()

        def canceller():
            while not ended.wait(0.02):
                db.cancel()

        thread = threading.Thread(target=canceller)
        thread.start()
        say("cancel", attempt(db.cursor(), "select pg_sleep(60)"))
        ended.set()
        thread.join()
        db.rollback()
        say("cancel", attempt(db.cursor(), "select 1"))
        db.commit()


def job_copy(db):
    source = "".join(f"{SESSION}\t{i}\tnote {i}\n" for i in range(5000))
    with db, db.cursor() as cur:
        cur.copy_expert("copy copied from stdin", io.StringIO(source))
        out = io.StringIO()
        cur.copy_expert(f"copy (select id, note from copied where s = {SESSION} order by id) to stdout", out)
        say("copy", digest(line.split("\t") for line in out.getvalue().splitlines()))
    cur = db.cursor()
    try:
        cur.copy_expert("copy copied from stdin", io.StringIO(source + "not a number\n"))
    except psycopg2.Error as error:
        say("copy", failure(error))
    db.rollback()
    with db, db.cursor() as cur:
        cur.execute("select count(*) from copied where s = %s", (SESSION,))
        say("copy", cur.fetchone())


def job_cursor(db):
    for size in (7, 1000):
        with db, db.cursor(name="walk") as cur:
            cur.itersize = size
            cur.execute(BIG)
            say("cursor", digest(cur if size > 7 else cur.fetchmany(70)))
    with db, db.cursor(name="back", scrollable=True) as cur:
        cur.execute(BIG)
        cur.scroll(500)
        rows = cur.fetchmany(3)
        cur.scroll(-100)
        say("cursor", digest(rows + cur.fetchmany(3)))


def job_large_result(db):
    with db, db.cursor() as cur:
        cur.execute(BIG)
        say("large-result", digest(cur.fetchall()))
        cur.execute("select repeat('0123456789', 300000), %s::bytea", (blob(1000000),))
        text, data = cur.fetchone()
        say("large-result", f"{len(text)} {bytes(data) == blob(1000000)}")


def job_large_object(db):
    with db:
        lob = db.lobject(0, "wb")
        oid = lob.oid
        lob.write(blob(300000))
        lob.close()
    with db:
        lob = db.lobject(oid, "rwb")
        data = lob.read()
        lob.seek(1000)
        lob.write(b"changed")
        lob.seek(990)
        say("large-object", f"{data == blob(300000)} {lob.read(30).hex()}")
        lob.truncate(5000)
    with db:
        lob = db.lobject(oid, "rb")
        say("large-object", lob.seek(0, 2))
        lob.unlink()
    try:
        db.lobject(oid, "rb")
    except psycopg2.Error as error:
        say("large-object", str(error).strip().replace(str(oid), "OID"))
    db.rollback()


def job_batch(db):
    with db, db.cursor() as cur:
        psycopg2.extras.execute_batch(
            cur, "insert into account values (%s, %s, %s)", [(SESSION, i, i) for i in range(100, 400)], page_size=50)
        psycopg2.extras.execute_values(
            cur, "insert into account values %s", [(SESSION, i, i, "v") for i in range(400, 700)])
    with db, db.cursor() as cur:
        cur.execute("select count(*), sum(balance) from account where s = %s and id >= 100", (SESSION,))
        say("batch", cur.fetchone())


def job_reconnect(_):
    for i in range(5):
        db = connect()
        with db, db.cursor() as cur:
            cur.execute("select %s", (i,))
            say("reconnect", cur.fetchone())
        if i % 2:
            cur = db.cursor()
            cur.execute("insert into account values (%s, 9000, 0, 'left in a transaction')", (SESSION,))
        db.close()


def job_sessions(_):
    one, two = connect(), connect()
    for i in range(ROUNDS):
        for db in (one, two):
            with db, db.cursor() as cur:
                cur.execute("insert into account values (%s, %s, %s)", (SESSION, 1000 + 2 * i + (db is two), i))
    with one, one.cursor() as cur:
        cur.execute("select count(*), sum(balance) from account where s = %s and id between 1000 and 8999", (SESSION,))
        say("sessions", cur.fetchone())
    one.close()
    two.close()


# As Django does: the time zone and the encoding of each new connection, isolation by SET SESSION CHARACTERISTICS; and
# one schema per tenant in search_path, as packages for it do. Before a pool lends it again the driver resets it.
def job_settings(_):
    zones = ("UTC", "Asia/Tokyo", "America/Lima")
    zone, tenant = zones[SESSION % 3], f"tenant_{SESSION % 4}"
    db = connect()
    db.set_client_encoding("UTF8")
    db.set_session(autocommit=True)
    with db.cursor() as cur:
        cur.execute("select set_config('TimeZone', %s, false)", (zone,))
        cur.execute(f"set search_path = {tenant}, public")
        cur.execute("set session characteristics as transaction isolation level repeatable read")
    for i in range(ROUNDS):
        db.autocommit = i % 2 == 0
        cur = db.cursor()
        cur.execute("select current_setting('TimeZone') = %s, current_setting('search_path') = %s,"
                    " current_setting('transaction_isolation'), count(*) from account where s = %s and id < 0",
                    (zone, f"{tenant}, public", SESSION))
        say("settings", cur.fetchone())
        if i % 2:
            cur.execute("set local timezone = 'Europe/Rome'")
            cur.execute("set work_mem = '7MB'")
            cur.execute("show timezone")
            say("settings", cur.fetchone())
            db.rollback()
    db.reset()
    db.autocommit = True
    with db.cursor() as cur:
        cur.execute("select current_setting('search_path'), current_setting('default_transaction_isolation'),"
                    " current_setting('work_mem')")
        say("settings", cur.fetchone())
    db.close()


# A migration: a lock of the session over many transactions, a temporary table, a cursor that outlives its transaction.
def job_pinned(_):
    db = psycopg2.connect(dbname="pinned")
    db.autocommit = True
    cur = db.cursor()
    cur.execute("select pg_try_advisory_lock(%s)", (SESSION,))
    say("pinned", cur.fetchone())
    cur.execute("create temporary table staged (i int)")
    for i in range(ROUNDS):
        db.autocommit = i % 2 == 0
        cur.execute("insert into staged values (%s)", (i,))
        if i % 2:
            db.commit()
    db.autocommit = True
    cur.execute("declare kept cursor with hold for select i from staged order by i")
    cur.execute("select count(*), sum(i) from staged")
    say("pinned", cur.fetchone())
    cur.execute("drop table staged")
    cur.execute("fetch 3 from kept")
    say("pinned", cur.fetchall())
    cur.execute("close kept")
    cur.execute("select count(*) from pg_locks where locktype = 'advisory' and objid = %s", (SESSION,))
    say("pinned", cur.fetchone())
    cur.execute("select pg_advisory_unlock(%s)", (SESSION,))
    say("pinned", cur.fetchone())
    cur.execute("select count(*) from pg_locks where locktype = 'advisory' and objid = %s", (SESSION,))
    say("pinned", cur.fetchone())
    say("pinned", attempt(cur, "select * from staged"))
    db.close()


not_here("prepared", "it sends texts with the parameters in them")
not_here("reuse", "it sends texts with the parameters in them")
not_here("changed-table", "it sends texts with the parameters in them")
run_jobs((job_transaction, job_savepoint, job_error, job_cancel, job_copy, job_cursor, job_large_result,
          job_large_object, job_batch, job_reconnect, job_sessions, job_settings, job_pinned), connect)
