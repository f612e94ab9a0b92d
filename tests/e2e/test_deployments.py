"""Which deployment did it, with a real Prometheus and a real Graphite: docs/configure/deployments.md. tests/bench/deployments.py has many more."""
import datetime
import json
import math
import random
import re

import pytest
import servers
from agent import bot
from state_address import state_of

MINUTE, HOUR, DAY = 60, 3600, 86400
START = int(datetime.datetime(2024, 3, 1, tzinfo=datetime.timezone.utc).timestamp())
DEPLOYED = START + 60 * HOUR  # and so many minutes later
MINUTES = (3, 17, 33, 48, 55)
HOURS = 90
RELEASES = [f"v1.2.{i}" for i in range(8)] + ["v2.0.1", "v2.0.10"] + [f"v3.0.{i}" for i in range(6)]


def commit(minute, when):
    """c0 at first, c1 from the second day on, c2 from the deployment in question on, and c3 ten minutes after that."""
    at = DEPLOYED + minute * MINUTE
    return f"c{(when >= START + DAY) + (when >= at) + (when >= at + 10 * MINUTE)}"


def history():
    """A service for each minute that is 10% slower from its deployment on, ten deviations of an hour; one is so without any."""
    families = {"work_seconds": [], "shop_build_info": [], "deployed_time_seconds": [], "released_time_seconds": []}
    for minute in MINUTES + (None,):
        chance = random.Random(str(minute))
        labels = {"service": f"m{minute}"}
        for when in range(START, START + HOURS * HOUR, MINUTE):
            slow = when >= DEPLOYED + (minute or 30) * MINUTE
            families["work_seconds"].append((labels, 100 + 10 * slow + chance.gauss(0, math.sqrt(60)), when))
            build = commit(minute, when) if minute else f"c{int(when >= START + DAY)}"
            families["shop_build_info"].append((labels | {"revision": build}, 1, when))
        for name, when in [("c1", START + DAY)] + ([("c2", DEPLOYED + minute * MINUTE)] if minute else []):
            families["deployed_time_seconds"].append((labels | {"commit": name}, when, START + (HOURS - 1) * HOUR))
    for i, name in enumerate(RELEASES):
        families["released_time_seconds"].append(
            ({"service": "mNone", "commit": name}, START + DAY + i * HOUR, START + (HOURS - 1) * HOUR))
    return servers.openmetrics(families)


@pytest.fixture(scope="module")
def prometheus(tmp_path_factory):
    with servers.prometheus(tmp_path_factory.mktemp("prometheus"), history()) as running:
        yield running


def config(folder, server, tests, more=""):
    path = folder / "hunter.yaml"
    path.write_text(f"{server}\nagent: {{state: {state_of(folder)}, listen: '127.0.0.1:0', max_age: never, group_wait: 0s}}\n"
                    f"{more}\ntests:\n{tests}")
    return path


def changes(hunter, path, *tests):
    found = hunter("analyze", "--config", path, "--output", "json", "--since", str(START), "--until", str(START + HOURS * HOUR), *tests)
    assert found.code == 0, found.err
    return {c["labels"].get("service", test["name"]): c for test in json.loads(found.out)["tests"] for c in test["changes"]
            if abs(c["timestamp"] - DEPLOYED) <= 3 * HOUR}


@pytest.mark.parametrize("step", [HOUR, 10 * MINUTE])
def test_the_culprit_is_among_the_suspects(hunter, tmp_path, prometheus, step):
    """Wherever in the hour it was deployed, and though another one followed soon."""
    path = config(tmp_path, f"prometheus: {{url: '{prometheus.url}'}}", f"""
  shop: {{type: prometheus, query: "avg_over_time(work_seconds[1h])", step: {step}s, range: {HOURS}h, build_info: shop_build_info}}
""")
    found = changes(hunter, path)
    assert set(found) == {f"m{minute}" for minute in MINUTES + (None,)}
    for minute in MINUTES:
        suspects = found[f"m{minute}"]["suspects"]
        (culprit,) = [s for s in suspects["list"] if s["commit"] == "c2"]
        when = datetime.datetime.fromtimestamp(DEPLOYED + minute * MINUTE, datetime.timezone.utc)
        assert culprit["not_before"] < f"{when:%Y-%m-%dT%H:%M:%SZ}" <= culprit["time"]
        assert suspects["from"] == "c1" and suspects["count"] == len(suspects["list"]) <= 2, suspects
    suspects = found["mNone"]["suspects"]
    assert (suspects["from"], suspects["to"], suspects["count"], suspects["list"]) == (None, None, 0, [])
    assert suspects["last"]["commit"] == "c1" and suspects["last"]["age_seconds"] > DAY


