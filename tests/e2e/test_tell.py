"""Telling: Slack in every mood, threads, links, the webhook, and `analyze --notify-slack`.

Never early, never lost, at most two posts, and what goes wrong in one channel holds up no other.
"""
import csv
import datetime
import hashlib
import hmac
import io
import json
import os
import pathlib
import re
import subprocess
import sys
import time

import pytest
import servers
from agent import CANARY, START, bot, config, csv_test, noise, port_of, write_csv
from fake_slack import FakeSlack
from hook import SCHEMA, valid
from state_address import open_state, state_of

HOUR = datetime.timedelta(hours=1)


def slack_date(time):
    """The time as Slack shows it in the reader's zone."""
    return f"<!date^{int(time.timestamp())}^{{date_short_pretty}} {{time}}|{time:%Y-%m-%d %H:%M:%S} +0000>"
REFERENCE = os.environ.get("HUNTER_REFERENCE_DATA")


@pytest.fixture
def slack():
    with FakeSlack(CANARY, ["#perf", "#other"]) as slack:
        yield slack
        assert slack.violations == []


def two_channels(slack):
    return f'slack: {{bot_token: "{CANARY}", channels: ["#perf", "#other"], api_url: "{slack.api}"}}'


def posts_to(slack, channel):
    return [p for p in slack.posts if p["channel"] == channel]


def wait_posts(slack, count):
    slack.wait(lambda: len(slack.posts) >= count)


# Each: what the first answers to #perf are, how long until the next attempt at least (s).
PASSING = {
    "429, Retry-After 0": ([(429, "", {"Retry-After": "0"})], 1),
    "429, Retry-After 3": ([(429, "", {"Retry-After": "3"})], 3),
    "429, Retry-After rubbish": ([(429, "", {"Retry-After": "soon"})], 1),
    "429, no Retry-After": ([(429, "")], 1),
    "500": ([(500, "oops")], 3),
    "502, a page": ([(502, "<html>bad gateway</html>")], 3),
    "ok:false, ratelimited": ([(200, '{"ok":false,"error":"ratelimited"}', {"Retry-After": "2"})], 2),
    "ok:false, fatal_error": ([(200, '{"ok":false,"error":"fatal_error"}')], 3),
    "ok:false, unheard of": ([(200, '{"ok":false,"error":"moon_phase"}')], 3),
    "no JSON": ([(200, "hello")], 3),
    "half an answer": ([(200, '{"ok":tr')], 3),
}


@pytest.mark.parametrize("case", PASSING)
def test_what_passes_is_tried_again_not_early(agents, tmp_path, slack, case):
    answers, wait = PASSING[case]
    write_csv(tmp_path / "a.csv", [(30, 1.2)])
    slack.channels = ["#perf"]
    slack.answers = list(answers)
    agents(config(tmp_path, csv_test(tmp_path / "a.csv"), bot(slack)))
    wait_posts(slack, 1)
    first, second = (t for t, _ in slack.times[:2])
    assert second - first >= wait - 0.01
    assert len(slack.posts) == 1


def test_retry_after_of_ten_minutes_holds_one_channel_only(agents, tmp_path, slack):
    """The other goes on with its second message while the first waits."""
    write_csv(tmp_path / "a.csv", [(30, 1.2)])
    answered = []

    def take(path, headers, body):
        if b'"#perf"' in body and not answered:
            answered.append(time.monotonic())
            return 429, {"Retry-After": "600"}, ""
        return original(path, headers, body)

    original, slack.take = slack.take, take
    agent = agents(config(tmp_path, csv_test(tmp_path / "a.csv"), two_channels(slack)))
    assert "wait_ms=600000" in agent.wait_log("delivery failed, will retry")
    wait_posts(slack, 1)
    write_csv(tmp_path / "a.csv", [(30, 1.2), (60, 1.4)], points=100)
    wait_posts(slack, 2)
    assert len(posts_to(slack, "#other")) == 2 and posts_to(slack, "#perf") == []


@pytest.mark.parametrize("mood", ["hang", "accept_then_hang", "close", "reset"])
def test_no_answer(agents, tmp_path, slack, mood):
    """A bot looks whether it has arrived: it is there once, whatever became of the answer."""
    write_csv(tmp_path / "a.csv", [(30, 1.2)])
    slack.channels = ["#perf"]
    if mood in ("close", "reset"):
        slack.close_after, slack.rude = {1}, mood == "reset"
    else:
        setattr(slack, mood, True)
    agent = agents(config(tmp_path, csv_test(tmp_path / "a.csv"), bot(slack).replace("}", ", timeout: 3s}")))
    assert mood != "reset" or "reset" in agent.wait_log("delivery failed, will retry")
    agent.wait_log("delivery failed, will retry")
    slack.hang = slack.accept_then_hang = False
    agent.wait_log("msg=sent")
    assert len(slack.posts) == 1


MISCONFIGURED = ["invalid_auth", "token_revoked", "missing_scope", "channel_not_found", "not_in_channel", "is_archived"]


