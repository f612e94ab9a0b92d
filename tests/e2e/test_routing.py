"""Receivers by name and routes: who is told of what, by `run`."""
import json

import pytest
from test_run import Agent, config, csv_test, write_csv
from test_tell import Hook


@pytest.fixture
def hook():
    hook = Hook()
    yield hook
    hook.server.shutdown()
    hook.server.server_close()


@pytest.fixture
def agents(program):
    running = []

    def start(*arguments):
        running.append(Agent(program, *arguments))
        return running[-1]

    yield start
    for agent in running:
        agent.process.kill()
        agent.process.wait()
        for reader in agent.readers:
            reader.join()


def receivers(hook, *names, **more):
    """Webhooks that say in a header who they are."""
    return "receivers:\n" + "".join(
        f'  {name}: {{webhook: {{url: "{hook.url}", headers: {{X-Receiver: {name}}}, {more.get(name, "")}}}}}\n' for name in names)


def told(hook):
    """What each receiver was told: (receiver, the tests of its message)."""
    found = []
    for headers, body, _ in hook.taken:
        document = json.loads(body)
        found.append((headers["X-Receiver"], [c["test"] for c in document.get("changes", [])]))
    return sorted(found)


def make_tests(tmp_path, **steps):
    """A test for each name, with steps at points."""
    text = ""
    for name, at in steps.items():
        write_csv(tmp_path / f"{name}.csv", at)
        text += csv_test(tmp_path / f"{name}.csv", name)
    return text


def test_receivers_of_one_kind_are_all_told(hunter, tmp_path, hook):
    tests = make_tests(tmp_path, a=[(30, 1.2)])
    path = config(tmp_path, tests, receivers(hook, "one", "two"))
    assert hunter("run", "--once", "--config", path).code == 0
    assert told(hook) == [("one", ["a"]), ("two", ["a"])]
    assert hunter("run", "--once", "--config", path).code == 0
    assert len(hook.taken) == 2, "nothing is told twice"


def test_a_section_and_a_receiver_of_its_kind_and_name_are_the_same(hunter, tmp_path, hook):
    """What a section has been told is not told again when it moves into `receivers`."""
    tests = make_tests(tmp_path, a=[(30, 1.2)])
    section = f'webhook: {{url: "{hook.url}", headers: {{X-Receiver: webhook}}}}'
    assert hunter("run", "--once", "--config", config(tmp_path, tests, section)).code == 0
    tests += csv_test(tmp_path / "b.csv", "b")
    write_csv(tmp_path / "b.csv", [(30, 1.3)])
    assert hunter("run", "--once", "--config", config(tmp_path, tests, receivers(hook, "webhook"))).code == 0
    assert told(hook) == [("webhook", ["a"]), ("webhook", ["b"])]


ROUTES = """
routes:
  receivers: [perf]
  routes:
    - match: 'test=~"db.*"'
      receivers: [db]
      routes: [{at_least: 30%, verdict: regression, receivers: [oncall, db]}]
    - {match: 'test="web"', receivers: [web], continue: true}
    - {match: 'metric="p99", test="web"', receivers: [archive]}
    - {match: 'test="nobody"', receivers: []}
"""


def test_routes(hunter, tmp_path, hook):
    tests = make_tests(tmp_path, dbsmall=[(30, 1.2)], dblarge=[(10, 1.5)], dbbetter=[(50, 0.5)], web=[(30, 1.2)], other=[(30, 1.2)],
                       nobody=[(30, 1.2)], own=[(30, 1.2)]).replace("own.csv", "own.csv\n    notify: [oncall]")
    path = config(tmp_path, tests, receivers(hook, "perf", "db", "oncall", "web", "archive") + ROUTES)
    result = hunter("run", "--once", "--config", path)
    assert result.code == 0
    assert told(hook) == [("archive", ["web"]), ("db", ["dbbetter"]), ("db", ["dblarge"]), ("db", ["dbsmall"]), ("oncall", ["dblarge"]),
                          ("oncall", ["own"]), ("perf", ["other"]), ("web", ["web"])]
    assert 'msg="change told to nobody"' in result.err and "test=nobody" in result.err
    again = hunter("run", "--once", "--config", path)
    assert len(hook.taken) == 8 and "told to nobody" not in again.err


def test_group_by(hunter, tmp_path, hook):
    """One message for each test, also of what comes later at the same time; without it, one for all."""
    tests = make_tests(tmp_path, a=[(30, 1.2)], b=[(30, 1.2)])
    routes = "routes: {receivers: [both], routes: [{receivers: [each], group_by: [test], continue: true}, {receivers: [both]}]}\n"
    path = config(tmp_path, tests, receivers(hook, "each", "both") + routes)
    assert hunter("run", "--once", "--config", path).code == 0
    assert told(hook) == [("both", ["a", "b"]), ("each", ["a"]), ("each", ["b"])]
    tests += csv_test(tmp_path / "c.csv", "c")
    write_csv(tmp_path / "c.csv", [(30, 1.2)])
    hook.taken.clear()
    assert hunter("run", "--once", "--config", config(tmp_path, tests, receivers(hook, "each", "both") + routes)).code == 0
    continues = {h["X-Receiver"]: json.loads(b)["continues"] is not None for h, b, _ in hook.taken}
    assert continues == {"each": False, "both": True}


def test_notices_follow_their_tests(hunter, agents, tmp_path, hook):
    """A failing test is told to those whom its name leads to."""
    tests = make_tests(tmp_path, a=[(30, 1.2)], b=[(30, 1.2)])
    routes = "routes:\n  - {match: 'test=\"a\"', receivers: [a]}\n  - {receivers: [rest]}\n"
    path = config(tmp_path, tests, receivers(hook, "a", "rest") + routes)
    agent = agents(path)
    agent.wait(lambda: len(hook.taken) >= 2)
    (tmp_path / "a.csv").unlink()
    agent.wait(lambda: len(hook.taken) >= 3)
    assert [(h["X-Receiver"], json.loads(b)["kind"]) for h, b, _ in hook.taken][2:] == [("a", "notice")]