def test_a_window_of_its_own(hunter, tmp_path, prometheus):
    """Nothing in a recording rule's name says how far back it looks."""
    query = 'type: prometheus, query: "avg_over_time(work_seconds{service=\\"m48\\"}[1h])", step: 1h, range: 90h, build_info: shop_build_info'
    path = config(tmp_path, f"prometheus: {{url: '{prometheus.url}'}}", f"""
  short: {{{query}, window: 0s}}
  long: {{{query}, window: 2d}}
""")
    (short,) = changes(hunter, path, "short").values()
    (long,) = changes(hunter, path, "long").values()
    assert short["suspects"]["since"] > long["suspects"]["since"] and short["suspects"]["until"] == long["suspects"]["until"]
    assert [s["commit"] for s in long["suspects"]["list"]] == ["c1", "c2", "c3"]


def test_annotations(hunter, tmp_path, prometheus):
    """The time of the deployment is what was written down, long after it happened."""
    path = config(tmp_path, f"prometheus: {{url: '{prometheus.url}'}}", f"""
  shop: {{type: prometheus, query: "avg_over_time(work_seconds[1h])", step: 1h, range: {HOURS}h, deployments: deployed_time_seconds}}
""")
    found = changes(hunter, path)
    for minute in MINUTES:
        (suspect,) = found[f"m{minute}"]["suspects"]["list"]
        assert suspect["commit"] == "c2" and suspect["time"] == suspect["not_before"] == f"2024-03-03T12:{minute:02d}:00Z"
    assert found["mNone"]["suspects"]["count"] == 0


def test_what_is_told(hunter, tmp_path, prometheus):
    path = config(tmp_path, f"prometheus: {{url: '{prometheus.url}'}}", f"""
  shop: {{type: prometheus, query: "avg_over_time(work_seconds{{service=~\\"m48|mNone\\"}}[1h])", step: 1h, range: 3650d,
    deployments: deployed_time_seconds, compare_url: "https://git.test/{{before}}...{{after}}", commit_url: "https://git.test/{{commit}}"}}
""")
    told = hunter("run", "--once", "--config", path)
    assert told.code == 0, told.err
    assert "c1 .. c2, deployed 2024-03-03 12:48" in told.out and "https://git.test/c1...c2\n" in told.out, told.out
    assert "no deployment in between; last one 1 day before (c1)" in told.out, told.out
    assert "c1 .. c1" not in told.out and "c2 .. c2" not in told.out
    listed = json.loads(hunter("changes", "--config", path, "--output", "json").out)["changes"]
    assert sorted(c["suspects"]["count"] for c in listed) == [0, 1]
    table = hunter("changes", "--config", path).out
    assert re.search(r"  c1 +c2 +1  ", table) and re.search(r"  0  confirmed", table), table


@pytest.fixture(scope="module")
def graphite(tmp_path_factory):
    with servers.graphite(tmp_path_factory.mktemp("graphite")) as running:
        yield running


def feed(server, name, points):
    """Sends them, and waits until the server can be asked for them."""
    server.feed({name: rows(points, 80)})
    assert server.wait(lambda: server.render(name, START, START + DAY).startswith(name))


def rows(points, change):
    chance = random.Random(7)
    return [(100 + 5 * (i >= change) + chance.gauss(0, 0.5), START + i * HOUR) for i in range(points)]


def test_an_event_within_the_last_good_point(hunter, tmp_path, graphite):
    """Deployed at 07:17; the change shows at 08:00, and the commit of its last good point is the guilty one."""
    feed(graphite, "within.lat", 100)
    for when, name in ((START + HOUR, "c1"), (START + 79 * HOUR + 17 * MINUTE, "c2"), (START + 90 * HOUR, "c3")):
        graphite.event(when, ["within"], data={"commit": name})
    test = 'type: graphite, target: within.lat, tags: [within], range: 3650d'
    path = config(tmp_path, f"graphite: {{url: '{graphite.url}'}}", f"""
  within: {{{test}}}
  run: {{{test}, events: per_run}}
""")
    (change,) = changes_of(hunter, path, "within")
    assert (change["commit_before"], change["attributes"]["commit"]) == ("c2", "c2")
    assert [change["suspects"][k] for k in ("from", "to", "count")] == ["c1", "c2", 1]
    assert change["suspects"]["list"][0]["time"] == "2024-03-04T07:17:00Z"
    (change,) = changes_of(hunter, path, "run")
    assert change["commit_before"] == "c2" and change["suspects"]["to"] == "c3"  # the next result that says what it is


def changes_of(hunter, path, test):
    found = hunter("analyze", "--config", path, "--output", "json", "--since", str(START), "--until", str(START + 200 * HOUR), test)
    return json.loads(found.out)["tests"][0]["changes"]


