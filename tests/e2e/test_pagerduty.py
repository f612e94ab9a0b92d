"""Changes as incidents of PagerDuty: triggered once, acknowledged, resolved, and open again."""
import json
import os
import random
import signal

import pytest
from agent import config, csv_test, write_csv
from fake_pagerduty import FakePagerDuty
from state_address import state_text
from waiting import pause

KEY = "c4n4ry00c4n4ry00c4n4ry00c4n4ry00"


@pytest.fixture
def pagerduty():
    with FakePagerDuty(KEY) as fake:
        yield fake
        assert fake.violations == []


def section(fake, key=KEY):
    return f'pagerduty: {{routing_key: {key}, url: "{fake.url}"}}'


def test_an_incident_for_a_message(hunter, tmp_path, pagerduty):
    for name, factor in (("a", 1.2), ("b", 1.5)):
        write_csv(tmp_path / f"{name}.csv", [(30, factor)])
    tests = "".join(csv_test(tmp_path / f"{n}.csv", f"db.{n}", '    runbook: "https://x.test/{test}"') for n in "ab")
    path = config(tmp_path, tests, section(pagerduty))
    result = hunter("run", "--once", "--config", path)
    assert result.code == 0, result.err
    assert list(pagerduty.incidents.values()) == ["triggered"]
    event, = pagerduty.events
    assert event["payload"]["component"] == "db.b" and event["payload"]["class"] == "performance regression"
    assert event["payload"]["custom_details"]["size"].startswith("+50")
    assert "db.a" in event["payload"]["custom_details"]["changes"]
    assert {link["href"] for link in event["links"]} == {"https://x.test/db.a", "https://x.test/db.b"}
    assert KEY not in state_text(tmp_path) and KEY not in result.err + result.out


def test_too_fast(agents, tmp_path, pagerduty):
    """429: the event follows when PagerDuty has said so."""
    write_csv(tmp_path / "a.csv", [(30, 1.2)])
    pagerduty.answers = [(429, '{"status":"throttle exceeded","message":"Requests for this service are arriving too quickly."}',
                          {"Retry-After": "1"})]
    agent = agents(config(tmp_path, csv_test(tmp_path / "a.csv"), section(pagerduty)))
    agent.wait_log("delivery failed, will retry")
    pagerduty.wait(lambda: pagerduty.incidents)


def test_a_wrong_routing_key_is_said_and_kept(hunter, tmp_path, pagerduty):
    write_csv(tmp_path / "a.csv", [(30, 1.2)])
    path = config(tmp_path, csv_test(tmp_path / "a.csv"), section(pagerduty, "wr0ng000" * 4))
    result = hunter("run", "--once", "--config", path)
    assert result.code == 2 and "Invalid routing key" in result.err and "wr0ng000" not in result.err
    config(tmp_path, csv_test(tmp_path / "a.csv"), section(pagerduty))
    assert hunter("run", "--once", "--config", path).code == 0
    assert list(pagerduty.incidents.values()) == ["triggered"]


def ids(hunter, path):
    return {c["test"]: str(c["id"]) for c in json.loads(hunter("changes", "--output", "json", "--config", path).out)["changes"]}


def test_an_incident_follows_its_changes(hunter, agents, tmp_path, pagerduty):
    """Acknowledged, resolved when the last change is over, and triggered when one is open again."""
    for name, factor in (("a", 1.2), ("b", 1.5)):
        write_csv(tmp_path / f"{name}.csv", [(30, factor)])
    path = config(tmp_path, "".join(csv_test(tmp_path / f"{n}.csv", f"db.{n}") for n in "ab"), section(pagerduty))
    assert hunter("run", "--once", "--config", path).code == 0  # both in one message
    key, = pagerduty.incidents
    agent = agents(path)
    known, url = ids(hunter, path), agent.address()

    def say(test, state):
        assert hunter("triage", known[test], state, "--note", "x", "--agent", url).code == 0

    def shows(*states):
        pagerduty.wait(lambda: pagerduty.log == [(key, state) for state in states])

    say("db.a", "expected")
    say("db.b", "acknowledged")
    shows("triggered", "acknowledged")
    write_csv(tmp_path / "b.csv", [(30, 1.5), (60, 1 / 1.5)], points=120)
    shows("triggered", "acknowledged", "resolved")
    say("db.a", "open")
    shows("triggered", "acknowledged", "resolved", "triggered")
    say("db.a", "fixed")
    shows("triggered", "acknowledged", "resolved", "triggered", "resolved")


def test_an_answer_is_lost_and_the_change_is_accepted(hunter, agents, tmp_path, pagerduty):
    """Nobody knows whether the incident was triggered when nobody need look at it any more: it is resolved."""
    write_csv(tmp_path / "a.csv", [(30, 1.2)])
    pagerduty.lose = {1}
    path = config(tmp_path, csv_test(tmp_path / "a.csv"), section(pagerduty))
    agent = agents(path)
    agent.wait_log("delivery failed, will retry")
    known = ids(hunter, path)
    assert hunter("triage", known["db.read"], "ignored", "--note", "x", "--agent", agent.address()).code == 0
    pagerduty.wait(lambda: list(pagerduty.incidents.values()) == ["resolved"])


TIMES = 100 if os.environ.get("HUNTER_TEST_FULL") else 5


def test_killed_while_it_triggers_and_resolves(hunter, agents, tmp_path, pagerduty):
    """Whenever it is killed, the incident is in the end what the change is."""
    write_csv(tmp_path / "a.csv", [(30, 1.2)])
    path = config(tmp_path, csv_test(tmp_path / "a.csv"), section(pagerduty))
    agent = agents(path)
    pagerduty.wait(lambda: pagerduty.incidents)
    known, dice = ids(hunter, path)["db.read"], random.Random(14)
    for i in range(TIMES):
        said, wanted = ("expected", "resolved") if i % 2 == 0 else ("open", "triggered")
        assert hunter("triage", known, said, "--note", "x", "--agent", agent.address()).code == 0
        pause(dice.uniform(0, 0.3), "the moment of the kill: between what was said and what PagerDuty is told")
        agent.end(signal.SIGKILL)
        agent = agents(path)
        pagerduty.wait(lambda: list(pagerduty.incidents.values()) == [wanted])
