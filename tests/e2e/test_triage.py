"""What people say about changes: `triage`, `changes --open`, the API, with an agent and without; two at once; many at once."""
import concurrent.futures
import csv
import io
import json
import os
import re
import socket

import pytest
from agent import ask, config, csv_test, on_demand, port_of, post, write_csv
from state_address import open_state, state_of
from test_agent_api import wait_for_change
from test_routing import make_tests, receivers, told
from waiting import LONGEST, wait



def settings(tmp_path, more="", listen=True):
    """Three tests, two of them with a regression; db.read's is the worse one, db.good's is none."""
    write_csv(tmp_path / "read.csv", [(30, 1.5)])
    write_csv(tmp_path / "write.csv", [(40, 1.2)])
    write_csv(tmp_path / "good.csv", [(30, 0.7)])
    tests = "".join(csv_test(tmp_path / f"{name}.csv", f"db.{name}") for name in ("read", "write", "good"))
    path = on_demand(config(tmp_path, tests, agent=more))
    if listen:
        path.write_text(path.read_text().replace("listen: 127.0.0.1:0", f"listen: ['127.0.0.1:0', 'unix:{tmp_path}/api.sock']"))
    return path


@pytest.fixture
def running(agents, hunter, tmp_path):
    path = settings(tmp_path)
    agent = agents(path)
    agent.wait_metric("hunter_runs_total", 3)
    agent.port, agent.path = port_of(agent), path
    agent.wait(lambda: all(change["incident"] for change in ask(agent.port, "/api/v1/changes").json["changes"]))
    agent.ids = {change["test"]: change["id"] for change in ask(agent.port, "/api/v1/changes").json["changes"]}
    assert len(agent.ids) == 3
    yield agent
    assert agent.end() == 0


def changes_of(port):
    return ask(port, "/api/v1/changes").json["changes"]


def triage_of(port, number):
    return next(c["triage"] for c in changes_of(port) if c["id"] == number)


def columns(table):
    """The rows of a table, by their headers."""
    lines = [line for line in table.splitlines() if line.strip()]
    rule = next(i for i, line in enumerate(lines) if set(line) <= set("- "))
    spans, at = [], 0
    for dashes in lines[rule].split("  "):
        spans.append((at, at + len(dashes)))
        at += len(dashes) + 2
    headers = [lines[rule - 1][a:b].strip() for a, b in spans]
    return [dict(zip(headers, (line[a:b].strip() for a, b in spans))) for line in lines[rule + 1:]]


def test_one(running):
    number = running.ids["db.read"]
    assert triage_of(running.port, number) == {"state": "open", "version": 0, "owner": None, "note": None, "link": None, "person": None,
                                               "time": None, "until": None, "size": None, "size_low": None, "size_high": None, "inherited": None}
    status, answer = post(running.port, f"/api/v1/changes/{number}/triage", state="acknowledged", owner="ann", note="looking", until="3 days",
                          link="https://issues.example/1", person="ann", version=0)
    assert status == 200 and answer["changed"] == 1, answer
    said = answer["changes"][0]["triage"]
    assert (said["state"], said["version"], said["owner"], said["note"], said["person"]) == ("acknowledged", 1, "ann", "looking", "ann")
    assert said == triage_of(running.port, number) and said["until"] > said["time"]
    # The same again, even with the version seen then: nothing.
    status, again = post(running.port, f"/api/v1/changes/{number}/triage", state="acknowledged", owner="ann", note="looking", version=0)
    assert status == 200 and again["changed"] == 0 and again["changes"][0]["triage"] == said, again
    # A part of it; the rest stays.
    status, answer = post(running.port, f"/api/v1/changes/{number}/triage", note="PR 4411", owner="")
    assert status == 200
    assert {k: answer["changes"][0]["triage"][k] for k in ("state", "version", "owner", "note", "link")} == {
        "state": "acknowledged", "version": 2, "owner": None, "note": "PR 4411", "link": "https://issues.example/1"}
    status, answer = post(running.port, f"/api/v1/changes/{number}/triage", until="never")
    assert status == 200 and answer["changes"][0]["triage"]["until"] is None
    # Who said what, in the change's history and in the audit log.
    change = next(c for c in ask(running.port, "/api/v1/changes").json["changes"] if c["id"] == number)
    told = [event for event in change["history"] if event["event"] == "triaged"]
    assert [event["person"] for event in told] == ["ann", "local", "local"] and told[0]["origin"] == "127.0.0.1", told
    audit = ask(running.port, "/api/v1/audit").json
    assert [entry["action"] for entry in audit["audit"]] == ["triaged"] * 3 and audit["next"] is None, audit
    assert {entry["change"] for entry in audit["audit"]} == {number}
    page = ask(running.port, "/api/v1/audit?limit=2").json
    rest = ask(running.port, f"/api/v1/audit?limit=2&before={page['next']}").json
    assert page["audit"] + rest["audit"] == audit["audit"] and rest["next"] is None


