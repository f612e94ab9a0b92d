"""`hunter-c run`: what is new is told once, whatever happens in between.

Data have fixed dates and known changes; Slack is a strict fake on loopback, Prometheus is the real one.
"""
import csv
import datetime
import email.utils
import fcntl
import http.server
import json
import os
import re
import select
import shutil
import signal
import socket
import subprocess
import threading
import time
import urllib.parse
import urllib.request

import pytest
import servers
from agent import CANARY, START, bot, config, csv_test, level, run_once, write_csv
from fake_slack import FakeSlack, charts_of
from state_address import open_state, state_of
from waiting import LONGEST, pause, wait


def fields(message):
    return [f["text"] for b in message["blocks"] for f in b.get("fields", [])]


# One pass.


def test_all_attributes_are_told(hunter, agents, tmp_path, slack):
    """commit_column and version_column name columns; other attributes are in messages, `changes`, the API and replay."""
    with open(tmp_path / "read.csv", "w", newline="") as out:
        rows = csv.writer(out)
        rows.writerow(["time", "sha", "release", "machine", "build", "empty", "p99"])
        for i in range(60):
            rows.writerow([(START + datetime.timedelta(hours=i)).isoformat(), f"c{i:04d}", f"1.{i // 30}", "perf7", 100 + i, "",
                           f"{level(i, [(30, 1.2)]):.4f}"])
    test = csv_test(tmp_path / "read.csv", extra="    commit_column: sha\n    version_column: release\n").replace(
        "[commit]", "[machine, build, empty]")
    path = config(tmp_path, test, bot(slack) + "\nstdout: {print: plain}")
    known = {"commit": "c0030", "version": "1.1", "machine": "perf7", "build": "130"}
    before = {"commit": "c0029", "version": "1.0", "machine": "perf7", "build": "129"}
    line = "version: 1.0 .. 1.1, machine: perf7, build: 129 .. 130"
    told = hunter("run", "--once", "--config", path)
    assert f"      c0029 .. c0030\n      {line}\n" in told.out, told.out + told.err
    assert fields(slack.posts[0])[0].endswith(f"\nc0029 .. c0030\n{line}")
    document = json.loads(hunter("changes", "--output", "json", "--config", path).out)["changes"][0]
    assert (document["attributes"], document["attributes_before"], document["commit_after"]) == (known, before, "c0030")
    found = json.loads(hunter("analyze", "--output", "json", "--config", path).out)["tests"][0]["changes"][0]
    assert found["attributes"] == known
    assert hunter("analyze", "--config", path).out.splitlines()[1].split()[:5] == ["time", "commit", "version", "machine", "build"]
    replayed = hunter("replay", "--output", "json", "--from", "2024-03-01", "--to", "2024-03-04", "--config", path)
    assert f'"attributes": {json.dumps(known)}' in replayed.out, replayed.out + replayed.err
    agent = agents(path)
    shown = json.loads(agent.get("/api/v1/changes")[1])["changes"][0]
    assert (shown["attributes"], shown["attributes_before"]) == (known, before)
    assert agent.end() == 0


def test_once_tells_once_on_the_terminal(hunter, tmp_path):
    write_csv(tmp_path / "read.csv", [(30, 1.2)])
    path = config(tmp_path, csv_test(tmp_path / "read.csv"))
    first = hunter("run", "--once", "--config", path)
    assert first.code == 0, first.err
    assert first.out.splitlines()[:2] == ["1 regression in db.read since 2024-03-02 06:00:00 +0000, incident i1", ""]
    assert re.search(r"2024-03-02 06:00:00 \+0000\n  db.read\n    p99: \+20% \[.*\]  .* --> .* ms  regression\n"
                     r"      c0029 .. c0030\n", first.out), first.out
    second = hunter("run", "--once", "--config", path)
    assert (second.code, second.out) == (0, "")


def test_once_tells_only_what_is_new(hunter, tmp_path):
    write_csv(tmp_path / "read.csv", [(30, 0.8)])
    path = config(tmp_path, csv_test(tmp_path / "read.csv"))
    assert "-20%" in hunter("run", "--once", "--config", path).out
    write_csv(tmp_path / "read.csv", [(30, 0.8), (65, 1.2)], points=110)
    second = hunter("run", "--once", "--config", path)  # an improvement that is undone is a regression
    assert "+20%" in second.out and "regression" in second.out and "-20%" not in second.out
    assert hunter("run", "--once", "--config", path).out == ""


def test_changes_apart_are_messages_apart_up_to_three(hunter, tmp_path):
    steps = [(30, 1.2), (70, 1.3), (110, 1.2), (150, 1.3)]
    for count, messages in ((3, 3), (4, 1)):
        write_csv(tmp_path / "read.csv", steps[:count], points=190)
        path = config(tmp_path, csv_test(tmp_path / "read.csv"))
        path.write_text(path.read_text().replace(state_of(tmp_path), state_of(tmp_path, f"state{count}.db")))
        done = hunter("run", "--once", "--config", path)
        assert done.code == 0, done.err
        assert len(re.findall("^(?:first look: )?[0-9]+ regressions? in db.read since", done.out, re.M)) == messages and done.out.count("  regression") == count
        assert done.out.startswith("first look: ") == (count == 4)


def test_old_changes_are_recorded_not_told(hunter, tmp_path):
    write_csv(tmp_path / "read.csv", [(30, 1.2)])
    path = config(tmp_path, csv_test(tmp_path / "read.csv"))
    path.write_text(path.read_text().replace("max_age: never", "max_age: 14d"))
    assert hunter("run", "--once", "--config", path).out == ""
    path.write_text(path.read_text().replace("max_age: 14d", "max_age: never"))
    assert hunter("run", "--once", "--config", path).out == ""


def test_what_comes_while_the_clock_is_ahead_is_told(hunter, tmp_path):
    """By the data it is March 2024: a change in points that were not there in the run before is as young as can be."""
    write_csv(tmp_path / "read.csv", [], points=40)
    path = config(tmp_path, csv_test(tmp_path / "read.csv"))
    path.write_text(path.read_text().replace("max_age: never", "max_age: 14d"))
    assert hunter("run", "--once", "--config", path).out == ""
    write_csv(tmp_path / "read.csv", [(50, 1.2)])
    assert "+20%" in hunter("run", "--once", "--config", path).out
    assert hunter("run", "--once", "--config", path).out == ""


