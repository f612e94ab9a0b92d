"""Lets one pytest run everything: the C tests that CMake built, case by case, and the Python tests.

The C tests are those that ctest knows (`ctest --show-only=json-v1` in the build folder).
Each case of a cmocka program that passes or is skipped counts as a test of its own; a program in which one fails counts
as a failure. `ctest` alone runs the same programs.

Most tests wait for servers and timers, so several run at once where pytest-xdist is installed
(`-n 12 --dist loadgroup`).

C tests that keep a state do so in files and in databases of a PostgreSQL of the run, HUNTER_TEST_POSTGRES; where its server or psycopg2
is not installed, in files alone.
"""
import contextlib
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).parent / "e2e"))
import servers  # noqa: E402

CASE = re.compile(r"^\[ +(OK|SKIPPED) +\] (\w+)$", re.M)
SUMMARY = re.compile(r"^\[=+\] \d+ test\(s\) run\.$", re.M)


def pytest_addoption(parser):
    parser.addoption("--build", default="build/release", help="the CMake build folder whose C tests are run")


def pytest_configure(config):
    """Whoever starts the tests may ignore signals (a shell SIGINT of what runs in the background, nohup SIGHUP), and what is started
    inherits that; tests send both. A handler is not inherited: the tests' programs begin with the default, and this process goes on."""
    config.addinivalue_line("markers", "xdist_group(name): tests that go to one worker")
    config.addinivalue_line("markers", "state_file: a test of a state that is a file")
    if not hasattr(config, "workerinput"):
        config.pluginmanager.register(Counting(config))
        os.environ["HUNTER_TEST_RUN"], os.environ["HUNTER_TEST_RUNNER"] = tempfile.mkdtemp(prefix="hunter-run-"), str(os.getpid())
    if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    if signal.getsignal(signal.SIGHUP) == signal.SIG_IGN:
        signal.signal(signal.SIGHUP, lambda *_: None)


def pytest_unconfigure(config):
    """The servers of the run end with this process."""
    if not hasattr(config, "workerinput"):
        shutil.rmtree(os.environ["HUNTER_TEST_RUN"], ignore_errors=True)


def pytest_runtest_setup(item):
    if item.get_closest_marker("state_file") and os.environ.get("HUNTER_TEST_STATE", "file") != "file":
        pytest.skip("it is about a state that is a file")


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
        for test in json.loads(listing.stdout)["tests"]:
            yield Program.from_parent(self, name=test["name"], test=test)


class Program(pytest.Item):
    """One program."""

    def __init__(self, test, **kwargs):
        super().__init__(**kwargs)
        self.command = test.get("command")
        self.properties = {p["name"]: p["value"] for p in test.get("properties", [])}
        self.cases = []

    def runtest(self):
        if not self.command:
            raise Failed("CMake registered it, but the program was not built")
        environment = dict(e.split("=", 1) for e in self.properties.get("ENVIRONMENT", []))
        if "HUNTER_TEST_POSTGRES" not in os.environ:
            with contextlib.suppress(pytest.skip.Exception):
                environment["HUNTER_TEST_POSTGRES"] = servers.run_postgres().address()
        try:
            done = subprocess.run(
                self.command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace",
                stdin=subprocess.DEVNULL, timeout=float(self.properties.get("TIMEOUT", 900)),
                cwd=self.properties.get("WORKING_DIRECTORY"),
                env=os.environ | environment)
        except subprocess.TimeoutExpired as error:
            raise Failed(f"took more than {error.timeout:.0f} s") from None
        self.cases = [self.case(m, done.stdout) for m in CASE.finditer(SUMMARY.split(done.stdout)[0])]
        if done.returncode == self.properties.get("SKIP_RETURN_CODE", -1):
            pytest.skip(done.stdout.strip().splitlines()[-1])
        if done.returncode != 0:
            raise Failed(f"exit status {done.returncode}\n{done.stdout}")

    def case(self, match, output):
        """A case's name, and why it was skipped ("" if it passed)."""
        if match[1] == "OK":
            return match[2], ""
        said = output[: match.start()].split(f"[ RUN      ] {match[2]}")[-1].strip()
        return match[2], said or "it does not say why"

    def repr_failure(self, excinfo, style=None):
        return str(excinfo.value) if excinfo.errisinstance(Failed) else super().repr_failure(excinfo, style)

    def reportinfo(self):
        return self.path, None, self.name


class Failed(Exception):
    pass


# What takes longest begins first, or one worker would be busy with it when the others are done.
LONGEST = ("test_page.py", "test_fleet.py", "test_storm.py", "test_graphite.py", "test_arrived.py", "test_reactions.py", "test_kill.py",
           "unit.series_cache", "test_faults.py", "test_bisections.py", "unit.follow_ups", "unit.bisection", "test_elsewhere.py",
           "test_recovery.py", "test_belief.py", "test_explains.py", "unit.cluster", "unit.store_crash", "unit.config",
           "unit.edivisive_stream", "test_large.py", "test_conditions.py", "test_canary.py", "unit.number")


def urgency(item):
    names = (item.name, item.path.name)
    return next((i for i, name in enumerate(LONGEST) if name in names), len(LONGEST))


# Fixtures that take long: the tests of a file that use one go to one worker, and all others wherever one is free.
SHARED = {"test_deployments.py": "prometheus", "test_explains.py": "prometheus", "test_faults.py": "runs", "test_graphite.py": "server",
          "test_seasons.py": "server", "test_victoria.py": "server"}


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items):
    items.sort(key=urgency)
    for item in items:
        if SHARED.get(item.path.name) in getattr(item, "fixturenames", ()):
            kind = item.name.partition("[")[2].partition("-")[0] if item.path.name == "test_faults.py" else ""
            item.add_marker(pytest.mark.xdist_group(item.path.name + kind))


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item, call):
    """The cases of a program travel with its report, from a worker too."""
    made = yield
    if call.when == "call" and isinstance(item, Program):
        made.get_result().cases = item.cases


class Counting:
    """Counts a program by its cases, where it has some; lives in the process that prints."""

    def __init__(self, config):
        self.config = config

    def pytest_runtest_logreport(self, report):
        for name, reason in getattr(report, "cases", ()):
            said = (f"{report.nodeid} {name}", None, f"Skipped: {reason}") if reason else None
            self.config.hook.pytest_runtest_logreport(report=pytest.TestReport(
                f"{report.nodeid}::{name}", report.location, {}, "skipped" if reason else "passed", said, "call"))


@pytest.hookimpl(tryfirst=True)
def pytest_report_teststatus(report):
    if report.passed and getattr(report, "cases", ()):
        return "", "", ""
    return None
