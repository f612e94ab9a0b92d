"""POST /api/v1/arrived: whoever has written something says so, and exactly the tests that read it run."""
import contextlib
import gzip
import http.server
import json
import os
import pathlib
import socket
import subprocess
import sys
import threading
import time

import pytest
import servers
from agent import ask, config, csv_test, on_demand, port_of, write_csv
from waiting import LONGEST, wait

ARRIVED = "/api/v1/arrived"
TOP = pathlib.Path(__file__).resolve().parents[2]


@pytest.fixture
def arrivals(agents, tmp_path):
    """An agent that runs its tests at the start and then only if something arrives."""
    write_csv(tmp_path / "read.csv", [])
    write_csv(tmp_path / "write.csv", [])
    agent = agents(on_demand(config(tmp_path, csv_test(tmp_path / "read.csv", "db.read") + csv_test(tmp_path / "write.csv", "db.write"))))
    agent.wait_metric("hunter_runs_total", 2)
    agent.port = port_of(agent)
    return agent


def told(agent, body, **more):
    return ask(agent.port, ARRIVED + more.pop("query", ""), "POST", body=body, headers=more)


def test_runs_who_reads_it(arrivals, tmp_path):
    """A result is written and said to be there: its test finds the change, the other test rests."""
    write_csv(tmp_path / "read.csv", [(40, 1.3)], points=70)
    answer = told(arrivals, f"file {tmp_path}/read.csv\nfile {tmp_path}/none.csv\n")
    assert (answer.status, answer.json) == (202, {"names": 2, "unread": 1, "count": 1, "tests": ["db.read"], "left_out": 0})
    arrivals.wait_metric("hunter_runs_total", 3)
    assert [c["test"] for c in ask(arrivals.port, "/api/v1/changes").json["changes"]] == ["db.read"]
    assert arrivals.metric('hunter_arrived_names_total{read="no"}') == 1


def test_takes_json_lines_and_gzip(arrivals, tmp_path):
    body = json.dumps({"files": [f"{tmp_path}/read.csv"], "tests": ["db.write"], "graphite": ["a.b"], "prometheus": ["up{}"]})
    expected = {"names": 4, "unread": 2, "count": 2, "tests": ["db.read", "db.write"], "left_out": 0}
    assert told(arrivals, body).json == expected
    packed = told(arrivals, gzip.compress(body.encode()), **{"Content-Encoding": "gzip", "Content-Type": "application/json"})
    assert (packed.status, packed.json) == (202, expected)
    plain = told(arrivals, gzip.compress(b"db.read\n") + gzip.compress(b"db.write\n"), query="?kind=test", **{"Content-Encoding": "gzip"})
    assert plain.json == {"names": 2, "unread": 0, "count": 2, "tests": ["db.read", "db.write"], "left_out": 0}


def test_says_what_is_wrong(arrivals):
    for body, headers, query, status, words in [
            (b"test db.read\nnonsense x\n", {}, "", 400, "line 2: graphite, prometheus, file or test"),
            (b'{"tests": "db.read"}', {}, "", 400, "a list of names"),
            (b"db.read", {}, "?kind=tests", 400, "kind: graphite, prometheus, file or test"),
            (b"x", {"Content-Encoding": "br"}, "", 415, "gzip"),
            (b"x", {"Content-Encoding": "gzip"}, "", 400, "not gzip"),
            (gzip.compress(b"test db.read\n")[:-4], {"Content-Encoding": "gzip"}, "", 400, "not whole"),
            (b"", {"Content-Length": str((10 << 20) + 1)}, "", 413, "too large"),
            (gzip.compress(b"\n" * (10 << 20) + b"\n"), {"Content-Encoding": "gzip"}, "", 413, "too large")]:
        answer = told(arrivals, body, query=query, **headers)
        assert (answer.status, words in answer.json["error"]) == (status, True), (body[:30], answer.status, answer.text)
    assert arrivals.metric("hunter_runs_total") == 2
    assert ask(arrivals.port, ARRIVED).status == 405


def test_ten_megabytes(arrivals):
    """As much as is taken at all. A test of which many names have arrived runs once."""
    names = b"".join(b"graphite servers.web%06d.cpu.user\n" % i for i in range(270_000)) + b"test db.read\n" * 1000
    assert 8 << 20 < len(names) <= 10 << 20
    answer = told(arrivals, names).json
    assert answer == {"names": 271_000, "unread": 270_000, "count": 1, "tests": ["db.read"], "left_out": 0}
    arrivals.wait_metric("hunter_runs_total", 3)
    assert ask(arrivals.port, "/api/v1/run?test=db.read", "POST", timeout=LONGEST).status == 200
    assert arrivals.metric("hunter_runs_total") == 4


def test_too_many_at_once(arrivals):
    """What cannot be read soon is refused, not kept."""
    large = b"graphite a\n" * (10 << 20 >> 4)
    statuses, slow = [], [threading.Thread(target=told, args=(arrivals, gzip.compress(large, 1)), kwargs={"Content-Encoding": "gzip"}) for _ in range(8)]
    few = [threading.Thread(target=lambda: statuses.append(told(arrivals, b"test db.write").status)) for _ in range(150)]
    for thread in slow + few:
        thread.start()
    for thread in slow + few:
        thread.join()
    assert set(statuses) == {202, 503}
    assert told(arrivals, b"test db.write").status == 202


def test_index_follows_the_configuration(arrivals, tmp_path):
    assert told(arrivals, b"test db.new\n").json["count"] == 0
    path = tmp_path / "hunter.yaml"
    path.write_text(path.read_text().replace("db.write", "db.new"))
    assert ask(arrivals.port, "/-/reload", "POST", timeout=LONGEST).json["loaded"]
    assert told(arrivals, b"test db.new\ntest db.write\n").json["tests"] == ["db.new"]