def dated_server(moment, date, empty=False):
    """A Prometheus on loopback whose data end at `moment`, with a change 30 hours before, and which thinks that it is `date`."""
    values = [[(moment + datetime.timedelta(hours=i - 59)).timestamp(), f"{level(i, [(30, 1.2)]):.4f}"] for i in range(60)]
    result = [] if empty else [{"metric": {"__name__": "m"}, "values": values}]
    body = json.dumps({"status": "success", "data": {"resultType": "matrix", "result": result}})

    class Handler(http.server.BaseHTTPRequestHandler):
        def date_time_string(self, timestamp=None):
            return email.utils.format_datetime(date, usegmt=True)

        def do_GET(self):
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body.encode())

        do_POST = do_GET

        def log_message(self, *_):
            pass

    return http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)


@pytest.mark.parametrize("ahead", [40, 0])
def test_a_server_that_has_another_date(agents, tmp_path, ahead):
    """Data that end 40 days ago are old, unless the server says that it is 40 days ago."""
    now = datetime.datetime.now(datetime.timezone.utc).replace(microsecond=0)
    server = dated_server(now - datetime.timedelta(days=40), now - datetime.timedelta(days=ahead))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    path = config(tmp_path, "  m: {type: prometheus, query: m, range: 300d, metrics: {m: {direction: -1}}}",
                  f"prometheus: {{url: 'http://127.0.0.1:{server.server_port}'}}")
    path.write_text(path.read_text().replace("max_age: never", "max_age: 14d"))
    agent = agents(path)
    agent.pass_by(2)
    assert abs(agent.metric("hunter_clock_ahead_seconds") - ahead * 86400) < 3600
    if ahead:
        agent.wait_log("msg=\"clock is ahead of a server's")
        agent.wait_log("msg=sent")
    assert agent.end() == 0
    server.shutdown()
    server.server_close()
    assert ("+20%" in "".join(agent.out)) == (ahead > 0)


@pytest.mark.parametrize("ahead", [40, -40, 0])
def test_missing_data_while_the_clock_is_wrong(agents, tmp_path, ahead):
    """The query is for another time than the server's: that is told late, and with the doubt."""
    now = datetime.datetime.now(datetime.timezone.utc).replace(microsecond=0)
    server = dated_server(now, now - datetime.timedelta(days=ahead), empty=True)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    path = config(tmp_path, "  m: {type: prometheus, query: m, range: 30d, metrics: {m: {direction: -1}}}",
                  f"prometheus: {{url: 'http://127.0.0.1:{server.server_port}'}}")
    agent = agents(path)
    agent.wait(lambda: "the query returns no series" in "".join(agent.out))
    failures = agent.metric("hunter_run_failures_total")
    assert agent.end() == 0
    server.shutdown()
    server.server_close()
    out, doubt = "".join(agent.out), f"{'ahead of' if ahead > 0 else 'behind'} a server's"
    assert (doubt in out, "this machine's clock is" in out) == (ahead != 0, ahead != 0), out
    assert not ahead or failures > 3, "told at the third failure, as without a doubt"


def test_a_failed_fetch_changes_nothing(hunter, tmp_path):
    write_csv(tmp_path / "read.csv", [(30, 1.2)])
    write_csv(tmp_path / "write.csv", [(30, 0.7)])
    path = config(tmp_path, csv_test(tmp_path / "read.csv") + csv_test(tmp_path / "write.csv", "db.write"))
    shutil.move(tmp_path / "write.csv", tmp_path / "away.csv")
    first = hunter("run", "--once", "--config", path)
    assert first.code == 3 and "write.csv" in first.err
    assert "db.read" in first.out and "db.write" not in first.out
    shutil.move(tmp_path / "away.csv", tmp_path / "write.csv")
    second = hunter("run", "--once", "--config", path)
    assert second.code == 0 and "db.write" in second.out and "db.read" not in second.out
    (tmp_path / "read.csv").unlink()
    assert hunter("run", "--once", "--config", path).code == 3
    write_csv(tmp_path / "read.csv", [(30, 1.2)])
    assert hunter("run", "--once", "--config", path).out == ""


def test_data_that_are_empty_for_a_while(hunter, tmp_path):
    write_csv(tmp_path / "read.csv", [(30, 1.2)])
    path = config(tmp_path, csv_test(tmp_path / "read.csv"))
    assert "+20%" in hunter("run", "--once", "--config", path).out
    write_csv(tmp_path / "read.csv", [], points=0)
    assert hunter("run", "--once", "--config", path).out == ""
    write_csv(tmp_path / "read.csv", [(30, 1.2)])
    assert hunter("run", "--once", "--config", path).out == ""


@pytest.mark.state_file
def test_state_that_cannot_be_had(hunter, tmp_path):
    write_csv(tmp_path / "read.csv", [])
    path = config(tmp_path, csv_test(tmp_path / "read.csv"))
    (tmp_path / "state.db").write_bytes(b"no database" * 1000)
    done = hunter("run", "--once", "--config", path)
    assert done.code == 4 and "damaged" in done.err and str(tmp_path / "state.db") in done.err
    assert (tmp_path / "state.db").read_bytes() == b"no database" * 1000


@pytest.mark.parametrize("section, words", [
    ('slack: {bot_token: "x"}', "channels is missing"),
    ('slack: {channels: ["#perf"]}', "bot_token"),
    ('slack: {bot_token: "x", webhook_url: "https://hooks.slack.com/x"}', "not both"),
])
def test_a_receiver_that_cannot_work_is_told_at_the_start(hunter, tmp_path, section, words):
    write_csv(tmp_path / "read.csv", [])
    done = hunter("run", "--once", "--config", config(tmp_path, csv_test(tmp_path / "read.csv"), section))
    assert done.code == 2 and words in done.err


# Slack.


