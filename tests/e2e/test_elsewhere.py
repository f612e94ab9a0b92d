"""Tests that other agents of a fleet run: how they are listed and asked for; and what all agents together say of a source."""
import http.server
import json
import os
import re
import signal
import subprocess
import threading
import time
import urllib.parse
import urllib.request

import pytest
import servers
from waiting import LONGEST, wait

TESTS = 18


@pytest.fixture(scope="module")
def postgres():
    with servers.state_postgres() as server:
        yield server


class Agent:
    def __init__(self, program, folder, name, sections, tests, **environment):
        self.name, self.sections = name, sections
        self.config, self.log = folder / f"{name}.yaml", folder / f"{name}.log"
        self.configure(tests)
        with self.log.open("wb") as log:
            self.process = subprocess.Popen([program, "run", "--config", self.config], stderr=log, stdout=log, env=os.environ | environment)
        self.port = wait(lambda: re.search(r"msg=started.* port=(\d+)", self.log.read_text()), passing=OSError)[1]

    def configure(self, tests):
        self.config.write_text(f"{self.sections}\ntests:\n" + "".join(f"  t{i}: {tests.replace('NAME', f't{i}')}\n" for i in range(TESTS)))

    def ask(self, path, method="GET"):
        request = urllib.request.Request(f"http://127.0.0.1:{self.port}{path}", method=method)
        with urllib.request.urlopen(request, timeout=LONGEST) as answer:
            return answer.status, json.load(answer)

    def tests(self):
        return self.ask("/api/v1/tests")[1]["tests"]

    def own(self):
        """The tests that it has run, and when."""
        return {test["name"]: test["last_run"] for test in self.tests() if test["state"] != "elsewhere" and test["last_run"]}

    def notices(self):
        return re.findall(r"msg=notice subject=(\S+) text=\"([^\"]*)", self.log.read_text())


@pytest.fixture
def fleet(program, tmp_path):
    made = []

    def make(sections, tests, **environment):
        made.append(Agent(program, tmp_path, f"a{len(made)}", sections(f"a{len(made)}"), tests, **environment))
        return made[-1]

    yield make
    for each in made:
        each.process.send_signal(signal.SIGTERM)
    for each in made:
        each.process.wait(LONGEST)


def shared_out(agents):
    """Whether each test has been run by one of them, and each of them has some."""
    own = [set(agent.own()) for agent in agents]
    return all(own) and sum(map(len, own)) == TESTS == len(set().union(*own))


def test_listed_and_asked_for(fleet, postgres, tmp_path):
    rows = tmp_path / "rows.csv"
    rows.write_text("time,value\n" + "".join(f"2026-11-01T{i:02d}:00:00Z,{100 + i % 3}\n" for i in range(24)))
    state = postgres.create()
    agents = [fleet(lambda name: f"agent: {{state: '{state}', name: {name}, listen: 127.0.0.1:0, interval: 1h}}",
                    f"{{type: csv, file: '{rows}', metrics: {{value: {{}}}}}}") for _ in range(3)]
    wait(lambda: shared_out(agents), passing=OSError)
    runner = {test: agent.name for agent in agents for test in agent.own()}
    for agent in agents:
        wait(lambda: {test["name"]: test["agent"] for test in agent.tests()} == runner, passing=OSError)
        _, answer = agent.ask("/api/v1/tests?state=elsewhere")
        assert answer["states"]["elsewhere"] == answer["total"] == TESTS - len(agent.own())
        assert all(test["last_run"] is test["next_run"] is test["problem"] is None for test in answer["tests"])

    # One that another agent runs; then all: those here are waited for.
    first, test = agents[0], next(test for test, name in runner.items() if name != "a0")
    holder = next(agent for agent in agents if agent.name == runner[test])
    before = holder.own()[test]
    assert first.ask(f"/api/v1/run?test={test}", "POST") == (
        202, {"count": 1, "asked": 1, "elsewhere": [{"test": test, "agent": holder.name}]})
    wait(lambda: holder.own()[test] > before, passing=OSError)
    before = {test: run for agent in agents for test, run in agent.own().items()}
    status, answer = first.ask("/api/v1/run?test=t*", "POST")
    assert (status, answer["count"], answer["failed"]) == (200, len(first.own()), 0)
    assert {each["test"]: each["agent"] for each in answer["elsewhere"]} == {test: name for test, name in runner.items() if name != "a0"}
    wait(lambda: all(run > before[test] for agent in agents for test, run in agent.own().items()), passing=OSError)


