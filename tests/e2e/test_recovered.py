"""What was told and is over is told as over: once, where it was told, whatever happens in between."""
import collections
import csv
import datetime
import json
import math
import random
import re
import shutil
import signal
import urllib.request

import pytest
from agent import CANARY, START, bot, config, csv_test, run_once, write_csv
from fake_slack import FakeSlack
from hook import SCHEMA, Hook, valid
from state_address import KIND, open_state
from waiting import LONGEST, pause

BEGIN, GAP = 120, 45  # points before the first excursion, and from one to the next


def excursions(widths, sizes):
    """Series with one excursion or three of each width and size, in 3% noise: name -> (value at each point, begins, width)."""
    series = {}
    for width in widths:
        for size in sizes:
            for begins in [BEGIN], [BEGIN + GAP * i for i in range(3)]:
                name = f"w{width}_x{size}_{len(begins)}".replace(".", "_")
                rng = random.Random(name)
                series[name] = ([(size if any(b <= i < b + width for b in begins) else 1) * 100 * math.exp(rng.gauss(0, .03))
                                 for i in range(BEGIN + 3 * GAP + 30)], begins, width)
    return series


def write(path, series, points):
    new = path.with_suffix(".new")
    with open(new, "w", newline="") as out:
        rows = csv.writer(out)
        rows.writerow(["time", *series])
        for i in range(points):
            rows.writerow([(START + datetime.timedelta(hours=i)).isoformat(), *(f"{values[i]:.4f}" for values, _, _ in series.values())])
    shutil.move(new, path)


def many_test(path, series, kind="benchmark"):
    metrics = "".join(f"      {name}: {{direction: -1, unit: ms}}\n" for name in series)
    return f"\n  many:\n    type: csv\n    file: {path}\n    interval: 1h\n    detection: {{kind: {kind}}}\n    metrics:\n{metrics}"


def run_now(agent):
    request = urllib.request.Request(agent.address() + "/api/v1/run?test=many", method="POST")
    with urllib.request.urlopen(request, timeout=LONGEST) as answer:
        return json.loads(answer.read())


def quiet(agent):
    return agent.metric("hunter_delivery_queue_length") == 0 and '"news": "recovery"' not in agent.get("/api/v1/changes?limit=1000")[1]


def index_of(time):
    return (datetime.datetime.fromisoformat(time.replace("Z", "+00:00")) - START).total_seconds() / 3600


def begin_of(change, begins):
    """Where the excursion began that the change is; None of a false alarm."""
    return next((b for b in begins if abs(index_of(change["time"]) - b) <= 5), None)


def check(documents, series, changes):
    """Each excursion was told once at most, and then closed once, about where it ended. Nothing that was told is open."""
    told = [c for d in documents if d["kind"] == "changes" for c in d["changes"]]
    over = [c for d in documents if d["kind"] == "recovered" for c in d["changes"]]
    false = {c["id"] for c in told if begin_of(c, series[c["metric"]][1]) is None}
    assert len(false) <= len(told) / 50
    assert {c["state"] for c in changes if c["id"] in false} <= {"recovered", "withdrawn"}
    assert {c["state"] for c in changes if c["announced"] and c["id"] not in false} == {"recovered"}
    for name, (_, begins, width) in series.items():
        mine = [c for c in told if c["metric"] == name and begin_of(c, begins) is not None]
        begin = {c["id"]: begin_of(c, begins) for c in mine}
        ends = [c for c in over + mine if c["id"] in begin and c["recovered"]]
        assert len({begin_of(c, begins) for c in mine}) == len(mine), (name, mine)
        assert sorted(c["id"] for c in ends) == sorted(c["id"] for c in mine), (name, mine, ends)
        assert all(c["verdict"] == "regression" for c in mine), mine
        for c in ends:
            assert abs(index_of(c["recovered"]) - begin[c["id"]] - width) <= 5 and 90 < c["recovered_level"] < 110, (name, c)
    return len(told) - len(false)


@pytest.mark.parametrize(("kind", "least"), [("benchmark", 120), ("service", 70)])  # a service's second one waits: the like has passed
def test_excursions_of_any_width_and_size(agents, tmp_path, hook, kind, least):
    """Point by point through a running agent. In the end nothing that was told is open."""
    series = excursions(range(1, 13), (1.1, 1.5, 3, 10))
    file = tmp_path / "many.csv"
    write(file, series, BEGIN - 1)
    agent = agents(config(tmp_path, many_test(file, series, kind), f'webhook: {{url: "{hook.url}"}}'))
    agent.pass_by(0)
    for points in range(BEGIN, len(next(iter(series.values()))[0]) + 1):
        write(file, series, points)
        run_now(agent)
    agent.wait(lambda: quiet(agent))
    changes = json.loads(agent.get("/api/v1/changes?limit=1000")[1])["changes"]
    recovered = json.loads(agent.get("/api/v1/changes?limit=1000&state=recovered")[1])["changes"]
    closed = agent.metric("hunter_changes_recovered_total")
    assert agent.end() == 0
    documents = [json.loads(body) for _, body, _ in hook.taken]
    for document in documents:
        valid(SCHEMA, document)
        if document["kind"] == "recovered":
            assert document["continues"] in {d["key"] for d in documents}
    assert check(documents, series, changes) > least  # of 192
    assert len(recovered) >= closed >= least and all(c["recovered"] for c in recovered)


