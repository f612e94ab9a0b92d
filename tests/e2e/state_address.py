"""Where the agents of the tests keep their state: a file, or with HUNTER_TEST_STATE a database.

    state: {state_of(folder)}           # in a configuration, and for --state-file
    with open_state(folder) as state:   # and what is in it
        state.execute("SELECT id FROM changes WHERE test = ?", (name,)).fetchall()

HUNTER_TEST_STATE=postgresql gives each folder a database of its own in a PostgreSQL of the run, =pgbouncer the same through a PgBouncer
in transaction mode. Tests that are about the file itself are marked `state_file` and skipped then.
"""
import contextlib
import hashlib
import os
import pathlib
import sqlite3

import servers
from waiting import LONGEST

KIND = os.environ.get("HUNTER_TEST_STATE", "file")
assert KIND in ("file", "postgresql", "pgbouncer"), f"HUNTER_TEST_STATE: {KIND} is none of file, postgresql, pgbouncer"


_made = {}  # path -> the database that this process has made in place of that file


def _database(folder, name):
    return "state_" + hashlib.sha1(str(pathlib.Path(folder).absolute() / name).encode()).hexdigest()[:16]


def state_of(folder, name="state.db"):
    """The state of an agent that keeps it in this folder, as a configuration names it; an empty database is there then."""
    if KIND == "file":
        return f"{folder}/{name}"
    run = servers.run_postgres()
    database = _database(folder, name)
    if not run.sql(f"SELECT 1 FROM pg_database WHERE datname = '{database}'"):
        run.create(database)
        _made[pathlib.Path(folder).absolute() / name] = database
    return (servers.run_pgbouncer() if KIND == "pgbouncer" else run).address(database)


def drop_state(folder, name="state.db"):
    """Nothing is known any more."""
    if KIND == "file":
        pathlib.Path(folder, name).unlink(missing_ok=True)
    else:
        servers.run_postgres().sql(f"DROP DATABASE IF EXISTS {_database(folder, name)} WITH (FORCE)")
        state_of(folder, name)


def drop_states(folder):
    """The databases of what is in this folder go: each takes 8 MB."""
    for path in [path for path in _made if path.is_relative_to(folder)]:
        servers.run_postgres().sql(f"DROP DATABASE IF EXISTS {_made.pop(path)} WITH (FORCE)")


class _Rows:
    """A connection to PostgreSQL that takes statements as sqlite3's does."""

    def __init__(self, connection):
        self.connection = connection

    def execute(self, text, values=()):
        cursor = self.connection.cursor()
        cursor.execute(text.replace("%", "%%").replace("?", "%s"), tuple(values))
        return cursor

    def executescript(self, text):
        self.connection.cursor().execute(text)


@contextlib.contextmanager
def open_state(folder, name="state.db"):
    """What is in a state, to be read and altered: execute() as of sqlite3, each statement a transaction of its own."""
    if KIND == "file":
        with contextlib.closing(sqlite3.connect(pathlib.Path(folder, name), timeout=LONGEST, isolation_level=None)) as connection:
            yield connection
    else:
        with contextlib.closing(servers.run_postgres().connect(_database(folder, name))) as connection:
            yield _Rows(connection)



def state_text(folder):
    """All that a state holds, as text of some kind: to look for what must not be in it."""
    if KIND == "file":
        return "".join(file.read_bytes().decode("latin-1") for file in pathlib.Path(folder).glob("state.db*"))
    with open_state(folder) as state:
        tables = [name for name, in state.execute("SELECT tablename FROM pg_tables WHERE schemaname NOT IN ('pg_catalog', 'information_schema')")]
        return "\n".join(row.encode().decode("latin-1") for table in tables
                         for row, in state.execute(f'SELECT encode(convert_to(x::text, \'UTF8\'), \'escape\') FROM "{table}" x'))
