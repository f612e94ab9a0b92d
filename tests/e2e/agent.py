"""An agent as a user runs it, the CSV files that it reads, and its configuration. The fixtures are in conftest.py."""
import contextlib
import csv
import datetime
import http.client
import json
import re
import signal
import subprocess
import threading
import urllib.error
import urllib.parse
import urllib.request

from state_address import state_of
from waiting import LONGEST, wait

CANARY = "xoxb-canary-7f3a9c"
START = datetime.datetime(2024, 3, 1, tzinfo=datetime.timezone.utc)
FORM = {"Content-Type": "application/x-www-form-urlencoded"}


def noise(i):
    """A fixed value in -1 .. 1 for each i."""
    return ((i * 1103515245 + 12345) * (i + 7) % 65521) / 32760.5 - 1


def level(i, steps, base=100.0):
    """The base, times the factor of each step passed."""
    for index, factor in steps:
        if i >= index:
            base *= factor
    return base * (1 + 0.01 * noise(i))


def write_csv(path, steps, points=60, name="p99"):
    with open(path, "w", newline="") as out:
        rows = csv.writer(out)
        rows.writerow(["time", "commit", name])
        for i in range(points):
            rows.writerow([(START + datetime.timedelta(hours=i)).isoformat(), f"c{i:04d}", f"{level(i, steps):.4f}"])


def config(tmp_path, tests, slack="", agent=""):
    """Writes hunter.yaml and returns its path."""
    path = tmp_path / "hunter.yaml"
    path.write_text(f"""
{slack}
agent:
  state: {state_of(tmp_path)}
  listen: 127.0.0.1:0
  max_age: never
  interval: 1s
  group_wait: 0s
{agent}
tests:
{tests}
""")
    return path


def csv_test(path, name="db.read", extra=""):
    return f"""
  {name}:
    type: csv
    file: {path}
    attributes: [commit]
    metrics: {{p99: {{direction: -1, unit: ms}}}}
{extra}
"""


def bot(slack, token=CANARY, channels="#perf"):
    return f'slack: {{bot_token: "{token}", channels: ["{channels}"], api_url: "{slack.api}"}}'


class Agent:
    """A running agent, what it logs, and what its metrics say."""

    def __init__(self, program, path, *arguments, cwd=None):
        self.process = subprocess.Popen([program, "run", "--config", path, *arguments], stdout=subprocess.PIPE,
                                        stderr=subprocess.PIPE, text=True, encoding="utf-8", cwd=cwd)
        self.out, self.log, self.changed = [], [], threading.Condition()
        self.readers = [threading.Thread(target=self.read, args=(self.process.stdout, self.out)),
                        threading.Thread(target=self.read, args=(self.process.stderr, self.log))]
        for reader in self.readers:
            reader.start()

    def read(self, stream, lines):
        for line in stream:
            with self.changed:
                lines.append(line)
                self.changed.notify_all()
        with self.changed:
            lines.append("")
            self.changed.notify_all()

    def wait_log(self, pattern):
        """The first line of the log in which the pattern is found."""
        found = []

        def look():
            found[:] = [line for line in self.log if re.search(pattern, line)]
            return found or "" in self.log

        with self.changed:
            assert self.changed.wait_for(look, LONGEST) and found, f"no {pattern!r} in:\n{''.join(self.log)}"
        return found[0]

    def begun(self):
        """What it says when it has started, once it works: in a database it takes the tests first, those of one that was killed 20 s later."""
        started = self.wait_log("msg=started")
        if "state=postgresql:" in started:
            self.wait_log("claimed shards")
        return started

    def address(self):
        return "http://127.0.0.1:" + re.search(r"port=(\d+)", self.begun())[1]

    def get(self, path):
        try:
            with urllib.request.urlopen(self.address() + path, timeout=LONGEST) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as error:
            return error.code, error.read().decode()

    def metric(self, name):
        """The sum of the metric over its labels."""
        return sum(float(v) for v in re.findall(rf"^{name}(?:{{[^}}]*}})? (\S+)$", self.get("/metrics")[1], re.M))

    def wait(self, condition):
        """Until condition() holds, which looks at something outside of the log."""
        return wait(condition, lambda: "".join(self.out + self.log))

    def wait_metric(self, name, least):
        wait(lambda: self.metric(name) >= least, lambda: f"{name} is {self.metric(name)}, not {least}:\n{''.join(self.log)}")

    def pass_by(self, passes=3):
        """Waits until so many more passes are over."""
        self.wait_metric("hunter_runs_total", self.metric("hunter_runs_total") + passes)

    def end(self, how=signal.SIGTERM):
        self.process.send_signal(how)
        code = self.process.wait(LONGEST)
        for reader in self.readers:
            reader.join()
        assert CANARY not in "".join(self.log + self.out)
        return code


def run_once(hunter, path):
    """A single run after an agent was killed: in a database it is refused until the lease of that is over."""
    def begun():
        done = hunter("run", "--once", "--config", path)
        return None if done.code == 4 and "in use by another agent" in done.err else done

    return wait(begun)


class Answer:
    def __init__(self, response, body):
        self.status, self.headers, self.body = response.status, response.headers, body

    @property
    def text(self):
        return self.body.decode()

    @property
    def json(self):
        def unique(pairs):
            assert len({k for k, _ in pairs}) == len(pairs), pairs
            return dict(pairs)

        def number(text):
            raise AssertionError(f"{text} is no JSON")

        assert self.headers["Content-Type"] == "application/json", self.text
        return json.loads(self.text, object_pairs_hook=unique, parse_constant=number)


def port_of(agent, listen="msg=started"):
    return int(re.search(r" port=(\d+)", agent.wait_log(listen))[1])


def ask(port, path, method="GET", body=None, headers=None, timeout=LONGEST, host="127.0.0.1"):
    connection = http.client.HTTPConnection(host, port, timeout=timeout)
    with contextlib.closing(connection):
        connection.request(method, path, body=body, headers=headers or {})
        response = connection.getresponse()
        return Answer(response, response.read())


def post(port, path, **form):
    answer = ask(port, path, "POST", body=urllib.parse.urlencode(form), headers=FORM)
    return answer.status, answer.json


def on_demand(path):
    """Tests then run at the start, and when they are asked for."""
    path.write_text(path.read_text().replace("interval: 1s", "interval: 1d"))
    return path
