"""Gates: changes that people have accepted do not fail a build, and the output says so."""
import csv
import datetime
import io
import json
import math
import random
import re
import signal

import pytest
from state_address import open_state, state_of

DAY = datetime.timedelta(days=1)
START = datetime.datetime(2026, 1, 1)
SEED = random.Random(13)
# p99 goes up by 20% at point 30 and by 25% at point 48; rate goes down by 20% at point 30.
P99 = [(100 if i < 30 else 120 if i < 48 else 150) * (1 + SEED.gauss(0, 0.01)) for i in range(60)]
RATE = [(100 if i < 30 else 80) * (1 + SEED.gauss(0, 0.01)) for i in range(60)]
FIRST, SECOND = "2026-01-31", "2026-02-18"


def commit(i):
    return f"{0xabc00000 + i:08x}"


def write(path, points, branches=None):
    rows = ["time,commit,branch,p99,rate"]
    for i in points:
        rows.append(f"{(START + i * DAY).isoformat()},{commit(i)},{branches(i) if branches else ''},{P99[i]:.4f},{RATE[i]:.4f}")
    path.write_text("\n".join(rows) + "\n")


@pytest.fixture(autouse=True)
def folder(tmp_path):
    write(tmp_path / "one.csv", range(48))
    write(tmp_path / "two.csv", range(60))
    write(tmp_path / "branches.csv", range(60), lambda i: "main" if i < 48 else "dev")
    metrics = "attributes: [commit], metrics: {p99: {direction: -1}}"
    (tmp_path / "hunter.yaml").write_text(f"""
tests:
  one: {{type: csv, file: one.csv, {metrics}}}
  two: {{type: csv, file: two.csv, {metrics}}}
  both: {{type: csv, file: one.csv, attributes: [commit], metrics: {{p99: {{direction: -1}}, rate: {{direction: 1}}}}}}
  better: {{type: csv, file: one.csv, attributes: [commit], metrics: {{p99: {{direction: 1}}}}}}
  branches: {{type: csv, file: branches.csv, attributes: [commit, branch], base_branch: main, metrics: {{p99: {{direction: -1}}}}}}
known_changes_files: [.hunter/*.yaml]
""")
    (tmp_path / ".hunter").mkdir()
    return tmp_path


@pytest.fixture
def expect(folder):
    """expect(test=, ...): adds an entry to .hunter/expected.yaml."""
    path = folder / ".hunter" / "expected.yaml"

    def add(**entry):
        entry.setdefault("reason", "bigger cache, PR 4411")
        text = path.read_text() if path.exists() else "known_changes:\n"
        path.write_text(text + "  - " + json.dumps(entry) + "\n")

    return add


def gate(hunter, *arguments):
    """The exit codes of both gates."""
    return hunter("regressions", *arguments).code, hunter("analyze", "--fail-on-regression", *arguments).code


def last(result):
    return result.out.splitlines()[-1]


def test_without_entries_everything_counts(hunter):
    assert gate(hunter, "one") == (1, 1)
    assert "accepted" not in hunter("analyze", "one").out + hunter("regressions", "one").out


@pytest.mark.parametrize("entry", [
    {"time": FIRST}, {"time": "2026-01-31T00:00:00Z"}, {"time": "2026-02-03"}, {"commit": commit(30)}, {"commit": commit(30) + "0" * 32},
    {"time": FIRST, "metric": "p9*", "direction": "up", "at_most": 20, "until": "2999-01-01"}])
def test_a_change_is_accepted(hunter, expect, entry):
    expect(test="o*", **entry)
    assert gate(hunter, "one") == (0, 0)
    result = hunter("regressions", "one")
    assert result.out.splitlines()[1].endswith(" accepted: bigger cache, PR 4411")
    assert result.out.splitlines()[2:] == [f"        {FIRST} 00:00  {commit(29)}..{commit(30)}", "No regressions found!", "1 accepted change not counted"]
    assert result.err == ""
    for output in ("text", "log", "regressions_only"):
        result = hunter("analyze", "one", "--output", output)
        assert last(result) == "1 accepted change not counted" and "accepted: bigger cache, PR 4411" in result.out
    assert gate(hunter, "one", "--strict") == (1, 1)
    assert "accepted" not in hunter("analyze", "one", "--strict").out + hunter("regressions", "one", "--strict").out


