#!/usr/bin/env python3
"""check.py [--write] ROOT BUILD: the names that configurations, scripts and dashboards rely on are those of tests/public_names.txt.

They are taken from the program: its tables (names.c), what it prints and answers in a run over made data, its state file, and
the words in its source that become keys of the configuration, of the log and of JSON. A name that is gone or means
another type fails the test: it is a promise. A new one fails it too, until `check.py --write` has added it to the list.
"""
import contextlib
import csv
import datetime
import http.server
import io
import json
import os
import pathlib
import re
import sqlite3
import subprocess
import sys
import tempfile
import threading
import urllib.request

sys.path.insert(0, str(pathlib.Path(__file__).parents[2] / "e2e"))
from waiting import LONGEST  # noqa: E402

FOLDERS = ("agent", "conf", "detectors", "notifiers", "sources")
START = datetime.datetime(2024, 3, 1, tzinfo=datetime.timezone.utc)
MORE = ("m0", "m1", "m2", "m3")


# The tables, and the words of the source.

def code(root, folders=FOLDERS):
    for folder in folders:
        for file in sorted((root / folder).rglob("*.[ch]")):
            yield re.sub(r"/\*.*?\*/", "", file.read_text(), flags=re.S)


def words_of_configuration(root):
    """Keys that are no rows of a table: those of sections, and of Hunter's and Otava's files."""
    for text in code(root, ("conf",)):
        for array in re.findall(r"const char \*const \w+\[\] = \{(.*?)\}", text, re.S):
            yield from re.findall(r'"([a-z_]+)"', array)
        yield from re.findall(r'yaml_get\(\w+, "([a-z_]+)"\)', text)


def variables(root):
    for text in code(root):
        yield from re.findall(r'(?:getenv|variable)\w*\([^;"]*"([A-Z_]+)"', text)
        yield from re.findall(r'"((?:HUNTER|OTAVA)_[A-Z_]+)"', text)


def log_keys(root):
    for text in code(root):
        yield from re.findall(r'LOG_(?:TEXT|INT|DOUBLE)\("(\w+)"', text)


def json_keys(root):
    for text in code(root, ("agent", "notifiers")):
        yield from re.findall(r'\\"(\w+)\\":', text)
        yield from re.findall(r'\b\w*put_\w+\(\s*(?:&?[\w.>-]+),\s*"(\w+)",', text)


# A run over made data.

def noise(i):
    return ((i * 1103515245 + 12345) * (i + 7) % 65521) / 32760.5 - 1


def write_csv(path, steps, points):
    with open(path, "w", newline="") as out:
        rows = csv.writer(out)
        rows.writerow(["time", "commit", "version", "runner", "p99", "load", *MORE])
        for i in range(points):
            level = 100.0
            for index, factor in steps:
                level *= factor if i >= index else 1
            rows.writerow([(START + datetime.timedelta(hours=i)).isoformat(), f"c{i:04d}", f"v{i // 10}", "r1",
                           f"{level * (1 + 0.01 * noise(i)):.4f}", f"{100 + noise(i + 1):.4f}",
                           *(f"{level * (1 + 0.01 * noise(i + 50 * j)):.4f}" for j in range(len(MORE)))])


def write_configuration(folder, webhook):
    tests = "".join(f"""
  db.t{i}:
    type: csv
    file: {folder}/{i}.csv
    attributes: [commit, version, runner]
    metrics: {{p99: {{direction: -1, unit: ms}}, load: {{direction: 1}}, {', '.join(f'{name}: {{}}' for name in MORE)}}}
    dashboard: "http://dash/%{{test}}"
    owner: "@perf"
    runbook: "http://runbook/"
    relative_to: db.t9/p99
""" for i in range(8))
    path = folder / "hunter.yaml"
    path.write_text(f"""
stdout: {{}}
webhook: {{url: "{webhook}"}}
agent: {{state: {folder}/state.db, listen: "127.0.0.1:0", max_age: never, group_wait: 0s, interval: 1d}}
tests: {tests}
  db.t9: {{type: csv, file: {folder}/9.csv, attributes: [commit], metrics: {{p99: {{}}}}}}
  db.gone: {{type: csv, file: {folder}/none.csv, metrics: {{p99: {{}}}}}}
test_groups:
  all: [{', '.join(f'db.t{i}' for i in range(8))}]
""")
    return path


