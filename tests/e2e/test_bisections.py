"""Bisections in the agent: from a series whose points have commits, by runs of a real git repository's program, to the change, its
thread, its page and its receivers."""
import contextlib
import csv
import datetime
import http.server
import json
import os
import re
import signal
import subprocess
import threading
import urllib.parse

import pytest
import servers
from agent import START, bot, config, csv_test, level, noise
from state_address import open_state
from test_access import ask, begin

# Prints a value: 100 with noise of 1%, 20% more from the planted commit on. Some commits do not build.
BENCH = """#!/bin/sh
[ -e broken ] && exit 125
[ -n "$HOLD" ] && [ -e "$HOLD" ] && sleep 600
awk -v seed="$HUNTER_BISECT_RUN" -v level="$(cat level)" 'BEGIN { srand(seed * 7919); print level * (1 + 0.01 * (rand() + rand() - 1)) }'
"""


class Program:
    """A repository of a program that gets slower at commit `slow`; commits in `broken` cannot be tested."""

    def __init__(self, path, count=40, slow=23, broken=()):
        self.path, self.slow = path, slow
        path.mkdir()
        self.git("init", "-q", "--initial-branch=main")
        (path / "bench.sh").write_text(BENCH)
        (path / "bench.sh").chmod(0o755)
        for i in range(count):
            (path / "level").write_text("120\n" if i >= slow else "100\n")
            (path / "note").write_text(f"{i}\n")
            if i in broken:
                (path / "broken").write_text("\n")
            else:
                (path / "broken").unlink(missing_ok=True)
            self.git("add", "-A")
            self.git("commit", "-q", "-m", f"Change {i}")
        self.ids = self.git("log", "--reverse", "--format=%H").split()

    def git(self, *arguments):
        environment = {"PATH": os.environ["PATH"], "HOME": str(self.path.parent), "GIT_CONFIG_NOSYSTEM": "1"}
        for who in ("AUTHOR", "COMMITTER"):
            environment |= {f"GIT_{who}_NAME": "Ann", f"GIT_{who}_EMAIL": "ann@example"}
        return subprocess.run(["git", *map(str, arguments)], cwd=self.path, env=environment, check=True, capture_output=True, text=True).stdout

    def trees(self):
        return self.git("worktree", "list", "--porcelain").count("worktree ")


def write_series(path, program, every=10, before=25, after=25):
    """A lab that tests every 10th commit: the step lies between two of them."""
    at = program.slow // every * every
    with open(path, "w", newline="") as out:
        rows = csv.writer(out)
        rows.writerow(["time", "commit", "p99"])
        for i in range(before + after):
            commit = program.ids[at if i < before else min(at + every, len(program.ids) - 1)]
            rows.writerow([(START + datetime.timedelta(hours=i)).isoformat(), commit, f"{level(i, [(before, 1.2)]):.4f}"])


RUN = "run: ./bench.sh"


def bisecting(tmp_path, repository, bisect, name="db.read", series="read.csv"):
    return csv_test(tmp_path / series, name, f"    repository: {repository}\n    bisect:\n" + "".join(
        f"      {line}\n" for line in [*bisect, f"work: {tmp_path}/work"]))


def get(agent, path):
    code, _, text = ask(agent.port, path=path)
    assert code == 200, text
    return json.loads(text)


def post(agent, path, **form):
    return ask(agent.port, "POST", path + "?" + urllib.parse.urlencode(form))


def bisections(agent, **form):
    return get(agent, "/api/v1/bisections?" + urllib.parse.urlencode(form))["bisections"]


def wait_over(agent, count=1):
    agent.wait(lambda: len(bisections(agent, state="over")) >= count)
    return bisections(agent, state="over")


def wait_runs(agent, number, least):
    agent.wait(lambda: bisections(agent)[-number]["runs"] >= least if len(bisections(agent)) >= number else False)


def change_of(agent, number):
    return get(agent, f"/api/v1/changes/{number}")["change"]


