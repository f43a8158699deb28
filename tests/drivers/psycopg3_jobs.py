# SPDX-License-Identifier: ISC
"""psycopg 3: extended protocol; prepares a text from its first use on (prepare_threshold = 0), under names of its own.
With the argument `pipeline` every transaction is a pipeline."""

import contextlib
import logging
import sys
import threading

import psycopg

from transcript import BIG, N_TEXTS, ROUNDS, SESSION, blob, digest, not_here, run_jobs, say

logging.getLogger("psycopg").setLevel(logging.CRITICAL)  # it warns of what a failed pipeline gives up, with addresses
PIPELINE = sys.argv[1:] == ["pipeline"]


def connect():
    db = psycopg.connect("")
    db.prepare_threshold = 0
    return db


@contextlib.contextmanager
def transaction(db):
    with db.transaction():
        with db.pipeline() if PIPELINE else contextlib.nullcontext():
            yield db


def failure(error):
    return f"{error.sqlstate} {error.diag.message_primary if error.diag else error}"


def attempt(db, sql, args=None, **options):
    try:
        with db.pipeline() if PIPELINE else contextlib.nullcontext():
            return f"fine {db.execute(sql, args, **options).fetchall()}"
    except psycopg.Error as error:
        return failure(error)


def job_prepared(db):
    # Ten texts under the driver's names _pg3_0 ... that mean something else in every session.
    sums = [0] * N_TEXTS
    for i in range(ROUNDS):
        with transaction(db):
            cursors = [db.execute(f"select %s::int + {1000 * SESSION + k}", (i,)) for k in range(N_TEXTS)]
            for k, cur in enumerate(cursors):
                sums[k] += cur.fetchone()[0] - 1000 * SESSION
    say("prepared", sums)
    for binary in (False, True):
        for value in (7, 2**40, 1.5, "text \u20ac", b"\0\xff", [1, None, 3], None, True):
            row = db.execute("select %s, %s", (value, value), binary=binary).fetchone()
            say("prepared", row)
            db.commit()
    # More texts than the driver keeps: it gives up the oldest.
    db.prepared_max = 5
    total = 0
    for i in range(3 * N_TEXTS):
        total += db.execute(f"select %s::int * {1000 + i % 15}", (2,)).fetchone()[0]
        if i % 3 == 0:
            db.commit()
    db.commit()
    db.prepared_max = 100
    say("prepared", total)


def job_reuse(db):
    query = f"select note from account where s = {SESSION} and id = %s"
    db.execute("insert into account values (%s, 500, 1, 'reuse')", (SESSION,))
    db.commit()
    for _ in range(5):
        say("reuse", attempt(db, query, (500,)))
        db.commit()
        say("reuse", attempt(db, "select 1 / %s::int", (0,)))
        db.rollback()
    # The same text with other types is another statement.
    for value in (1, "one", 1.5):
        say("reuse", attempt(db, "select pg_typeof(%s)", (value,)))
        db.commit()


def job_changed_table(db):
    # Between two uses of a statement its result gets other columns.
    db.execute(f"create table changing_{SESSION} as select 1 as a")
    db.commit()
    for change in ("add b text default 'b'", "alter a type text", "drop b"):
        for _ in range(2):
            say("changed-table", attempt(db, f"select * from changing_{SESSION} where a::text = %s", ("1",)))
            db.rollback()
        db.execute(f"alter table changing_{SESSION} {change}")
        db.commit()
    db.execute(f"drop table changing_{SESSION}")
    db.commit()


def job_transaction(db):
    with transaction(db):
        db.execute("insert into account values (%s, 1, 100, 'one'), (%s, 2, 50, 'two')", (SESSION, SESSION))
    for i in range(ROUNDS):
        with transaction(db):
            db.execute("update account set balance = balance - %s where s = %s and id = 1", (i, SESSION))
            db.execute("update account set balance = balance + %s where s = %s and id = 2", (i, SESSION))
            if i % 2:
                raise psycopg.Rollback
    say("transaction", db.execute("select id, balance from account where s = %s order by id", (SESSION,)).fetchall())
    db.commit()
    db.isolation_level = psycopg.IsolationLevel.SERIALIZABLE  # it goes with every BEGIN
    say("transaction", attempt(db, "show transaction_isolation"))
    db.commit()
    db.isolation_level = None


