"""What the agent shows over HTTP: the API, health and metrics, for those who may ask, however they ask."""
import concurrent.futures
import contextlib
import csv
import http.client
import http.server
import json
import pathlib
import re
import socket
import threading
import time
import urllib.request

import pytest
import servers
from agent import CANARY, ask, bot, config, csv_test, on_demand, port_of, write_csv
from fake_slack import FakeSlack
from waiting import LONGEST, pause, wait

TOP = pathlib.Path(__file__).resolve().parents[2]


@pytest.fixture
def watched(agents, tmp_path):
    """An agent that has looked once at db.read (a change) and db.write (none), with its port."""
    write_csv(tmp_path / "read.csv", [(30, 1.2)])
    write_csv(tmp_path / "write.csv", [])
    path = on_demand(config(tmp_path, csv_test(tmp_path / "read.csv") + csv_test(tmp_path / "write.csv", "db.write")
                            + "test_groups: {db: [db.read, db.write]}\n"))
    agent = agents(path)
    agent.wait_metric("hunter_runs_total", 2)
    agent.port = port_of(agent)
    yield agent
    assert agent.end() == 0


def test_tests(watched):
    answer = ask(watched.port, "/api/v1/tests").json
    assert [test["name"] for test in answer["tests"]] == ["db.read", "db.write"]
    assert answer["total"] == 2 and answer["next"] is None
    read = answer["tests"][0]
    assert (read["type"], read["source"], read["interval_seconds"], read["metrics"]) == ("csv", None, 86400, ["p99"])
    assert (read["series"], read["points"], read["failing"], read["running"], read["problem"]) == (1, 60, False, False, None)
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z", read["last_run"])
    first = ask(watched.port, "/api/v1/tests?limit=1").json
    assert [test["name"] for test in first["tests"]] == ["db.read"] and first["next"] == "db.read"
    second = ask(watched.port, f"/api/v1/tests?limit=1&after={first['next']}").json
    assert [test["name"] for test in second["tests"]] == ["db.write"] and second["next"] is None
    assert [test["name"] for test in ask(watched.port, "/api/v1/tests?test=*.w*").json["tests"]] == ["db.write"]


def test_changes(watched):
    answer = ask(watched.port, "/api/v1/changes").json
    assert answer["next"] is None and len(answer["changes"]) == 1
    change = answer["changes"][0]
    assert (change["test"], change["metric"], change["time"], change["state"]) == (
        "db.read", "p99", "2024-03-02T06:00:00Z", "confirmed")
    assert 19 < change["forward_change_percent"] < 21 and change["regression"] is True
    assert (change["commit_before"], change["commit_after"]) == ("c0029", "c0030")
    assert change["history"][0]["event"] == "found"

    def count(query):
        return len(ask(watched.port, "/api/v1/changes?" + query).json["changes"])

    assert count("state=confirmed,moved&test=db.*&since=2024-03-01&until=2024-03-03&limit=5") == 1
    assert count("state=withdrawn") == count("test=db.write") == count("until=2024-03-01") == count("since=yesterday") == 0
    assert count(f"before={change['id']}") == 0 and count(f"before={change['id'] + 1}") == 1


def test_what_may_go_either_way_is_a_regression_everywhere(agents, hunter, tmp_path):
    """A metric without a direction: the API and the commands agree on its changes."""
    write_csv(tmp_path / "read.csv", [(30, 0.8)])
    path = on_demand(config(tmp_path, csv_test(tmp_path / "read.csv").replace("direction: -1, ", "")))
    agent = agents(path)
    agent.wait_metric("hunter_runs_total", 1)
    assert ask(port_of(agent), "/api/v1/changes").json["changes"][0]["regression"] is True
    assert ask(port_of(agent), "/api/v1/series?test=db.read").json["lines"][0]["changes"][0]["verdict"] == 1
    analyzed = json.loads(hunter("analyze", "--config", path, "--output", "json").out)
    assert analyzed["tests"][0]["changes"][0]["regression"] is True


def test_pages_of_changes(agents, tmp_path):
    tests = ""
    for i in range(7):
        write_csv(tmp_path / f"{i}.csv", [(30, 1.2)])
        tests += csv_test(tmp_path / f"{i}.csv", f"t{i}")
    agent = agents(on_demand(config(tmp_path, tests)))
    agent.wait_metric("hunter_changes_found_total", 7)
    seen, query = [], ""
    while query is not None:
        answer = ask(port_of(agent), "/api/v1/changes?limit=3" + query).json
        seen.append([change["id"] for change in answer["changes"]])
        query = answer["next"] and f"&before={answer['next']}"
    assert [len(ids) for ids in seen] == [3, 3, 1] and sum(seen, []) == sorted(sum(seen, []), reverse=True)