@pytest.mark.parametrize("word", MISCONFIGURED)
def test_what_somebody_must_mend_is_said_and_kept(hunter, tmp_path, slack, word):
    write_csv(tmp_path / "a.csv", [(30, 1.2)])
    path = config(tmp_path, csv_test(tmp_path / "a.csv"), bot(slack))
    slack.answers = [(200, json.dumps({"ok": False, "error": word}))]
    result = hunter("run", "--once", "--config", path)
    assert result.code == 2 and word in result.err and slack.posts == []
    assert hunter("run", "--once", "--config", path).code == 0
    assert len(slack.posts) == 1


@pytest.mark.parametrize("word", ["msg_too_long", "no_text", "metadata_too_large"])
def test_what_never_will_is_given_up_and_said(hunter, tmp_path, slack, word):
    write_csv(tmp_path / "a.csv", [(30, 1.2)])
    path = config(tmp_path, csv_test(tmp_path / "a.csv"), bot(slack))
    slack.answers = [(200, json.dumps({"ok": False, "error": word}))]
    result = hunter("run", "--once", "--config", path)
    assert result.code == 3 and word in result.err and slack.posts == []
    assert 'delivery given up' in result.err and 'what="db.read p99"' in result.err
    assert hunter("run", "--once", "--config", path).code == 0 and slack.posts == []


def wide(path, metrics, name="m"):
    """A file in which every metric changes by its own amount at the same point."""
    with open(path, "w") as out:
        out.write("time,commit," + ",".join(f"{name}{i:03d}" for i in range(metrics)) + "\n")
        for row in range(60):
            values = [f"{(100 + i) * (1.2 + i / 1000 if row >= 30 else 1) + (row * 7919 + i) % 13 / 20:.3f}" for i in range(metrics)]
            out.write(f"2024-03-{1 + row // 24:02d}T{row % 24:02d}:00:00Z,c{row:04d}," + ",".join(values) + "\n")
    return f"""
  suite.wide:
    type: csv
    file: {path}
    attributes: [commit]
    metrics: [{", ".join(f"{name}{i:03d}" for i in range(metrics))}]
"""


def parts(slack):
    return [p["metadata"]["event_payload"]["part"] for p in slack.posts]


def test_kill_in_the_middle_of_a_thread(agents, tmp_path, slack):
    """Killed when the third of several posts has arrived and is not answered: the rest follows, nothing is there twice."""
    path = config(tmp_path, wide(tmp_path / "w.csv", 500), bot(slack))
    slack.close_after = {3}
    agent = agents(path)
    wait_posts(slack, 3)
    agent.process.kill()
    agent.process.wait()
    slack.close_after = set()
    agents(path).wait_log("msg=sent")
    count = len(slack.posts)
    assert count > 4 and parts(slack) == list(range(1, count + 1))
    assert {p.get("thread_ts") for p in slack.posts[1:]} == {slack.stamps[0]}
    assert "conversations.replies" in slack.looks


def test_thread_is_refused_in_the_middle(agents, tmp_path, slack):
    """An answer that passes between two posts of a thread costs a wait, not the thread."""
    slack.answer_after = {2: (429, "", {"Retry-After": "1"})}
    agents(config(tmp_path, wide(tmp_path / "w.csv", 300), bot(slack))).wait_log("msg=sent")
    assert parts(slack) == list(range(1, len(slack.posts) + 1)) and len(slack.posts) > 2


@pytest.mark.skipif(not REFERENCE, reason="HUNTER_REFERENCE_DATA is not set")
def test_payloads_pass_the_reference_checker(hunter, tmp_path, slack):
    path = config(tmp_path, wide(tmp_path / "w.csv", 400), bot(slack), '  compare_url: "https://x.test/{before}...{after}"')
    assert hunter("run", "--once", "--config", path).code == 0
    files = []
    for i, post in enumerate(slack.posts):
        files.append(tmp_path / f"post{i}.json")
        # The checker is older than charts, whose limits the fake enforces.
        if "blocks" in post:
            post["blocks"] = [block for block in post["blocks"] if block["type"] != "data_visualization"]
        files[-1].write_text(json.dumps(post))
    checker = pathlib.Path(REFERENCE) / "slack/slack_validate.py"
    done = subprocess.run([sys.executable, checker, *files], capture_output=True, text=True)
    assert len(files) > 2 and done.returncode == 0, done.stdout


def test_siblings_of_a_slower_test_go_into_the_thread(hunter, tmp_path, slack):
    write_csv(tmp_path / "a.csv", [(30, 1.2)])
    path = config(tmp_path, csv_test(tmp_path / "a.csv"), bot(slack), "  group_interval: 1h")
    assert hunter("run", "--once", "--config", path).code == 0
    write_csv(tmp_path / "b.csv", [(30, 1.5)])
    config(tmp_path, csv_test(tmp_path / "a.csv") + csv_test(tmp_path / "b.csv", "db.write"), bot(slack), "  group_interval: 1h")
    assert hunter("run", "--once", "--config", path).code == 0
    first, second = slack.posts
    assert second["thread_ts"] == slack.stamps[0] and "thread_ts" not in first
    assert second["blocks"][0]["text"]["text"].startswith(f"More change points of {slack_date(START + 30 * HOUR)} (c0029 .. c0030)")


