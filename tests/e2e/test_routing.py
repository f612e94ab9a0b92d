"""Receivers by name and routes: who is told of what, by `run`."""
import json
import pathlib
import re
import signal
import socket

import pytest
from agent import config, csv_test, write_csv


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
    assert 'msg="change matched no receiver"' in result.err and "test=nobody" in result.err
    # No message of it is in the outbox; what was told has no reason.
    assert f"\nverdict: not announced: the route at {path}:" in hunter("why", "--config", path, "nobody", "p99").out
    reasons = {c["test"]: c["reason"] for c in json.loads(hunter("changes", "--config", path, "--output", "json").out)["changes"]}
    assert {test for test, reason in reasons.items() if reason} == {"nobody"}, reasons
    again = hunter("run", "--once", "--config", path)
    assert len(hook.taken) == 8 and "matched no receiver" not in again.err


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


def test_a_receiver_that_has_not_chosen_changes_is_not_told(hunter, tmp_path, hook):
    path = config(tmp_path, make_tests(tmp_path, a=[(30, 1.2)]), receivers(hook, "one", "two", two="events: [digest, notice]"))
    for _ in range(2):
        result = hunter("run", "--once", "--config", path)
        assert result.code == 0 and told(hook) == [("one", ["a"])]
    only = config(tmp_path, make_tests(tmp_path, b=[(30, 1.2)]), receivers(hook, "two", two="events: [digest, notice]"))
    for _ in range(2):
        result = hunter("run", "--once", "--config", only)
        assert result.code == 0 and told(hook) == [("one", ["a"])]
    assert "matched no receiver" not in result.err, "said once"


def test_a_route_may_withhold_the_end(hunter, tmp_path, hook):
    """A route with `events` is for these alone; who was told is told the end, unless such a route says otherwise."""
    tests = make_tests(tmp_path, a=[(30, 1.2)])
    routes = "routes: [{receivers: [all], continue: true}, {receivers: [begins], events: [new]}]\n"
    path = config(tmp_path, tests, receivers(hook, "all", "begins", "former") + routes.replace("begins]", "begins, former]"))
    assert hunter("run", "--once", "--config", path).code == 0
    assert [name for name, _ in told(hook)] == ["all", "begins", "former"]
    hook.taken.clear()
    write_csv(tmp_path / "a.csv", [(30, 1.2), (60, 1 / 1.2)], points=120)
    assert hunter("run", "--once", "--config", config(tmp_path, tests, receivers(hook, "all", "begins", "former") + routes)).code == 0
    assert [(name, tests) for name, tests in told(hook)] == [("all", ["a"]), ("former", ["a"])]
    assert {json.loads(body)["kind"] for _, body, _ in hook.taken} == {"recovered"}


def test_a_route_for_updates_takes_nothing_new(hunter, tmp_path, hook):
    """Nor is a change lost that the other would get as an update: it is a message of its own."""
    tests = make_tests(tmp_path, a=[(30, 1.2)])
    text = receivers(hook, "log", "oncall") + "routes: [{events: [updated], receivers: [log]}, {receivers: [oncall]}]\n"
    assert hunter("run", "--once", "--config", config(tmp_path, tests, text)).code == 0
    assert told(hook) == [("oncall", ["a"])]
    tests += csv_test(tmp_path / "b.csv", "b")
    write_csv(tmp_path / "b.csv", [(30, 1.2)])
    assert hunter("run", "--once", "--config", config(tmp_path, tests, text)).code == 0
    assert told(hook) == [("oncall", ["a"]), ("oncall", ["b"])]
    assert json.loads(hook.taken[1][1])["continues"] is None


def test_routes_are_reloaded(agents, tmp_path, hook):
    """What is found after a reload goes by the new routes."""
    tests = make_tests(tmp_path, a=[(30, 1.2)])
    path = config(tmp_path, tests, receivers(hook, "one", "two") + "routes: {receivers: [one], routes: [{match: 'test=\"x\"', receivers: [two]}]}\n")
    agent = agents(path)
    agent.wait(lambda: len(hook.taken) == 1)
    path.write_text(path.read_text().replace('test=\"x\"', 'test=\"a\"'))
    agent.process.send_signal(signal.SIGHUP)
    agent.wait_log("reload")
    write_csv(tmp_path / "a.csv", [(30, 1.2), (60, 1.5)], points=100)
    agent.wait(lambda: len(hook.taken) == 2)
    assert [h["X-Receiver"] for h, _, _ in hook.taken] == ["one", "two"]


def test_limits(hunter, tmp_path):
    tests = make_tests(tmp_path, a=[])
    for text, words in (("receivers:\n" + "".join(f"  r{i}: {{stdout: }}\n" for i in range(1001)), "more than 1,000 receivers"),
                        ("routes:\n" + "  - {receivers: [stdout], at_least: 1}\n" * 10001, "routes: more than 10,000 routes")):
        result = hunter("validate", "--config", config(tmp_path, tests, text))
        assert result.code == 2 and words in result.out


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


CONF = pathlib.Path(__file__).parents[2] / "conf"


def route(hunter, path, *arguments):
    result = hunter("route", *arguments, "--config", path, "--output", "json")
    assert result.code == 0, result.err
    return json.loads(result.out)


