"""`hunter-c replay`: the agent's whole way over past data, with a clock of its own."""
import datetime
import glob
import http.server
import json
import os
import pathlib
import random
import re
import signal
import subprocess
import sys
import textwrap
import threading
import urllib.parse

import faulty
import pytest
from agent import START, config, csv_test, level
from test_faults import KINDS, LAUNCHER
from test_prometheus import LATENCY, server  # noqa: F401 (server is a fixture)
from waiting import LONGEST, pause, wait

DAY = datetime.timedelta(days=1)
START_OF_COUNTS = datetime.datetime(2026, 1, 1, tzinfo=datetime.timezone.utc)
FROM, TO = START + 40 * DAY, START + 200 * DAY


def write_daily(path, steps, points=200):
    with open(path, "w") as out:
        out.write("time,commit,p99\n")
        for i in range(points):
            out.write(f"{(START + i * DAY).isoformat()},c{i:04d},{level(i, steps):.4f}\n")


@pytest.fixture(autouse=True)
def temporary(tmp_path, monkeypatch):
    """Folders of other replays that run meanwhile are elsewhere."""
    monkeypatch.setenv("TMPDIR", str(tmp_path))


def folders():
    return set(glob.glob(os.environ["TMPDIR"] + "/hunter-replay-*"))


def replay(hunter, path, *arguments, since=FROM, until=TO):
    return hunter("replay", "--config", path, "--from", since.isoformat(), "--to", until.isoformat(), *arguments)


def told(out):
    """The times at which messages were told."""
    return [datetime.datetime.strptime(t, "[%Y-%m-%d %H:%M:%S %z]") for t in re.findall(r"^\[.*\]$", out, re.M)]


def test_what_would_have_been_told(hunter, tmp_path):
    write_daily(tmp_path / "read.csv", [(30, 1.5), (60, 0.8), (120, 1.2)])
    # Nobody is asked for the token, as nobody but the terminal is told.
    path = config(tmp_path, csv_test(tmp_path / "read.csv"), 'slack: {bot_token: "${NOT_SET_ANYWHERE}", channels: ["#x"]}',
                  "  evaluation_delay: 0")
    before = folders()
    done = replay(hunter, path, "--interval", "1h")
    assert done.code == 0, done.err
    assert done.err == ""
    assert re.findall(r"p99: (\S+) \[[-0-9., ]+\]  ", done.out) == ["-20%", "+20%"]  # what was known at the beginning is not told
    for time_told, index in zip(told(done.out), (60, 120), strict=True):
        assert DAY / 2 < time_told - (START + index * DAY) < 5 * DAY, time_told
    assert done.out.endswith("2 messages announced 2 changes, 0 of them withdrawn later; 0 notices\n"
                             "  db.read: 2 announced, 0 withdrawn later\n"), done.out
    assert not (tmp_path / "state.db").exists()
    assert folders() <= before
    assert replay(hunter, path, "--interval", "1h").out == done.out

    found = json.loads(replay(hunter, path, "--interval", "1h", "--output", "json").out)
    changes = [change for change in found["changes"] if change["told"]]
    assert [change["commit_after"] for change in changes] == ["c0060", "c0120"]
    assert [datetime.datetime.fromisoformat(change["told"]).replace(microsecond=0) for change in changes] == told(done.out)
    assert [change["commit_after"] for change in found["changes"] if not change["told"]] == ["c0030"]
    assert found["by_test"] == [{"test": "db.read", "told": 2, "withdrawn": 0, "recovered": 0}]
    assert (found["messages"], found["tests"], found["notices"]) == (2, 1, [])


def test_a_delay_is_kept(hunter, tmp_path):
    write_daily(tmp_path / "read.csv", [(60, 1.5)])
    soon = replay(hunter, config(tmp_path, csv_test(tmp_path / "read.csv")), "--interval", "1m")
    late = replay(hunter, config(tmp_path, csv_test(tmp_path / "read.csv", extra="    evaluation_delay: 50h\n")), "--interval", "1m")
    (first,), (second,) = told(soon.out), told(late.out)
    assert datetime.timedelta(0) <= second - first - datetime.timedelta(hours=50) <= datetime.timedelta(minutes=1)


