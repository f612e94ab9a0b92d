"""A running agent whose sources fail, each in its way, and recover: nothing is concluded from what they answered meanwhile.

Each series has a change that is told at the start. Then its source fails, is told to be down, once, and that it is up again,
once; no change was made, moved or withdrawn by that, nor told again. In the end there is one more change, and that is told.
"""
import contextlib
import datetime
import json
import os
import random
import socket
import struct
import threading
import urllib.request

import faulty
import pytest
import servers
from agent import START, config, csv_test, level, write_csv
from test_conditions import count, wait_out
from test_faults import FAIL, KINDS, NOT_GRAPHITE, Graphite
from waiting import LONGEST

STEPS, POINTS = [(40, 1.2)], 60
LATER, MORE = [(40, 1.2), (90, 1.25)], 130  # a way back would be no change of its own, but tell that the first is over
AGAIN = {"limit_hour"}  # it is well when it is asked again

# Where nothing comes, or not enough, a timeout ends it. What is well has a minute: a busy machine is no fault.
HANGING = {"drip", "silence", "hang", "slow"}


def timeout(fault):
    return "3s" if fault in HANGING else "1m"


# What an agent may take for data: it says so or not, but a source is not down by it. Nothing at all is a problem of the test.
QUIET = {"nothing", "late"}


def values(steps, points):
    return [f"{level(i, steps, 1000):.0f}" for i in range(points)]


def changes(agent):
    """What is known: of each test the changes, the first one first."""
    known = {}
    for change in reversed(json.loads(agent.get("/api/v1/changes?limit=1000")[1])["changes"]):
        known.setdefault(change["test"], []).append(change)
    return known


def wait_changes(agent, tests, each):
    """Until so many changes of each test are told."""
    def told():
        known = changes(agent)
        return all(sum(c["announced"] is not None for c in known.get(test, [])) >= each for test in tests)

    agent.wait(told)


def check(agent, tests, each):
    """Each change was found once and told once, and nothing else has ever happened to it."""
    known = changes(agent)
    assert sorted(known) == sorted(tests)
    for test in tests:
        assert [c["state"] for c in known[test]] == ["confirmed"] * each, known[test]
        assert all([e["event"] for e in c["history"] if e["event"] != "grown"] == ["found", "announced"] for c in known[test]), known[test]


def check_notices(agent, sources, failing=()):
    """Sources that were down, and tests that failed though their source was well: each told once, and once that it is over."""
    said = "".join(line for line in agent.out if " is down: " in line or " is up again" in line)
    for source in sources:
        assert count(agent, f"source {source} is down") == 1 and count(agent, f"source {source} is up again") == 1, source
    assert count(agent, " is down: ") == count(agent, " is up again") == len(sources), said
    for test in failing:
        assert count(agent, f'test "{test}" has failed since') == count(agent, f'test "{test}" has recovered') == 1, test
    assert count(agent, "has failed since") == count(agent, "has recovered") == len(failing)


def runs():
    return 40 if os.environ.get("HUNTER_TEST_FULL") else 3


@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
def test_servers_that_recover(agents, tmp_path, kind):
    """A source for each fault, two tests on each; with a good one beside them."""
    never = {*AGAIN, *NOT_GRAPHITE, "lacking"} if kind is Graphite else AGAIN
    faults = [f for f in (*FAIL, "lacking", *sorted(QUIET)) if f not in never]
    data = type("Changing", (kind,), {"values": values(STEPS, POINTS)})
    with faulty.Server(data) as elsewhere, faulty.Server(data, elsewhere.url) as server:
        elsewhere.elsewhere, elsewhere.well, server.well = server.url, True, True
        names = {**{f"s-{fault}": f"fault_{fault}" for fault in faults}, "s-good": "good"}
        sources = "sources:\n" + "".join(
            f"  {name}: {{type: {kind.name}, url: '{server.url}', timeout: {timeout(name[2:])}, retry_for: 0s, max_body: 1MB}}\n"
            for name in names)
        tests = {f"{name}.{i}": f"{kind.test(word)[:-1]}, source: {name}, range: 3000d}}"
                 for name, word in names.items() for i in range(2)}
        agent = agents(config(tmp_path, "".join(f"  {t}: {text}\n" for t, text in tests.items()), sources))
        wait_changes(agent, tests, 1)
        server.well = elsewhere.well = False
        down = [f"s-{fault}" for fault in faults if fault not in QUIET]
        for source in down:
            wait_out(agent, f"source {source} is down")
        agent.pass_by(runs() * len(tests))
        check(agent, tests, 1)
        server.well = elsewhere.well = True
        for source in down:
            wait_out(agent, f"source {source} is up again")
        agent.pass_by(2 * len(tests))
        check(agent, tests, 1)
        data.values = values(LATER, MORE)
        wait_changes(agent, tests, 2)
        agent.pass_by(len(tests))
        check(agent, tests, 2)
        check_notices(agent, down, ["s-nothing.0", "s-nothing.1"])
        assert agent.end() == 0