def test_wrong_requests(running):
    number = running.ids["db.read"]
    one = f"/api/v1/changes/{number}/triage"
    for path, form, code, told in (
            (one, {}, 400, "one of state, owner"), (one, {"state": "expectd"}, 400, 'did you mean "expected"'),
            (one, {"state": "open", "sate": "x"}, 400, "unknown parameter"), (one, {"owner": "a\x1b[1m"}, 400, "owner: "),
            (one, {"note": "x" * 4001}, 400, "note: more than 4000 bytes"), (one, {"link": "javascript:alert(1)"}, 400, "link: "),
            (one, {"until": "yesterday"}, 400, 'until: "yesterday" is in the past'), (one, {"until": "soon"}, 400, "until: "),
            (one, {"state": "open", "version": "-1"}, 400, "version: "), (one, {"note": "a", "reason": "b"}, 400, "unknown parameter"),
            (one, {"state": "open", "person": ""}, 400, "person: "), (one, {"state": "open", "dry_run": "yes"}, 400, "dry_run: "),
            ("/api/v1/changes/999/triage", {"state": "open"}, 404, "there is no change 999"),
            ("/api/v1/triage", {"state": "open", "ids": "998,999"}, 404, "no change is selected by the ids 998,999"),
            ("/api/v1/triage", {"state": "open", "ids": str(number), "test": "x"}, 404, f'the ids {number} and the test "x"'),
            ("/api/v1/changes/0/triage", {"state": "open"}, 404, "not found"),
            ("/api/v1/triage", {"state": "open"}, 400, "selected"), ("/api/v1/triage", {"state": "open", "ids": "1,,2"}, 400, "ids: "),
            ("/api/v1/triage", {"state": "open", "ids": "5..2"}, 400, "ids: "), ("/api/v1/triage", {"state": "open", "ids": "99..199"}, 404, "the ids 99..199"),
            ("/api/v1/triage", {"state": "open", "test": ""}, 400, "test: it is empty"),
            ("/api/v1/triage", {"state": "open", "test": "nothing.*"}, 404, 'no change is selected by the test "nothing.*"')):
        status, answer = post(running.port, path, **form)
        assert status == code and told in answer["error"], (path, form, answer)
    assert ask(running.port, one).status == 405 and ask(running.port, "/api/v1/triage").status == 405
    # What only the store can refuse: that is no failure of the store. Of several changes the version is the sum.
    for _ in range(2):
        status, answer = post(running.port, "/api/v1/triage", ids="1..999999", state="expected", person="ann", version=1)
        assert status == 409 and "nothing was changed" in answer["error"] and answer["changed"] == 0, answer
    assert ask(running.port, "/-/ready").status == 200
    assert ask(running.port, "/api/v1/changes?triage=nonsense").status == 400 and ask(running.port, "/api/v1/changes?open=1").status == 400
    assert triage_of(running.port, number)["version"] == 0 and ask(running.port, "/api/v1/audit").json["audit"] == []


