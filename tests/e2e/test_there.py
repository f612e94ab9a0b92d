"""Is it still there? Queries that give nothing, label sets that end and come back, on a real Prometheus that scrapes an exporter."""
import http.server
import json
import re
import signal
import threading
import time
import urllib.request

import pytest
import servers
from agent import config, write_csv
from state_address import open_state
from test_conditions import count, wait_out
from waiting import LONGEST

HISTORY = 300  # points a second apart, before the exporter's


class Exporter:
    """What Prometheus scrapes: a line for each label set of `shown`."""

    def __init__(self):
        self.shown = {}
        exporter = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                body = "".join(f"{line} {value}\n" for line, value in exporter.shown.items()).encode()
                self.send_response(200)
                self.send_header("Content-Type", "text/plain; version=0.0.4")
                self.send_header("Content-Length", len(body))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def scrape(self):
        """For prometheus.yml."""
        return ("scrape_configs: [{job_name: shop, honor_labels: true, scrape_interval: 1s, scrape_timeout: 1s, "
                f"static_configs: [{{targets: ['127.0.0.1:{self.server.server_port}']}}]}}]\n")

    def close(self):
        self.server.shutdown()
        self.server.server_close()


REGIONS = {"eu": 4, "us": 5, "ap": 3}


def shop(region, instance):
    return f'latency{{instance="{instance}",job="shop",region="{region}"}}'


@pytest.fixture(scope="module")
def exporter():
    exporter = Exporter()
    yield exporter
    exporter.close()


@pytest.fixture(scope="module")
def server(tmp_path_factory, exporter):
    """Five minutes of twelve series in three regions, which the exporter goes on with."""
    now = int(time.time())
    rows = [({"instance": f"{region}{i}", "job": "shop", "region": region}, 100 + at % 3, now - at)
            for region, many in REGIONS.items() for i in range(many) for at in range(HISTORY, 0, -1)]
    exporter.shown = {shop(region, f"{region}{i}"): 101 for region, many in REGIONS.items() for i in range(many)}
    with servers.prometheus(tmp_path_factory.mktemp("prometheus"), servers.openmetrics({"latency": rows}),
                            scrape=exporter.scrape()) as running:
        yield running


def problems(agent):
    return {t["name"]: t.get("problem") for t in json.loads(agent.get("/api/v1/tests")[1])["tests"]}


def test_a_query_that_gives_nothing(agents, tmp_path, server, exporter):
    """A problem of its test: state, metric, one notice, over a kill. The test beside it, with allow_empty, is well."""
    tests = """
  gone: {type: prometheus, query: 'latency{region="mars"}', range: 5m, step: 1s}
  fine: {type: prometheus, query: 'latency{region="mars"}', range: 5m, step: 1s, allow_empty: true}
  one: {type: prometheus, range: 5m, step: 1s, metrics: {a: {query: 'avg(latency)'}, b: {query: 'avg(latency{region="mars"})'}}}
"""
    path = config(tmp_path, tests, f"prometheus: {{url: '{server.url}'}}")
    agent = agents(path)
    wait_out(agent, 'test "gone" has failed since')
    wait_out(agent, 'test "one" has failed since')
    agent.pass_by(6)
    found = problems(agent)
    assert found["gone"].startswith("the query returns no series: no data: the query returns nothing in the range")
    assert found["one"] == 'the query of metric "b" returns no series' and found["fine"] is None
    assert agent.metric('hunter_run_failures_total') > 0 and 'reason="empty"' in agent.get("/metrics")[1]
    assert 'hunter_source_up{source="prometheus"} 1' in agent.get("/metrics")[1]
    agent.end(signal.SIGKILL)
    assert count(agent, "has failed since") == 2 and count(agent, "is down") == 0
    warned = [line for line in agent.log if re.match(r"\S+ (warn|error) ", line)]
    assert any('msg="no data' in line and "test=gone" in line for line in warned) and not any("fine" in line for line in warned), warned
    agent = agents(path)
    agent.pass_by(12)
    assert count(agent, "has failed since") == 0
    whole = exporter.shown
    exporter.shown = {**whole, shop("mars", "mars0"): 100}
    wait_out(agent, 'test "gone" has recovered')
    wait_out(agent, 'test "one" has recovered')
    exporter.shown = whole
    agent.end()


def test_an_empty_query_asked_once(hunter, tmp_path, server):
    """Some data are unavailable then."""
    path = config(tmp_path, "  gone: {type: prometheus, query: nothing_here, range: 5m, step: 1s}\n",
                  f"prometheus: {{url: '{server.url}'}}")
    assert hunter("run", "--once", "--config", path).code == 3
    path.write_text(path.read_text().replace("step: 1s", "step: 1s, allow_empty: true"))
    assert hunter("run", "--once", "--config", path).code == 0


def series(agent, test):
    return next(t["series"] for t in json.loads(agent.get("/api/v1/tests")[1])["tests"] if t["name"] == test)


def vanished(tmp_path):
    with open_state(tmp_path) as state:
        return state.execute("SELECT count(*) FROM vanished").fetchone()[0]


