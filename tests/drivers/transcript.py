# SPDX-License-Identifier: ISC
"""What the Python programs share: the transcript, and the two digests."""

import hashlib
import os

SESSION = int(os.environ["DRIVER_SESSION"])
N_TEXTS = 6
ROUNDS = 8
BIG = "select i, md5(i::text) from generate_series(1, 3000) i"


def say(job, text):
    print(f"{job}: {text}", flush=True)


def not_here(job, why):
    say(job, f"not in this driver: {why}")


def digest(rows):
    """The rows as lines of fields with a bar between them."""
    md5 = hashlib.md5()
    n = 0
    for row in rows:
        md5.update(("|".join(str(field) for field in row) + "\n").encode())
        n += 1
    return f"{n} rows {md5.hexdigest()}"


def blob(size):
    """Bytes that do not repeat with a power of two."""
    period = bytes(i * 31 % 251 for i in range(251))
    return (period * (size // 251 + 1))[:size]


def run_jobs(jobs, connect):
    """Each job gets the same connection; one that raises ends, and the next has a new connection."""
    db = connect()
    for job in jobs:
        try:
            job(db)
        except Exception as error:
            say(job.__name__[len("job_"):].replace("_", "-"), f"raised {type(error).__name__}: {error}")
            db.close()
            db = connect()
    db.close()
