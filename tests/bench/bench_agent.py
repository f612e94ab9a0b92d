#!/usr/bin/env python3
"""Rows of tests/bench/run: what the agent takes with many tests, with many series, idle, and from a result to Slack.

    bench_agent.py BUILD_FOLDER [ROW...]      many, series, idle, slack

serve_series plays the Prometheus, on the same machine: its processor time is said beside the agent's.
"""
import contextlib
import http.server
import json
import os
import pathlib
import re
import socket
import subprocess
import sys
import tempfile
import threading
import time
import urllib.error
import urllib.request

TICKS = os.sysconf("SC_CLK_TCK")


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Program:
    """A process with a port of its own."""

    def __init__(self, port, *command):
        self.port = port
        self.begun = time.monotonic()
        self.process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def ask(self, path, data=None):
        return urllib.request.urlopen(f"http://127.0.0.1:{self.port}{path}", data, timeout=600).read().decode()

    def metrics(self):
        """The values by name and labels; none as long as nobody listens."""
        with contextlib.suppress(OSError):
            return {k: float(v) for k, v in re.findall(r"^(hunter_\S+?)(?:\{source=\"prometheus\"\})? (\S+)$",
                                                       self.ask("/metrics"), re.M)}
        return {}

    def wait_runs(self, count):
        while self.metrics().get("hunter_runs_total", 0) < count:
            if self.process.poll() is not None:
                sys.exit("the agent ended")
            time.sleep(0.05)

    def status(self, name):
        return sum(int(n) for path in pathlib.Path(f"/proc/{self.process.pid}/task").glob("*/status")
                   for n in re.findall(rf"^{name}:\s+(\d+)", path.read_text(), re.M))

    def memory(self, name="VmRSS"):
        text = pathlib.Path(f"/proc/{self.process.pid}/status").read_text()
        return int(re.search(rf"^{name}:\s+(\d+)", text, re.M).group(1)) / 1024

    def cpu(self):
        words = pathlib.Path(f"/proc/{self.process.pid}/stat").read_text().rsplit(")", 1)[1].split()
        return (int(words[11]) + int(words[12])) / TICKS


@contextlib.contextmanager
def running(*programs):
    try:
        yield programs
    finally:
        for program in programs:
            program.process.terminate()
        for program in programs:
            program.process.wait()


def row(work, took, rate="", memory=""):
    print("agent", work, took, rate, memory, sep="\t", flush=True)


def serve(build, sets):
    return Program(port := free_port(), build / "tests/serve_series", str(port), str(sets), "2000", "24")


def watch(build, folder, server, count, interval):
    port = free_port()
    with open(folder / "hunter.yaml", "w") as f:
        f.write(f"""prometheus: {{url: "http://127.0.0.1:{server.port}"}}
agent: {{listen: "127.0.0.1:{port}", state: {folder}/state.db, interval: {interval}, group_wait: 1h}}
tests:
""")
        for i in range(count):
            f.write(f"  bench.{i:05d}: {{type: prometheus, query: 'bench{{t=\"{i}\"}}', range: 200m, step: 1m}}\n")
        f.write("test_groups: {all: [" + ", ".join(f"bench.{i:05d}" for i in range(count)) + "]}\n")
    return Program(port, build / "hunter-c", "run", "--config", folder / "hunter.yaml")


def lag_below(metrics, share):
    """The bound of the histogram that so many of the runs' lags stay below, seconds."""
    most = share * metrics["hunter_schedule_lag_seconds_count"]
    bounds = [(float(k.split('"')[1]), v) for k, v in metrics.items() if k.startswith("hunter_schedule_lag_seconds_bucket")]
    return min(bound for bound, count in bounds if count >= most)


def many(build, folder):
    """10,000 tests of one series, each once a minute."""
    with running(server := serve(build, 1), agent := watch(build, folder, server, 10_000, "1m")):
        agent.wait_runs(10_000)
        begun, cpu, runs = time.monotonic(), agent.cpu(), agent.metrics()["hunter_runs_total"]
        time.sleep(120)
        after, took = agent.metrics(), time.monotonic() - begun
        runs = after["hunter_runs_total"] - runs
        row(f"10,000 tests a minute, {after['hunter_missed_runs_total']:.0f} of {runs:,.0f} runs missed, "
            f"lag p99 under {1000 * lag_below(after, 0.99):.0f} ms", f"{100 * (agent.cpu() - cpu) / took:.0f}% CPU",
            f"{runs / took:.0f} runs/s", f"{agent.memory():.0f} MB")