def test_siblings_after_two_days(hunter, tmp_path, slack):
    """The thread of tests that run once a week is open for a week, and outlives a restart."""
    write_csv(tmp_path / "a.csv", [(30, 1.2)])
    path = config(tmp_path, csv_test(tmp_path / "a.csv", extra="    interval: 7d"), bot(slack))
    assert hunter("run", "--once", "--config", path).code == 0
    with open_state(tmp_path) as state:
        assert state.execute("UPDATE incidents SET joined = joined - 2 * 86400000, until = until - 2 * 86400000").rowcount == 1
    write_csv(tmp_path / "b.csv", [(30, 1.5)])
    tests = csv_test(tmp_path / "a.csv", extra="    interval: 7d") + csv_test(tmp_path / "b.csv", "db.write", "    interval: 7d")
    config(tmp_path, tests, bot(slack))
    assert hunter("run", "--once", "--config", path).code == 0
    assert slack.posts[1]["thread_ts"] == slack.stamps[0]


def test_the_headline_counts_what_joins(agents, tmp_path, slack):
    """What joins an incident is told in its thread, and its first message is edited. One that is twice as large is told in the channel, too."""
    for name, steps in (("a", [(30, 1.2)]), ("b", []), ("c", [])):
        write_csv(tmp_path / f"{name}.csv", steps)
    agents(config(tmp_path, "".join(csv_test(tmp_path / f"{name}.csv", f"db.{name}") for name in "abc"), bot(slack), "  group_interval: 1h"))
    wait_posts(slack, 1)
    write_csv(tmp_path / "b.csv", [(30, 1.3)])
    wait_posts(slack, 2)
    write_csv(tmp_path / "c.csv", [(30, 1.8)])
    wait_posts(slack, 3)
    first, second, third = slack.posts
    assert second["thread_ts"] == third["thread_ts"] == slack.stamps[0] and "thread_ts" not in first
    assert [post.get("reply_broadcast") for post in slack.posts] == [None, None, True]
    slack.wait(lambda: any("*3 changes by now*, the worst: db.c p99" in str(body) for _, body in slack.edits))
    write_csv(tmp_path / "c.csv", [])
    slack.wait(lambda: any("*2 changes by now*, the worst: db.b p99" in str(body) for _, body in slack.edits))
    assert {body["ts"] for _, body in slack.edits if "by now" in str(body)} == {slack.stamps[0]}


def test_a_first_look_goes_by_service(hunter, tmp_path, slack):
    """What was there before the agent has no cause in common: one list that says what it is, the worst service first."""
    names = "abcd"
    for i, name in enumerate(names):
        write_csv(tmp_path / f"{name}.csv", [(30 + 40 * i, 1.1 + 0.1 * i)], points=190)
    tests = "".join(csv_test(tmp_path / f"{name}.csv", f"db.{name}", "    notify: [slack, stdout]") for name in names)
    slack.channels = ["#perf"]
    done = hunter("run", "--once", "--config", config(tmp_path, tests, bot(slack)))
    assert done.code == 0 and done.out.startswith("first look: 4 regressions in db.d, db.c, db.b and 1 more test since 2024-"), done.out
    assert re.findall(r"^  (db\..)\n    p99: .*  regression since (\S+)", done.out, re.M) == [
        (f"db.{name}", f"{START + (30 + 40 * i) * HOUR:%Y-%m-%d}") for i, name in reversed(list(enumerate(names)))]
    post, = slack.posts
    fields = [field["text"] for block in post["blocks"] for field in block.get("fields", [])]
    assert post["text"].startswith("first look: 4 regressions in") and [field[:6] for field in fields] == [f"*db.{name}*"[:6] for name in "dcba"]
    assert all(f"* since {slack_date(START + (150 - 40 * i) * HOUR)}\n" in field for i, field in enumerate(fields)), fields


def test_a_channel_that_was_down_hears_what_was_withdrawn(agents, tmp_path, slack):
    """The message has two changes, of which one is not found any more when the channel can be told."""
    write_csv(tmp_path / "a.csv", [(30, 1.2)])
    write_csv(tmp_path / "b.csv", [(30, 1.3)])
    tests = csv_test(tmp_path / "a.csv") + csv_test(tmp_path / "b.csv", "db.write")
    slack.stop()
    path = config(tmp_path, tests, bot(slack))
    path.write_text(path.read_text().replace("group_wait: 0s", "group_wait: 1s"))
    agent = agents(path)
    agent.wait_log("delivery failed, will retry")
    write_csv(tmp_path / "b.csv", [])
    agent.wait_log("test=db.write.* withdrawn=1")
    slack.start()
    wait_posts(slack, 2)
    first, second = slack.posts
    assert "db.write" in str(first) and "no longer found" in str(second) and second["thread_ts"] == slack.stamps[0]


def test_nothing_is_told_of_what_was_withdrawn(agents, tmp_path, slack):
    """All that a waiting message was about is not found any more: it is not sent. Should it return, it is news."""
    write_csv(tmp_path / "a.csv", [(30, 1.2)])
    slack.stop()
    agent = agents(config(tmp_path, csv_test(tmp_path / "a.csv"), bot(slack)))
    agent.wait_log("delivery failed, will retry")
    write_csv(tmp_path / "a.csv", [])
    agent.wait_log("withdrawn=1")
    agent.wait_log("its changes were withdrawn")  # Slack is away until then: an attempt could have begun before
    slack.start()
    assert slack.posts == [] and agent.metric("hunter_delivery_queue_length") == 0
    write_csv(tmp_path / "a.csv", [(30, 1.2)])
    wait_posts(slack, 1)