def test_series(watched, tmp_path):
    [line] = ask(watched.port, "/api/v1/series?test=db.read&metric=p99").json["lines"]
    with open(tmp_path / "read.csv") as file:
        rows = list(csv.DictReader(file))
    assert (line["test"], line["name"], line["unit"], line["direction"], line["total"]) == ("db.read", "p99", "ms", -1, 60)
    assert line["values"] == [float(row["p99"]) for row in rows]
    commits = line["attributes"]["commit"]
    assert [commits["values"][at] for at in commits["at"]] == [row["commit"] for row in rows]
    assert line["times"][0] == 1709251200000 and len(line["times"]) == 60
    assert [(change["time"], change["commit"], change["verdict"]) for change in line["changes"]] == [(line["times"][30], "c0030", 1)]


def test_wrong_questions(watched):
    for path, status, words in [
            ("/api/v1/changes?sate=x", 400, 'unknown parameter "sate" (did you mean "state"?)'),
            ("/api/v1/changes?state=lost", 400, 'state: "lost" is none of'),
            ("/api/v1/changes?limit=0", 400, "limit: a number from 1 to 1000 is needed"),
            ("/api/v1/changes?limit=1001", 400, "limit"),
            ("/api/v1/changes?limit=1&limit=2", 400, 'duplicate parameter "limit"'),
            ("/api/v1/changes?before=x", 400, "before: the id of a change is needed"),
            ("/api/v1/changes?since=someday", 400, "since: "),
            ("/api/v1/changes?test=%ff", 400, 'parameter "test" is not percent-encoded UTF-8'),
            ("/api/v1/tests?x=1", 400, 'unknown parameter "x"'),
            ("/api/v1/series", 400, 'one of the parameters "test" and "change" is needed'),
            ("/api/v1/series?test=db.reed", 404, 'there is no test "db.reed"'),
            ("/api/v1/series?test=db.read&metric=p98", 400, 'metric: there is no series "p98"'),
            ("/api/v1/series?test=db.read&limit=none", 400, "limit: a number from 1 to 100 is needed"),
            ("/api/v1/series?test=db.read&since=today&until=yesterday", 400, "since is not before until"),
            ("/api/v2/tests", 404, "not found"),
            ("/metrics?name=x", 400, 'unknown parameter "name"')]:
        answer = ask(watched.port, path)
        assert (answer.status, words in answer.json["error"]) == (status, True), (path, answer.status, answer.text)
    for path, status, words in [("/api/v1/run", 400, '"test" and "group"'), ("/api/v1/run?test=a&group=b", 400, '"test" and "group"'),
                                ("/api/v1/run?test=db.reed", 404, 'did you mean "db.read"?'),
                                ("/api/v1/run?group=dbs", 404, 'there is no group "dbs"'),
                                ("/api/v1/run?test=db.read&wait=later", 400, "wait: true or false")]:
        answer = ask(watched.port, path, "POST")
        assert (answer.status, words in answer.json["error"]) == (status, True), (path, answer.status, answer.text)