# Files. Each is the only one of its agent, and so is a source.


def rows(steps, points, folder):
    write_csv(folder / "rows", steps, points)
    return (folder / "rows").read_bytes()


def content(data):
    return lambda path: path.write_bytes(data)


def file_faults(folder):
    """What stands in the place of the file: those that are errors, and those that are data."""
    good = rows(STEPS, POINTS, folder)
    lines = good.splitlines(True)
    loud = {
        "missing": lambda path: None,
        "folder": lambda path: path.mkdir(),
        "pipe": os.mkfifo,
        "loop": lambda path: path.symlink_to(path.with_name("read.csv")),
        "empty": content(b""),
        "cut": content(b"".join(lines[:30]) + lines[30][:20]),
        "binary": content(random.Random(1).randbytes(5000)),
        "page": content(b"<!DOCTYPE html><html><body>Not found</body></html>\n"),
        "columns": content(good.replace(b"p99", b"p98")),
        "nul": content(good[:500] + bytes(500) + good[1000:]),
        "zeros": content(bytes(len(good))),
        "words": content(good.replace(b"T", b"x")),
    }
    quiet = {
        "head": content(lines[0]),
        "late": content(b"".join(lines[:31])),
        "cut_value": content(b"".join(lines[:51])[:-5]),
        "one_after": content(b"".join(lines[:42])),
        "tail": content(lines[0] + b"".join(lines[50:])),
    }
    return loud, quiet


def put(path, write):
    """A file replaces the one before as a careful program does it; what is no file takes the free place."""
    new = path.with_name("new")
    write(new)
    if new.is_file() and path.is_file():
        new.rename(path)
        return
    path.rmdir() if path.is_dir() else path.unlink(missing_ok=True)
    if new.exists() or new.is_symlink():
        new.rename(path)


@pytest.fixture
def files(agents, tmp_path):
    """files(FAULTS) starts an agent for each fault, with a file that is good: its path and the agent, by fault."""
    def start(faults):
        started = {}
        for fault in faults:
            folder = tmp_path / fault
            folder.mkdir()
            write_csv(folder / "read.csv", STEPS, POINTS)
            started[fault] = folder / "read.csv", agents(
                config(folder, csv_test(folder / "read.csv"), agent="  read_timeout: 300ms" if fault == "pipe" else ""))
        return started

    return start


def pass_all(agents, passes):
    """Until so many more passes of each are over."""
    goals = [agent.metric("hunter_runs_total") + passes for agent in agents]
    for agent, goal in zip(agents, goals):
        agent.wait_metric("hunter_runs_total", goal)


def test_files_that_come_back(files, tmp_path):
    loud, quiet = file_faults(tmp_path)
    started = files([*loud, *quiet])
    everyone = [agent for _, agent in started.values()]
    for agent in everyone:
        wait_changes(agent, ["db.read"], 1)
    for fault, (path, _) in started.items():
        put(path, (loud | quiet)[fault])
    for fault in loud:
        wait_out(started[fault][1], "source csv is down")
    pass_all(everyone, runs())
    for path, agent in started.values():
        check(agent, ["db.read"], 1)
        put(path, content(rows(STEPS, POINTS, tmp_path)))
    for fault in loud:
        wait_out(started[fault][1], "source csv is up again")
    pass_all(everyone, 2)
    for path, agent in started.values():
        check(agent, ["db.read"], 1)
        put(path, content(rows(LATER, MORE, tmp_path)))
    for agent in everyone:
        wait_changes(agent, ["db.read"], 2)
    pass_all(everyone, 1)
    for fault, (_, agent) in started.items():
        check(agent, ["db.read"], 2)
        check_notices(agent, ["csv"] if fault in loud else [])
        assert agent.end() == 0


