"""A node with one Chromium, which plays scenarios: the functions that the .mjs files beside this one export."""
import json
import pathlib
import queue
import shutil
import subprocess
import threading

from waiting import LONGEST

HERE = pathlib.Path(__file__).parent


def missing(build):
    """What is not there, and None if all is."""
    tools = build / "browser"
    parts = [("chromium", shutil.which("chromium")), ("nodejs", shutil.which("node")),
             (f"{tools}/node_modules", (tools / "node_modules/playwright-core").is_dir())]
    absent = ", ".join(what for what, there in parts if not there)
    return f"no {absent} (packaging/test.sh installs them)" if absent else None


class Chromium:
    """Plays one scenario after another; what goes wrong in one, `play` returns."""

    def __init__(self, build, pictures):
        self.process = subprocess.Popen(["node", HERE / "runner.mjs", build / "browser", shutil.which("chromium"), pictures],
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, encoding="utf-8", cwd=pictures)
        self.lines = queue.Queue()
        threading.Thread(target=self.read, daemon=True).start()
        self.version = self.next()["ready"]

    def read(self):
        for line in self.process.stdout:
            self.lines.put(line)
        self.lines.put("")

    def next(self):
        line = self.lines.get(timeout=LONGEST)
        assert line, f"node ended with {self.process.wait(LONGEST)}"
        return json.loads(line)

    def say(self, message):
        self.process.stdin.write(json.dumps(message) + "\n")
        self.process.stdin.flush()

    def play(self, scenario, url, more=None, answers=None):
        """What it asks for, `answers` do: name: f, where f(WITH) returns the answer."""
        self.say({"scenario": scenario, "url": url, "more": more or {}})
        while "problems" not in (said := self.next()):
            try:
                answer = {"answer": answers[said["ask"]](said["with"])}
            except Exception as error:  # the scenario fails with it
                answer = {"error": repr(error)}
            self.say(answer)
        return said["problems"]

    def end(self):
        self.process.stdin.close()
        try:
            self.process.wait(LONGEST)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
