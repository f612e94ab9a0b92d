"""Data of plots: what is drawn as a change is what the state knows, no spike is hidden, and many who look cost one fetch."""
import concurrent.futures
import http.server
import json
import math
import re
import threading
import urllib.parse

from agent import ask, config, csv_test, on_demand, port_of, write_csv
from waiting import LONGEST, wait


def plot_of(port, query):
    answer = ask(port, "/api/v1/plot?" + query)
    assert answer.status == 200, answer
    return answer.json


def wait_for_changes(port, count):
    def known():
        changes = ask(port, "/api/v1/changes").json["changes"]
        return changes if len(changes) >= count else None

    return wait(known)


def test_changes_are_those_of_the_state(agents, tmp_path):
    write_csv(tmp_path / "read.csv", [(30, 1.2)])
    path = config(tmp_path, csv_test(tmp_path / "read.csv"))
    on_demand(path)
    agent = agents(path)
    port = port_of(agent)
    known = wait_for_changes(port, 1)[0]
    plot = plot_of(port, "test=db.read")
    line = plot["lines"][0]
    assert (plot["title"], line["name"], line["total"], len(line["times"])) == ("db.read p99", "p99", 60, 60)
    assert line["attributes"]["commit"]["values"][line["attributes"]["commit"]["at"][30]] == "c0030"
    change = line["changes"][0]
    assert (change["id"], change["source"], change["triage"], change["verdict"]) == (known["id"], "known", "open", 1)
    assert (change["before"], change["after"], change["size"]) == (known["level_before"], known["level_after"], known["size"])
    # What people say of it is there at once, although the points are not fetched again.
    said = ask(port, f"/api/v1/changes/{known['id']}/triage", "POST", "state=expected",
               {"Content-Type": "application/x-www-form-urlencoded"})
    assert said.status == 200, said
    plot = plot_of(port, f"change={known['id']}")
    assert plot["mark"] == known["id"] and plot["lines"][0]["changes"][0]["triage"] == "expected"
    # Other points: once the agent has seen them, the plot has them, too, and what was told is not hidden.
    write_csv(tmp_path / "read.csv", [(15, 1.5)])
    assert ask(port, "/api/v1/run?test=db.read", "POST").status == 200
    changes = plot_of(port, "test=db.read")["lines"][0]["changes"]
    assert [(one["id"] == known["id"], one["source"], one["withdrawn"]) for one in changes] == [(False, "known", False), (True, "known", True)], changes
    assert agent.end() == 0


def test_a_detection_that_says_otherwise_is_told_apart(agents, tmp_path):
    """Points that have come since the last run."""
    write_csv(tmp_path / "read.csv", [(30, 1.2)], points=60)
    path = config(tmp_path, csv_test(tmp_path / "read.csv"))
    on_demand(path)
    agent = agents(path)
    port = port_of(agent)
    known = wait_for_changes(port, 1)[0]
    write_csv(tmp_path / "read.csv", [(30, 1.2), (75, 1.2)], points=100)
    changes = plot_of(port, "test=db.read")["lines"][0]["changes"]
    assert [(one["id"], one["source"]) for one in changes] == [(known["id"], "known"), (None, "fresh")]
    # With another configuration the points are read again: now nothing is there.
    write_csv(tmp_path / "read.csv", [], points=100)
    path.write_text(path.read_text().replace("interval: 1d", "interval: 2d"))
    assert ask(port, "/-/reload", "POST").status == 200
    changes = plot_of(port, "test=db.read")["lines"][0]["changes"]
    assert [(one["id"], one["source"]) for one in changes] == [(known["id"], "lost")], changes
    assert agent.end() == 0


def test_no_spike_is_hidden(agents, tmp_path):
    rows = ["time,commit,v"]
    for i in range(20000):
        value = 500 if i == 12345 else -500 if i == 777 else 100 + i % 7
        rows.append(f"{1700000000 + 60 * i},c{i // 10},{value}")
    (tmp_path / "read.csv").write_text("\n".join(rows) + "\n")
    path = config(tmp_path, csv_test(tmp_path / "read.csv").replace("p99", "v"))
    agent = agents(path)
    port = port_of(agent)
    line = plot_of(port, "test=db.read&width=100")["lines"][0]
    assert line["total"] == 20000 and len(line["times"]) <= 400
    assert (max(line["values"]), min(line["values"])) == (500, -500)
    at = line["values"].index(500)
    assert line["times"][at] == (1700000000 + 60 * 12345) * 1000
    assert line["attributes"]["commit"]["values"][line["attributes"]["commit"]["at"][at]] == "c1234"
    # A part of it: its points, and one on either side.
    since, until = 1700000000 + 60 * 12000, 1700000000 + 60 * 12100
    part = plot_of(port, f"test=db.read&since={since}&until={until}&width=1000")
    assert (part["from"], part["to"]) == (since * 1000, until * 1000) and len(part["lines"][0]["times"]) == 102
    for query, status, words in (("", 400, 'one of the parameters "test" and "change" is needed'), ("test=x", 404, 'there is no test "x"'),
                                 ("test=db.read&metric=w", 400, 'metric: there is no series "w"'), ("change=77", 404, "there is no change 77"),
                                 ("test=db.read&width=0", 400, "width: a number from 1 to 10000 is needed"),
                                 ("test=db.read&cleaned=1", 400, "cleaned: true or false is needed"),
                                 ("test=db.read&since=2024-01-02&until=2024-01-01", 400, "since is not before until")):
        answer = ask(port, "/api/v1/plot?" + query)
        assert answer.status == status and words in answer.json["error"], (query, answer)
    assert agent.end() == 0