def test_slack_in_one_pass(hunter, tmp_path, slack):
    write_csv(tmp_path / "read.csv", [(30, 1.2)])
    path = config(tmp_path, csv_test(tmp_path / "read.csv"), bot(slack))
    first = hunter("run", "--once", "--config", path)
    assert first.code == 0 and CANARY not in first.err + first.out
    assert len(slack.posts) == 1
    assert fields(slack.posts[0])[0].startswith("*db.read*\n:red_circle: p99: +20%")
    assert "c0029 .. c0030" in fields(slack.posts[0])[0]
    assert hunter("run", "--once", "--config", path).code == 0
    assert len(slack.posts) == 1


def test_tests_choose_who_is_told(hunter, tmp_path, slack):
    """One message for what belongs together, across tests; each receiver hears of the tests that name it."""
    for name in ("read", "write", "scan"):
        write_csv(tmp_path / f"{name}.csv", [(30, 1.2)])
    path = config(tmp_path, csv_test(tmp_path / "read.csv", "db.read") +
                  csv_test(tmp_path / "write.csv", "db.write", "    notify: [slack, stdout]") +
                  csv_test(tmp_path / "scan.csv", "db.scan", "    notify: [stdout]"), bot(slack))
    done = hunter("run", "--once", "--config", path)
    assert done.code == 0
    assert re.findall(r"^  (\S+)$", done.out, re.M) == ["db.scan", "db.write"]
    assert len(slack.posts) == 1
    assert [f.splitlines()[0] for f in fields(slack.posts[0])] == ["*db.read*", "*db.write*"]
    assert hunter("run", "--once", "--config", path).out == "" and len(slack.posts) == 1


def test_names_cannot_mention_anybody(hunter, tmp_path, slack):
    write_csv(tmp_path / "read.csv", [(30, 1.2)])
    path = config(tmp_path, csv_test(tmp_path / "read.csv", '"<!channel> & <@U1>"'), bot(slack))
    assert hunter("run", "--once", "--config", path).code == 0
    assert fields(slack.posts[0])[0].startswith("*&lt;!channel&gt; &amp; &lt;@U1&gt;*")


def test_webhook(hunter, tmp_path, slack):
    write_csv(tmp_path / "read.csv", [(30, 1.2)])
    path = config(tmp_path, csv_test(tmp_path / "read.csv"), f'slack: {{webhook_url: "{slack.webhook}"}}')
    first = hunter("run", "--once", "--config", path)
    assert first.code == 0 and len(slack.posts) == 1 and CANARY not in first.err + first.out


def test_secret_in_a_file(hunter, tmp_path, slack):
    write_csv(tmp_path / "read.csv", [(30, 1.2)])
    (tmp_path / "token").write_text(CANARY + "\n")
    path = config(tmp_path, csv_test(tmp_path / "read.csv"),
                  f'slack: {{bot_token_file: {tmp_path}/token, channel: "#perf", api_url: "{slack.api}"}}')
    assert hunter("run", "--once", "--config", path).code == 0
    assert len(slack.posts) == 1


def test_a_wrong_token_is_said_and_the_message_kept(hunter, tmp_path, slack):
    write_csv(tmp_path / "read.csv", [(30, 1.2)])
    path = config(tmp_path, csv_test(tmp_path / "read.csv"), bot(slack, token="xoxb-wrong"))
    first = hunter("run", "--once", "--config", path)
    assert first.code == 2 and "invalid_auth" in first.err and "xoxb-wrong" not in first.err
    path.write_text(path.read_text().replace("xoxb-wrong", CANARY))
    assert hunter("run", "--once", "--config", path).code == 0
    assert len(slack.posts) == 1


def test_a_wrong_webhook_is_said_without_its_address(hunter, tmp_path, slack):
    write_csv(tmp_path / "read.csv", [(30, 1.2)])
    path = config(tmp_path, csv_test(tmp_path / "read.csv"), f'slack: {{webhook_url: "{slack.webhook}-gone"}}')
    first = hunter("run", "--once", "--config", path)
    assert first.code == 2 and "no_service" in first.err and CANARY not in first.err


def test_slack_down_keeps_the_message_for_the_next_run(hunter, tmp_path, slack):
    write_csv(tmp_path / "read.csv", [(30, 1.2)])
    path = config(tmp_path, csv_test(tmp_path / "read.csv"), bot(slack))
    slack.stop()
    first = hunter("run", "--once", "--config", path)
    assert first.code == 3 and "remain queued" in first.err
    slack.start()
    assert hunter("run", "--once", "--config", path).code == 0
    assert len(slack.posts) == 1


def test_a_message_whose_receiver_went_away_is_not_well(hunter, tmp_path, slack):
    """Its changes are told to the receivers there are, once, and not to it when it is back."""
    write_csv(tmp_path / "a.csv", [(30, 1.2)])
    path = config(tmp_path, csv_test(tmp_path / "a.csv"), bot(slack))
    slack.stop()
    assert hunter("run", "--once", "--config", path).code == 3
    slack.start()
    config(tmp_path, csv_test(tmp_path / "a.csv"))
    result = hunter("run", "--once", "--config", path)
    assert result.code == 0 and "receiver not configured" in result.err
    assert result.out.count("p99: +20%") == 1
    config(tmp_path, csv_test(tmp_path / "a.csv"), bot(slack))
    result = hunter("run", "--once", "--config", path)
    assert result.code == 0 and result.out == "" and slack.posts == []


def test_channels_and_their_pace(hunter, tmp_path):
    """Three groups for each of two channels: a message a second each, and Slack never has to say 429."""
    write_csv(tmp_path / "read.csv", [(30, 1.2), (70, 1.3), (110, 1.2)], points=150)
    with FakeSlack(CANARY, channels=("#perf", "C0123")) as slack:
        path = config(tmp_path, csv_test(tmp_path / "read.csv"), bot(slack).replace('"#perf"', '"#perf", "C0123"'))
        assert hunter("run", "--once", "--config", path).code == 0
        assert sorted(p["channel"] for p in slack.posts) == ["#perf"] * 3 + ["C0123"] * 3
        assert slack.refused == [] and slack.violations == []


