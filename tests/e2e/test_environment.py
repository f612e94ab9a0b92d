"""The environment, not the code: docs/configure/environment.md. Three runners measure the same twelve metrics; one gets slow."""
import csv
import datetime
import json
import random
import re
import signal

import pytest
import servers
from agent import START, bot
from hook import SCHEMA, valid
from state_address import open_state, state_of

HOUR = datetime.timedelta(hours=1)
RUNNERS, METRICS = (7, 8, 9), 12
SLOW = 60  # the point from which on runner-7 is slow
HEAD = "runner-7: 12 of 12 series +8"


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
    path.write_text(f"{top}\nagent: {{state: {state_of(folder)}, listen: '127.0.0.1:0', max_age: never, group_wait: 0s, interval: 1s,"
                    f" environment: runner{agent}}}\ntests:\n{tests}")
    return path


def rows(folder, query):
    with open_state(folder) as state:
        return state.execute(query).fetchall()


def messages(out):
    """The first lines of messages, each about an incident."""
    return [line.split(", incident i")[0] for line in out.splitlines() if re.search(r" since \d{4}-", line)]


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
        assert done.code == 1, done.out
        assert done.out.count("\n    m") >= METRICS or "········" in done.out
    why = hunter("why", "--config", path, "fio.runner-7", "m3", "2024-03-03 12:00")
    assert why.code == 0 and f"announced as part of: {head}\n" in why.out, why.out + why.err
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


def test_webhook(hunter, tmp_path, hook):
    write(tmp_path, lambda r, m, i: slow(r, m, i) if i < 75 else 1, points=75)
    path = config(tmp_path, f'webhook: {{url: "{hook.url}"}}')
    assert hunter("run", "--once", "--config", path).code == 0
    write(tmp_path, lambda r, m, i: slow(r, m, i) if i < 75 else 1, points=120)
    assert hunter("run", "--once", "--config", path).code == 0
    told, back = [json.loads(body) for _, body, _ in hook.taken]
    for document in (told, back):
        valid(SCHEMA, document)
        event = document["environment"]
        assert (event["label"], event["value"], event["changed"], event["series"], event["elsewhere"]) == ("runner", "runner-7", 12, 12, 24)
        assert {c["environment"] for c in document["changes"]} == {"runner-7"}
    assert told["kind"] == "changes" and told["summary"].startswith(HEAD[:-1])
    assert back["kind"] == "recovered" and back["continues"] == told["key"] and back["summary"].startswith("runner-7: 12 series back after ")


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
    agent.wait(lambda: rows(tmp_path, "SELECT hit, total, told FROM environments") == [(12, 12, 10)])
    assert len(slack.posts) == 2
    assert rows(tmp_path, "SELECT count(DISTINCT environment_event), count(*) FROM changes WHERE environment_event > 0") == [(1, 12)]


def test_what_quiet_runs_saw(agents, tmp_path, slack):
    """The others ran before, found nothing new and wrote nothing; what they saw counts nevertheless."""
    def seen():
        return rows(tmp_path, "SELECT test, ended, text FROM seen ORDER BY test")

    write(tmp_path, slow, points=SLOW)
    agent = agents(config(tmp_path, bot(slack)))
    agent.wait(lambda: len(seen()) == len(RUNNERS) and agent.metric("hunter_runs_total") > 9)
    before = seen()
    write(tmp_path, slow, points=SLOW + 15, runners=(8, 9))
    runs = agent.metric("hunter_runs_total")
    agent.wait(lambda: agent.metric("hunter_runs_total") > runs + 9)
    assert seen() == before
    write(tmp_path, slow, points=SLOW + 15, runners=(7,))
    agent.wait(lambda: slack.posts)
    assert slack.posts[0]["text"].startswith(HEAD), slack.posts
    assert all(now != then for now, then in zip(seen(), before))