class Receiver(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        self.server.bodies.append(self.rfile.read(int(self.headers["Content-Length"])))
        self.send_response(200)
        self.end_headers()

    def log_message(self, *_):
        pass


@contextlib.contextmanager
def receiver():
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Receiver) as server:
        server.bodies = []
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()


MAPS = {"attributes", "attributes_before"}


def shape(value, path=""):
    """The path of every field: changes[].commit_before. Keys of a map that users name are not fields."""
    if isinstance(value, list):
        for item in value:
            yield from shape(item, path + "[]")
    elif isinstance(value, dict):
        for key, item in value.items():
            inner = f"{path}.{key}" if path else key
            yield inner
            if key not in MAPS:
                yield from shape(item, inner)


def documents(text):
    """One JSON document, or one a line."""
    try:
        return [json.loads(text)]
    except json.JSONDecodeError:
        return [json.loads(line) for line in text.splitlines()]


class Run:
    def __init__(self, program, folder):
        self.program, self.folder, self.names = program, folder, set()

    def __call__(self, *arguments, stdin=""):
        clean = {k: v for k, v in os.environ.items() if k not in ("HUNTER_CONFIG", "OTAVA_CONFIG", "BRANCH")}
        return subprocess.run([self.program, *map(str, arguments)], input=stdin, capture_output=True, text=True,
                              cwd=self.folder, env=clean, timeout=LONGEST)

    def add(self, room, names):
        self.names.update(f"{room}: {name}" for name in names)

    def json(self, *arguments, stdin=""):
        done = self(*arguments, stdin=stdin)
        assert done.stdout, done.stderr
        self.add(f"JSON of {arguments[0]}", (n for each in documents(done.stdout) for n in shape(each)))

    def columns(self, command, header):
        self.add(command, header)


def watch(run, path):
    """The agent: its API, and what it writes."""
    clean = {k: v for k, v in os.environ.items() if k not in ("HUNTER_CONFIG", "OTAVA_CONFIG", "BRANCH")}
    agent = subprocess.Popen([run.program, "run", "--config", path], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
                             text=True, cwd=run.folder, env=clean)
    try:
        port = next(int(found[1]) for line in agent.stderr if (found := re.search(r"msg=started.* port=(\d+)", line)))
        for method, address in (("POST", "/api/v1/run?group=all&wait=true"), ("POST", "/api/v1/run?test=db.gone&wait=true"),
                                ("GET", "/api/v1/tests"),
                                ("GET", "/api/v1/changes"), ("GET", "/api/v1/series?test=db.t0"),
                                ("GET", "/api/v1/why?test=db.t0&metric=p99"), ("POST", "/-/reload"),
                                ("GET", "/api/v1/none")):
            request = urllib.request.Request(f"http://127.0.0.1:{port}{address}", method=method)
            try:
                with urllib.request.urlopen(request, timeout=LONGEST) as answer:
                    body = answer.read()
            except urllib.error.HTTPError as error:
                body = error.read()
            run.add(f"JSON of {'an error' if address.endswith('none') else address.split('?')[0]}", shape(json.loads(body)))
    finally:
        agent.terminate()
        agent.communicate()