def test_retry_after_is_obeyed(hunter, tmp_path, slack):
    write_csv(tmp_path / "read.csv", [(30, 1.2)])
    path = config(tmp_path, csv_test(tmp_path / "read.csv"), bot(slack))
    slack.last["#perf"] = float("inf")  # until Retry-After has been answered once
    slack.limited_once = slack.limited

    def limited(channel):
        answer = slack.limited_once(channel)
        slack.last.pop(channel, None)
        return answer

    slack.limited = limited
    assert hunter("run", "--once", "--config", path).code == 0
    assert slack.refused == [429] and len(slack.posts) == 1


def test_blocks_that_slack_refuses_become_text(hunter, tmp_path, slack):
    write_csv(tmp_path / "read.csv", [(30, 1.2)])
    path = config(tmp_path, csv_test(tmp_path / "read.csv"), bot(slack))
    slack.answers += [(200, '{"ok": false, "error": "invalid_blocks"}')] * 2  # with the chart, and without
    assert hunter("run", "--once", "--config", path).code == 0
    assert len(slack.posts) == 1 and "blocks" not in slack.posts[0]
    assert "db.read p99 +20%" in slack.posts[0]["text"]
    slack.violations.clear()  # that there are no blocks


def test_chart(hunter, tmp_path, slack):
    """The points next to the change as they were measured, and the levels."""
    write_csv(tmp_path / "read.csv", [(30, 1.2)], points=36)
    path = config(tmp_path, csv_test(tmp_path / "read.csv"), bot(slack))
    assert hunter("run", "--once", "--config", path).code == 0
    (block,) = charts_of(slack.posts[0])
    assert slack.posts[0]["blocks"].index(block) == 1 and block["title"] == "db.read p99 +20%"
    axes, (measured, levels) = block["chart"]["axis_config"], block["chart"]["series"]
    assert (axes["x_label"], axes["y_label"]) == ("UTC", "ms")
    assert axes["categories"] == [f"{START + datetime.timedelta(hours=i):%H:%M}" for i in range(16, 36)]
    assert [p["value"] for p in measured["data"]] == pytest.approx([round(level(i, [(30, 1.2)]), 4) for i in range(16, 36)], rel=1e-6)
    before, after = [{p["value"] for p in levels["data"][part]} for part in (slice(14), slice(14, None))]
    assert len(before) == len(after) == 1 and before.pop() * 1.15 < after.pop()


@pytest.mark.parametrize("webhook", [False, True])
def test_a_slack_that_knows_no_charts(hunter, tmp_path, slack, webhook):
    write_csv(tmp_path / "read.csv", [(30, 1.2)])
    section = f'slack: {{webhook_url: "{slack.webhook}"}}' if webhook else bot(slack)
    path = config(tmp_path, csv_test(tmp_path / "read.csv"), section)
    slack.charts = False
    assert hunter("run", "--once", "--config", path).code == 0
    assert slack.refused == ["invalid_blocks"]
    assert [b["type"] for b in slack.posts[0]["blocks"]] == ["section", "divider", "section", "section"], slack.posts


def test_no_chart_if_none_is_wanted(hunter, tmp_path, slack):
    write_csv(tmp_path / "read.csv", [(30, 1.2)])
    path = config(tmp_path, csv_test(tmp_path / "read.csv"), bot(slack).replace("{", "{picture: none, ", 1))
    assert hunter("run", "--once", "--config", path).code == 0
    assert slack.posts and charts_of(slack.posts[0]) == []


def test_many_changes_within_the_limits(hunter, tmp_path, slack):
    names = [f"m{i:02d}" for i in range(60)]
    with open(tmp_path / "wide.csv", "w", newline="") as out:
        rows = csv.writer(out)
        rows.writerow(["time", *names])
        for i in range(60):
            rows.writerow([(START + datetime.timedelta(hours=i)).isoformat(),
                           *(f"{level(i + 97 * j, [(30 + 97 * j, 1.2)]):.4f}" for j in range(60))])
    tests = "".join(f"""
  suite.test-{t:02d}:
    type: csv
    file: {tmp_path}/wide.csv
    metrics: [{", ".join(names)}]
""" for t in range(40))
    assert hunter("run", "--once", "--config", config(tmp_path, tests, bot(slack))).code == 0
    head, *replies = slack.posts
    summary = head["blocks"][0]["text"]["text"]
    assert re.match(r"\*2400 improvements in (suite\.test-\d\d, ){2}suite\.test-\d\d and 37 more tests\* since <!date", summary) and "The 20 worst are shown; " in summary
    assert len(replies) == 9 and all(r["thread_ts"] == slack.stamps[0] for r in replies)
    shown = [str(post["blocks"]).count("_circle: ") for post in slack.posts]
    in_thread, left_out = map(int, re.search(r"; (\d+) more are in the thread; (\d+) are left out", summary).groups())
    assert shown[0] == 20 and sum(shown[1:]) == in_thread and 20 + in_thread + left_out == 2400
    assert "`hunter-c changes`" in summary


# The agent.


def test_agent_tells_once_and_not_after_a_restart(agents, tmp_path, slack):
    write_csv(tmp_path / "read.csv", [(30, 1.2)])
    path = config(tmp_path, csv_test(tmp_path / "read.csv"), bot(slack))
    agent = agents(path)
    slack.wait(lambda: slack.posts)
    agent.wait_log("msg=sent")
    agent.pass_by()
    assert agent.end() == 0
    again = agents(path)
    again.pass_by()
    assert again.end(signal.SIGINT) == 0
    assert len(slack.posts) == 1


def test_agent_sees_what_is_added(agents, tmp_path, slack):
    write_csv(tmp_path / "read.csv", [(30, 0.8)])
    path = config(tmp_path, csv_test(tmp_path / "read.csv"), bot(slack))
    agent = agents(path)
    slack.wait(lambda: len(slack.posts) == 1)
    write_csv(tmp_path / "new.csv", [(30, 0.8), (65, 1.2)], points=110)
    shutil.move(tmp_path / "new.csv", tmp_path / "read.csv")
    slack.wait(lambda: len(slack.posts) == 2)
    agent.pass_by()
    assert len(slack.posts) == 2
    assert [line for f in fields(slack.posts[1]) for line in f.splitlines() if "p99" in line][0].startswith(
        ":red_circle: p99: +20%")
    assert agent.end() == 0


