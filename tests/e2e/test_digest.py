"""The digest: what is open and whose it is, what has happened since the last one, once for each of its times."""
import json
import signal

from agent import bot, config, csv_test, write_csv
from hook import SCHEMA, valid
from state_address import open_state

WEEK = 8 * 86400000


def later(tmp_path, receiver="stdout", ms=WEEK):
    """The last digest was a week earlier."""
    with open_state(tmp_path) as state:
        assert state.execute("UPDATE moments SET time = time - ? WHERE name = ?", (ms, f"digest {receiver}")).rowcount == 1


def digest(out):
    """The lines of the digest by the titles of their sections; "" has its headline."""
    lines = out.partition("digest  ")[2].splitlines()
    sections, title = {"": lines[1].strip()}, None
    for line in lines[2:]:
        if line.startswith("    "):
            sections[title].append(line.strip())
        elif line.strip():
            title = line.strip()
            sections[title] = []
    return sections


STDOUT = 'stdout: {digest: {at: "09:00", days: [mon], zone: Europe/Helsinki}}'


def three(tmp_path):
    for name, factor in (("a", 1.5), ("b", 1.2), ("c", 0.7)):
        write_csv(tmp_path / f"{name}.csv", [(30, factor)])
    return "".join(csv_test(tmp_path / f"{n}.csv", f"db.{n}", f"    stale_after: never\n{more}")
                   for n, more in (("a", "    owner: team-db"), ("b", ""), ("c", "")))


def test_what_it_says(hunter, tmp_path):
    """Open by owner, new, recovered, accepted, silenced, without data; and only what has happened since the last one."""
    path = config(tmp_path, three(tmp_path), STDOUT)
    assert "digest" not in hunter("run", "--once", "--config", path).out
    assert "digest" not in hunter("run", "--once", "--config", path).out
    later(tmp_path)
    said = digest(hunter("run", "--once", "--config", path).out)
    assert said[""].startswith("2 open, 3 new, 0 recovered, 0 accepted, 0 silenced, 0 without data since ")
    assert list(said) == ["", "open, team-db (1)", "open, without an owner (1)", "new (3)"]
    line, = said["open, team-db (1)"]
    assert line.startswith("db.a p99: +50% [") and line.endswith(" ms, since 2024-03-02 06:00 UTC")
    assert "digest" not in hunter("run", "--once", "--config", path).out

    changes = {c["test"]: c["id"] for c in json.loads(hunter("changes", "--output", "json", "--config", path).out)["changes"]}
    assert hunter("triage", "--config", path, str(changes["db.b"]), "expected", "--note", "bigger cache").code == 0
    assert hunter("silence", "add", "--config", path, "test=db.d", "--for", "3d", "--reason", "migration").code == 0
    write_csv(tmp_path / "a.csv", [(30, 1.5), (60, 1 / 1.5)], points=120)
    write_csv(tmp_path / "d.csv", [(30, 1.4)])
    config(tmp_path, three_again(tmp_path), STDOUT)
    hunter("run", "--once", "--config", path)
    later(tmp_path, ms=2 * 86400000 + WEEK)
    said = digest(hunter("run", "--once", "--config", path).out)
    assert said["accepted (1)"][0].startswith("db.b p99: +20%") and ": bigger cache" in said["accepted (1)"][0]
    assert said["recovered (1)"][0].startswith("db.a p99: +50%") and "back to" in said["recovered (1)"][0]
    assert said["silenced (1)"][0].startswith("db.d p99: +40%") and ", until " in said["silenced (1)"][0]
    assert said["without data (1)"] == [f"db.e fails: {tmp_path}/e.csv: no such file"]
    assert said[""].startswith("0 open, 1 new, 1 recovered, 1 accepted, 1 silenced, 1 without data since ")


def three_again(tmp_path):
    """The three, but a as it is now, one that is silenced, and one that has no file."""
    return "".join(csv_test(tmp_path / f"{n}.csv", f"db.{n}", "    stale_after: never") for n in "abcde")


def test_once_for_each_time(agents, tmp_path):
    """Whoever is killed in between; what passed while nothing ran is told once, and late."""
    path = config(tmp_path, three(tmp_path), STDOUT)
    agent = agents(path)
    agent.pass_by(3)
    agent.end(signal.SIGKILL)
    assert not any("digest" in line for line in agent.out)
    later(tmp_path, ms=3 * WEEK)
    agent = agents(path)
    agent.wait_log("msg=digest receiver=stdout")
    agent.wait(lambda: any("2 open, 3 new" in line for line in agent.out))
    agent.pass_by(3)
    agent.end(signal.SIGKILL)
    assert sum(line.startswith("digest ") for line in agent.out) == 1
    agent = agents(path)
    agent.pass_by(3)
    agent.end()
    assert not any("digest" in line for line in agent.out)


def test_in_slack_and_the_webhook(hunter, tmp_path, slack, hook):
    """The fake refuses what passes Slack's limits: sixty tests have each an owner of their own."""
    tests = ""
    for i in range(60):
        write_csv(tmp_path / f"t{i}.csv", [(30, 1.2 + i / 100)])
        tests += csv_test(tmp_path / f"t{i}.csv", f"a.long.name.of.a.test.{'x' * 150}.{i}", f"    owner: <team>-{i}\n    stale_after: never")
    more = f'\nwebhook: {{url: "{hook.url}", digest: {{}}}}'
    path = config(tmp_path, tests, bot(slack).replace("}", ', digest: {at: "09:00"}}') + more)
    assert hunter("run", "--once", "--config", path).code == 0
    posts, documents = len(slack.posts), len(hook.taken)
    later(tmp_path, "slack")
    later(tmp_path, "webhook")
    assert hunter("run", "--once", "--config", path).code == 0
    post, = slack.posts[posts:]
    (_, document, _), = hook.taken[documents:]
    document = json.loads(document)
    text = "\n".join(b["text"]["text"] for b in post["blocks"])
    assert "60 open, 60 new" in text and "*open, &lt;team&gt;-0 (1)*\n• " in text and "more sections" in text
    valid(SCHEMA, document)
    assert document["kind"] == "digest" and len(document["sections"]) == 61
    assert document["sections"][0]["title"] == "open, <team>-0 (1)" and document["sections"][-1]["title"] == "new (60)"


def test_what_it_is_about(hunter, tmp_path):
    """The changes that routes tell the receiver; all of them, if no route leads to it."""
    sections = """
receivers:
  team: {stdout: {digest: {}}}
  boss: {stdout: {events: [digest]}}
  other: {stdout: {digest: {}}}
routes:
  - {match: ['test="db.a"'], receivers: [team]}
  - {match: ['test="db.b"'], verdict: improvement, receivers: [team]}
  - {match: ['test=~"db.*"'], receivers: [other]}
"""
    path = config(tmp_path, three(tmp_path), sections)
    assert hunter("run", "--once", "--config", path).code == 0
    for receiver in ("team", "boss", "other"):
        later(tmp_path, receiver)
    told = hunter("run", "--once", "--config", path).err
    assert 'msg=digest receiver=team text="1 open, 1 new,' in told
    assert 'msg=digest receiver=boss text="2 open, 3 new,' in told
    assert 'msg=digest receiver=other text="1 open, 2 new,' in told