def test_nothing_is_told_of_what_was_accepted(agents, hunter, tmp_path, slack):
    """The same if people have accepted all of it meanwhile."""
    write_csv(tmp_path / "a.csv", [(30, 1.2)])
    slack.stop()
    path = config(tmp_path, csv_test(tmp_path / "a.csv"), bot(slack))
    agent = agents(path)
    agent.wait_log("delivery failed, will retry")
    done = hunter("triage", "1", "expected", "--agent", f"http://127.0.0.1:{port_of(agent)}", "--config", path)
    assert done.code == 0, done.err
    agent.wait_log("delivery cancelled: its changes were accepted")
    slack.start()
    assert slack.posts == [] and agent.metric("hunter_delivery_queue_length") == 0


def test_what_outgrows_what_was_accepted_says_so(hunter, tmp_path, slack, hook):
    write_csv(tmp_path / "a.csv", [(30, 1.2)])
    path = config(tmp_path, csv_test(tmp_path / "a.csv", extra="    notify: [slack, stdout, webhook]"),
                  bot(slack) + f'\nwebhook: {{url: "{hook.url}"}}')
    assert "accepted" not in hunter("run", "--once", "--config", path).out
    assert hunter("triage", "1", "expected", "--config", path).code == 0
    write_csv(tmp_path / "a.csv", [(30, 1.5)], points=70)
    out = hunter("run", "--once", "--config", path).out
    assert re.search(r"p99: \S*\+50.*, accepted at \+20", out), out
    assert "accepted at +20" in str(slack.posts[-1]["blocks"]) and "accepted" not in str(slack.posts[0])
    documents = [json.loads(body) for _, body, _ in hook.taken]
    for document in documents:
        valid(SCHEMA, document)
    sizes = [document["changes"][0]["accepted_size"] for document in documents]
    assert sizes[0] is None and 19 < sizes[1] < 21, sizes


def test_links(hunter, tmp_path, slack):
    write_csv(tmp_path / "a.csv", [(30, 1.2)])
    links = '  commit_url: "https://git.test/c/{commit}"\n  compare_url: "https://git.test/{before}...{after}?a=1&b=2"'
    path = config(tmp_path, csv_test(tmp_path / "a.csv", extra="    notify: [slack, stdout]"), bot(slack), links)
    result = hunter("run", "--once", "--config", path)
    assert "      https://git.test/c0029...c0030?a=1&b=2\n" in result.out
    text = slack.posts[0]["blocks"][-1]["fields"][0]["text"]
    assert text.endswith("c0029 .. <https://git.test/c/c0030|c0030> (<https://git.test/c0029...c0030?a=1&amp;b=2|compare>)")


def test_pages_and_owner(hunter, tmp_path, slack, hook):
    write_csv(tmp_path / "a.csv", [(30, 1.2)])
    links = ('  dashboard: "https://graphs.test/d/{test}?var-m={metric}&from={from}&to={to}"\n'
             '  runbook: "https://wiki.test/{label.host}"\n  owner: "team of {test}"')
    path = config(tmp_path, csv_test(tmp_path / "a.csv", extra='    notify: [slack, stdout, webhook]\n    owner: "team *{metric}*"'),
                  bot(slack) + f'\nwebhook: {{url: "{hook.url}"}}', links)
    result = hunter("run", "--once", "--config", path)
    time = int((START + 30 * HOUR).timestamp() * 1000)
    around = 50 * 3600 * 1000
    page = f"https://graphs.test/d/db.read?var-m=p99&from={time - around}&to={time + around}"
    assert f"      dashboard: {page}\n      owner: team *p99*\n" in result.out, result.out
    text = slack.posts[0]["blocks"][-1]["fields"][0]["text"]
    assert text.endswith(f"\n<{page.replace('&', '&amp;')}|dashboard>, owner: team \u2217p99\u2217"), text
    document = json.loads(hook.taken[0][1])
    valid(SCHEMA, document)
    for change in (document["changes"][0], *changes_of(hunter, path)):
        assert (change["dashboard"], change["runbook"], change["owner"]) == (page, None, "team *p99*")


