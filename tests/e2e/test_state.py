"""The state file: what people can ask it (`changes`, `store`), and an agent whose state cannot be had for a while.

Whatever happens to the file, nothing is told that is not recorded, /-/ready says so, and all goes on by itself.
"""
import contextlib
import csv
import io
import json
import os
import re
import resource
import shutil
import sqlite3
import subprocess

import pytest
import state_address
from agent import bot, config, csv_test, write_csv
from state_address import open_state, state_of
from waiting import pause

LOCKED = 30 if os.environ.get("HUNTER_TEST_FULL") else 0


def files(path):
    return sorted(p.name for p in path.iterdir() if p.name.startswith("state.db"))


def replace_csv(tmp_path, steps, points=60):
    write_csv(tmp_path / "new.csv", steps, points)
    shutil.move(tmp_path / "new.csv", tmp_path / "read.csv")


def known(hunter, path, *arguments):
    done = hunter("changes", "--config", path, "--output", "json", *arguments)
    assert done.code == 0, done.err
    return json.loads(done.out)["changes"]


@pytest.fixture
def told(hunter, tmp_path):
    """A configuration whose state holds one change that was told: its path."""
    write_csv(tmp_path / "read.csv", [(30, 1.2)])
    path = config(tmp_path, csv_test(tmp_path / "read.csv"))
    assert hunter("run", "--once", "--config", path).code == 0
    return path


# changes


def test_changes_as_a_table(hunter, told, tmp_path):
    before = files(tmp_path)
    done = hunter("changes", "--config", told)
    assert done.code == 0 and done.err == ""
    head, dashes, row = done.out.splitlines()
    assert re.split(r"\s{2,}", head.strip()) == ["id", "time", "test", "metric", "before", "after", "change %", "p", "last good",
                                                "first bad", "suspects", "state", "announced", "triage", "incident"]
    number, *cells = re.split(r"\s{2,}", row.strip())
    assert number == "1"
    assert cells[:3] == ["2024-03-02 06:00:00 +0000", "db.read", "p99"]
    assert 19 < float(cells[5]) < 21 and cells[7:11] == ["c0029", "c0030", "1", "confirmed"]
    assert re.fullmatch(r"20\d\d-\d\d-\d\d \d\d:\d\d:\d\d \+0000", cells[11]) and cells[12:14] == ["open", "i1"]
    assert files(tmp_path) == before == (["state.db", "state.db.lock"] if state_address.KIND == "file" else [])


def test_changes_of_an_incident(hunter, told):
    assert hunter("changes", "--config", told, "--incident", "i1").out.count("db.read") == 1
    done = hunter("changes", "--config", told, "--incident", "i99")
    assert (done.code, done.out) == (2, "") and "there is no incident i99" in done.err


def test_changes_as_csv_and_json(hunter, told, tmp_path):
    rows = list(csv.DictReader(io.StringIO(hunter("changes", "--state-file", state_of(tmp_path), "--output", "csv").out)))
    change, = known(hunter, told)
    assert [rows[0][k] for k in ("test", "metric", "commit_before", "commit_after", "state", "regression")] == [
        "db.read", "p99", "c0029", "c0030", "confirmed", "yes"]
    assert float(rows[0]["mean_after"]) == change["mean_after"] and rows[0]["announced"] == change["announced"]
    assert [e["event"] for e in change["history"]] == ["found", "announced"]
    assert change["history"][1]["receiver"] == "stdout"
    assert change["time"] == "2024-03-02T06:00:00Z" and change["unit"] == "ms" and change["regression"] is True


def test_changes_as_csv_hold_no_formulas(hunter, told, tmp_path):
    """The state knows the branch and the commit as they are; only what is printed is guarded."""
    path = state_of(tmp_path)
    with open_state(tmp_path) as db:
        db.execute("UPDATE changes SET commit_after = '=1+1', commit_before = '-5'")
    row, = csv.DictReader(io.StringIO(hunter("changes", "--state-file", path, "--output", "csv").out))
    assert (row["commit_before"], row["commit_after"]) == ("-5", "'=1+1")


