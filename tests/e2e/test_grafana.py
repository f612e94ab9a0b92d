"""Annotations in Grafana: by the agent, by `analyze --update-grafana`, and removed again; each change once, whatever happens."""
import json
import os
import re
import signal

import pytest
from agent import START, config, csv_test, write_csv
from fake_grafana import Grafana


@pytest.fixture
def grafana():
    grafana = Grafana()
    yield grafana
    grafana.stop()
    assert grafana.violations == []


def section(grafana, **options):
    return f"grafana: {json.dumps({'url': grafana.url + '/', 'bearer_token': grafana.SECRET} | options)}"


def hours(number):
    return int(START.timestamp() + 3600 * number) * 1000


def all_of(grafana):
    return sorted(grafana.annotations.values(), key=lambda a: a["time"])


def writes(grafana):
    return [r for r in grafana.requests if r[0] != "GET"]


def two_steps(tmp_path, extra=""):
    write_csv(tmp_path / "a.csv", [(30, 1.2), (45, 0.7)])
    return csv_test(tmp_path / "a.csv", extra=extra)


def test_analyze_writes_what_differs(hunter, tmp_path, grafana):
    """Then again nothing; a change that is not found any more is removed, one of another test and a person's are not."""
    tests = two_steps(tmp_path, '    tags: [daily]\n    annotate: ["%{TEST_NAME}", "of %{METRIC_NAME}", "%{GRAPHITE_PATH}"]')
    path = config(tmp_path, tests, section(grafana, bearer_token=None, user=grafana.USER, password=grafana.PASSWORD).replace('"bearer_token": null, ', ""))
    others = [{"time": hours(30), "tags": tags, "text": "x"} for tags in (["hunter", "change-point", "test:other", "metric:p99"], ["deployment"])]
    for number, other in enumerate(others):
        grafana.write(900 + number, other)
    result = hunter("analyze", "db.read", "--config", path, "--update-grafana")
    assert result.code == 0 and "created=2" in result.err, result.err
    assert grafana.PASSWORD not in result.err + result.out
    mine = [a for a in all_of(grafana) if a["id"] < 900]
    assert [(a["time"], a["timeEnd"]) for a in mine] == [(hours(30), hours(30)), (hours(45), hours(45))]
    assert mine[0]["tags"] and set(mine[0]["tags"]) == {
        "hunter", "change-point", "test:db.read", "metric:p99", "daily", "db.read", "of p99"}
    assert "regression" in mine[0]["text"] and "c0029 .. c0030" in mine[0]["text"] and "+20%" in mine[0]["text"]
    grafana.requests.clear()
    result = hunter("analyze", "db.read", "--config", path, "--update-grafana")
    assert result.code == 0 and writes(grafana) == []
    assert [r[0] for r in grafana.requests] == ["GET"]
    write_csv(tmp_path / "a.csv", [(30, 1.3)])
    result = hunter("analyze", "db.read", "--config", path, "--update-grafana")
    assert result.code == 0 and "created=0 changed=1 removed=1" in result.err, result.err
    assert [a["time"] for a in all_of(grafana) if a["id"] < 900] == [hours(30)]
    assert {900, 901} < set(grafana.annotations)


def test_what_lies_outside_of_the_range_stays(hunter, tmp_path, grafana):
    path = config(tmp_path, two_steps(tmp_path), section(grafana))
    assert hunter("analyze", "db.read", "--config", path, "--update-grafana").code == 0
    since = hunter("analyze", "db.read", "--config", path, "--update-grafana", "--since", "2024-03-02 10:00")
    assert since.code == 0 and len(grafana.annotations) == 2, since.err


def test_hunters_own_annotations_are_taken_over(hunter, tmp_path, grafana):
    """One at the time of a change is changed, not added to; with another tag they are Otava's."""
    grafana.write(7, {"time": hours(30), "tags": ["otava", "change-point", "test:db.read", "metric:p99"], "text": "<a href='x'>x</a>"})
    path = config(tmp_path, two_steps(tmp_path), section(grafana, tag="otava"))
    assert "created=1 changed=1" in hunter("analyze", "db.read", "--config", path, "--update-grafana").err
    assert len(grafana.annotations) == 2 and "otava" in grafana.annotations[7]["tags"] and "+20%" in grafana.annotations[7]["text"]


