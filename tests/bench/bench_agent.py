#!/usr/bin/env python3
"""Rows of tests/bench/run: what the agent takes with many tests, with people at its page, with many series, idle, and from a result to Slack.

    bench_agent.py BUILD_FOLDER [ROW...]      many, page, series, idle, slack, arrived

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
                sys.exit("the agent stopped")
            time.sleep(0.05)  # between two looks

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


def serve(build, sets, *more):
    return Program(port := free_port(), build / "tests/serve_series", str(port), str(sets), "2000", "24", *more)


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
        time.sleep(120)  # over which the load is measured
        after, took = agent.metrics(), time.monotonic() - begun
        runs = after["hunter_runs_total"] - runs
        row(f"10,000 tests a minute, {after['hunter_missed_runs_total']:.0f} of {runs:,.0f} runs missed, "
            f"lag p99 under {1000 * lag_below(after, 0.99):.0f} ms", f"{100 * (agent.cpu() - cpu) / took:.0f}% CPU",
            f"{runs / took:.0f} runs/s", f"{agent.memory():.0f} MB")


class Viewer(threading.Thread):
    """Somebody at the page: listens to what is new, and looks at another page every other second. A browser keeps the files."""

    def __init__(self, agent, number, until):
        super().__init__(daemon=True)
        self.agent, self.number, self.until, self.took, self.refused = agent, number, until, [], 0

    def look(self, path):
        begun = time.monotonic()
        request = urllib.request.Request(f"http://127.0.0.1:{self.agent.port}{path}", headers={"Accept-Encoding": "gzip"})
        try:
            urllib.request.urlopen(request, timeout=60).read()
        except urllib.error.HTTPError:
            self.refused += 1
        self.took.append(time.monotonic() - begun)

    def run(self):
        with socket.create_connection(("127.0.0.1", self.agent.port)) as listening:
            listening.sendall(b"GET /api/v1/events HTTP/1.1\r\nHost: localhost\r\nAccept: text/event-stream\r\n\r\n")
            while time.monotonic() < self.until:
                test = f"bench.{(self.number * 7919 + 131 * len(self.took)) % 10_000:05d}"
                for path in (f"/api/v1/plot?test={test}&width=1000", "/api/v1/changes?open=true", "/api/v1/tests?limit=100", "/api/v1/me"):
                    self.look(path)
                time.sleep(2)  # the pace of who looks


def page(build, folder):
    """20 people at the page beside 10,000 tests, each once a minute."""
    with running(server := serve(build, 1), agent := watch(build, folder, server, 10_000, "1m")):
        agent.wait_runs(10_000)
        begun, cpu, before = time.monotonic(), agent.cpu(), agent.metrics()
        viewers = [Viewer(agent, i, begun + 120) for i in range(20)]
        for viewer in viewers:
            viewer.start()
        for viewer in viewers:
            viewer.join()
        after, spent = agent.metrics(), time.monotonic() - begun
        took = sorted(t for viewer in viewers for t in viewer.took)
        missed = after["hunter_missed_runs_total"] - before["hunter_missed_runs_total"]
        row(f"the same with 20 people at its page, {missed:.0f} of {after['hunter_runs_total'] - before['hunter_runs_total']:,.0f} runs missed, "
            f"{len(took):,} answers, p99 {1000 * took[len(took) * 99 // 100]:.0f} ms, {sum(v.refused for v in viewers)} refused",
            f"{100 * (agent.cpu() - cpu) / spent:.0f}% CPU", f"{len(took) / spent:.0f} answers/s", f"{agent.memory('VmHWM'):.0f} MB")


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
        time.sleep(2)  # what the first runs leave to do
        before = agent.status("voluntary_ctxt_switches")
        time.sleep(20)  # over which it is measured
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


def write_result(path, points):
    """A level that rises by half at the 60th point."""
    path.write_text("time,m\n" + "".join(
        f"{1700000000 + 3600 * p},{(100 if p < 60 else 150) + p * 7 % 5}\n" for p in range(points)))


def tell(folder, port, server, tests):
    return f"""slack: {{bot_token: xoxb-1, channels: ["#perf"], api_url: "http://127.0.0.1:{server.server_port}"}}