def test_selections(running):
    numbers = sorted(running.ids.values())
    status, answer = post(running.port, "/api/v1/triage", ids=f"{numbers[0]}..{numbers[-1]}", state="expected", dry_run="true")
    assert status == 200 and (answer["changed"], answer["count"]) == (3, 3) and triage_of(running.port, numbers[0])["version"] == 0
    status, answer = post(running.port, "/api/v1/triage", test="db.*e", state="expected", note="why")
    assert status == 200 and [c["test"] for c in answer["changes"]] == ["db.write"], answer
    overlapping = ",".join(f"1..{number}" for number in [numbers[-1]] * 2000 + numbers)
    status, answer = post(running.port, "/api/v1/triage", ids=overlapping, note="all")
    assert status == 200 and answer["changed"] == 3, answer
    status, answer = post(running.port, "/api/v1/triage", commit="c0030", state="infra")
    assert status == 200 and {c["test"] for c in answer["changes"]} == {"db.read", "db.good"}, answer
    with open_state(running.path.parent) as state:
        key = state.execute("SELECT key FROM deliveries ORDER BY id LIMIT 1").fetchone()[0]
    status, answer = post(running.port, "/api/v1/triage", message=key, state="fixed")
    assert status == 200 and answer["count"] >= 1, answer
    listed = ask(running.port, "/api/v1/changes?triage=fixed,infra").json["changes"]
    assert {c["triage"]["state"] for c in listed} <= {"fixed", "infra"} and listed


def test_lists_of_an_agent_and_of_its_state(agents, hunter, tmp_path):
    """Byte for byte the same, whoever is asked, in each form; numbers have all their digits."""
    path = settings(tmp_path)
    links = "    owner: the übers\n    dashboard: https://grafana.example/{test}\n    attributes: [commit]"
    path.write_text(path.read_text().replace("    attributes: [commit]", links))
    agent = agents(path)
    agent.port = port_of(agent)
    agent.wait(lambda: len(changes_of(agent.port)) == 3 and all(c["announced"] for c in changes_of(agent.port)))
    numbers = sorted(c["id"] for c in changes_of(agent.port))
    assert any(len(str(c["mean_after"])) > 12 for c in changes_of(agent.port)) and any(c["owner"] for c in changes_of(agent.port))
    assert hunter("silence", "add", 'test="db.read"', "--for", "3 days", "--reason", "a \"b\", ü", "--config", path).code == 0
    assert hunter("triage", numbers[0], "fixed", "--note", "=1+1, \\ ü", "--until", "2099-01-02", "--config", path).code == 0
    lists = [(*words, "--output", output) for words, outputs in
             ((["changes"], "text json csv"), (["changes", "--open"], "text json csv"), (["changes", "--triage", "fixed"], "json csv"),
              (["changes", "--test", "db.r*", "--since", "2024-03-01", "--limit", "1"], "text json csv"),
              (["silence", "list"], "text json csv"), (["silence", "list", "--all"], "text json csv"), (["triage", *numbers[1:]], "text json csv"),
              (["store", "audit", "--since", "2020-01-01", "--limit", "1"], "json"), (["store", "audit", "--change", numbers[0]], "json"), (["store", "audit"], "text json csv"))
             for output in outputs.split()]
    of_agent = [hunter(*words, "--agent", f"unix:{tmp_path}/api.sock") for words in lists]
    assert agent.end() == 0
    for words, asked in zip(lists, of_agent):
        assert asked.code == 0 and len(asked.out) > 100, (words, asked)
        assert hunter(*words, "--config", path).out == asked.out, words
    rows = dict(zip(lists, (list(csv.DictReader(io.StringIO(asked.out))) for asked in of_agent)))
    assert rows["silence", "list", "--output", "csv"][0]["reason"] == 'a "b", ü'
    named = [row for row in rows["changes", "--output", "csv"] if int(row["id"]) in numbers[1:]]
    of_triage = sorted(rows["triage", *numbers[1:], "--output", "csv"], key=lambda row: row["id"])
    assert [{k: (v, of[k]) for k, v in row.items() if of[k] != v and k != "announced"} for row, of in zip(of_triage, sorted(named, key=lambda row: row["id"]))] == [{}, {}]
    log = of_agent[-1].out.splitlines()
    assert log[0] == "time,person,origin,action,change,subject,detail" and f",{numbers[0]},db." in log[1], log


