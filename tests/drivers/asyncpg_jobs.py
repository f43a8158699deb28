# SPDX-License-Identifier: ISC
"""asyncpg: binary extended protocol, a cache of named statements for every query, portals with row limits."""

import asyncio
import io
import os

import asyncpg

from transcript import BIG, N_TEXTS, ROUNDS, SESSION, blob, digest, say


async def connect(**options):
    return await asyncpg.connect(**options)


def failure(error):
    return f"{error.sqlstate} {error.args[0]}"


async def attempt(db, sql, *args):
    try:
        return f"fine {[tuple(row) for row in await db.fetch(sql, *args)]}"
    except asyncpg.PostgresError as error:
        return failure(error)


async def job_prepared(db):
    statements = [await db.prepare(f"select $1::int + {1000 * SESSION + k}") for k in range(N_TEXTS)]
    sums = [0] * N_TEXTS
    for i in range(ROUNDS):
        async with db.transaction():
            for k, statement in enumerate(statements):
                sums[k] += await statement.fetchval(i) - 1000 * SESSION
    say("prepared", sums)
    say("prepared", statements[0].get_parameters())
    say("prepared", [attribute.type.name for attribute in statements[0].get_attributes()])
    for sql, value in (("int8", 2**40), ("float8", 1.5), ("text", "text \u20ac"), ("bytea", b"\0\xff"),
                       ("int[]", [1, None, 3]), ("bool", True), ("numeric", None)):
        say("prepared", await attempt(db, f"select $1::{sql}, pg_typeof($1)::text", value))


async def job_reuse(db):
    await db.execute("insert into account values ($1, 500, 1, 'reuse')", SESSION)
    for _ in range(5):
        say("reuse", await attempt(db, "select note from account where s = $1 and id = $2", SESSION, 500))
        say("reuse", await attempt(db, "select 1 / $1::int", 0))
    # A small cache: the driver closes what it gives up.
    small = await connect(statement_cache_size=4)
    total = 0
    for i in range(4 * N_TEXTS):
        total += await small.fetchval(f"select $1::int * {1000 + i % 7}", 2)
    say("reuse", total)
    await small.close()
    # None: the unnamed statement, parsed in one unit and used in the next.
    none = await connect(statement_cache_size=0)
    say("reuse", sum([await none.fetchval(f"select $1::int + {i}", 1) for i in range(N_TEXTS)]))
    await none.close()


async def job_changed_table(db):
    # Between two uses of a statement its result gets other columns. The driver prepares anew, outside a transaction.
    await db.execute(f"create table changing_{SESSION} as select 1 as a")
    for change in ("add b text default 'b'", "alter a type text", "drop b"):
        for _ in range(2):
            say("changed-table", await attempt(db, f"select * from changing_{SESSION} where a::text = $1", "1"))
        await db.execute(f"alter table changing_{SESSION} {change}")
    await db.execute(f"drop table changing_{SESSION}")


async def job_transaction(db):
    await db.execute("insert into account values ($1, 1, 100, 'one'), ($1, 2, 50, 'two')", SESSION)
    for i in range(ROUNDS):
        transaction = db.transaction()
        await transaction.start()
        await db.execute("update account set balance = balance - $2::int where s = $1 and id = 1", SESSION, i)
        await db.execute("update account set balance = balance + $2::int where s = $1 and id = 2", SESSION, i)
        await (transaction.rollback() if i % 2 else transaction.commit())
    say("transaction", await attempt(db, "select id, balance from account where s = $1 order by id", SESSION))
    async with db.transaction(isolation="serializable", readonly=True, deferrable=True):
        say("transaction", await attempt(db, "show transaction_isolation"))
        say("transaction", await attempt(db, "insert into account values ($1, 3, 0)", SESSION))


async def job_savepoint(db):
    async with db.transaction():
        await db.execute("insert into account values ($1, 10, 1, 'kept')", SESSION)
        inner = db.transaction()
        await inner.start()
        await db.execute("insert into account values ($1, 11, 1, 'undone')", SESSION)
        await inner.rollback()
        try:
            async with db.transaction():
                await db.execute("insert into account values ($1, 10, 2, 'twice')", SESSION)
        except asyncpg.PostgresError as error:
            say("savepoint", failure(error))
        async with db.transaction():
            await db.execute("insert into account values ($1, 12, 1, 'kept')", SESSION)
    rows = await attempt(db, "select id, note from account where s = $1 and id between 10 and 12 order by id", SESSION)
    say("savepoint", rows)


