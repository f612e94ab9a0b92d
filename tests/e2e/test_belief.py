"""From change points to news: candidates, what they become, and what is said when news are taken back."""
import datetime
import json
import random
import re

import pytest
from agent import bot, config, csv_test, write_csv

EIGHT = "    detection: {confirm: 8 points}"
STEP = [(60, 1.2)]
MENDED = [(60, 0.998)]  # as much as the noise is higher there, so that nothing is left of the step


def known(hunter, path, *arguments):
    done = hunter("changes", "--config", path, "--output", "json", *arguments)
    assert done.code == 0, done.err
    return [(c["state"], c["news"], c["runs"]) for c in json.loads(done.out)["changes"]]


def test_a_candidate_is_shown_and_told_when_it_is_believed(hunter, tmp_path):
    path = config(tmp_path, csv_test(tmp_path / "a.csv", extra=EIGHT))
    write_csv(tmp_path / "a.csv", STEP, points=64)
    assert "+20.2%" in hunter("regressions", "--config", path).out
    for _ in range(2):  # nothing new: no run of it counts
        done = hunter("run", "--once", "--config", path)
        assert (done.code, done.out) == (0, "")
        assert known(hunter, path) == [("candidate", "held", 1)]
    write_csv(tmp_path / "a.csv", STEP, points=66)
    assert hunter("run", "--once", "--config", path).out == ""
    assert known(hunter, path, "--state", "candidate") == [("candidate", "held", 2)]
    write_csv(tmp_path / "a.csv", STEP, points=68)
    done = hunter("run", "--once", "--config", path)
    assert done.out.count("  regression\n") == 1 and "+20%" in done.out
    assert known(hunter, path) == [("confirmed", "queued", 3)]
    assert hunter("run", "--once", "--config", path).out == ""


def test_a_candidate_goes_without_a_word(hunter, tmp_path):
    path = config(tmp_path, csv_test(tmp_path / "a.csv", extra=EIGHT))
    write_csv(tmp_path / "a.csv", STEP, points=64)
    hunter("run", "--once", "--config", path)
    write_csv(tmp_path / "a.csv", [], points=80)
    assert hunter("run", "--once", "--config", path).out == ""
    assert known(hunter, path) == [("withdrawn", "held", 1)]
    write_csv(tmp_path / "a.csv", STEP, points=80)
    assert "+20%" in hunter("run", "--once", "--config", path).out


def test_the_running_agent_waits_for_points(hunter, agents, tmp_path):
    write_csv(tmp_path / "a.csv", STEP, points=64)
    agent = agents(config(tmp_path, csv_test(tmp_path / "a.csv", extra=EIGHT)))
    agent.wait_metric("hunter_changes_found_total", 1)
    agent.pass_by()
    status, text = agent.get("/api/v1/changes?state=candidate")
    assert status == 200 and [(c["news"], c["runs"]) for c in json.loads(text)["changes"]] == [("held", 1)]
    write_csv(tmp_path / "a.csv", STEP, points=67)
    agent.pass_by()
    assert agent.metric("hunter_deliveries_total") == 0
    write_csv(tmp_path / "a.csv", STEP, points=68)
    agent.wait_metric("hunter_deliveries_total", 1)
    agent.pass_by()
    assert agent.metric("hunter_deliveries_total") == 1
    assert agent.metric("hunter_changes_withdrawn_total") == 0
    assert agent.end() == 0
    assert "".join(agent.out).count("  regression\n") == 1


@pytest.mark.parametrize("restart", [False, True])
def test_what_is_taken_back_is_said_in_its_thread(agents, tmp_path, slack, restart):
    write_csv(tmp_path / "a.csv", STEP, points=80)
    path = config(tmp_path, csv_test(tmp_path / "a.csv"), bot(slack))
    agent = agents(path)
    slack.wait(lambda: len(slack.posts) >= 1)
    if restart:
        agent.wait_metric("hunter_deliveries_total", 1)
        assert agent.end() == 0
    write_csv(tmp_path / "a.csv", MENDED, points=80)
    if restart:
        agent = agents(path)
    slack.wait(lambda: len(slack.posts) >= 2)
    answer = slack.posts[1]
    assert answer["thread_ts"] == slack.stamps[0]
    assert re.search(r"no longer found: p99 \+20% of <!date\^1709467200\^[^|>]*\|2024-03-03 12:00:00 \+0000>", json.dumps(answer))
    agent.pass_by()
    assert len(slack.posts) == 2
    assert agent.end() == 0