@pytest.mark.parametrize("entry", [
    {"time": "2026-02-07"}, {"time": "2026-01-24"}, {"commit": commit(31)}, {"time": FIRST, "metric": "rate"},
    {"time": FIRST, "direction": "down"}, {"time": FIRST, "at_most": 15}, {"time": FIRST, "commit": commit(40)},
    {"time": FIRST, "test": "two"}])
def test_a_change_is_another(hunter, expect, entry):
    expect(**({"test": "one"} | entry))
    assert gate(hunter, "one") == (1, 1)
    assert "accepted" not in hunter("analyze", "one").out + hunter("regressions", "one").out


def test_all_changes_between_the_levels_must_be_accepted(hunter, expect):
    expect(test="two", time=FIRST)
    assert gate(hunter, "two") == (1, 1)
    assert last(hunter("analyze", "two")) == "1 accepted change not counted"
    result = hunter("regressions", "two")
    assert last(result) == "Regressions in 1 test found"
    assert re.search(rf" not accepted: 2026-02-18 00:00 {commit(48)} \+2\d\.\d%$", result.out.splitlines()[1]), result.out
    assert hunter("regressions", "two", "--since", "2026-02-05").code == 1
    expect(test="two", time=SECOND)
    assert gate(hunter, "two") == (0, 0)
    assert last(hunter("analyze", "two")) == "2 accepted changes not counted"
    assert last(hunter("regressions", "two")) == "1 accepted change not counted"
    assert hunter("regressions", "two", "--last", "5").code == 0


def test_a_change_that_is_over_does_not_block(hunter, expect, folder):
    """From point 15 on p99 is 50% higher, and back at point 22: neither a level nor the inbox knows of it."""
    lines = (folder / "one.csv").read_text().splitlines()
    rows = [line.split(",") for line in lines[1:]]
    for row in rows[15:22]:
        row[3] = str(float(row[3]) * 1.5)
    (folder / "one.csv").write_text("\n".join([lines[0], *map(",".join, rows)]) + "\n")
    assert len(json.loads(hunter("analyze", "one", "--output", "json").out)["tests"][0]["changes"]) == 3
    since = ("--since", "2026-01-11")
    assert hunter("regressions", "one", *since).code == 1
    expect(test="one", time=FIRST)
    result = hunter("regressions", "one", *since)
    assert result.code == 0 and last(result) == "1 accepted change not counted", result


def test_other_metrics_count(hunter, expect):
    expect(test="both", metric="p99", time=FIRST)
    assert gate(hunter, "both") == (1, 1)
    assert last(hunter("regressions", "both")) == "1 accepted change not counted"
    expect(test="both", metric="rate", time=FIRST, direction="down")
    assert gate(hunter, "both") == (0, 0)
    assert last(hunter("regressions", "both")) == "2 accepted changes not counted"


def test_improvements_are_not_among_those_not_counted(hunter, expect):
    expect(test="better", time=FIRST)
    assert gate(hunter, "better") == (0, 0)
    result = hunter("analyze", "better")
    assert last(result) == "p99: 2026-01-31 00:00: accepted: bigger cache, PR 4411"


def test_a_branch(hunter, expect):
    assert hunter("regressions", "branches", "--branch", "dev").code == 1
    expect(test="branches", commit=commit(40))
    assert hunter("regressions", "branches", "--branch", "dev").code == 1
    expect(test="branches", commit=commit(55), at_most=60)
    result = hunter("regressions", "branches", "--branch", "dev")
    assert result.code == 0 and last(result) == "1 accepted change not counted"


def test_json_and_csv(hunter, expect):
    expect(test="two", time=FIRST, reason="=1+1, \"quoted\"")
    document = json.loads(hunter("analyze", "two", "--output", "json").out)
    assert document["accepted"] == 1
    assert [change["accepted"] for change in document["tests"][0]["changes"]] == ['=1+1, "quoted"', None]
    rows = list(csv.DictReader(io.StringIO(hunter("analyze", "two", "--output", "csv").out)))
    assert [row["accepted"] for row in rows] == ['\'=1+1, "quoted"', ""]
    document = json.loads(hunter("regressions", "two", "--output", "json").out)
    assert (document["regressed"], document["accepted"]) == (1, 0)
    expect(test="two", time=SECOND, reason="why not")
    document = json.loads(hunter("regressions", "two", "--output", "json").out)
    assert (document["regressed"], document["accepted"]) == (0, 1)
    assert document["tests"][0]["regressions"][0]["accepted"] == "why not"
    strict = json.loads(hunter("regressions", "two", "--output", "json", "--strict").out)
    assert (strict["regressed"], strict["accepted"]) == (1, 0)