async def job_error(db):
    for sql in ("select 1 / $1::int", "selec $1::int", "select * from missing where a = $1", "select 'x'::int + $1"):
        transaction = db.transaction()
        await transaction.start()
        say("error", await attempt(db, sql, 0))
        say("error", await attempt(db, "select $1::int", 1))
        await transaction.rollback()
        say("error", await attempt(db, "select $1::int", 1))
    say("error", await attempt(db, "select 5 / $1::int", 0))
    say("error", await attempt(db, "select $1::int", 1))
    try:
        await db.execute("select 1; select 1 / 0; select 2")
    except asyncpg.PostgresError as error:
        say("error", failure(error))
    try:
        await db.fetchval("select $1::int", "not an int")
    except asyncpg.DataError as error:
        say("error", error)
    say("error", await attempt(db, "select $1::int", 1))


async def wait_for_sleep(query):
    """Until the server runs it: the driver cancels once."""
    words = dict(word.split("=") for word in os.environ["OBSERVER"].split())
    observer = await asyncpg.connect(host=words["host"], port=words["port"], user=words["user"], database=words["dbname"])
    while not await observer.fetchval(
            "select count(*) from pg_sleep(0.01), pg_stat_activity where query = $1 and wait_event = 'PgSleep'", query):
        pass
    await observer.close()


async def job_cancel(db):
    for i in range(3):
        query = f"select pg_sleep($1) -- {SESSION} {i}"
        task = asyncio.create_task(db.fetch(query, 60))
        await wait_for_sleep(query)
        task.cancel()
        try:
            await task
        except asyncio.CancelledError:
            say("cancel", "cancelled")
        say("cancel", await attempt(db, "select $1::int", 1))


async def job_copy(db):
    records = [(SESSION, i, f"note {i}") for i in range(5000)]
    say("copy", await db.copy_records_to_table("copied", records=records))
    out = io.BytesIO()
    query = "select id, note from copied where s = $1 order by id"
    say("copy", await db.copy_from_query(query, SESSION, output=out))
    say("copy", digest(line.split("\t") for line in out.getvalue().decode().splitlines()))
    source = "".join(f"{SESSION}\t{i}\tx\n" for i in range(2000)) + f"{SESSION}\tnot a number\tx\n"
    try:
        await db.copy_to_table("copied", source=io.BytesIO(source.encode()))
    except asyncpg.PostgresError as error:
        say("copy", failure(error))
    try:
        await db.copy_records_to_table("copied", records=[(SESSION, "not an int", None)])
    except Exception as error:  # the driver's own, raised in mid-COPY
        say("copy", type(error).__name__)
    say("copy", await attempt(db, "select count(*) from copied where s = $1", SESSION))


async def job_cursor(db):
    for size in (7, 1000):
        async with db.transaction():
            rows = []
            async for row in db.cursor(BIG, prefetch=size):
                rows.append(tuple(row))
                if size == 7 and len(rows) == 70:
                    break
            say("cursor", digest(rows))
    async with db.transaction():
        walk = await db.cursor("select i from generate_series(1, $1::int) i", 1000)
        await walk.forward(500)
        other = await db.cursor("select -i from generate_series(1, $1::int) i", 1000)
        rows = [tuple(row) for row in await walk.fetch(3) + await other.fetch(3) + await walk.fetch(2)]
        say("cursor", rows)


async def job_large_result(db):
    say("large-result", digest(await db.fetch(BIG)))
    text, data = await db.fetchrow("select repeat('0123456789', 300000), $1::bytea", blob(1000000))
    say("large-result", f"{len(text)} {data == blob(1000000)}")