def test_inbox(running, hunter):
    """Regressions that stand and are open or acknowledged, the worst first."""
    def inbox(*more):
        done = hunter("changes", "--open", "--config", running.path, *more)
        assert done.code == 0, done
        return columns(done.out)

    rows = inbox()
    assert [(row["id"], row["test"], row["triage"], row["state"]) for row in rows] == [
        (str(running.ids["db.read"]), "db.read", "open", "confirmed"), (str(running.ids["db.write"]), "db.write", "open", "confirmed")]
    assert 45 < float(rows[0]["change %"]) < 60 and (rows[0]["last good"], rows[0]["first bad"]) == ("c0029", "c0030"), rows
    assert inbox("--agent", f"unix:{running.path.parent}/api.sock") == rows
    assert inbox("--limit", "1") == rows[:1]
    done = hunter("triage", running.ids["db.read"], "acknowledged", "--owner", "ann", "--note", "looking", "--until", "3 days", "--config", running.path)
    assert done.code == 0 and "1 change changed" in done.out, done
    row = inbox()[0]
    assert (row["triage"], row["owner"], row["note"]) == ("acknowledged", "ann", "looking") and row["triaged by"] and row["until"], row
    assert hunter("triage", running.ids["db.read"], "expected", "--config", running.path).code == 0
    assert [row["test"] for row in inbox()] == ["db.write"]
    ids = [c["id"] for c in json.loads(hunter("changes", "--open", "--config", running.path, "--output", "json").out)["changes"]]
    assert ids == [running.ids["db.write"]]
    assert [c["test"] for c in ask(running.port, "/api/v1/changes?open=true").json["changes"]] == ["db.write"]
    listed = columns(hunter("changes", "--triage", "expected,infra", "--config", running.path).out)
    assert [row["test"] for row in listed] == ["db.read"]
    text = hunter("changes", "--config", running.path, "--output", "csv").out.splitlines()
    assert text[0].endswith(",triage,triage_owner,triage_note,triage_person,triage_time,triage_until")
    assert [line for line in text if ",db.read," in line][0].split(",expected,ann,,")[1]
    assert columns(hunter("changes", "--open", "--triage", "expected", "--config", running.path).out) == []
    assert ask(running.port, "/api/v1/changes?open=true&triage=expected").json["changes"] == []
    wrong = hunter("changes", "--triage", "expectd", "--config", running.path)
    assert wrong.code == 2 and "--triage" in wrong.err


def test_the_command(running, hunter):
    """Through the socket of the agent that has the state."""
    numbers = sorted(running.ids.values())

    def triage(*arguments):
        return hunter("triage", "--config", running.path, *arguments)

    done = triage(f"{numbers[0]}..{numbers[1]}", f"{numbers[2]}", "expected", "--reason", "bigger cache, PR 4411")
    assert done.code == 0 and "3 changes changed" in done.out, done
    done = triage(*numbers, "expected")
    assert done.code == 0 and "0 changes changed, 3 were so already" in done.out, done
    shown = triage(*numbers)
    assert shown.code == 0 and [row["triage"] for row in columns(shown.out)] == ["expected"] * 3 and "changed" not in shown.out, shown
    refused = triage(numbers[0], 998, "999", f"{numbers[1]}..{numbers[2]}", "ignored")
    assert refused.code == 2 and "there is no change 998, 999: nothing was changed" in refused.err, refused
    assert [row["triage"] for row in columns(triage(*numbers).out)] == ["expected"] * 3
    refused = triage(numbers[0], "open", "--until", "3 days")
    assert refused.code == 2 and "until: " in refused.err, refused
    done = triage("--test", "db.write", "open", "--note", "none", "--dry-run")
    assert done.code == 0 and "1 change would be changed" in done.out, done
    done = triage("--test", "db.write", "open", "--note", "none")
    assert done.code == 0 and json.loads(triage("--test", "db.write", "--output", "json").out)["changes"][0]["triage"]["note"] is None
    for arguments, told in ((("expected",), "triage requires changes"), (("1", "expectd"), '"expectd" is neither'), (("expected", "1"), '"expected" is neither'),
                            (("1", "open", "--until", "yesterday"), "in the past"), (("999", "open"), "there is no change 999"),
                            (("1..", "open"), "ids: "), (("1", "open", "--link", "nowhere"), "link: ")):
        refused = triage(*arguments)
        assert refused.code == 2 and told in refused.err, (arguments, refused)