def test_the_agent_s_page(hunter, tmp_path, slack, hook):
    """Every message links to the agent's page of the change, and the API names it; also when the change is over."""
    write_csv(tmp_path / "a.csv", [(30, 1.2)], points=45)
    path = config(tmp_path, csv_test(tmp_path / "a.csv", extra="    notify: [slack, stdout, webhook]"),
                  bot(slack) + f'\nwebhook: {{url: "{hook.url}"}}', '  external_url: "https://hunter.test/perf/"')
    page = "https://hunter.test/perf/change/1"
    result = hunter("run", "--once", "--config", path)
    assert f"      details: {page}\n" in result.out, result.out
    assert slack.posts[0]["blocks"][-1]["fields"][0]["text"].endswith(f"\n<{page}|details>"), slack.posts[0]
    document = json.loads(hook.taken[0][1])
    valid(SCHEMA, document)
    assert document["changes"][0]["page"] == page == changes_of(hunter, path)[0]["page"]
    assert document["changes"][0]["incident"] == 1
    assert ", incident i1" in result.out and ", incident i1" in slack.posts[0]["text"] and ", incident i1" in slack.posts[0]["blocks"][0]["text"]["text"]
    write_csv(tmp_path / "a.csv", [(30, 1.2), (45, 1 / 1.2)])
    result = hunter("run", "--once", "--config", path)
    assert f"details: {page}\n" in result.out, result.out
    assert f"<{page}|details>" in str(slack.posts[1]["blocks"]), slack.posts[1]
    document = json.loads(hook.taken[1][1])
    valid(SCHEMA, document)
    assert (document["kind"], document["changes"][0]["page"]) == ("recovered", page)


# Many series: what all share is said once, and what moved alike is one line.


def steps(labels, number, factor):
    """100 hours of a series that goes up or down at the 60th."""
    values = ((20 + number) * (factor if i >= 60 else 1) * (1 + (i * 7919 + number * 31) % 13 / 2000) for i in range(100))
    return [(labels, f"{value:.6f}", int((START + i * HOUR).timestamp())) for i, value in enumerate(values)]


@pytest.fixture(scope="module")
def many_series(tmp_path_factory):
    """60 hosts, of which those that render get slower, each by a little more; 6 instances, of which two do in one region."""
    frames, latency = [], []
    for i in range(60):
        labels = {"host": f"h{i:02d}", "region": ("eu", "us")[i % 2], "role": "render" if i < 40 else "cache"}
        frames += steps(labels, i, 1.08 + 0.0006 * i if i < 40 else 1)
    for i in range(6):
        labels = {"instance": f"pay-{i}:9090", "region": ("eu", "us", "ap")[i % 3]}
        latency += steps(labels, i, 1.3 + 0.01 * i if i % 3 == 0 else 1)
    history = servers.openmetrics({"frame_ms": frames, "latency": latency})
    with servers.prometheus(tmp_path_factory.mktemp("prometheus"), history) as running:
        yield running


def test_many_series_of_a_test(hunter, tmp_path, slack, hook, many_series):
    path = tmp_path / "hunter.yaml"
    path.write_text(f"""
prometheus: {{url: '{many_series.url}'}}
{bot(slack)}
webhook: {{url: "{hook.url}"}}
stdout: {{}}
agent: {{state: {state_of(tmp_path)}, listen: 127.0.0.1:0, max_age: never, group_wait: 0s}}
tests:
  farm.frames:
    type: prometheus
    query: frame_ms
    range: 2000d
    metrics: {{frame_ms: {{direction: -1, unit: ms}}}}
    notify: [slack, webhook, stdout]
    dashboard: "https://graphs.test/?host={{label.host}}"
    runbook: "https://wiki.test/{{label.role}}"
    owner: "team-{{label.role}}"
  pay.latency:
    type: prometheus
    query: latency
    range: 2000d
    metrics: {{p99: {{direction: -1, unit: s}}}}
    notify: [slack, webhook, stdout]
""")
    result = hunter("run", "--once", "--config", path)
    assert result.code == 0, result.err
    pay, farm = sorted(slack.posts, key=lambda post: post["text"])  # two incidents: what happens at one time is not one cause
    fields = [f["text"] for post in (pay, farm) for block in post["blocks"] for f in block.get("fields", [])]
    assert len(fields) == 2
    assert re.fullmatch(
        r'\*pay.latency\* region=eu\n'
        r':red_circle: p99{instance="pay-3:9090"}: \+33.*\n'
        r':red_circle: p99{instance="pay-0:9090"}: \+30.*', fields[0]), fields[0]
    assert re.fullmatch(
        r'\*farm.frames\*\n'
        r':red_circle: 40 series of frame_ms: \+9\.\d%, from \+8\.\d% to \+10\.\d%, 100% role=render\n'
        r'(• {host="h3\d",region="(eu|us)"}: \+10\.\d% .* ms\n){3}'
        r'• 37 more: `hunter-c changes --test farm.frames` lists all\n'
        r'<https://wiki.test/render\|runbook>, owner: team-render\n'
        r'of {host="(h3\d)",region="(eu|us)"}: <https://graphs.test/\?host=\3\|dashboard>', fields[1]), fields[1]
    assert "\nfarm.frames 40 series of frame_ms: +9." in farm["text"]
    assert "  pay.latency region=eu\n    p99{instance=\"pay-3:9090\"}: +33" in result.out
    assert re.search(r"  farm.frames\n    40 series of frame_ms: .*, 100% role=render  regression\n      {host=", result.out)
    documents = [json.loads(taken[1]) for taken in hook.taken]
    for document in documents:
        valid(SCHEMA, document)
    names = {change["metric"] for document in documents for change in document["changes"]}
    assert len(names) == 42 and 'frame_ms{host="h07",region="us",role="render"}' in names
    assert {change["metric"] for change in changes_of(hunter, path)} == names