def test_rare_events_that_double(hunter, tmp_path):
    """One a day becomes two, in 75 days beyond chance: found when max_age (14 days) is long past, and news."""
    file = pathlib.Path(__file__).parents[1] / "cases/series/poisson.csv"
    path = config(tmp_path, f"""
  a: {{type: csv, file: {file}, metrics: {{v: {{direction: -1}}}}}}""")
    path.write_text(path.read_text().replace("max_age: never", "max_age: 14d"))
    done = replay(hunter, path, "--interval", "1d", since=START_OF_COUNTS + 20 * DAY, until=START_OF_COUNTS + 215 * DAY)
    assert done.code == 0, done.err
    [at] = told(done.out)
    assert 40 * DAY < at - (START_OF_COUNTS + 106 * DAY) < 90 * DAY and "  regression\n" in done.out, done.out


def test_data_that_stop_and_come_again(hunter, tmp_path):
    with open(tmp_path / "read.csv", "w") as out:
        out.write("time,commit,p99\n")
        for i in [*range(60), *range(80, 100)]:
            out.write(f"{(START + i * DAY).isoformat()},c{i},{level(i, []):.4f}\n")
    done = replay(hunter, config(tmp_path, csv_test(tmp_path / "read.csv", extra="    stale_after: 3d\n")), "--interval", "1h",
                  until=START + 100 * DAY)
    assert done.code == 0, done.err
    stopped, again = told(done.out)
    assert datetime.timedelta(0) <= stopped - (START + 62 * DAY) <= datetime.timedelta(hours=2)
    assert datetime.timedelta(0) <= again - (START + 80 * DAY) <= datetime.timedelta(hours=2)
    assert "has had no new data for more than 3d" in done.out and "has new data again" in done.out


def test_what_cannot_be_read_is_said(hunter, tmp_path):
    write_daily(tmp_path / "read.csv", [(60, 1.5)])
    path = config(tmp_path, csv_test(tmp_path / "read.csv") + csv_test(tmp_path / "gone.csv", "gone"))
    done = replay(hunter, path)
    assert done.code == 3 and 'gone.csv: no such file' in done.err
    assert "p99: +" in done.out and ": 1 test, " in done.out


@pytest.mark.parametrize("arguments, problem", [
    ([], "--from is required"), (["--from", "tomorrow-ish"], "--from: "), (["--from", "2024-03-01", "--to", "2024-02-01"], "must be before"),
    (["--from", "2024-03-01", "nobody"], "nobody"), (["--from", "2024-03-01", "--interval", "1ms"], "interval")])
def test_wrong_flags(hunter, tmp_path, arguments, problem):
    write_daily(tmp_path / "read.csv", [])
    done = hunter("replay", "--config", config(tmp_path, csv_test(tmp_path / "read.csv")), *arguments)
    assert done.code == 2 and problem in done.err, done.err


def test_a_server_is_asked_once(hunter, tmp_path):
    kind = KINDS["prometheus"]
    with faulty.Server(kind) as fake:
        path = config(tmp_path, "  a: {type: prometheus, query: good, range: 30d}\n", f"prometheus: {{url: '{fake.url}'}}")
        done = replay(hunter, path, since=START - 10 * DAY, until=START + 10 * DAY)
        assert done.code == 0, done.err
        assert len(fake.requests) <= 2  # a series and what is known of it
    assert re.search(r"1 test, \d+ runs", done.out)


def test_series_of_their_own(hunter, tmp_path):
    """Label sets that begin at different times, one of which moves up and one down."""
    def values(first, steps):
        return [[int((START + i * DAY).timestamp()), f"{level(i, steps):.4f}"] for i in range(first, 200)]

    class Kind(KINDS["prometheus"]):
        @staticmethod
        def good(_):
            return json.dumps({"status": "success", "data": {"resultType": "matrix", "result": [
                {"metric": {"__name__": "m", "host": "a"}, "values": values(0, [(60, 1.3)])},
                {"metric": {"__name__": "m", "host": "b"}, "values": values(90, [(150, 0.7)])}]}}).encode()

    with faulty.Server(Kind) as fake:
        path = config(tmp_path, "  a: {type: prometheus, query: m, range: 300d, interval: 1h}\n", f"prometheus: {{url: '{fake.url}'}}")
        done = replay(hunter, path, "--output", "json")
    assert done.code == 0, done.err
    changes = json.loads(done.out)["changes"]
    assert [(change["metric"].split("host=")[-1][:3], change["mean_after"] > change["mean_before"]) for change in changes] == [
        ('"a"', True), ('"b"', False)], changes
    for change, index in zip(changes, (60, 150)):
        assert datetime.timedelta(0) < datetime.datetime.fromisoformat(change["told"]) - (START + index * DAY) < 6 * DAY


