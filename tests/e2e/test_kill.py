"""kill -9 at random moments between the detection of a change and the word that it was sent.

Each time there is one more change, and the agent is killed a random while after its data are there: while it reads,
records, groups, queues, posts or looks what has arrived, while Slack works, or when all is over. It is started again at
once, and Slack shows a post 50 to 300 ms after it has taken it, whatever became of who sent it.

Every change is announced, in order and in its thread; by a bot once, by a webhook once more for a kill at most.
HUNTER_TEST_FULL makes 200 kills of it, in ten rounds.
"""
import collections
import concurrent.futures
import contextlib
import json
import os
import random
import shutil
import signal

import pytest
from agent import CANARY, config, csv_test, write_csv
from fake_slack import FakeSlack
from hook import Hook
from state_address import open_state
from test_tell import wide
from waiting import pause

ROUNDS, LIVES, KILLS = 10 if os.environ.get("HUNTER_TEST_FULL") else 1, 4, 5
POINTS = 40  # between two changes
WIDE = 300  # metrics: more than fit one message


class Life:
    """One agent, as it were: its data, its receivers, and the processes that are killed one after the other."""

    def __init__(self, agents, folder, seed):
        self.agents, self.folder, self.rng, self.steps = agents, folder, random.Random(seed), []
        folder.mkdir()
        self.slack, self.hook = FakeSlack(CANARY, ["#perf", "#other"]), Hook()
        self.slack.slow, self.hook.slow = (0.05, 0.3), 0.1
        self.path = None

    def configure(self, with_wide):
        tests = csv_test(self.folder / "read.csv") + csv_test(self.folder / "write.csv", "db.write")
        if with_wide:
            tests += wide(self.folder / "wide.csv", WIDE)
        self.path = config(self.folder, tests, f"""
slack: {{bot_token: "{CANARY}", channels: ["#perf", "#other"], api_url: "{self.slack.api}"}}
webhook: {{url: "{self.hook.url}"}}""", "  group_interval: 1h")

    def write(self, name, steps):
        new = self.folder / "new.csv"
        write_csv(new, steps, points=POINTS * (len(steps) + 1))
        shutil.move(new, self.folder / name)

    def add_change(self):
        """One more in db.read; db.write has it a kill later."""
        self.write("write.csv", self.steps)
        self.steps.append((POINTS * (len(self.steps) + 1), 1.25))  # none undoes another
        self.write("read.csv", self.steps)

    def kill(self):
        """A random while after the start, or after Slack has taken the next post."""
        posts = len(self.slack.posts)
        agent = self.agents(self.path)
        if self.rng.random() < 0.7:
            self.slack.wait(lambda: len(self.slack.posts) > posts)
            pause(self.rng.uniform(0, 0.4), "the moment of the kill")
        else:
            pause(self.rng.uniform(0, 0.15), "the moment of the kill")
        agent.end(signal.SIGKILL)

    def is_told(self):
        """All changes are there, none waits for a message (news = 1), and no message waits (state = 1)."""
        with open_state(self.folder) as state:
            count, = state.execute("SELECT count(*) FROM changes").fetchone()
            waits, = state.execute("SELECT (SELECT count(*) FROM changes WHERE news = 1) + (SELECT count(*) FROM deliveries WHERE state = 1)").fetchone()
        return count == 2 * KILLS + WIDE and waits == 0

    def finish(self):
        """The last agent tells what is left."""
        self.write("write.csv", self.steps)
        agent = self.agents(self.path)
        agent.pass_by(1)
        agent.wait(self.is_told)
        assert agent.end() == 0

    def live(self):
        for kill in range(KILLS):
            self.add_change()
            self.configure(with_wide=kill > KILLS // 2)
            self.kill()
        self.finish()

    def changes(self):
        """The test and time of each change by its id."""
        with open_state(self.folder) as state:
            return {i: (test, time) for i, test, time in state.execute("SELECT id, test, time FROM changes")}

    def incidents(self):
        """The incident of each change by its id: one a commit, whatever was killed between its changes."""
        with open_state(self.folder) as state:
            rows = state.execute("SELECT id, time, incident FROM changes").fetchall()
        pairs = {(time, incident) for _, time, incident in rows}
        assert len(pairs) == len({time for time, _ in pairs}) == len({incident for _, incident in pairs}), sorted(pairs)
        return {i: incident for i, _, incident in rows}

    @staticmethod
    def check_threads(channel, posts, incidents):
        """A message begins a thread if it has an incident that is new in its channel, among others too, as a list may; else it is in
        a thread about one of its incidents. All of its parts are in the same."""
        messages = {}  # key -> the thread, whether it begins it, its incidents
        for post, stamp in posts:
            payload, thread = post["metadata"]["event_payload"], post.get("thread_ts")
            key, part = payload["key"], payload["part"]
            message = messages.setdefault(key, (thread or stamp, not thread, set()))
            assert part == 1 or thread == message[0], f"{channel}: part {part} of {key} has left its thread"
            message[2].update(incidents[i] for i in payload["changes"])
        threads = collections.defaultdict(set)  # ts -> incidents in it
        for key, (thread, begins, told) in messages.items():
            known = set().union(*threads.values())
            assert begins or told <= known, f"{channel}: {key} has a new incident in an old thread"
            assert begins or told & threads[thread], f"{channel}: {key} is in a strange thread"
            assert not begins or told - known, f"{channel}: {key} has left its thread"
            threads[thread] |= told

    @staticmethod
    def check_order(messages):
        """One message after the other; what several kills have left to one run is in one message, the worst first."""
        read = [time for message in messages for time in sorted(time for test, time in message if test == "db.read")]
        assert read == sorted(set(read))

    def check_channel(self, channel, changes, incidents):
        posts = [(p, stamp) for p, stamp in zip(self.slack.posts, self.slack.stamps) if p["channel"] == channel]
        payloads = [p["metadata"]["event_payload"] for p, _ in posts]
        for name, count in collections.Counter((p["key"], p["part"]) for p in payloads).items():
            assert count == 1, f"{channel}: {name} is there {count} times"
        for key in {p["key"] for p in payloads}:
            parts = [p["part"] for p in payloads if p["key"] == key]
            assert parts == list(range(1, len(parts) + 1))
        told = collections.defaultdict(list)  # by message, the first one first
        for p in payloads:
            told[p["key"]] += [changes[i] for i in p["changes"]]
        assert {c for message in told.values() for c in message} == set(changes.values()), "a change was lost"
        self.check_threads(channel, posts, incidents)
        self.check_order(told.values())
        assert any(p["part"] > 1 for p in payloads)

    def check_hook(self, changes):
        documents = [json.loads(body) for _, body, _ in self.hook.taken]
        told = {d["key"]: [(c["test"], c["time"]) for c in d["changes"]] for d in documents}
        assert len(documents) - len(told) <= KILLS
        assert {c["id"] for d in documents for c in d["changes"]} == set(changes)
        self.check_order(told.values())

    def check(self, hunter):
        changes = self.changes()
        assert len(changes) == 2 * KILLS + WIDE
        assert self.slack.violations == []
        incidents = self.incidents()
        for channel in self.slack.channels:
            self.check_channel(channel, changes, incidents)
        self.check_hook(changes)
        done = hunter("store", "check", "--config", self.path)
        assert done.code == 0, done.err

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.slack.stop()
        self.hook.server.shutdown()
        self.hook.server.server_close()


@pytest.mark.parametrize("seed", range(ROUNDS))
def test_kills_between_detection_and_sent(agents, hunter, tmp_path, seed):
    """Several agents at once, as each waits most of the time."""
    with contextlib.ExitStack() as stack, concurrent.futures.ThreadPoolExecutor(LIVES) as pool:
        lives = [stack.enter_context(Life(agents, tmp_path / str(i), LIVES * seed + i)) for i in range(LIVES)]
        for done in [pool.submit(life.live) for life in lives]:
            done.result()
        for life in lives:
            life.check(hunter)