def check_found(agent, program, row):
    culprit = change_of(agent, row["change"])["culprit"]
    assert (row["state"], row["end"]) == ("over", "found"), row
    assert culprit == row["culprit"]
    assert culprit["commit"] == program.ids[program.slow] and culprit["probability"] >= 0.95, culprit
    assert culprit["bisection"] == row["id"] and culprit["verdict"].startswith(f"first bad: {culprit['commit'][:7]}"), culprit
    assert culprit["set"][0]["commit"] == culprit["commit"]
    return culprit


@pytest.mark.parametrize("line", [None, "env -i PATH=$PATH /bin/sh -c"])
def test_secrets_of_the_command(agents, tmp_path, monkeypatch, hunter, line):
    """What variables put into commands is in no answer; `environment` reaches the command, here and elsewhere, and no command line."""
    monkeypatch.setenv("KEY", "canary-of-the-command")
    monkeypatch.setenv("TOKEN", "canary's \\token")
    program = Program(tmp_path / "app")
    write_series(tmp_path / "read.csv", program)
    check = tmp_path / "check.sh"
    check.write_text('[ "$1" = canary-of-the-command ] || { echo "no key" >&2; exit 1; }\n'
                     '[ "$BENCH_TOKEN" = "canary\'s \\token" ] || { echo "got $BENCH_TOKEN" >&2; exit 1; }\n'
                     'tr "\\0" " " </proc/*/cmdline 2>/dev/null | grep -q "canary.s" && exit 1\nexec ./bench.sh\n')
    lines = [f'run: "sh {check} ${{KEY}}"', 'environment: {BENCH_TOKEN: "${TOKEN}"}', "timeout: 60s"]
    if line:
        lines.append(f"worker: [{json.dumps(line)}]")
    path = config(tmp_path, bisecting(tmp_path, program.path, lines))
    agent = begin(agents, path)
    row, = wait_over(agent)
    check_found(agent, program, row)
    whole = agent.get(f"/api/v1/bisections/{row['id']}")[1] + agent.get("/api/v1/configuration?test=db.read")[1]
    assert "canary" not in whole and f"sh {check} ${{KEY}}" in whole and "BENCH_TOKEN=***" in whole, whole
    assert agent.end() == 0


def test_from_the_series_to_the_thread(agents, tmp_path, slack, hunter):
    """The change is found, announced, bisected, and its message and thread say which commit it was; so do `why` and the metrics."""
    program = Program(tmp_path / "my app", broken={21, 24, 26})
    write_series(tmp_path / "read.csv", program)
    path = config(tmp_path, bisecting(tmp_path, program.path, [RUN, "workers: 2", "timeout: 60s"]), bot(slack))
    agent = begin(agents, path)
    row, = wait_over(agent)
    culprit = check_found(agent, program, row)
    assert (row["person"], row["lab"], row["test"], row["metric"]) == (None, "default", "db.read", "p99")
    slack.wait(lambda: any("bisected" in json.dumps(post) for post in slack.posts))
    thread = next(post for post in slack.posts if "bisected" in json.dumps(post))
    assert thread["thread_ts"] == slack.stamps[0] and culprit["commit"][:7] in json.dumps(thread), thread
    slack.wait(lambda: any("first bad" in json.dumps(body) for _, body in slack.edits))
    assert len([post for post in slack.posts if "bisected" in json.dumps(post)]) == 1
    whole = get(agent, f"/api/v1/bisections/{row['id']}")
    results = [line["result"] for line in whole["journal"] if "result" in line]
    assert len(results) == row["runs"] == sum(result["outcome"] != "lost" for result in results)
    assert len(whole["setup"]["candidates"]) == 10 and whole["setup"]["change"] == row["change"]
    assert program.trees() == 1, "the work trees are gone, that of the user is there"
    assert agent.metric("hunter_bisection_runs_total") == row["runs"]
    assert re.search(r'hunter_bisections_ended_total{end="found"} 1\n', agent.get("/metrics")[1])
    told = hunter("why", "db.read", "p99", (START + datetime.timedelta(hours=25)).isoformat(), "--config", path)
    assert f"bisected: {culprit['verdict']}" in told.out, told.out + told.err
    audit = [entry for entry in get(agent, "/api/v1/audit")["audit"] if entry["change"] == row["change"]]
    assert {"bisection asked", "bisection ended"} <= {entry["action"] for entry in audit}
    # Once is enough: after a restart nothing begins again.
    assert agent.end() == 0
    again = begin(agents, path)
    again.pass_by(2)
    assert len(bisections(again)) == 1
    assert again.end() == 0
    assert len([post for post in slack.posts if "bisected" in json.dumps(post)]) == 1