class Graphite:
    """Answers each query with an even series, as a proxy, too; can be stopped and started."""

    def __init__(self):
        self.port = servers.free_port()
        self.start()

    def start(self):
        class Handler(http.server.BaseHTTPRequestHandler):
            def log_message(self, *_):
                pass

            def answer(self, query):
                now = int(time.time()) // 60 * 60
                points = [[100 + i % 3, now - 60 * (60 - i)] for i in range(60)]
                body = json.dumps([{"target": target, "tags": {"name": target}, "datapoints": points}
                                   for target in urllib.parse.parse_qs(query).get("target", [])]).encode()
                self.send_response(200)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def do_GET(self):
                self.answer(urllib.parse.urlparse(self.path).query)

            def do_POST(self):
                self.answer(self.rfile.read(int(self.headers["Content-Length"])).decode())

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", self.port), Handler)
        self.port = self.server.server_port
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def stop(self):
        self.server.shutdown()
        self.server.server_close()


def test_one_environment_of_many_agents(fleet, postgres, tmp_path):
    """Each test is measured in an environment of its own, and run by any agent: one message, from what others' quiet runs saw."""
    state = postgres.create()

    def write(test, points, slow=None):
        with open(tmp_path / "new", "w") as out:
            out.write("time,runner," + ",".join(f"m{m}" for m in range(8)) + "\n")
            for i in range(points):
                level = 100 * (1.2 if test == slow and i >= 60 else 1)
                out.write(f"2026-11-{1 + i // 24:02d}T{i % 24:02d}:00:00Z,{test}," + ",".join(f"{level + (i * (m + 3)) % 5 / 4}" for m in range(8)) + "\n")
        (tmp_path / "new").rename(tmp_path / f"{test}.csv")

    def seen():
        return dict(postgres.sql("SELECT test, ended FROM seen", state.rpartition("/")[2]))

    def run_all():
        before = time.time() * 1000
        for agent in agents:
            agent.ask("/api/v1/run?test=t*", "POST")
        wait(lambda: all(agent.own()[test] for agent in agents for test in agent.own()), passing=OSError)
        return before

    for i in range(TESTS):
        write(f"t{i}", 60)
    agents = [fleet(lambda name: f"agent: {{state: '{state}', name: {name}, listen: 127.0.0.1:0, interval: 1h, group_wait: 0s, max_age: never}}",
                    f"{{type: csv, file: '{tmp_path}/NAME.csv', time_column: time, attributes: [runner], environment: runner,"
                    f" metrics: {{{', '.join(f'm{m}: {{direction: -1}}' for m in range(8))}}}}}") for _ in range(3)]
    wait(lambda: shared_out(agents), passing=OSError)
    wait(lambda: len(seen()) == TESTS)
    before = seen()
    for i in range(TESTS):
        write(f"t{i}", 72, "t7")
    holder = next(agent for agent in agents if "t7" in agent.own())
    for agent in agents:  # these are quiet, ...
        for test in agent.own():
            if test != "t7":
                agent.ask(f"/api/v1/run?test={test}", "POST")
    assert seen() == before
    holder.ask("/api/v1/run?test=t7", "POST")
    wait(lambda: all(ended > before[test] for test, ended in seen().items()))  # ... and written now
    since = seen()["t7"]

    def all_have_run():
        for agent in agents:
            for test in agent.own():
                agent.ask(f"/api/v1/run?test={test}", "POST")
        return all(ended >= since for ended in seen().values())

    def heads():
        return [line for agent in agents for line in agent.log.read_text().splitlines() if " since 2026-" in line]

    wait(lambda: all_have_run() and heads(), passing=OSError)
    (head,) = heads()
    assert re.match(r"t7: 8 of 8 series \+\d+.*the same tests elsewhere unchanged: probably the environment", head), head


