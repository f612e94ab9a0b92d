"""GitHub, GitLab and Jira: a change is one issue, whatever is lost on the way and whenever the agent is killed; it is kept true,
closed when all is over and opened again."""
import json
import os
import random
import re
import signal

import pytest
from agent import config, csv_test, write_csv
from fake_trackers import SHA, GitHub, GitLab, Jira
from state_address import drop_state

FULL = bool(os.environ.get("HUNTER_TEST_FULL"))
HOSTILE = "p99 @all #12 !3 [~ann] {color:red} [x](https://evil.example) /close `b`"


def data_center():
    return Jira(cloud=False)


KINDS = {"github": GitHub, "gitlab": GitLab, "jira": Jira, "jira-dc": data_center}


@pytest.fixture(params=KINDS)
def tracker(request):
    tracker = KINDS[request.param]()
    tracker.kind = request.param
    yield tracker
    tracker.stop()
    assert tracker.violations == []


def section(tracker, **more):
    options = {"url": tracker.url}
    if tracker.kind in ("github", "gitlab"):
        options |= {"token": tracker.SECRET, "repository" if tracker.kind == "github" else "project": "acme/shop"}
    elif tracker.kind == "jira":
        options |= {"username": "bot@acme.example", "password": tracker.SECRET, "project": "PERF"}
    else:
        options |= {"token": tracker.SECRET, "project": "PERF"}
    return f"{tracker.kind.partition('-')[0]}: {json.dumps(options | more)}"


def text_of(item):
    return item.get("body") or item.get("description")


def only(tracker):
    assert len(tracker.issues) == 1, tracker.issues
    return next(iter(tracker.issues.values()))


def over(path, points=80):
    """The change at 30 is over at 50."""
    write_csv(path, [(30, 1.2), (50, 1 / 1.2)], points=points)


def start(agents, tmp_path, tracker, extra="", **more):
    write_csv(tmp_path / "a.csv", [(30, 1.2)])
    return agents(config(tmp_path, csv_test(tmp_path / "a.csv", extra=extra), section(tracker, **more)))


def test_a_change_is_an_issue(agents, tmp_path, tracker):
    agent = start(agents, tmp_path, tracker, extra="    owner: team-storage\n    dashboard: https://grafana.example/d/db", labels=["perf"])
    agent.wait_log("msg=sent")
    agent.pass_by()
    issue = only(tracker)
    assert "1 regression in db.read: p99" in (issue.get("title") or issue["summary"])
    text = text_of(issue).replace("\\", "")
    assert re.search(r"\+20", text) and "team-storage" in text and "https://grafana.example/d/db" in text and "c0029" in text
    assert [x if isinstance(x, str) else x["name"] for x in issue["labels"]] == ["perf"]
    agent.end()
    assert tracker.SECRET not in "".join(agent.log + agent.out)


def test_names_are_no_markup(agents, tmp_path, tracker):
    write_csv(tmp_path / "a.csv", [(30, 1.2)], name=HOSTILE)
    metrics = csv_test(tmp_path / "a.csv").replace("{p99:", f"{{{json.dumps(HOSTILE)}:")
    agents(config(tmp_path, metrics, section(tracker))).wait_log("msg=sent")
    assert "evil.example" in text_of(only(tracker))


def test_assignees_that_are_refused(agents, tmp_path, tracker):
    if tracker.kind == "gitlab":
        pytest.skip("GitLab ignores them")
    if tracker.kind == "github":
        agent = start(agents, tmp_path, tracker, assignees=["nobody"])
    else:
        tracker.refused_fields = {"assignee"}
        agent = start(agents, tmp_path, tracker, assignee="nobody")
    agent.wait_log("without labels and assignees")
    agent.wait_log("msg=sent")
    assert not only(tracker).get("assignees") and not only(tracker).get("assignee")


@pytest.mark.parametrize("lost", ["close", "hang"])
def test_a_lost_answer(agents, tmp_path, tracker, lost):
    """The issue is there, its answer is not: it is found, not made again. Jira Cloud's search needs a minute."""
    tracker.answers = ["close"] if lost == "close" else [None]
    agent = start(agents, tmp_path, tracker, **({"timeout": "3s"} if lost == "hang" else {}))
    line = agent.wait_log("delivery failed, will retry")
    if tracker.kind == "jira":
        assert "wait_ms=60000" in line
    else:
        agent.wait_log("msg=sent")
        assert any(m == "GET" for m, _, _ in tracker.requests)
    assert len(tracker.issues) <= 1 and tracker.made.count("issue") == len(tracker.issues)
    assert tracker.kind == "jira" or len(tracker.issues) == 1


def test_limits(agents, tmp_path, tracker):
    """GitHub's secondary limit is a 403."""
    if tracker.kind == "github":
        tracker.secondary = 2
        tracker.answers = ["pass", "pass", (403, {"x-ratelimit-remaining": "0", "x-ratelimit-reset": "1"}, {"message": "API rate limit exceeded"})]
    else:
        tracker.limited = 2
    agent = start(agents, tmp_path, tracker)
    agent.wait_log("msg=sent")
    only(tracker)


def test_over_and_open_again(agents, tmp_path, tracker):
    """Closed with a comment when it has recovered; what people wrote below stays; triage shows."""
    agent = start(agents, tmp_path, tracker, close=True)
    agent.wait_log("msg=sent")
    issue = only(tracker)
    key = "body" if "body" in issue else "description"
    issue[key] += "\nAnn: on it."
    over(tmp_path / "a.csv")
    agent.wait(lambda: not tracker.open_issues() and "back to 100" in issue[key])  # Jira: one after the other
    assert "Ann: on it." in issue[key]
    assert len(issue["list"]) == 1 and "All over: 1 recovered." in issue["list"][0]["body"].replace("\\", "")
    agent.end()