def test_closed_once_whatever_dies(agents, hunter, tmp_path):
    """kill -9 at random moments: what was told is closed, in its thread, once; by a webhook once more a kill at most."""
    series = excursions((5, 6, 8), (2, 5))
    file, rng, kills = tmp_path / "many.csv", random.Random(5), 0
    slack, hook = FakeSlack(CANARY), Hook()
    slack.slow, hook.slow = (0.02, 0.1), 0.05
    with slack:
        path = config(tmp_path, many_test(file, series), f'{bot(slack)}\nwebhook: {{url: "{hook.url}"}}')
        for points in range(BEGIN - 2, len(next(iter(series.values()))[0]) + 1, 2):
            write(file, series, points)
            if rng.random() < (0.3 if KIND == "file" else 0.1):  # in a database the next run waits 15 s
                agent = agents(path)
                pause(rng.uniform(0, 0.25), "the moment of the kill")
                agent.end(signal.SIGKILL)
                kills += 1
            else:
                assert run_once(hunter, path).code == 0
        agent = agents(path)
        agent.pass_by(0)
        agent.wait(lambda: agent.metric("hunter_runs_total") > 0 and quiet(agent))
        changes = json.loads(agent.get("/api/v1/changes?limit=1000")[1])["changes"]
        assert agent.end() == 0
        documents = {json.loads(body)["key"]: json.loads(body) for _, body, _ in hook.taken}
        assert kills > (10 if KIND == "file" else 2) and len(hook.taken) - len(documents) <= kills
        assert check(documents.values(), series, changes) > 12
        over = [p for p in slack.posts if p["metadata"]["event_type"] == "hunter_c_recovered"]
        keys = [p["metadata"]["event_payload"]["key"] for p in slack.posts]
        assert len(keys) == len(set(keys)) and slack.violations == []
        assert over and all(p.get("thread_ts") for p in over)
    hook.server.shutdown()
    hook.server.server_close()


STEP_AND_BACK = [(30, 1.2), (65, 1 / 1.2)]


def test_a_step_that_is_undone(hunter, tmp_path):
    """One answer, which says how long it was; the way back is no message of its own."""
    with FakeSlack(CANARY) as slack:
        path = config(tmp_path, csv_test(tmp_path / "read.csv"), f"{bot(slack)}\nstdout: {{print: plain}}")
        write_csv(tmp_path / "read.csv", STEP_AND_BACK, points=60)
        assert hunter("run", "--once", "--config", path).code == 0
        for points in 68, 72, 90, 110:
            write_csv(tmp_path / "read.csv", STEP_AND_BACK, points=points)
            done = hunter("run", "--once", "--config", path)
            if points == 72:
                assert re.fullmatch(r"recovered\n\n2024-03-03 17:00:00 \+0000\n  db.read\n"
                                    r"    p99: back to (99|100)\.\d+ ms after 1 d 11 h  \(\+20%  .* --> .*\)\n\n", done.out), done.out
            else:
                assert done.out == "", done.out
        assert len(slack.posts) == 2
        told, over = slack.posts
        assert over["thread_ts"] == slack.stamps[0] and "back to" in over["text"]
        line = over["blocks"][0]["text"]["text"]
        assert re.fullmatch(r":large_green_circle: \*db\.read\* p99: back to (99|100)\.\d+ ms after 1 d 11 h \(was \+20%  .* → .*\)",
                            line), line
        assert slack.violations == []


def test_an_improvement_that_is_undone(hunter, tmp_path):
    """It is a regression as any other, and the improvement is not open."""
    path = config(tmp_path, csv_test(tmp_path / "read.csv"))
    write_csv(tmp_path / "read.csv", [(30, 0.8), (65, 1.25)], points=60)
    assert "improvement" in hunter("run", "--once", "--config", path).out
    write_csv(tmp_path / "read.csv", [(30, 0.8), (65, 1.25)], points=110)
    assert "1 regression" in hunter("run", "--once", "--config", path).out
    states = [c["state"] for c in json.loads(hunter("changes", "--config", path, "--output", "json").out)["changes"]]
    assert states == ["confirmed", "confirmed"]


def test_what_is_new_and_over_is_told_with_its_end(hunter, tmp_path):
    path = config(tmp_path, csv_test(tmp_path / "read.csv"))
    write_csv(tmp_path / "read.csv", [(80, 1.2), (115, 1 / 1.2)], points=160)  # from Monday on, not on the first weekend
    done = hunter("run", "--once", "--config", path)
    assert re.search(r"p99: \+20% \[.*\]  .* --> .* ms, back to (99|100)\.\d+ ms after 1 d 11 h  regression", done.out), done.out
    assert hunter("run", "--once", "--config", path).out == ""
    state = json.loads(hunter("changes", "--config", path, "--output", "json").out)["changes"][-1]
    assert state["state"] == "recovered" and state["recovered"] == "2024-03-05T19:00:00Z"


def test_an_end_that_another_program_missed(hunter, tmp_path):
    """The points that show the end were there when a program before recorded them, and it saw no end: this one tells of it."""
    path = config(tmp_path, csv_test(tmp_path / "read.csv"))
    write_csv(tmp_path / "read.csv", STEP_AND_BACK, points=60)
    assert "+20%" in hunter("run", "--once", "--config", path).out
    write_csv(tmp_path / "read.csv", STEP_AND_BACK, points=110)
    with open_state(tmp_path) as state:
        end = int((START + datetime.timedelta(hours=109)).timestamp() * 1000)
        assert state.execute("UPDATE series SET last_point = ?", (end,)).rowcount == 1
    done = hunter("run", "--once", "--config", path)
    assert done.code == 0 and done.out.startswith("recovered\n") and "after 1 d 11 h" in done.out, done.out
    assert hunter("run", "--once", "--config", path).out == ""
    changes = json.loads(hunter("changes", "--config", path, "--output", "json").out)["changes"]
    assert collections.Counter((c["state"], c["news"]) for c in changes)[("recovered", "queued")] == 1