def job_savepoint(db):
    with transaction(db):
        db.execute("insert into account values (%s, 10, %s, 'kept')", (SESSION, 1))
        with contextlib.suppress(psycopg.Rollback), db.transaction():
            db.execute("insert into account values (%s, 11, %s, 'undone')", (SESSION, 1))
            raise psycopg.Rollback
        try:
            with db.transaction():
                db.execute("insert into account values (%s, 10, %s, 'twice')", (SESSION, 2))
        except psycopg.Error as error:
            say("savepoint", failure(error))
        with db.transaction("named"):
            db.execute("insert into account values (%s, 12, %s, 'kept')", (SESSION, 1))
    rows = db.execute("select id, note from account where s = %s and id between 10 and 12 order by id", (SESSION,))
    say("savepoint", rows.fetchall())
    db.commit()


def job_error(db):
    for sql in ("select 1 / %s::int", "selec %s::int", "select * from missing where a = %s", "select 'x'::int + %s"):
        say("error", attempt(db, sql, (0,)))
        say("error", attempt(db, "select %s::int", (1,)))
        db.rollback()
        say("error", attempt(db, "select %s::int", (1,)))
        db.commit()
    db.autocommit = True
    say("error", attempt(db, "select 5 / %s::int", (0,)))
    say("error", attempt(db, "select %s::int", (1,)))
    db.autocommit = False


def job_cancel(db):
    for _ in range(3):
        ended = threading.Event()

        def canceller():
            while not ended.wait(0.02):
                db.cancel()

        thread = threading.Thread(target=canceller)
        thread.start()
        say("cancel", attempt(db, "select pg_sleep(%s)", (60,)))
        ended.set()
        thread.join()
        db.rollback()
        say("cancel", attempt(db, "select %s::int", (1,)))
        db.commit()


def job_copy(db):
    if PIPELINE:
        not_here("copy", "COPY does not go in a pipeline")
        return
    with transaction(db), db.cursor() as cur:
        with cur.copy("copy copied (s, id, note) from stdin") as copy:
            for i in range(5000):
                copy.write_row((SESSION, i, f"note {i}"))
        with cur.copy("copy (select id, note from copied where s = %s order by id) to stdout", (SESSION,)) as copy:
            say("copy", digest(copy.rows()))
        with cur.copy("copy copied (s, id, note) from stdin (format binary)") as copy:
            copy.set_types(["int4", "int4", "text"])
            for i in range(1000):
                copy.write_row((SESSION, 5000 + i, "binary"))
        with cur.copy(f"copy (select id, note from copied where s = {SESSION}) to stdout (format binary)") as copy:
            copy.set_types(["int4", "text"])
            say("copy", digest(sorted(copy.rows())))
    try:
        with db.cursor().copy("copy copied from stdin") as copy:
            for i in range(2000):
                copy.write_row((SESSION, "not a number" if i == 1500 else i, "x"))
    except psycopg.Error as error:
        say("copy", failure(error))
    db.rollback()
    try:
        with db.cursor().copy("copy copied from stdin") as copy:
            copy.write_row((SESSION, 1, "given up"))
            raise ValueError("given up")
    except psycopg.Error as error:
        say("copy", failure(error))
    db.rollback()
    say("copy", attempt(db, "select count(*) from copied where s = %s", (SESSION,)))
    db.commit()


def job_cursor(db):
    if PIPELINE:
        not_here("cursor", "server-side cursors do not go in a pipeline")
        return
    for size in (7, 1000):
        with transaction(db), db.cursor("walk") as cur:
            cur.itersize = size
            cur.execute(BIG)
            say("cursor", digest(cur.fetchmany(7 * size) if size == 7 else cur))
    with transaction(db), db.cursor("back", scrollable=True) as cur:
        cur.execute("select i from generate_series(1, %s) i", (1000,))
        cur.scroll(500)
        rows = cur.fetchmany(3)
        cur.scroll(-100)
        say("cursor", rows + cur.fetchmany(3))
    with transaction(db), db.cursor() as cur:
        say("cursor", digest(cur.stream(BIG)))


def job_large_result(db):
    say("large-result", digest(db.execute(BIG)))
    text, data = db.execute("select repeat('0123456789', 300000), %b::bytea", (blob(1000000),)).fetchone()
    say("large-result", f"{len(text)} {data == blob(1000000)}")
    db.commit()


def job_large_object(db):
    with transaction(db):
        oid = db.execute("select lo_from_bytea(0, %s)", (blob(300000),)).fetchone()[0]
    with transaction(db):
        fd = db.execute("select lo_open(%s, 393216)", (oid,)).fetchone()[0]
        db.execute("select lo_lseek(%s, 1000, 0), lowrite(%s, %s)", (fd, fd, b"changed"))
    data = db.execute("select lo_get(%s)", (oid,)).fetchone()[0]
    say("large-object", f"{len(data)} {data[990:1020].hex()}")
    db.execute("select lo_unlink(%s)", (oid,))
    db.commit()
    say("large-object", attempt(db, "select lo_get(%s)", (oid,)).replace(str(oid), "OID"))
    db.rollback()


