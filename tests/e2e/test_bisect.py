"""hunter-c bisect on real clones: programs that get slower at a planted commit, and all that may go wrong on the way."""
import csv
import datetime
import http.server
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import threading

import pytest
from agent import START, config, csv_test
from test_access import begin as begin_agent
from test_commits import change_of
from waiting import LONGEST, wait

# Prints the level of the commit with noise that follows from the run's number, so that each test is the same each time.
BENCH = """#!/bin/sh
[ ! -e untestable ] || exit 125
[ ! -e broken ] || { echo "bench.c:1: error: no such thing" >&2; exit 2; }
awk -v level="$(cat level)" -v id="$HUNTER_BISECT_RUN" 'BEGIN {
  srand(id * 7919 + 17); rand(); n = 0; for (i = 0; i < 12; i++) n += rand()
  printf "warm-up 3\\np99: %.4f ms\\n", level * (1 + 0.02 * (n - 6)) }'
"""


class Clone:
    def __init__(self, path):
        self.path, self.ids, self.date = pathlib.Path(path), [], 1700000000
        self.path.mkdir(parents=True)
        self.git("init", "-q", "--initial-branch=main", ".")

    def git(self, *arguments, stdin=None):
        env = {"PATH": os.environ["PATH"], "HOME": str(self.path.parent), "GIT_CONFIG_NOSYSTEM": "1", "GIT_AUTHOR_NAME": "Ann",
               "GIT_AUTHOR_EMAIL": "ann@example", "GIT_COMMITTER_NAME": "Ann", "GIT_COMMITTER_EMAIL": "ann@example",
               "GIT_AUTHOR_DATE": f"{self.date} +0000", "GIT_COMMITTER_DATE": f"{self.date} +0000"}
        return subprocess.run(["git", *map(str, arguments)], cwd=self.path, env=env, check=True, input=stdin, capture_output=True, text=True).stdout

    def write(self, name, text, mode=0o644):
        path = self.path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        path.chmod(mode)

    def commit(self, subject):
        self.date += 60
        self.git("add", "-A")
        self.git("commit", "-q", "--allow-empty", "-m", subject)
        self.ids.append(self.git("rev-parse", "HEAD").strip())
        return self.ids[-1]


def make(path, count=20, slow=13, by=1.10, broken=(), untestable=(), bench=BENCH):
    """Commit 0 is good, those from `slow` on have the new level; the files tell a program which it is."""
    clone, stream = Clone(path), []
    for i in range(count + 1):
        clone.date += 60
        files = {"level": "100\n" if i < slow else f"{100 * by:.2f}\n", "code.txt": f"{i}\n"}
        stream += [f"commit refs/heads/main\nauthor Ann <ann@example> {clone.date} +0000\ncommitter Ann <ann@example> {clone.date} +0000",
                   data(f"Change {i}" if i else "Start"), "M 100755 inline bench.sh", data(bench)]
        stream += [line for name, text in files.items() for line in (f"M 100644 inline {name}", data(text))]
        for name, places in (("broken", broken), ("untestable", untestable)):
            stream += [f"M 100644 inline {name}", data("")] if i in places else [f"D {name}"] if i - 1 in places else []
    clone.git("fast-import", "--quiet", stdin="\n".join(stream) + "\n")
    clone.git("reset", "-q", "--hard", "main")
    clone.ids = clone.git("log", "--reverse", "--format=%H", "main").split()
    return clone


def data(text):
    return f"data {len(text.encode())}\n{text}"


@pytest.fixture
def bisect(hunter, tmp_path):
    """bisect(CLONE, ARGUMENTS...): with a work folder of its own."""

    def run(clone, *arguments, good=None, command="./bench.sh", work=None, env=None, more=("--run",)):
        words = ["bisect", "--work", work or tmp_path / "work", "--repo", clone.path]
        if "--resume" not in arguments and "--show" not in arguments and "--log" not in arguments:
            words += ["--good", good or clone.ids[0], *more, command]
        return hunter(*words, *arguments, env={"HOME": str(tmp_path)} | (env or {}))

    return run


def verdict(result):
    assert result.out, result.err
    return json.loads(result.out.splitlines()[-1])


def culprit(result):
    found = verdict(result)
    assert found["end"] == "found", result
    return found["culprit"]["commit"]


def events(work, name="journal.jsonl"):
    return [json.loads(line) for line in (work / name).read_text().splitlines()]


def untouched(clone, before):
    """The user's work tree, its index and its branches are as they were; no work tree of ours is left."""
    assert clone.git("status", "--porcelain") == before
    assert clone.git("symbolic-ref", "HEAD").strip() == "refs/heads/main"
    assert len(clone.git("worktree", "list", "--porcelain").split("\n\n")) == 2, clone.git("worktree", "list")


