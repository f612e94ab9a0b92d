"""The page, in a real Chromium: against an agent with 1,000 tests on a real Prometheus, and one that several people use.

What is done in the browser is in the .mjs files beside this one (runner.mjs plays them); this file has the agents, and does
what happens outside of the browser meanwhile. Any error or warning in the browser's console, breach of the content security
policy, request to anywhere else and answer that is an error fails a scenario.
"""
import contextlib
import csv
import datetime
import json
import os
import pathlib
import urllib.error
import urllib.parse
import urllib.request

import pytest
import servers
from agent import CANARY, START, Agent, csv_test, level, noise, write_csv
from chromium import Chromium, missing
from test_access import OTHER, basic, write_web
from test_bisections import Program, bisecting, write_series
from waiting import LONGEST

pytestmark = pytest.mark.xdist_group("browser")
HERE = pathlib.Path(__file__).parent
HOUR, POINTS, STEP_AT = 3600, 100, 60
SERVICES, WORSE, BETTER = 1000, 30, 6
PAGES = ["/", "/change/ID", "/explore?test=svc.s0003.latency", "/tests", "/silences", "/status", "/clusters"]
# Names as somebody may choose them to be taken for something else, or by accident.
HOSTILE = ["<script>window.hit=1</script>", "<img src=x onerror=window.hit=1>", "\"'><svg onload=window.hit=1>", "abc\u202egpj.exe",
           "two\nlines", "x" * 10000, "javascript:window.hit=1", "{{7*7}}%s%0a"]


@pytest.fixture(scope="session")
def chromium(request, tmp_path_factory):
    build = pathlib.Path(request.config.getoption("--build")).resolve()
    if missing(build):
        pytest.skip(missing(build))
    pictures = pathlib.Path(os.environ.get("HUNTER_TEST_PICTURES") or tmp_path_factory.mktemp("pictures")).resolve()
    started = Chromium(build, pictures)
    yield started
    started.end()


@pytest.fixture(scope="session")
def play(chromium):
    def play(scenario, world, more=None, **answers):
        problems = chromium.play(scenario, world.url, more, answers)
        assert not problems, "\n".join(problems)

    return play


class World:
    """An agent and its address."""

    def __init__(self, program, path, port, user=None):
        self.program, self.path, self.url, self.user = program, path, f"http://127.0.0.1:{port}", user
        self.agent = None
        self.start()

    def start(self):
        self.agent = Agent(self.program, self.path)
        self.agent.wait_log("msg=started")

    def stop(self, *_):
        assert self.agent.end() == 0, "".join(self.agent.log)

    def get(self, path, **parameters):
        return self.ask(path + "?" + urllib.parse.urlencode(parameters))

    def post(self, path, **parameters):
        return self.ask(path, urllib.parse.urlencode(parameters).encode())

    def ask(self, path, body=None):
        headers = basic(self.user, "other") if self.user else {}
        try:
            with urllib.request.urlopen(urllib.request.Request(self.url + path, body, headers), timeout=LONGEST) as answer:
                return json.load(answer)
        except urllib.error.HTTPError as error:
            raise AssertionError(f"{path}: {error.code} {error.read().decode()}") from None

    def changes(self, **parameters):
        return self.get("/api/v1/changes", limit=1000, **parameters)["changes"]


@contextlib.contextmanager
def running(*arguments, **more):
    world = World(*arguments, **more)
    try:
        yield world
        world.stop()
    finally:
        world.agent.process.kill()


def service(i):
    """A factor: the first few get worse at once, some others better."""
    return 1.25 if i < WORSE else 0.8 if i < WORSE + BETTER else 1


def history():
    begin = int(START.timestamp())
    families = {"latency_seconds": [], "odd_seconds": []}
    for i in range(SERVICES):
        labels = {"service": f"s{i:04d}", "region": "eu" if i % 2 else "us"}
        families["latency_seconds"] += [(labels, f"{level(p + 7 * i, [], 0.2 * (service(i) if p >= STEP_AT else 1)):.6f}", begin + p * HOUR)
                                        for p in range(POINTS)]
    for i, name in enumerate(HOSTILE):
        families["odd_seconds"] += [({"who": name}, f"{level(p + 31 * i, [], 6.5 if p >= STEP_AT else 5):.6f}", begin + p * HOUR)
                                    for p in range(POINTS)]
    return servers.openmetrics(families)