@pytest.mark.parametrize("output", ["text", "log", "json", "csv", "regressions_only"])
def test_otava_knows_nothing_of_it(hunter, folder, expect, output):
    arguments = ("analyze", "two", "--profile", "otava", "--fail-on-regression", "--output", output)
    before = hunter(*arguments)
    expect(test="two", time=FIRST)
    expect(test="two", time=SECOND)
    assert hunter(*arguments) == before and before.code == 1
    before = hunter("regressions", "two", "--profile", "otava")
    (folder / ".hunter" / "expected.yaml").unlink()
    assert hunter("regressions", "two", "--profile", "otava") == before and before.code == 1


def test_an_expired_entry_counts_again_and_is_named(hunter, expect):
    expect(test="one", time=FIRST, until="2026-06-01")
    assert gate(hunter, "one") == (1, 1)
    result = hunter("regressions", "one")
    assert "known_changes entry expired: counting its change again" in result.err
    assert "entry=.hunter/expected.yaml:2" in result.err and "reason=\"bigger cache, PR 4411\"" in result.err
    expect(test="one", time=FIRST)
    result = hunter("regressions", "one")
    assert result.code == 0 and result.err == ""


def test_a_commit_of_few_digits_is_an_error(hunter, expect):
    """Too many commits begin with them; names that are no digits are whole."""
    expect(test="one", commit="r12")
    assert hunter("regressions", "one").code == 1
    expect(test="one", commit="abc")
    result = hunter("regressions", "one")
    assert result.code == 2
    assert '.hunter/expected.yaml:3:31: known_changes: commit: "abc" is too short: expected at least 4 digits, or use time' in result.err


def test_files_by_flag(hunter, folder):
    (folder / "more.yaml").write_text(f"known_changes: [{{test: one, time: {FIRST}, reason: of a flag}}]\n")
    assert gate(hunter, "one", "--known-changes", "more.yaml") == (0, 0)
    assert "accepted: of a flag" in hunter("regressions", "one", "--known-changes", "more.yaml").out
    assert gate(hunter, "one") == (1, 1)
    for name in ("none.yaml", "."):
        result = hunter("regressions", "one", "--known-changes", name)
        assert result.code == 2 and result.err.startswith(f"{name}: cannot read the file")


def test_a_broken_file_is_an_error(hunter, folder):
    path = folder / ".hunter" / "expected.yaml"
    path.write_text("known_changes:\n  - {test: one, time: 2026-01-31}\n")
    for arguments in (("regressions", "one"), ("analyze",), ("validate",)):
        result = hunter(*arguments)
        assert result.code == 2
        assert '.hunter/expected.yaml:2:5: known_changes: "reason" is missing' in result.err + result.out
    path.write_text("known_changes: [\n")
    assert hunter("analyze", "one").err.startswith(".hunter/expected.yaml:")
    path.unlink()
    for make in (lambda: path.symlink_to("nowhere.yaml"), path.mkdir):
        make()
        result = hunter("analyze", "one")
        assert result.code == 2 and result.err.startswith(".hunter/expected.yaml: cannot read the file:")
        path.unlink() if path.is_symlink() else path.rmdir()
    assert gate(hunter, "one") == (1, 1)


def test_relative_to_the_configuration(hunter, folder, expect, tmp_path_factory):
    expect(test="one", time=FIRST)
    elsewhere = tmp_path_factory.mktemp("elsewhere")
    for name in ("one.csv", "two.csv", "branches.csv"):
        (elsewhere / name).symlink_to(folder / name)
    assert hunter("regressions", "one", "--config", folder / "hunter.yaml", cwd=elsewhere).code == 0