def test_the_metric_in_templates(hunter, tmp_path, many_series):
    """It is the name without labels, whether the series has labels or not."""
    path = tmp_path / "hunter.yaml"
    path.write_text(f"""
prometheus: {{url: '{many_series.url}'}}
agent: {{state: {state_of(tmp_path)}, listen: 127.0.0.1:0, max_age: never, group_wait: 0s,
  dashboard: "https://graphs.test/?m={{metric}}", owner: "team {{metric}}", runbook: "https://wiki.test/{{metric}}/{{label.instance}}"}}
tests:
  labels: {{type: prometheus, query: latency, range: 2000d, metrics: {{p99: {{}}}}}}
  selector: {{type: prometheus, query: 'latency{{instance=~"pay-.*"}}', range: 2000d}}
  plain: {{type: prometheus, query: max(latency), range: 2000d, step: 1h, metrics: {{max_s: {{}}}}}}
  unnamed: {{type: prometheus, query: max(latency), range: 2000d, step: 1h}}
""")
    result = hunter("run", "--once", "--config", path)
    assert result.code == 0, result.err
    found = sorted((c["test"], c["metric"], c["dashboard"], c["owner"], c["runbook"]) for c in changes_of(hunter, path))

    def expected(test, metric, name, page=None):
        return (test, metric, f"https://graphs.test/?m={name}", f"team {name}", page and f"https://wiki.test/{page}")

    assert found == [
        *(expected("labels", f'p99{{instance="pay-{i}:9090",region="eu"}}', "p99", f"p99/pay-{i}%3A9090") for i in (0, 3)),
        expected("plain", "max_s", "max_s"),
        *(expected("selector", f'latency{{instance="pay-{i}:9090",region="eu"}}', "latency", f"latency/pay-{i}%3A9090") for i in (0, 3)),
        expected("unnamed", "value", "value"),
    ]


# How a change is said: by levels that outliers do not turn over, where it can lie, and trends as trends.


def write_values(path, values, name="p99"):
    with open(path, "w") as out:
        out.write(f"time,commit,{name}\n")
        for i, value in enumerate(values):
            out.write(f"{(START + i * HOUR).isoformat()},c{i:04d},{value:.4f}\n")


def changes_of(hunter, path):
    return json.loads(hunter("changes", "--config", path, "--output", "json").out)["changes"]


def test_outliers_do_not_turn_a_change_over(hunter, tmp_path, slack, hook):
    """6% up, and three of the sixty points before it are four times as high: the means say 8% down."""
    write_values(tmp_path / "a.csv", [(1.06 if i >= 60 else 1) * (400 if i in (7, 27, 47) else 100) * (1 + 0.01 * noise(i)) for i in range(120)])
    path = config(tmp_path, csv_test(tmp_path / "a.csv", extra="    notify: [slack, stdout, webhook]"),
                  bot(slack) + f'\nwebhook: {{url: "{hook.url}"}}')
    result = hunter("run", "--once", "--config", path)
    assert result.code == 0, result.err
    assert re.search(r"p99: \+[56]\.\d% \[[56]\.\d, [67]\.\d\]  \d+(\.\d+)? --> 10\d\.\d ms  regression", result.out), result.out
    assert ":red_circle: p99: +" in slack.posts[0]["blocks"][-1]["fields"][0]["text"]
    (told,) = json.loads(hook.taken[0][1])["changes"]
    valid(SCHEMA, json.loads(hook.taken[0][1]))
    assert told["percent"] < -5 and told["before"] > told["after"]  # what they meant before
    assert told["verdict"] == "regression" and 5 < told["size_low"] < told["size"] < told["size_high"] < 7.5
    assert 98 < told["level_before"] < 102 and 104 < told["level_after"] < 108 and told["kind"] == "step"
    (change,) = changes_of(hunter, path)
    assert change["regression"] is True and change["forward_change_percent"] < -5
    assert [change[k] for k in ("size", "level_after", "place_from")] == [told[k] for k in ("size", "level_after", "place_from")]
    (row,) = csv.DictReader(io.StringIO(hunter("changes", "--config", path, "--output", "csv").out))
    assert row["regression"] == "yes" and float(row["size_low"]) == change["size_low"] and row["place_commit_after"] == "c0060"