def test_run_now(watched, tmp_path):
    """What a CI job does: it pushes a result, and asks what that has changed."""
    nothing = ask(watched.port, "/api/v1/run?test=db.read", "POST").json
    assert (nothing["count"], nothing["failed"], nothing["new"], nothing["changes"], nothing["left_out"]) == (1, 0, 0, [], 0)
    assert nothing["tests"][0] | {"duration_seconds": 0} == {
        "test": "db.read", "failed": False, "problem": None, "series": 1, "points": 60, "new": 0, "silent": 0,
        "candidates": 0, "moved": 0, "withdrawn": 0, "returned": 0, "duration_seconds": 0}
    assert nothing["more_changes"] is False
    write_csv(tmp_path / "write.csv", [(55, 0.7)], points=90)
    found = ask(watched.port, "/api/v1/run", "POST", body="test=db.write",
                headers={"Content-Type": "application/x-www-form-urlencoded"}).json
    assert found["count"] == 1 and found["new"] + found["candidates"] == 1, found
    assert [(change["test"], change["time"], change["regression"]) for change in found["changes"]] == [
        ("db.write", "2024-03-03T07:00:00Z", False)]
    write_csv(tmp_path / "write.csv", [(55, 0.7)], points=91)
    both = ask(watched.port, "/api/v1/run?group=db", "POST").json
    assert both["count"] == 2 and {test["test"] for test in both["tests"]} == {"db.read", "db.write"}
    assert both["points"] == 60 + 91
    assert ask(watched.port, "/api/v1/run?test=*.read", "POST").json["count"] == 1
    (tmp_path / "read.csv").unlink()
    failed = ask(watched.port, "/api/v1/run?test=db.*", "POST").json
    assert failed["count"] == 2 and failed["failed"] == 1
    assert "no such file" in [test["problem"] for test in failed["tests"] if test["failed"]][0]
    runs = watched.metric("hunter_runs_total")
    later = ask(watched.port, "/api/v1/run?test=db.write&wait=false", "POST")
    assert later.status == 202 and later.json == {"count": 1}
    watched.wait_metric("hunter_runs_total", runs + 1)


def test_run_tells_of_every_change(agents, tmp_path):
    """Whatever a run has written is in its answer, also of a test whose name looks like a pattern."""
    write_csv(tmp_path / "read.csv", [])
    agent = agents(on_demand(config(tmp_path, csv_test(tmp_path / "read.csv", "bench[64]"))))
    agent.wait_metric("hunter_runs_total", 1)
    port = port_of(agent)

    def run(*steps):
        write_csv(tmp_path / "read.csv", list(steps))
        answer = ask(port, "/api/v1/run?test=bench%5B64%5D", "POST").json
        assert answer["failed"] == 0
        return answer, [(change["time"], change["state"]) for change in answer["changes"]]

    found, changes = run((30, 1.2))
    assert found["new"] == 1 and changes == [("2024-03-02T06:00:00Z", "confirmed")]
    moved, changes = run((32, 1.2))
    assert moved["moved"] == 1 and changes == [("2024-03-02T08:00:00Z", "moved")]
    withdrawn, changes = run()
    assert withdrawn["withdrawn"] == 1 and changes == [("2024-03-02T08:00:00Z", "withdrawn")]
    returned, changes = run((32, 1.2))
    assert returned["returned"] == 1 and [state for _, state in changes] == ["confirmed"]
    again, changes = run((32, 1.2))
    assert changes == [] and not any(again[count] for count in ("new", "moved", "withdrawn", "returned"))
    assert len(ask(port, "/api/v1/changes?test=bench%5B64%5D").json["changes"]) == 1


def test_run_answers_at_once(watched):
    """From the question to the answer, files on a local disk: one of many, as other work goes on beside."""
    def quick():
        begun = time.monotonic()
        assert ask(watched.port, "/api/v1/run?test=db.read", "POST").status == 200
        return time.monotonic() - begun < 0.2

    wait(quick)


def test_from_run_to_slack(agents, tmp_path):
    """From the question to Slack's getting the message, once in at most a fifth of a second; other work goes on beside."""
    channels = [f"#{i}" for i in range(30)]
    with FakeSlack(CANARY, channels) as slack:
        for i, channel in enumerate(channels):
            data, place = tmp_path / f"{i}.csv", tmp_path / str(i)
            place.mkdir()
            write_csv(data, [])
            agent = agents(on_demand(config(place, csv_test(data), bot(slack, channels=channel))))
            agent.wait_metric("hunter_runs_total", 1)
            write_csv(data, [(55, 0.7)], points=90)
            begun = time.monotonic()
            assert ask(port_of(agent), "/api/v1/run?test=db.read", "POST").json["new"] == 1
            agent.wait_log("msg=sent")
            assert len(slack.posts) == i + 1
            assert agent.end() == 0
            if slack.times[-1][0] - begun < 0.2:
                break
        else:
            raise AssertionError("none was in time")
        assert slack.violations == []


