"""One agent beside a real Prometheus and a real Graphite: a deployment between two points, a region that vanishes, a runner that
slows, a test that is renamed and a query that gives nothing are each told once and right, small things are not told, and `why`
explains each of them.

The dates are fixed: the agent has a clock of its own, which goes on by the hour.
"""
import contextlib
import datetime
import http.server
import json
import random
import re
import signal
import threading
import time
import urllib.error
import urllib.request

import pytest
import servers
from agent import CANARY, bot
from fake_slack import FakeSlack
from state_address import state_of
from waiting import LONGEST

HOUR, DAY = 3600, 86400
START = int(datetime.datetime(2024, 3, 4, tzinfo=datetime.timezone.utc).timestamp())  # a Monday
LIVE = 29 * 24  # hours that are there before the agent looks: it begins on a Tuesday
SLOWER, SPIKE, CREEP, DEPLOYED, ENDS, RUNNER, RENAMED, OVER = (LIVE + hours for hours in (3, 8, 2, 6, 9, 11, 14, 22))
SAMPLES = 10  # an hour
REGIONS = {"eu": 4, "us": 5, "ap": 3}


def hour_of(hour, minute=0):
    return datetime.datetime.fromtimestamp(START + hour * HOUR + 60 * minute, datetime.timezone.utc)