def correct(agent, slack):
    """What was said of the suspects when the message was sent, and what is, when it is corrected without any new point."""
    agent.wait(lambda: len(slack.posts) == 1)
    agent.pass_by(3)
    assert len(slack.posts) == 1
    yield json.dumps(slack.posts[0])
    agent.wait(lambda: len(slack.posts) == 2)
    agent.pass_by(3)
    assert len(slack.posts) == 2 and slack.posts[1]["thread_ts"], slack.posts
    yield json.dumps(slack.posts[1])
    agent.end()


def test_a_late_event_without_a_new_point(agents, tmp_path, graphite, slack):
    feed(graphite, "quiet.lat", 100)
    graphite.event(START + HOUR, ["quiet"], data={"commit": "c1"})
    agent = agents(config(tmp_path, f"graphite: {{url: '{graphite.url}'}}", """
  quiet: {type: graphite, target: quiet.lat, tags: [quiet], range: 3650d, interval: 1s}
""", bot(slack)))
    said = correct(agent, slack)
    assert "no deployment in between; last one 3 days before (c1)" in next(said)
    graphite.event(START + 79 * HOUR + 17 * MINUTE, ["quiet"], data={"commit": "c2"})
    assert "c1 .. c2, deployed <!date^1709536620^" in next(said)
    assert next(said, None) is None


def test_a_row_that_is_corrected(agents, tmp_path, slack):
    """The first row of the new level was written with the commit before it."""
    def write(commit):
        lines = [f"{when},{value},{'c1' if i < 80 else commit if i == 80 else 'c2' if i < 90 else 'c3'}\n"
                 for i, (value, when) in enumerate(rows(100, 80))]
        (tmp_path / "new.csv").write_text("time,lat,commit\n" + "".join(lines))
        (tmp_path / "new.csv").rename(tmp_path / "runs.csv")

    write("c1")
    agent = agents(config(tmp_path, "", f"""
  runs: {{type: csv, file: {tmp_path}/runs.csv, time_column: time, attributes: [commit], metrics: [lat], interval: 1s}}
""", bot(slack)))
    said = correct(agent, slack)
    first = next(said)
    write("c1x")
    corrected = next(said)
    assert "c1x" not in first and "c1 .. c1x" in corrected, (first, corrected)
    assert next(said, None) is None


def test_a_late_event(hunter, tmp_path, graphite, slack):
    """What was told is corrected in its thread, once."""
    feed(graphite, "late.lat", 100)
    graphite.event(START + HOUR, ["late"], data={"commit": "c1"})
    path = config(tmp_path, f"graphite: {{url: '{graphite.url}'}}", """
  late: {type: graphite, target: late.lat, tags: [late], range: 3650d}
""", bot(slack))
    assert hunter("run", "--once", "--config", path).code == 0
    assert "no deployment in between; last one 3 days before (c1)" in json.dumps(slack.posts[0])
    graphite.event(START + 79 * HOUR + 17 * MINUTE, ["late"], data={"commit": "c2"})
    for points in (101, 102):
        feed(graphite, "late.lat", points)
        assert hunter("run", "--once", "--config", path).code == 0
    assert len(slack.posts) == 2, slack.posts
    answer = slack.posts[1]
    assert answer["thread_ts"] and "corrected suspects: late.lat +" in json.dumps(answer), answer
    assert "c1 .. c2, deployed <!date^1709536620^" in json.dumps(answer)
    (change,) = json.loads(hunter("changes", "--config", path, "--output", "json").out)["changes"]
    assert [change["suspects"][k] for k in ("from", "to", "count")] == ["c1", "c2", 1]


def test_a_part_of_several_deployments(hunter, tmp_path, prometheus):
    """`why` names those that begin with what was asked for; a whole name is no part of another."""
    path = config(tmp_path, f"prometheus: {{url: '{prometheus.url}'}}", f"""
  shop: {{type: prometheus, query: "avg_over_time(work_seconds{{service=\\"mNone\\"}}[1h])", step: 1h, range: 3650d,
    deployments: released_time_seconds, metrics: {{work: {{}}}}}}
""")

    def asked(name):
        done = hunter("why", "--config", path, "shop", "work", name)
        assert done.code == 0 or done.out == "", done.out
        return done.code, done.err

    def ambiguous(name, *releases, more=""):
        names = ", ".join(f'"{one}"' for one in releases)
        return 2, f'hunter-c: test "shop": commit "{name}" is ambiguous: {names}{more}; give more digits\n'

    assert asked("v2.0") == ambiguous("v2.0", "v2.0.1", "v2.0.10")
    assert asked("v1.2") == ambiguous("v1.2", *RELEASES[:6], more=", ...")
    assert asked("v3.0") == ambiguous("v3.0", *(f"v3.0.{i}" for i in range(6)))
    assert asked("v2.0.1")[0] == asked("v1.2.7")[0] == 0
    code, err = asked("v1.")  # three characters are no abbreviation
    assert code == 2 and '"v1." is neither a commit' in err