class Slow(http.server.ThreadingHTTPServer):
    """A Prometheus that answers when it is let."""

    daemon_threads = True

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Slow.Handler)
        self.let, self.asked = threading.Event(), threading.Semaphore(0)
        threading.Thread(target=self.serve_forever, args=(0.02,), daemon=True).start()

    def __exit__(self, *_):
        self.let.set()
        self.shutdown()
        self.server_close()

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            self.server.asked.release()
            self.server.let.wait(LONGEST)
            values = [[1709251200 + 3600 * i, str(100 + i % 3)] for i in range(60)]
            body = json.dumps({"status": "success", "data": {"resultType": "matrix", "result": [
                {"metric": {"__name__": "speed"}, "values": values}]}}).encode()
            with contextlib.suppress(OSError):
                self.send_response(200)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

        do_POST = do_GET

        def log_message(self, *_):
            pass


def test_clients_that_wait_and_those_that_leave(agents, tmp_path):
    """A run is answered when its data have come; whoever has left by then is no harm, nor is a third that asks meanwhile."""
    with Slow() as server:
        agent = agents(on_demand(config(tmp_path, "  speed: {type: prometheus, query: speed, range: 3650d}\n",
                                        f"prometheus: {{url: 'http://127.0.0.1:{server.server_address[1]}', timeout: 50s}}")))
        port = port_of(agent)
        assert server.asked.acquire(timeout=LONGEST)
        with concurrent.futures.ThreadPoolExecutor(3) as pool:
            waiting = [pool.submit(ask, port, "/api/v1/run?test=speed", "POST") for _ in range(2)]
            series = pool.submit(ask, port, "/api/v1/series?test=speed")
            for path, method in (("/api/v1/run?test=speed", "POST"), ("/api/v1/series?test=speed", "GET")):
                leaving = http.client.HTTPConnection("127.0.0.1", port, timeout=LONGEST)
                leaving.request(method, path)
                assert ask(port, "/-/healthy").status == 200
                leaving.close()
            assert not any(one.done() for one in waiting)
            server.let.set()
            for one in waiting:
                assert one.result(LONGEST).json["tests"][0]["points"] == 60, one.result().text
            assert len(series.result(LONGEST).json["lines"][0]["values"]) == 60
        assert ask(port, "/api/v1/run?test=speed", "POST").json["failed"] == 0
        assert agent.end() == 0


def test_those_who_wait_are_told_that_the_agent_stops(agents, tmp_path):
    with Slow() as server:
        agent = agents(on_demand(config(tmp_path, "  speed: {type: prometheus, query: speed, range: 3650d}\n",
                                        f"prometheus: {{url: 'http://127.0.0.1:{server.server_address[1]}', timeout: 50s}}")))
        port = port_of(agent)
        assert server.asked.acquire(timeout=LONGEST)
        with concurrent.futures.ThreadPoolExecutor(1) as pool:
            waiting = pool.submit(ask, port, "/api/v1/series?test=speed")
            assert server.asked.acquire(timeout=LONGEST)
            assert agent.end() == 0
            assert waiting.result(LONGEST).status == 503 and "stopping" in waiting.result().text


def test_reload(watched, tmp_path):
    path = tmp_path / "hunter.yaml"
    good = path.read_text()
    answer = ask(watched.port, "/-/reload", "POST")
    assert answer.status == 200 and answer.json["loaded"] is True and answer.json["tests"] == 2
    path.write_text(good + "tests: [\n")
    answer = ask(watched.port, "/-/reload", "POST")
    assert answer.status == 500 and answer.json["loaded"] is False
    assert "hunter.yaml:" in answer.text
    assert watched.metric("hunter_config_last_reload_successful") == 0
    path.write_text(good.replace("db.write", "db.wrote"))
    answer = ask(watched.port, "/-/reload", "POST").json
    assert (answer["added"], answer["removed"]) == (1, 1)
    assert [test["name"] for test in ask(watched.port, "/api/v1/tests").json["tests"]] == ["db.read", "db.wrote"]
    assert watched.metric("hunter_config_last_reload_successful") == 1


def test_pages_of_other_sites_are_refused(watched):
    def status(path, method="POST", **headers):
        return ask(watched.port, path, method, headers={k.replace("_", "-"): v for k, v in headers.items()}).status

    here = f"localhost:{watched.port}"
    run = "/api/v1/run?test=db.read"
    assert status(run) == status(run, Host=here) == 200
    assert status(run, Host=here, Origin=f"http://{here}", Sec_Fetch_Site="same-origin") == 200
    runs = watched.metric("hunter_runs_total")
    for headers in ({"Host": "evil.example"}, {"Host": f"evil.example:{watched.port}"}, {"Origin": "http://evil.example"},
                    {"Origin": "null"}, {"Sec_Fetch_Site": "cross-site"}, {"Sec_Fetch_Site": "same-site"},
                    {"Host": here, "Origin": "http://localhost:1"}):
        for path in (run, "/-/reload"):
            assert status(path, **headers) == 403, (path, headers)
    for path in ("/api/v1/tests", "/api/v1/changes", "/api/v1/series?test=db.read"):
        assert status(path, "GET", Host="evil.example") == 403
        answer = ask(watched.port, path)
        assert answer.status == 200 and not any("Access-Control" in name for name in answer.headers)
    assert status("/metrics", "GET", Host="prometheus.example") == 200
    assert watched.metric("hunter_runs_total") == runs