# The examples that feed it (packaging/arrivals.py), behind real servers.


@contextlib.contextmanager
def feeder(what, agent, port):
    """packaging/arrivals.py, which listens on the port."""
    process = subprocess.Popen([sys.executable, TOP / "packaging/arrivals.py", what, "--listen", f"127.0.0.1:{port}",
                                "--agent", f"http://127.0.0.1:{agent.port}"], stderr=subprocess.PIPE, text=True)
    try:
        assert "listening" in process.stderr.readline()
        yield
    finally:
        process.terminate()
        process.wait(LONGEST)
        process.stderr.close()


def runs_of(agent):
    return {test["name"]: test["last_run"] for test in ask(agent.port, "/api/v1/tests").json["tests"]}


def wait_change(agent, test, again=lambda: None):
    """Until the test's change is known; `again` writes once more what may have come too early to be read."""
    def there():
        again()
        return [c["test"] for c in ask(agent.port, "/api/v1/changes").json["changes"]] == [test]
    wait(there, lambda: "".join(agent.log))


def test_fed_by_carbon(agents, tmp_path):
    """What goes through carbon's relay is told to the agent: the test that reads it finds the change, the other one rests."""
    if not os.path.exists("/usr/bin/carbon-relay"):
        pytest.skip("carbon-relay is not installed (Debian: apt install graphite-carbon)")
    last = int(time.time()) // 60 * 60 - 60
    with servers.graphite(tmp_path) as graphite:
        graphite.feed({f"minute.{name}.latency": [(10 + i % 3, last - 60 * (90 - i)) for i in range(60)] for name in "ab"})
        tests = "".join(f"  {name}: {{type: graphite, target: 'minute.{name}.*', range: 1d}}\n" for name in "ab")
        agent = agents(on_demand(config(tmp_path, tests, slack=f"graphite: {{url: '{graphite.url}'}}")))
        agent.wait_metric("hunter_runs_total", 2)
        agent.port = port_of(agent)
        before = runs_of(agent)
        port, relay = servers.free_port(), servers.free_port()
        with feeder("carbon", agent, port):
            (graphite.folder / "relay.conf").write_text(f"""
[relay]
USER =
LINE_RECEIVER_INTERFACE = 127.0.0.1
LINE_RECEIVER_PORT = {relay}
PICKLE_RECEIVER_PORT = 0
RELAY_METHOD = rules
DESTINATION_PROTOCOL = line
DESTINATIONS = 127.0.0.1:{graphite.ports['line']}:a, 127.0.0.1:{port}:b
LOG_DIR = {graphite.folder}
PID_DIR = {graphite.folder}
CONF_DIR = {graphite.folder}
ENABLE_LOGROTATION = False
""")
            (graphite.folder / "relay-rules.conf").write_text(
                f"[all]\ndefault = true\ndestinations = 127.0.0.1:{graphite.ports['line']}:a, 127.0.0.1:{port}:b\n")
            graphite.ports["relay"] = relay
            graphite.start("/usr/bin/carbon-relay", f"--config={graphite.folder}/relay.conf", f"--rules={graphite.folder}/relay-rules.conf",
                           f"--logdir={graphite.folder}", f"--pidfile={graphite.folder}/relay.pid", "--nodaemon", "start")
            assert graphite.wait(lambda: graphite.listens("relay")), (graphite.folder / "log").read_text()
            with socket.create_connection(("127.0.0.1", relay)) as line:
                new = "".join(f"minute.a.latency {20 + i % 3} {last - 60 * (30 - i)}\n" for i in range(30))
                wait_change(agent, "a", lambda: line.sendall(new.encode()))
        after = runs_of(agent)
    assert after["a"] > before["a"] and after["b"] == before["b"]


def test_fed_by_remote_write(agents, tmp_path):
    """Prometheus scrapes a value, and writes it on: the test that reads it finds that it has risen, the other one rests."""
    value, scraped = [10.0], [0]

    class Target(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            scraped[0] += 1
            body = "".join(f'bench_latency{{case="{case}"}} {value[0] + scraped[0] % 3 / 10}\n' for case in "ab").encode()
            self.send_response(200)
            self.send_header("Content-Type", "text/plain; version=0.0.4")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_):
            pass

    target = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Target)
    threading.Thread(target=target.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()
    told = servers.free_port()
    try:
        with servers.prometheus(tmp_path, servers.openmetrics({"other": [({}, 1, 1709251200)]}), scrape=f"""
scrape_configs: [{{job_name: bench, scrape_interval: 100ms, scrape_timeout: 100ms, static_configs: [{{targets: ["127.0.0.1:{target.server_address[1]}"]}}]}}]
remote_write:
  - url: http://127.0.0.1:{told}/
    queue_config: {{batch_send_deadline: 100ms}}
    write_relabel_configs: [{{source_labels: [__name__, case], regex: "bench_latency;a", action: keep}}]
""") as prometheus:
            wait(lambda: scraped[0] > 60, lambda: (prometheus.folder / "prometheus.log").read_text())
            tests = "".join(f"  {case}: {{type: prometheus, query: 'bench_latency{{case=\"{case}\"}}', range: 1h}}\n" for case in "ab")
            agent = agents(on_demand(config(tmp_path, tests, slack=f"prometheus: {{url: '{prometheus.url}'}}")))
            agent.wait_metric("hunter_runs_total", 2)
            agent.port = port_of(agent)
            before = runs_of(agent)
            with feeder("remote-write", agent, told):
                value[0] = 20.0
                wait_change(agent, "a")
            after = runs_of(agent)
    finally:
        target.shutdown()
        target.server_close()
    assert after["a"] > before["a"] and after["b"] == before["b"]
