#!/usr/bin/env python3
"""Rows of tests/bench/run: agents that share a state in PostgreSQL, which runs on the same machine (docs/operate/fleet.md).

    bench_fleet.py BUILD_FOLDER [ROW...]      store, quiet, take-over, many

The database's statements are counted by pg_stat_statements, its processor time is that of all its processes.
"""
import contextlib
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import time

TOP = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(TOP / "tests/bench"), str(TOP / "tests/e2e")]
import bench_agent  # noqa: E402

try:
    import pytest
    import servers
except ImportError as error:
    print("fleet", f"{error.name} is not installed", "", "", "", sep="\t")
    sys.exit()

TTL = 15
SETTINGS = ("shared_preload_libraries=pg_stat_statements", "pg_stat_statements.track=all", "shared_buffers=256MB", "fsync=on", "full_page_writes=on",
            "synchronous_commit=on")


def row(work, took, rate="", memory=""):
    print("fleet", work, took, rate, memory, sep="\t", flush=True)


class Database:
    """A database of the server, and what it does for the agents."""

    def __init__(self, server, name):
        self.server, self.name = server, name
        server.create(name)
        self.address = server.address(name)
        self.sql("CREATE EXTENSION IF NOT EXISTS pg_stat_statements")

    def sql(self, text):
        return self.server.sql(text, self.name)

    def statements(self):
        """(statements, those that write, those of transactions: BEGIN, COMMIT ...) of the agents until now."""
        found = self.sql("SELECT calls, query FROM pg_stat_statements JOIN pg_roles r ON r.oid = userid WHERE rolname = 'hunter'")
        whole = writes = control = 0
        for calls, query in found:
            word = query.split(None, 1)[0].upper()
            whole += calls
            control += calls * (word in ("BEGIN", "COMMIT", "ROLLBACK", "SET", "START"))
            writes += calls * (word in ("INSERT", "UPDATE", "DELETE") or word == "WITH" and any(w in query for w in ("UPDATE ", "INSERT ", "DELETE ")))
        return whole, writes, control

    def cpu(self):
        """Seconds of the processor that the server's processes, also those that have ended, have taken."""
        words = pathlib.Path(f"/proc/{self.server.process.pid}/stat").read_text().rsplit(")", 1)[1].split()
        spent = sum(int(word) for word in words[11:15])
        for path in pathlib.Path("/proc").glob("[0-9]*/stat"):
            with contextlib.suppress(OSError):
                words = path.read_text().rsplit(")", 1)[1].split()
                if int(words[1]) == self.server.process.pid:
                    spent += int(words[11]) + int(words[12])
        return spent / bench_agent.TICKS

    def shares(self):
        """How many shards each live agent holds; none as long as there are no tables."""
        if not self.sql("SELECT to_regclass('agents')")[0][0]:
            return []
        return sorted(int(count) for count, in self.sql(
            "SELECT count(shard) FROM agents LEFT JOIN shards ON holder = instance WHERE gone = 0 GROUP BY instance"))


def configure(folder, database, source, tests, interval):
    path = folder / "hunter.yaml"
    with open(path, "w") as f:
        f.write(f"""prometheus: {{url: "http://127.0.0.1:{source.port}"}}
agent: {{listen: "127.0.0.1:${{PORT}}", name: "agent-${{PORT}}", state: "{database.address}", interval: {interval}, group_wait: 1h}}
tests:
""")
        for i in range(tests):
            f.write(f"  bench.{i:05d}: {{type: prometheus, query: 'bench{{t=\"{i}\"}}', range: 200m, step: 1m}}\n")
    return path


PORTS = set()


def agent(build, path):
    port = bench_agent.free_port()
    while port in PORTS:  # that of an agent that does not listen yet
        port = bench_agent.free_port()
    PORTS.add(port)
    os.environ["PORT"] = str(port)
    return bench_agent.Program(port, build / "hunter-c", "run", "--config", path)


def wait(condition, what, seconds=300):
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            sys.exit(f"{what} did not come")
        time.sleep(0.1)  # between two looks


def is_shared(database, count):
    shares = database.shares()
    return len(shares) == count and sum(shares) == 256 and shares[-1] - shares[0] <= 1


def runs(agents):
    return sum(bench_agent.all_runs(a) for a in agents)


def quiet(build, folder, server):
    """10,000 tests a minute, shared by one, two, four and eight agents, which find nothing."""
    with bench_agent.running(source := bench_agent.serve(build, 1, "steady")):
        database = Database(server, "quiet")
        path = configure(folder, database, source, 10_000, "1m")
        agents = []
        try:
            for count in (1, 2, 4, 8):
                while len(agents) < count:
                    agents.append(agent(build, path))
                wait(lambda: is_shared(database, count), "the fair shares")
                before = runs(agents)
                wait(lambda: runs(agents) > before + 20_000, "two passes")
                began, cpu, theirs, base = time.monotonic(), sum(a.cpu() for a in agents), database.cpu(), database.statements()
                ran, missed = runs(agents), sum(a.metrics().get("hunter_missed_runs_total", 0) for a in agents)
                time.sleep(60)  # over which the load is measured
                spent = time.monotonic() - began
                whole, writes, control = (b - a for a, b in zip(base, database.statements()))
                ran, missed = runs(agents) - ran, sum(a.metrics().get("hunter_missed_runs_total", 0) for a in agents) - missed
                row(f"10,000 tests a minute, {count} agents, {missed:.0f} of {ran:,.0f} runs missed, {(whole - control) / spent:.2f} statements/s "
                    f"({writes / spent:.2f} write) and {control / spent:.2f} of transactions, database {100 * (database.cpu() - theirs) / spent:.1f}% CPU",
                    f"{100 * (sum(a.cpu() for a in agents) - cpu) / spent:.0f}% CPU", f"{ran / spent:.0f} runs/s",
                    f"{sum(a.memory() for a in agents):.0f} MB")
        finally:
            with bench_agent.running(*agents):
                pass