def test_a_place_that_is_not_one_point(hunter, tmp_path, slack):
    write_values(tmp_path / "a.csv", [(104 if i >= 60 else 100) * (1 + 0.06 * noise(i)) for i in range(120)])
    links = '  compare_url: "https://git.test/{before}...{after}"'
    path = config(tmp_path, csv_test(tmp_path / "a.csv", extra="    notify: [slack, stdout]"), bot(slack), links)
    result = hunter("run", "--once", "--config", path)
    (change,) = changes_of(hunter, path)
    first, last = (datetime.datetime.fromisoformat(change[k]) for k in ("place_from", "place_to"))
    before, after = (int(change[k][1:]) for k in ("place_commit_before", "place_commit_after"))
    assert first <= START + 60 * HOUR <= last and last - first >= 2 * HOUR
    assert first == START + (before + 1) * HOUR and last == START + after * HOUR
    assert int(change["commit_after"][1:]) == int(change["commit_before"][1:]) + 1
    between = f"between {first:%Y-%m-%d %H:%M} and {last:%Y-%m-%d %H:%M}"
    in_slack = f"between {slack_date(first)} and {slack_date(last)}"
    suspects = change["suspects"]  # by the places of 99%, which are those of 95% or more
    good, bad, count = (suspects[k] for k in ("from", "to", "count"))
    assert int(good[1:]) <= before and int(bad[1:]) >= after and count == int(bad[1:]) - int(good[1:]) == len(suspects["list"])
    assert [s["commit"] for s in suspects["list"]] == [f"c{i:04d}" for i in range(int(good[1:]) + 1, int(bad[1:]) + 1)]
    likely = f", most likely {change['commit_after']}" if change["commit_after"] != bad else ""
    assert f"      {between}\n      {good} .. {bad}, {count} suspects{likely}\n      https://git.test/{good}...{bad}\n" in result.out
    text = slack.posts[0]["blocks"][-1]["fields"][0]["text"]
    assert f"\n{in_slack}\n{good} .. {bad} (<https://git.test/{good}...{bad}|compare>), {count} suspects{likely}" in text


def leak(points):
    """It rises by 1 at each of the points 60 to 159."""
    return [100 + max(0, min(i - 60, 100)) + noise(i) for i in range(points)]


def test_a_trend_is_told_as_one(hunter, tmp_path, slack, hook):
    write_values(tmp_path / "a.csv", leak(220))
    path = config(tmp_path, csv_test(tmp_path / "a.csv", extra="    notify: [slack, stdout, webhook]"),
                  bot(slack) + f'\nwebhook: {{url: "{hook.url}"}}')
    result = hunter("run", "--once", "--config", path)
    said = r"p99: \+10[01]%( \[\d+(\.\d)?, 1\d\d(\.\d)?\])?  trend from (99\.\d+|100\.\d) to (199\.\d|200(\.\d)?) ms over 2024-03-03 .. 2024-03-07, \+(0\.99|1\.0) a point"
    assert len(re.findall(said, result.out)) == 1 and result.out.startswith("1 regression in db.read since 2024-03-0"), result.out
    assert re.search(r"\n      c00(59|6\d) \.\. c01(5\d|6[0-2]), 1?\d\d suspects\n", result.out) and "between" not in result.out
    text = slack.posts[0]["blocks"][-1]["fields"][0]["text"]
    assert re.search(said, re.sub(r"<!date\^\d+\^{date_short_pretty}\|(\S+) [^>]*>", r"\1", text)), text
    (told,) = json.loads(hook.taken[0][1])["changes"]
    valid(SCHEMA, json.loads(hook.taken[0][1]))
    assert told["kind"] == "trend" and 0.97 < told["slope"] < 1.03 and told["verdict"] == "regression"


def test_a_trend_that_grows_is_one_change(hunter, tmp_path, slack):
    """It is told when it shows first; then its numbers follow, and nobody is told again, until it ends."""
    path = config(tmp_path, csv_test(tmp_path / "a.csv"), bot(slack))
    seen = []
    for points in [60, *range(62, 72), 80, 100, 130, 160, 200, 220]:
        write_values(tmp_path / "a.csv", leak(points))
        assert hunter("run", "--once", "--config", path).code == 0
        seen += [c for c in changes_of(hunter, path) if c["kind"] == "trend"]
        assert len(slack.posts) <= 1
    assert len(slack.posts) == 1 and {c["id"] for c in seen} == {1}
    at = [c["place_to"] for c in seen]
    assert at == sorted(at) and len(set(at)) >= 5
    last = seen[-1]
    assert abs(last["level_before"] - 100) < 1 and abs(last["level_after"] - 200) < 2 and abs(last["size"] - 100) < 3
    assert last["place_to"].startswith("2024-03-07T1") and abs(int(last["place_commit_before"][1:]) - 59) <= 2
    assert [e["event"] for e in last["history"]].count("announced") == 1
    for name in ("level_after", "place_to", "updated"):
        assert seen[-2][name] == last[name]  # it has ended: nothing is written any more


# The webhook.


def test_webhook_document_and_signature(hunter, tmp_path, hook):
    write_csv(tmp_path / "a.csv", [(30, 1.2), (45, 0.7)])
    section = f'webhook: {{url: "{hook.url}", secret: "{CANARY}", headers: {{X-Team: perf}}}}'
    result = hunter("run", "--once", "--config", config(tmp_path, csv_test(tmp_path / "a.csv"), section))
    assert result.code == 0 and CANARY not in result.err + result.out
    for headers, body, _ in hook.taken:
        document = json.loads(body)
        valid(SCHEMA, document)
        signed = headers["X-Hunter-Timestamp"].encode() + b"." + body
        assert headers["X-Hunter-Signature"] == "sha256=" + hmac.new(CANARY.encode(), signed, hashlib.sha256).hexdigest()
        assert abs(int(headers["X-Hunter-Timestamp"]) - time.time()) < 60
        assert headers["Idempotency-Key"] == document["key"] and headers["X-Team"] == "perf"
        assert CANARY.encode() not in body
    changes = [c for _, body, _ in hook.taken for c in json.loads(body)["changes"]]
    assert [(c["test"], c["metric"], c["commit_after"], c["verdict"]) for c in changes] == [
        ("db.read", "p99", "c0030", "regression"), ("db.read", "p99", "c0045", "improvement")]