def test_changes_that_are_asked_for(hunter, told, tmp_path):
    write_csv(tmp_path / "read.csv", [])
    assert hunter("run", "--once", "--config", told).code == 0
    change, = known(hunter, told)
    assert change["state"] == "withdrawn" and [e["event"] for e in change["history"]] == ["found", "announced", "withdrawn"]
    assert len(known(hunter, told, "--state", "withdrawn,moved")) == 1
    assert known(hunter, told, "--state", "confirmed") == []
    assert len(known(hunter, told, "--since", "2024-03-02 06:00", "--test", "db.*")) == 1
    assert known(hunter, told, "--until", "2024-03-02 06:00") == []
    assert known(hunter, told, "--test", "db") == []


def test_changes_of_a_test_that_is_not_there(hunter, told, tmp_path):
    """Nothing is listed as there is no such test, or as it has no such change: only the first is a slip."""
    for flags, words in ((["--config", told, "--test", "db.raed"], "test=db.raed did_you_mean=db.read"),
                         (["--config", told, "--test", "web.*"], "test=web.*"),
                         (["--state-file", state_of(tmp_path), "--test", "web"], "test=web")):
        done = hunter("changes", *flags)
        assert done.code == 0 and f'hunter-c: warning: unknown test: {words}\n' in done.err
    for flags in (["--test", "db.read", "--state", "withdrawn"], ["--test", "db.*", "--until", "2024-03-01"]):
        assert hunter("changes", "--config", told, *flags).err == ""
    write_csv(tmp_path / "other.csv", [])
    told.write_text(told.read_text() + csv_test(tmp_path / "other.csv", "db.other"))
    assert hunter("changes", "--config", told, "--test", "db.other").err == ""


def test_changes_beside_a_running_agent(agents, hunter, told, tmp_path):
    agent = agents(told)
    agent.pass_by(1)
    before = files(tmp_path)
    assert len(known(hunter, told)) == 1
    assert files(tmp_path) == before
    replace_csv(tmp_path, [(30, 1.2), (65, 0.8)], points=110)
    agent.wait_log("recovered=1")
    assert [c["state"] for c in known(hunter, told)] == ["confirmed", "recovered"]
    recovered, = known(hunter, told, "--state", "recovered")
    assert recovered["recovered"] == "2024-03-03T17:00:00Z" and 95 < recovered["recovered_level"] < 97
    assert [e["event"] for e in recovered["history"]] == ["found", "announced", "recovered"]
    assert hunter("changes", "--config", told, "--limit", "1").err.count("output truncated") == 1
    assert agent.end() == 0


@pytest.mark.state_file
@pytest.mark.parametrize("arguments, code, words", [
    (["changes", "--state-file", "none.db"], 4, "state file none.db does not exist yet"),
    (["changes", "--state-file", "hunter.yaml"], 4, "damaged"),
    (["changes", "--state-file", "state.db", "--state", "gone"], 2, '"gone" is none of confirmed'),
    (["changes", "--state-file", "state.db", "--since", "yesterweek"], 2, "--since"),
    (["changes", "--state-file", "state.db", "db.read"], 2, "--test"),
    (["store"], 2, "check, backup FILE, copy FROM TO, prune"),
    (["store", "backup"], 2, "check, backup FILE, copy FROM TO, prune"),
    (["store", "prune", "--state-file", "state.db"], 2, "--older-than"),
    (["store", "check", "--state-file", "none.db"], 4, "state file none.db does not exist yet"),
    (["store", "backup", "copy.db", "--state-file", "none.db"], 4, "state file none.db does not exist yet"),
    (["store", "prune", "--older-than", "1d", "--state-file", "none.db"], 4, "state file none.db does not exist yet"),
])
def test_what_is_refused(hunter, told, tmp_path, arguments, code, words):
    before = sorted(p.name for p in tmp_path.iterdir())
    done = hunter(*arguments)
    assert done.code == code and words in done.err and done.out == ""
    assert sorted(p.name for p in tmp_path.iterdir()) == before