def test_metrics_and_health(agents, tmp_path, slack):
    write_csv(tmp_path / "read.csv", [(30, 1.2)])
    path = config(tmp_path, csv_test(tmp_path / "read.csv"), bot(slack))
    agent = agents(path)
    agent.wait_log("msg=sent")
    agent.pass_by(1)
    status, text = agent.get("/metrics")
    assert status == 200 and CANARY not in text
    promtool = shutil.which("promtool")
    if promtool:
        done = subprocess.run([promtool, "check", "metrics"], input=text, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr + done.stdout
    assert agent.metric("hunter_tests") == 1
    assert agent.metric("hunter_delivery_queue_length") == 0
    assert re.search(r'^hunter_deliveries_total{receiver="slack",result="sent"} 1$', text, re.M)
    assert re.search(r'^hunter_changes{state="confirmed"} 1$', text, re.M)
    assert agent.get("/-/healthy")[0] == 200 and agent.get("/-/ready")[0] == 200
    assert agent.end() == 0


@pytest.mark.state_file
def test_passes_without_news_write_nothing(agents, tmp_path, slack):
    """An agent that finds nothing new leaves the disk alone."""
    write_csv(tmp_path / "read.csv", [(30, 1.2)])
    agent = agents(config(tmp_path, csv_test(tmp_path / "read.csv"), bot(slack)))
    agent.wait_log("msg=sent")
    agent.pass_by(1)
    before = [(tmp_path / name).read_bytes() for name in ("state.db", "state.db-wal")]
    agent.pass_by()
    assert [(tmp_path / name).read_bytes() for name in ("state.db", "state.db-wal")] == before
    assert agent.end() == 0


def test_what_was_sent_is_forgotten_after_ninety_days(hunter, tmp_path, slack):
    write_csv(tmp_path / "read.csv", [(30, 1.2)])
    path = config(tmp_path, csv_test(tmp_path / "read.csv"), bot(slack))
    assert hunter("run", "--once", "--config", path).code == 0
    for days, left in ((89, 1), (91, 0)):
        with open_state(tmp_path) as state:
            state.execute("UPDATE deliveries SET updated = ?", (int(time.time() - days * 86400) * 1000,))
        assert hunter("run", "--once", "--config", path).code == 0
        with open_state(tmp_path) as state:
            assert state.execute("SELECT count(*) FROM deliveries").fetchone() == (left,)
            assert state.execute("SELECT count(*) FROM changes").fetchone() == (1,)
    assert len(slack.posts) == 1


# What does not end.


def test_pipes_without_writers_hold_up_nothing(agents, tmp_path, slack):
    write_csv(tmp_path / "read.csv", [(30, 1.2)])
    tests = csv_test(tmp_path / "read.csv")
    for i in range(5):
        os.mkfifo(tmp_path / f"pipe{i}")
        tests += csv_test(tmp_path / f"pipe{i}", f"pipe{i}")
    agent = agents(config(tmp_path, tests, bot(slack), "  read_timeout: 300ms"))
    agent.wait_log("test=pipe0 .*(pipe0: not read completely within 300ms|read timed out after 600ms)")
    slack.wait(lambda: slack.posts)
    agent.pass_by(12)
    assert agent.end() == 0


def test_files_that_hang_for_minutes_hold_up_others_for_seconds(agents, tmp_path):
    write_csv(tmp_path / "read.csv", [])
    tests = csv_test(tmp_path / "read.csv")
    for i in range(12):
        os.mkfifo(tmp_path / f"pipe{i}")
        tests += csv_test(tmp_path / f"pipe{i}", f"pipe{i}")
    agent = agents(config(tmp_path, tests))
    agent.wait_metric("hunter_missed_runs_total", 12)  # they count though no run of theirs has ended
    agent.wait_metric("hunter_runs_total", 4)
    assert agent.end() == 0


def test_a_pipe_with_a_writer(hunter, tmp_path):
    write_csv(tmp_path / "read.csv", [(30, 1.2)])
    os.mkfifo(tmp_path / "pipe")
    with open(tmp_path / "read.csv", "rb") as data:
        writer = subprocess.Popen(["tee", tmp_path / "pipe"], stdin=data, stdout=subprocess.DEVNULL)
    first = hunter("run", "--once", "--config", config(tmp_path, csv_test(tmp_path / "pipe")))
    assert writer.wait(LONGEST) == 0 and first.code == 0 and "+20%" in first.out


@pytest.mark.parametrize("what", ["pipe", "calculation"])
def test_the_end_waits_for_nothing_that_does_not_end(agents, tmp_path, what):
    if what == "pipe":
        os.mkfifo(tmp_path / "data")
    else:
        write_csv(tmp_path / "data", [(i, 1.1) for i in range(500, 20000, 1000)], points=20000)
    tests = csv_test(tmp_path / "data", "slow", "    detection: {detector: edivisive_permutation}")
    agent = agents(config(tmp_path, tests))
    if what == "pipe":
        writer = wait(lambda: os.open(tmp_path / "data", os.O_WRONLY | os.O_NONBLOCK), passing=OSError)  # which takes somebody who reads
    else:
        agent.wait(lambda: agent.metric("process_cpu_seconds_total") > 0.5)  # it is at it
    assert agent.metric("hunter_runs_total") == 0
    assert agent.end() == 0
    assert "exiting without waiting" in "".join(agent.log)
    if what == "pipe":
        os.close(writer)


def test_nobody_reads_the_log(program, tmp_path):
    tests = "".join(csv_test(tmp_path / "missing.csv", f"db.read{i}") for i in range(80))
    out, into = os.pipe()
    fcntl.fcntl(into, fcntl.F_SETPIPE_SZ, 4096)
    path, port = config(tmp_path, tests), servers.free_port()
    path.write_text(path.read_text().replace("127.0.0.1:0", f"127.0.0.1:{port}"))
    process = subprocess.Popen([program, "run", "--config", path], stderr=into)

    def runs():
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=LONGEST) as answer:
            return sum(float(n) for n in re.findall(r"^hunter_runs_total\{.*\} (\S+)$", answer.read().decode(), re.M))

    os.close(into)
    try:
        wait(lambda: runs() >= 2 * 80, passing=OSError)  # there is much more to say than there is room for
        process.terminate()
        assert process.wait(LONGEST) == 0
    finally:
        process.kill()
        process.wait()
        os.close(out)


