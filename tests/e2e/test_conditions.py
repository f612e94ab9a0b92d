"""What is wrong with the way of the data is told once, and when it is over: sources that are down, data that stop.

The server is a fake on loopback with a switch; Prometheus' own answers are what test_prometheus.py is about.
"""
import datetime
import http.server
import json
import os
import signal
import threading
import time

import faulty
import pytest
from agent import config, csv_test, write_csv
from state_address import drop_state, open_state
from test_faults import FAIL, KINDS, NOT_GRAPHITE, TOO_MUCH, Graphite
from waiting import LONGEST

HOUR = datetime.timedelta(hours=1)


class Switch:
    """A Prometheus that can be turned off: it answers then, but with errors."""

    def __init__(self):
        self.on = True
        self.asked = 0
        switch = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def answer(self):
                self.rfile.read(int(self.headers.get("Content-Length", 0)))
                switch.asked += 1
                now = int(time.time())
                body = json.dumps({"status": "success", "data": {"resultType": "matrix", "result": [
                    {"metric": {"__name__": "up"}, "values": [[now - 60 * i, "1"] for i in range(9, -1, -1)]}]}}).encode()
                self.send_response(200 if switch.on else 500)
                self.send_header("Content-Length", len(body) if switch.on else 0)
                self.end_headers()
                if switch.on:
                    self.wfile.write(body)

            do_GET = do_POST = answer

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def close(self):
        self.server.shutdown()
        self.server.server_close()


@pytest.fixture
def switch():
    switch = Switch()
    yield switch
    switch.close()


def prometheus_tests(count):
    return "".join(f"  t{i}: {{type: prometheus, query: up, range: 1h}}\n" for i in range(count))


def wait_out(agent, text):
    with agent.changed:
        assert agent.changed.wait_for(lambda: any(text in line for line in agent.out) or "" in agent.out, LONGEST)
        assert any(text in line for line in agent.out), f"no {text!r} in:\n{''.join(agent.out)}{''.join(agent.log)}"


def count(agent, text):
    return sum(text in line for line in agent.out)


def test_a_source_that_is_down_is_one_notice(agents, tmp_path, switch):
    path = config(tmp_path, prometheus_tests(5), f"prometheus: {{url: '{switch.url}', retry_for: 0s}}")
    agent = agents(path)
    agent.pass_by(5)
    assert 'hunter_source_up{source="prometheus"} 1' in agent.get("/metrics")[1]
    switch.on = False
    wait_out(agent, "source prometheus is down")
    agent.pass_by(25)
    assert 'hunter_source_up{source="prometheus"} 0' in agent.get("/metrics")[1]
    assert count(agent, "source prometheus is down") == 1
    agent.end(signal.SIGKILL)
    assert conditions(tmp_path) == ["source prometheus"]

    agent = agents(path)
    agent.pass_by(25)
    assert count(agent, "source prometheus is down") == 0
    switch.on = True
    wait_out(agent, "source prometheus is up again, after")
    agent.pass_by(10)
    agent.end()
    assert count(agent, "is up again") == 1 and count(agent, "test \"t") == 0
    assert conditions(tmp_path) == []


def test_a_test_that_fails_alone(agents, tmp_path):
    for name in ("good", "bad"):
        write_csv(tmp_path / f"{name}.csv", [])
    path = config(tmp_path, csv_test(tmp_path / "good.csv", "good") + csv_test(tmp_path / "bad.csv", "bad"))
    agent = agents(path)
    agent.pass_by(2)
    (tmp_path / "bad.csv").rename(tmp_path / "away")
    wait_out(agent, 'test "bad" has failed since')
    agent.pass_by(10)
    (tmp_path / "away").rename(tmp_path / "bad.csv")
    wait_out(agent, 'test "bad" has recovered, after')
    agent.end()
    assert count(agent, "has failed since") == 1 and count(agent, "has recovered") == 1 and count(agent, "is down") == 0


def conditions(tmp_path):
    with open_state(tmp_path) as state:
        return [subject for subject, in state.execute("SELECT subject FROM conditions ORDER BY subject")]


def test_what_is_not_configured_any_more_is_over(agents, tmp_path):
    """Its notice is closed, by a reload and by a restart."""
    write_csv(tmp_path / "good.csv", [])
    good, bad = csv_test(tmp_path / "good.csv", "good"), csv_test(tmp_path / "bad.csv", "bad")
    agent = agents(config(tmp_path, good + bad))
    wait_out(agent, 'test "bad" has failed since')
    agent.pass_by(2)
    assert conditions(tmp_path) == ["test bad"]
    config(tmp_path, good)
    agent.process.send_signal(signal.SIGHUP)
    wait_out(agent, 'test "bad" is no longer configured')
    agent.end()
    assert conditions(tmp_path) == []
    assert count(agent, "has recovered") == 0
    agent = agents(config(tmp_path, good + bad))
    wait_out(agent, 'test "bad" has failed since')
    agent.end()
    agent = agents(config(tmp_path, good))
    wait_out(agent, 'test "bad" is no longer configured')
    agent.pass_by(2)
    agent.end()
    assert count(agent, "no longer configured") == 1 and conditions(tmp_path) == []