def test_killed_in_the_middle(agents, tmp_path):
    """kill -9 between runs: the next process goes on from the rows; runs in hand were lost and are made again."""
    program = Program(tmp_path / "app")
    write_series(tmp_path / "read.csv", program)
    path = config(tmp_path, bisecting(tmp_path, program.path, ["run: 'sleep 0.2; ./bench.sh'", "workers: 2"]))
    done = 0
    for _ in range(3):
        agent = begin(agents, path)
        wait_runs(agent, 1, done + 3)
        done = bisections(agent)[0]["runs"]
        agent.process.kill()
        agent.process.wait()
    agent = begin(agents, path)
    row, = wait_over(agent)
    check_found(agent, program, row)
    lines = get(agent, f"/api/v1/bisections/{row['id']}")["journal"]
    begun = [line["begin"]["id"] for line in lines if "begin" in line]
    ended = [line["result"]["id"] for line in lines if "result" in line]
    assert sorted(begun) == sorted(ended) and len(set(begun)) == len(begun), "each run once, and none without an end"
    assert any(line.get("result", {}).get("outcome") == "lost" for line in lines)
    assert sum("resumed" in line for line in lines) == 3
    assert agent.end() == 0


@pytest.mark.parametrize("how", ["triage", "api", "configuration"])
def test_cancelled(agents, tmp_path, how):
    """What is triaged away, ended by a person, or not to be bisected any more, ends; its processes are gone."""
    program = Program(tmp_path / "app")
    write_series(tmp_path / "read.csv", program)
    path = config(tmp_path, bisecting(tmp_path, program.path, [f"run: 'echo $$ > {tmp_path}/pid; exec sleep 600'"]))
    agent = begin(agents, path)
    agent.wait(lambda: (tmp_path / "pid").exists() and (tmp_path / "pid").read_text().strip())
    number = bisections(agent, state="running")[0]["change"]
    pid = int((tmp_path / "pid").read_text())
    if how == "triage":
        assert post(agent, f"/api/v1/changes/{number}/triage", state="expected", note="so it is")[0] == 200
    elif how == "api":
        code, _, text = post(agent, "/api/v1/bisections/1/cancel")
        assert code == 200, text
    else:
        path.write_text(re.sub(r"    bisect:\n(      .*\n)*", "", path.read_text()))
        agent.process.send_signal(signal.SIGHUP)
    row, = wait_over(agent)
    why = {"triage": "the change was triaged as expected", "api": "cancelled by", "configuration": "`bisect` was removed from the test"}
    assert row["end"] == "cancelled" and row["cancelled"].startswith(why[how]) and row["culprit"] is None, row
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)
    assert change_of(agent, number)["culprit"] is None
    assert post(agent, "/api/v1/bisections/1/cancel")[0] == 200, "it is over already"
    assert post(agent, "/api/v1/bisections/7/cancel")[0] == 404
    if how == "triage":
        assert post(agent, "/api/v1/bisections", change=number)[0] == 409
    assert agent.end() == 0


class Lab(http.server.BaseHTTPRequestHandler):
    """Takes runs and answers them later by the API, as the repository's program would."""

    def do_POST(self):
        run = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        server = self.server
        with server.lock:
            refuse = server.refuse > 0
            server.refuse -= refuse
            if not refuse:
                server.runs.append((run, dict(self.headers)))
        self.send_response(503 if refuse else 202)
        self.end_headers()
        if not refuse and not server.silent:
            threading.Thread(target=server.measure, args=(run,)).start()

    def log_message(self, *_):
        pass