def test_nobody_reads_what_is_printed(program, tmp_path):
    write_csv(tmp_path / "read.csv", [(30, 1.2)])
    path = config(tmp_path, "".join(csv_test(tmp_path / "read.csv", f"db.read{i}") for i in range(80)))
    path.write_text(path.read_text().replace("group_wait: 0s", "group_wait: 2s"))  # one message of 10 KB
    out, into = os.pipe()
    fcntl.fcntl(into, fcntl.F_SETPIPE_SZ, 4096)
    log = tmp_path / "log"
    with open(log, "w") as err:
        process = subprocess.Popen([program, "run", "--config", path], stdout=into, stderr=err)
    os.close(into)
    try:
        select.select([out], [], [], LONGEST)
        port = re.search(r"msg=started.* port=(\d+)", log.read_text())[1]
        for _ in range(3):
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/-/healthy", timeout=LONGEST) as answer:
                assert answer.status == 200
        process.send_signal(signal.SIGTERM)  # what is being sent has a grace
        wait(lambda: "msg=stopping" in log.read_text())
        assert process.poll() is None
        process.send_signal(signal.SIGTERM)
        assert process.wait(LONGEST) == 0
    finally:
        process.kill()
        process.wait()
        os.close(out)
    again = subprocess.run([program, "run", "--once", "--config", path], capture_output=True, text=True)
    assert again.returncode == 0 and again.stdout.count("\n  db.read") == 80  # it was queued, and is told whole


def test_slack_down_then_up(agents, tmp_path, slack):
    write_csv(tmp_path / "read.csv", [(30, 1.2)])
    path = config(tmp_path, csv_test(tmp_path / "read.csv"), bot(slack))
    slack.stop()
    agent = agents(path)
    agent.wait_metric("hunter_deliveries_total", 2)
    slack.start()
    slack.wait(lambda: slack.posts)
    agent.wait_log("msg=sent")
    agent.pass_by()
    assert agent.end() == 0
    assert len(slack.posts) == 1


def test_kill_while_the_group_waits(agents, tmp_path, slack):
    write_csv(tmp_path / "read.csv", [(30, 1.2)])
    path = config(tmp_path, csv_test(tmp_path / "read.csv"), bot(slack))
    path.write_text(path.read_text().replace("group_wait: 0s", "group_wait: 1h"))
    agent = agents(path)
    agent.wait_log("msg=changes.*new=1")
    assert agent.end(signal.SIGKILL) == -signal.SIGKILL
    assert slack.posts == []
    path.write_text(path.read_text().replace("group_wait: 1h", "group_wait: 0s"))
    again = agents(path)
    again.wait_log("msg=sent")
    again.pass_by()
    assert again.end() == 0
    assert len(slack.posts) == 1


@pytest.mark.parametrize("mode", ["hang", "accept_then_hang"])
def test_kill_while_sending(agents, tmp_path, slack, mode):
    """Killed between the first byte and the answer: after the restart Slack is asked, and told if it does not know."""
    write_csv(tmp_path / "read.csv", [(30, 1.2)])
    path = config(tmp_path, csv_test(tmp_path / "read.csv"), bot(slack))
    setattr(slack, mode, True)
    agent = agents(path)
    slack.wait(lambda: slack.refused or slack.posts)
    assert agent.end(signal.SIGKILL) == -signal.SIGKILL
    setattr(slack, mode, False)
    again = agents(path)
    again.wait_log("msg=sent")
    again.pass_by()
    assert again.end() == 0
    assert len(slack.posts) == 1
    assert len({p["metadata"]["event_payload"]["key"] for p in slack.posts}) == 1


def quick_bot(slack):
    return bot(slack).replace("{", "{timeout: 3s, ", 1)


def test_accepted_but_not_answered(agents, tmp_path, slack):
    """Slack takes the message and never says so: it is looked for and not posted again."""
    write_csv(tmp_path / "read.csv", [(30, 1.2)])
    slack.accept_then_hang = True
    agent = agents(config(tmp_path, csv_test(tmp_path / "read.csv"), quick_bot(slack)))
    agent.wait_log("will retry.*no complete response.*wait_ms=3000")
    slack.accept_then_hang = False
    agent.wait_log("msg=sent")
    agent.pass_by(1)
    assert agent.end() == 0
    assert len(slack.posts) == 1
    assert slack.looks == ["users.conversations", "users.conversations", "conversations.history"]


def test_a_connection_that_is_closed_instead_of_answered(hunter, tmp_path, slack):
    """The first message is answered; the second is read whole, and the connection, kept until then, is closed."""
    write_csv(tmp_path / "read.csv", [(30, 1.2), (70, 1.3), (110, 1.2)], points=150)
    slack.close_after = {2}
    path = config(tmp_path, csv_test(tmp_path / "read.csv"), bot(slack, channels="#perf"))
    assert hunter("run", "--once", "--config", path).code == 0
    assert slack.refused == []
    assert len(slack.posts) == 3
    assert len({p["metadata"]["event_payload"]["key"] for p in slack.posts}) == 3


def test_a_bot_that_may_not_look_posts_again(hunter, tmp_path, slack):
    write_csv(tmp_path / "read.csv", [(30, 1.2), (70, 1.3), (110, 1.2)], points=150)
    slack.close_after = {1, 3}
    slack.scopes.remove("channels:history")
    path = config(tmp_path, csv_test(tmp_path / "read.csv"), bot(slack))
    done = hunter("run", "--once", "--config", path)
    assert done.code == 0
    assert done.err.count("cannot check whether") == 1 and "missing_scope: channels:history" in done.err
    keys = [p["metadata"]["event_payload"]["key"] for p in slack.posts]
    assert len(keys) == 5 and len(set(keys)) == 3