def test_canary_then_rollout(agents, tmp_path, slack):
    write(tmp_path, slow, points=75)
    path = config(tmp_path, bot(slack))
    agent = agents(path)
    agent.wait(lambda: len(slack.posts) == 1)
    assert slack.posts[0]["text"].startswith(HEAD)
    write(tmp_path, lambda r, m, i: 1.08 if i >= (SLOW if r == 7 else 75) else 1, points=100)
    agent.wait(lambda: rows(tmp_path, "SELECT count(DISTINCT change) FROM events WHERE kind = 6") == [(36,)])
    agent.wait(lambda: any("a rollout rather than the environment" in post["text"] for post in slack.posts))
    (note,) = [post["text"] for post in slack.posts if "a rollout rather than the environment" in post["text"]]
    assert re.search(r"the same tests have changed on runner-[89], too", note)
    agent.wait(lambda: all(any(f"fio.runner-{r}" in post["text"] for post in slack.posts[1:] if post["text"] != note) for r in (8, 9)))
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


def shop(runner, test, i):
    """Runner-7 is slow for 40 hours, t3 gets slower everywhere an hour after it did; later runner-8 gets a release 12 hours early."""
    return ((1.2 if test == 3 and i >= SLOW + 1 else 1) * (1.08 if runner == 7 and SLOW <= i < 100 else 1)
            * (1.1 if i >= (140 if runner == 8 else 152) else 1))


@pytest.fixture(scope="module")
def prometheus(tmp_path_factory):
    start = int(START.timestamp())
    rows = [({"test": f"t{m}", "runner": f"runner-{r}"}, value(r, m, i, shop), start + i * 3600)
            for r in RUNNERS for m in range(METRICS) for i in range(190)]
    with servers.prometheus(tmp_path_factory.mktemp("prometheus"), servers.openmetrics({"bench_seconds": rows})) as running:
        yield running


def service(folder, server, query="bench_seconds"):
    path = folder / "hunter.yaml"
    path.write_text(f"prometheus: {{url: '{server.url}'}}\nagent: {{state: {state_of(folder)}, max_age: never}}\ntests:\n"
                    f"  bench: {{type: prometheus, query: '{query}', step: 1h, range: 3650d, interval: 1h, environment: runner,"
                    " detection: {kind: benchmark, season: none}, metrics: {bench: {direction: -1}}}\n")
    return path


def test_a_week_of_prometheus(hunter, tmp_path, prometheus):
    """As points come, with candidates and what is confirmed later: each thing once."""
    done = hunter("replay", "--config", service(tmp_path, prometheus), "--from", "2024-03-02", "--to", "2024-03-08T21:00Z")
    assert done.code == 0, done.err
    told = [line.split(", incident i")[0] for line in done.out.splitlines() if re.search(r" since \d{4}-| back after |a rollout", line)]
    assert re.match(r"runner-7: 1[12] of 12 series \+(7\.[89]|8\.\d)% since 2024-03-03 12:00.* unchanged: probably the environment$", told[0])
    assert re.match(r"[23] regressions in bench since 2024-03-03 13:00", told[1])
    rest = [line for line in told[2:] if "1 improvement in bench" not in line]  # t3 on runner-7, which is back at another level
    assert re.match(r"runner-7: (1[12]|11 of 12|all 12) series back after 1 d 1[567] h", rest[0])
    assert re.match(r"runner-8: 12 of 12 series \+(9|10|11).* since 2024-03-06 20:00.*probably the environment$", rest[1])
    assert rest[2].startswith("24 regressions in bench since 2024-03-07 08:00")
    assert rest[3].strip() == "the same tests have changed on runner-7, runner-9, too: a rollout rather than the environment"
    assert len(rest) == 4


def test_prometheus_run_after_run(hunter, tmp_path, prometheus):
    """A process for each run; what it knows of the one before is in its state."""
    def run(hours):
        until = int(START.timestamp()) + hours * 3600
        done = hunter("run", "--once", "--config", service(tmp_path, prometheus, f"bench_seconds and on() (vector(time()) < {until})"))
        assert done.code == 0, done.err
        return messages(done.out)

    assert run(SLOW) == []
    heads = [head for hours in (SLOW + 3, SLOW + 6, SLOW + 12, SLOW + 30) for head in run(hours)]
    assert heads[0].startswith("runner-7: 1") and sum("environment" in head for head in heads) == 1, heads
    assert all("in bench since 2024-03-03 13:00" in head for head in heads[1:]), heads