@contextlib.contextmanager
def lab(program, token="lab-token"):
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Lab) as server:
        server.runs, server.lock, server.refuse, server.silent, server.agent = [], threading.Lock(), 2, False, None

        def measure(run):
            position = program.ids.index(run["commit"])
            value = (120 if position >= program.slow else 100) * (1 + 0.01 * noise(run["run"]))
            form = {"run": run["run"], "value": value} if run["position"] % 5 else {
                "run": run["run"], "outcome": "untestable"} if 0 < run["position"] < run["candidates"] else {"run": run["run"], "value": value}
            with contextlib.suppress(OSError):
                ask(server.agent.port, "POST", run["answer"].removeprefix("https://hunter.example/perf") + "?" + urllib.parse.urlencode(form))

        server.measure = measure
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield server
        server.shutdown()
        thread.join()


def test_a_lab_that_answers_later(agents, tmp_path):
    """Each run is a request, as the receiver `webhook` sends it, signed; its result comes by the API, also after a restart."""
    program = Program(tmp_path / "app")
    write_series(tmp_path / "read.csv", program)
    (tmp_path / "key").write_text("signing-key\n")
    with lab(program) as server:
        path = config(tmp_path, bisecting(tmp_path, program.path, [
            f"url: 'http://127.0.0.1:{server.server_port}/runs'", f"secret_file: {tmp_path}/key", "workers: 3", "lab: rack-7"]),
            agent="  external_url: https://hunter.example/perf/")
        server.silent = True
        agent = server.agent = begin(agents, path)
        agent.wait(lambda: len(server.runs) >= 2)
        asked = [run["run"] for run, _ in server.runs]
        agent.process.kill()
        agent.process.wait()
        server.silent = False
        agent = server.agent = begin(agents, path)
        row, = wait_over(agent)
        run, headers = server.runs[0]
        assert run["answer"] == "https://hunter.example/perf/api/v1/bisections/1/result"
        assert (run["bisection"], run["test"], run["lab"], run["kind"], run["version"]) == (1, "db.read", "rack-7", "bisection_run", 1)
        assert headers["Idempotency-Key"] == f"bisection-1-run-{run['run']}" and headers["X-Hunter-Signature"]
        later = [run["run"] for run, _ in server.runs[len(asked):]]
        assert set(asked[:2]) <= set(later), "a lab is asked again for the runs that were in hand"
        assert row["lab"] == "rack-7"
        check_found(agent, program, row)
        assert post(agent, "/api/v1/bisections/1/result", run=run["run"], value="1")[0] in (200, 409)
        assert post(agent, "/api/v1/bisections/1/result", run=99999, value="1")[0] == 409
        for wrong in ({"run": 1, "value": "nan"}, {"run": 1, "value": "1x"}, {"run": 1}, {"run": 1, "outcome": "measured"},
                      {"run": 1, "outcome": "failed", "value": "1"}, {"run": 0, "value": "1"}, {"run": 1, "outcome": "lost"}):
            assert post(agent, "/api/v1/bisections/1/result", **wrong)[0] == 400, wrong
        assert agent.end() == 0


def test_one_at_a_time_in_a_lab(agents, tmp_path):
    """Two tests of one lab wait for one another; one of another lab does not."""
    program = Program(tmp_path / "app", count=30, slow=13)
    tests = ""
    for name, where in (("a", "shared"), ("b", "shared"), ("c", "own")):
        write_series(tmp_path / f"{name}.csv", program)
        tests += bisecting(tmp_path, program.path, [
            f"run: 'while [ ! -e {tmp_path}/go ]; do sleep 0.1; done; ./bench.sh'", f"lab: {where}"], f"db.{name}", f"{name}.csv")
    agent = begin(agents, config(tmp_path, tests))
    agent.wait(lambda: len(bisections(agent)) == 3 and len(bisections(agent, state="running")) == 2)
    running = {row["lab"] for row in bisections(agent, state="running")}
    assert running == {"shared", "own"} and [row["lab"] for row in bisections(agent, state="waiting")] == ["shared"]
    (tmp_path / "go").touch()
    rows = wait_over(agent, 3)
    assert {row["end"] for row in rows} == {"found"}
    one, other = sorted((row for row in rows if row["lab"] == "shared"), key=lambda row: row["begun"])
    assert one["ended"] <= other["begun"]
    assert agent.end() == 0