FULL = """
mount -t tmpfs -o size=1m none small || exit 77
for free in 0 4 96 160 200; do
	head -c $(((1024 - free) * 1024)) /dev/zero >small/fill
	timeout 20 "$HUNTER" run --config full.yaml; echo "full $?"
	: >small/fill
	timeout 20 "$HUNTER" run --once --config full.yaml; echo "free $?"
	"$HUNTER" store check --state-file small/state.db >/dev/null || echo damaged
	rm small/state.db*
done
head -c 1048576 /dev/zero >small/fill
timeout 20 "$HUNTER" run --once --config other.yaml 2>small/log; echo "log $?"
umount small
mount -t tmpfs -o nr_inodes=1 none small
timeout 20 "$HUNTER" run --config socket.yaml; echo "socket $?"
"""


@pytest.mark.state_file
def test_a_start_on_a_full_disk(program, tmp_path):
    """It says so and leaves nothing behind that a later start would take for damage; only the log may be lost."""
    (tmp_path / "small").mkdir()
    write_csv(tmp_path / "read.csv", [])
    for name, state, listen in (("full", "small/state.db", "127.0.0.1:0"), ("other", "state.db", "127.0.0.1:0"),
                                ("socket", "state.db", f"unix:{tmp_path}/small/sock")):
        (tmp_path / f"{name}.yaml").write_text(f"agent: {{state: {state}, listen: '{listen}'}}\ntests:\n{csv_test(tmp_path / 'read.csv')}")
    done = subprocess.run(["unshare", "-rm", "sh", "-c", FULL], cwd=tmp_path, env=os.environ | {"HUNTER": str(program)}, capture_output=True, text=True)
    if done.returncode == 77 or "unshare" in done.stderr:
        pytest.skip("no namespaces here")
    assert done.stdout == "full 4\nfree 0\n" * 5 + "log 0\nsocket 4\n", done
    assert len(re.findall("hunter-c: state file .*(?:is full|No space left on device)\n", done.stderr)) == 5, done.stderr
    assert "agent.listen: cannot listen on " in done.stderr and "was emptied" not in done.stderr, done.stderr


# store


@pytest.mark.state_file
def test_check_and_backup_beside_a_running_agent(agents, hunter, told, tmp_path):
    agent = agents(told)
    agent.pass_by(1)
    done = hunter("store", "check", "--config", told)
    assert done.code == 0 and "1 changes, 1 messages (0 to be sent)" in done.out and done.out.endswith("OK\n")
    assert hunter("store", "backup", "copy.db", "--config", told).code == 0
    again = hunter("store", "backup", "copy.db", "--config", told)
    assert again.code == 4 and "--force" in again.err
    assert hunter("store", "backup", "copy.db", "--config", told, "--force").code == 0
    assert hunter("store", "check", "--state-file", "copy.db").code == 0
    assert agent.end() == 0
    # An agent goes on from the copy as from the file it was made of.
    for name in files(tmp_path):
        (tmp_path / name).unlink()
    shutil.copy(tmp_path / "copy.db", tmp_path / "state.db")
    assert hunter("run", "--once", "--config", told).out == ""


@pytest.mark.state_file
def test_check_of_a_damaged_file(hunter, told, tmp_path):
    with open(tmp_path / "state.db", "r+b") as file:
        file.seek(4096)
        file.write(b"Z" * 4096)
    before = (tmp_path / "state.db").read_bytes()
    done = hunter("store", "check", "--config", told)
    assert done.code == 4 and "damaged: " in done.out and "OK" not in done.out
    copied = hunter("store", "backup", "copy.db", "--config", told)
    assert copied.code == 4 and not (tmp_path / "copy.db").exists()
    started = hunter("run", "--once", "--config", told)
    assert started.code == 4 and "is damaged" in started.err
    assert (tmp_path / "state.db").read_bytes() == before


def content(tmp_path):
    return {p.name: p.read_bytes() for p in tmp_path.iterdir() if p.name.startswith("state.db")}


