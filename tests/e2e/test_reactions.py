"""Answers from Slack: triagers' reactions become triage, and the message shows the triage, whatever was said where.

Slack is the strict fake, with its limits and errors; the store is read as it is on the disk.
"""
import os
import random
import signal

import pytest
from agent import CANARY, config, csv_test, write_csv
from state_address import KIND, open_state
from waiting import pause

FULL = bool(os.environ.get("HUNTER_TEST_FULL"))
ANN, BOB, EVE = "U012ANN", "U012BOB00", "U012EVE00"


def bot(slack, more=f"triagers: [{ANN}, {BOB}]", channels="#perf"):
    return f'slack: {{bot_token: "{CANARY}", channels: ["{channels}"], api_url: "{slack.api}", timeout: 2s{", " + more if more else ""}}}'


def state_of(tmp_path, query):
    with open_state(tmp_path) as state:
        return state.execute(query).fetchall()


def triage(tmp_path):
    """(state, person, version) of each change, by id; None: nobody has said anything."""
    return state_of(tmp_path, "SELECT triage, person, version FROM changes LEFT JOIN triage ON change = id ORDER BY id")


def audit(tmp_path):
    return state_of(tmp_path, "SELECT kind, person, origin, detail FROM events WHERE kind > 7 ORDER BY id")


def wait_triage(agent, tmp_path, *expected):
    agent.wait(lambda: [row[0] or 1 for row in triage(tmp_path)] == list(expected))


def wait_context(agent, slack, ts, words):
    agent.wait(lambda: words in (slack.context(ts) or ""))


def told(agents, tmp_path, slack, more=f"triagers: [{ANN}, {BOB}]"):
    """An agent that has posted one change; the message's ts."""
    write_csv(tmp_path / "a.csv", [(30, 1.2)])
    agent = agents(config(tmp_path, csv_test(tmp_path / "a.csv"), bot(slack, more)))
    slack.wait(lambda: len(slack.posts) == 1)
    agent.wait_log("msg=sent")
    return agent, slack.stamps[0]


OPEN, ACKNOWLEDGED, EXPECTED, IGNORED, INFRA, FALSE, FIXED = range(1, 8)


def test_reaction_sets_triage_and_removal_takes_it_back(agents, tmp_path, slack):
    agent, ts = told(agents, tmp_path, slack)
    slack.react(ts, "eyes", EVE)  # no triager
    slack.react(ts, "tada", ANN)  # says nothing
    slack.wait(lambda: len(slack.reads) >= 2)
    assert triage(tmp_path) == [(None, None, None)]
    slack.react(ts, "white_check_mark", ANN)
    wait_triage(agent, tmp_path, EXPECTED)
    assert triage(tmp_path) == [(EXPECTED, ANN, 1)]
    assert audit(tmp_path) == [(10, ANN, "Slack #perf", "expected, was open")]
    wait_context(agent, slack, ts, f":white_check_mark: *expected* by {ANN}")
    before = len(slack.reads)
    slack.wait(lambda: len(slack.reads) >= before + 2)
    assert triage(tmp_path) == [(EXPECTED, ANN, 1)] and len(slack.edits) == 1  # taken once
    slack.unreact(ts, "white_check_mark", ANN)
    wait_triage(agent, tmp_path, OPEN)
    wait_context(agent, slack, ts, "*open again*")
    assert [row[:2] for row in audit(tmp_path)] == [(10, ANN), (10, ANN)]
    assert agent.end() == 0 and len(slack.posts) == 1


def test_latest_of_two_reactions_wins_and_is_logged_once(agents, tmp_path, slack):
    agent, ts = told(agents, tmp_path, slack)
    slack.react(ts, "eyes", ANN)
    wait_triage(agent, tmp_path, ACKNOWLEDGED)
    slack.react(ts, "construction", BOB)
    wait_triage(agent, tmp_path, INFRA)
    wait_context(agent, slack, ts, f":construction: *infra* by <@{BOB}>")
    before = len(slack.reads)
    slack.wait(lambda: len(slack.reads) >= before + 2)
    assert triage(tmp_path) == [(INFRA, BOB, 2)]
    assert len([line for line in agent.log if "instead_of=acknowledged" in line]) == 1