def test_variables_of_graphite(hunter, tmp_path, grafana):
    """The path's parts are tags of their own; more tags than Grafana takes are left out."""
    grafana_part = section(grafana)
    write_csv(tmp_path / "a.csv", [(30, 1.2)])
    path = config(tmp_path, csv_test(tmp_path / "a.csv", extra=f"    tags: {json.dumps([f'tag-{i:03d}-' + 'x' * 40 for i in range(30)])}"), grafana_part)
    assert hunter("analyze", "db.read", "--config", path, "--update-grafana").code == 0
    tags = all_of(grafana)[0]["tags"]
    assert "tag-000-" + "x" * 40 in tags and 6 < len(tags) < 30


def test_removal(hunter, tmp_path, grafana):
    path = config(tmp_path, two_steps(tmp_path) + csv_test(tmp_path / "a.csv", "other"), section(grafana))
    grafana.write(900, {"time": hours(30), "tags": ["deployment"], "text": "x"})
    assert hunter("analyze", "--config", path, "--update-grafana").code == 0 and len(grafana.annotations) == 5
    result = hunter("remove-annotations", "--config", path, "db.read", stdin="n\n")
    assert result.code == 0 and f"Remove 2 annotations from {grafana.url}/? [y/N]" in result.out and len(grafana.annotations) == 5
    assert hunter("remove-annotations", "--config", path, "db.read").code == 0 and len(grafana.annotations) == 5
    result = hunter("remove-annotations", "--config", path, "db.read", stdin="y\n")
    assert result.code == 0 and "removed=2" in result.err and len(grafana.annotations) == 3
    result = hunter("remove-annotations", "--config", path, "--force")
    assert result.code == 0 and "removed=2" in result.err and list(grafana.annotations) == [900]
    result = hunter("remove-annotations", "--config", path)
    assert result.code == 0 and "no annotations found" in result.err and result.out == ""


@pytest.mark.parametrize("part, code, words", [
    ("", 2, "the configuration has no section grafana"),
    ("grafana: {url: ${GRAFANA_ADDRESS}, user: ${GRAFANA_USER}, password: x}", 2, "grafana: ${GRAFANA_ADDRESS} is not set"),
    ("grafana: {user: x, password: y}", 2, '"url" is missing'),
    ("wrong token", 2, "HTTP status 401: Unauthorized"),
    ("viewer", 2, "HTTP status 403: You'll need additional permissions"),
    ("nobody", 3, "cannot reach"),
    ("page", 3, "not an answer of Grafana"),
    ("refused", 3, "HTTP status 400: bad request data"),
])
def test_what_cannot_be_annotated(hunter, tmp_path, grafana, part, code, words):
    url = {"nobody": "http://127.0.0.1:9/"}.get(part, grafana.url)
    token = "wr-ong0123456789" if part == "wrong token" else grafana.SECRET
    grafana.viewer, grafana.refuses = part == "viewer", "p99" if part == "refused" else None
    if part == "page":
        grafana.answers = [(200, {"Content-Type": "text/html"}, "<html>sign in</html>")] * 5
    path = config(tmp_path, two_steps(tmp_path), part if part.startswith("grafana") or not part else section(grafana, url=url, bearer_token=token))
    result = hunter("analyze", "db.read", "--config", path, "--update-grafana")
    assert result.code == code and words in result.err, result.err
    assert token not in result.err and grafana.annotations == {}


def test_a_hiccup(hunter, tmp_path, grafana):
    """The answer to the first annotation is lost: it is looked for, and not written twice."""
    path = config(tmp_path, two_steps(tmp_path), section(grafana))
    grafana.answers = [(429, {"Retry-After": "1"}, ""), "pass", "close"]
    result = hunter("analyze", "db.read", "--config", path, "--update-grafana")
    assert result.code in (0, 3) and hunter("analyze", "db.read", "--config", path, "--update-grafana").code == 0
    assert len(grafana.annotations) == 2


# The agent.


def test_the_section_of_hunters_files_is_for_analyze_only(agents, tmp_path, grafana):
    agent = agents(config(tmp_path, two_steps(tmp_path), section(grafana)))
    agent.wait(lambda: any("p99" in line for line in agent.out))
    agent.pass_by()
    assert grafana.requests == []
    agent.end()