@pytest.mark.parametrize("extra", ["", "    step: 1m\n"])
def test_on_a_real_prometheus(hunter, tmp_path, server, extra):  # noqa: F811
    """latency_seconds gets worse by a tenth in eu at 01:10, a point a minute; us stays."""
    tests = LATENCY + extra + "    range: 3h\n    interval: 1m\n"
    path = config(tmp_path, tests, f"prometheus: {{url: '{server.url}'}}")
    start = datetime.datetime(2024, 3, 1, tzinfo=datetime.timezone.utc)
    done = replay(hunter, path, "--output", "json", since=start + datetime.timedelta(minutes=30), until=start + datetime.timedelta(hours=2))
    assert done.code == 0, done.err
    found = json.loads(done.out)
    (change,) = [change for change in found["changes"] if change["told"] and not change["withdrawn"]]
    assert change["metric"] == 'latency{region="eu"}' and change["time"] == "2024-03-01T01:10:00Z"
    assert "2024-03-01T01:11" <= change["told"] < "2024-03-01T01:20", change
    assert 85 <= found["runs"] <= 92


def test_an_interrupted_replay_leaves_nothing(program, tmp_path):
    tests = ""
    for i in range(300):
        write_daily(tmp_path / f"{i}.csv", [(60 + i % 50, 1.5)])
        tests += csv_test(tmp_path / f"{i}.csv", f"t{i}")
    before = folders()
    process = subprocess.Popen([program, "replay", "--config", config(tmp_path, tests), "--from", FROM.isoformat(), "--to", TO.isoformat()],
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    wait(lambda: folders() - before or process.poll() is not None)
    assert process.poll() is None, process.communicate()
    for _ in range(3):
        process.send_signal(signal.SIGINT)
        pause(0.02, "somebody who is impatient")
    out, err = process.communicate(timeout=LONGEST)
    if process.returncode != -signal.SIGINT:  # the second signal ends it at once, whatever it was about to print
        assert process.returncode == 3 and "interrupted, replayed " in out, (out, err)
    assert folders() <= before


def write_many(path, metrics, hours):
    """Each metric changes its level every 20 hours, and not just to and fro between two."""
    noise = [i * 7919 % 11 for i in range(97)]
    with open(path, "w") as out:
        out.write("time," + ",".join(f"m{m}" for m in range(metrics)) + "\n")
        for i in range(hours):
            row = ",".join(str(100 + 60 * (i // 20 * 5 % 7) + noise[(i * 31 + m) % 97]) for m in range(metrics))
            out.write(f"{(START + i * datetime.timedelta(hours=1)).isoformat()},{row}\n")


def test_memory_is_in_proportion_to_the_changes(program, tmp_path):
    metrics, hours = 2000, 600
    write_many(tmp_path / "many.csv", metrics, hours)
    path = config(tmp_path, f"\n  many: {{type: csv, file: {tmp_path}/many.csv, metrics: [{', '.join(f'm{m}' for m in range(metrics))}]}}\n")
    done = subprocess.run([sys.executable, "-c", LAUNCHER, tmp_path / "memory", program, "replay", "--config", path, "--output", "json",
                           "--from", (START - DAY).isoformat(), "--to", (START + 31 * DAY).isoformat(), "--interval", "30d"],
                          timeout=LONGEST, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    changes = len(json.loads(done.stdout)["changes"])
    assert changes > 10 * metrics
    with open(program, "rb") as file:
        if not re.search(rb"__(asan|tsan)_init", file.read()):
            assert int((tmp_path / "memory").read_text()) < (30 << 10) + 2.6 * changes  # KiB


def test_the_example_of_the_manual(program):
    """docs/operate/replay.md shows what its command prints."""
    top = pathlib.Path(__file__).parents[2]
    command, shown = re.search(r"^    \$ hunter-c (replay .*)\n((?:(?:    .*)?\n)+?)(?=\S)", (top / "docs/operate/replay.md").read_text(), re.M).groups()
    done = subprocess.run([program, *command.split()], cwd=top, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert textwrap.dedent(shown).strip() == done.stdout.strip()


def wild(seed, points):
    """Noise with steps, excursions and a slope, at random."""
    rng, base, out = random.Random(seed), 100.0, []
    steps = {rng.randrange(20, points - 5): rng.choice((0.75, 0.9, 1.08, 1.2, 1.5)) for _ in range(points // 45)}
    spikes = {rng.randrange(20, points - 30): rng.choice((2, 4, 8, 15)) for _ in range(points // 90)}
    left = 0
    for i in range(points):
        base *= steps.get(i, 1) * (1.002 if seed % 3 == 0 and 100 < i < 140 else 1)
        left = spikes.get(i, max(0, left - 1))
        out.append(base * (1.3 if left else 1) * (1 + rng.gauss(0, 0.02)))
    return out


class Ranges(http.server.BaseHTTPRequestHandler):
    """Answers `name[range]` at a time with the points of the range, as Prometheus does."""
    series, protocol_version = {}, "HTTP/1.1"

    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"] or 0)).decode()
        asked = dict(urllib.parse.parse_qsl(body or urllib.parse.urlsplit(self.path).query))
        if "query" not in asked:
            self.send_error(404)
            return
        name, length, unit = re.fullmatch(r"(\w+)\[(\d+)(ms|s|m|h|d)\]", asked["query"]).groups()
        until = float(asked["time"])
        since = until - int(length) * {"ms": 0.001, "s": 1, "m": 60, "h": 3600, "d": 86400}[unit]
        values = [[t, f"{v:.6f}"] for t, v in self.series[name] if since < t <= until]
        result = [{"metric": {"__name__": name}, "values": values}] if values else []
        text = json.dumps({"status": "success", "data": {"resultType": "matrix", "result": result}}).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    do_GET = do_POST

    def log_message(self, *_):
        pass


@pytest.mark.parametrize("kind", ["csv", "prometheus"])
def test_why_explains_what_the_replay_told(hunter, tmp_path, kind):
    """With its state: all that was told, as told, and nothing else; of a range that slides, too, which has left most behind in the end."""
    points, names = 320, [f"wild{seed}" for seed in range(6)]
    data = {name: wild(seed, points) for seed, name in enumerate(names)}
    tests, server = "", None  # noqa: F811
    if kind == "csv":
        for name in names:
            rows = "".join(f"{(START + i * DAY).isoformat()},{value:.6f}\n" for i, value in enumerate(data[name]))
            (tmp_path / f"{name}.csv").write_text("time,p99\n" + rows)
            tests += f"  {name}: {{type: csv, file: {tmp_path}/{name}.csv, metrics: {{p99: {{direction: -1}}}}}}\n"
        path = config(tmp_path, tests)
    else:
        Ranges.series = {name: [((START + i * DAY).timestamp(), value) for i, value in enumerate(data[name])] for name in names}
        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Ranges)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        tests = "".join(f"  {name}: {{type: prometheus, query: {name}, range: 60d, interval: 1d, stale_after: never, metrics: {{{name}: {{direction: 0}}}}}}\n"
                        for name in names)
        path = config(tmp_path, tests, f"prometheus: {{url: 'http://127.0.0.1:{server.server_port}'}}").absolute()
    try:
        done = replay(hunter, path, "--output", "json", "--state", tmp_path / "kept.db", since=START + 70 * DAY, until=START + 300 * DAY)
        assert done.code == 0, done
        changes = json.loads(done.out)["changes"]
        listed = json.loads(hunter("changes", "--state-file", tmp_path / "kept.db", "--output", "json").out)["changes"]
        assert len(changes) == len(listed)

        def why(test, time):
            answer = hunter("why", test, "p99" if kind == "csv" else test, time, "--state", tmp_path / "kept.db", "--output", "json", "--config", path)
            assert answer.code == 0, answer
            return json.loads(answer.out)

        wrong = []
        for change in changes:
            found = why(change["test"], change["time"])
            if (found["verdict"] == "told") != (change["told"] is not None) or found["record"] is None or found["arrival"]:
                wrong.append((change["test"], change["time"], change["told"], found["verdict"]))
        for test in names:
            known = [datetime.datetime.fromisoformat(change["time"]) for change in changes if change["test"] == test]
            for day in range(75, 295, 20):
                time = (START + day * DAY).replace(tzinfo=datetime.timezone.utc)
                if all(abs(time - one) > 12 * DAY for one in known) and (found := why(test, time.isoformat()))["verdict"] == "told":
                    wrong.append((test, day, found["record"]))
        assert wrong == []
        assert sum(change["told"] is not None for change in changes) >= 10 and any(change["told"] is None for change in changes)
        # Windows begin where the first run's did, although the range has slid on.
        fronts = {why(test, (START + 290 * DAY).isoformat())["front"] for test in names}
        begin = START if kind == "csv" else START + 10 * DAY
        assert all(datetime.timedelta(0) <= datetime.datetime.fromisoformat(front).replace(tzinfo=None) - begin.replace(tzinfo=None) <= DAY for front in fronts), fronts
    finally:
        if server:
            server.shutdown()
            server.server_close()