def test_or_not_at_all(agents, tmp_path, slack):
    write_csv(tmp_path / "a.csv", STEP, points=80)
    agent = agents(config(tmp_path, csv_test(tmp_path / "a.csv"), bot(slack), agent="  announce_withdrawn: false"))
    slack.wait(lambda: len(slack.posts) >= 1)
    agent.wait_metric("hunter_deliveries_total", 1)
    write_csv(tmp_path / "a.csv", MENDED, points=80)
    agent.wait_metric("hunter_changes_withdrawn_total", 1)
    agent.pass_by()
    assert len(slack.posts) == 1
    assert agent.end() == 0


SERIES, STEP_AT, HOURS = 300, 120, 6
FIRST = datetime.datetime(2024, 1, 1, tzinfo=datetime.timezone.utc)


def write_many(path):
    """300 series of 200 points, 2% of noise; every thirtieth goes up by 5% at point 120."""
    chance = random.Random(5)
    with open(path, "w") as out:
        out.write("time," + ",".join(f"m{i}" for i in range(SERIES)) + "\n")
        for t in range(200):
            row = [(FIRST + datetime.timedelta(hours=HOURS * t)).isoformat()]
            for i in range(SERIES):
                value = 100 * (1 + 0.02 * chance.gauss(0, 1))
                row.append(f"{value * 1.05 if i % 30 == 0 and t >= STEP_AT else value:.4f}")
            out.write(",".join(row) + "\n")


def is_true(change):
    steps = (datetime.datetime.fromisoformat(change["time"].replace("Z", "+00:00")) - FIRST).total_seconds() / 3600 / HOURS
    return int(change["metric"][1:]) % 30 == 0 and abs(steps - STEP_AT) <= 5


def test_what_weeks_of_many_series_would_have_told(hunter, tmp_path):
    """docs/design/accuracy.md has these numbers."""
    write_many(tmp_path / "many.csv")
    expected = {"confirm: off": (16, 3), "confirm: auto": (13, 1), "confirm: auto, fdr: 0.05": (11, 0)}
    for rule, (most, withdrawn) in expected.items():
        path = tmp_path / "many.yaml"
        path.write_text(f"""
detection: {{{rule}}}
agent: {{state: {tmp_path}/no.db, max_age: never}}
tests:
  many: {{type: csv, file: {tmp_path}/many.csv, interval: {HOURS}h, metrics: [{", ".join(f"m{i}" for i in range(SERIES))}]}}
""")
        done = hunter("replay", "--config", path, "--from", "2024-01-08", "--to", "2024-02-20", "--output", "json")
        assert done.code == 0, done.err
        told = [c for c in json.loads(done.out)["changes"] if c["told"]]
        assert sum(map(is_true, told)) == SERIES // 30, rule
        assert len(told) <= most and sum(c["withdrawn"] is not None for c in told) <= withdrawn, rule


@pytest.mark.parametrize("series, share, said", [(50, 0.05, True), (51, 0.05, False), (3, 0.001, False)])
def test_a_share_that_rejects_nothing_is_reported(hunter, tmp_path, series, share, said):
    names = [f"m{i}" for i in range(series)]
    rows = "".join(f"{(FIRST + datetime.timedelta(days=t)).isoformat()}{',1' * series}\n" for t in range(20))
    (tmp_path / "few.csv").write_text(f"time,{','.join(names)}\n{rows}")
    (tmp_path / "few.yaml").write_text(f"""
detection: {{fdr: {share}}}
agent: {{state: {tmp_path}/state.db}}
tests:
  few: {{type: csv, file: {tmp_path}/few.csv, metrics: [{", ".join(names)}]}}
""")
    done = hunter("run", "--once", "--config", tmp_path / "few.yaml")
    assert done.code == 0, done.err
    assert (f"fdr {share} has no effect on {series} series: with a p_value of 0.001 it needs more than 50" in done.err) == said, done.err