def test_a_reaction_that_was_taken_is_not_taken_after_a_restart(agents, tmp_path, slack):
    """Killed when it has taken it: it is neither lost nor taken twice, though the message still has it."""
    agent, ts = told(agents, tmp_path, slack)
    slack.react(ts, "x", ANN)
    wait_triage(agent, tmp_path, FALSE)
    agent.process.send_signal(signal.SIGKILL)
    agent.process.wait()
    agent = agents(tmp_path / "hunter.yaml")
    wait_context(agent, slack, ts, ":x: *false*")
    before = len(slack.reads)
    slack.wait(lambda: len(slack.reads) >= before + 2)
    assert triage(tmp_path) == [(FALSE, ANN, 1)] and len(slack.posts) == 1


def test_killed_between_triage_and_edit(agents, tmp_path, slack):
    agent, ts = told(agents, tmp_path, slack)
    slack.hang = True
    slack.react(ts, "eyes", ANN)
    slack.wait(lambda: "hang" in slack.refused)
    assert triage(tmp_path) == [(ACKNOWLEDGED, ANN, 1)] and slack.context(ts) is None
    agent.process.send_signal(signal.SIGKILL)
    agent.process.wait()
    slack.hang = False
    agent = agents(tmp_path / "hunter.yaml")
    wait_context(agent, slack, ts, ":eyes: *acknowledged*")
    before = len(slack.reads)
    slack.wait(lambda: len(slack.reads) >= before + 2)
    assert len(slack.edits) == 1 and len(slack.posts) == 1


def test_retry_after_is_kept_and_delays_no_delivery(agents, tmp_path, slack):
    slack.per_minute, slack.retry_after = 1, 12
    agent, ts = told(agents, tmp_path, slack)
    slack.wait(lambda: "429 reactions.get" in slack.refused)
    write_csv(tmp_path / "a.csv", [(30, 1.2), (60, 1.4)], points=100)
    slack.wait(lambda: len(slack.posts) == 2)
    slack.per_minute = 50
    before = len(slack.reads)
    slack.wait(lambda: len(slack.reads) > before)
    assert slack.reads[before][0] - slack.limited_at[-1] >= 11.5


def test_missing_scope_is_one_warning_and_mended_by_a_reload(agents, tmp_path, slack):
    slack.scopes.remove("reactions:read")
    agent, ts = told(agents, tmp_path, slack)
    assert "missing_scope: reactions:read" in agent.wait_log("cannot read reactions to messages")
    slack.react(ts, "eyes", ANN)
    slack.scopes.add("reactions:read")
    agent.process.send_signal(signal.SIGHUP)
    wait_triage(agent, tmp_path, ACKNOWLEDGED)
    assert len([line for line in agent.log if "cannot read reactions" in line]) == 1


@pytest.mark.parametrize("error", ["cant_update_message", "edit_window_closed", "msg_too_long"])
def test_an_edit_that_is_refused_for_good_is_given_up(agents, tmp_path, slack, error):
    agent, ts = told(agents, tmp_path, slack)
    slack.update_error = error
    slack.react(ts, "eyes", ANN)
    assert error in agent.wait_log("message not updated")
    slack.update_error = None
    before = len(slack.reads)
    slack.wait(lambda: len(slack.reads) >= before + 2)
    assert slack.edits == [] and slack.refused.count(error) == 1
    slack.react(ts, "x", BOB)  # what is said next is shown, if it can be
    wait_context(agent, slack, ts, ":x: *false*")


@pytest.mark.parametrize("error", ["invalid_auth", "not_in_channel", "ratelimited", "internal_error"])
def test_an_edit_that_fails_is_tried_again(agents, tmp_path, slack, error):
    """What somebody has to fix waits for a reload, the rest for a moment; posting goes on."""
    agent, ts = told(agents, tmp_path, slack)
    slack.update_error = error
    slack.react(ts, "eyes", ANN)
    assert error in agent.wait_log("cannot update messages")
    slack.update_error = None
    if error in ("invalid_auth", "not_in_channel"):
        agent.process.send_signal(signal.SIGHUP)
    wait_context(agent, slack, ts, ":eyes: *acknowledged*")
    assert len(slack.edits) == 1


def test_a_message_that_was_deleted_is_not_read_again(agents, tmp_path, slack):
    agent, ts = told(agents, tmp_path, slack)
    slack.read_error = "message_not_found"
    slack.wait(lambda: "message_not_found" in slack.refused)
    slack.read_error = None
    reads = len(slack.reads)
    write_csv(tmp_path / "a.csv", [(30, 1.2), (60, 1.4)], points=100)
    slack.wait(lambda: len(slack.reads) >= reads + 2)
    assert {stamp for _, stamp in slack.reads[reads:]} == {slack.stamps[1]}