def test_validate(hunter, expect):
    expect(test="one", metric="p99", commit=commit(30), direction="up", at_most=25, until="2999-01-01")
    expect(test="gone*", time=FIRST, until="2026-06-01", reason="old")
    result = hunter("validate")
    assert result.code == 0
    lines = result.out.splitlines()
    assert lines == [
        ".hunter/expected.yaml:3:5: warning: known_changes: entry has no effect: it expired on 2026-06-01 00:00:00 +0000",
        '.hunter/expected.yaml:3:5: warning: known_changes: no such test: "gone*"',
        "hunter.yaml: OK, 5 tests, 0 groups, 2 warnings",
        "known changes:", *lines[4:6],
        *[line for line in lines[6:] if re.search(r"^(one +p99 .* 1 +25  2999-01-01 .* bigger cache, PR 4411|gone\* .* old) +\.hunter/expected", line)]]
    assert len(lines) == 8
    known = json.loads(hunter("validate", "--output", "json").out)["known_changes"]
    assert known[0] == {"test": "one", "metric": "p99", "commit": commit(30), "from": None, "to": None, "direction": 1, "at_most": 25,
                        "reason": "bigger cache, PR 4411", "until": "2999-01-01T00:00:00Z", "file": ".hunter/expected.yaml", "line": 2}
    assert (known[1]["from"], known[1]["to"]) == ("2026-01-31T00:00:00Z", "2026-01-31T23:59:59.999Z")


# Triage, in a state or with an agent.

def configure(folder, state="state.db", data="one.csv", known=""):
    """A configuration for one test with a state of its own; returns its path."""
    path = folder / f"{state}.yaml"
    path.write_text(f"""
agent: {{state: {state_of(folder, state)}, max_age: never, listen: "127.0.0.1:0", group_wait: 0s, interval: 1h}}
tests:
  one: {{type: csv, file: {folder / data}, attributes: [commit], metrics: {{p99: {{direction: -1}}}}}}
known_changes: [{known}]
""")
    return path


KNOWN = f"{{test: one, time: {FIRST}, reason: 'bigger cache, PR 4411'}}"


def changes(hunter, state):
    return json.loads(hunter("changes", "--state-file", state, "--output", "json").out)["changes"]


@pytest.fixture
def accepted(hunter, folder):
    """A state in which the change of `one` was accepted."""
    first = hunter("run", "--once", "--config", configure(folder, known=KNOWN))
    assert first.code == 0 and first.out == "1 accepted change not counted\n"
    return state_of(folder)


def alter(folder, sql):
    with open_state(folder) as state:
        state.execute(sql)


def test_the_agent_expects_known_changes(hunter, folder, accepted):
    change, = changes(hunter, accepted)
    triage = change["triage"]
    assert (triage["state"], triage["note"], triage["person"], triage["until"]) == (
        "expected", "bigger cache, PR 4411", "known_changes", None)
    assert (triage["size"], triage["size_low"], triage["size_high"]) == tuple(change[name] for name in ("size", "size_low", "size_high"))
    said, = (event for event in change["history"] if event["event"] == "triaged")
    assert said["person"] == "known_changes" and said["origin"].endswith("state.db.yaml:5")
    assert not any(event["event"] == "announced" for event in change["history"])
    again = hunter("run", "--once", "--config", configure(folder, known=KNOWN))
    assert (again.code, again.out) == (0, "")
    assert changes(hunter, accepted) == [change]


def test_other_changes_are_told(hunter, folder):
    result = hunter("run", "--once", "--config", configure(folder, data="two.csv", known=KNOWN))
    assert result.code == 0 and "+26%" in result.out and "+20%" not in result.out
    assert last(result) == "1 accepted change not counted"
    assert sorted(change["triage"]["state"] for change in changes(hunter, state_of(folder))) == ["expected", "open"]


def test_strict_tells_all(hunter, folder):
    result = hunter("run", "--once", "--strict", "--config", configure(folder, known=KNOWN))
    assert result.code == 0 and "+20%" in result.out and "accepted" not in result.out
    assert [change["triage"]["state"] for change in changes(hunter, state_of(folder))] == ["open"]


def test_what_was_told_before_is_expected_from_then_on(hunter, folder):
    assert "+20%" in hunter("run", "--once", "--config", configure(folder)).out
    result = hunter("run", "--once", "--config", configure(folder, known=KNOWN))
    assert result.out == "1 accepted change not counted\n"
    assert changes(hunter, state_of(folder))[0]["triage"]["state"] == "expected"


def test_a_person_has_the_last_word(hunter, folder, accepted):
    alter(folder, "UPDATE triage SET triage = 1, version = 2, person = 'ann'")
    hunter("run", "--once", "--config", configure(folder, known=KNOWN))
    assert [change["triage"]["person"] for change in changes(hunter, accepted)] == ["ann"]