def test_so_many_a_day(agents, tmp_path):
    """Of two regressions of a test one waits for another day; a person's asking changes nothing about that."""
    program = Program(tmp_path / "app")
    write_series(tmp_path / "read.csv", program)
    test = bisecting(tmp_path, program.path, [RUN, "max_per_day: 1"]).replace("metrics: {", "metrics: {p50: {direction: -1}, ")
    rows = list(csv.reader(open(tmp_path / "read.csv", newline="")))
    with open(tmp_path / "read.csv", "w", newline="") as out:
        csv.writer(out).writerows([[*row, "p50" if i == 0 else row[2]] for i, row in enumerate(rows)])
    agent = begin(agents, config(tmp_path, test))
    row, = wait_over(agent)
    check_found(agent, program, row)
    waiting, = bisections(agent, state="waiting")
    code, _, text = post(agent, "/api/v1/bisections", change=waiting["change"])
    assert code == 200 and json.loads(text)["id"] == waiting["id"], text
    agent.pass_by(2)
    assert [row["id"] for row in bisections(agent, state="waiting")] == [waiting["id"]]
    assert post(agent, "/api/v1/bisections", change=12345)[0] == 404
    assert post(agent, "/api/v1/bisections")[0] == 400
    with open_state(tmp_path) as state:  # a day passes
        state.execute("UPDATE bisections SET begun = begun - 90000000 WHERE state = 3")
    assert agent.end() == 0
    agent = begin(agents, agent_path := tmp_path / "hunter.yaml")
    rows = wait_over(agent, 2)
    assert {row["end"] for row in rows} == {"found"} and agent_path.exists()
    # What was searched can be searched again, if a person wants it.
    code, _, text = post(agent, "/api/v1/bisections", change=row["change"])
    assert code == 201 and json.loads(text)["person"] == "local", text
    assert agent.end() == 0


def test_mistakes_in_the_configuration(hunter, tmp_path):
    """What cannot work is said when the file is loaded, with the place, and secrets are in no message."""
    for bisect, words in (
            (["run: make", "extract: 'json:a['"], "extract: "), (["run: make", "extract: 'xml:a'"], "is neither last nor json:PATH"),
            (["url: 'ftp://lab'"], "url: it must begin with"), (["url: 'http://u:secret@lab/'"], "url: put user and password into"),
            (["url: 'http://lab/'", "run: make"], "run and url are mutually exclusive"), (["url: 'http://lab/'", "worker: [ssh a]"], "worker: is for"),
            (["url: 'http://lab/'", "extract: last"], "extract: is for"), (["url: 'http://lab/'", "headers: {'a b': x}"], "not a valid header name"),
            (["url: 'http://lab/'", "secret_file: none"], "secret_file: cannot read")):
        done = hunter("validate", "--config", config(tmp_path, bisecting(tmp_path, tmp_path, bisect)))
        assert re.search(rf"hunter\.yaml:\d+:\d+: (warning: )?test \"db.read\": bisect: .*{re.escape(words)}", done.out), (bisect, done.out + done.err)
        assert "secret@" not in done.out + done.err
    database = config(tmp_path, csv_test(tmp_path / "read.csv", extra="    repository: app\n    bisect: {run: make}\n"))
    database.write_text(re.sub(r"  state: .*", "  state: postgresql://db/hunter", database.read_text()))
    assert '"work", a folder, is missing: the state is a database' in hunter("validate", "--config", database).out


def test_nothing_to_search(agents, tmp_path):
    """A range of one commit, a clone that lacks the commits, and no step at the ends are told as such."""
    program = Program(tmp_path / "app")
    (tmp_path / "flat").mkdir()
    flat = Program(tmp_path / "flat" / "app", slow=39)
    tests = ""
    for name, repository, commits, run in (("one", program.path, (22, 23), RUN), ("gone", tmp_path, (0, 9), RUN), ("flat", flat.path, (5, 15), RUN)):
        source = flat if name == "flat" else program
        with open(tmp_path / f"{name}.csv", "w", newline="") as out:
            rows = csv.writer(out)
            rows.writerow(["time", "commit", "p99"])
            for i in range(50):
                rows.writerow([(START + datetime.timedelta(hours=i)).isoformat(), source.ids[commits[i >= 25]], f"{level(i, [(25, 1.2)]):.4f}"])
        tests += bisecting(tmp_path, repository, [run, f"lab: {name}"], f"db.{name}", f"{name}.csv")
    agent = begin(agents, config(tmp_path, tests))
    rows = {row["test"]: row for row in wait_over(agent, 3)}
    assert rows["db.one"]["end"] == "single" and "a single commit" in rows["db.one"]["verdict"]
    assert rows["db.gone"]["end"] == "impossible" and rows["db.gone"]["verdict"], rows["db.gone"]
    assert rows["db.flat"]["end"] == "not_reproduced", rows["db.flat"]
    assert change_of(agent, rows["db.flat"]["change"])["culprit"]["verdict"].startswith("not reproduced")
    assert agent.end() == 0