def job_batch(db):
    with transaction(db):
        db.cursor().executemany("insert into account values (%s, %s, %s)", [(SESSION, i, i) for i in range(100, 400)])
        cur = db.cursor()
        cur.executemany("insert into account values (%s, %s, %s) returning id",
                        [(SESSION, i, i) for i in range(400, 450)], returning=True)
    say("batch", cur.fetchone())
    say("batch", attempt(db, "select count(*), sum(balance) from account where s = %s and id between 100 and 450",
                         (SESSION,)))
    db.commit()
    # An error in the middle, and two Syncs.
    try:
        with db.pipeline() as pipeline:
            first = db.execute("select %s::int", (1,))
            pipeline.sync()
            second = db.execute("select 1 / %s::int", (0,))
            db.execute("select %s::int", (2,))
    except psycopg.Error as error:
        say("batch", failure(error))
    say("batch", first.fetchall())
    say("batch", second.statusmessage)
    db.rollback()
    with db.pipeline():
        cursors = [db.execute("select %s::int", (i,)) for i in range(200)]
    say("batch", sum(cur.fetchone()[0] for cur in cursors))
    db.commit()


def job_reconnect(_):
    for i in range(5):
        db = connect()
        say("reconnect", attempt(db, f"select %s::int, {i}", (i,)))
        db.commit()
        if i % 2:
            db.execute("insert into account values (%s, 9000, 0, 'left in a transaction')", (SESSION,))
        db.close()


def job_sessions(_):
    one, two = connect(), connect()
    for i in range(ROUNDS):
        for db in (one, two):
            with transaction(db):
                # The same name _pg3_0 for two texts.
                db.execute(f"insert into account values ({SESSION}, {1000 + (db is two)} + %s, %s)", (2 * i, i))
    say("sessions", attempt(one, "select count(*), sum(balance) from account where s = %s and id between 1000 and 8999",
                            (SESSION,)))
    one.close()
    two.close()


# What a pool does between two users of a connection, and what the next one then finds.
def job_settings(_):
    db = psycopg.connect("", autocommit=True, options="-c timezone=Asia/Tokyo -c work_mem=5MB")
    db.prepare_threshold = 0
    for i in range(ROUNDS):
        work_mem = f"{10 + SESSION % 5 + i}MB"
        db.execute("select set_config('work_mem', %s, false), set_config('app.tenant', %s, false)", (work_mem, f"t{SESSION}"))
        db.execute("set timezone = 'America/Lima'")
        with transaction(db):
            db.execute("set role none")
        same = db.execute("select current_setting('work_mem') = %s, current_setting('app.tenant') = %s, current_setting('TimeZone')",
                          (work_mem, f"t{SESSION}")).fetchall()
        say("settings", same)
        db.execute(("discard all", "reset all")[i % 2], prepare=False)
        if i % 2 == 0:
            db._prepared.clear()  # the driver's memory of what is prepared, as its pool's users have to
        say("settings", attempt(db, "select current_setting('work_mem'), current_setting('TimeZone'),"
                                    " nullif(current_setting('app.tenant', true), '')"))
    db.close()


# A worker that is told of jobs, between other work on the same connection.
def job_pinned(_):
    channel = f"jobs_{SESSION}"
    with psycopg.connect(dbname="pinned", autocommit=True) as worker, psycopg.connect(dbname="pinned", autocommit=True) as boss:
        worker.execute(f"listen {channel}")
        for i in range(ROUNDS):
            boss.execute("select pg_notify(%s, %s)", (channel, f"job {i}"))
            for told in worker.notifies():
                say("pinned", told.payload)
                break
            say("pinned", attempt(worker, "select count(*) from pg_listening_channels()"))
        worker.execute("unlisten *")
        boss.execute("select pg_notify(%s, 'late')", (channel,))
        say("pinned", attempt(worker, "select count(*) from pg_listening_channels()"))


run_jobs((job_prepared, job_reuse, job_changed_table, job_transaction, job_savepoint, job_error, job_cancel, job_copy,
          job_cursor, job_large_result, job_large_object, job_batch, job_reconnect, job_sessions, job_settings,
          *(() if PIPELINE else (job_pinned,))), connect)