def test_a_file_of_known_changes_for_one_run(hunter, folder):
    (folder / "more.yaml").write_text(f"known_changes: [{KNOWN}]\n")
    result = hunter("run", "--once", "--config", configure(folder), "--known-changes", "more.yaml")
    assert result.out == "1 accepted change not counted\n"
    assert hunter("run", "--strict", "--config", configure(folder)).code == 2
    assert hunter("run", "--state", "x.db", "--config", configure(folder)).code == 2


def test_a_reload_brings_entries(hunter, folder, agents):
    agent = agents(configure(folder))
    agent.wait_log("msg=sent")
    configure(folder, known=KNOWN)
    agent.process.send_signal(signal.SIGHUP)
    agent.wait_log('msg="change accepted by known_changes"')
    assert agent.end() == 0
    assert changes(hunter, state_of(folder))[0]["triage"]["state"] == "expected"


def test_an_agent_keeps_still(hunter, folder, agents):
    agent = agents(configure(folder, data="two.csv", known=KNOWN))
    agent.wait_log("msg=sent")
    assert agent.end() == 0
    assert "+26%" in "".join(agent.out) and "+20%" not in "".join(agent.out)


def test_an_entry_expires_while_the_agent_runs(hunter, folder, agents):
    until = datetime.datetime.now(datetime.timezone.utc) + datetime.timedelta(seconds=8)
    agent = agents(configure(folder, known=KNOWN.replace("}", f", until: '{until.isoformat(timespec='milliseconds')}'}}")))
    agent.wait_log('msg="change accepted by known_changes"')
    assert not any("msg=sent" in line for line in agent.log)
    agent.wait_log("msg=sent")
    assert agent.end() == 0
    assert "+20%" in "".join(agent.out)
    assert changes(hunter, state_of(folder))[0]["triage"]["state"] == "open"


def entry(**keys):
    """KNOWN with other keys."""
    return json.dumps({"test": "one", "time": FIRST, "reason": "bigger cache, PR 4411"} | keys)


@pytest.mark.parametrize("before", ["2999-01-01", "2026-01-01"])
def test_an_entry_gets_another_until(hunter, folder, before):
    """Also after it has expired, and the change was open again and told."""
    hunter("run", "--once", "--config", configure(folder, known=entry(until="2999-01-01")))
    if before < "2999":
        alter(folder, "UPDATE triage SET until = 1767225600000")
        known = configure(folder, known=entry(until=before))
        assert "+20%" in hunter("run", "--once", "--config", known).out
        assert changes(hunter, state_of(folder))[0]["triage"]["person"] == "hunter-c"
    longer = configure(folder, known=entry(until="3999-01-01", reason="another reason"))
    assert "+20%" not in hunter("run", "--once", "--config", longer).out
    triage = changes(hunter, state_of(folder))[0]["triage"]
    assert (triage["state"], triage["until"], triage["note"]) == ("expected", "3999-01-01T00:00:00Z", "another reason")
    again = hunter("run", "--once", "--config", longer)
    assert again.out == "" and changes(hunter, state_of(folder))[0]["triage"] == triage
    hunter("run", "--once", "--config", configure(folder, known=entry()))
    assert changes(hunter, state_of(folder))[0]["triage"]["until"] is None


def test_an_entry_is_removed(hunter, folder, accepted):
    """The change is open, and told; with the entry it is expected again, and without it told no more."""
    gone = hunter("run", "--once", "--config", configure(folder))
    assert "+20%" in gone.out and "accepted" not in gone.out
    triage = changes(hunter, accepted)[0]["triage"]
    assert (triage["state"], triage["note"], triage["person"]) == ("open", None, "known_changes")
    assert hunter("run", "--once", "--config", configure(folder, known=KNOWN)).out == "1 accepted change not counted\n"
    assert changes(hunter, accepted)[0]["triage"]["state"] == "expected"
    assert hunter("run", "--once", "--config", configure(folder)).out == ""
    assert changes(hunter, accepted)[0]["triage"]["state"] == "open"


def test_what_others_said_needs_no_entry(hunter, folder, accepted):
    alter(folder, "UPDATE triage SET person = 'ann'")
    assert hunter("run", "--once", "--config", configure(folder)).out == ""
    assert changes(hunter, accepted)[0]["triage"]["state"] == "expected"