def observe(program):
    with tempfile.TemporaryDirectory() as name, receiver() as hook:
        folder = pathlib.Path(name)
        for i in range(10):
            write_csv(folder / f"{i}.csv", [] if i == 9 else [(30, 1.2)], 60)
        path = write_configuration(folder, f"http://127.0.0.1:{hook.server_address[1]}/")
        run, config = Run(program, folder), ("--config", path)
        run("run", "--once", *config)
        for i in range(8):  # back to the old level
            write_csv(folder / f"{i}.csv", [(30, 1.2), (60, 1 / 1.2)], 120)
        run("run", "--once", *config)
        watch(run, path)
        for body in hook.bodies:
            run.add("JSON to a webhook", shape(json.loads(body)))
        assert hook.bodies, "nothing was posted"
        for command in (("changes",), ("analyze", "db.t0", "db.gone"), ("regressions", "db.t0", "--last", "40", "db.gone"),
                        ("regressions", "--since", "2024-03-02", "--until", "2024-03-03", "db.t0"),
                        ("cluster", "all", "--until", "2024-03-03", "--interesting", "1"), ("replay", "--from", "2024-03-01", "--to", "2024-03-06"), ("validate",), ("validate", "--power"), ("why", "db.t0", "p99")):
            run.json(command[0], *config, "--output", "json", *command[1:])
        lines = json.dumps({"id": "a", "series": [1 + (i > 20) + 0.01 * noise(i) for i in range(40)]}) + "\n{\n"
        run.json("detect", "--input", "jsonl", stdin=lines)
        labelled = json.dumps({"id": "a", "class": "x", "series": [1 + (i > 20) + 0.01 * noise(i) for i in range(40)],
                               "change_points": [21]}) + "\n"
        (folder / "truth.jsonl").write_text(labelled)
        run.json("evaluate", "--output", "json", "--truth", folder / "truth.jsonl")
        run("triage", *config, "1..4", "expected")
        run.json("evaluate", *config, "--output", "json", "--from-triage")
        for command in ("changes", "analyze"):
            header = run(command, *config, "--output", "csv").stdout.splitlines()[0]
            run.add(f"CSV column of {command}", next(csv.reader(io.StringIO(header))))
        for command in (("changes",), ("analyze", "db.t0")):
            lines = run(command[0], *config, *command[1:]).stdout.splitlines()
            ruler = next(i for i, line in enumerate(lines) if line.startswith("----"))
            run.add(f"column of {command[0]}", lines[ruler - 1].split())
        with contextlib.closing(sqlite3.connect(folder / "state.db")) as state:
            for table, in state.execute("SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite%'").fetchall():
                run.add(f"column of table {table}", (f"{row[1]} {row[2]}" for row in state.execute(f"PRAGMA table_info({table})")))
        return run.names


def collect(root, build):
    names = set(subprocess.run([build / "tests/public_names"], check=True, capture_output=True, text=True).stdout.splitlines())
    names |= {f"word of the configuration: {word}" for word in words_of_configuration(root)}
    names |= {f"variable: {name}" for name in variables(root)}
    names |= {f"log key: {key}" for key in log_keys(root)}
    seen = observe(build / "hunter-c")
    keys = {part for name in seen if name.startswith("JSON ") for part in re.split(r"[.\[\]]+", name.split(": ")[1])}
    return names | seen | {f"key in JSON elsewhere: {key}" for key in json_keys(root) if key not in keys}


def main():
    write = sys.argv[1] == "--write"
    root, build = map(pathlib.Path, sys.argv[-2:])
    file = root / "tests/public_names.txt"
    names, known = collect(root, build.resolve()), set(file.read_text().splitlines()) if file.exists() else set()
    gone, new = sorted(known - names), sorted(names - known)
    print("".join(f"gone or another type: {name}\n" for name in gone) + "".join(f"new: {name}\n" for name in new), end="")
    if gone:
        print("A public name is a promise: bring it back, or take it out of tests/public_names.txt with a reason in CHANGELOG.md.")
    if write:
        file.write_text("".join(f"{name}\n" for name in sorted(known | names)))
    elif new:
        print(f"Add them: {' '.join([sys.argv[0], '--write', *sys.argv[-2:]])}")
    print(f"{len(names)} public names, {len(gone)} gone, {len(new)} new")
    return bool(gone) or bool(new) and not write


sys.exit(main())
