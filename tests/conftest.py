"""Lets one pytest run everything: the C tests that CMake built, case by case, and the Python tests.

The C tests are those that ctest knows (`ctest --show-only=json-v1` in the build folder), run on all cores from the start.
Each case of a cmocka program that passes or is skipped counts as a test of its own; a program in which one fails counts
as a failure. `ctest` alone runs the same programs.
"""
import concurrent.futures
import json
import os
import re
import signal
import subprocess

import pytest

CASE = re.compile(r"^\[ +(OK|SKIPPED) +\] (\w+)$", re.M)
SUMMARY = re.compile(r"^\[=+\] \d+ test\(s\) run\.$", re.M)


def pytest_addoption(parser):
    parser.addoption("--build", default="build/release", help="the CMake build folder whose C tests are run")


def pytest_configure():
    """A shell starts what runs in the background with SIGINT ignored, and children inherit that; some tests send it."""
    if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_collect_file(file_path, parent):
    if file_path.name == "CMakeLists.txt":
        return Programs.from_parent(parent, path=file_path)
    return None


class Programs(pytest.File):
    """tests/CMakeLists.txt: the programs that it registers with ctest."""

    def collect(self):
        build = self.config.getoption("--build")
        listing = subprocess.run(["ctest", "--test-dir", build, "--show-only=json-v1"], capture_output=True, text=True)
        if listing.returncode != 0:
            raise self.CollectError(f"no CMake build in {build}; name it by --build")
        pool = concurrent.futures.ThreadPoolExecutor(os.cpu_count())
        for test in json.loads(listing.stdout)["tests"]:
            yield Program.from_parent(self, name=test["name"], test=test, pool=pool)


class Program(pytest.Item):
    """One program; started by the pool once the run begins, so that the first item starts them all."""

    def __init__(self, test, pool, **kwargs):
        super().__init__(**kwargs)
        self.command = test.get("command")
        self.properties = {p["name"]: p["value"] for p in test.get("properties", [])}
        self.pool, self.outcome, self.cases = pool, None, []

    def start(self):
        if not self.outcome:
            self.outcome = self.pool.submit(
                subprocess.run, self.command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                errors="replace", stdin=subprocess.DEVNULL, timeout=float(self.properties.get("TIMEOUT", 300)),
                cwd=self.properties.get("WORKING_DIRECTORY"),
                env=os.environ | dict(e.split("=", 1) for e in self.properties.get("ENVIRONMENT", [])))

    def runtest(self):
        if not self.command:
            raise Failed("CMake registered it, but the program was not built")
        for item in self.session.items:
            if isinstance(item, Program) and item.command:
                item.start()
        try:
            done = self.outcome.result()
        except subprocess.TimeoutExpired as error:
            raise Failed(f"took more than {error.timeout:.0f} s") from None
        self.cases = [self.case(m, done.stdout) for m in CASE.finditer(SUMMARY.split(done.stdout)[0])]
        if done.returncode == self.properties.get("SKIP_RETURN_CODE", -1):
            pytest.skip(done.stdout.strip().splitlines()[-1])
        if done.returncode != 0:
            raise Failed(f"exit status {done.returncode}\n{done.stdout}")

    def case(self, match, output):
        """The report of one case, as if it were an item."""
        outcome, reason = "passed", None
        if match[1] == "SKIPPED":
            said = output[: match.start()].split(f"[ RUN      ] {match[2]}")[-1].strip()
            outcome, reason = "skipped", (f"{self.name} {match[2]}", None, f"Skipped: {said or 'it does not say why'}")
        return pytest.TestReport(f"{self.nodeid}::{match[2]}", self.location, {}, outcome, reason, "call")

    def repr_failure(self, excinfo, style=None):
        return str(excinfo.value) if excinfo.errisinstance(Failed) else super().repr_failure(excinfo, style)

    def reportinfo(self):
        return self.path, None, self.name


class Failed(Exception):
    pass


def pytest_sessionfinish(session):
    for item in getattr(session, "items", []):
        if isinstance(item, Program):
            item.pool.shutdown(wait=False, cancel_futures=True)


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item, call):
    """A program that passed is counted by its cases, where it has some."""
    made = yield
    if call.when == "call" and isinstance(item, Program):
        made.get_result().counted = len(item.cases) > 0
        for case in item.cases:
            item.ihook.pytest_runtest_logreport(report=case)


@pytest.hookimpl(tryfirst=True)
def pytest_report_teststatus(report):
    if report.passed and getattr(report, "counted", False):
        return "", "", ""
    return None