def write_hostile(path):
    """A change at each point that has a hostile commit; the columns have such names, too."""
    with open(path, "w", newline="") as out:
        rows = csv.writer(out)
        rows.writerow(["time", "commit", *(name for name in HOSTILE if "\n" not in name)])
        for i in range(POINTS):
            commit = HOSTILE[(i // 12) % len(HOSTILE)] if i % 12 == 0 else f"c{i:04d}"
            rows.writerow([(START + datetime.timedelta(hours=i)).isoformat(), commit] +
                          [f"{level(i + 170 * c, [], 130 if i >= 12 * c + 12 else 100):.4f}" for c in range(len(HOSTILE) - 1)])


def write_frames(folder):
    """Ten files of which half get slower together, for a cluster."""
    for test in range(10):
        with open(folder / f"frame{test}.csv", "w", newline="") as out:
            rows = csv.writer(out)
            rows.writerow(["time", "commit", "draw", "load"])
            for i in range(POINTS):
                slow = 1.2 if test % 2 and i >= STEP_AT else 1
                rows.writerow([(START + datetime.timedelta(hours=i)).isoformat(), f"c{i:04d}",
                               *(f"{base * slow * (1 + 0.02 * noise(1 + i * (seed + 3) + 1000 * test)):.5f}" for seed, base in ((test, 16), (test + 20, 4)))])


def frames(folder):
    return "".join(f"  frame.{'gpu' if i % 2 else 'cpu'}.{i}: {{type: csv, file: {folder}/frame{i}.csv, attributes: [commit], "
                   "metrics: {draw: {direction: -1, unit: ms}, load: {direction: -1, unit: ms}}}\n" for i in range(10))


def hostile_test(folder):
    metrics = ", ".join(f"{json.dumps(name)}: {{direction: -1, unit: {json.dumps(name[:200])}}}" for name in HOSTILE if "\n" not in name and len(name) < 1000)
    metrics += f", ? {json.dumps('x' * 10000)} : {{direction: -1}}"
    return f"  {json.dumps('<b onclick=window.hit=1>' + HOSTILE[0])}: {{type: csv, file: {folder}/hostile.csv, attributes: [commit], metrics: {{{metrics}}}}}\n"


def whole_config(folder, prometheus, port):
    path = folder / "hunter.yaml"
    services = "".join(f"  svc.s{i:04d}.latency: {{inherit: service, query: 'latency_seconds{{service=\"s{i:04d}\"}}'}}\n" for i in range(SERVICES))
    path.write_text(f"""
prometheus: {{url: '{prometheus.url}', bearer_token: {CANARY}}}
agent: {{state: '{folder}/state.db', listen: '127.0.0.1:{port}', max_age: never, interval: 1h, group_wait: 0s}}
templates:
  service: {{type: prometheus, range: 3650d, metrics: {{latency: {{direction: -1, unit: s}}}}}}
tests:
{services}
  odd: {{type: prometheus, query: odd_seconds, range: 3650d, metrics: {{odd: {{direction: -1, unit: s}}}}}}
{hostile_test(folder)}
{frames(folder)}
test_groups:
  frames: {{type: cluster, tests: [{', '.join(f"frame.{'gpu' if i % 2 else 'cpu'}.{i}" for i in range(10))}]}}
""")
    return path


@pytest.fixture(scope="module")
def whole(play, program, tmp_path_factory):
    """1,000 tests on a Prometheus, a cluster, and hostile names wherever there can be some."""
    folder = tmp_path_factory.mktemp("whole")
    write_hostile(folder / "hostile.csv")
    write_frames(folder)
    with servers.prometheus(folder, history()) as prometheus, \
            running(program, whole_config(folder, prometheus, port := servers.free_port()), port) as world:
        world.post("/api/v1/run", test="*")
        # 1,000 first runs, beside the other tests of a slow machine; the cluster is found some time after its series.
        world.agent.wait_metric("hunter_runs_total", SERVICES + 12)
        changed = {f"svc.s{i:04d}.latency" for i in range(WORSE + BETTER)} | {"odd", "frames"}
        world.agent.wait(lambda: changed <= {c["test"] for c in world.changes()})
        yield world


USERS = f"basic_auth_users: {{ann: '{OTHER}', ben: '{OTHER}', vic: '{OTHER}'}}\nroles: {{ann: triager, ben: triager}}\n"
TEAM = [f"shop.{name}" for name in ("read", "write", "scan", "login", "search", "cart", "pay", "mail", "stock", "ship", "gift", "tax", "home", "news")]
LATER = ["live.arrival", "live.back"]


@pytest.fixture(scope="module")
def team(play, program, tmp_path_factory):
    """A few tests that changed with one commit, and two that have not yet; ann and ben triage, vic looks."""
    folder = tmp_path_factory.mktemp("team")
    write_web(folder, USERS)
    for i, name in enumerate(TEAM):
        write_csv(folder / f"{name}.csv", [(30, 1.2 + i / 50)])
    for name in LATER:
        write_csv(folder / f"{name}.csv", [])
    path = folder / "hunter.yaml"
    tests = "".join(csv_test(folder / f"{name}.csv", name) for name in TEAM + LATER)
    path.write_text(f"agent: {{state: '{folder}/state.db', listen: '127.0.0.1:{(port := servers.free_port())}', web_config: web.yaml, max_age: never, "
                    f"interval: 1s, group_wait: 0s}}\ntests:\n{tests}")
    with running(program, path, port, user="ann") as world:
        world.folder = folder
        world.agent.wait(lambda: len(world.changes()) == len(TEAM))
        yield world


def arrive(team, name):
    write_csv(team.folder / f"{name}.csv", [(30, 1.5)])


def opened(team):
    """Of the changes that nobody has said anything about, the ids."""
    return [c["id"] for c in team.changes(triage="open")]


def where(whole, path):
    """ID is that of a change."""
    return {"path": path.replace("ID", str(whole.changes(test="svc.s0003.latency")[0]["id"]))}


@pytest.mark.parametrize("path", PAGES)
def test_looks(play, whole, path):
    play("page.looks", whole, where(whole, path))


@pytest.mark.parametrize("scenario", ["pointer", "keys"])
@pytest.mark.parametrize("path", ["/explore?test=svc.s0003.latency", "/change/ID"])
def test_chart(play, whole, scenario, path):
    play(f"chart.{scenario}", whole, where(whole, path))


def test_search(play, whole):
    play("chart.search", whole, {"words": "s0042", "test": "svc.s0042.latency"})


def test_filter(play, whole):
    play("inbox.filter", whole)


def test_verdicts(play, whole):
    worse, better = ([c["id"] for c in whole.changes() if c["regression"] is worse and c["test"].startswith("svc.")][0] for worse in (True, False))
    play("change.verdicts", whole, {"worse": worse, "better": better})


def test_hostile_names(play, whole):
    odd = [c for c in whole.changes() if not c["test"].startswith(("svc.", "frame."))]
    whole.post(f"/api/v1/changes/{odd[0]['id']}/triage", state="acknowledged", owner=HOSTILE[1], note="\n".join(n for n in HOSTILE if "\u202e" not in n)[:4000],
               link="https://tracker.test/" + HOSTILE[0])
    whole.post("/api/v1/silences", **{"matchers": f"test={json.dumps(HOSTILE[0])}", "for": "2h", "reason": HOSTILE[0], "owner": HOSTILE[2]})
    tests = {c["test"] for c in odd}
    paths = ["/", "/tests", "/silences", "/status", "/clusters", *(f"/change/{c['id']}" for c in odd),
             *("/explore?" + urllib.parse.urlencode({"test": test}) for test in tests),
             *(f"{page}?" + urllib.parse.urlencode({"test": HOSTILE[0], "metric": HOSTILE[1], "matchers": HOSTILE[2], "q": HOSTILE[0]})
               for page in ("/", "/explore", "/tests", "/silences", "/clusters"))]
    play("hostile.pages", whole, {"paths": paths})


def test_tests(play, whole):
    play("states.tests", whole, {"test": "svc.s0042.latency", "query": 'latency_seconds{service="s0042"}', "secret": CANARY})


def test_clusters(play, whole):
    play("states.clusters", whole)


def test_the_order_of_keys(play, team):
    play("inbox.order", team)


def test_early_keys(play, team):
    play("inbox.early", team)


def test_regrouped(play, team):
    play("inbox.regrouped", team)


def test_late_answers(play, team):
    play("inbox.late", team)


def test_keys(play, team):
    play("inbox.keys", team)


def test_bulk(play, team):
    play("inbox.bulk", team, {"ids": opened(team)})


def test_bulk_that_somebody_touched(play, team):
    play("inbox.touched", team, {"ids": opened(team)})


def test_two_people(play, team):
    play("change.two", team, {"id": opened(team)[0]})


def test_keys_of_a_change(play, team):
    play("change.keys", team, {"id": opened(team)[0]})


def test_silence(play, team):
    play("change.silence", team, {"id": opened(team)[0]})


def test_silences(play, team):
    play("states.silences", team, {"matchers": 'test=~"shop.s.*"', "selected": "shop.scan"})


def test_focus(play, team):
    play("states.focus", team)


def test_press(play, team):
    play("states.press", team)


def test_bisection(play, program, tmp_path):
    """A bisection on the page of its change: running, cancelled, asked for again, and what it found."""
    write_web(tmp_path, USERS)
    source = Program(tmp_path / "app", count=30, slow=13)
    write_series(tmp_path / "read.csv", source)
    path, held = tmp_path / "hunter.yaml", tmp_path / "held"
    held.touch()
    test = bisecting(tmp_path, source.path, [f"run: 'while [ -e {held} ]; do sleep 0.1; done; ./bench.sh'"])
    path.write_text(f"agent: {{state: '{tmp_path}/state.db', listen: '127.0.0.1:{(port := servers.free_port())}', web_config: web.yaml, max_age: never, "
                    f"interval: 1s, group_wait: 0s}}\ntests:\n{test}")
    with running(program, path, port, user="ann") as world:
        world.agent.wait(lambda: world.get("/api/v1/bisections", state="running")["bisections"])
        play("change.bisection", world, {"id": world.changes()[0]["id"], "commit": source.ids[source.slow]}, go=lambda _: held.unlink())


def test_viewer(play, team):
    play("inbox.viewer", team)


def test_arrival(play, team):
    play("inbox.arrival", team, arrive=lambda name: arrive(team, name))


def test_lost_connection(play, team):
    def back(name):
        arrive(team, name)
        team.start()

    play("inbox.lost", team, stop=team.stop, **{"return": back})
