"""What was told is kept true: each receiver hears what it chose, and nothing is lost or left firing when the agent is killed with -9
while it fires or resolves. HUNTER_TEST_FULL makes 100 kills for each receiver."""
import contextlib
import json
import os
import random
import signal

import pytest
import servers
from agent import CANARY, bot, config, csv_test, port_of, write_csv
from fake_pagerduty import FakePagerDuty
from fake_slack import FakeSlack
from hook import SCHEMA, valid
from state_address import open_state
from waiting import pause, wait

KILLS = 100 if os.environ.get("HUNTER_TEST_FULL") else 6
KEY = "c4n4ry00c4n4ry00c4n4ry00c4n4ry00"
STEP = [(30, 1.2)]


def rows(folder, query):
    with open_state(folder) as state:
        return state.execute(query).fetchall()


def put(folder, steps, points=60):
    """As one file from one moment on."""
    write_csv(folder / "fresh.csv", steps, points)
    os.replace(folder / "fresh.csv", folder / "a.csv")


class PagerDuty:
    """Incidents that are open."""

    def __init__(self, folder, stack):
        self.fake = stack.enter_context(FakePagerDuty(KEY))
        self.section = f'pagerduty: {{routing_key: {KEY}, url: "{self.fake.url}"}}'

    def firing(self):
        return sum(state != "resolved" for state in self.fake.incidents.values())

    def settle(self):
        self.fake.server.settle()

    def check(self):
        assert len(self.fake.incidents) == 1 and self.fake.violations == []


class Alertmanager:
    """Alerts that a real one holds for active."""

    def __init__(self, folder, stack):
        self.server = stack.enter_context(servers.alertmanager(folder))
        self.section = f'alertmanager: {{urls: ["{self.server.url}"], resend: 2s}}'

    def firing(self):
        return len(self.server.alerts())

    def settle(self):
        pass  # what is sent again and again is right in the end

    def check(self):
        assert {a["labels"]["test"] for told in self.server.told for a in told["alerts"]} == {"db.read"}


class Slack:
    """A message that does not say that its change is gone."""

    def __init__(self, folder, stack):
        self.fake = stack.enter_context(FakeSlack(CANARY))
        self.fake.per_minute = 100000
        self.section = bot(self.fake)

    def about(self):
        return [ts for ts, post in zip(self.fake.stamps, self.fake.posts) if "thread_ts" not in post]

    def firing(self):
        return sum("no longer found" not in (self.fake.context(ts) or "") for ts in self.about())

    def settle(self):
        self.fake.server.settle()

    def check(self):
        assert len(self.about()) == 1 and self.fake.violations == []


def story(folder, outside, agent):
    """What the state says, what the receiver has seen, and the log."""
    known = rows(folder, "SELECT id, state, news FROM changes"), rows(folder, "SELECT id, state, amend FROM deliveries")
    return f"{known}\n{outside.firing()} of {vars(outside).get('fake', outside).__dict__.get('log')}\n{''.join(agent.log)}"


@pytest.mark.parametrize("receiver", [PagerDuty, Alertmanager, Slack])
def test_kills_while_firing_and_resolving(agents, hunter, tmp_path, receiver):
    """The change is found, gone, and found again, while one agent after the other is killed; in the end each state is made known."""
    rng = random.Random(14)
    with contextlib.ExitStack() as stack:
        outside = receiver(tmp_path, stack)
        put(tmp_path, STEP)
        path = config(tmp_path, csv_test(tmp_path / "a.csv"), outside.section)
        for kill in range(KILLS):
            agent = agents(path)
            pause(rng.uniform(0.05, 1.2), "the moment of the kill")
            agent.end(signal.SIGKILL)
            outside.settle()
            if kill > 1:
                put(tmp_path, STEP if rng.random() < 0.5 else [])
        for steps in (STEP, [], STEP, []):
            put(tmp_path, steps)
            agent = agents(path)
            wait(lambda: outside.firing() == len(steps), lambda: story(tmp_path, outside, agent))  # noqa: B023
            agent.end(signal.SIGKILL)
            outside.settle()
        agent = agents(path)
        agent.pass_by(4)
        owed = "SELECT count(*) FROM deliveries WHERE amend IS NOT NULL AND receipt IS NOT NULL"
        agent.wait(lambda: outside.firing() == 0 and rows(tmp_path, owed) == [(0,)])
        assert agent.end() == 0
        outside.check()
        done = hunter("store", "check", "--config", path)
        assert done.code == 0, done.err


def documents(hook):
    return [json.loads(body) for _, body, status in hook.taken if status < 300]