def test_the_entries_of_other_tests_are_elsewhere(hunter, folder, accepted):
    path = configure(folder)
    path.write_text(path.read_text().replace("  one:", "  another:"))
    hunter("run", "--once", "--config", path)
    assert [change["triage"]["state"] for change in changes(hunter, accepted) if change["test"] == "one"] == ["expected"]


def test_a_reload_removes_entries(hunter, folder, agents):
    agent = agents(configure(folder, known=KNOWN))
    agent.wait_log('msg="change accepted by known_changes"')
    configure(folder)
    agent.process.send_signal(signal.SIGHUP)
    agent.wait_log("msg=sent")
    assert agent.end() == 0
    assert changes(hunter, state_of(folder))[0]["triage"]["state"] == "open"


@pytest.mark.parametrize("at_most, state", [(0, "open"), (30, "open"), (60, "expected")])
def test_an_entry_takes_what_has_grown_by_its_size(hunter, folder, accepted, at_most, state):
    """Of an entry without a size, what grew beyond the size when it was accepted is open."""
    text = (folder / "one.csv").read_text().splitlines()
    rows = [line.split(",") for line in text[1:]]
    for row in rows[30:]:
        row[3] = str(float(row[3]) * 1.2)
    (folder / "one.csv").write_text("\n".join([text[0], *map(",".join, rows)]) + "\n")
    result = hunter("run", "--once", "--config", configure(folder, known=entry(at_most=at_most)))
    assert changes(hunter, accepted)[0]["triage"]["state"] == state
    assert ("+4" in result.out) == (state == "open")


@pytest.fixture(params=["state", "agent"])
def source(request, accepted, folder, agents):
    """source(): the flags by which a gate knows of that state."""
    def flags():
        if request.param == "state":
            return "--state", accepted
        if not started:
            started.append(agents(configure(folder, known=KNOWN)))
        return "--agent", started[0].address()

    started = []
    return flags


def test_triaged_changes_do_not_count(hunter, source):
    assert gate(hunter, "one") == (1, 1)
    assert gate(hunter, "one", *source()) == (0, 0)
    result = hunter("regressions", "one", *source())
    assert result.out.splitlines()[1].endswith(" accepted: expected: bigger cache, PR 4411 (known_changes)")
    assert last(result) == "1 accepted change not counted"
    document = json.loads(hunter("analyze", "one", "--output", "json", *source()).out)
    assert document["tests"][0]["changes"][0]["accepted"] == "expected: bigger cache, PR 4411 (known_changes)"
    assert gate(hunter, "one", *source(), "--since", "2026-01-10") == (0, 0)
    assert gate(hunter, "one", *source(), "--branch", "main")[1] == 3
    assert gate(hunter, "one", "--strict", *source()) == (1, 1)
    otava = ("analyze", "one", "--profile", "otava", "--output", "json")
    assert hunter(*otava, *source()) == hunter(*otava)


HOUR = datetime.timedelta(hours=1)


def controlled():
    """Follows a control of 30% noise; the step at 52 has a foothill from 40 on."""
    noise = random.Random(5)
    load = [100 * (1 + noise.gauss(0, 0.3)) for _ in range(90)]
    ratio = [(1 if i < 40 else 1.006 if i < 52 else 1.1) * (1 + noise.gauss(0, 0.005)) for i in range(90)]
    return [value * part for value, part in zip(load, ratio)], load


def seasonal():
    """Hourly, with a daily cycle of 30%; the step at 312 has a foothill from 300 on."""
    noise = random.Random(5)
    level = [(100 if i < 300 else 100.5 if i < 312 else 110) * (1 + noise.gauss(0, 0.005)) for i in range(480)]
    return [value + 30 * math.sin(i * math.pi / 12) for i, value in enumerate(level)], level


@pytest.mark.parametrize("series, step, where, recorded, options", [
    (controlled, DAY, 52, 40, "relative_to: base/base"), (seasonal, HOUR, 312, 300, "detection: {season: day, confirm: 'off'}")],
    ids=["control", "season"])