def test_finds_the_commit(bisect, tmp_path):
    clone = make(tmp_path / "a clone with 'spaces'", slow=13)
    (clone.path / "note.txt").write_text("mine")
    before = clone.git("status", "--porcelain")
    work = tmp_path / "a work folder"
    result = bisect(clone, "--workers", 2, work=work)
    assert result.code == 0, result
    assert result.out.startswith(f"first bad: {clone.ids[13][:7]} ("), result.out
    assert "; verified against its parent: +" in result.out and " pairs" in result.out
    assert "20 candidates from " in result.err, result.err
    untouched(clone, before)
    assert sorted(path.name for path in work.iterdir()) == ["hunter-bisect", "journal.jsonl", "logs"]
    setup, *lines = events(work)
    assert (setup["good"], setup["bad"], setup["candidates"]) == (clone.ids[0], clone.ids[20], clone.ids[1:])
    values = [line["result"] for line in lines if "result" in line]
    assert values and all(value["outcome"] in ("measured", "lost") for value in values)
    shown = bisect(clone, "--show", work=work)
    assert shown.code == 0 and f"{clone.ids[13][:7]} " in shown.out and "█" in shown.out and "Change 13" in shown.out
    assert shown.out.splitlines()[-1] == result.out.strip()
    logged = bisect(clone, "--log", work=work)
    assert logged.code == 0 and len(logged.out.splitlines()) == len(values), logged.out
    again = bisect(clone, "--resume", "--output", "json", work=work)
    assert (again.code, culprit(again)) == (0, clone.ids[13]), "one that is over says so again"


def test_down_and_json(bisect, tmp_path):
    clone = make(tmp_path / "clone", slow=4, by=0.9, bench=BENCH.replace("p99: %.4f ms", '{\\"noise\\": 1}\\n{\\"r\\": [{\\"p.99\\": %.4f}]}'))
    result = bisect(clone, "--extract", 'json:r[0]["p.99"]', "--direction", "down", "--output", "json")
    assert culprit(result) == clone.ids[4], result
    assert verdict(result)["verified"]["percent"] < -5
    wrong = bisect(clone, "--direction", "up", "--extract", 'json:r[0]["p.99"]', work=tmp_path / "up", more=("--run",))
    assert wrong.code == 1 and wrong.out.startswith("not reproduced: "), wrong


def test_not_reproduced(bisect, tmp_path):
    clone = make(tmp_path / "clone", slow=99)
    result = bisect(clone)
    assert result.code == 1, result
    assert result.out.startswith("not reproduced: ") and " pairs" in result.out
    untouched(clone, "")


def test_broken_commits(bisect, tmp_path):
    """The culprit's neighbours do not build: the set says so, and no broken build is blamed."""
    clone = make(tmp_path / "clone", slow=10, broken=(8, 9), untestable=(3, 15))
    result = bisect(clone, "--workers", 3)
    assert result.code == 5, result
    assert "first bad: one of 3, 2 of them untestable: " in result.out, result.out
    for i in (8, 9, 10):
        assert clone.ids[i][:7] in result.out
    assert "failed: exit status 2; see " in result.err
    log = pathlib.Path(result.err.split("exit status 2; see ")[1].split(" (worker")[0])
    assert "error: no such thing" in log.read_text()
    untouched(clone, "")


def test_broken_elsewhere(bisect, tmp_path):
    clone = make(tmp_path / "clone", slow=17, broken=(2, 5, 9, 10, 11), untestable=(6, 14))
    assert culprit(bisect(clone, "--workers", 2, "--output", "json")) == clone.ids[17]


def test_ends_that_cannot_be_measured(bisect, tmp_path):
    clone = make(tmp_path / "clone")
    result = bisect(clone, command="exit 7")
    assert result.code == 3 and "cannot measure an end of the range" in result.out, result
    result = bisect(clone, command="echo none")
    assert result.code == 3 and "its output has no number (a check that passes or fails can end with '; echo $?')" in result.err, result


# Killed


def begin(program, clone, work, *arguments, command="sleep 0.05; ./bench.sh", home=None, env=None):
    words = [str(program), "bisect", "--work", str(work), "--repo", str(clone.path), *map(str, arguments)]
    if "--resume" not in arguments:
        words += ["--good", clone.ids[0], "--run", command]
    return subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                            env=os.environ | {"HOME": str(home or work.parent)} | (env or {}))


def finished_runs(work):
    journal = work / "journal.jsonl"
    return sum('"result"' in line for line in journal.read_text().splitlines()) if journal.exists() else 0


def wait_for(done, process=None):
    """Until it is done; a process that is to do it must not end before."""
    def look():
        assert done() or process is None or process.poll() is None, process.communicate()
        return done()

    wait(look)


def left_behind(work, program=b""):
    """Processes of a bisection in that work folder; of its runs, and what git does for it. `program`: only those that run it."""
    found = []
    for entry in pathlib.Path("/proc").iterdir():
        try:
            if (entry.name.isdigit() and f"HUNTER_BISECT_WORK={work}".encode() in (entry / "environ").read_bytes().split(b"\0")
                    and (entry / "cmdline").read_bytes().startswith(program)):
                found.append(int(entry.name))
        except OSError:
            continue
    return found


def command_of(pid):
    try:
        return pathlib.Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""