def test_listening_for_others(agents, hunter, tmp_path):
    write_csv(tmp_path / "read.csv", [])
    path = on_demand(config(tmp_path, csv_test(tmp_path / "read.csv"), agent="  metrics_listen: 0.0.0.0:0"))
    agent = agents(path)
    port = port_of(agent, "serving metrics")
    agent.wait_metric("hunter_ready", 1)  # the state file has been read
    assert "hunter_tests 1\n" in ask(port, "/metrics").text
    assert ask(port, "/-/healthy").status == 200 and ask(port, "/-/ready").status == 200
    for page in ("/api/v1/tests", "/api/v1/changes", "/api/v1/series?test=db.read"):
        assert ask(port, page).status == 404
    for page in ("/-/reload", "/api/v1/run?test=db.read"):
        assert ask(port, page, "POST").status == 404
    for page in ("/metrics", "/-/healthy", "/-/ready"):
        for method in ("POST", "PUT", "DELETE"):
            assert ask(port, page, method).status == 405
    assert agent.end() == 0

    open_to_all = path.read_text().replace("listen: 127.0.0.1:0", "listen: 0.0.0.0:0", 1)
    path.write_text(open_to_all)
    refused = hunter("run", "--config", path)
    assert refused.code == 2 and "agent.listen: 0.0.0.0:0 is reachable from other machines" in refused.err, refused.err
    agent = agents(path, "--insecure")
    assert ask(port_of(agent), "/api/v1/tests").json["total"] == 1
    assert agent.end() == 0
    for wrong in ("here", "127.0.0.1", "127.0.0.1:99999"):
        path.write_text(open_to_all.replace("metrics_listen: 0.0.0.0:0", f"metrics_listen: '{wrong}'"))
        refused = hunter("validate", "--config", path)
        assert refused.code == 2 and "metrics_listen" in refused.out + refused.err


def test_ipv6(agents, tmp_path):
    with socket.socket(socket.AF_INET6) as probe:
        try:
            probe.bind(("::1", 0))
        except OSError:
            pytest.skip("no IPv6 on this machine")
    write_csv(tmp_path / "read.csv", [])
    path = on_demand(config(tmp_path, csv_test(tmp_path / "read.csv"), agent='  metrics_listen: "[::]:0"'))
    path.write_text(path.read_text().replace("listen: 127.0.0.1:0", 'listen: "[::1]:0"', 1))
    agent = agents(path)
    assert ask(port_of(agent), "/api/v1/tests", host="::1").status == 200
    port = port_of(agent, "serving metrics")
    assert ask(port, "/metrics", host="::1").status == ask(port, "/metrics", host="127.0.0.1").status == 200


def test_a_hundred_at_once(watched):
    """Of all kinds, while others say half of what they want, or nothing."""
    slow = []
    for i in range(30):
        slow.append(socket.create_connection(("127.0.0.1", watched.port), LONGEST))
        slow[-1].sendall((b"", b"GET /api", b"POST /api/v1/run?test=db.read HTTP/1.1\r\nHost: localhost\r\nContent-Le")[i % 3])
    paths = [("/api/v1/run?test=db.*", "POST"), ("/api/v1/tests", "GET"), ("/api/v1/changes", "GET"), ("/metrics", "GET"),
             ("/api/v1/tests", "HEAD"), ("/api/v1/run?test=db.read&wait=false", "POST"), ("/-/healthy", "GET"), ("/nothing", "GET"),
             ("/api/v1/tests", "DELETE"), ("/api/v1/series?test=db.read", "GET")]

    def one(i):
        path, method = paths[i % len(paths)]
        while True:
            try:
                answer = ask(watched.port, path, method, timeout=LONGEST)
            except ConnectionError:  # one address has 64 connections: come again
                pause(0.02, "a client that comes again in a while")
                continue
            if answer.status != 503:  # too many wait: come again
                return i % len(paths), answer.status
            assert answer.headers["Retry-After"]
            pause(0.02, "a client that comes again in a while")

    with concurrent.futures.ThreadPoolExecutor(100) as pool:
        answers = set(pool.map(one, range(100)))
    assert answers == set(enumerate([200, 200, 200, 200, 200, 202, 200, 404, 405, 200]))
    for connection in slow:
        connection.close()
    assert ask(watched.port, "/-/ready").status == 200