def test_the_gate_judges_the_agents_values(hunter, folder, series, step, where, recorded, options):
    """A change that has moved is known again by what is left of it without control or cycle, as the agent knows it."""
    slow, base = series()
    (folder / "load.csv").write_text("time,p99,base\n" + "".join(
        f"{(START + i * step).isoformat()},{slow[i]:.6f},{base[i]:.6f}\n" for i in range(len(slow))))
    config = folder / "load.yaml"
    config.write_text(f"""
agent: {{state: {state_of(folder, "load.db")}, max_age: never, listen: "127.0.0.1:0"}}
tests:
  base: {{type: csv, file: {folder / "load.csv"}, metrics: {{base: {{direction: 0}}}}}}
  slow: {{type: csv, file: {folder / "load.csv"}, metrics: {{p99: {{direction: -1}}}}, {options}}}
""")
    assert hunter("run", "--once", "slow", "--config", config).code in (0, 1)
    [found] = changes(hunter, state_of(folder, "load.db"))
    assert found["time"][:13] == (START + where * step).isoformat()[:13], found
    at = int((START + recorded * step).replace(tzinfo=datetime.timezone.utc).timestamp() * 1000)
    with open_state(folder, "load.db") as state:
        state.execute(f"update changes set time = {at}")
    assert hunter("triage", found["id"], "expected", "--note", "known", "--state-file", state_of(folder, "load.db")).code == 0
    for arguments in [], ["--fail-on-regression"]:
        command = "analyze" if arguments else "regressions"
        result = hunter(command, "slow", "--config", config, *arguments, "--state", state_of(folder, "load.db"))
        assert result.code == 0 and "1 accepted change not counted" in result.out, result


@pytest.mark.parametrize("state, code", [("acknowledged", 0), ("expected", 0), ("ignored", 0), ("infra", 0), ("false", 0), ("fixed", 0),
                                         ("open", 1)])
def test_which_states_pass(hunter, folder, accepted, source, state, code):
    names = ["open", "acknowledged", "expected", "ignored", "infra", "false", "fixed"]
    alter(folder, f"UPDATE triage SET triage = {names.index(state) + 1}, person = 'ann'")
    assert gate(hunter, "one", *source()) == (code, code)


def test_an_expired_triage_counts(hunter, accepted, folder):
    alter(folder, "UPDATE triage SET until = 1700000000000")
    assert gate(hunter, "one", "--state", accepted) == (1, 1)


@pytest.mark.parametrize("state", [2, 3, 7], ids=["acknowledged", "expected", "fixed"])
def test_a_larger_change_counts_again(hunter, folder, accepted, source, state):
    """The same change as before, but now by 40 instead of 20%; a slightly larger one is the same."""
    alter(folder, f"UPDATE triage SET triage = {state}")
    text = (folder / "one.csv").read_text().splitlines()
    flags = source()
    for factor, codes in ((1.003, (0, 0)), (1.2, (1, 1))):
        rows = [line.split(",") for line in text[1:]]
        for row in rows[30:]:
            row[3] = str(float(row[3]) * factor)
        (folder / "one.csv").write_text("\n".join([text[0], *map(",".join, rows)]) + "\n")
        assert gate(hunter, "one", *flags) == codes


def test_another_change_of_the_series_counts(hunter, folder, source):
    write(folder / "one.csv", range(60))
    assert gate(hunter, "one", *source()) == (1, 1)
    assert last(hunter("analyze", "one", *source())) == "1 accepted change not counted"


def test_changes_accepted_elsewhere_are_not_told(hunter, folder, source):
    flags = source()
    write(folder / "one.csv", range(60))
    result = hunter("run", "--once", "--config", configure(folder, state="fresh.db"), *flags)
    assert result.code == 0 and "+26%" in result.out and "+20%" not in result.out
    assert last(result) == "1 accepted change not counted"


def test_without_the_state_or_the_agent(hunter, folder):
    (folder / "not.db").write_text("this is no state file" * 100)
    for flags in (("--state", "none.db"), ("--state", "not.db"), ("--agent", "http://127.0.0.1:1/"), ("--agent", f"unix:{folder}/none")):
        for command in (("regressions", "one"), ("analyze", "one"), ("run", "--once", "--config", configure(folder))):
            result = hunter(*command, *flags)
            assert result.code == 4 and result.out == "" and result.err.startswith(f"hunter-c: {flags[0]}: "), result
    assert hunter("regressions", "one", env={"HUNTER_AGENT": "http://127.0.0.1:1/"}).code == 4
    assert gate(hunter, "one", "--strict", "--agent", "http://127.0.0.1:1/") == (1, 1)


# From triage to a file that can be reviewed.