def test_killed_on_the_way(program, hunter, bisect, tmp_path):
    """Five times kill -9: what was measured is measured once, and what a run left is ended."""
    clone, work = make(tmp_path / "clone", count=90, slow=61, broken=(7,), by=1.04), tmp_path / "work"
    for i in range(5):
        process = begin(program, clone, work, "--workers", 2, *(["--resume"] if i else []))
        before = finished_runs(work)
        wait_for(lambda: finished_runs(work) >= before + 3, process)
        process.kill()
        process.communicate()
    with open(work / "journal.jsonl", "a") as journal:
        journal.write('{"begin": {"id": 9')
    result = bisect(clone, "--resume", "--output", "json")
    assert (result.code, culprit(result)) == (0, clone.ids[61]), result
    wait_for(lambda: not left_behind(work))
    lines = events(work)[1:]
    assert [list(line)[0] for line in lines].count("resumed") == 5
    ids = [line["result"]["id"] for line in lines if "result" in line]
    assert len(ids) == len(set(ids)) == len([line for line in lines if "begin" in line])
    assert sum(line["result"]["outcome"] == "lost" for line in lines if "result" in line) <= 5 * 2 + 1
    untouched(clone, "")


def test_interrupted(program, hunter, bisect, tmp_path):
    """Ctrl-C ends the runs in hand with all their processes and says how to go on."""
    clone, work = make(tmp_path / "clone"), tmp_path / "it's work"
    process = begin(program, clone, work, command="sleep 1000 & sleep 1000")
    wait_for(lambda: len(left_behind(work)) >= 3, process)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=LONGEST)
    assert (process.returncode, out) == (130, ""), err
    assert f"hunter-c bisect --resume --work '{str(work)[:-len('it' + chr(39) + 's work')]}it'\\''s work'" in err, err
    wait_for(lambda: not left_behind(work))
    assert bisect(clone, work=work).code == 2, "an unfinished one is not overwritten"
    dropped = hunter("bisect", "--discard", "--work", work)
    assert dropped.code == 0, dropped
    untouched(clone, "")
    process = begin(program, clone, work, command="sleep 1000")
    wait_for(lambda: left_behind(work), process)
    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=LONGEST)
    result = bisect(clone, "--discard", "--output", "json", work=work)
    assert culprit(result) == clone.ids[13]
    untouched(clone, "")


def test_strays_of_a_killed_program(program, bisect, tmp_path):
    clone, work = make(tmp_path / "clone"), tmp_path / "work"
    process = begin(program, clone, work, command='[ -e "$HUNTER_BISECT_WORK/free" ] || sleep 1000; ./bench.sh')
    wait_for(lambda: left_behind(work, b"sleep"), process)
    process.kill()
    process.communicate()
    assert left_behind(work)
    (work / "free").write_text("")
    assert culprit(bisect(clone, "--resume", "--output", "json")) == clone.ids[13]
    wait_for(lambda: not left_behind(work))


def test_strays_of_a_checkout(program, bisect, tmp_path):
    """A git that outlives the killed program would change the tree under the next one's run."""

    def sleeping():
        return any(b"1000" in command_of(pid) for pid in left_behind(work))

    clone, work, tools = make(tmp_path / "clone"), tmp_path / "work", tmp_path / "tools"
    tools.mkdir()
    (tools / "git").write_text(f'#!/bin/sh\ncase " $* " in *" checkout "*) [ -e "{work}/free" ] || exec sleep 1000 ;; esac\nexec {shutil.which("git")} "$@"\n')
    (tools / "git").chmod(0o755)
    env = {"PATH": f"{tools}:{os.environ['PATH']}"}
    process = begin(program, clone, work, env=env)
    wait_for(sleeping, process)
    process.kill()
    process.communicate()
    assert sleeping()
    (work / "free").write_text("")
    process = begin(program, clone, work, "--resume", env=env)
    wait_for(lambda: finished_runs(work), process)
    assert not sleeping()
    process.communicate(timeout=LONGEST)


def test_one_at_a_time(program, bisect, tmp_path):
    clone, work = make(tmp_path / "clone"), tmp_path / "work"
    process = begin(program, clone, work, command="sleep 1000")
    wait_for(lambda: left_behind(work), process)
    result = bisect(clone, "--resume")
    assert result.code == 4 and "in use by another hunter-c" in result.err, result
    assert bisect(clone, "--show").code == 0, "one can look"
    process.terminate()
    process.communicate(timeout=LONGEST)


def test_a_journal_that_does_not_fit(program, bisect, tmp_path):
    clone, work = make(tmp_path / "clone"), tmp_path / "work"
    process = begin(program, clone, work)
    wait_for(lambda: finished_runs(work) >= 2, process)
    process.kill()
    process.communicate()
    other = bisect(make(tmp_path / "other"), "--resume")
    assert other.code in (0, 5), "the journal says which clone it is"
    # Again, and then its history is rewritten.
    process = begin(program, clone, work)
    wait_for(lambda: finished_runs(work) >= 2, process)
    process.kill()
    process.communicate()
    clone.git("update-ref", "-d", "refs/heads/main")
    clone.git("worktree", "list")
    for tree in work.glob("worker-*"):
        clone.git("worktree", "remove", "--force", tree)
    clone.git("reflog", "expire", "--expire=now", "--all")
    clone.git("gc", "-q", "--prune=now")
    gone = bisect(clone, "--resume")
    assert gone.code == 2 and "the repository does not match the journal: " in gone.err and "names no commit" in gone.err, gone
    lines = (work / "journal.jsonl").read_text().splitlines()
    (work / "journal.jsonl").write_text("\n".join([lines[0], "{}", *lines[1:]]) + "\n")
    broken = bisect(clone, "--resume")
    assert broken.code == 3 and "journal.jsonl: line 2: not an event of a bisection" in broken.err, broken