def test_a_message_that_was_deleted_is_posted_anew(hunter, agents, tmp_path, slack):
    """Once, when there is something new of a change that stands; not when there is nothing left to tell."""
    agent, ts = told(agents, tmp_path, slack)
    number = str(state_of(tmp_path, "SELECT id FROM changes")[0][0])

    def say(state):
        done = hunter("triage", "--config", tmp_path / "hunter.yaml", "--agent", agent.address(), number, state)
        assert done.code == 0, done.err

    slack.deleted.add(ts)
    say("acknowledged")
    slack.wait(lambda: len(slack.posts) == 2)
    wait_context(agent, slack, slack.stamps[1], ":eyes: *acknowledged*")
    agent.wait_log("message updated")  # which is also noted
    agent.end()
    agent = agents(tmp_path / "hunter.yaml")
    slack.deleted.add(slack.stamps[1])
    say("expected")
    assert "message_not_found" in agent.wait_log("message not updated")
    agent.pass_by(2)
    assert len(slack.posts) == 2


def test_without_triagers_nothing_is_read(agents, tmp_path, slack):
    agent, ts = told(agents, tmp_path, slack, more="")
    slack.react(ts, "eyes", ANN)
    agent.pass_by(8)
    assert "reactions.get" not in slack.looks and triage(tmp_path) == [(None, None, None)]


def test_a_webhook_is_neither_read_nor_edited(agents, tmp_path, slack):
    write_csv(tmp_path / "a.csv", [(30, 1.2)])
    agent = agents(config(tmp_path, csv_test(tmp_path / "a.csv"), f'slack: {{webhook_url: "{slack.webhook}"}}'))
    slack.wait(lambda: len(slack.posts) == 1)
    agent.pass_by(8)
    assert slack.looks == [] and slack.edits == []


def test_many_messages_are_read_in_turn_at_most_20_a_minute(hunter, agents, tmp_path, slack):
    """And many edits do not keep reactions waiting."""
    for k in range(6):
        write_csv(tmp_path / f"{k}.csv", [(15 + 12 * k, 1.2)] if k < 3 else [], points=100)
    tests = "".join(csv_test(tmp_path / f"{k}.csv", name=f"db{k}") for k in range(6))
    agent = agents(config(tmp_path, tests, bot(slack)))
    slack.wait(lambda: len(slack.posts) == 3)
    for k in range(3, 6):  # more than three at once would be one message
        write_csv(tmp_path / f"{k}.csv", [(15 + 12 * k, 1.2)], points=100)
    slack.wait(lambda: len(slack.posts) == 6)
    slack.wait(lambda: len(slack.reads) >= 8)
    times = [at for at, _ in slack.reads]
    assert min(b - a for a, b in zip(times, times[1:])) >= 2.9
    last = [stamp for _, stamp in slack.reads[-6:]]
    assert sorted(last) == sorted(slack.stamps)
    done = hunter("triage", "--config", tmp_path / "hunter.yaml", "--agent", agent.address(), "1..6", "acknowledged")
    assert done.code == 0, done.err
    slack.wait(lambda: len(slack.edits) == 4)
    first, last = slack.edits[0][0], slack.edits[-1][0]
    assert len([at for at, _ in slack.reads if first < at < last]) >= 2
    requests = sorted(at for at, _ in slack.reads + slack.edits)
    assert min(b - a for a, b in zip(requests, requests[1:])) >= 2.9


def test_configuration(hunter, tmp_path, slack):
    write_csv(tmp_path / "a.csv", [(30, 1.2)])
    path = config(tmp_path, csv_test(tmp_path / "a.csv"), bot(slack, "triagers: [ann]"))
    done = hunter("validate", "--config", path)
    assert done.code == 2 and 'hunter.yaml:2' in done.out and 'triagers: "ann" is not the id of a Slack user' in done.out
    path = config(tmp_path, csv_test(tmp_path / "a.csv"), bot(slack, f"triagers: [{ANN}], reactions: {{eyes: acknowleged}}"))
    done = hunter("validate", "--config", path)
    assert done.code == 2 and 'reactions: eyes: "acknowleged" is not a triage state (did you mean "acknowledged"?)' in done.out