def test_a_dry_prune_leaves_the_file_alone(agents, hunter, told, tmp_path):
    """Also beside a running agent."""
    before = content(tmp_path)
    dry = "store", "prune", "--older-than", "0s", "--dry-run", "--config", told
    done = hunter(*dry)
    assert (done.code, done.err) == (0, "") and "would be deleted" in done.out
    assert content(tmp_path) == before
    agent = agents(told)
    agent.wait_log("msg=started")
    agent.pass_by()
    done = hunter(*dry)
    assert (done.code, done.err) == (0, "") and "would be deleted" in done.out


@pytest.mark.state_file
def test_prune(agents, hunter, told, tmp_path):
    agent = agents(told)
    refused = hunter("store", "prune", "--older-than", "0s", "--config", told)
    assert refused.code == 4 and f"process {agent.process.pid}" in refused.err
    assert agent.end() == 0
    assert "0 messages" in hunter("store", "prune", "--older-than", "90d", "--config", told).out
    assert "would be deleted: 0 changes, 0 events, 1 messages" in hunter(
        "store", "prune", "--older-than", "0s", "--dry-run", "--config", told).out
    assert "forgotten: 0 changes, 0 events, 1 messages" in hunter(
        "store", "prune", "--older-than", "0s", "--config", told).out
    assert len(known(hunter, told)) == 1
    told.write_text(told.read_text().replace("db.read", "db.other"))
    assert "forgotten: 1 changes" in hunter("store", "prune", "--older-than", "0s", "--config", told).out
    assert known(hunter, told) == []


# The agent, and a state that cannot be had


def wait_ready(agent):
    agent.wait(lambda: agent.get("/-/ready")[0] == 200)


DAMAGE = ["changes SET state = -5", "changes SET news = 7", "changes SET time = 9223372036854775807",
          "deliveries SET attempts = -1", "deliveries SET created = 9223372036854775807",
          "changes SET news = 1, first_seen = 9223372036854775807"]


@pytest.mark.state_file
def test_a_single_pass_over_damaged_rows_ends(hunter, tmp_path):
    """A file of which the pages are whole, with values that make no sense; a message waits in it."""
    write_csv(tmp_path / "read.csv", [(30, 1.2)])
    path = config(tmp_path, csv_test(tmp_path / "read.csv"), 'webhook: {url: "http://127.0.0.1:1/x"}')
    assert hunter("run", "--once", "--config", path).code == 3
    shutil.copy(tmp_path / "state.db", tmp_path / "whole.db")
    for damage in DAMAGE:
        shutil.copy(tmp_path / "whole.db", tmp_path / "state.db")
        database = sqlite3.connect(tmp_path / "state.db")
        database.executescript(f"PRAGMA ignore_check_constraints = ON; UPDATE {damage}")
        database.close()
        done = hunter("run", "--once", "--config", path)
        assert done.code == 4 and "is damaged (CHECK constraint failed in" in done.err, damage