def series(build, folder):
    """100,000 series of 200 points in 1,000 tests: all anew, with one more point each, as they were."""
    with running(server := serve(build, 100), agent := watch(build, folder, server, 1_000, "6h")):
        agent.wait_runs(1_000)
        took, cpu = time.monotonic() - agent.begun, agent.cpu()
        row(f"100,000 series in 1,000 tests, first pass, CPU {cpu:.1f} s + {server.cpu():.1f} s the server's", f"{took:.1f} s",
            f"{100_000 / took:,.0f} series/s", f"{agent.memory():.0f} MB")
        for name in ("one more point each", "as they were"):
            if name == "one more point each":
                time.sleep(60 - time.time() % 60)  # no minute ends meanwhile, if the pass takes less than one
                server.ask("/advance?1")
            begun, cpu, served = time.monotonic(), agent.cpu(), server.cpu()
            answer = json.loads(agent.ask("/api/v1/run?test=all", b""))
            took = time.monotonic() - begun
            if answer["failed"] or answer["count"] != 1_000:
                sys.exit(f"{answer['failed']} tests failed")
            row(f"the same, {name}, CPU {agent.cpu() - cpu:.1f} s + {server.cpu() - served:.1f} s", f"{took:.1f} s",
                f"{100_000 / took:,.0f} series/s", f"{agent.memory():.0f} MB")


def idle(build, folder):
    with running(server := serve(build, 1), agent := watch(build, folder, server, 10, "6h")):
        agent.wait_runs(10)
        time.sleep(2)
        before = agent.status("voluntary_ctxt_switches")
        time.sleep(20)
        row(f"idle with 10 tests, {agent.memory('RssAnon'):.1f} MB of it anonymous",
            f"{agent.status('voluntary_ctxt_switches') - before} wake-ups in 20 s", "", f"{agent.memory():.1f} MB")


class Slack(http.server.BaseHTTPRequestHandler):
    arrived = None
    come = threading.Event()

    def do_POST(self):
        if "postMessage" in self.path:
            Slack.arrived = time.monotonic()
            Slack.come.set()
        self.rfile.read(int(self.headers["Content-Length"]))
        data = b'{"ok": true, "ts": "1.0", "channel": "C1"}'
        self.send_response(200)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_):
        pass


def slack(build, folder):
    """From POST /api/v1/run, after a result was added, to the POST that tells Slack."""
    took = []
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Slack) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        port, count = free_port(), 20
        (folder / "hunter.yaml").write_text(f"""slack: {{bot_token: xoxb-1, channels: ["#perf"], api_url: "http://127.0.0.1:{server.server_port}"}}
agent: {{listen: "127.0.0.1:{port}", state: {folder}/state.db, interval: 6h, group_wait: 0s, max_age: never}}
tests:
""" + "".join(f"  t{i}: {{type: csv, file: {folder}/{i}.csv, time_column: time, metrics: [m]}}\n" for i in range(count)))

        def write(test, points):
            (folder / f"{test}.csv").write_text("time,m\n" + "".join(
                f"{1700000000 + 3600 * p},{(100 if p < 60 else 150) + p * 7 % 5}\n" for p in range(points)))

        for i in range(count):
            write(i, 60)
        with running(agent := Program(port, build / "hunter-c", "run", "--config", folder / "hunter.yaml")):
            agent.wait_runs(0)
            while sum(v for k, v in agent.metrics().items() if k.startswith("hunter_runs_total")) < count:
                time.sleep(0.05)
            for i in range(count):
                write(i, 70)
                Slack.come.clear()
                begun = time.monotonic()
                agent.ask(f"/api/v1/run?test=t{i}&wait=false", b"")
                if not Slack.come.wait(10):
                    sys.exit("nothing came")
                took.append(Slack.arrived - begun)
                time.sleep(1.2)  # a channel gets one message a second
        server.shutdown()
    took.sort()
    row(f"POST /api/v1/run to the POST to Slack, the slowest of {count} {1000 * took[-1]:.0f} ms", f"{1000 * took[count // 2]:.0f} ms")


ROWS = {"many": many, "series": series, "idle": idle, "slack": slack}

for name in sys.argv[2:] or ROWS:
    with tempfile.TemporaryDirectory() as place:
        ROWS[name](pathlib.Path(sys.argv[1]).resolve(), pathlib.Path(place))