def test_a_receiver_hears_the_events_that_it_chose(agents, hunter, tmp_path, hook):
    """Each event once, in a document by the schema, also over restarts."""
    put(tmp_path, STEP)
    section = f'webhook: {{url: "{hook.url}", events: [new, updated, triaged, withdrawn, reminder], remind_after: 1h}}'
    path = config(tmp_path, csv_test(tmp_path / "a.csv"), section)
    agent = agents(path)
    kinds = lambda: [d["kind"] for d in documents(hook)]

    def heard(kind):
        """Until the receiver has it, and the state says so: an agent that is killed before sends it again."""
        agent.wait(lambda: kind in kinds() and rows(tmp_path, "SELECT count(*) FROM deliveries WHERE state = 1") == [(0,)])

    agent.wait_log("msg=sent")
    agent.end()
    with open_state(tmp_path) as state:
        state.execute("UPDATE deliveries SET updated = updated - 2 * 3600000")  # it was two hours ago
    agent = agents(path)
    agent.wait(lambda: "reminder" in kinds())
    done = hunter("triage", "--config", path, "--agent", f"http://127.0.0.1:{port_of(agent)}", "1", "acknowledged", "--note", "we look")
    assert done.code == 0, done.err
    heard("triaged")
    agent.end(signal.SIGKILL)
    agent = agents(path)
    agent.pass_by(1)
    put(tmp_path, [(33, 1.2)])
    heard("updated")
    agent.end(signal.SIGKILL)
    agent = agents(path)
    agent.pass_by(1)
    put(tmp_path, [])
    heard("withdrawn")
    agent.end(signal.SIGKILL)
    agent = agents(path)
    agent.pass_by(4)
    agent.end()
    first, *rest = documents(hook)
    for document in [first, *rest]:
        valid(SCHEMA, document)
    assert kinds() == ["changes", "reminder", "triaged", "updated", "withdrawn"]
    said = {d["kind"]: d for d in rest}
    assert "not triaged for 2h: p99" in said["reminder"]["summary"]
    assert "acknowledged" in said["triaged"]["summary"] and "we look" in said["triaged"]["changes"][0]["status"]
    assert said["updated"]["changes"][0]["commit_after"] == "c0033"
    assert "no longer found" in said["withdrawn"]["summary"]
    assert {d["continues"] for d in rest} == {first["key"]} and {c["id"] for d in rest for c in d["changes"]} == {1}


def test_by_default_a_webhook_hears_what_it_always_did(agents, hunter, tmp_path, hook):
    put(tmp_path, STEP)
    path = config(tmp_path, csv_test(tmp_path / "a.csv"), f'webhook: {{url: "{hook.url}"}}')
    agent = agents(path)
    agent.wait(lambda: documents(hook))
    done = hunter("triage", "--config", path, "--agent", f"http://127.0.0.1:{port_of(agent)}", "1", "acknowledged")
    assert done.code == 0, done.err
    put(tmp_path, [(33, 1.2)])
    agent.wait(lambda: rows(tmp_path, "SELECT count(*) FROM events WHERE kind = 3") == [(1,)])
    put(tmp_path, [])
    agent.wait_log("test=db.read.* withdrawn=1")
    agent.pass_by(3)
    assert [d["kind"] for d in documents(hook)] == ["changes"]


def test_single_passes(hunter, tmp_path):
    """Without an agent that goes on running: the next pass resolves, and leaves it open if it cannot."""
    with FakePagerDuty(KEY) as fake:
        put(tmp_path, STEP)
        path = config(tmp_path, csv_test(tmp_path / "a.csv"), f'pagerduty: {{routing_key: {KEY}, url: "{fake.url}"}}')
        assert hunter("run", "--once", "--config", path).code == 0
        assert list(fake.incidents.values()) == ["triggered"]
        put(tmp_path, [])
        fake.answers = [(500, "oops")]
        result = hunter("run", "--once", "--config", path)
        assert result.code == 3 and "cannot update messages" in result.err
        assert list(fake.incidents.values()) == ["triggered"]
        assert hunter("run", "--once", "--config", path).code == 0
        assert list(fake.incidents.values()) == ["resolved"]
        put(tmp_path, STEP)
        assert hunter("run", "--once", "--config", path).code == 0
        assert list(fake.incidents.values()) == ["triggered"]


def test_a_removed_receiver_is_told_when_it_is_back(agents, tmp_path):
    with FakePagerDuty(KEY) as fake:
        section = f'pagerduty: {{routing_key: {KEY}, url: "{fake.url}"}}'
        put(tmp_path, STEP)
        path = config(tmp_path, csv_test(tmp_path / "a.csv"), section)
        agent = agents(path)
        fake.wait(lambda: fake.incidents)
        agent.wait_log("msg=sent")
        agent.end()
        agent = agents(config(tmp_path, csv_test(tmp_path / "a.csv")))
        assert "receiver=pagerduty messages=1" in agent.wait_log("receiver no longer configured")
        put(tmp_path, [])
        agent.wait_log("test=db.read.* withdrawn=1")
        agent.end()
        assert set(fake.incidents.values()) == {"triggered"}
        agents(config(tmp_path, csv_test(tmp_path / "a.csv"), section))
        fake.wait(lambda: set(fake.incidents.values()) == {"resolved"})