@pytest.mark.parametrize("factor", [1.2, 1.03, 1.015])
def test_a_file_that_ends_anywhere(agents, tmp_path, factor):
    """Cut after each row in turn, and whole again: it is the same change all the time."""
    steps = [(40, factor)]
    path = config(tmp_path, csv_test(tmp_path / "read.csv"))
    path.write_text(path.read_text().replace("interval: 1s", "interval: 1d"))
    write_csv(tmp_path / "read.csv", steps, POINTS)
    agent = agents(path)
    wait_changes(agent, ["db.read"], 1)
    for points in range(POINTS):
        for length in (points, POINTS):
            write_csv(tmp_path / "read.csv", steps, length)
            with urllib.request.urlopen(f"{agent.address()}/api/v1/run?test=db.read", data=b"", timeout=LONGEST) as answer:
                done = json.load(answer)
            assert (done["failed"], done["new"], done["withdrawn"], done["returned"]) == (0, 0, 0, 0), (points, length, done)
    check(agent, ["db.read"], 1)
    assert agent.end() == 0


def test_a_file_that_is_corrected_while_no_agent_runs(hunter, tmp_path):
    """What it no longer shows is withdrawn by the next agent; what it still shows, through whatever windows, is not."""
    path = config(tmp_path, csv_test(tmp_path / "read.csv"))
    write_csv(tmp_path / "read.csv", LATER, 200)
    assert hunter("run", "--once", "--config", path).code == 0
    write_csv(tmp_path / "read.csv", LATER[1:], 201)
    assert "withdrawn=1" in hunter("run", "--once", "--config", path).err
    for _ in range(2):
        assert "msg=changes" not in hunter("run", "--once", "--config", path).err
    done = hunter("changes", "--config", path, "--output", "json")
    assert sorted(c["state"] for c in json.loads(done.out)["changes"]) == ["confirmed", "withdrawn"]


# PostgreSQL: a real one, behind a relay that breaks connections, or with tables that are not as they were.


class Relay:
    """Passes bytes on to a server and back, unless it has a fault: one of close, reset, silence, http, or, in the middle of the
    rows, cut and hang."""

    ROWS = 1500  # bytes of answers after which rows are on their way

    def __init__(self, port, fault):
        self.port, self.fault, self.well, self.held = port, fault, True, []
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.own = self.listener.getsockname()[1]
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        with contextlib.suppress(OSError):
            while True:
                connection, _ = self.listener.accept()
                threading.Thread(target=self.serve, args=(connection,), daemon=True).start()

    def serve(self, client):
        fault = None if self.well else self.fault
        with contextlib.suppress(OSError):
            if fault == "silence":
                self.held.append(client)
                return
            if fault == "http":
                client.recv(100)
                client.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")
            if fault in ("close", "http"):
                client.close()
                return
            server = socket.create_connection(("127.0.0.1", self.port))
            threading.Thread(target=self.pump, args=(client, server, None), daemon=True).start()
            self.pump(server, client, fault)

    def pump(self, source, target, fault):
        passed = 0
        with contextlib.suppress(OSError):
            while data := source.recv(1000):
                passed += len(data)
                if fault in ("cut", "reset", "hang") and passed > self.ROWS:
                    if fault == "reset":
                        target.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                    if fault == "hang":
                        self.held.append(target)
                        return
                    break
                target.sendall(data)
        for end in (target, source):
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RD)  # the other thread waits there, and until it has ended it is not closed
            end.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.listener.close()
        for connection in self.held:
            connection.close()


TABLE = """
DROP TABLE IF EXISTS {0} CASCADE; DROP VIEW IF EXISTS {0}_read;
CREATE TABLE {0} (i int, at timestamptz, p99 double precision);
INSERT INTO {0} VALUES {1};
CREATE VIEW {0}_read AS SELECT at, p99 FROM {0} ORDER BY i;
GRANT SELECT ON {0}_read TO reader;
"""