# Of the shipped examples: what is asked, and who is told.
ASKED = {
    "small, production": ("small-team", ["checkout.latency", "p99", "--size", "25%"], ["oncall", "slack"]),
    "small, a little": ("small-team", ["checkout.latency", "p99", "--size", "15%"], ["slack"]),
    "small, better": ("small-team", ["checkout.latency", "p99", "--size", "-25%"], ["slack"]),
    "small, a benchmark": ("small-team", ["storage.read", "throughput", "--size", "-50%"], ["slack"]),
    "company, a label": ("company", ["payments.latency", 'p99{team="payments",region="eu"}', "--size", "12%"], ["payments", "payments-oncall"]),
    "company, no label": ("company", ["payments.latency", "p99", "--size", "12%"], ["perf"]),
    "company, its test": ("company", ["search.latency", "p99", "--size", "12%"], ["search"]),
    "company, large": ("company", ["search.latency", "p99"], ["search", "operations"]),
    "company, notify": ("company", ["search.index", "bytes"], ["search"]),
    "company, laboratory": ("company", ["search.latency", 'p99{host="lab-3"}'], []),
    "company, a build": ("company", ["storage.read", "throughput", "--size", "-7%"], ["bisect", "perf"]),
    "company, a good build": ("company", ["storage.read", "throughput", "--size", "7%"], ["release-notes", "perf"]),
}


@pytest.mark.parametrize("case", ASKED)
def test_who_the_examples_tell(hunter, case):
    name, arguments, expected = ASKED[case]
    answer = route(hunter, CONF / f"{name}.yaml", *arguments)
    assert [r["receiver"] for r in answer["told"]] == expected and answer["not_told"] == []


def test_route_says_why(hunter, tmp_path, hook):
    path = config(tmp_path, make_tests(tmp_path, db1=[], own=[]).replace("own.csv", "own.csv\n    notify: [oncall]"),
                  receivers(hook, "perf", "db", "oncall", "web", "archive", oncall="events: [new]") + ROUTES)
    lines = path.read_text().splitlines()
    line = {key: f"{path}:{1 + next(i for i, text in enumerate(lines) if key in text)}" for key in ("db.*", "at_least", "nobody", "own:")}
    result = hunter("route", "db1", "p99", "--size", "12%", "--config", path)
    assert result.code == 0
    assert f'{line["db.*"]}:   taken: test=~"db.*"\n' in result.out
    assert f'{line["at_least"]}:     not taken: smaller than at_least: 30%\n' in result.out
    assert result.out.endswith("-> db (webhook)\n")
    assert "-> oncall (webhook)\n" in hunter("route", "db1", "p99", "--size", "30%", "--config", path).out
    result = hunter("route", "db1", "p99", "--event", "recovered", "--config", path)
    assert "-> oncall (webhook) is not notified: its events are new\n" in result.out
    result = hunter("route", "own", "p99", "--config", path)
    assert f'{line["own:"]}: the test sets notify: routes do not apply\n' in result.out and result.out.endswith("-> oncall (webhook)\n")


@pytest.mark.parametrize("arguments, words", [
    (["db2", "p99"], 'there is no test "db2" (did you mean "db1"?)'),
    (["db1"], "route needs a test and a metric"),
    (["db1", "p99", "--size", "much"], "--size: expected a size such as 12% or -12%"),
    (["db1", "p99", "--event", "old"], '"old" is not one of new, updated'),
])
def test_route_is_asked_wrongly(hunter, tmp_path, hook, arguments, words):
    result = hunter("route", *arguments, "--config", config(tmp_path, make_tests(tmp_path, db1=[]), receivers(hook, "perf")))
    assert result.code == 2 and words in result.err


def test_receivers_are_tried(hunter, tmp_path, hook):
    """Each gets one message that is marked as a test; the exit code says whether all were reached."""
    path = config(tmp_path, make_tests(tmp_path, a=[]), receivers(hook, "one", "two", two="events: [digest]"))
    result = hunter("validate", "--receivers", "--config", path)
    assert result.code == 0
    assert [line.split() for line in result.out.splitlines()[-2:]] == [["one", "webhook", "yes"], ["two", "webhook", "yes"]]
    documents = {h["X-Receiver"]: json.loads(b) for h, b, _ in hook.taken}
    assert sorted(documents) == ["one", "two"] and len(hook.taken) == 2
    assert all(d["kind"] == "test" and f"receiver {name}" in json.dumps(d) for name, d in documents.items())
    assert not (tmp_path / "state.db").exists()


def test_no_receiver_stands_in_for_one_without_its_token(hunter, tmp_path):
    path = config(tmp_path, make_tests(tmp_path, a=[]), 'slack: {bot_token: "${NO_SUCH_TOKEN}", channels: ["#perf"]}\n')
    result = hunter("validate", "--receivers", "--config", path)
    assert result.code == 2 and "NO_SUCH_TOKEN" in result.out and "stdout" not in result.out, result.out


def test_receivers_that_are_not_reached(hunter, tmp_path, hook):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        text = receivers(hook, "one") + f'  gone: {{webhook: {{url: "http://127.0.0.1:{taken.getsockname()[1]}/secret-path"}}}}\n'
        path = config(tmp_path, make_tests(tmp_path, a=[]), text)
        result = hunter("validate", "--receivers", "--output", "json", "--config", path)
    tried = {r["receiver"]: r for r in json.loads(result.out)["receivers"]}
    assert result.code == 3
    assert tried["one"]["sent"] and not tried["gone"]["sent"]
    assert "Connection refused" in tried["gone"]["problem"] and "secret-path" not in result.out + result.err
    hook.statuses = [401]
    result = hunter("validate", "--receivers", "--config", config(tmp_path, make_tests(tmp_path, a=[]), receivers(hook, "one")))
    assert result.code in (2, 3) and re.search("\none +webhook +", result.out) and "401" in result.out