def test_50_kills_lose_and_double_no_reaction(agents, tmp_path, slack):
    """A reaction comes and goes; the agent is killed a random while after its start, while it reads, stores or edits. With a database these
    are fewer, as each start waits until the lease of the one that was killed is over."""
    agent, ts = told(agents, tmp_path, slack)
    agent.process.send_signal(signal.SIGKILL)
    agent.process.wait()
    slack.per_minute, rng, there = 1000, random.Random(4), False
    for _ in range(50 if KIND == "file" or FULL else 8):
        if rng.random() < 0.5:
            (slack.unreact if there else slack.react)(ts, "eyes", ANN)
            there = not there
        requests = len(slack.reads) + len(slack.edits)
        agent = agents(tmp_path / "hunter.yaml")
        if rng.random() < 0.75:
            slack.wait(lambda: len(slack.reads) + len(slack.edits) > requests)
        pause(rng.uniform(0, 0.03), "the moment of the kill")
        agent.end(signal.SIGKILL)
    if not there:
        slack.react(ts, "eyes", ANN)
    agent = agents(tmp_path / "hunter.yaml")
    agent.wait(lambda: [row[0] for row in triage(tmp_path)] == [ACKNOWLEDGED])
    wait_context(agent, slack, ts, ":eyes: *acknowledged*")
    assert len(slack.posts) == 1
    said = [detail for action, _, _, detail in audit(tmp_path)]
    assert said == ["acknowledged, was open", "open, was acknowledged"] * (len(said) // 2) + ["acknowledged, was open"]
    assert (3 if KIND == "file" else 1) <= len(said) <= triage(tmp_path)[0][2]


def test_what_is_said_elsewhere_is_shown_and_wins(hunter, agents, tmp_path, slack):
    """By the command: shown in Slack, without triagers, too. The reaction that was taken does not come back, nor after a restart."""
    agent, ts = told(agents, tmp_path, slack)

    def say(*arguments):
        done = hunter("triage", "--config", tmp_path / "hunter.yaml", "--agent", agent.address(), *arguments)
        assert done.code == 0, done.err

    slack.react(ts, "eyes", ANN)
    wait_triage(agent, tmp_path, ACKNOWLEDGED)
    number = str(state_of(tmp_path, "SELECT id FROM changes")[0][0])
    say(number, "expected", "--owner", "cleo", "--note", "bigger <cache>", "--link", "https://git.example/pr/4411")
    wait_context(agent, slack, ts, "owner cleo: bigger &lt;cache&gt; <https://git.example/pr/4411|link>")
    slack.unreact(ts, "eyes", ANN)  # somebody has said something since
    agent.wait(lambda: state_of(tmp_path, "SELECT reaction FROM deliveries") == [("",)])
    assert triage(tmp_path)[0][0] == EXPECTED
    say(number, "open")
    slack.react(ts, "construction", BOB)
    wait_triage(agent, tmp_path, INFRA)
    say(number, "open")
    wait_context(agent, slack, ts, "*open again*")
    assert agent.end() == 0
    agent = agents(config(tmp_path, csv_test(tmp_path / "a.csv"), bot(slack)))
    before = len(slack.reads)
    slack.wait(lambda: len(slack.reads) >= before + 2)
    assert triage(tmp_path)[0][0] == OPEN
    agent.end()
    agent = agents(config(tmp_path, csv_test(tmp_path / "a.csv"), bot(slack, "")))
    say(number, "fixed")
    wait_context(agent, slack, ts, "*fixed*")


def test_what_is_said_without_an_agent_is_shown_by_the_next(hunter, agents, tmp_path, slack):
    agent, ts = told(agents, tmp_path, slack)
    agent.end()
    number = str(state_of(tmp_path, "SELECT id FROM changes")[0][0])
    done = hunter("triage", "--config", tmp_path / "hunter.yaml", number, "acknowledged", "--owner", "ann", "--until", "3 days")
    assert done.code == 0, done.err
    agent = agents(tmp_path / "hunter.yaml")
    wait_context(agent, slack, ts, "owner ann, until <!date^")


def test_an_expired_acknowledgement_is_shown_as_open(hunter, agents, tmp_path, slack):
    agent, ts = told(agents, tmp_path, slack)
    number = str(state_of(tmp_path, "SELECT id FROM changes")[0][0])
    done = hunter("triage", "--config", tmp_path / "hunter.yaml", "--agent", agent.address(), number, "acknowledged", "--until", "8 s")
    assert done.code == 0, done.err
    wait_context(agent, slack, ts, ":eyes: *acknowledged*")
    wait_context(agent, slack, ts, "*open again* by hunter-c")
