"""Silences and mute times of a running agent: what they hold, and the one message when they are over."""
import json
import os
import re
import signal
import subprocess

import pytest
from agent import bot, config, csv_test, write_csv
from waiting import LONGEST, pause


def text_of(post):
    return post["text"] + json.dumps(post["blocks"])


@pytest.fixture
def cli(program):
    def run(agent, *arguments):
        done = subprocess.run([program, *arguments, "--agent", agent.address()], capture_output=True, text=True, timeout=LONGEST)
        assert done.returncode == 0, done.stderr
        return done.stdout
    return run


def test_silence_change_end_summary(agents, cli, program, tmp_path, slack):
    write_csv(tmp_path / "read.csv", [])
    write_csv(tmp_path / "other.csv", [(30, 1.3)])
    path = config(tmp_path, csv_test(tmp_path / "read.csv", "db.read") + csv_test(tmp_path / "other.csv", "web"), bot(slack))
    agent = agents(path)
    slack.wait(lambda: len(slack.posts) == 1)
    assert "web" in text_of(slack.posts[0])
    added = cli(agent, "silence", "add", "test=~'db.*', direction=regression", "--for", "2h", "--owner", "ann", "--reason", "migration")
    assert 'test=~"db.*", direction="regression"' in added
    write_csv(tmp_path / "read.csv", [(30, 1.2)])
    agent.wait(lambda: agent.metric("hunter_silenced_changes") == 1)
    agent.pass_by()
    assert len(slack.posts) == 1
    assert 'hunter_silences{state="active"} 1' in agent.get("/metrics")[1]
    why = subprocess.run([program, "why", "db.read", "p99", "--config", path], capture_output=True, text=True, timeout=LONGEST)
    assert re.search(r"verdict: held back by a silence.*: silence 1 of ann until .*: migration", why.stdout), why.stdout
    document = json.loads(subprocess.run([program, "why", "db.read", "p99", "--config", path, "--output", "json"],
                                         capture_output=True, text=True, timeout=LONGEST).stdout)
    assert document["verdict"] == "silence" and document["silence"]["reason"] == "migration" and document["mute_time"] is None

    agent.end(signal.SIGKILL)
    agent = agents(path)
    agent.wait(lambda: agent.metric("hunter_silenced_changes") == 1)
    agent.pass_by()
    assert len(slack.posts) == 1
    cli(agent, "silence", "end", "1")
    slack.wait(lambda: len(slack.posts) == 2)
    told = text_of(slack.posts[1])
    assert "silence 1 of ann was ended by" in told and "migration" in told and "db.read" in told
    agent.wait(lambda: agent.metric("hunter_silenced_changes") == 0)
    assert agent.end() == 0
    again = agents(path)
    again.pass_by()
    assert again.end() == 0
    assert len(slack.posts) == 2


def test_a_silence_ends_by_itself(agents, cli, tmp_path, slack):
    write_csv(tmp_path / "read.csv", [])
    agent = agents(config(tmp_path, csv_test(tmp_path / "read.csv"), bot(slack)))
    agent.pass_by()
    cli(agent, "silence", "add", "metric=p99", "--for", "6s", "--owner", "ann", "--reason", "new disks")
    write_csv(tmp_path / "read.csv", [(30, 1.2)])
    slack.wait(lambda: any("is over: new disks" in text_of(post) for post in slack.posts))
    told = [post for post in slack.posts if "db.read" in text_of(post) and "p99: +20%" in text_of(post)]
    assert len(told) == 1 and "silence 1 of ann is over: new disks" in text_of(told[0])
    assert agent.end() == 0


def test_a_mute_time_of_a_group_until_a_reload(agents, tmp_path, slack):
    """The mute time holds always, so the clock of this machine does not matter."""
    write_csv(tmp_path / "read.csv", [(30, 1.2)])
    path = config(tmp_path, csv_test(tmp_path / "read.csv"), bot(slack) + """
mute_times:
  always: {weekdays: ["sunday:saturday"], location: Europe/Berlin}
test_groups:
  storage: {tests: [db.read], mute: [always]}
""")
    agent = agents(path)
    agent.wait(lambda: agent.metric("hunter_silenced_changes") == 1)
    agent.pass_by()
    assert slack.posts == []
    path.write_text(path.read_text().replace(", mute: [always]", ""))
    agent.process.send_signal(signal.SIGHUP)
    slack.wait(lambda: len(slack.posts) == 1)
    assert "db.read" in text_of(slack.posts[0])
    assert agent.end() == 0


def test_notices_are_held(agents, cli, tmp_path, slack):
    path = config(tmp_path, csv_test(tmp_path / "missing.csv"), bot(slack))
    write_csv(tmp_path / "missing.csv", [])
    agent = agents(path)
    agent.pass_by()
    cli(agent, "silence", "add", "source=csv", "--for", "1h", "--reason", "the disk is replaced")
    (tmp_path / "missing.csv").unlink()
    agent.wait_log("msg=\"notice held\".*missing.csv")
    assert slack.posts == []
    cli(agent, "silence", "end", "1")
    slack.wait(lambda: len(slack.posts) == 1)
    assert "missing.csv" in text_of(slack.posts[0])
    assert agent.end() == 0


def test_killed_around_the_end(agents, cli, tmp_path, slack):
    """kill -9 at another moment each time, from the end of the silence to behind its message: nothing is lost, and nothing is told
    twice, as Slack can be asked what has arrived. HUNTER_TEST_FULL makes 50 kills of it."""
    rounds = 50 if os.environ.get("HUNTER_TEST_FULL") else 12
    for i in range(rounds):
        write_csv(tmp_path / f"{i}.csv", [])
    path = config(tmp_path, "".join(csv_test(tmp_path / f"{i}.csv", f"round{i:02d}") for i in range(rounds)), bot(slack))
    agent = agents(path)
    for i in range(rounds):
        agent.pass_by(rounds)
        cli(agent, "silence", "add", f"test=round{i:02d}", "--for", "1h", "--owner", "ann", "--reason", f"reason {i:02d}")
        write_csv(tmp_path / f"{i}.csv", [(30, 1.2)])
        agent.wait(lambda: agent.metric("hunter_silenced_changes") == 1)
        cli(agent, "silence", "end", str(i + 1))
        pause(i * 0.1 / rounds, "the moment of the kill")
        agent.end(signal.SIGKILL)
        agent = agents(path)
        slack.wait(lambda i=i: any(f"round{i:02d}" in text_of(post) for post in slack.posts))
    agent.pass_by(rounds)
    told = [text_of(post) for post in slack.posts]
    for i in range(rounds):
        about = [text for text in told if f"round{i:02d}" in text]
        assert len(about) == 1 and f"silence {i + 1} of ann was ended by" in about[0] and f"reason {i:02d}" in about[0], about
    assert len(told) == rounds
    assert agent.end() == 0