# What is done to a test's table, and undone.
SQL_FAULTS = {
    "gone": ("ALTER VIEW {0}_read RENAME TO {0}_away", "ALTER VIEW {0}_away RENAME TO {0}_read"),
    "denied": ("REVOKE SELECT ON {0}_read FROM reader", "GRANT SELECT ON {0}_read TO reader"),
    "divided": ("CREATE OR REPLACE VIEW {0}_read AS SELECT at, p99 / (CASE WHEN i = 50 THEN 0 ELSE 1 END) AS p99 FROM {0} ORDER BY i",
                "CREATE OR REPLACE VIEW {0}_read AS SELECT at, p99 FROM {0} ORDER BY i"),
    "slow": ("CREATE OR REPLACE VIEW {0}_read AS SELECT at, p99 + length(pg_sleep(i / 10)::text) AS p99 FROM {0} ORDER BY i",
             "CREATE OR REPLACE VIEW {0}_read AS SELECT at, p99 FROM {0} ORDER BY i"),
    "no_rows": ("CREATE OR REPLACE VIEW {0}_read AS SELECT at, p99 FROM {0} WHERE false",
                "CREATE OR REPLACE VIEW {0}_read AS SELECT at, p99 FROM {0} ORDER BY i"),
    "late": ("CREATE OR REPLACE VIEW {0}_read AS SELECT at, p99 FROM {0} WHERE i < 41 ORDER BY i",
             "CREATE OR REPLACE VIEW {0}_read AS SELECT at, p99 FROM {0} ORDER BY i"),
}
SQL_QUIET = {"no_rows", "late"}
RELAY_FAULTS = ("close", "reset", "silence", "http", "cut", "hang")


def table_rows(steps, first, points):
    return ",".join(f"({i}, '{(START + datetime.timedelta(hours=i)).isoformat()}', {level(i, steps):.4f})"
                    for i in range(first, points))


def test_a_database_that_recovers(agents, tmp_path):
    names = [*RELAY_FAULTS, *SQL_FAULTS, "good"]
    with contextlib.ExitStack() as stack:
        server = stack.enter_context(servers.postgres())
        relays = {fault: stack.enter_context(Relay(server.port, fault)) for fault in RELAY_FAULTS}
        server.sql("CREATE ROLE reader LOGIN PASSWORD 'read me';" +
                   "".join(TABLE.format(f"t_{name}", table_rows(STEPS, 0, POINTS)) for name in names))
        sources = "sources:\n" + "".join(
            f"  s-{name}: {{type: postgres, hostname: 127.0.0.1, port: {relays[name].own if name in relays else server.port}, username: reader, "
            f"password: 'read me', database: postgres, sslmode: disable, connect_timeout: {timeout(name)}, timeout: {timeout(name)}}}\n"
            for name in names)
        tests = "".join(f"  {name}: {{source: s-{name}, time_column: at, metrics: {{p99: {{direction: -1}}}}, "
                        f"query: 'SELECT at, p99 FROM t_{name}_read'}}\n" for name in names)
        agent = agents(config(tmp_path, tests, sources))
        wait_changes(agent, names, 1)
        for relay in relays.values():
            relay.well = False
        server.sql(";".join(do.format(f"t_{name}") for name, (do, _) in SQL_FAULTS.items()))
        down = [f"s-{name}" for name in names if name not in SQL_QUIET and name != "good"]
        for source in down:
            wait_out(agent, f"source {source} is down")
        agent.pass_by(runs() * len(names))
        check(agent, names, 1)
        for relay in relays.values():
            relay.well = True
        server.sql(";".join(undo.format(f"t_{name}") for name, (_, undo) in SQL_FAULTS.items()))
        for source in down:
            wait_out(agent, f"source {source} is up again")
        agent.pass_by(2 * len(names))
        check(agent, names, 1)
        server.sql(";".join(f"INSERT INTO t_{name} VALUES {table_rows(LATER, POINTS, MORE)}" for name in names))
        wait_changes(agent, names, 2)
        agent.pass_by(len(names))
        check(agent, names, 2)
        check_notices(agent, down, ["no_rows"])
        assert agent.end() == 0