def test_a_webhook_waits_before_it_posts_again(hunter, tmp_path, slack):
    write_csv(tmp_path / "read.csv", [(30, 1.2)])
    slack.close_after = {1}
    path = config(tmp_path, csv_test(tmp_path / "read.csv"), f'slack: {{webhook_url: "{slack.webhook}"}}')
    first = hunter("run", "--once", "--config", path)
    assert first.code == 3 and "wait_ms=60000" in first.err and "remain queued" in first.err
    assert len(slack.posts) == 1


def age_the_outbox(tmp_path, days):
    with open_state(tmp_path) as state:
        assert state.execute("UPDATE deliveries SET created = created - ? * 86400000 WHERE state = 1", (days,)).rowcount == 1


def test_what_waited_for_days_is_not_thrown_away(hunter, agents, tmp_path, slack):
    """Only time spent trying counts, not time in which nobody tried."""
    write_csv(tmp_path / "read.csv", [(30, 1.2)])
    path = config(tmp_path, csv_test(tmp_path / "read.csv"), bot(slack))
    slack.stop()
    assert hunter("run", "--once", "--config", path).code == 3
    age_the_outbox(tmp_path, 3)
    again = hunter("run", "--once", "--config", path)
    assert again.code == 3 and "given up" not in again.err
    agent = agents(path)
    agent.wait_log("will retry")
    slack.start()
    agent.wait_log("msg=sent")
    assert agent.end() == 0
    assert len(slack.posts) == 1


def test_kills_at_any_moment(agents, tmp_path, slack):
    """Each time there is one more change, and each time the agent dies a little later: all is told, and once."""
    kills = 12
    slack.slow = (0.05, 0.3)
    steps = []
    for kill in range(kills):
        steps.append((40 * (kill + 1), 1.2))
        write_csv(tmp_path / "new.csv", steps, points=40 * (kill + 2))
        shutil.move(tmp_path / "new.csv", tmp_path / "read.csv")
        path = config(tmp_path, csv_test(tmp_path / "read.csv"), bot(slack))
        agent = agents(path)
        pause(0.012 * kill, "the moment of the kill")
        assert agent.end(signal.SIGKILL) == -signal.SIGKILL
    last = agents(path)
    slack.wait(lambda: len({c for p in slack.posts for c in p["metadata"]["event_payload"]["changes"]}) == kills)
    last.wait(lambda: last.metric("hunter_delivery_queue_length") == 0)
    assert last.end() == 0
    keys = [p["metadata"]["event_payload"]["key"] for p in slack.posts]
    told = {c for p in slack.posts for c in p["metadata"]["event_payload"]["changes"]}
    times = {t for p in slack.posts for t in re.findall(r"2024-\d\d-\d\d \d\d:00:00", str(p))}
    assert len(told) == len(times) == kills
    assert len(keys) == len(set(keys))


def test_sigterm_while_sending_waits_for_the_answer(agents, tmp_path, slack):
    write_csv(tmp_path / "read.csv", [(30, 1.2)])
    path = config(tmp_path, csv_test(tmp_path / "read.csv"), bot(slack))
    slack.delay = 1.5
    agent = agents(path)
    slack.wait(lambda: slack.posts)
    assert agent.end() == 0
    slack.delay = 0
    again = agents(path)
    again.pass_by()
    assert again.end() == 0
    assert len(slack.posts) == 1


def test_sigterm_twice_while_sending(agents, tmp_path, slack):
    """The second one does not wait for the answer any more; the next agent looks whether the message is there."""
    write_csv(tmp_path / "read.csv", [(30, 1.2)])
    path = config(tmp_path, csv_test(tmp_path / "read.csv"), bot(slack))
    slack.accept_then_hang = True
    agent = agents(path)
    slack.wait(lambda: slack.posts)
    agent.process.send_signal(signal.SIGTERM)
    agent.wait_log("msg=stopping")
    assert agent.end() == 0
    assert not any(re.search("msg=sent|delivery failed", line) for line in agent.log)
    slack.accept_then_hang = False
    again = agents(path)
    again.wait_log("msg=sent")
    assert again.end() == 0
    assert len(slack.posts) == 1


def test_only_what_was_begun_is_looked_for(agents, hunter, tmp_path, slack):
    """Of several messages in a queue the first was on its way when the agent was killed."""
    path = config(tmp_path, csv_test(tmp_path / "read.csv"), bot(slack))
    write_csv(tmp_path / "read.csv", [(40, 1.2), (80, 1.2), (120, 1.2)], points=160)
    slack.hang = True
    agent = agents(path)
    slack.wait(lambda: slack.refused)
    assert agent.metric("hunter_delivery_queue_length") == 3
    agent.end(signal.SIGKILL)
    slack.hang = False
    slack.looks.clear()
    assert run_once(hunter, path).code == 0
    assert len(slack.posts) == 3
    assert slack.looks.count("conversations.history") == 1


def test_sigterm_does_not_wait_for_a_source(agents, tmp_path):
    """A server that takes the question and never answers: the agent ends at once all the same."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        path = config(tmp_path, """
  checkout: {type: prometheus, query: up}