def test_two_at_once(running, hunter):
    number = running.ids["db.read"]
    path = f"/api/v1/changes/{number}/triage"
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(lambda i: post(running.port, path, state=("expected", "infra")[i % 2], person=f"p{i}", version=0), range(8)))
    won = [answer for status, answer in answers if status == 200 and answer["changed"] == 1]
    assert len(won) == 1, answers
    now = won[0]["changes"][0]["triage"]
    for status, answer in answers:
        if status == 409:
            assert answer["changes"][0]["triage"] == now and f"is {now['state']} now, as {now['person']} said at" in answer["error"], answer
        else:
            assert status == 200 and answer["changes"][0]["triage"] == now  # said the same
    assert sum(status == 409 for status, _ in answers) == 4 and triage_of(running.port, number)["version"] == 1
    # The command tells who said what, too.
    refused = hunter("triage", number, "false", "--seen", "0", "--config", running.path)
    assert refused.code == 2 and f"change {number} is {now['state']} now, as {now['person']} said at" in refused.err, refused
    assert now["state"] in refused.out
    assert hunter("triage", number, "false", "--seen", "1", "--config", running.path).code == 0
    # Who does not say what they have seen learns what was there.
    assert post(running.port, path, state="infra", person="bob")[0] == 200
    done = hunter("triage", number, "fixed", "--config", running.path)
    assert done.code == 0 and "it was infra before, triaged by bob at 20" in done.err, done
    assert "before" not in hunter("triage", number, "expected", "--config", running.path).err


def test_without_an_agent(agents, hunter, tmp_path):
    path = settings(tmp_path, listen=False)
    assert hunter("run", "--once", "--config", path).code == 0
    number = wait_for_change(hunter, path)
    done = hunter("triage", number, "expected", "--note", "known", "--config", path)
    assert done.code == 0 and "1 change changed" in done.out, done
    change = next(c for c in json.loads(hunter("changes", "--config", path, "--output", "json").out)["changes"] if c["id"] == number)
    assert [event["origin"] for event in change["history"] if event["event"] == "triaged"] == ["command line"], change
    refused = hunter("triage", number, "open", "--seen", "0", "--state-file", state_of(tmp_path))
    assert refused.code == 2 and "is expected now" in refused.err, refused
    refused = hunter("triage", number, "expected", "--until", "yesterday", "--config", path)
    assert refused.code == 2 and refused.err.startswith('hunter-c: --until: "yesterday" is in the past'), refused
    # Without an agent that opens it again, the clock decides.
    assert hunter("triage", number, "expected", "--until", "2s", "--config", path).code == 0

    def listed(*flags):
        return [row["triage"] for row in columns(hunter("changes", "--config", path, *flags).out) if row["id"] == str(number)]

    wait(lambda: not listed("--triage", "expected"))
    assert listed("--triage", "open") == ["open"]
    assert columns(hunter("triage", number, "--config", path).out)[0]["triage"] == "open"
    assert hunter("triage", number, "expected", "--config", path).out.count("1 change changed") == 1
    # Eight people at once: each waits for the others.
    test = change["test"]

    def at_once(who, *what):
        with concurrent.futures.ThreadPoolExecutor(8) as pool:
            return list(pool.map(lambda i: hunter("triage", *what, "infra", "--owner", f"{who}{i}", "--config", path), range(8)))

    def version():
        shown = hunter("triage", number, "--state-file", state_of(tmp_path), "--output", "json")
        return json.loads(shown.out)["changes"][0]["triage"]["version"]

    answers = at_once("p", "--test", test)
    assert [answer.code for answer in answers] == [0] * 8 and version() == 11, answers
    # Of a single change one wins, and the others, who have seen it before, are told.
    answers = at_once("q", number)
    won = sum(answer.code == 0 for answer in answers)
    assert won >= 1 and version() == 11 + won, answers
    for answer in answers:
        assert answer.code == 0 or (answer.code == 2 and f"change {number} is infra now, as " in answer.err), answer