def test_a_region_that_vanishes_and_comes_back(agents, tmp_path, server, exporter):
    """One notice for all of it, and one when it is back, whoever is killed meanwhile; a label set that was short-lived has none."""
    query = "type: prometheus, query: latency, range: 10m, step: 1s"
    path = config(tmp_path, f"  shop: {{{query}}}\n  quiet: {{{query}, vanished: off}}\n", f"prometheus: {{url: '{server.url}'}}")
    agent = agents(path)
    whole = exporter.shown
    exporter.shown = {**whole, shop("eu", "pod"): 100}
    agent.wait(lambda: series(agent, "shop") == 13)
    exporter.shown = whole
    agent.pass_by(4)
    assert agent.metric("hunter_vanished_series") == 0
    exporter.shown = {line: value for line, value in whole.items() if 'region="ap"' not in line}
    wait_out(agent, '3 of 12 series of test "shop" ended at ')
    agent.pass_by(4)
    assert agent.metric("hunter_vanished_series") == 3
    assert re.search(r"ended at \S+ \S+ \+0000: region=ap$", next(line for line in agent.out if "ended at" in line).rstrip())
    agent.end(signal.SIGKILL)
    assert count(agent, "ended at") == 1 and vanished(tmp_path) == 3
    agent = agents(path)
    agent.pass_by(6)
    assert count(agent, "ended at") == 0 and agent.metric("hunter_vanished_series") == 3
    exporter.shown = whole
    agent.wait(lambda: agent.metric("hunter_vanished_series") == 0)
    agent.pass_by(4)
    agent.end(signal.SIGKILL)
    # They are scraped together, but Prometheus may have been asked in between.
    assert 1 <= count(agent, "that had ended") <= 2 and count(agent, 'test "quiet"') == 0
    assert vanished(tmp_path) == 0
    agent = agents(path)
    agent.pass_by(6)
    agent.end()
    assert count(agent, "ended") == 0


def known(agent):
    """What is known of changes: test, metric, id, and how often it was announced."""
    return sorted((c["test"], c["metric"], c["id"], sum(e["event"] == "announced" for e in c["history"]))
                  for c in json.loads(agent.get("/api/v1/changes")[1])["changes"])


def test_a_test_and_a_metric_that_are_renamed(agents, tmp_path):
    """Their changes are the new names' and are not told again, whether at a start or by a reload; once."""
    write_csv(tmp_path / "a.csv", [(30, 1.5)])

    def write(name, metric, more="", column="p99"):
        return config(tmp_path, f"  {name}: {{type: csv, file: '{tmp_path}/a.csv', {more} "
                                f"metrics: {{{metric}: {{direction: -1, column: {column}{', was: p99' if metric != 'p99' else ''}}}}}}}\n")

    def settled(agent, test, metric):
        agent.wait(lambda: [row[:2] + row[3:] for row in known(agent)] == [(test, metric, 1)])
        return known(agent)[0][2]

    path = write("old", "p99")
    agent = agents(path)
    first = settled(agent, "old", "p99")
    agent.end(signal.SIGKILL)
    write("middle", "p99", "was: old,")
    agent = agents(path)
    agent.pass_by(3)
    assert settled(agent, "middle", "p99") == first
    write("new", "latency", "was: middle,")
    agent.process.send_signal(signal.SIGHUP)
    assert settled(agent, "new", "latency") == first
    agent.pass_by(3)
    agent.end(signal.SIGKILL)
    assert count(agent, "p99: +") == 0 and count(agent, "latency: +") == 0
    agent = agents(path)  # `was` is there still, and nothing is to be done
    agent.pass_by(3)
    assert known(agent) == [("new", "latency", first, 1)] and not any("was=" in line for line in agent.log)
    write_csv(tmp_path / "a.csv", [(30, 1.5), (50, 1.5)], 80)
    agent.wait(lambda: len(known(agent)) == 2 and all(row[3] == 1 for row in known(agent)))
    agent.end()
    assert {row[:2] for row in known_after(tmp_path)} == {("new", "latency")}


def known_after(tmp_path):
    with open_state(tmp_path) as state:
        return state.execute("SELECT test, metric FROM changes").fetchall() + state.execute("SELECT test, series FROM series").fetchall()


def test_two_histories_are_not_mixed(agents, hunter, tmp_path):
    """Where the new name has changes of its own, all stays where it is, and the log and the exit code say so."""
    write_csv(tmp_path / "a.csv", [(30, 1.5)])
    test = "  {}: {{type: csv, file: '%s/a.csv'%s, metrics: {{p99: {{direction: -1}}}}}}\n" % (tmp_path, "{}")
    agent = agents(config(tmp_path, test.format("a", "") + test.format("b", "")))
    agent.wait(lambda: len(known(agent)) == 2)
    before = known(agent)
    agent.end()
    agent = agents(config(tmp_path, test.format("b", ", was: a")))
    agent.wait_log("the new name already has recorded changes")
    agent.pass_by(2)
    assert [row[:3] for row in known(agent)] == [row[:3] for row in before]
    agent.end()
    once = hunter("run", "--once", "--config", tmp_path / "hunter.yaml")
    assert once.code == 2 and "the new name already has recorded changes" in once.err
    config(tmp_path, test.format("b", ""))
    assert hunter("run", "--once", "--config", tmp_path / "hunter.yaml").code == 0