def test_one_that_shows_before_the_others(hunter, tmp_path):
    """By chance a series of a slow runner is believed two points before the rest: it waits for them."""
    def factor(r, m, i):
        return 1.08 if r == 7 and i >= SLOW - 2 * (m == 0) else 1

    path, told = config(tmp_path), []
    for points in range(SLOW, SLOW + 5):
        write(tmp_path, factor, points=points)
        told += messages(hunter("run", "--once", "--config", path).out)
    (head,) = told
    assert head.startswith("runner-7: 12 of 12 series +"), head


def test_one_that_stays_alone(hunter, tmp_path):
    """It is told as soon as the others have been seen for five points, or are not there any more."""
    path = config(tmp_path)
    for points, count in ((SLOW, 0), (SLOW + 3, 0), (SLOW + 4, 0), (SLOW + 5, 1), (SLOW + 6, 0)):
        write(tmp_path, lambda r, m, i: 1.08 if (r, m) == (7, 0) and i >= SLOW else 1, points=points)
        told = messages(hunter("run", "--once", "--config", path).out)
        assert len(told) == count and all(head.startswith("1 regression in fio.runner-7 since") for head in told), (points, told)
        assert hunter("store", "check", "--config", path).code == 0


def test_the_way_back_of_one(hunter, tmp_path):
    """One that is back a little worse than the others, as far as its first points tell, belongs to the end of what hit its environment."""
    write(tmp_path, lambda r, m, i: slow(r, m, i) if i < 84 else 1.01 if (r, m) == (7, 3) else 1, points=110)
    path = config(tmp_path, test="detection: {season: none},")
    path.write_text(path.read_text().replace("interval: 1s", "interval: 1h"))
    done = hunter("replay", "--config", path, "--from", "2024-03-03", "--to", "2024-03-05T14:00Z")
    assert done.code == 0, done.err
    told = [line for line in done.out.splitlines() if re.search(r" since \d{4}-| back after ", line)]
    assert told[0].startswith(HEAD) and all(re.match(r"runner-7: (all )?(\d+ of )?12 series back after ", line) for line in told[1:]), told


def test_some_that_stay(hunter, tmp_path):
    """Two of the twelve do not come back: the message says how many of how many have."""
    path = config(tmp_path, test="detection: {season: none},")
    write(tmp_path, slow)
    (head,) = messages(hunter("run", "--once", "--config", path).out)
    write(tmp_path, lambda r, m, i: slow(r, m, i) if i < 84 or m in (3, 5) else 1, points=130)
    done = hunter("run", "--once", "--config", path)
    assert done.code == 0, done.err
    back = re.findall(r"^runner-7: (\d+) of 12 series back after ", done.out, re.M)
    recovered = rows(tmp_path, "SELECT count(*) FROM changes WHERE recovered > 0")
    assert head.startswith(HEAD) and back == ["10"] and recovered == [(10,)], done.out


def test_one_that_was_told_before(hunter, tmp_path):
    """The message about the runner says so."""
    def factor(r, m, i):
        return 1.08 if r == 7 and i >= SLOW + 4 * (m > 0) else 1

    path, told = config(tmp_path), []
    for points in (SLOW + 5, SLOW + 12):
        write(tmp_path, factor, points=points)
        told += messages(hunter("run", "--once", "--config", path).out)
    first, event = told
    assert first.startswith("1 regression in fio.runner-7 since")
    assert re.match(r"runner-7: 12 of 12 series \+.*: probably the environment; 1 of them was reported already$", event), event


def test_the_last_ones_back(hunter, tmp_path):
    """Two come back hours after the others, and not at once: one message says it of both."""
    def factor(r, m, i):
        return slow(r, m, i) if i < {3: 92, 5: 98}.get(m, 84) else 1

    write(tmp_path, factor, points=120)
    path = config(tmp_path, test="detection: {season: none},")
    path.write_text(path.read_text().replace("interval: 1s", "interval: 1h"))
    done = hunter("replay", "--config", path, "--from", "2024-03-03", "--to", "2024-03-05T23:00Z")
    assert done.code == 0, done.err
    told = [line for line in done.out.splitlines() if re.search(r" since \d{4}-| back after ", line)]
    assert told[0].startswith(HEAD) and len(told) == 3, told
    assert re.match(r"runner-7: (9|10) of 12 series back after ", told[1]) and re.match(r"runner-7: all 12 series back after ", told[2]), told