@pytest.mark.parametrize("command", [["triage", "1", "fixed"], ["changes"], ["silence", "list"], ["silence", "add", 'test="a"', "--for", "1h"]])
def test_a_database_that_does_not_answer(hunter, tmp_path, command):
    """It is asked once, and the error names the limit."""
    with socket.create_server(("127.0.0.1", 0)) as silent:
        port = silent.getsockname()[1]
        path = on_demand(config(tmp_path, csv_test("x.csv")))
        path.write_text(re.sub("state: .*", f'state: "postgresql://ann@127.0.0.1:{port}/x?connect_timeout=1"', path.read_text()))
        done = hunter(*command, "--config", path)
        assert done.code == 4 and "no connection within 1s (connect_timeout)" in done.err, done
        silent.setblocking(False)
        silent.accept()[0].close()
        with pytest.raises(BlockingIOError):
            silent.accept()


@pytest.mark.parametrize("command", [["changes"], ["triage", "1"], ["silence", "list"], ["store", "check"], ["store", "audit"]])
def test_a_state_that_is_no_file(hunter, tmp_path, command):
    os.mkfifo(tmp_path / "pipe")
    for path in ".", "pipe":
        done = hunter(*command, "--state-file", path)
        assert done.code == 4 and "is not a regular file" in done.err, done


def test_audit(running):
    assert ask(running.port, "/api/v1/run?test=db.*", "POST", timeout=LONGEST).status == 200
    assert ask(running.port, "/-/reload", "POST").status == 200
    assert ask(running.port, "/api/v1/run?test=none", "POST").status == 404
    def rows():
        return [(entry["action"], entry["subject"], entry["person"], entry["origin"]) for entry in ask(running.port, "/api/v1/audit").json["audit"]]
    running.wait(lambda: len(rows()) == 2)
    assert rows() == [("reloaded", str(running.path), "local", "127.0.0.1"), ("run", "db.*", "local", "127.0.0.1")]
    assert ask(running.port, "/api/v1/audit?since=tomorrow").json["audit"] == [] and ask(running.port, "/api/v1/audit?limit=0").status == 400


def test_830_in_one_request(agents, hunter, tmp_path):
    """Many ids of many changes: one command, one request, one transaction."""
    path = settings(tmp_path)
    assert hunter("run", "--once", "--config", path).code == 0
    with open_state(tmp_path) as state:
        names = [column[0] for column in state.execute("SELECT * FROM changes LIMIT 0").description if column[0] != "id"]
        columns_ = ", ".join(names)
        first = state.execute("SELECT min(id) FROM changes").fetchone()[0]
        for i in range(2000):
            shown = ", ".join(f"{name} + {i + 1} * 60000" if name == "time" else name for name in names)
            state.execute(f"INSERT INTO changes ({columns_}) SELECT {shown} FROM changes WHERE id = {first}")
        ids = [row[0] for row in state.execute("SELECT id FROM changes ORDER BY id")]
    agent = agents(path)
    agent.wait_log("msg=started")
    odd = ids[1::2][:830]
    done = hunter("triage", *odd, "expected", "--config", path)
    assert done.code == 0 and "830 changes changed" in done.out, (done.code, done.err, done.out[-300:])
    audit = json.loads(agent.get("/api/v1/audit?limit=1000")[1])["audit"]
    assert len(audit) == 830 and len({entry["time"] for entry in audit}) == 1
    done = hunter("triage", f"{ids[0]}..{ids[-1]}", "ignored", "--config", path)
    assert done.code == 0 and f"{len(ids)} changes changed" in done.out and f"... and {len(ids) - 1000} more" in done.out, done.out[-300:]
    # More entries than the API lists at once.
    words = ("store", "audit", "--limit", "2500", "--output", "csv")
    pages = hunter(*words, "--agent", f"unix:{tmp_path}/api.sock")
    assert len(pages.out.splitlines()) == 2501 and pages.out == hunter(*words, "--config", path).out
    assert pages.err == "hunter-c: warning: output truncated: use --limit or --since: shown=2500\n"
    assert agent.end() == 0