def test_nothing_is_asked_while_no_new_point_can_exist(agents, tmp_path, server):
    """A run a second, a step of three: each point of the grid is asked for once, and always the whole range; who asks for a run gets one."""
    path = config(tmp_path, "  shop: {type: prometheus, query: latency, range: 2m, step: 3s}\n", f"prometheus: {{url: '{server.url}'}}")
    agent = agents(path, "--log-level", "debug")
    agent.wait(lambda: agent.metric("hunter_runs_skipped_total") >= 12)
    runs, skipped = agent.metric("hunter_runs_total"), agent.metric("hunter_runs_skipped_total")
    asked = [tuple(int(re.search(rf"{key}_ms=(\d+)", line)[1]) for key in ("from", "to"))
             for line in list(agent.log) if "requesting points" in line]
    grid = [(to - 1) // 3000 for _, to in asked]
    assert len(set(grid)) == len(grid) >= 4, asked
    assert all(120000 <= to - begin <= 240000 for begin, to in asked), asked
    assert abs(runs - skipped - len(asked)) <= 1
    for _ in range(3):
        request = urllib.request.Request(agent.address() + "/api/v1/run?test=shop", method="POST")
        with urllib.request.urlopen(request, timeout=LONGEST) as answer:
            assert json.loads(answer.read())["failed"] == 0
    agent.wait(lambda: sum("requesting points" in line for line in agent.log) >= len(asked) + 3)
    agent.end()


ALIVE = "hunter-c is running: "


def test_a_weekly_sign_of_life(agents, hunter, tmp_path):
    """Once a week, whoever is killed in between; who does not ask for it gets none."""
    write_csv(tmp_path / "a.csv", [(30, 1.5)])
    write_csv(tmp_path / "b.csv", [])
    test = "  {}: {{type: csv, file: '%s/{}.csv', metrics: {{p99: {{direction: -1}}}}{}}}\n" % tmp_path
    tests = test.format("a", "a", ", stale_after: never") + test.format("b", "b", ", stale_after: 1h")
    path = config(tmp_path, tests, "stdout: {heartbeat: weekly}")
    agent = agents(path)
    wait_out(agent, ALIVE)
    agent.pass_by(6)
    agent.end(signal.SIGKILL)
    said = [line.strip() for line in agent.out if ALIVE in line]
    assert len(said) == 1 and re.fullmatch(
        ALIVE + r"read 2 of 2 tests \(2 series, 120 points\), [01] changes? w\w+ found in the last 7 days; "
        r"1 test has no new data: b; smallest detectable change unknown", said[0]), said
    agent = agents(path)
    agent.pass_by(6)
    agent.end()
    assert count(agent, ALIVE) == 0 and hunter("run", "--once", "--config", path).out.count(ALIVE) == 0

    with open_state(tmp_path) as state:
        assert state.execute("UPDATE moments SET time = time - 604800000 WHERE name = 'heartbeat stdout'").rowcount == 1
    write_csv(tmp_path / "a.csv", [(30, 1.5)], points=240)
    path.write_text(path.read_text().replace("stale_after: never}", "stale_after: never, detection: {season: none}}"))
    (tmp_path / "b.csv").unlink()
    agent = agents(path)
    wait_out(agent, ALIVE + "read 1 of 2 tests (1 series, 240 points), 1 change was found in the last 7 days; 1 test fails: b")
    said = next(line for line in agent.out if ALIVE in line)
    power = json.loads(hunter("validate", "--power", "--output", "json", "--config", path).out)["power"]
    sides = [power[0]["power"][side]["smallest"] for side in ("up", "down")]
    assert f"smallest detectable change: {max(sides)}% (measured: 1 series of 1 of 2 tests)" in said, (said, sides)
    agent.pass_by(4)
    agent.end()
    assert count(agent, ALIVE) == 1

    with open_state(tmp_path) as state:
        state.execute("UPDATE moments SET time = time - 604800000 WHERE name = 'heartbeat stdout'")
    write_csv(tmp_path / "b.csv", [])
    path.write_text(path.read_text().replace("stale_after: 1h", "stale_after: never"))
    said = hunter("run", "--once", "--config", path).out
    assert said.count(ALIVE) == 1 and "; all of them have data" in said
    path.write_text(path.read_text().replace("weekly", "off"))
    with open_state(tmp_path) as state:
        state.execute("DELETE FROM moments")
    assert hunter("run", "--once", "--config", path).out.count(ALIVE) == 0
    path.write_text(path.read_text().replace("heartbeat: off", "heartbeat: daily"))
    assert hunter("validate", "--config", path).code == 2