def work(service, level):
    """What its requests take, at each tenth of an hour; an average of an hour has a deviation of 0.3."""
    chance = random.Random(service)
    return [({"service": service}, level(i / SAMPLES) + chance.gauss(0, 1), START + i * HOUR // SAMPLES)
            for i in range((OVER + 2) * SAMPLES)]


def history():
    chance = random.Random(2)
    shops = [({"region": region, "instance": f"{region}{i}"}, 20 + chance.gauss(0, 0.2), START + hour * HOUR)
             for region, many in REGIONS.items() for i in range(many) for hour in range(ENDS + 1 if region == "ap" else OVER + 2)]
    runs = [({"runner": f"runner-{runner}", "case": f"case{case}"},
             (10 + case) * (1.08 if runner == 7 and hour >= RUNNER else 1) * (1 + chance.gauss(0, 0.005)), START + hour * HOUR)
            for runner in (7, 8, 9) for case in range(10) for hour in range(OVER + 2)]
    deployments = [({"service": "checkout", "commit": commit}, when, at)
                   for commit, when in (("c1", START + 20 * DAY), ("c2", START + DEPLOYED * HOUR + 48 * 60),
                                        ("c3", START + (DEPLOYED + 4) * HOUR))
                   for at in range(when, START + (OVER + 2) * HOUR, 240)]
    return servers.openmetrics({
        "work_seconds": [*work("checkout", lambda hour: 100 + 10 * (hour >= DEPLOYED + 0.8)), *work("calm", lambda hour: 100),
                         *work("spike", lambda hour: 100 + 20 * (SPIKE + 0.05 < hour < SPIKE + 0.95)),
                         *work("creep", lambda hour: 100 + 0.15 * (hour >= CREEP))],
        "latency_ms": shops, "case_seconds": runs, "deployed_time_seconds": deployments})


class Undated(http.server.BaseHTTPRequestHandler):
    """Hands requests on to the server's `backend`. Its answers have no date: by the servers' own the agent's clock would be wrong."""
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        body = self.rfile.read(int(self.headers["Content-Length"] or 0)) or None
        kept = {key: value for key, value in self.headers.items() if key.lower() in ("content-type", "accept")}
        asked = urllib.request.Request(self.server.backend + self.path, body, kept, method=self.command)
        try:
            with urllib.request.urlopen(asked, timeout=LONGEST) as answer:
                status, kind, body = answer.status, answer.headers["Content-Type"], answer.read()
        except urllib.error.HTTPError as answer:
            status, kind, body = answer.code, answer.headers["Content-Type"], answer.read()
        self.send_response_only(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    do_POST = do_GET

    def log_message(self, *_):
        pass


@contextlib.contextmanager
def undated(backend):
    """The address of a server before it that says no date."""
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Undated)
    server.daemon_threads, server.backend = True, backend.rstrip("/")
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()


@pytest.fixture(scope="module")
def prometheus(tmp_path_factory):
    with servers.prometheus(tmp_path_factory.mktemp("prometheus"), history()) as running, undated(running.url) as address:
        yield address


@pytest.fixture(scope="module")
def graphite(tmp_path_factory):
    """A series that is 5% slower from an hour on, deployed 43 minutes before."""
    chance = random.Random(3)
    rows = [(100 + 5 * (hour >= SLOWER) + chance.gauss(0, 0.5), START + hour * HOUR) for hour in range(OVER + 2)]
    with servers.graphite(tmp_path_factory.mktemp("graphite")) as running:
        running.feed({"bench.lat": rows})
        assert running.wait(lambda: running.render("bench.lat", START, START + DAY).startswith("bench.lat"))
        for when, commit in ((START + DAY, "g1"), (START + SLOWER * HOUR - 43 * 60, "g2")):
            running.event(when, ["bench"], data={"commit": commit})
        with undated(running.url) as address:
            yield address


@pytest.fixture
def slack():
    with FakeSlack(CANARY, ["#perf"]) as slack:
        slack.dated = False
        yield slack
        assert slack.violations == []


def written(folder, prometheus, graphite, slack, bench="old.bench", was=""):
    path = folder / "hunter.yaml"
    path.write_text(f"""
prometheus: {{url: "{prometheus}"}}
graphite: {{url: "{graphite}"}}
{bot(slack)}
agent: {{state: {state_of(folder)}, listen: "127.0.0.1:0", interval: 1s, group_wait: 0s, evaluation_delay: 0}}
tests:
  shop: {{type: prometheus, query: "avg_over_time(work_seconds[1h])", step: 1h, range: 40d, deployments: deployed_time_seconds,
    metrics: {{work: {{direction: -1, unit: s}}}}}}
  fleet: {{type: prometheus, query: latency_ms, step: 1h, range: 40d, metrics: {{latency: {{direction: -1, unit: ms}}}}}}
  cases: {{type: prometheus, query: case_seconds, step: 1h, range: 40d, environment: runner, metrics: {{case: {{direction: -1, unit: s}}}}}}
  mars: {{type: prometheus, query: 'latency_ms{{region="mars"}}', step: 1h, range: 40d}}
  {bench}: {{{was}type: graphite, target: bench.lat, tags: [bench], range: 40d, metrics: {{lat: {{direction: -1, unit: ms}}}}}}
""")
    return path


def api(agent, path, method="GET"):
    with urllib.request.urlopen(urllib.request.Request(agent.address() + path, method=method), timeout=LONGEST) as answer:
        return json.loads(answer.read())


def run_all(agent):
    """The tests that fail, of a run of each."""
    tests = api(agent, "/api/v1/run?test=*", "POST")["tests"]
    assert len(tests) == 5
    return [test["test"] for test in tests if test["failed"]]


def go_to(agent, clock, hour):
    """A quarter past; every test has been read since."""
    clock.turn(START + hour * HOUR + 900 - time.time())
    agent.wait(lambda: run_all(agent) == ["mars"])


def texts(slack):
    return [json.dumps(post, ensure_ascii=False) for post in slack.posts]


def about(slack, text):
    return [post for post in texts(slack) if text in post]


def explain(hunter, path, *asked, code=0):
    done = hunter("why", "--config", path, *asked)
    assert done.code == code, done.err
    return done.out, json.loads(hunter("why", "--config", path, *asked, "--output", "json").out)


def test_each_is_told_once_and_why_explains_it(hunter, agents, clock, tmp_path, prometheus, graphite, slack):
    path = written(tmp_path, prometheus, graphite, slack)
    clock.turn(START + LIVE * HOUR + 900 - time.time())
    agent = agents(path)
    for hour in range(LIVE, OVER):
        if hour == RENAMED:
            written(tmp_path, prometheus, graphite, slack, "new.bench", "was: old.bench, ")
            agent.process.send_signal(signal.SIGHUP)
            agent.wait(lambda: "new.bench" in agent.get("/api/v1/tests")[1])
        go_to(agent, clock, hour)
    slack.wait(lambda: len(slack.posts) >= 5)

    # Each is told once, as what it is.
    said = "\n".join(texts(slack))
    assert len(slack.posts) == 5 and not any(service in said for service in ("calm", "spike", "creep")), said
    (bench,) = about(slack, "old.bench lat +5")
    assert "g1 .. g2, deployed" in bench and f"{hour_of(SLOWER - 1, 17):%Y-%m-%d %H:%M}" in bench and ", 43 minutes before" in bench
    (shop,) = about(slack, "1 regression in shop since")
    assert 'work{service=\\"checkout\\"}: +' in shop and "c1 .. c2, deployed" in shop and f"{hour_of(DEPLOYED, 48):%Y-%m-%d %H:%M}" in shop
    (fleet,) = about(slack, '3 of 12 series of test \\"fleet\\" ended at ')
    assert f"ended at <!date^{hour_of(ENDS).timestamp():.0f}^" in fleet and f"|{hour_of(ENDS):%Y-%m-%d %H:%M:%S} +0000>: region=ap" in fleet
    (mars,) = about(slack, 'test \\"mars\\" has failed since')
    assert "the query returns no series: no data: the query returns nothing in the range" in mars

    (runner,) = about(slack, "runner-7: 10 of 10 series +8")
    assert f"{hour_of(RUNNER):%Y-%m-%d %H:%M}" in runner and "the same tests elsewhere unchanged: probably the environment" in runner

    # The deployment between two points.
    text, found = explain(hunter, path, "shop", "{service=checkout}")
    assert (found["verdict"], found["series"]) == ("told", 'work{service="checkout"}')
    assert [one["time"] for one in found["change"]["suspects"]["list"]] == [f"{hour_of(DEPLOYED, 48):%Y-%m-%dT%H:%M:%SZ}"]
    assert f"deployed {hour_of(DEPLOYED, 48):%Y-%m-%d %H:%M}" in text and re.search("announced +slack +#perf", text)
    assert found["arrival"] is None and "replayed:" not in text  # the state says what happened
    assert explain(hunter, path, "shop", "{service=checkout}", "c2")[1]["time"] == f"{hour_of(DEPLOYED + 1):%Y-%m-%dT%H:%M:%SZ}"
    asked = api(agent, "/api/v1/why?test=shop&metric=%7Bservice%3Dcheckout%7D")
    assert {key: asked[key] for key in ("verdict", "change", "arrival")} == {key: found[key] for key in ("verdict", "change", "arrival")}

    # The region that vanished: one of its series, and the list of those that the name could mean.
    text, found = explain(hunter, path, "fleet", '{instance="ap1"}')
    assert (found["verdict"], found["ended"], found["last_point"]) == ("ended", *[f"{hour_of(ENDS):%Y-%m-%dT%H:%M:%SZ}"] * 2)
    assert re.search("reported to have ended: +20", text) and re.search(f"last point of the test: +{hour_of(OVER - 1):%Y-%m-%d %H:%M}", text)
    done = hunter("why", "--config", path, "fleet", "{region=ap}")
    assert done.code == 2 and "has 3 series; name one" in done.err and 'instance="ap0"' in done.err

    # The runner, by one of its series, and another runner, which has not changed.
    text, found = explain(hunter, path, "cases", "{runner=runner-7, case=case3}")
    assert (found["verdict"], found["record"]["environment"]) == ("told", "runner-7") and found["record"]["environment_event"]
    assert "announced as part of: runner-7: 10 of 10 series +8" in text
    text, found = explain(hunter, path, "cases", "{runner=runner-8, case=case3}", f"{hour_of(RUNNER):%Y-%m-%d %H:%M}")
    assert found["verdict"] in ("detector", "nothing") and found["record"] is None

    # The renamed test, by its old name, and its change, which is the same one.
    text, found = explain(hunter, path, "old.bench", "lat")
    assert (found["test"], found["verdict"], found["record"]["test"]) == ("new.bench", "told", "new.bench")
    assert sum(event["event"] == "announced" for event in found["record"]["history"]) == 1
    assert re.search("last good: +g1\nfirst bad: +g2\nsuspects: +deployed ", text), text

    # The query that gives nothing.
    text, found = explain(hunter, path, "mars", "latency_ms", code=3)
    assert (found["verdict"], found["query"], found["last_point"]) == ("no_data", 'latency_ms{region="mars"}', None)
    assert re.search('reported: +test "mars" has failed since', text) and "last point:" not in text

    # What was rightly not told: a single point, and a step of half a deviation.
    text, found = explain(hunter, path, "shop", "{service=spike}", f"{hour_of(SPIKE + 1):%Y-%m-%d %H:%M}")
    assert (found["verdict"], found["dropped_by"], found["record"]) == ("detector", "outlier", None), text
    text, found = explain(hunter, path, "shop", "{service=creep}", f"{hour_of(CREEP):%Y-%m-%d %H:%M}")
    assert found["verdict"] in ("detector", "nothing") and found["record"] is None and found["power"]["up"]["smallest"] == 5, text  # 4% waits
    assert agent.end() == 0
