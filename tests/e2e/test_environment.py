"""The environment, not the code: docs/environment.md. Three runners measure the same twelve metrics; one gets slow."""
import csv
import datetime
import json
import random
import re
import signal
import sqlite3

import pytest
from fake_slack import FakeSlack
from test_run import CANARY, START, Agent, bot

HOUR = datetime.timedelta(hours=1)
RUNNERS, METRICS = (7, 8, 9), 12
SLOW = 60  # the point from which on runner-7 is slow
HEAD = "runner-7: 12 of 12 series +8"


@pytest.fixture
def slack():
    with FakeSlack(CANARY, ["#perf"]) as slack:
        yield slack
        assert slack.violations == []


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


def value(runner, metric, i, factor):
    chance = random.Random(f"{runner} {metric} {i}")
    return 100 * factor(runner, metric, i) * (1 + chance.gauss(0, 0.01))


def slow(runner, metric, i):
    return 1.08 if runner == 7 and i >= SLOW else 1


def write(folder, factor, points=80, runners=RUNNERS, metrics=METRICS):
    """A file for each runner, with a column for each metric."""
    for runner in runners:
        with open(folder / f"new-{runner}", "w", newline="") as out:
            rows = csv.writer(out)
            rows.writerow(["time", "runner"] + [f"m{m}" for m in range(metrics)])
            for i in range(points):
                rows.writerow([(START + i * HOUR).isoformat(), f"runner-{runner}"]
                              + [f"{value(runner, m, i, factor):.4f}" for m in range(metrics)])
        (folder / f"new-{runner}").rename(folder / f"r{runner}.csv")


def config(folder, top="", agent="", runners=RUNNERS, metrics=METRICS, test=""):
    listed = ", ".join(f"m{m}: {{direction: -1}}" for m in range(metrics))
    tests = "".join(f"  fio.runner-{r}: {{type: csv, file: {folder}/r{r}.csv, time_column: time, attributes: [runner], {test}"
                    f" metrics: {{{listed}}}}}\n" for r in runners)
    path = folder / "hunter.yaml"
    path.write_text(f"{top}\nagent: {{state: {folder}/state.db, listen: '127.0.0.1:0', max_age: never, group_wait: 0s, interval: 1s,"
                    f" environment: runner{agent}}}\ntests:\n{tests}")
    return path


def rows(folder, query):
    with sqlite3.connect(f"file:{folder}/state.db?mode=ro", uri=True) as state:
        return state.execute(query).fetchall()


def messages(out):
    """The first lines of messages."""
    return [line for line in out.splitlines() if re.search(r" since \d{4}-", line)]


def test_one_message(hunter, tmp_path):
    """It is told once, and all of it is recorded and fails a gate."""
    write(tmp_path, slow)
    path = config(tmp_path)
    told = hunter("run", "--once", "--config", path)
    assert told.code == 0, told.err
    (head,) = messages(told.out)
    assert re.fullmatch(re.escape(HEAD) + r"\.\d% since 2024-03-03 12:00:00 \+0000, the same tests elsewhere unchanged: "
                        "probably the environment", head)
    assert all(f"m{m}: +" in told.out for m in range(METRICS)) and told.out.count("fio.runner-7") == 1
    assert messages(hunter("run", "--once", "--config", path).out) == []
    changes = json.loads(hunter("changes", "--config", path, "--output", "json").out)["changes"]
    assert len(changes) == METRICS
    assert {c["environment"] for c in changes} == {"runner-7"} and {c["news"] for c in changes} == {"queued"}
    assert len({c["environment_event"] for c in changes}) == 1 and changes[0]["environment_event"]
    for command in (["regressions"], ["analyze", "--fail-on-regression"]):
        done = hunter(*command, "--config", path)
        assert done.code == 1 and done.out.count(head) == 1, done.out
        assert done.out.count("\n    m") >= METRICS or "········" in done.out
    why = hunter("why", "--config", path, "fio.runner-7", "m3", "2024-03-03 12:00")
    assert why.code == 0 and f"told as part of {head}\n" in why.out, why.out + why.err
    data = json.loads(hunter("why", "--config", path, "fio.runner-7", "m3", "2024-03-03 12:00", "--output", "json").out)
    assert data["environment"]["value"] == "runner-7" and data["record"]["environment"] == "runner-7"
    assert hunter("store", "check", "--config", path).code == 0


def test_a_regression_everywhere_at_the_same_time(hunter, tmp_path):
    write(tmp_path, lambda r, m, i: slow(r, m, i) * (1.15 if m == 3 and i >= SLOW + 1 else 1))
    told = hunter("run", "--once", "--config", config(tmp_path))
    first, second = messages(told.out)
    assert first.startswith("runner-7: 11 of 12 series +")
    assert second.startswith("3 regressions in ") and all(f"fio.runner-{r}" in second for r in RUNNERS)


@pytest.mark.parametrize("metrics, head", [(8, "runner-7: 8 of 8 series"), (7, "7 regressions in fio.runner-7 since")])
def test_eight_series(hunter, tmp_path, metrics, head):
    write(tmp_path, slow, metrics=metrics)
    (told,) = messages(hunter("run", "--once", "--config", config(tmp_path, metrics=metrics)).out)
    assert told.startswith(head)