@pytest.mark.parametrize("words, problem", [
    (["i12", "i13", "expected"], "triage takes one incident at a time, not i12 and i13"),
    (["7", "i12", "fixed"], "ids of changes and an incident (i12) are mutually exclusive"),
    (["i12", "7"], "ids of changes and an incident (i12) are mutually exclusive"),
])
def test_one_incident_or_ids(hunter, words, problem):
    result = hunter("triage", *words)
    assert (result.code, result.out) == (2, "") and problem in result.err, result


def test_a_joiner_inherits_what_was_accepted(hunter, tmp_path, hook):
    """What joins an accepted incident is accepted if it has the same suspects and is no larger; that is nobody's judgement of it."""
    def run(**steps):
        tests.append(make_tests(tmp_path, **steps))
        path = config(tmp_path, "".join(tests), receivers(hook, "one"))
        result = hunter("run", "--once", "--config", path)
        assert result.code == 0, result.err
        return path, {c["test"]: c for c in json.loads(hunter("changes", "--config", path, "--output", "json").out)["changes"]}

    tests = []
    path, found = run(a=[(30, 1.5)], b=[(30, 1.2)])
    incident = found["a"]["incident"]
    assert incident and found["b"]["incident"] == incident and told(hook) == [("one", ["a", "b"])]
    said = hunter("triage", incident, "expected", "--note", "bigger cache", "--until", "3 days", "--config", path)
    assert said.code == 0, said.err
    hook.taken.clear()
    path, found = run(small=[(30, 1.3)], large=[(30, 1.8)], later=[(31, 1.3)])
    assert {test: found[test]["incident"] == incident for test in ("small", "large")} == {"small": True, "large": True}
    assert {test for _, tests in told(hook) for test in tests} == {"large", "later"}
    small, accepted = found["small"], found["a"]["triage"]
    assert small["reason"] == f"expected, inherited from {incident}"
    assert {k: small["triage"][k] for k in ("state", "note", "person", "inherited", "until")} == {
        "state": "expected", "note": f"inherited from {incident}: bigger cache", "person": "hunter-c", "inherited": incident,
        "until": accepted["until"]}
    assert accepted["inherited"] is None and found["large"]["triage"]["state"] == found["later"]["triage"]["state"] == "open"
    audit = json.loads(hunter("store", "audit", "--config", path, "--output", "json").out)["audit"]
    assert [(e["person"], e["detail"]) for e in audit if e["change"] == small["id"]] == [
        ("hunter-c", f"expected, inherited from {incident}")]
    assert f"inherited from {incident}" in hunter("why", "--config", path, "small", "p99").out
    scores = hunter("evaluate", "--from-triage", "--config", path, "--output", "json")
    assert {c["test"] for c in json.loads(scores.out)["triage"]["changes"]} == {"a", "b"}, scores.err
    # One of it is open: what joins now is, too.
    hook.taken.clear()
    path, found = run(more=[(30, 1.3)])
    assert found["more"]["incident"] == incident and told(hook) == [("one", ["more"])]