# What clones may be like


def refused(result, *texts, code=2):
    assert (result.code, result.out) == (code, ""), result
    for text in texts:
        assert text in result.err, result.err
    assert len(result.err.splitlines()) <= 3, result.err


def test_names_that_are_no_commits(bisect, hunter, tmp_path):
    clone = make(tmp_path / "clone")
    touched = tmp_path / "touched"
    for name in ("--output=/tmp/x", f"$(touch {touched})", f"HEAD; touch {touched}", "nothing", "HEAD..HEAD", "a\nb", "\x1b[31mred", "v1" * 1000):
        result = bisect(clone, "--bad", name)
        refused(result, "--bad needs a value" if name.startswith("--") else "no commit")
        assert "\x1b" not in result.err
    assert not touched.exists()
    clone.git("tag", "v1.2", clone.ids[0])
    clone.git("branch", "with/$(touch)'\"`", clone.ids[20])
    result = bisect(clone, "--bad", "with/$(touch)'\"`", "--output", "json", good="1.2")
    assert culprit(result) == clone.ids[13], result


def test_ends(bisect, tmp_path):
    clone = make(tmp_path / "clone")
    refused(bisect(clone, "--bad", clone.ids[0]), "the good and the bad end are the same commit")
    refused(bisect(clone, "--bad", clone.ids[3], good=clone.ids[9]), "is an ancestor of the good end", "are they swapped?")
    refused(bisect(clone, "--paths", "nothing/here"), "touches these paths")
    one = bisect(clone, "--bad", clone.ids[13], "--output", "json", good=clone.ids[12])
    assert culprit(one) == clone.ids[13] and "the range has a single commit" in one.err, one
    clone.git("checkout", "-q", "--orphan", "alone")
    clone.commit("Alone")
    refused(bisect(clone, "--bad", "main", good="alone"), "have no commit in common")


def test_parted_branches(bisect, tmp_path):
    """What the good end does not share with the bad one is not in the range."""
    clone = make(tmp_path / "clone", count=12, slow=9)
    clone.git("checkout", "-q", "-b", "release", clone.ids[5])
    release = clone.commit("Release")
    clone.git("checkout", "-q", "main")
    result = bisect(clone, "--output", "json", good=release)
    assert culprit(result) == clone.ids[9] and verdict(result)["good"] == clone.ids[5], result
    assert f"is not an ancestor of the bad one: the range begins at their merge base, {clone.ids[5][:12]}" in result.err


def test_no_repository(bisect, hunter, tmp_path):
    (tmp_path / "empty").mkdir()
    refused(hunter("bisect", "--good", "a", "--repo", tmp_path / "empty", "--run", "x", "--work", tmp_path / "w"), "not a git repository")
    refused(hunter("bisect", "--good", "a", "--repo", tmp_path / "nowhere", "--run", "x"), "--repo: ", "No such file")


def test_shallow_clone(bisect, tmp_path):
    clone = make(tmp_path / "clone")
    subprocess.run(["git", "clone", "-q", "--depth", "5", f"file://{clone.path}", tmp_path / "shallow"], check=True, capture_output=True)
    shallow = Clone.__new__(Clone)
    shallow.path, shallow.ids, shallow.date = tmp_path / "shallow", clone.ids, clone.date
    refused(bisect(shallow), "names no commit", "git fetch --unshallow")
    result = bisect(shallow, "--bad", clone.ids[20], good=clone.ids[17])
    assert result.code == 1, "what it has can be bisected"


def test_dirty_tree(bisect, tmp_path):
    clone = make(tmp_path / "clone")
    clone.write("level", "500\n")
    before = clone.git("status", "--porcelain")
    index = (clone.path / ".git/index").read_bytes()
    result = bisect(clone, "--output", "json")
    assert culprit(result) == clone.ids[13] and "has uncommitted changes: the runs do not include them" in result.err, result
    assert (clone.path / "level").read_text() == "500\n" and (clone.path / ".git/index").read_bytes() == index
    untouched(clone, before)


PROGRAMS = ("core.fsmonitor", "core.pager", "core.editor", "core.sshCommand", "core.askPass", "core.gitProxy", "core.alternateRefsCommand",
            "sequence.editor", "gpg.program", "credential.helper", "diff.external", "diff.d.textconv", "diff.d.command", "merge.m.driver",
            "pager.log", "pager.status", "interactive.diffFilter", "trailer.t.command", "uploadpack.packObjectsHook", "remote.origin.uploadpack",
            "filter.f.clean", "filter.f.smudge", "filter.g.process", "filter.h.smudge", "filter.h.clean", "filter.h.process")