@pytest.fixture(scope="module")
def postgres():
    with servers.state_postgres() as server:
        yield server


def member(agents, tmp_path, postgres, database, name, tests):
    path = config(tmp_path, tests, agent=f"  name: {name}")
    own = tmp_path / f"{name}.yaml"
    own.write_text(re.sub(r"  state: .*", f"  state: \"{postgres.address(database)}\"", path.read_text()))
    return begin(agents, own)


def test_in_a_fleet(agents, tmp_path, postgres):
    """One agent has the bisection; when it is killed the other goes on from the rows. A lab has one at a time over both, and may
    answer to either."""
    database = postgres.create().rsplit("/", 1)[1]
    program = Program(tmp_path / "app", count=30, slow=13)
    names = [f"db.{i}" for i in range(6)]
    tests, going = "", tmp_path / "go"
    for name in names:
        write_series(tmp_path / f"{name}.csv", program)
        tests += bisecting(tmp_path, program.path, [f"run: 'while [ ! -e {going} ]; do sleep 0.1; done; ./bench.sh'"], name, f"{name}.csv")
    one = member(agents, tmp_path, postgres, database, "eu-1", tests)
    other = member(agents, tmp_path, postgres, database, "eu-2", tests)
    one.wait(lambda: len(bisections(one)) == len(names) and len(bisections(one, state="running")) == 1)
    row, = bisections(other, state="running")
    holder = next(agent for agent in (one, other) if any(f'msg="bisection started" id={row["id"]} ' in line for line in agent.log))
    left = other if holder is one else one
    left.wait(lambda: any("begin" in line for line in get(left, f"/api/v1/bisections/{row['id']}")["journal"]))
    holder.process.kill()
    holder.process.wait()
    left.wait_log(f'msg="bisection resumed" id={row["id"]} ')
    assert len(bisections(left, state="running")) == 1
    going.touch()
    rows = wait_over(left, 3)
    assert {row["end"] for row in rows} == {"found"}
    spans = sorted((row["begun"], row["ended"] or "9") for row in bisections(left) if row["begun"])
    assert all(before[1] <= after[0] for before, after in zip(spans, spans[1:])), "one at a time"
    lines = get(left, f"/api/v1/bisections/{row['id']}")["journal"]
    assert any(line.get("result", {}).get("outcome") == "lost" for line in lines)
    check_found(left, program, next(done for done in rows if done["id"] == row["id"]))
    assert left.end() == 0


def test_a_lab_answers_to_another_agent(agents, tmp_path, postgres):
    """Whichever agent of a fleet is told, the one that has the bisection goes on."""
    database = postgres.create().rsplit("/", 1)[1]
    program = Program(tmp_path / "app", count=20, slow=13)
    write_series(tmp_path / "read.csv", program, every=5)
    with lab(program) as server:
        tests = bisecting(tmp_path, program.path, [f"url: 'http://127.0.0.1:{server.server_port}/'", "workers: 4"])
        server.refuse, server.silent = 0, True
        one = member(agents, tmp_path, postgres, database, "eu-1", tests)
        one.wait(lambda: server.runs)
        server.agent = other = member(agents, tmp_path, postgres, database, "eu-2", tests)
        with server.lock:
            server.silent, before = False, list(server.runs)
        for run, _ in before:
            server.measure(run)
        row, = wait_over(other)
        check_found(other, program, row)
        assert one.end() == 0 and other.end() == 0
