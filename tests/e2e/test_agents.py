"""Who shares a state: `hunter-c agents`, /api/v1/agents, hand-overs without a gap, and a single run that wants all."""
import json
import os
import re
import signal
import subprocess
import urllib.request

import pytest
import servers
from waiting import LONGEST, wait

TESTS = 12


@pytest.fixture(scope="module")
def postgres():
    with servers.state_postgres() as server:
        yield server


class Member:
    def __init__(self, program, folder, name, state):
        self.folder = folder / name
        self.folder.mkdir()
        (self.folder / "rows.csv").write_text("time,value\n" + "".join(f"2026-11-01T{i:02d}:00:00Z,{100 + i % 3}\n" for i in range(24)))
        self.config = self.folder / "hunter.yaml"
        tests = "".join(f"  t{i}: {{type: csv, file: '{self.folder}/rows.csv', metrics: {{value: {{}}}}}}\n" for i in range(TESTS))
        self.config.write_text(f"agent: {{state: '{state}', listen: 127.0.0.1:0, interval: 1m}}\ntests:\n{tests}")
        self.log = self.folder / "log"
        with self.log.open("wb") as log:
            self.process = subprocess.Popen([program, "run", "--config", self.config], stderr=log, stdout=log)
        self.port = wait(lambda: re.search(r"msg=started.* port=(\d+)", self.log.read_text()), passing=OSError)[1]

    def get(self, path):
        with urllib.request.urlopen(f"http://127.0.0.1:{self.port}{path}", timeout=LONGEST) as answer:
            return answer.read().decode()

    def shares(self):
        """What each agent that is alive holds, as this one has seen it."""
        return sorted(found["shards"] for found in json.loads(self.get("/api/v1/agents"))["agents"] if found["state"] == "alive")

    def metric(self, name):
        found = re.search(rf"^{name}(?:{{.*}})? (\S+)$", self.get("/metrics"), re.M)
        return float(found[1]) if found else 0

    def stop(self):
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        return self.process.wait(LONGEST)


@pytest.fixture
def member(program, tmp_path):
    made = []

    def make(state):
        made.append(Member(program, tmp_path, f"a{len(made)}", state))
        return made[-1]

    yield make
    for each in made:
        each.stop()


def test_a_state_that_is_a_file(member, tmp_path, hunter):
    alone = member(f"{tmp_path}/state.db")
    assert json.loads(alone.get("/api/v1/agents"))["shared"] is False
    assert json.loads(alone.get("/api/v1/me"))["agent"] is None
    listed = hunter("agents", "--config", alone.config)
    assert (listed.code, listed.out) == (0, "The state is a file: it serves a single agent.\n")
    assert alone.metric("hunter_fleet_agents") == 0


def test_agents_share_and_hand_over(member, postgres, hunter):
    state = postgres.create()
    first = member(state)
    wait(lambda: first.shares() == [256], passing=OSError)
    wait(lambda: first.metric("hunter_shards_held") == 256, passing=OSError)  # once what is stored of them was read
    second = member(state)
    wait(lambda: first.shares() == second.shares() == [128, 128], passing=OSError)
    assert first.get("/-/ready").startswith("ready") and "<main" in first.get("/agents") and "/api/v1/agents" in first.get("/assets/agents.js")
    assert json.loads(first.get("/api/v1/me"))["agent"]

    listed = json.loads(hunter("agents", "--config", first.config, "--output", "json").out)
    assert [found["shards"] for found in listed["agents"]] == [128, 128] and listed["held"] == 256
    assert sum(found["leader"] for found in listed["agents"]) == 1
    assert all(found["tests"] == TESTS and found["late_renewals"] == 0 for found in listed["agents"])
    assert sorted(shard for found in listed["agents"] for shard in found["held"]) == list(range(256))
    asked = hunter("agents", "--agent", f"http://127.0.0.1:{second.port}")
    assert asked.out.count("alive") == 2 and asked.out.count("leader") == 1 and asked.out.count("yes") == 1

    # SIGTERM gives back everything at once: nobody waits for the lease to end, and nothing was taken over.
    assert second.stop() == 0
    wait(lambda: first.shares() == [256], passing=OSError)
    assert first.metric("hunter_take_overs_total") == 0
    gone = json.loads(first.get("/api/v1/agents"))["agents"][-1]
    assert gone["state"] == "gone" and gone["shards"] == 0


def test_the_leader_is_an_agent_that_is_killed(member, postgres):
    state = postgres.create()
    first, second = member(state), member(state)
    wait(lambda: first.shares() == second.shares() == [128, 128], passing=OSError)
    leader, other = (first, second) if postgres_holder(first) else (second, first)
    os.kill(leader.process.pid, signal.SIGKILL)
    leader.process.wait()
    wait(lambda: other.shares() == [256], passing=OSError)
    assert other.metric("hunter_take_overs_total") == 128
    assert json.loads(other.get("/api/v1/agents"))["agents"][0]["leader"]


def postgres_holder(agent):
    return next(found["leader"] for found in json.loads(agent.get("/api/v1/agents"))["agents"] if found["self"])


def test_a_single_run_wants_all(member, postgres, hunter):
    state = postgres.create()
    agent = member(state)
    wait(lambda: agent.shares() == [256], passing=OSError)
    refused = hunter("run", "--once", "--config", agent.config)
    assert refused.code == 4 and "in use by another agent" in refused.err
    assert agent.shares() == [256]
    agent.stop()
    alone = hunter("run", "--once", "--config", agent.config)
    assert alone.code == 0, alone.err
    listed = json.loads(hunter("agents", "--config", agent.config, "--output", "json").out)
    assert listed["held"] == 0 and {found["state"] for found in listed["agents"]} == {"gone"}
    held = hunter("agents", "--config", agent.config)
    assert "256 of 256 shards have no holder" in held.out