HOOKS = ("post-checkout", "reference-transaction", "post-index-change", "pre-auto-gc", "fsmonitor-watchman", "post-merge", "post-rewrite")


def lay_traps(clone, trap):
    """Everywhere where the clone can name a program."""
    trap.write_text(f"#!/bin/sh\necho \"$0 $*\" >>{trap}.sprung\ncat\n")
    trap.chmod(0o755)
    for key in PROGRAMS:
        clone.git("config", key, trap)
    for key, value in (("filter.f.required", "true"), ("filter.g.required", "true"), ("log.showSignature", "true"), ("submodule.recurse", "true"),
                       ("protocol.ext.allow", "always"), ("remote.origin.url", f"ext::{trap}"), ("alias.checkout", f"!{trap}"),
                       ("gc.auto", "1")):
        clone.git("config", key, value)
    clone.write(".git/info/attributes", "code.txt filter=f diff=d merge=m\nlevel filter=g\nbench.sh filter=h\n")
    for hook in HOOKS:
        clone.write(f".git/hooks/{hook}", trap.read_text(), 0o755)
    os.utime(clone.path / "code.txt", (1, 1))  # git has to look into it


def test_the_clone_runs_nothing(bisect, tmp_path):
    clone = make(tmp_path / "clone", count=8, slow=5)
    lay_traps(clone, tmp_path / "trap")
    assert culprit(bisect(clone, "--output", "json")) == clone.ids[5]
    assert not (tmp_path / "trap.sprung").exists(), (tmp_path / "trap.sprung").read_text()
    clone.git("config", "filter.a=b.smudge", tmp_path / "trap")
    refused = bisect(clone, "--output", "json", work=tmp_path / "other")
    assert refused.code != 0 and "cannot disable" in refused.err, refused
    assert not (tmp_path / "trap.sprung").exists()


def test_filters_of_the_user_are_run(bisect, tmp_path):
    """The clone's own ones are not, be it that they have the same name."""
    clone = make(tmp_path / "clone", count=8, slow=5)
    clone.write(".git/info/attributes", "code.txt filter=f\n")
    clone.git("config", "filter.f.smudge", f"touch {tmp_path}/sprung; cat")
    clone.git("config", "--global", "filter.f.smudge", f"touch {tmp_path}/run; cat")
    assert culprit(bisect(clone, "--output", "json")) == clone.ids[5]
    assert (tmp_path / "run").exists() and not (tmp_path / "sprung").exists()


def test_a_git_that_cannot_list_filters(bisect, tmp_path, monkeypatch):
    """One from before 2.26: what it says is told."""
    clone = make(tmp_path / "clone", count=8, slow=5)
    old = tmp_path / "old/git"
    old.parent.mkdir()
    old.write_text(f"""#!/bin/sh
case " $* " in *" --show-scope "*) echo "error: unknown option \\`show-scope'" >&2; exit 129;; esac
exec {shutil.which("git")} "$@"
""")
    old.chmod(0o755)
    monkeypatch.setenv("PATH", f"{old.parent}:{os.environ['PATH']}")
    result = bisect(clone, "--output", "json")
    assert result.code != 0 and "unknown option `show-scope'" in result.err, result


def test_vanished_commit(bisect, tmp_path):
    """A commit that goes away under way is left out, as one that cannot be tested."""
    clone = make(tmp_path / "clone", slow=4)
    middle = clone.ids[10]
    command = f"rm -f {clone.path}/.git/objects/{middle[:2]}/{middle[2:]}; ./bench.sh"
    result = bisect(clone, "--bad", clone.ids[20], "--workers", 19, command=command)
    assert result.code == 0 and result.out.startswith(f"first bad: {clone.ids[4][:7]}"), result
    assert f"{middle[:7]} cannot be tested: commit {middle} is no longer in the repository" in result.err, result.err


def test_full_disk(program, bisect, tmp_path):
    """A small file system fills up: that is no fault of a commit. With room again it goes on."""
    clone = make(tmp_path / "clone", slow=13)
    script = f"""
mount -t tmpfs -o size=6m none {tmp_path}/small || exit 77
cd {tmp_path}
"$HUNTER" bisect --repo clone --work small/work --good {clone.ids[0]} --run '[ -e "$HUNTER_BISECT_WORK/free" ] || dd if=/dev/zero of=fill bs=1M count=9 || exit 1; ./bench.sh'
echo "code $?"
touch small/work/free
rm -f small/work/worker-1/fill
"$HUNTER" bisect --resume --work small/work
echo "code $?"
"""
    (tmp_path / "small").mkdir()
    done = subprocess.run(["unshare", "-rm", "sh", "-c", script], env=os.environ | {"HUNTER": str(program)}, capture_output=True, text=True)
    if done.returncode == 77 or "unshare" in done.stderr:
        pytest.skip("no namespaces here")
    first, second = done.stdout.split("code 3\n")
    assert f"the disk of {tmp_path}/small/work is full" in done.stderr and "resume with: hunter-c bisect --resume" in done.stderr, done
    assert first == "" and second.startswith(f"first bad: {clone.ids[13][:7]}") and second.endswith("code 0\n"), done