""", f'prometheus: {{url: "http://127.0.0.1:{server.getsockname()[1]}"}}')
        agent = agents(path)
        server.settimeout(LONGEST)
        connection, _ = server.accept()
        with connection:
            assert connection.recv(1000)
            assert agent.end() == 0
            assert not any("checkout" in line for line in agent.log), "it has waited for the end of the request"


@pytest.mark.state_file
def test_second_agent_on_the_same_state(agents, hunter, tmp_path):
    write_csv(tmp_path / "read.csv", [])
    path = config(tmp_path, csv_test(tmp_path / "read.csv"))
    agent = agents(path)
    agent.wait_log("msg=started")
    second = hunter("run", "--once", "--config", path)
    assert second.code == 4 and f"in use by another hunter-c (process {agent.process.pid})" in second.err
    assert agent.end() == 0
    assert hunter("run", "--once", "--config", path).code == 0


@pytest.mark.state_file
def test_state_that_is_locked_for_a_while(agents, tmp_path, slack):
    """What cannot be recorded is not told; it is told once the state store available again."""
    write_csv(tmp_path / "read.csv", [])
    path = config(tmp_path, csv_test(tmp_path / "read.csv"), bot(slack))
    agent = agents(path)
    agent.pass_by(1)
    with open_state(tmp_path) as other:
        other.execute("BEGIN IMMEDIATE")
        write_csv(tmp_path / "new.csv", [(30, 1.2)])
        shutil.move(tmp_path / "new.csv", tmp_path / "read.csv")
        agent.wait_log("state store unavailable.*locked")
        status, text = agent.get("/-/ready")
        assert status == 503 and "locked" in text and agent.get("/-/healthy")[0] == 200
        assert slack.posts == []
        other.execute("ROLLBACK")
    slack.wait(lambda: slack.posts)
    agent.wait_log("msg=sent")
    assert agent.get("/-/ready")[0] == 200
    agent.pass_by(1)
    assert agent.end() == 0
    assert len(slack.posts) == 1


def test_port_that_is_taken(agents, hunter, tmp_path, slack):
    write_csv(tmp_path / "read.csv", [])
    path = config(tmp_path, csv_test(tmp_path / "read.csv"))
    path.write_text(path.read_text().replace("127.0.0.1:0", f"127.0.0.1:{slack.port}"))
    done = hunter("run", "--config", path)
    assert done.code == 4 and str(slack.port) in done.err


def test_a_test_that_fails_is_told_once_and_again_when_well(agents, tmp_path):
    write_csv(tmp_path / "read.csv", [])
    path = config(tmp_path, csv_test(tmp_path / "read.csv") + csv_test(tmp_path / "late.csv", "db.late"))
    agent = agents(path)
    agent.wait_log("msg=\"test failed\" test=db.late")
    agent.wait_metric("hunter_run_failures_total", 3)
    write_csv(tmp_path / "late.csv", [])
    agent.wait_log("recovered.*db.late")
    assert agent.end() == 0
    assert len([line for line in agent.log if "test failed" in line]) == 1


# The main job, whole: a real Prometheus, a strict Slack.


def history():
    """Three regions, a point a minute; in two of them latency rises at the same minute."""
    rows = []
    for region, base, steps in (("eu", 0.2, [(150, 1.15)]), ("us", 0.3, [(150, 1.25)]), ("ap", 0.25, [])):
        rows += [({"job": "checkout", "region": region}, f"{level(i, steps, base):.6f}", int(START.timestamp()) + 60 * i)
                 for i in range(300)]
    return servers.openmetrics({"checkout_seconds": rows})


def test_windows_do_not_slide_with_each_run(agents, tmp_path):
    """The start that the server is asked for stays where it is from run to run and over a restart."""
    asked = []

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            address = urllib.parse.urlsplit(self.path)
            result = []
            if address.path == "/api/v1/query_range":
                query = {k: float(v) for k, v in urllib.parse.parse_qsl(address.query) if k in ("start", "end", "step")}
                asked.append(query)
                times = range(int(query["start"]), int(query["end"]), int(query["step"]))  # the newest is still to come
                result = [{"metric": {"__name__": "up"}, "values": [[t, str(100 + t // 60 % 7)] for t in times]}]
            data = json.dumps({"status": "success", "data": {"resultType": "matrix", "result": result}}).encode()
            self.send_response(200)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, *_):
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()
        path = config(tmp_path, """
  checkout: {type: prometheus, query: up, range: 20h, step: 1m}
""", f'prometheus: {{url: "http://127.0.0.1:{server.server_address[1]}"}}')
        for _ in range(2):
            agent = agents(path)
            agent.pass_by(3)
            assert agent.end() == 0
        server.shutdown()
    asked = [a for a in asked if a["end"] - a["start"] > 3600]  # what is asked to know the server is shorter
    assert len(asked) >= 6
    assert len({a["start"] for a in asked}) == 1
    assert 20 * 3600 - 60 <= asked[0]["end"] - asked[0]["start"] <= 20 * 3600 + 60


def test_prometheus_to_slack(agents, tmp_path, slack):
    with servers.prometheus(tmp_path, history()) as prometheus:
        path = config(tmp_path, """
  checkout.latency:
    type: prometheus
    query: checkout_seconds
    range: 3650d
    metrics: {checkout: {direction: -1, unit: s}}
""", bot(slack) + f'\nprometheus: {{url: "{prometheus.url}"}}')
        agent = agents(path)
        slack.wait(lambda: slack.posts)
        agent.wait_log("msg=sent")
        agent.pass_by()
        text = "\n".join(fields(slack.posts[0]))
        assert len(slack.posts) == 1
        assert "2024-03-01 02:30:00 +0000" in str(slack.posts[0])
        assert re.search(r":red_circle: .*eu.*: \+15%", text) and re.search(r":red_circle: .*us.*: \+25%", text)
        assert '"ap"' not in text
        assert agent.end() == 0

        again = agents(path)
        again.pass_by()
        prometheus.stop()
        again.wait_log("test failed")
        again.wait_metric("hunter_run_failures_total", 2)
        assert again.end() == 0
    assert len(slack.posts) == 1


def test_more_series_than_are_watched(hunter, tmp_path):
    """The same are kept from run to run, and the log says that others are not."""
    names = ["a", "b", "c"]
    rows = [f"2024-03-01 {i:02}:00:00 +0000," + ",".join(["1" if i < 12 else "2"] * 3) for i in range(24)]
    (tmp_path / "wide.csv").write_text("\n".join(["time," + ",".join(names)] + rows) + "\n")
    path = tmp_path / "hunter.yaml"
    path.write_text(f"""
agent: {{state: {state_of(tmp_path)}, max_age: never}}
tests:
  wide:
    type: csv
    file: {tmp_path}/wide.csv
    metrics: [c, b, a]
    max_series: 2
""")
    for _ in range(2):
        done = hunter("run", "--once", "--config", path)
        assert done.code == 0, done.err
        assert "1 series dropped: max_series (2) exceeded; known series are kept first" in done.err
        changes = json.loads(hunter("changes", "--config", path, "--output", "json").out)["changes"]
        assert sorted(c["metric"] for c in changes) == ["a", "b"]