def test_closed_by_triage_and_opened_again(agents, tmp_path, tracker, hunter):
    agent = start(agents, tmp_path, tracker, close=True)
    agent.wait_log("msg=sent")
    path = tmp_path / "hunter.yaml"
    assert hunter("triage", "1", "expected", "--note", "known @all", "--agent", agent.address(), "--config", path).code == 0
    issue = only(tracker)
    agent.wait(lambda: not tracker.open_issues() and "known" in text_of(issue))
    assert len(issue["list"]) == 1
    assert hunter("triage", "1", "open", "--agent", agent.address(), "--config", path).code == 0
    agent.wait(tracker.open_issues)
    agent.wait(lambda: len(issue["list"]) == 2)
    assert "Open again: 1 open." in issue["list"][1]["body"].replace("\\", "")


def test_more_of_it_is_a_comment(agents, tmp_path, tracker):
    """A later series of the same moment belongs to the issue; it is closed when both are over."""
    write_csv(tmp_path / "a.csv", [(30, 1.2)])
    write_csv(tmp_path / "b.csv", [])
    tests = csv_test(tmp_path / "a.csv") + csv_test(tmp_path / "b.csv", "db.write")
    agent = agents(config(tmp_path, tests, section(tracker, close=True)))
    agent.wait_log("msg=sent")
    write_csv(tmp_path / "b.csv", [(30, 1.3)])
    agent.wait(lambda: only(tracker)["list"])
    assert "db.write" in only(tracker)["list"][0]["body"].replace("\\", "")
    over(tmp_path / "a.csv")
    agent.wait(lambda: len(only(tracker)["list"]) == 2)
    assert tracker.open_issues()
    write_csv(tmp_path / "b.csv", [(30, 1.3), (50, 1 / 1.3)], points=80)
    agent.wait(lambda: not tracker.open_issues())


@pytest.mark.parametrize("kind", ["github", "gitlab"])
def test_on_the_commit(agents, tmp_path, kind):
    tracker = KINDS[kind]()
    tracker.kind = kind
    write_csv(tmp_path / "a.csv", [(30, 1.2)])
    text = (tmp_path / "a.csv").read_text()
    (tmp_path / "a.csv").write_text(text.replace("c0030", SHA[:12]))
    agent = agents(config(tmp_path, csv_test(tmp_path / "a.csv"), section(tracker, on="commit")))
    agent.wait_log("msg=sent")
    assert tracker.issues == {} and len(tracker.commits[SHA]) == 1
    over(tmp_path / "a.csv")
    text = (tmp_path / "a.csv").read_text()
    (tmp_path / "a.csv").write_text(text.replace("c0030", SHA[:12]))
    agent.wait(lambda: "back to 100" in json.dumps(tracker.commits[SHA]))
    assert len(tracker.commits[SHA]) == 1
    tracker.stop()
    assert tracker.violations == []


def test_an_unknown_commit_is_an_issue(agents, tmp_path):
    tracker = GitHub()
    tracker.kind = "github"
    start(agents, tmp_path, tracker, on="commit").wait_log("msg=sent")
    only(tracker)
    tracker.stop()


def test_a_deleted_issue_is_made_anew(agents, tmp_path, tracker, hunter):
    agent = start(agents, tmp_path, tracker)
    agent.wait_log("msg=sent")
    only(tracker)["deleted"] = True
    assert hunter("triage", "1", "acknowledged", "--agent", agent.address(), "--config", tmp_path / "hunter.yaml").code == 0
    agent.wait(lambda: len(tracker.issues) == 2)


MISCONFIGURED = [(401, {"message": "Bad credentials"}), (404, {"message": "Not Found"}), (403, {"message": "Resource not accessible by personal access token"})]


@pytest.mark.parametrize("status, answer", MISCONFIGURED)
def test_what_needs_another_configuration(agents, tmp_path, tracker, status, answer):
    tracker.answers = [(status, {}, answer)] * 50
    agent = start(agents, tmp_path, tracker)
    assert f"HTTP status {status}" in agent.wait_log("level=error|error msg")
    agent.pass_by()
    assert tracker.issues == {} and len(tracker.requests) == 1


@pytest.mark.parametrize("kind", ["github", "gitlab", "jira-dc"])
def test_killed_while_firing_and_resolving(agents, tmp_path, kind):
    """kill -9 at random moments: in the end there is one issue, closed, with one comment for each turn."""
    rng = random.Random(kind)
    tracker = KINDS[kind]()
    tracker.kind = kind
    path = config(tmp_path, csv_test(tmp_path / "a.csv"), section(tracker, close=True))
    for _ in range(10 if FULL else 2):
        tracker.issues.clear()
        tracker.made.clear()
        drop_state(tmp_path)
        write_csv(tmp_path / "a.csv", [(30, 1.2)])
        for act in None, over:
            if act:
                act(tmp_path / "a.csv")
            for _ in range(5 if FULL else 3):
                agent = agents(path)
                agent.wait_log("msg=started")
                with tracker.changed:
                    before = len(tracker.requests)
                    tracker.changed.wait_for(lambda: len(tracker.requests) > before, rng.uniform(0, 1))
                agent.process.send_signal(signal.SIGKILL)
                agent.process.wait()
            agent = agents(path)
            agent.wait(lambda: tracker.issues)
            agent.end(signal.SIGKILL)
        agent = agents(path)
        agent.wait(lambda: tracker.issues and not tracker.open_issues())
        agent.end()
        assert tracker.made.count("issue") == 1 and len(only(tracker)["list"]) == 1
    tracker.stop()
    assert tracker.violations == []