def test_all_lines_together_have_a_bound(agents, tmp_path):
    """However many columns are asked for."""
    names = ["a", "b", "c", "d", "e"]
    rows = [",".join(["time", *names])]
    for i in range(20000):
        rows.append(",".join([str(1700000000 + 60 * i), *(str(100 + (i * (7 + k)) % 13) for k in range(5))]))
    (tmp_path / "read.csv").write_text("\n".join(rows) + "\n")
    path = config(tmp_path, csv_test(tmp_path / "read.csv").replace("p99", ": {}, ".join(names)).replace("    attributes: [commit]\n", "    detection: {kind: benchmark}\n"))
    agent = agents(path)
    port = port_of(agent)
    for query in ("", "&width=10000"):
        lines = plot_of(port, "test=db.read" + query)["lines"]
        assert [line["total"] for line in lines] == 5 * [20000]
        assert 30000 < sum(len(line["times"]) for line in lines) <= 60000 + 5 * 8, query
    assert all(len(line["times"]) <= 400 for line in plot_of(port, "test=db.read&width=100")["lines"])
    assert agent.end() == 0


def test_many_who_look_cost_one_fetch(agents, tmp_path):
    asked, go = [], threading.Event()

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            address = urllib.parse.urlsplit(self.path)
            result = []
            if address.path == "/api/v1/query_range":
                query = {k: float(v) for k, v in urllib.parse.parse_qsl(address.query) if k in ("start", "end", "step")}
                if query["end"] - query["start"] > 3600:
                    asked.append(query)
                    if len(asked) > 1:  # the agent's own run is the first
                        assert go.wait(LONGEST)
                times = range(int(query["start"]), int(query["end"]), int(query["step"]))
                result = [{"metric": {"__name__": "up", "region": region}, "values": [[t, str(100 + math.sin(t))] for t in times]} for region in ("eu", "us")]
            data = json.dumps({"status": "success", "data": {"resultType": "matrix", "result": result}}).encode()
            self.send_response(200)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, *_):
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()
        path = config(tmp_path, """
  checkout: {type: prometheus, query: up, range: 20h, step: 1m}
""", f'prometheus: {{url: "http://127.0.0.1:{server.server_address[1]}"}}')
        on_demand(path)
        agent = agents(path)
        port = port_of(agent)
        wait(lambda: asked)
        before = len(asked)
        with concurrent.futures.ThreadPoolExecutor(10) as pool:
            waiting = [pool.submit(plot_of, port, f"test=checkout&width={100 + i}") for i in range(10)]
            wait(lambda: len(asked) > before)
            go.set()
            plots = [one.result() for one in waiting]
        assert len({plot["lines"][0]["total"] for plot in plots}) == 1
        plot_of(port, "test=checkout&since=2h")
        assert len(asked) == before + 1, asked
        lines = plot_of(port, "test=checkout&metric=" + urllib.parse.quote('{region="us"}'))["lines"]
        assert ["us" in line["series"] for line in lines] == [True], lines
        plot_of(port, "test=checkout&since=3d")  # further back than what is kept
        assert len(asked) == before + 2, asked
        assert agent.end() == 0
        server.shutdown()


def test_a_window_shows_the_levels_that_cross_it(hunter, tmp_path):
    """On the terminal: a level that begins before the window and ends behind it is a line from edge to edge."""
    def rows(*dates):
        done = hunter("plot", "t", "v", "--config", "t.yaml", *dates)
        assert done.code == 0, done
        return [re.split("[│┤]", row)[1] for row in done.out.splitlines() if re.search("[│┤]", row)]

    days = [f"2026-{1 + i // 28:02}-{1 + i % 28:02}" for i in range(120)]
    values = [(100 if i < 40 else 150 if i < 80 else 120) + (i * 7 % 5 - 2) for i in range(120)]
    (tmp_path / "t.csv").write_text("time,v\n" + "".join(f"{day},{value}\n" for day, value in zip(days, values)))
    (tmp_path / "t.yaml").write_text(f"tests: {{t: {{type: csv, file: {tmp_path}/t.csv, time_column: time, metrics: {{v: {{direction: -1}}}}}}}}\n")
    inside = rows("--since", days[50], "--until", days[70])
    assert any(all(cell not in " ┊" for cell in row) for row in inside), inside
