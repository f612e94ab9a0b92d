"""What the end-to-end tests share: the program, run as a user runs it."""
import contextlib
import os
import pathlib
import subprocess
from typing import NamedTuple

import pytest
from agent import CANARY, Agent
from clock_shim import Clock
from fake_slack import FakeSlack
from hook import Hook
from state_address import KIND, drop_states
from stutter import said_once
from waiting import LONGEST

# What a library that draws pictures keeps until the end of the process is no leak of ours.
os.environ.setdefault("LSAN_OPTIONS", f"suppressions={pathlib.Path(__file__).parent / 'leaks.txt'}:print_suppressions=0")


class Result(NamedTuple):
    code: int
    out: str
    err: str


@pytest.fixture(scope="session")
def program(request):
    """The binary: $HUNTER_C, else that of the build folder (--build)."""
    path = pathlib.Path(os.environ.get("HUNTER_C") or pathlib.Path(request.config.getoption("--build")) / "hunter-c").resolve()
    assert path.is_file(), f"{path} was not built"
    return path


@pytest.fixture(scope="session")
def names(request):
    """What users can write, as tests/names.c prints it."""
    build = pathlib.Path(request.config.getoption("--build"))
    return subprocess.run([build / "tests/names"], check=True, capture_output=True, text=True).stdout


@pytest.fixture(autouse=True)
def states(tmp_path):
    """What a test keeps in databases is forgotten after it."""
    yield
    drop_states(tmp_path)


@pytest.fixture
def hunter(program, tmp_path):
    """hunter(ARGUMENTS..., cwd=, env={}, stdin="") runs hunter-c in tmp_path and returns its code, out and err."""

    def run(*arguments, cwd=None, env=None, stdin=""):
        clean = {k: v for k, v in os.environ.items() if k not in ("HUNTER_CONFIG", "OTAVA_CONFIG", "BRANCH")}
        done = subprocess.run([str(program), *map(str, arguments)], cwd=cwd or tmp_path, env=clean | (env or {}),
                              input=stdin, capture_output=True, text=True, encoding="utf-8", timeout=LONGEST)
        return Result(done.returncode, done.stdout, said_once(done.stderr))

    return run


@pytest.fixture
def agents(program):
    """agents(CONFIG, ARGUMENTS...) starts an agent; all are gone in the end."""
    started = []

    def start(path, *arguments):
        agent = Agent(program, path, *arguments)
        started.append(agent)
        agent.wait_log("msg=started")
        return agent

    yield start
    for agent in started:
        with contextlib.suppress(ProcessLookupError):
            agent.process.kill()
        agent.process.wait()
        for reader in agent.readers:
            reader.join()
        said_once("".join(agent.log))


@pytest.fixture
def slack():
    with FakeSlack(CANARY) as server:
        yield server
        assert server.violations == []


@pytest.fixture
def hook():
    hook = Hook()
    yield hook
    hook.server.shutdown()
    hook.server.server_close()


@pytest.fixture
def clock(tmp_path, program, monkeypatch):
    """The wall clock of the programs that the test starts."""
    if KIND != "file":
        pytest.skip("the time is that of the database")
    clock = Clock(tmp_path, program)
    if clock.problem:
        pytest.skip(clock.problem)
    for name, value in clock.environment.items():
        monkeypatch.setenv(name, value)
    return clock
