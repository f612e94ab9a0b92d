"""The commits between the points of a change, from a local clone."""
import contextlib
import csv
import datetime
import http.client
import json
import os
import subprocess
import threading

import pytest
from agent import START, config, csv_test, level
from test_access import ask, begin
from waiting import LONGEST

HOSTILE = "<script>alert(1)</script> \u202e $(touch x) " + "y" * 300


class Clone:
    """A git repository with dated commits; the subject of commit i is `subjects[i]`."""

    def __init__(self, path, count):
        self.path = path
        self.git("init", "-q", "--initial-branch=main", path, cwd=path.parent)
        self.subjects = [HOSTILE if i == 30 else f"Change {i}" for i in range(count)]
        lines = []
        for i, subject in enumerate(self.subjects):
            when = int(START.timestamp()) + 60 * i
            text = (subject + "\n\nMore of it.\n").encode()
            lines.append(b"commit refs/heads/main\n" + f"author Ann Ü <ann@example> {when} +0000\ncommitter C <c@example> {when} +0000\n".encode()
                         + b"data %d\n" % len(text) + text)
        subprocess.run(["git", "fast-import", "--quiet"], cwd=path, input=b"\n".join(lines), check=True)
        self.ids = self.git("log", "--reverse", "--format=%H", "main").split()

    def git(self, *arguments, cwd=None):
        environment = {"PATH": os.environ["PATH"], "HOME": str(self.path)}
        return subprocess.run(["git", *map(str, arguments)], cwd=cwd or self.path, env=environment, check=True, capture_output=True,
                              text=True).stdout


def write(path, commits, change=30):
    with open(path, "w", newline="") as out:
        rows = csv.writer(out)
        rows.writerow(["time", "commit", "p99"])
        for i, commit in enumerate(commits):
            rows.writerow([(START + datetime.timedelta(hours=i)).isoformat(), commit, f"{level(i, [(change, 1.2)]):.4f}"])


def prepare(tmp_path, commits, repository="clone", agent="", name="db.read"):
    write(tmp_path / "read.csv", commits)
    extra = f"    repository: {repository}\n" if repository is not None else ""
    return config(tmp_path, csv_test(tmp_path / "read.csv", name, extra), agent=agent + "\n  commit_url: https://git.example/c/{commit}\n"
                  "  compare_url: https://git.example/compare/{before}...{after}")


def change_of(agent, test="db.read"):
    changes = []
    agent.wait(lambda: changes.extend(json.loads(ask(agent.port, path=f"/api/v1/changes?test={test}")[2])["changes"]) or changes)
    return changes[0]["id"]


def commits_of(agent, number):
    code, _, text = ask(agent.port, path=f"/api/v1/changes/{number}/commits")
    assert code == 200, text
    return json.loads(text)


def test_those_between(agents, tmp_path):
    """Two commits for each point: the page shows those from the last good one to the first bad one."""
    clone = Clone(tmp_path / "clone", 120)
    measured = [clone.ids[2 * i][:12] for i in range(60)]
    agent = begin(agents, prepare(tmp_path, measured))
    number = change_of(agent)
    found = commits_of(agent, number)
    assert (found["change"], found["configured"], found["problem"], found["more"]) == (number, True, None, False), found
    assert (found["from"], found["to"]) == (measured[29], measured[30])
    assert found["compare_url"] == f"https://git.example/compare/{measured[29]}...{measured[30]}"
    assert [commit["commit"] for commit in found["commits"]] == [clone.ids[60], clone.ids[59]]
    commit = found["commits"][0]
    assert commit == {"commit": clone.ids[60], "author": "Ann Ü", "time": "2024-03-01T01:00:00Z", "subject": "Change 60",
                      "url": f"https://git.example/c/{clone.ids[60]}"}
    # The clone is gone: what was read before is kept.
    (tmp_path / "clone").rename(tmp_path / "away")
    assert commits_of(agent, number) == found
    assert ask(agent.port, path="/api/v1/changes/99/commits")[0] == 404
    assert agent.end() == 0


def test_names_from_outside(agents, tmp_path):
    clone = Clone(tmp_path / "clone", 60)
    agent = begin(agents, prepare(tmp_path, clone.ids))
    subject = commits_of(agent, change_of(agent))["commits"][0]["subject"]
    assert subject == (HOSTILE.replace("\u202e", " ")[:199] + "…") and len(subject) == 200
    assert agent.end() == 0


@pytest.mark.parametrize("commits, words", [
    ([f"--output={'x' * (i % 3)}" for i in range(60)], "is not a commit"),
    ([f"a..b{i}" for i in range(60)], "is not a commit"),
    ([f"HEAD~{i}" for i in range(60)], "is not a commit"),
    ([f"{i:040x}" for i in range(60)], "git: "),
    ([f"nothing{i}" for i in range(60)], "git: bad revision 'nothing29..nothing30'"),
])
def test_what_is_no_commit(commits, words, agents, tmp_path):
    Clone(tmp_path / "clone", 2)
    agent = begin(agents, prepare(tmp_path, commits))
    found = commits_of(agent, change_of(agent))
    assert found["commits"] == [] and words in found["problem"], found
    assert agent.end() == 0


def test_without(agents, tmp_path):
    """No repository, or none at its place."""
    agent = begin(agents, prepare(tmp_path, [f"c{i}" for i in range(60)], None))
    found = commits_of(agent, change_of(agent))
    assert (found["configured"], found["commits"], found["problem"]) == (False, [], None), found
    assert agent.end() == 0
    agent = begin(agents, prepare(tmp_path, [f"c{i}" for i in range(60)], "nowhere"))
    found = commits_of(agent, change_of(agent))
    assert found["configured"] and "nowhere" in found["problem"], found
    assert agent.end() == 0