def test_the_agent_annotates(agents, hunter, tmp_path, grafana):
    """Once, with Hunter's tags and those to find them again; triage is shown; `analyze` leaves them alone."""
    tests = two_steps(tmp_path, "    tags: [daily]")
    path = config(tmp_path, tests, section(grafana, annotate=True))
    agent = agents(path)
    grafana.wait(lambda: len(grafana.annotations) == 2)
    agent.pass_by()
    first, second = all_of(grafana)
    assert (first["time"], second["time"]) == (hours(30), hours(45)) and len(grafana.annotations) == 2
    assert {"hunter", "change-point", "test:db.read", "metric:p99", "daily"} < set(first["tags"])
    changes = json.loads(agent.get("/api/v1/changes?limit=10")[1])["changes"]
    assert {t for a in (first, second) for t in a["tags"] if t.startswith("change:")} == {f"change:{c['id']}" for c in changes}
    number = next(c["id"] for c in changes if c["commit_after"] == "c0030")
    result = hunter("triage", number, "expected", "--note", "bigger <b>cache</b>", "--agent", agent.address())
    assert result.code == 0, result.err
    grafana.wait(lambda: "bigger" in grafana.annotations[first["id"]]["text"])
    text = grafana.annotations[first["id"]]["text"]
    assert "expected by" in text and "&lt;b&gt;cache" in text and len(grafana.annotations) == 2
    grafana.requests.clear()
    assert hunter("analyze", "db.read", "--config", path, "--update-grafana").code == 0
    assert writes(grafana) == [] and len(grafana.annotations) == 2
    assert agent.end() == 0 and grafana.SECRET not in "".join(agent.log + agent.out)


def test_what_becomes_of_changes(agents, tmp_path, grafana):
    """One that is not found any more has no annotation, until it is found again; one that is over says so."""
    for name in ("a", "b"):
        write_csv(tmp_path / f"{name}.csv", [(30, 1.2)])
    tests = csv_test(tmp_path / "a.csv", "db.a") + csv_test(tmp_path / "b.csv", "db.b")
    agent = agents(config(tmp_path, tests, section(grafana, annotate=True)))
    agent.wait(lambda: len(grafana.annotations) == 2)
    agent.wait(lambda: "".join(agent.log).count("msg=sent") == len({t for a in all_of(grafana) for t in a["tags"] if "message:" in t}))
    write_csv(tmp_path / "a.csv", [])
    agent.wait(lambda: len(grafana.annotations) == 1)
    left, = all_of(grafana)
    assert "test:db.b" in left["tags"] and "back to" not in left["text"]
    write_csv(tmp_path / "a.csv", [(30, 1.2)])
    agent.wait(lambda: len(grafana.annotations) == 2)
    write_csv(tmp_path / "b.csv", [(30, 1.2), (60, 1 / 1.2)], points=90)
    agent.wait(lambda: "back to" in grafana.annotations[left["id"]]["text"])
    assert agent.end() == 0


@pytest.mark.parametrize("at", ["close", None], ids=["answer lost", "no answer"])
def test_doubt_is_resolved_by_looking(agents, tmp_path, grafana, at):
    grafana.answers = ["pass", at]
    agent = agents(config(tmp_path, two_steps(tmp_path), section(grafana, annotate=True, **({} if at else {"timeout": "3s"}))))
    agent.wait_log("delivery failed, will retry")
    agent.wait(lambda: len(re.findall("msg=sent.*receiver=grafana", "".join(agent.log))) == 2)
    assert len(grafana.annotations) == 2


def test_killed_while_annotating(agents, tmp_path, grafana):
    """Again and again, at a request; in the end each change has one annotation. And so when they are withdrawn: none is left."""
    path = config(tmp_path, two_steps(tmp_path), section(grafana, annotate=True))
    for steps in ([(25, 1.2), (45, 1.3)], []):
        write_csv(tmp_path / "a.csv", steps)
        for _ in range(100 if os.environ.get("HUNTER_TEST_FULL") else 4):
            seen = len(grafana.requests)
            agent = agents(path)
            agent.wait(lambda: len(grafana.requests) > seen or agent.metric("hunter_runs_total") > 2)  # there may be nothing left to annotate
            agent.end(signal.SIGKILL)
        agent = agents(path)
        agent.wait(lambda: len(grafana.annotations) == len(steps))
        agent.pass_by(5)
        assert len(grafana.annotations) == len(steps)
        assert agent.end() == 0


def test_one_that_is_refused_keeps_back_no_other(agents, tmp_path, grafana):
    grafana.refuses = "metric:bad"
    with open(tmp_path / "a.csv", "w") as out:
        out.write("time,good,bad\n")
        for i in range(60):
            out.write(f"{int(START.timestamp()) + 3600 * i},{100 + i % 3 + 50 * (i >= 30)},{100 + i % 4 + 50 * (i >= 30)}\n")
    tests = f"\n  t:\n    type: csv\n    file: {tmp_path}/a.csv\n    metrics: [good, bad]\n"
    agent = agents(config(tmp_path, tests, section(grafana, annotate=True)))
    agent.wait_log("annotations were refused: HTTP status 400: bad request data")
    agent.wait_log("msg=sent")
    assert ["metric:good" in a["tags"] for a in all_of(grafana)] == [True]