def test_a_source_is_down_when_most_say_so(fleet, postgres):
    # One configuration; each agent has a way of its own to the server.
    state, ours, theirs = postgres.create(), Graphite(), Graphite()
    agents = [fleet(lambda name: f"agent: {{state: '{state}', name: {name}, listen: 127.0.0.1:0, interval: 1s}}\n"
                                 "graphite: {url: 'http://graphite.example', retry_for: 0s}",
                    "{type: graphite, prefix: x, metrics: {m: {suffix: y}}}", http_proxy=f"http://127.0.0.1:{port}", no_proxy="")
              for port in (ours.port, theirs.port, theirs.port)]
    wait(lambda: shared_out(agents), passing=OSError)

    def is_up(agent):
        return agent.ask("/api/v1/status")[1]["sources"][0]["up"]

    def notices():
        return sorted(text.split(":")[0] for agent in agents for subject, text in agent.notices() if subject == "graphite")

    ours.stop()  # one agent cannot reach it: that is its own trouble
    wait(lambda: not is_up(agents[0]), passing=OSError)
    wait(lambda: postgres.sql("SELECT verdict FROM views ORDER BY verdict", state.rpartition("/")[2]) == [(1,), (1,), (2,)], passing=OSError)
    assert notices() == []
    theirs.stop()
    wait(notices, passing=OSError)
    theirs.start()  # one of three is still cut off
    wait(lambda: len(notices()) == 2, passing=OSError)
    ours.start()
    wait(lambda: all(map(is_up, agents)), passing=OSError)
    down, up = notices()
    assert (down, up[:len("source graphite is up again")]) == ("source graphite is down", "source graphite is up again")


def test_what_was_said_of_a_test_goes_with_it(fleet, postgres, tmp_path):
    """While configurations differ, a test is another agent's: what that has said of it is not said again by the first, which gets the
    test back, and says when it is over. Who runs no test of a source has no view of it."""
    rows = "time,value\n" + "".join(f"2026-11-01T{i:02d}:00:00Z,{100 + i % 3}\n" for i in range(24))
    for i in range(TESTS):
        (tmp_path / f"t{i}.csv").write_text(rows)
    state = postgres.create()
    old, new = (f"{{type: csv, file: '{tmp_path}/NAME.csv', stale_after: never, metrics: {{value: {{direction: {way}}}}}}}" for way in (1, -1))
    agents = [fleet(lambda name: f"agent: {{state: '{state}', name: {name}, listen: 127.0.0.1:0, interval: 1s}}", old) for _ in range(2)]
    wait(lambda: shared_out(agents), passing=OSError)
    test = sorted(agents[0].own())[0]

    def views():
        return [name for name, in postgres.sql("SELECT name FROM views JOIN agents USING (instance) WHERE gone = 0 ORDER BY 1", state.rpartition("/")[2])]

    def runs(agent):
        return test in {each["name"] for each in agent.tests() if each["state"] != "elsewhere" and each["last_run"]}

    def told():
        return [re.findall(rf'msg=notice subject={test} text="test \S+ (has [a-z]+)', agent.log.read_text()) for agent in agents]

    wait(lambda: views() == ["a0", "a1"], passing=OSError)
    agents[1].configure(new)
    agents[1].process.send_signal(signal.SIGHUP)
    wait(lambda: len(agents[1].own()) == TESTS and not runs(agents[0]), passing=OSError)
    wait(lambda: views() == ["a1"], passing=OSError)
    (tmp_path / f"{test}.csv").unlink()
    wait(lambda: told()[1], passing=OSError)
    agents[0].configure(new)
    agents[0].process.send_signal(signal.SIGHUP)
    wait(lambda: runs(agents[0]) and not runs(agents[1]), passing=OSError)
    seen = set()
    wait(lambda: seen.add(agents[0].own().get(test)) or len(seen) > 5, passing=OSError)  # it fails here, too
    (tmp_path / f"{test}.csv").write_text(rows)
    wait(lambda: told()[0], passing=OSError)
    assert told() == [["has recovered"], ["has failed"]]
    wait(lambda: not postgres.sql("SELECT 1 FROM conditions", state.rpartition("/")[2]))
    assert sorted(views()) == ["a0", "a1"]