def take_over(build, folder, server):
    """2,000 tests of two agents, one of which is killed: until the other one has run what it held."""
    with bench_agent.running(source := bench_agent.serve(build, 1)):
        database = Database(server, "takeover")
        path = configure(folder, database, source, 2_000, "24h")
        with bench_agent.running(first := agent(build, path), second := agent(build, path)):
            wait(lambda: is_shared(database, 2), "the fair shares")
            wait(lambda: bench_agent.all_runs(second) >= 2_000 - elsewhere(second), "the first runs")
            time.sleep(10)  # what the first runs leave to do
            before, held = bench_agent.all_runs(second), elsewhere(second)
            began = time.monotonic()
            first.process.send_signal(signal.SIGKILL)
            wait(lambda: bench_agent.all_runs(second) > before, "the first run after the take-over")
            begun = time.monotonic() - began
            wait(lambda: bench_agent.all_runs(second) >= before + held, "all runs after the take-over")
            row(f"take-over of {held} tests of an agent that was killed: the first run after {begun:.1f} s, the last one",
                f"{time.monotonic() - began:.1f} s")


def elsewhere(program):
    """How many tests other agents have."""
    count, page = 0, {"next": ""}
    while page["next"] is not None:
        after = f"&after={page['next']}" if page["next"] else ""
        page = json.loads(program.ask(f"/api/v1/tests?limit=1000{after}"))
        count += sum(1 for test in page["tests"] if test["state"] == "elsewhere")
    return count


def many(build, folder, server):
    """64 agents with hardly anything to do; 16 leave at once, then 16 are killed at once."""
    with bench_agent.running(source := bench_agent.serve(build, 1)):
        database = Database(server, "many")
        path = configure(folder, database, source, 64, "1h")
        agents = [agent(build, path) for _ in range(64)]
        try:
            began = time.monotonic()
            wait(lambda: is_shared(database, 64), "the fair shares")
            row("64 agents start: fair shares", f"{time.monotonic() - began:.1f} s", "", f"{sum(a.memory() for a in agents):.0f} MB")
            time.sleep(10)  # what the start leaves to do
            base, cpu, theirs, began = database.statements(), sum(a.cpu() for a in agents), database.cpu(), time.monotonic()
            time.sleep(60)  # over which the load is measured
            spent = time.monotonic() - began
            whole, writes, control = (b - a for a, b in zip(base, database.statements()))
            row(f"64 idle agents, {(whole - control) / spent:.1f} statements/s, {control / spent:.1f} of transactions, "
                f"database {100 * (database.cpu() - theirs) / spent:.1f}% CPU", f"{100 * (sum(a.cpu() for a in agents) - cpu) / spent:.1f}% CPU")
            for how, left in ((signal.SIGTERM, 48), (signal.SIGKILL, 32)):
                began = time.monotonic()
                for gone in agents[left:]:
                    gone.process.send_signal(how)
                wait(lambda: is_shared(database, left), "the fair shares")
                row(f"16 of {left + 16} agents {'leave' if how == signal.SIGTERM else 'are killed'} at once: fair shares", f"{time.monotonic() - began:.1f} s")
                for gone in agents[left:]:
                    gone.process.wait()
                del agents[left:]
        finally:
            with bench_agent.running(*agents):
                pass


def store(build, folder, server):
    """What bench_store asks of a state file, of the database; and the agent's start with a million changes."""
    database = Database(server, "store")
    subprocess.run([build / "tests/bench_store", database.address], check=True)
    with open(folder / "hunter.yaml", "w") as f:
        f.write(f"agent: {{state: '{database.address}', listen: '127.0.0.1:0', interval: 1h}}\ntests:\n")
        for i in range(10_000):
            f.write(f"  service-{i % 50:02}.benchmark-{i:05}: {{type: csv, file: {folder}/none.csv, metrics: {{p99: {{}}}}}}\n")
    took, cpu = min(bench_agent.start(build / "hunter-c", folder) for _ in range(3))
    row(f"start of the agent with 10,000 tests and a million changes, CPU {cpu:.2f} s", f"{took:.2f} s")


ROWS = {"store": store, "quiet": quiet, "take-over": take_over, "many": many}

servers._memory = lambda: None  # a disk, as databases have
try:
    with servers.state_postgres(SETTINGS) as running_server:
        for name in sys.argv[2:] or ROWS:
            place = pathlib.Path(tempfile.mkdtemp())
            try:
                ROWS[name](pathlib.Path(sys.argv[1]).resolve(), place, running_server)
            finally:
                shutil.rmtree(place)
except pytest.skip.Exception as missing:
    row(missing, "")