def test_versions_are_tags(agents, tmp_path):
    """The agent's default, the test's own; and tags that have a v before the version."""
    clone = Clone(tmp_path / "clone", 60)
    for i in range(60):
        clone.git("tag", f"v1.{i}", clone.ids[i])
    path = prepare(tmp_path, [f"1.{i}" for i in range(60)], None, f"\n  repository: {tmp_path}/clone")
    agent = begin(agents, path)
    found = commits_of(agent, change_of(agent))
    assert [commit["commit"] for commit in found["commits"]] == [clone.ids[30]], found
    assert agent.end() == 0
    path.write_text(path.read_text().replace("    file:", '    repository: ""\n    file:'))
    agent = begin(agents, path)
    assert not commits_of(agent, change_of(agent))["configured"]
    assert agent.end() == 0


def test_many(agents, tmp_path):
    clone = Clone(tmp_path / "clone", 6000)
    agent = begin(agents, prepare(tmp_path, [clone.ids[100 * i + 1] for i in range(60)] ))
    assert len(commits_of(agent, change_of(agent))["commits"]) == 100
    assert agent.end() == 0
    agent = begin(agents, prepare(tmp_path, [clone.ids[2000 if i < 30 else 4000] for i in range(60)], name="db.more"))
    found = commits_of(agent, change_of(agent, "db.more"))
    assert len(found["commits"]) == 200 and found["more"], found
    assert found["commits"][0]["commit"] == clone.ids[4000]
    assert agent.end() == 0


def test_the_clone_runs_nothing(agents, tmp_path):
    """Its configuration is not ours: whatever it names is not run."""
    clone = Clone(tmp_path / "clone", 60)
    trap = tmp_path / "trap"
    trap.write_text(f"#!/bin/sh\ntouch {tmp_path}/sprung\n")
    trap.chmod(0o755)
    for key in ("gpg.program", "core.pager", "pager.log", "core.fsmonitor", "diff.external", "core.sshCommand", "alias.log", "core.editor"):
        clone.git("config", key, trap if key != "alias.log" else f"!{trap}")
    clone.git("config", "log.showSignature", "true")
    clone.git("config", "format.pretty", "oneline")
    clone.git("config", "log.decorate", "full")
    hooks = clone.path / ".git" / "hooks"
    hooks.mkdir(exist_ok=True)
    for name in ("post-index-change", "reference-transaction", "post-checkout"):
        (hooks / name).write_text(trap.read_text())
        (hooks / name).chmod(0o755)
    agent = begin(agents, prepare(tmp_path, clone.ids))
    assert len(commits_of(agent, change_of(agent))["commits"]) == 1
    assert agent.end() == 0 and not (tmp_path / "sprung").exists()


def test_a_partial_clone_fetches_nothing(agents, tmp_path):
    """A commit that it lacks is not asked for, whatever its configuration allows."""
    clone = Clone(tmp_path / "clone", 60)
    trap = tmp_path / "trap"
    trap.write_text(f"#!/bin/sh\ntouch {tmp_path}/sprung\n")
    trap.chmod(0o755)
    clone.git("config", "core.repositoryFormatVersion", "1")
    clone.git("config", "extensions.partialClone", "origin")
    clone.git("config", "remote.origin.promisor", "true")
    clone.git("config", "remote.origin.url", f"ext::{trap}")
    clone.git("config", "protocol.ext.allow", "always")
    agent = begin(agents, prepare(tmp_path, clone.ids[:30] + ["1" * 40] + clone.ids[31:]))
    found = commits_of(agent, change_of(agent))
    assert found["problem"].startswith("git: ") and not found["commits"], found
    assert agent.end() == 0 and not (tmp_path / "sprung").exists()


def test_a_git_that_hangs(agents, tmp_path, monkeypatch):
    """It is ended; those who ask for the same wait for one; and the agent's end does not wait for it."""
    clone = Clone(tmp_path / "clone", 60)
    (tmp_path / "bin").mkdir()
    git = tmp_path / "bin" / "git"
    git.write_text(f"#!/bin/sh\necho run >> {tmp_path}/runs\nexec sleep 3600\n")
    git.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}/bin:{os.environ['PATH']}")
    agent = begin(agents, prepare(tmp_path, clone.ids))
    number = change_of(agent)
    answers = []
    threads = [threading.Thread(target=lambda: answers.append(commits_of(agent, number))) for _ in range(5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(answers) == 5 and all("timed out after 10s" in found["problem"] for found in answers), answers
    assert (tmp_path / "runs").read_text() == "run\n"
    assert agent.end() == 0


def test_the_end_waits_for_no_git(agents, tmp_path, monkeypatch):
    clone = Clone(tmp_path / "clone", 60)
    (tmp_path / "bin").mkdir()
    git = tmp_path / "bin" / "git"
    git.write_text(f"#!/bin/sh\ntouch {tmp_path}/begun\nexec sleep 3600\n")
    git.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}/bin:{os.environ['PATH']}")
    agent = begin(agents, prepare(tmp_path, clone.ids))
    number = change_of(agent)
    with contextlib.closing(http.client.HTTPConnection("127.0.0.1", agent.port, timeout=LONGEST)) as connection:
        connection.request("GET", f"/api/v1/changes/{number}/commits")
        agent.wait((tmp_path / "begun").exists)
        assert agent.end() == 0
        assert connection.getresponse().status == 503