def test_without_anything_elsewhere(hunter, tmp_path):
    """Then it may as well be a release."""
    write(tmp_path, slow, runners=(7,))
    (told,) = messages(hunter("run", "--once", "--config", config(tmp_path, runners=(7,))).out)
    assert told.startswith("12 regressions in fio.runner-7 since")


def test_everywhere(hunter, tmp_path):
    write(tmp_path, lambda r, m, i: 1.08 if i >= SLOW else 1)
    (told,) = messages(hunter("run", "--once", "--config", config(tmp_path)).out)
    assert told.startswith("36 regressions in ") and all(f"fio.runner-{r}" in told for r in RUNNERS)


def test_not_asked_for(hunter, tmp_path):
    write(tmp_path, slow)
    (told,) = messages(hunter("run", "--once", "--config", config(tmp_path, test='environment: "",')).out)
    assert told.startswith("12 regressions in fio.runner-7 since")


def test_both_ways(hunter, tmp_path):
    """Latencies rise and throughputs fall."""
    write(tmp_path, lambda r, m, i: (1.08 if m < 6 else 0.92) if r == 7 and i >= SLOW else 1)
    path = config(tmp_path)
    text = path.read_text()
    for m in range(6, METRICS):
        text = text.replace(f"m{m}: {{direction: -1}}", f"m{m}: {{direction: 1}}")
    path.write_text(text)
    (told,) = messages(hunter("run", "--once", "--config", path).out)
    assert told.startswith("runner-7: 12 of 12 series worse since")


def test_slack(hunter, tmp_path, slack):
    write(tmp_path, slow)
    path = config(tmp_path, bot(slack))
    assert hunter("run", "--once", "--config", path).code == 0
    (post,) = slack.posts
    assert post["text"].startswith(HEAD) and "probably the environment" in post["text"].splitlines()[0]


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGKILL])
def test_more_of_it_after_a_restart(agents, tmp_path, slack, how):
    """Two series show it later: they are told with the others, without a message; another of its environment on its own."""
    write(tmp_path, lambda r, m, i: 1.08 if r == 7 and i >= SLOW and m < 10 else 1)
    path = config(tmp_path, bot(slack))
    agent = agents(path)
    agent.wait(lambda: len(slack.posts) == 1)
    assert slack.posts[0]["text"].startswith("runner-7: 10 of 12 series +")
    agent.wait(lambda: agent.metric("hunter_deliveries_total") == 1)
    agent.process.send_signal(how)
    agent.process.wait()
    write(tmp_path, lambda r, m, i: slow(r, m, i) * (1.2 if (r, m) == (8, 0) and i >= SLOW else 1), points=90)
    agent = agents(path)
    agent.wait(lambda: len(slack.posts) == 2)
    assert "regression in fio.runner-8" in slack.posts[1]["text"] and "thread_ts" not in slack.posts[1]
    agent.wait(lambda: rows(tmp_path, "SELECT count(*) FROM changes WHERE news = 2") == [(13,)])
    assert rows(tmp_path, "SELECT hit, total, told FROM environments") == [(12, 12, 10)]
    assert len(slack.posts) == 2
    assert rows(tmp_path, "SELECT count(DISTINCT environment_event), count(*) FROM changes WHERE environment_event > 0") == [(1, 12)]


def test_canary_then_rollout(agents, tmp_path, slack):
    write(tmp_path, slow, points=75)
    path = config(tmp_path, bot(slack))
    agent = agents(path)
    agent.wait(lambda: len(slack.posts) == 1)
    assert slack.posts[0]["text"].startswith(HEAD)
    write(tmp_path, lambda r, m, i: 1.08 if i >= (SLOW if r == 7 else 75) else 1, points=100)
    agent.wait(lambda: rows(tmp_path, "SELECT count(DISTINCT change) FROM history WHERE event = 6") == [(36,)])
    (note,) = [post["text"] for post in slack.posts if "a rollout rather than the environment runner-7" in post["text"]]
    assert re.search(r"the same tests have changed on runner-[89], too", note)
    others = "".join(post["text"] for post in slack.posts[1:] if post["text"] != note)
    assert "fio.runner-8" in others and "fio.runner-9" in others and "environment" not in others
    assert rows(tmp_path, "SELECT value, followed FROM environments") == [("runner-7", 1)]


def test_back_again(agents, tmp_path, slack):
    """One message for all, in the thread, and no change of its own."""
    write(tmp_path, slow, points=75)
    path = config(tmp_path, bot(slack))
    agent = agents(path)
    agent.wait(lambda: len(slack.posts) == 1)
    write(tmp_path, lambda r, m, i: slow(r, m, i) if i < 80 else 1, points=120)
    agent.wait(lambda: rows(tmp_path, "SELECT count(*) FROM changes WHERE recovered > 0 AND news = 2") == [(METRICS,)])
    agent.wait(lambda: len(slack.posts) == 2)
    assert re.match(r"runner-7: 12 series back after (20 h|19 h|21 h)$", slack.posts[1]["text"]), slack.posts[1]["text"]
    assert slack.posts[1]["thread_ts"]
