"""kill -9 in each step of what people say: while it is said, while a silence is added or ended, while what was said expires, and
while a change outgrows what was accepted, from the new data to the post that tells it.

Who said it says it again to the next agent, word for word, as a client does that got no answer. Nothing is lost or doubled: the
versions and the audit log have each step once, each silence is there once, and Slack has a change once more for each growth.
HUNTER_TEST_FULL makes 50 kills in each step.
"""
import collections
import concurrent.futures
import contextlib
import datetime
import http.client
import json
import os
import random
import shutil
import signal
import threading

from agent import CANARY, ask, bot, config, csv_test, port_of, post, write_csv
from fake_slack import FakeSlack
from waiting import pause

LIVES, CYCLES = (5, 10) if os.environ.get("HUNTER_TEST_FULL") else (2, 3)
STEP, POINTS = 40, 10  # points before the change, and new ones with each growth
ACCEPTED = ("expected", "ignored", "infra", "false")


class Life:
    """A change that lives through all of it, with one agent after the other."""

    def __init__(self, agents, folder, seed):
        self.agents, self.folder, self.rng = agents, folder, random.Random(seed)
        folder.mkdir()
        self.slack = FakeSlack(CANARY)
        self.slack.slow = (0.02, 0.15)
        self.size, self.growths, self.said, self.expired, self.silenced = 1.25, 0, 0, 0, 0
        self.write()
        self.path = config(folder, csv_test(folder / "read.csv"), bot(self.slack))

    def write(self):
        new = self.folder / "new.csv"
        write_csv(new, [(STEP, self.size)], points=2 * STEP + POINTS * self.growths)
        shutil.move(new, self.folder / "read.csv")

    def start(self):
        self.agent = self.agents(self.path)
        self.port = port_of(self.agent)

    def kill(self, least, most):
        pause(self.rng.uniform(least, most), "the moment of the kill")
        self.agent.end(signal.SIGKILL)
        self.start()

    def change(self):
        return ask(self.port, "/api/v1/changes").json["changes"][0]

    def told(self):
        """How often the change was announced."""
        payloads = [p["metadata"]["event_payload"] for p in self.slack.posts if p.get("metadata")]
        return sum(self.id in p.get("changes", []) for p in payloads)

    def ask_twice(self, path, **form):
        """Once while the agent is killed, whether an answer comes or not, and once more."""
        def first(port):
            with contextlib.suppress(OSError, http.client.HTTPException):
                post(port, path, **form)

        asking = threading.Thread(target=first, args=(self.port,))
        asking.start()
        self.kill(0, 0.03)
        asking.join()
        return post(self.port, path, **form)

    def say(self):
        before = self.change()["triage"]
        state = self.rng.choice([state for state in ACCEPTED if state != before["state"]])
        status, answer = self.ask_twice(f"/api/v1/changes/{self.id}/triage", state=state, note=f"say {self.said}", person="ann",
                                        version=before["version"])
        assert status == 200, answer
        self.said += 1
        now = self.change()["triage"]
        assert (now["state"], now["note"], now["version"]) == (state, f"say {self.said - 1}", before["version"] + 1)

    def grow(self):
        """The step is larger than what was accepted: it is open again, and told once more."""
        version, told = self.change()["triage"]["version"], self.told()
        self.growths += 1
        self.size *= 1.25
        self.write()
        self.kill(0, 1.5)
        self.agent.wait(lambda: self.told() > told)
        assert (self.change()["triage"]["state"], self.change()["triage"]["version"]) == ("open", version + 1)

    def expire(self):
        status, answer = post(self.port, f"/api/v1/changes/{self.id}/triage", state="acknowledged", note=f"wait {self.expired}", person="ann",
                              until="1s")
        assert status == 200 and answer["changed"] == 1, answer
        self.said += 1
        self.expired += 1
        version = answer["changes"][0]["triage"]["version"]
        self.kill(0.8, 1.2)
        self.agent.wait(lambda: self.change()["triage"]["version"] == version + 1)
        assert self.change()["triage"]["state"] == "open"

    def silence(self):
        begins = datetime.datetime.now(datetime.timezone.utc) + datetime.timedelta(minutes=10)
        reason = f"silence {self.silenced}"
        status, added = self.ask_twice("/api/v1/silences", matchers='test="db.read", p="none"', reason=reason, owner="ann", person="ann",
                                       **{"from": begins.isoformat(), "until": (begins + datetime.timedelta(hours=1)).isoformat()})
        assert status == 200, added
        self.silenced += 1
        status, ended = self.ask_twice(f"/api/v1/silences/{added['id']}/end", person="ann")
        assert status == 200 and ended["state"] == "over", ended
        reasons = [s["reason"] for s in ask(self.port, "/api/v1/silences?all=true").json["silences"]]
        assert sorted(reasons) == sorted(f"silence {i}" for i in range(self.silenced)), "a silence is lost or doubled"

    def live(self):
        self.start()
        self.agent.wait(lambda: self.slack.posts)
        self.id = self.change()["id"]
        for _ in range(CYCLES):
            self.say()
            self.grow()
            self.expire()
            self.silence()
        self.agent.pass_by(2)
        assert self.agent.end() == 0

    def check(self, hunter):
        assert self.told() == 1 + self.growths, "a growth was not told, or told twice"
        assert self.slack.violations == []
        log = json.loads(hunter("store", "audit", "--config", self.path, "--limit", "10000", "--output", "json").out)["audit"]
        counts = collections.Counter(entry["action"] for entry in log)
        assert counts == {"triaged": self.said, "reopened": self.growths + self.expired, "silenced": self.silenced,
                          "silence ended": self.silenced}
        assert len({entry["detail"] for entry in log if entry["action"] == "triaged"}) == self.said
        changes = json.loads(hunter("changes", "--config", self.path, "--output", "json").out)["changes"]
        assert [c["triage"]["version"] for c in changes] == [self.said + self.growths + self.expired]
        done = hunter("store", "check", "--config", self.path)
        assert done.code == 0, done.err

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.slack.stop()


def test_kills_while_people_speak(agents, hunter, tmp_path):
    """Several agents at once, as each waits most of the time."""
    with contextlib.ExitStack() as stack, concurrent.futures.ThreadPoolExecutor(LIVES) as pool:
        lives = [stack.enter_context(Life(agents, tmp_path / str(i), i)) for i in range(LIVES)]
        for done in [pool.submit(life.live) for life in lives]:
            done.result()
        for life in lives:
            life.check(hunter)