def test_journal_that_cannot_be_written(program, tmp_path):
    """With a limit on files it stops when the journal is that long, without half a line in it."""
    clone, work = make(tmp_path / "clone", slow=13), tmp_path / "work"
    words = f'ulimit -f 4; exec "$0" bisect --repo clone --work work --good {clone.ids[0]} --run ./bench.sh'
    done = subprocess.run(["sh", "-c", words, str(program)], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 4 and "journal.jsonl: " in done.stderr, done
    assert (work / "journal.jsonl").read_bytes().endswith(b"}\n")
    done = subprocess.run([str(program), "bisect", "--resume", "--work", str(work)], capture_output=True, text=True)
    assert done.returncode == 0 and done.stdout.startswith(f"first bad: {clone.ids[13][:7]}"), done


# Options


def test_paths(bisect, tmp_path):
    clone = make(tmp_path / "clone", slow=99)
    for i in range(8):
        clone.write("lib/a b,c.txt", f"{i}")
        if i == 5:
            clone.write("level", "115\n")
        clone.commit(f"Library {i}")
        clone.write("doc.txt", f"{i}")
        clone.commit(f"Doc {i}")
    result = bisect(clone, "--paths", "lib/a b,c.txt", "--output", "json")
    assert culprit(result) == clone.ids[20 + 2 * 5 + 1] and verdict(result)["candidates"] == 8, result


def merged(path):
    """The step is in the second commit of a branch, which is merged as the fourth commit of main."""
    clone = make(path, count=6, slow=99)
    clone.git("checkout", "-q", "-b", "side", clone.ids[3])
    side = []
    for i in range(4):
        clone.write("side.txt", f"{i}")
        if i == 2:
            clone.write("level", "112\n")
        side.append(clone.commit(f"Side {i}"))
    clone.git("checkout", "-q", "main")
    clone.date += 60
    clone.git("merge", "-q", "--no-ff", "-m", "Merge side", "side")
    merge = clone.git("rev-parse", "HEAD").strip()
    for i in range(5):
        clone.write("more.txt", f"{i}")
        clone.commit(f"More {i}")
    return clone, merge, side


def test_merges(bisect, tmp_path):
    clone, merge, side = merged(tmp_path / "clone")
    result = bisect(clone, "--output", "json")
    assert culprit(result) == merge and verdict(result)["candidates"] == 12
    result = bisect(clone, "--merges", "--output", "json")
    first, second = map(json.loads, result.out.splitlines())
    assert (first["culprit"]["commit"], second["culprit"]["commit"]) == (merge, side[2]), result
    assert second["merge"] == merge and "is a merge: searching its 4 commits" in result.err
    shown = bisect(clone, "--show")
    assert shown.code == 0 and shown.out.count("first bad: ") == 2
    untouched(clone, "")


def test_merge_to_blame_itself(bisect, tmp_path):
    clone, merge, _ = merged(tmp_path / "clone")
    clone.git("checkout", "-q", "-b", "other", clone.ids[3])
    clone.write("one.txt", "")
    clone.commit("One")
    clone.git("checkout", "-q", "main")
    clone.git("merge", "-q", "--no-ff", "--no-commit", "other")
    clone.write("level", "140\n")
    evil = clone.commit("Merge other")
    result = bisect(clone, "--merges", good=merge)
    assert result.code == 0 and f"has the step alone: the culprit is the merge" in result.err, result
    assert result.out.startswith(f"first bad: {evil[:7]}")


def test_workers_with_lines(bisect, tmp_path):
    """A line gets the command; one that does not answer is not asked for ever, and no commit is blamed."""
    clone = make(tmp_path / "clone", slow=7)
    lines = ["--worker", f"env -i PATH=\"$PATH\" sh -c 'echo x >>{tmp_path}/calls; cd /; cd \"$0\" && eval \"$1\"' \"$PWD\"", "--worker", "exit 255; "]
    result = bisect(clone, *lines, "--workers", 1, "--output", "json")
    assert culprit(result) == clone.ids[7], result
    assert len((tmp_path / "calls").read_text().splitlines()) > 3
    assert "the worker did not answer: its command line ended with status 255" in result.err
    assert verdict(result)["broken"] == 0
    none = bisect(clone, "--worker", "exit 255; ", work=tmp_path / "none")
    assert none.code == 3 and "no worker responds any more" in none.err, none


def test_processors(bisect, tmp_path):
    allowed = sorted(os.sched_getaffinity(0))
    clone = make(tmp_path / "clone", slow=5, count=8)
    command = f"taskset -cp $$ >>{tmp_path}/sets; ./bench.sh"
    result = bisect(clone, "--worker", f"taskset -c {allowed[-1]} sh -c", "--output", "json", command=command)
    assert culprit(result) == clone.ids[5], result
    assert {line.split(": ")[1] for line in (tmp_path / "sets").read_text().splitlines()} == {str(allowed[-1])}


def test_time_limit(bisect, tmp_path):
    """A run that hangs is ended with all that it started; its commit is broken, not to blame."""
    clone = make(tmp_path / "clone", count=10, slow=8, untestable=())
    command = 'case $HUNTER_BISECT_POSITION in 5) sleep 1000 & sleep 1000;; esac; ./bench.sh'
    work = tmp_path / "work"
    result = bisect(clone, "--timeout", "3s", "--workers", 9, command=command)
    assert result.code == 0 and f"{clone.ids[5][:7]} failed: timed out after 3s" in result.err, result
    assert result.out.startswith(f"first bad: {clone.ids[8][:7]}")
    assert not left_behind(work)


def test_budget(bisect, tmp_path):
    clone = make(tmp_path / "clone", by=1.02)
    result = bisect(clone, "--max-runs", 12)
    assert result.code in (1, 5) and (result.code == 1 or "the budget is used up" in result.out), result
    slow = bisect(clone, "--budget", "2s", command="sleep 1000", work=tmp_path / "slow")
    assert slow.code == 5 and "the budget is used up" in slow.out, slow


def test_budget_without_the_time_it_was_stopped(program, bisect, tmp_path):
    clone, work = make(tmp_path / "clone"), tmp_path / "work"
    process = begin(program, clone, work, "--budget", "1h")
    wait_for(lambda: finished_runs(work) >= 3, process)
    process.kill()
    process.communicate()
    # As if that had been a day ago.
    setup, *lines = events(work)
    for line in lines:
        for event in line.values():
            for key in {"at", "begun"} & set(event):
                event[key] -= 86400000
    setup["at"] -= 86400000
    (work / "journal.jsonl").write_text("".join(json.dumps(line) + "\n" for line in (setup, *lines)))
    assert culprit(bisect(clone, "--resume", "--output", "json")) == clone.ids[13]


def test_work_folder(bisect, hunter, tmp_path):
    """A folder with files of others is not taken; without --work it lies below XDG_STATE_HOME, one for each clone."""
    clone = make(tmp_path / "clone", count=6, slow=3)
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine/worker-1").write_text("mine")
    refused(bisect(clone, work=tmp_path / "mine"), "contains files that do not belong to a bisection")
    assert (tmp_path / "mine/worker-1").read_text() == "mine"
    env = {"XDG_STATE_HOME": str(tmp_path / "state")}
    done = hunter("bisect", "--good", clone.ids[0], "--run", "./bench.sh", cwd=clone.path, env=env)
    assert done.code == 0, done
    [folder] = (tmp_path / "state/hunter-c/bisect").iterdir()
    assert folder.name.startswith("clone-")
    assert hunter("bisect", "--show", cwd=clone.path, env=env).code == 0
    again = hunter("bisect", "--good", clone.ids[0], "--run", "./bench.sh", cwd=clone.path, env=env)
    assert again.code == 0 and (folder / "previous.jsonl").exists(), "one that is over makes place"
    assert hunter("bisect", "--resume", cwd=tmp_path, env=env).code == 2


def test_environment(bisect, tmp_path):
    clone = make(tmp_path / "clone", count=6, slow=3)
    command = f'printf "%s " "$MINE" "$HUNTER_COMMIT" "$HUNTER_WORKER" "${{GIT_DIR-none}}" >>{tmp_path}/seen; git rev-parse HEAD >>{tmp_path}/seen; ./bench.sh'
    result = bisect(clone, "--output", "json", command=command, env={"MINE": "kept", "GIT_DIR": str(tmp_path / "nowhere")})
    assert culprit(result) == clone.ids[3], result
    for line in (tmp_path / "seen").read_text().splitlines():
        mine, commit, worker, folder, head = line.split()
        assert (mine, worker, folder, commit) == ("kept", "1", "none", head)


def test_untracked_files(bisect, tmp_path):
    """What a run leaves is gone at the next, but for what git ignores, unless --clean."""
    clone = make(tmp_path / "clone", count=6, slow=3)
    clone.write(".gitignore", "built\n")
    clone.commit("Ignore")
    base = clone.ids[-1]
    for i in range(6):
        clone.write("level", "120\n" if i >= 3 else "100\n")
        clone.write("code.txt", f"again {i}")
        clone.commit(f"Again {i}")
    command = f"ls left built >>{tmp_path}/seen 2>/dev/null; touch left built; ./bench.sh"
    assert culprit(bisect(clone, "--output", "json", good=base, command=command)) == clone.ids[-3]
    assert set((tmp_path / "seen").read_text().split()) == {"built"}
    (tmp_path / "seen").unlink()
    assert culprit(bisect(clone, "--clean", "--output", "json", good=base, command=command)) == clone.ids[-3]
    assert (tmp_path / "seen").read_text() == ""


@pytest.mark.parametrize("arguments, text", [
    ((), "--good COMMIT or --change ID is required"), (("--good", "a"), "--run COMMAND is required"), (("--good", "a", "--run", "x", "y"), "takes flags only"),
    (("--good", "a", "--run", "x", "--extract", "p99"), "neither last nor json:PATH"),
    (("--good", "a", "--run", "x", "--extract", "json:a["), "is not a path"), (("--resume", "--run", "x"), "--resume keeps the range"),
    (("--good", "a", "--run", "\udcff"), "--run is not UTF-8"), (("--show",), "has no bisection"), (("--change", "x", "--run", "y"), "--change takes the id"),
])
def test_flags(hunter, tmp_path, arguments, text):
    refused(hunter("bisect", "--work", tmp_path / "work", *arguments), text)


# Of a recorded change


def recorded(agents, tmp_path, clone, before, after):
    """An agent that knows a change between two commits, with the clone in its configuration."""
    with open(tmp_path / "read.csv", "w", newline="") as out:
        rows = csv.writer(out)
        rows.writerow(["time", "commit", "p99"])
        for i in range(60):
            level, commit = (100, before) if i < 40 else (110, after)
            rows.writerow([(START + datetime.timedelta(hours=i)).isoformat(), commit, level + (i * 7 % 5 - 2) * 0.4])
    agent = begin_agent(agents, config(tmp_path, csv_test(tmp_path / "read.csv", extra=f"    repository: {clone.path}\n")))
    return agent, change_of(agent)


@pytest.mark.parametrize("through", ["state", "agent"])
def test_of_a_change(hunter, agents, tmp_path, through):
    """Range, clone, step, spread and direction are those of the change."""
    clone = make(tmp_path / "clone", slow=9)
    agent, number = recorded(agents, tmp_path, clone, clone.ids[2][:12], clone.ids[18][:12])
    if through == "agent":
        where = ["--agent", f"http://127.0.0.1:{agent.port}", "--repo", clone.path]
    else:
        agent.process.terminate()
        agent.process.wait()
        where = ["--config", tmp_path / "hunter.yaml"]
    work = tmp_path / "work"
    command = f'echo "$HUNTER_TEST $HUNTER_METRIC" >>{tmp_path}/seen; ./bench.sh'
    result = hunter("bisect", "--change", number, *where, "--work", work, "--run", command, "--output", "json")
    assert culprit(result) == clone.ids[9], result
    assert set((tmp_path / "seen").read_text().splitlines()) == {"db.read p99"}
    setup = events(work)[0]
    assert (setup["change"], setup["direction"], setup["candidates"][-1]) == (number, 1, clone.ids[18])
    assert len(setup["candidates"]) == 16 and abs(setup["step"] - 0.1) < 0.001 and 0 < setup["spread"] < 0.01, setup
    refused(hunter("bisect", "--change", 99999, *where, "--run", "x"), "99999")


def test_of_a_change_without_commits(hunter, agents, tmp_path):
    clone = make(tmp_path / "clone", slow=9)
    agent, number = recorded(agents, tmp_path, clone, "", "")
    words = ["bisect", "--change", number, "--agent", f"http://127.0.0.1:{agent.port}", "--repo", clone.path, "--work", tmp_path / "work"]
    refused(hunter(*words, "--run", "x"), "has no commits recorded: give the range with --good and --bad")
    assert culprit(hunter(*words, "--good", clone.ids[0], "--bad", "HEAD", "--run", "./bench.sh", "--output", "json")) == clone.ids[9]


def test_of_something_else_than_a_change(hunter, tmp_path):
    """A server that answers, but not with a change: nothing is measured in its name."""

    class Other(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            body = b'{"change": {"id": 1, "test": "db.read"}, "from": "a", "to": "b"}'
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_):
            pass

    clone = make(tmp_path / "clone", slow=9)
    server = http.server.HTTPServer(("127.0.0.1", 0), Other)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        done = hunter("bisect", "--change", 1, "--agent", f"http://127.0.0.1:{server.server_port}", "--repo", clone.path, "--good", clone.ids[0],
                      "--bad", "HEAD", "--work", tmp_path / "work", "--run", "./bench.sh")
        assert done.code == 4 and "the response is not a change" in done.err, done
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


# Time


@pytest.mark.skipif(sys.platform != "linux", reason="needs processor time")
def test_real_time_under_load(program, bisect, tmp_path):
    """A program that takes longer, measured by the clock, while another process takes time of the machine."""
    bench = """#!/bin/sh
[ ! -e broken ] || exit 1
exec python3 -c '
import time
n = int(open("level").read().split(".")[0]) * 1500
begin = time.process_time()
x = 0
for i in range(n): x += i
print(time.process_time() - begin)'
"""
    clone = make(tmp_path / "clone", count=24, slow=15, by=1.6, broken=(4, 11, 19), bench=bench)
    load = subprocess.Popen([sys.executable, "-c", "while True: pass"])
    try:
        work = tmp_path / "work"
        for i in range(5):
            process = begin(program, clone, work, *(["--resume"] if i else []), command="./bench.sh")
            before = finished_runs(work)
            wait_for(lambda: finished_runs(work) >= before + 2, process)
            process.kill()
            process.communicate()
        result = bisect(clone, "--resume", "--output", "json")
    finally:
        load.kill()
        load.wait()
    found = verdict(result)
    assert result.code in (0, 5), result
    assert clone.ids[15] in [candidate["commit"] for candidate in found["set"]], result
    assert len(found["set"]) <= 3