def test_requests_of_all_sizes(watched):
    def raw(request):
        with socket.create_connection(("127.0.0.1", watched.port), LONGEST) as connection:
            with contextlib.suppress(OSError):
                connection.sendall(request)
            got = b""
            with contextlib.suppress(OSError):
                while more := connection.recv(65536):
                    got += more
            return got

    head = b"GET /-/healthy HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n"
    assert b"200 OK" in raw(head + b"\r\n")
    assert b" 200 " not in raw(head + b"X: " + b"y" * 100000 + b"\r\n\r\n")
    assert b" 200 " not in raw(head + b"X: y\r\n" * 10000 + b"\r\n")
    assert b" 200 " not in raw(b"GET /api/v1/tests?test=" + b"x" * 100000 + b" HTTP/1.1\r\nHost: localhost\r\n\r\n")
    assert b" 400 " in raw(b"GET /api/v1/tests?test=" + b"x" * 5000 + b" HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
    form = b"POST /api/v1/run HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/x-www-form-urlencoded\r\n"
    assert b" 413 " in raw(form + b"Content-Length: 70000\r\n\r\n" + b"x" * 70000)
    assert b" 415 " in raw(form.replace(b"x-www-form-urlencoded", b"json") + b"Content-Length: 2\r\n\r\n{}")
    assert b" 200 " not in raw(b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n")
    head_only = raw(b"HEAD /api/v1/tests HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
    assert head_only.startswith(b"HTTP/1.1 200 OK") and head_only.endswith(b"\r\n\r\n")
    assert int(re.search(rb"Content-Length: (\d+)", head_only)[1]) > 100
    assert ask(watched.port, "/-/ready").status == 200


def test_no_secret_is_shown(agents, tmp_path):
    """Not even where a server quotes what it was sent."""

    class Echo(Slow.Handler):
        def do_GET(self):
            body = (f"refused: {self.headers['Authorization']}").encode()
            self.send_response(401)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        do_POST = do_GET

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Echo) as server:
        threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
        agent = agents(on_demand(config(tmp_path, "  speed: {type: prometheus, query: speed, range: 3650d}\n", f"""
prometheus: {{url: 'http://127.0.0.1:{server.server_address[1]}', bearer_token: {CANARY}}}
slack: {{bot_token: {CANARY}, channels: ["#perf"], api_url: 'http://127.0.0.1:1/{CANARY}'}}
""")))
        port = port_of(agent)
        agent.wait_metric("hunter_run_failures_total", 1)
        answers = [ask(port, path, method) for path, method in (
            ("/api/v1/tests", "GET"), ("/api/v1/changes", "GET"), ("/api/v1/series?test=speed", "GET"), ("/metrics", "GET"),
            ("/api/v1/run?test=speed", "POST"), ("/-/reload", "POST"), ("/-/ready", "GET"))]
        assert [answer.status for answer in answers] == [200, 200, 502, 200, 200, 200, 200]
        assert not any(CANARY in answer.text or CANARY in str(answer.headers) for answer in answers)
        assert 'hunter_fetch_errors_total{source="prometheus",reason="denied"}' in answers[3].text
        assert agent.end() == 0
        server.shutdown()


class Plain(http.server.ThreadingHTTPServer):
    """Hands an agent's metrics on, asked for as somebody asks who does not know OpenMetrics."""

    daemon_threads = True

    def __init__(self, port):
        super().__init__(("127.0.0.1", 0), Plain.Handler)
        self.behind = port
        threading.Thread(target=self.serve_forever, args=(0.02,), daemon=True).start()

    def __exit__(self, *_):
        self.shutdown()
        self.server_close()

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            answer = ask(self.server.behind, "/metrics")
            self.send_response(answer.status)
            self.send_header("Content-Type", answer.headers["Content-Type"])
            self.end_headers()
            self.wfile.write(answer.text.encode())

        def log_message(self, *_):
            pass


def test_scraped_by_prometheus(watched, tmp_path):
    """Both formats, by the real one: it takes them, and reads the same from both."""
    openmetrics = ask(watched.port, "/metrics", headers={
        "Accept": "application/openmetrics-text;version=1.0.0;q=0.75,text/plain;version=0.0.4;q=0.3,*/*;q=0.2"})
    assert openmetrics.headers["Content-Type"] == "application/openmetrics-text; version=1.0.0; charset=utf-8"
    assert openmetrics.text.endswith("\n# EOF\n")
    for accept in ("*/*", "text/plain", "text/html,*/*;q=0.8"):
        assert ask(watched.port, "/metrics", headers={"Accept": accept}).headers["Content-Type"] == (
            "text/plain; version=0.0.4; charset=utf-8")
    with Plain(watched.port) as plain:
        scrape = f"""
scrape_configs:
  - job_name: open
    scrape_interval: 500ms
    scrape_timeout: 500ms
    static_configs: [{{targets: ["127.0.0.1:{watched.port}"]}}]
  - job_name: plain
    scrape_interval: 500ms
    scrape_timeout: 500ms
    static_configs: [{{targets: ["127.0.0.1:{plain.server_address[1]}"]}}]
"""
        history = servers.openmetrics({"old": [({}, 1, 1700000000)]})
        with servers.prometheus(tmp_path, history, scrape=scrape) as server:
            def query(expression):
                with urllib.request.urlopen(f"{server.url}/api/v1/query?query={expression}", timeout=LONGEST) as answer:
                    return {(r["metric"].get("job"), r["metric"].get("source")): float(r["value"][1])
                            for r in json.load(answer)["data"]["result"]}

            def targets():
                with urllib.request.urlopen(f"{server.url}/api/v1/targets", timeout=LONGEST) as answer:
                    return json.dumps(json.load(answer)["data"]["activeTargets"])

            wait(lambda: query("up==1").keys() == {("open", None), ("plain", None)}, targets)
            for name, labels, value in (("hunter_tests", None, 2), ("hunter_ready", None, 1), ("hunter_runs_total", "csv", 2),
                                        ("hunter_build_info", None, 1), ("hunter_run_duration_seconds_count", "csv", 2),
                                        ("hunter_store_size_bytes", None, None)):
                def same():  # a busy machine may miss a scrape
                    found = query(name)  # noqa: B023
                    return found.keys() == {("open", labels), ("plain", labels)} and (value is None or set(found.values()) == {value})  # noqa: B023

                wait(same, lambda: f"{name}: {query(name)}")  # noqa: B023
            with urllib.request.urlopen(f"{server.url}/api/v1/targets/metadata?metric=hunter_run_duration_seconds",
                                        timeout=LONGEST) as answer:
                assert {(m["target"]["job"], m["type"], m["unit"]) for m in json.load(answer)["data"]} == {
                    ("open", "histogram", "seconds"), ("plain", "histogram", "")}


def keys_of(value):
    if isinstance(value, list):
        return set().union(*map(keys_of, value), set())
    if not isinstance(value, dict):
        return set()
    return set(value) | set().union(*(keys_of(v) for k, v in value.items() if k != "attributes"), set())


def test_the_documentation_has_every_field_and_parameter(watched, names, tmp_path):
    page = (TOP / "docs/reference/api.md").read_text()
    write_csv(tmp_path / "write.csv", [(55, 0.7)], points=90)
    answers = [ask(watched.port, path, method).json for path, method in (
        ("/api/v1/tests", "GET"), ("/api/v1/run?group=db", "POST"), ("/api/v1/changes", "GET"), ("/-/reload", "POST"),
        ("/api/v1/series?test=db.read", "GET"), ("/api/v1/none", "GET"))]
    fields = keys_of(answers)
    assert len(fields) > 50 and [name for name in sorted(fields) if f"`{name}`" not in page] == []
    table = (TOP / "agent/web/api.c").read_text()
    parameters = set(re.findall(r"^parameter of \S+: (\S+)$", names, re.MULTILINE))
    assert len(parameters) > 40 and [name for name in sorted(parameters) if f"`{name}`" not in page] == []
    assert [path for path in re.findall(r'\{"(/[^"]+)"', table) if f"{path.replace('*', 'ID')}`" not in page] == []