async def job_large_object(db):
    oid = await db.fetchval("select lo_from_bytea(0, $1)", blob(300000))
    async with db.transaction():
        fd = await db.fetchval("select lo_open($1, 393216)", oid)
        await db.fetch("select lo_lseek($1, 1000, 0), lowrite($1, $2)", fd, b"changed")
    data = await db.fetchval("select lo_get($1)", oid)
    say("large-object", f"{len(data)} {data[990:1020].hex()}")
    await db.execute("select lo_unlink($1)", oid)
    say("large-object", (await attempt(db, "select lo_get($1)", oid)).replace(str(oid), "OID"))


async def job_batch(db):
    insert = "insert into account values ($1, $2, $3)"
    await db.executemany(insert, [(SESSION, i, i) for i in range(100, 400)])
    try:
        await db.executemany(insert, [(SESSION, i, i) for i in range(400, 450)] + [(SESSION, 100, 0)])
    except asyncpg.PostgresError as error:
        say("batch", failure(error))
    say("batch", await attempt(
        db, "select count(*), sum(balance) from account where s = $1 and id between 100 and 450", SESSION))


async def job_reconnect(_):
    for i in range(5):
        db = await connect()
        say("reconnect", await attempt(db, f"select $1::int, {i}", i))
        if i % 2:
            await db.execute("begin")
            await db.execute("insert into account values ($1, 9000, 0, 'left in a transaction')", SESSION)
        if i == 4:
            db.terminate()
        else:
            await db.close()


async def job_sessions(_):
    async def work(first):
        db = await connect()
        for i in range(ROUNDS):
            async with db.transaction():
                # The names __asyncpg_stmt_1__ ... are the same in both sessions, the texts are not.
                await db.execute(f"insert into account values ($1, {first} + $2::int, $3)", SESSION, 2 * i, i)
        await db.close()

    await asyncio.gather(work(1000), work(1001))
    db = await connect()
    say("sessions", await attempt(
        db, "select count(*), sum(balance) from account where s = $1 and id between 1000 and 8999", SESSION))
    await db.close()


# Settings of the login, and the driver's own reset, which its pool sends between two users: locks, cursors, channels and
# settings all at once.
async def job_settings(_):
    db = await connect(server_settings={"timezone": "Asia/Tokyo", "application_name": "habits", "jit": "off"})
    for i in range(ROUNDS):
        await db.execute(f"set work_mem = '{10 + SESSION % 5 + i}MB'")
        async with db.transaction():
            await db.execute("set local timezone = 'UTC'")
            say("settings", await attempt(db, "select current_setting('work_mem') = $1, current_setting('timezone')",
                                          f"{10 + SESSION % 5 + i}MB"))
        await db.reset()
        say("settings", await attempt(db, "select current_setting('work_mem'), current_setting('timezone'),"
                                          " current_setting('application_name'), current_setting('jit')"))
    await db.close()


async def job_pinned(_):
    told = asyncio.Queue()
    channel = f"asyncpg_{SESSION}"
    worker, boss = await connect(database="pinned"), await connect(database="pinned")
    await worker.add_listener(channel, lambda _db, _pid, _channel, payload: told.put_nowait(payload))
    for i in range(ROUNDS):
        await boss.execute("select pg_notify($1, $2)", channel, f"job {i}")
        say("pinned", await told.get())
        await worker.execute("create temporary table if not exists seen (i int)")
        await worker.execute("insert into seen values ($1)", i)
    say("pinned", await attempt(worker, "select count(*), sum(i) from seen"))
    await worker.reset()
    say("pinned", await attempt(worker, "select count(*) from pg_listening_channels()"))
    say("pinned", await attempt(worker, "drop table seen"))
    await worker.close()
    await boss.close()


async def main():
    db = await connect()
    for job in (job_prepared, job_reuse, job_changed_table, job_transaction, job_savepoint, job_error, job_cancel,
                job_copy, job_cursor, job_large_result, job_large_object, job_batch, job_reconnect, job_sessions,
                job_settings, job_pinned):
        try:
            await job(db)
        except Exception as error:
            say(job.__name__[len("job_"):].replace("_", "-"), f"raised {type(error).__name__}: {error}")
            db.terminate()
            db = await connect()
    await db.close()


asyncio.run(main())