def test_triage_writes_an_entry(hunter, folder):
    assert hunter("run", "--once", "--config", configure(folder)).code == 0
    path = folder / ".hunter" / "expected.yaml"
    (folder / "made").mkdir()
    said = ("triage", "--config", configure(folder), "1", "expected", "--note", "x", "--write", "made/.hunter/new.yaml")
    result = hunter(*said)
    assert result.code == 0 and (folder / "made" / ".hunter" / "new.yaml").exists()
    assert result.err.splitlines() == [
        f"hunter-c: warning: made/.hunter/new.yaml is not read: no known_changes_files of {configure(folder)} covers it"]
    configure(folder).write_text(configure(folder).read_text() + "known_changes_files: made/.hunter/*.yaml\n")
    assert hunter(*said).err == ""
    path.write_text("# accepted in review\nknown_changes: # none yet\n\n# the end\n")
    arguments = ("triage", "--config", configure(folder), "1", "expected", "--note", "bigger cache, PR 4411", "--until", "2999-01-01",
                 "--write", path)
    result = hunter(*arguments)
    assert result.code == 0 and last(result) == f"1 entry added to {path}", result
    text = path.read_text()
    change, = changes(hunter, state_of(folder))
    most = float(re.search(r"at_most: (\S+)", text)[1])
    assert change["size_high"] <= most <= change["size_high"] + 0.11
    assert text == ("# accepted in review\nknown_changes: # none yet\n"
                    f'  - test: "one"\n    metric: "p99"\n    commit: "{change["commit_after"]}"\n    direction: "up"\n    at_most: {most:g}\n'
                    '    reason: "bigger cache, PR 4411"\n    until: "2999-01-01T00:00:00Z"\n\n# the end\n')
    assert change["triage"]["state"] == "expected"
    assert gate(hunter, "one") == (0, 0)
    again = hunter(*arguments)
    assert again.code == 0 and last(again) == f"0 entries added to {path}" and path.read_text() == text


def test_triage_writes_what_was_said_before(hunter, folder, accepted):
    result = hunter("triage", "--config", configure(folder), "1", "--write", "new.yaml")
    assert result.code == 0 and last(result) == "1 entry added to new.yaml"
    assert "reason: \"bigger cache, PR 4411\"" in (folder / "new.yaml").read_text()
    result = hunter("triage", "--config", configure(folder), "1", "false", "--note", "x", "--write", "dry.yaml", "--dry-run")
    assert result.code == 0 and not (folder / "dry.yaml").exists()
    assert changes(hunter, accepted)[0]["triage"]["state"] == "expected"


def test_what_triage_does_not_write(hunter, folder):
    """Nothing is said either, where it can be known before."""
    assert hunter("run", "--once", "--config", configure(folder)).code == 0
    (folder / "broken.yaml").write_text("known_changes: [\n")
    (folder / "wrong.yaml").write_text("known_changes: [{test: one}]\n")
    (folder / "web.yaml").write_text("# who may read\nusers: {}\n")

    def refused(code, words, *arguments):
        result = hunter("triage", "--config", configure(folder), *arguments)
        assert result.code == code and words in result.err, result

    refused(2, "not acknowledged", "1", "acknowledged", "--note", "x", "--write", "new.yaml")
    refused(2, "needs a reason", "1", "expected", "--write", "new.yaml")
    refused(2, "--write: broken.yaml:", "1", "expected", "--note", "x", "--write", "broken.yaml")
    refused(2, '--write: wrong.yaml:1:17: known_changes: "reason" is missing', "1", "expected", "--note", "x", "--write", "wrong.yaml")
    refused(2, "--write: web.yaml:2:1: cannot add to this file: it is neither a known_changes file nor a configuration",
            "1", "expected", "--note", "x", "--write", "web.yaml")
    refused(3, "no folder new, and only one named .hunter is created", "1", "expected", "--note", "x", "--write", "new/x.yaml")
    refused(3, "no folder no/.hunter/such, and only", "1", "expected", "--note", "x", "--write", "no/.hunter/such/x.yaml")
    refused(3, "--write: .: cannot read", "1", "expected", "--note", "x", "--write", ".")
    refused(2, "cannot write the file", "1", "expected", "--note", "x", "--write", "no/.hunter/folder.yaml")
    refused(2, "--write: /proc/new.yaml: cannot write the file", "1", "expected", "--note", "x", "--write", "/proc/new.yaml")
    assert changes(hunter, state_of(folder))[0]["triage"]["version"] == 0
    refused(2, "change 1 is open", "1", "--write", "new.yaml")
    assert not (folder / "new.yaml").exists()