@pytest.mark.state_file
def test_locked_state_comes_back_without_news(agents, tmp_path, slack):
    """What failed was never told; when the change is gone by then, the agent is ready all the same."""
    write_csv(tmp_path / "read.csv", [])
    agent = agents(config(tmp_path, csv_test(tmp_path / "read.csv"), bot(slack)))
    agent.pass_by(1)
    with contextlib.closing(sqlite3.connect(tmp_path / "state.db", isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        replace_csv(tmp_path, [(30, 1.2)])
        agent.wait_log("state store unavailable.*locked")
        replace_csv(tmp_path, [])
        assert agent.get("/-/ready")[0] == 503
        pause(LOCKED, "how long it is locked")
        assert agent.get("/-/ready")[0] == 503
        other.execute("ROLLBACK")
    wait_ready(agent)
    agent.wait_log("state store available again")
    assert agent.end() == 0
    assert slack.posts == []


@pytest.fixture
def small_disk(tmp_path):
    """A disk of 2 MB for the state, at tmp_path/disk."""
    disk = tmp_path / "disk"
    disk.mkdir()
    done = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=2m", "none", disk], capture_output=True, text=True)
    if done.returncode != 0:
        pytest.skip(f"mounting is not allowed here: {done.stderr.strip()}")
    yield disk
    subprocess.run(["umount", "-l", disk], check=True)


@pytest.mark.state_file
def test_disk_full(agents, hunter, tmp_path, slack, small_disk):
    write_csv(tmp_path / "read.csv", [])
    path = config(tmp_path, csv_test(tmp_path / "read.csv"), bot(slack))
    path.write_text(path.read_text().replace("/state.db", "/disk/state.db"))
    agent = agents(path)
    agent.pass_by(1)
    with open(small_disk / "filler", "wb", buffering=0) as filler, contextlib.suppress(OSError):
        while filler.write(b"x" * 4096) == 4096:
            pass
    replace_csv(tmp_path, [(30, 1.2)])
    agent.wait_log("state store unavailable.*full")
    status, text = agent.get("/-/ready")
    assert status == 503 and "full" in text and agent.get("/-/healthy")[0] == 200
    agent.pass_by(2)
    assert slack.posts == []
    (small_disk / "filler").unlink()
    slack.wait(lambda: slack.posts)
    agent.wait_log("msg=sent")
    wait_ready(agent)
    agent.pass_by(2)
    assert agent.end() == 0
    assert len(slack.posts) == 1
    assert hunter("store", "check", "--config", path).code == 0
    assert len(known(hunter, path)) == 1


@pytest.mark.state_file
def test_state_on_a_read_only_disk(hunter, tmp_path, slack, small_disk):
    """An agent does not start on it; people can look at what is there."""
    write_csv(tmp_path / "read.csv", [(30, 1.2)])
    path = config(tmp_path, csv_test(tmp_path / "read.csv"), bot(slack))
    path.write_text(path.read_text().replace("/state.db", "/disk/state.db"))
    assert hunter("run", "--once", "--config", path).code == 0
    subprocess.run(["mount", "-o", "remount,ro", small_disk], check=True)
    done = hunter("run", "--once", "--config", path)
    assert done.code == 4 and "Read-only file system" in done.err
    assert len(known(hunter, path)) == 1
    assert hunter("store", "check", "--config", path).code == 0
    subprocess.run(["mount", "-o", "remount,rw", small_disk], check=True)
    assert hunter("run", "--once", "--config", path).code == 0
    assert len(slack.posts) == 1


def limit_files(agent, size):
    hard = resource.prlimit(agent.process.pid, resource.RLIMIT_FSIZE)[1]
    resource.prlimit(agent.process.pid, resource.RLIMIT_FSIZE, (size, hard))


@pytest.mark.state_file
def test_files_that_may_not_grow_for_a_while(agents, tmp_path, slack):
    """The limit is no signal that ends the agent; what cannot be recorded is told when it is gone."""
    write_csv(tmp_path / "read.csv", [])
    agent = agents(config(tmp_path, csv_test(tmp_path / "read.csv"), bot(slack)))
    agent.pass_by(1)
    limit_files(agent, 4096)
    replace_csv(tmp_path, [(30, 1.2)])
    agent.wait_log("state store unavailable")
    assert agent.get("/-/ready")[0] == 503 and slack.posts == []
    limit_files(agent, resource.RLIM_INFINITY)
    slack.wait(lambda: slack.posts)
    agent.wait_log("msg=sent")
    assert agent.end() == 0 and len(slack.posts) == 1


def test_a_state_whose_variable_is_not_set(hunter, tmp_path):
    """A command must not use the default state instead."""
    path = tmp_path / "hunter.yaml"
    path.write_text('agent: {name: "${NO_NAME}", state: "${NO_FOLDER}/state.db"}\n')
    for command in (["silence", "add", "test=checkout", "--for", "1h"], ["changes"], ["store", "check"]):
        result = hunter(*command, "--config", path)
        assert result.code == 2 and result.err == "hunter-c: agent.state: ${NO_FOLDER} is not set\n", (command, result.err)
