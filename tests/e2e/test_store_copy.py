"""`store copy`: a whole state goes from a file into a database and back, and agents go on from there as if nothing had happened."""
import contextlib
import socket
import sqlite3
import subprocess
import threading

import pytest
import servers
from agent import bot, config, csv_test, write_csv
from waiting import LONGEST, wait

pytestmark = pytest.mark.state_file


@pytest.fixture
def database():
    return servers.run_postgres().create()


def told_of(slack):
    return sum("regression in db.read" in str(post) for post in slack.posts)


def rows_of(path):
    """All tables, with SQLite's last ids."""
    with contextlib.closing(sqlite3.connect(path)) as state:
        tables = [name for name, in state.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")]
        return {name: sorted(state.execute(f"SELECT * FROM {name}"), key=repr) for name in tables}


def moved_to(path, state):
    """The configuration with another state."""
    text = path.read_text()
    changed = path.with_name("moved.yaml")
    changed.write_text(text.replace(f"state: {path.parent}/state.db", f"state: {state}"))
    assert changed.read_text() != text
    return changed


@pytest.fixture
def told(hunter, tmp_path, slack):
    """A configuration whose state has something in every table, more than a page of series, and a change that was told."""
    write_csv(tmp_path / "read.csv", [(30, 1.2)])
    path = config(tmp_path, csv_test(tmp_path / "read.csv"), bot(slack))
    assert hunter("run", "--once", "--config", path).code == 0
    assert told_of(slack) == 1
    for command in (("triage", "1", "acknowledged", "--note", "žluťoučký", "--config", path),
                    ("silence", "add", 'test=~"db.*"', "--for", "1h", "--reason", "it's \"known\"", "--config", path)):
        done = hunter(*command)
        assert done.code == 0, done.err
    with contextlib.closing(sqlite3.connect(tmp_path / "state.db")) as state, state:
        state.executemany("INSERT INTO series VALUES (?, ?, ?, ?, ?, ?, ?)",
                          [(f"t{i % 70}", f"s{i:05d}", "main" if i % 2 else "", -i, 2**53 - i, 1, 0) for i in range(5001)])
        state.executemany("INSERT INTO events VALUES (?, ?, 3, 1, ?, NULL, NULL, NULL, NULL, NULL, NULL)", [(9 + i, i, i) for i in range(4000)])
        state.execute("INSERT INTO environments VALUES (3, 'os', '12', 1, 2, 3, 4, 5, 6, 7, 8, NULL, 1, 2, 3, 1, 5)")
        state.execute("INSERT INTO conditions VALUES ('test x', 1, 5, 'gone')")
        state.execute("INSERT INTO moments VALUES ('digest', 5)")
        state.execute("INSERT INTO bisections (change, lab, state, asked, begun, runs, setup, verdict) VALUES (1, 'default', 3, 5, 6, 7, '{}', 'first bad: ž')")
        state.executemany("INSERT INTO bisection_events VALUES (1, ?, 2, ?, '{}')", [(i, i) for i in range(1, 5001)])
        state.execute("UPDATE changes SET culprit = '{\"bisection\": 1, \"end\": \"set\", \"verdict\": \"x\"}'")
        state.execute("INSERT INTO vanished VALUES ('a', 'b', 6)")
        state.execute("INSERT INTO seen VALUES ('a', 'runner', 7, '1f 2e 3 4')")
        state.execute("INSERT INTO bisections VALUES (7, 1, 'lab', 3, 5, 6, NULL, 2, 'ann', '{}', NULL, 'none', NULL)")
        state.execute("INSERT INTO bisection_events VALUES (7, 1, 2, 3, 'began')")
        state.execute("UPDATE changes SET pvalue = 1e-300, magnitude = 0.1, stddev_before = -0.0")
        state.execute("UPDATE sqlite_sequence SET seq = 1234567 WHERE name = 'changes'")  # others were forgotten
    return path


def test_there_and_back(hunter, told, tmp_path, slack, database):
    before = rows_of(tmp_path / "state.db")
    assert all(before.values()), [name for name, rows in before.items() if not rows]
    done = hunter("store", "copy", tmp_path / "state.db", database)
    assert done.code == 0, done.err
    assert "series: 5002\n" in done.out and "events: 4003\n" in done.out and f"copied to {database}, and compared\n" in done.out
    assert rows_of(tmp_path / "state.db") == before
    back = hunter("store", "copy", database, tmp_path / "back.db")
    assert back.code == 0, back.err
    assert rows_of(tmp_path / "back.db") == before
    for state in (database, tmp_path / "back.db"):
        checked = hunter("store", "check", "--state-file", state)
        assert checked.code == 0 and checked.out.endswith("OK\n"), checked.out
    # The agent goes on from the database: it tells nothing again, and new ids are no old ones.
    moved = moved_to(told, database)
    first = hunter("run", "--once", "--config", moved)
    assert first.code == 0 and told_of(slack) == 1, first.err
    write_csv(tmp_path / "read.csv", [(30, 1.2), (60, 1.2)], points=120)
    assert hunter("silence", "list", "--config", moved).out.count("it's") == 1
    hunter("run", "--once", "--config", moved)
    changes = hunter("changes", "--config", moved, "--output", "csv").out.splitlines()
    assert {line.split(",")[0] for line in changes[1:]} == {"1", "1234568"}


def test_lists_need_no_statistics(hunter, told, tmp_path, database):
    """Of many changes of which the database has no statistics yet, a list reads about those that it shows."""
    postgres, name = servers.run_postgres(), database.rsplit("/", 1)[1]
    assert hunter("store", "copy", tmp_path / "state.db", database).code == 0
    postgres.sql("ALTER TABLE changes SET (autovacuum_enabled = off)", name)
    postgres.sql("INSERT INTO changes SELECT made.* FROM changes AS known, generate_series(10, 20000) AS number, jsonb_populate_record(known,"
                 " jsonb_build_object('id', number, 'test', 't' || number % 200)) AS made WHERE known.id = 1", name)

    def read():
        """Rows of changes that were read, as sessions that have ended have told."""
        return postgres.sql("SELECT seq_tup_read + coalesce(idx_tup_fetch, 0) FROM pg_stat_user_tables WHERE relname = 'changes'", name)[0][0]

    for asked in (), ("--state", "confirmed"), ("--test", "t*99"), ("--test", "t17"), ("--open",):
        before = read()
        done = hunter("changes", "--state-file", database, "--limit", "90", "--output", "csv", *asked)
        assert done.code == 0 and len(done.out.splitlines()) == 91, done.err
        wait(lambda: read() > before)
        assert read() - before < 2000, asked


def test_what_is_refused(agents, hunter, told, tmp_path, database):
    file = tmp_path / "state.db"
    assert hunter("store", "copy", file).code == 2
    missing = hunter("store", "copy", tmp_path / "none.db", database)
    assert missing.code == 4 and "does not exist yet" in missing.err
    agent = agents(told)
    held = hunter("store", "copy", file, database)
    assert held.code == 4 and "in use by another hunter-c" in held.err and str(file) in held.err
    assert agent.end() == 0
    assert hunter("store", "copy", file, database).code == 0
    for to in (database, file):
        full = hunter("store", "copy", file, to)
        assert full.code == 4 and "is not empty" in full.err
    agent = agents(moved_to(told, database))
    wait(lambda: servers.run_postgres().sql("SELECT count(*) FROM agents", database.rsplit("/", 1)[1]) == [(1,)])
    held = hunter("store", "copy", database, tmp_path / "other.db")
    assert held.code == 4 and "in use by an agent" in held.err and not (tmp_path / "other.db").exists()
    assert agent.end() == 0


def test_agents_are_kept_off(agents, hunter, program, told, tmp_path, database):
    """An agent that is started while its database is copied joins when that is done; a file that is copied is locked."""
    assert hunter("store", "copy", tmp_path / "state.db", database).code == 0
    server = servers.run_postgres()
    name = database.rsplit("/", 1)[1]
    waiting = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'"
    with contextlib.closing(server.connect(name)) as connection, connection.cursor() as cursor:
        cursor.execute("BEGIN")
        cursor.execute("LOCK TABLE bisection_events")  # which the agent does not need
        copying = subprocess.Popen([program, "store", "copy", database, tmp_path / "copy.db"], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        wait(lambda: server.sql(waiting, name) == [(1,)])
        agent = subprocess.Popen([program, "run", "--config", moved_to(told, database)], stderr=subprocess.DEVNULL)
        wait(lambda: server.sql("SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND query LIKE '%INSERT INTO agents%'"
                                " AND datname = current_database()", name) == [(1,)])
        assert server.sql("SELECT count(*) FROM agents", name) == [(0,)]
        cursor.execute("COMMIT")
    out, problem = copying.communicate(timeout=LONGEST)
    assert copying.returncode == 0, problem
    assert b"and compared" in out
    wait(lambda: server.sql("SELECT count(*) FROM agents", name) == [(1,)])
    agent.terminate()
    assert agent.wait(LONGEST) == 0


def relay(source, target, stalls):
    """Passes bytes on until stalls(bytes), from when on nothing more arrives."""
    with contextlib.suppress(OSError):
        while (data := source.recv(65536)) and not stalls(data):
            target.sendall(data)


def test_a_check_says_that_it_waits(program, hunter, told, database):
    """The stream ends in the middle of an answer, and the connection stays."""
    assert hunter("store", "copy", told.parent / "state.db", database).code == 0
    port = int(database.rsplit(":", 1)[1].split("/")[0])
    asked = threading.Event()
    with contextlib.ExitStack() as stack:
        listener = stack.enter_context(socket.create_server(("127.0.0.1", 0)))

        def serve():
            client = stack.enter_context(listener.accept()[0])
            server = stack.enter_context(socket.create_connection(("127.0.0.1", port)))
            threading.Thread(target=relay, args=(server, client, lambda data: asked.is_set()), daemon=True).start()
            relay(client, server, lambda data: b"FROM excerpts" in data and asked.set())
            asked.wait(LONGEST)

        threading.Thread(target=serve, daemon=True).start()
        process = subprocess.Popen([program, "store", "check", "--state-file", database.replace(str(port), str(listener.getsockname()[1]))],
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        stack.callback(process.wait)
        stack.callback(process.kill)
        assert "waiting for the state database" in process.stderr.readline()
        stack.close()
    assert asked.is_set()