agent: {{listen: "127.0.0.1:{port}", state: {folder}/state.db, interval: 6h, group_wait: 0s, max_age: never}}
tests:
""" + "".join(f"  t{i}: {{type: csv, file: {folder}/{i}.csv, time_column: time, metrics: [m], notify: [slack]}}\n" for i in range(tests))


def all_runs(agent):
    return sum(v for k, v in agent.metrics().items() if k.startswith("hunter_runs_total"))


def from_result_to_slack(agent, folder, count, ask):
    """Seconds from ask(test), after a result was added, to the POST that tells Slack, sorted."""
    took = []
    for i in range(count):
        write_result(folder / f"{i}.csv", 70)
        Slack.come.clear()
        begun = time.monotonic()
        ask(i)
        if not Slack.come.wait(10):
            sys.exit("nothing came")
        took.append(Slack.arrived - begun)
        time.sleep(1.2)  # a channel gets one message a second
    return sorted(took)


def slack(build, folder):
    """From POST /api/v1/run, after a result was added, to the POST that tells Slack."""
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Slack) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        port, count = free_port(), 20
        (folder / "hunter.yaml").write_text(tell(folder, port, server, count))
        for i in range(count):
            write_result(folder / f"{i}.csv", 60)
        with running(agent := Program(port, build / "hunter-c", "run", "--config", folder / "hunter.yaml")):
            while all_runs(agent) < count:
                time.sleep(0.05)  # between two looks
            took = from_result_to_slack(agent, folder, count, lambda i: agent.ask(f"/api/v1/run?test=t{i}&wait=false", b""))
        server.shutdown()
    row(f"POST /api/v1/run to the POST to Slack, the slowest of {count} {1000 * took[-1]:.0f} ms", f"{1000 * took[count // 2]:.0f} ms")


def arrived(build, folder):
    """100,000 tests: from telling the name of a result that was added to the POST that tells Slack; and ten megabytes of names."""
    tests, count = 100_000, 20
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Slack) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        port = free_port()
        with running(source := serve(build, 1)):
            (folder / "hunter.yaml").write_text(
                f'prometheus: {{url: "http://127.0.0.1:{source.port}"}}\nreceivers: {{others: {{stdout: }}}}\n' + tell(folder, port, server, count) +
                "".join(f"  bench.{i:06d}: {{type: prometheus, query: 'bench{{t=\"{i}\"}}', range: 200m, step: 1m, notify: [others]}}\n"
                        for i in range(tests - count)))
            for i in range(count):
                write_result(folder / f"{i}.csv", 60)
            with running(agent := Program(port, build / "hunter-c", "run", "--config", folder / "hunter.yaml")):
                agent.wait_runs(0)

                def ask(body):
                    begun = time.monotonic()
                    answer = json.loads(agent.ask("/api/v1/arrived", body.encode()))
                    return answer, time.monotonic() - begun

                agent.wait_runs(100)
                before = agent.memory()
                answer, first = ask("".join(f"file {folder}/{i}.csv\n" for i in range(count)))
                row(f"{tests:,} tests, the first POST /api/v1/arrived, which makes the index", f"{1000 * first:.0f} ms", "",
                    f"+{agent.memory() - before:.0f} MB")
                while agent.metrics().get('hunter_runs_total{source="csv"}', 0) < count:
                    time.sleep(0.05)  # between two looks
                took = from_result_to_slack(agent, folder, count, lambda i: ask(f"file {folder}/{i}.csv\n"))
                row(f"POST /api/v1/arrived to the POST to Slack, the slowest of {count} {1000 * took[-1]:.0f} ms",
                    f"{1000 * took[count // 2]:.0f} ms")
                names = [f'prometheus bench{{instance="host-{i}",t="x{i}"}}\n' for i in range(150_000)]
                names += [f"graphite servers.web{i:06d}.cpu.user\n" for i in range(50_000)]
                answer, spent = ask("".join(names))
                if answer["unread"] != len(names):
                    sys.exit(f"{answer}")
                row(f"{sum(map(len, names)) / 2 ** 20:.1f} MB of {len(names):,} names that no test reads", f"{1000 * spent:.0f} ms",
                    f"{len(names) / spent:,.0f} names/s", f"{agent.memory('VmHWM'):.0f} MB")
        server.shutdown()


def start(hunter, folder):
    """Seconds from the start of an agent to its word that it is ready, and the processor's."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as notices:
        notices.bind(str(folder / "notify"))
        notices.settimeout(60)
        begun = time.monotonic()
        agent = subprocess.Popen([hunter, "run", "--config", folder / "hunter.yaml"], stderr=subprocess.DEVNULL,
                                 env=os.environ | {"NOTIFY_SOCKET": str(folder / "notify")})
        try:
            while b"READY=1" not in notices.recv(4096):
                pass
            took = time.monotonic() - begun
            words = pathlib.Path(f"/proc/{agent.pid}/stat").read_text().rsplit(")", 1)[1].split()
            return took, (int(words[11]) + int(words[12])) / os.sysconf("SC_CLK_TCK")
        finally:
            agent.terminate()
            agent.wait()
            (folder / "notify").unlink()


ROWS = {"many": many, "page": page, "series": series, "idle": idle, "slack": slack, "arrived": arrived}

if __name__ == "__main__":
    for name in sys.argv[2:] or ROWS:
        with tempfile.TemporaryDirectory() as place:
            ROWS[name](pathlib.Path(sys.argv[1]).resolve(), pathlib.Path(place))
