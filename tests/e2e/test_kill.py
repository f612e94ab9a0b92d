"""kill -9 at random moments between the detection of a change and the word that it was sent.

Each time there is one more change, and the agent is killed a random while after its data are there: while it reads,
records, groups, queues or posts, while Slack works, or when all is over. Every change is announced, a kill costs one
duplicate at most, and nothing is lost. HUNTER_TEST_FULL makes 200 kills of it, in ten rounds.
"""
import os
import random
import re
import shutil
import signal
import threading

import pytest
from test_run import agents, bot, config, csv_test, slack, write_csv  # noqa: F401  (fixtures)

ROUNDS, KILLS = 10 if os.environ.get("HUNTER_TEST_FULL") else 1, 20
POINTS = 40  # between two changes


def add_change(tmp_path, steps):
    steps.append((POINTS * (len(steps) + 1), 0.8 if len(steps) % 2 else 1.25))
    write_csv(tmp_path / "new.csv", steps, points=POINTS * (len(steps) + 1))
    shutil.move(tmp_path / "new.csv", tmp_path / "read.csv")


def announced(slack):
    """The changes of each post, and the key of each."""
    payloads = [p["metadata"]["event_payload"] for p in slack.posts]
    return [p["changes"] for p in payloads], [p["key"] for p in payloads]


def wait_empty(agent, changes):
    """Until all changes are known and no message waits."""
    pause = threading.Event()
    for _ in range(200 * changes):  # a message a second is Slack's pace, and each may have to be looked for
        if agent.metric("hunter_changes") >= changes and agent.metric("hunter_delivery_queue_length") == 0:
            return
        pause.wait(0.05)
    raise AssertionError("".join(agent.log))


@pytest.mark.parametrize("seed", range(ROUNDS))
def test_kills_between_detection_and_sent(agents, tmp_path, slack, seed):
    """Half of the agents die a random while after their start, half of them while Slack has the post and is silent."""
    rng = random.Random(seed)
    pause = threading.Event()
    steps = []
    for kill in range(KILLS):
        slack.delay = 0 if kill % 2 else 0.3
        posts = len(slack.posts)
        add_change(tmp_path, steps)
        agent = agents(config(tmp_path, csv_test(tmp_path / "read.csv"), bot(slack)))
        if slack.delay:
            slack.wait(lambda: len(slack.posts) > posts)  # noqa: B023
        pause.wait(rng.uniform(0, 0.15))
        agent.end(signal.SIGKILL)
    slack.delay = 0
    last = agents(config(tmp_path, csv_test(tmp_path / "read.csv"), bot(slack)))
    last.pass_by(1)
    wait_empty(last, KILLS)
    assert last.end() == 0
    changes, keys = announced(slack)
    told = [c for each in changes for c in each]
    times = {t for p in slack.posts for t in re.findall(r"20\d\d-\d\d-\d\d \d\d:00", str(p))}
    assert len(set(told)) == len(times) == KILLS, "a change was lost"
    assert len(keys) - len(set(keys)) <= KILLS