def test_webhook_is_tried_again_with_the_same_key(hunter, tmp_path, hook):
    write_csv(tmp_path / "a.csv", [(30, 1.2)])
    hook.statuses = [500, 429]
    path = config(tmp_path, csv_test(tmp_path / "a.csv"), f'webhook: {{url: "{hook.url}"}}')
    assert hunter("run", "--once", "--config", path).code == 0
    assert [status for _, _, status in hook.taken] == [500, 429, 204]
    assert len({headers["Idempotency-Key"] for headers, _, _ in hook.taken}) == 1
    assert "X-Hunter-Signature" not in hook.taken[0][0]


def test_webhook_that_refuses(hunter, tmp_path, hook):
    write_csv(tmp_path / "a.csv", [(30, 1.2)])
    path = config(tmp_path, csv_test(tmp_path / "a.csv"), f'webhook: {{url: "{hook.url}"}}')
    hook.statuses = [403]
    result = hunter("run", "--once", "--config", path)
    assert result.code == 2 and "HTTP status 403" in result.err and "path-canary" not in result.err
    hook.statuses = [422]
    result = hunter("run", "--once", "--config", path)
    assert result.code == 3 and "given up" in result.err
    assert hunter("run", "--once", "--config", path).code == 0 and len(hook.taken) == 2


def test_webhook_gets_notices(agents, tmp_path, hook):
    section = f'webhook: {{url: "{hook.url}"}}'
    agent = agents(config(tmp_path, csv_test(tmp_path / "missing.csv"), section))
    agent.wait_log("msg=sent")
    document = json.loads(hook.taken[0][1])
    valid(SCHEMA, document)
    assert document["kind"] == "notice" and document["subject"] and document["recovered"] is False


# analyze --notify-slack


def test_analyze_notifies_the_channels_named(hunter, tmp_path, slack):
    write_csv(tmp_path / "a.csv", [(20, 1.2), (45, 0.7)])
    section = f'slack: {{token: "{CANARY}", api_url: "{slack.api}"}}'  # no channels, as in Hunter's files
    path = config(tmp_path, csv_test(tmp_path / "a.csv"), section)
    result = hunter("analyze", "db.read", "--config", path, "--notify-slack", "#perf", "#other")
    assert result.code == 0 and "p99" in result.out
    assert sorted(p["channel"] for p in slack.posts) == ["#other", "#perf"]
    text = str(slack.posts[0]["blocks"])
    assert "c0019 .. c0020" in text and "c0044 .. c0045" in text
    slack.posts.clear()
    result = hunter("analyze", "db.read", "--config", path, "--notify-slack", "#perf", "--cph-report-since", "2024-03-02 12:00")
    text = str(slack.posts[0]["blocks"])
    assert result.code == 0 and "c0019 .. c0020" not in text and "c0044 .. c0045" in text


def test_analyze_tells_that_there_is_nothing(hunter, tmp_path, slack):
    write_csv(tmp_path / "a.csv", [])
    path = config(tmp_path, csv_test(tmp_path / "a.csv"), bot(slack))
    assert hunter("analyze", "--config", path, "--notify-slack", "#perf").code == 0
    assert "did not detect any change points" in slack.posts[0]["text"] and "1 test analyzed" in slack.posts[0]["text"]


@pytest.mark.parametrize("flags, section, code, words", [
    (["--notify-slack", "#nowhere"], "bot", 2, "channel_not_found"),
    (["--notify-slack", "#perf"], "", 2, "no section slack"),
    (["--notify-slack", "#perf"], "webhook", 2, "a bot_token is needed"),
    (["--notify-slack", "#perf", "--cph-report-since", "whenever"], "bot", 2, "--cph-report-since: "),
])
def test_analyze_that_cannot_notify(hunter, tmp_path, slack, flags, section, code, words):
    write_csv(tmp_path / "a.csv", [(30, 1.2)])
    text = {"bot": bot(slack), "": "", "webhook": f'slack: {{webhook_url: "{slack.webhook}"}}'}[section]
    path = config(tmp_path, csv_test(tmp_path / "a.csv"), text)
    result = hunter("analyze", "--config", path, *flags)
    assert result.code == code and words in result.err and slack.posts == []


def test_analyze_notifies_after_a_hiccup_and_says_when_it_cannot(hunter, tmp_path, slack):
    write_csv(tmp_path / "a.csv", [(30, 1.2)])
    path = config(tmp_path, csv_test(tmp_path / "a.csv"), bot(slack))
    slack.answers = [(429, "", {"Retry-After": "1"})]
    assert hunter("analyze", "--config", path, "--notify-slack", "#perf").code == 0
    assert len(slack.posts) == 1
    slack.answers = [(429, "", {"Retry-After": "600"})]
    result = hunter("analyze", "--config", path, "--notify-slack", "#perf")
    assert result.code == 3 and "too many messages" in result.err and len(slack.posts) == 1