def test_data_that_stop(agents, tmp_path):
    write_csv(tmp_path / "data.csv", [])
    path = config(tmp_path, csv_test(tmp_path / "data.csv", extra="    stale_after: 1h\n"))
    agent = agents(path)
    wait_out(agent, 'test "db.read" has had no new data for more than 1h: its last point is from 2024-03-03 11:00:00 +0000')
    assert "hunter_stale_tests 1" in agent.get("/metrics")[1]
    agent.end()
    agent = agents(path)
    agent.pass_by(3)
    assert count(agent, "no new data") == 0
    with open(tmp_path / "data.csv", "a") as out:
        out.write(f"{datetime.datetime.now(datetime.timezone.utc).isoformat()},c9999,100\n")
    wait_out(agent, 'test "db.read" has new data again')
    assert "hunter_stale_tests 0" in agent.get("/metrics")[1]
    agent.end()


def test_data_that_stop_are_missed_by_their_rhythm(agents, tmp_path):
    """Without `stale_after`: ten intervals of a second. What had stopped before there was an agent is not told."""
    def points(count, unit):
        now = datetime.datetime.now(datetime.timezone.utc)
        return "".join(f"{(now - i * unit).isoformat()},c{i},{100 + i % 3}\n" for i in range(count - 1, -1, -1))

    def add(name, text):
        with open(tmp_path / f"{name}.csv", "a") as out:
            out.write(text)

    for name, count_ in (("live", 30), ("few", 9)):
        add(name, "time,commit,p99\n" + points(count_, datetime.timedelta(seconds=1)))
    write_csv(tmp_path / "old.csv", [])
    path = config(tmp_path, "".join(csv_test(tmp_path / f"{name}.csv", name) for name in ("live", "few", "old")))
    agent = agents(path)
    wait_out(agent, 'test "live" has had no new data for more than 10s: its last point is from')
    agent.pass_by(6)
    assert "hunter_stale_tests 2" in agent.get("/metrics")[1]  # the old one, too
    agent.end(signal.SIGKILL)
    agent = agents(path)
    agent.pass_by(6)
    assert "hunter_stale_tests 2" in agent.get("/metrics")[1]
    assert count(agent, "no new data") == 0
    add("live", points(1, HOUR))
    wait_out(agent, 'test "live" has new data again')
    add("old", points(1, HOUR))
    agent.wait(lambda: "hunter_stale_tests 0" in agent.get("/metrics")[1])
    agent.end()
    assert count(agent, '"old"') == 0 and count(agent, '"few"') == 0 and conditions(tmp_path) == []


def test_late_data_are_left_for_later(hunter, tmp_path):
    """A newest point that is not final (half a bucket) makes no change while it is younger than evaluation_delay."""
    now = datetime.datetime.now(datetime.timezone.utc).replace(microsecond=0)
    with open(tmp_path / "data.csv", "w") as out:
        out.write("time,commit,p99\n")
        for i in range(60, 0, -1):
            value = 100 if i > 7 else 200
            out.write(f"{(now - i * HOUR + HOUR / 2).isoformat()},c{i},{value + i % 3}\n")

    def found(delay):
        drop_state(tmp_path)
        path = config(tmp_path, csv_test(tmp_path / "data.csv", extra=f"    evaluation_delay: {delay}\n    detection: {{season: none}}\n"))
        done = hunter("run", "--once", "--config", path)
        assert done.code == 0, done.err
        return done.out.count("p99: +")

    assert found("0") == 1
    assert found("7h") == 0


@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
def test_every_fault_of_a_source_is_one_notice(agents, tmp_path, kind):
    """Sources that answer wrongly, each in its way, run after run: no change is found, and each is told once."""
    faults = [f for f in FAIL if f not in TOO_MUCH and f != "limit_hour" and  # that one is well when it is asked again
              not (kind is Graphite and f in NOT_GRAPHITE)]
    with faulty.Server(kind) as elsewhere, faulty.Server(kind, elsewhere.url) as server:
        elsewhere.elsewhere = server.url
        names = {**{f"s-{fault}": f"fault_{fault}" for fault in faults}, "s-good": "good"}
        sources = "sources:\n" + "".join(
            f"  {name}: {{type: {kind.name}, url: '{server.url}', timeout: {'1s' if name[2:] in ('drip', 'silence') else '1m'}, retry_for: 0s}}\n"
            for name in names)
        tests = "".join(f"  {name}.{i}: {kind.test(word)[:-1]}, source: {name}, range: 3000d}}\n"
                        for name, word in names.items() for i in range(3))
        agent = agents(config(tmp_path, tests, sources))
        for fault in faults:
            wait_out(agent, f"source s-{fault} is down")
        agent.pass_by((40 if os.environ.get("HUNTER_TEST_FULL") else 4) * 3 * len(names))
        agent.end()
    assert all(count(agent, f"source s-{fault} is down") == 1 for fault in faults)
    assert count(agent, " is down: ") == len(faults) and count(agent, "s-good") == 0
    assert count(agent, "change point") == 0 and count(agent, "test \"") == len(faults)
