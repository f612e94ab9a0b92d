"""Real servers for the tests: started on a free port of the loopback with history of our own, stopped by their process.

    with servers.prometheus(tmp_path, openmetrics(...)) as server:
        server.url      # http://127.0.0.1:PORT
"""
import contextlib
import shutil
import socket
import subprocess
import time
import urllib.error
import urllib.request

import pytest


def free_port():
    """A port nobody listens on; somebody may take it before it is used, so whoever starts a server tries again."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def openmetrics(families):
    """The text that promtool imports. `families` maps a metric's name to rows (labels as a dict, value, time in s)."""
    lines = []
    for name, rows in families.items():
        lines.append(f"# TYPE {name} gauge")
        for labels, value, stamp in rows:
            inside = ",".join('%s="%s"' % (k, str(v).replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n"))
                              for k, v in labels.items())
            lines.append(f"{name}{{{inside}}} {value} {stamp}")
    return "\n".join(lines) + "\n# EOF\n"


class Server:
    def __init__(self, process, port, folder, scheme="http"):
        self.process, self.port, self.folder = process, port, folder
        self.url = f"{scheme}://127.0.0.1:{port}"

    def stop(self):
        self.process.terminate()
        try:
            self.process.wait(20)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait(20)


def _answers(url):
    """Whether the server speaks: any status but the one it gives while it starts."""
    try:
        with urllib.request.urlopen(url, timeout=2):
            return True
    except urllib.error.HTTPError as error:
        return error.code != 503
    except OSError:
        return False


def _start_prometheus(folder, arguments):
    """A running server, or None if its port was taken meanwhile."""
    port = free_port()
    with open(folder / "prometheus.log", "w") as log:
        process = subprocess.Popen(
            ["prometheus", f"--config.file={folder}/prometheus.yml", f"--storage.tsdb.path={folder}/data",
             "--storage.tsdb.retention.time=100y", f"--web.listen-address=127.0.0.1:{port}", *arguments],
            stdout=log, stderr=log, stdin=subprocess.DEVNULL)
    server = Server(process, port, folder)
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        if process.poll() is not None:
            return None
        if _answers(f"{server.url}/-/ready"):
            return server
        time.sleep(0.05)
    server.stop()
    return None


@contextlib.contextmanager
def prometheus(tmp_path, history, arguments=()):
    """A Prometheus that holds `history` (OpenMetrics text; see openmetrics) and scrapes nothing.

    Every two hours that hold a sample become a block, which takes some 60 ms: points a minute apart come cheap.
    """
    if not shutil.which("prometheus") or not shutil.which("promtool"):
        pytest.skip("prometheus is not installed (Debian: apt install prometheus)")
    folder = tmp_path / "prometheus"
    folder.mkdir()
    (folder / "prometheus.yml").write_text("global: {scrape_interval: 1m}\n")
    (folder / "history.txt").write_text(history)
    subprocess.run(["promtool", "tsdb", "create-blocks-from", "openmetrics", "--quiet", folder / "history.txt",
                    folder / "data"], check=True, capture_output=True, timeout=300)
    server = None
    for _ in range(3):
        server = server or _start_prometheus(folder, arguments)
    assert server, (folder / "prometheus.log").read_text()
    try:
        yield server
    finally:
        server.stop()
