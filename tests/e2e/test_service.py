"""The agent as a service: reloads, signals, what systemd is told, and the unit itself.

Counts are a tenth of what HUNTER_TEST_FULL=1 (test.sh --full) asks for.
"""
import os
import pathlib
import re
import shutil
import signal
import socket
import subprocess
import threading

import pytest
from agent import CANARY, bot, config, csv_test, write_csv
from state_address import state_of
from waiting import LONGEST

FULL = os.environ.get("HUNTER_TEST_FULL") == "1"
TOP = pathlib.Path(__file__).resolve().parents[2]
UNITS = TOP / "packaging/systemd"
OK, KEPT = "msg=\"configuration reloaded\"", "msg=\"configuration not reloaded"


def count_log(agent, pattern):
    return sum(1 for line in list(agent.log) if re.search(pattern, line))


def wait_count(agent, pattern, count):
    """Waits until so many lines of the log have the pattern, and returns the last of them."""
    def enough():
        return count_log(agent, pattern) >= count or "" in agent.log

    with agent.changed:
        assert agent.changed.wait_for(enough, LONGEST), f"not {count} of {pattern!r} in:\n{''.join(agent.log[-50:])}"
    assert count_log(agent, pattern) >= count, "".join(agent.log[-50:])
    return [line for line in agent.log if re.search(pattern, line)][-1]


def reload(agent, outcome=OK):
    before = count_log(agent, outcome)
    agent.process.send_signal(signal.SIGHUP)
    return wait_count(agent, outcome, before + 1)


def descriptors(agent):
    return agent.metric("process_open_fds")  # /proc/PID/fd is root's: the agent forbids dumps


def anonymous_kb(agent):
    status = pathlib.Path(f"/proc/{agent.process.pid}/status").read_text()
    return int(re.search(r"RssAnon:\s+(\d+)", status)[1])


def test_no_core_dumps_of_secrets(agents, tmp_path):
    write_csv(tmp_path / "read.csv", [])
    agent = agents(config(tmp_path, csv_test(tmp_path / "read.csv")))
    agent.wait_log("msg=started")
    limits = pathlib.Path(f"/proc/{agent.process.pid}/limits").read_text()
    assert re.search(r"Max core file size\s+0\s+0\s", limits)
    assert os.stat(f"/proc/{agent.process.pid}/environ").st_uid == 0  # as of a process that must not be dumped
    assert agent.metric("process_open_fds") > 5


# Reloads.


def test_a_reload(agents, tmp_path):
    write_csv(tmp_path / "read.csv", [])
    write_csv(tmp_path / "write.csv", [(30, 1.3)])
    path = config(tmp_path, csv_test(tmp_path / "read.csv"))
    agent = agents(path)
    agent.pass_by(1)
    config(tmp_path, csv_test(tmp_path / "read.csv") + csv_test(tmp_path / "write.csv", "db.write"))
    assert "tests=2 added=1 removed=0 changed=0" in reload(agent)
    agent.wait_log("msg=sent")
    assert agent.metric("hunter_tests") == 2
    config(tmp_path, csv_test(tmp_path / "write.csv", "db.write", "    tags: [x]"))
    assert "tests=1 added=0 removed=1 changed=1" in reload(agent)
    agent.pass_by(2)
    assert agent.metric("hunter_tests") == 1
    assert agent.end() == 0
    assert "".join(agent.out).count("\n  db.write\n") == 1


def test_a_hangup_while_it_is_loaded(program, agents, tmp_path):
    """It comes as early as other code of the process can send it: from the initializer of a library."""
    if not shutil.which("cc"):
        pytest.skip("cc is not installed (Debian: apt install gcc)")
    if b"__asan_init" in program.read_bytes() or b"__tsan_init" in program.read_bytes():
        pytest.skip("a sanitizer wants to be loaded first")
    source, library = tmp_path / "early.c", tmp_path / "early.so"
    source.write_text("#include <signal.h>\n__attribute__((constructor)) static void early(void) { raise(SIGHUP); }\n")
    subprocess.run(["cc", "-shared", "-fPIC", "-o", library, source], check=True)
    write_csv(tmp_path / "read.csv", [])
    path = config(tmp_path, csv_test(tmp_path / "read.csv"))
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("LD_PRELOAD", str(library))
        agent = agents(path)
        ended = [subprocess.run([program, *words, "--config", path], cwd=tmp_path, capture_output=True, check=False).returncode
                 for words in (["list-tests"], ["list-tests", "run"], ["run", "--once"])]
    wait_count(agent, OK, 1)
    assert agent.end() == 0
    assert ended == [-signal.SIGHUP] * 3  # as with any program that does not reload


def test_a_hangup_before_it_is_loaded(program, agents, tmp_path):
    """Who starts it with the signal ignored can send it from the first instruction on; once it has begun, it reloads."""
    write_csv(tmp_path / "read.csv", [])
    wrapper = tmp_path / "hunter-c"
    wrapper.write_text(f"#!/bin/sh\ntrap '' HUP\nexec {program} \"$@\"\n")
    wrapper.chmod(0o755)
    process = subprocess.Popen([wrapper, "run", "--config", config(tmp_path, csv_test(tmp_path / "read.csv"))], stderr=subprocess.PIPE, text=True)
    try:
        while os.readlink(f"/proc/{process.pid}/exe") != str(program):
            assert process.poll() is None
        process.send_signal(signal.SIGHUP)
        assert any("msg=started" in line for line in process.stderr)
        process.send_signal(signal.SIGHUP)
        assert any(re.search(OK, line) for line in process.stderr)
    finally:
        process.kill()
        process.communicate()


def test_a_broken_file_changes_nothing(agents, tmp_path, slack):
    write_csv(tmp_path / "read.csv", [])
    secret = tmp_path / "token"
    secret.write_text(CANARY)
    good = f'slack: {{bot_token_file: "{secret}", channels: ["#perf"], api_url: "{slack.api}"}}'
    path = config(tmp_path, csv_test(tmp_path / "read.csv"), good)
    agent = agents(path)
    agent.pass_by(1)
    text = path.read_text()
    for broken, words in [(text + "x: [", "not YAML"), (text + "nonsense:\n  - 1\nagnt: {}\n", "unknown section"),
                          (text.replace("    file:", "    flie:"), '"file." is missing'), ("", "no tests configured"),
                          (text.replace("bot_token_file:", "bot_token: \"${NOPE}\"\n  #"), "YAML|NOPE|slack")]:
        path.write_text(broken)
        assert re.search(words, reload(agent, KEPT)), words
        assert agent.metric("hunter_config_last_reload_successful") == 0
        agent.pass_by(1)
    path.write_text(text)
    secret.unlink()
    assert f"cannot read \\\"{secret}\\\"" in reload(agent, KEPT)
    path.unlink()
    assert "No such file" in reload(agent, KEPT)
    secret.write_text(CANARY)
    path.write_text(text)
    assert "changed=0" in reload(agent)
    assert agent.metric("hunter_config_last_reload_successful") == 1
    write_csv(tmp_path / "read.csv", [(30, 1.2)])
    slack.wait(lambda: slack.posts)
    agent.pass_by(2)
    assert agent.end() == 0
    assert len(slack.posts) == 1


def test_a_folder_as_configuration(agents, tmp_path):
    folder = tmp_path / "conf.d"
    folder.mkdir()
    write_csv(tmp_path / "read.csv", [])
    config(tmp_path, csv_test(tmp_path / "read.csv")).rename(folder / "1.yaml")
    agent = agents(folder)
    (folder / "2.yaml").write_text("tests:\n" + csv_test(tmp_path / "read.csv", "db.more"))
    assert "tests=2 added=1" in reload(agent)
    (folder / "3.yaml").write_text("tests:\n" + csv_test(tmp_path / "read.csv", "db.more"))
    assert "is already defined at" in reload(agent, KEPT)
    assert agent.end() == 0


def test_what_cannot_change_while_it_runs(agents, tmp_path):
    write_csv(tmp_path / "read.csv", [])
    path = config(tmp_path, csv_test(tmp_path / "read.csv"))
    agent = agents(path)
    path.write_text(path.read_text().replace("127.0.0.1:0", "127.0.0.1:1").replace(state_of(tmp_path), state_of(tmp_path, "other.db")))
    assert "tests=1" in reload(agent)
    told = [re.search(r"setting=(\S+)", line)[1] for line in agent.log if "changes only with a restart" in line]
    assert told == ["agent.listen", "agent.state"]
    agent.pass_by(1)
    assert agent.end() == 0
    assert not (tmp_path / "other.db").exists()


def test_a_test_that_is_removed_while_it_is_read(agents, tmp_path):
    """A server that takes the question: its answer comes when nobody wants it any more."""
    write_csv(tmp_path / "read.csv", [])
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = f'prometheus: {{url: "http://127.0.0.1:{server.getsockname()[1]}"}}'
        config(tmp_path, csv_test(tmp_path / "read.csv") + "  checkout: {type: prometheus, query: up, interval: 1h}\n", address)
        agent = agents(tmp_path / "hunter.yaml")
        server.settimeout(LONGEST)
        connection, _ = server.accept()
        with connection:
            assert connection.recv(1000)
            config(tmp_path, csv_test(tmp_path / "read.csv"))
            assert "removed=1" in reload(agent)
            connection.sendall(b"HTTP/1.1 500 Internal Server Error\r\nContent-Length: 0\r\n\r\n")
        agent.pass_by(2)
    assert agent.end() == 0
    assert count_log(agent, "checkout") == 0


def test_many_reloads_under_load(agents, program, tmp_path, slack):
    """Nothing is told twice, and neither descriptors nor memory grow."""
    rounds = 1000 if FULL else 100
    names = [f"suite.test-{i:02d}" for i in range(20)]
    for name in names:
        write_csv(tmp_path / f"{name}.csv", [])

    def write(i):
        """Each round another test is missing, another is changed, and every tenth file is broken."""
        tests = "".join(csv_test(tmp_path / f"{name}.csv", name, f"    tags: [r{i}]" if i % 20 == k else "")
                        for k, name in enumerate(names) if (i + 7) % 20 != k)
        config(tmp_path, tests + ("  broken: [" if i % 10 == 9 else ""), bot(slack))
        return KEPT if i % 10 == 9 else OK

    write(0)
    agent = agents(tmp_path / "hunter.yaml")
    agent.pass_by(20)
    before = ()
    for i in range(rounds):
        outcome = write(i)
        reload(agent, outcome)
        if i == rounds // 2:
            before = (descriptors(agent), anonymous_kb(agent))
            for k, name in enumerate(names):
                write_csv(tmp_path / f"{name}.csv", [(30, 1.2 + k / 100)])
    after = (descriptors(agent), anonymous_kb(agent))
    config(tmp_path, "".join(csv_test(tmp_path / f"{name}.csv", name) for name in names), bot(slack))
    reload(agent)
    told = lambda: sorted(re.findall(r"suite\.test-\d\d", " ".join(str(p) for p in slack.posts)))  # noqa: E731
    slack.wait(lambda: set(told()) == set(names))
    agent.pass_by(60)
    assert agent.end() == 0
    assert after[0] <= before[0] + 4, f"descriptors: {before[0]}, then {after[0]}"
    print(f"after {rounds // 2} reloads {before}, after {rounds} {after}: descriptors, kB of anonymous memory")
    if b"__asan_init" not in program.read_bytes():  # AddressSanitizer keeps what was freed
        assert after[1] <= before[1] + 6000, f"anonymous memory in kB: {before[1]}, then {after[1]}"
    changes = [number for p in slack.posts for number in p["metadata"]["event_payload"]["changes"]]
    assert len(changes) == len(set(changes)) == len(names)


# Watched files.


def test_a_watched_file(agents, tmp_path):
    write_csv(tmp_path / "read.csv", [])
    path = config(tmp_path, csv_test(tmp_path / "read.csv", extra="    watch: true\n    interval: 1h"))
    agent = agents(path)
    agent.wait_metric("hunter_runs_total", 1)
    write_csv(tmp_path / "new.csv", [(30, 1.2)])
    (tmp_path / "new.csv").rename(tmp_path / "read.csv")
    agent.wait_log("msg=sent")
    assert agent.end() == 0
    assert "+20%" in "".join(agent.out)


def test_a_file_to_watch_is_needed(hunter, tmp_path):
    path = config(tmp_path, "\n  checkout: {type: prometheus, query: up, watch: true}", "prometheus: {url: http://127.0.0.1:1}")
    result = hunter("validate", "--config", path)
    assert result.code == 2 and 'test "checkout": watch: the test reads no file' in result.out


# Signals.


def test_sigterm_at_any_moment_of_a_post(agents, tmp_path, slack):
    for i in range(50 if FULL else 5):
        folder = tmp_path / str(i)
        folder.mkdir()
        write_csv(folder / "read.csv", [(30, 1.2)])
        path = config(folder, csv_test(folder / "read.csv"), bot(slack))
        slack.delay = 0.02 * (i % 10)
        posts = len(slack.posts)
        agent = agents(path)
        slack.wait(lambda: len(slack.posts) > posts)
        assert agent.end() == 0
        again = agents(path)
        again.pass_by()
        assert again.end() == 0
        assert len(slack.posts) == posts + 1


def test_sigterm_during_fetches(agents, tmp_path):
    """A server that takes the questions, of which some more wait: the agent ends within its grace, by far."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(LONGEST)
        tests = "".join(f"  checkout.{i}: {{type: prometheus, query: up{i}}}\n" for i in range(30))
        config(tmp_path, tests, f'prometheus: {{url: "http://127.0.0.1:{server.getsockname()[1]}"}}')
        for _ in range(50 if FULL else 5):
            agent = agents(tmp_path / "hunter.yaml")
            while not asked(server):  # connections of the agent before may be among them
                pass
            assert agent.end() == 0


def asked(server):
    connection, _ = server.accept()
    with connection:
        return connection.recv(1000)


def test_grace_is_a_setting(agents, tmp_path, slack):
    write_csv(tmp_path / "read.csv", [(30, 1.2)])
    path = config(tmp_path, csv_test(tmp_path / "read.csv"), bot(slack), "  grace: 100ms")
    slack.accept_then_hang = True
    agent = agents(path)
    slack.wait(lambda: slack.posts)
    assert agent.end() == 0
    assert "exiting with messages in flight" in "".join(agent.log)
    slack.accept_then_hang = False
    again = agents(path)
    again.wait_log("msg=sent")
    assert again.end() == 0
    assert len(slack.posts) == 1


# What systemd is told, and the unit.


class Notified(threading.Thread):
    """A NOTIFY_SOCKET."""

    def __init__(self, name):
        super().__init__(daemon=True)
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.socket.bind(name)
        self.messages, self.changed = [], threading.Condition()
        self.start()

    def run(self):
        while True:
            message = self.socket.recv(4096).decode()
            with self.changed:
                self.messages.append(message)
                self.changed.notify_all()

    def wait(self, begin, count=1):
        def enough():
            return sum(m.startswith(begin) for m in self.messages) >= count

        with self.changed:
            assert self.changed.wait_for(enough, LONGEST), self.messages


@pytest.mark.parametrize("kind", ["path", "abstract"])
def test_systemd_is_told(agents, tmp_path, monkeypatch, kind):
    name = str(tmp_path / "notify") if kind == "path" else f"\0hunter-c-test-{os.getpid()}"
    systemd = Notified(name)
    monkeypatch.setenv("NOTIFY_SOCKET", name.replace("\0", "@"))
    monkeypatch.setenv("WATCHDOG_USEC", "100000")
    write_csv(tmp_path / "read.csv", [])
    path = config(tmp_path, csv_test(tmp_path / "read.csv"))
    agent = agents(path)
    systemd.wait("READY=1\nSTATUS=monitoring 1 tests\n")
    systemd.wait("WATCHDOG=1", count=3)
    reload(agent)
    systemd.wait("RELOADING=1\nMONOTONIC_USEC=")
    systemd.wait("READY=1", count=2)
    path.write_text("tests: [")
    reload(agent, KEPT)
    systemd.wait("READY=1", count=3)
    os.kill(agent.process.pid, signal.SIGSTOP)
    os.kill(agent.process.pid, signal.SIGCONT)
    systemd.wait("WATCHDOG=1", len(systemd.messages))
    assert agent.end() == 0
    systemd.wait("STOPPING=1")


@pytest.fixture(params=["hunter-c.service", "hunter-c@.service"])
def unit(request, program, tmp_path):
    """The unit, or an instance of the template that is made of it, with this build's program."""
    text = ((UNITS if request.param == "hunter-c.service" else program.parent) / request.param).read_text()
    path = tmp_path / request.param.replace("@", "@eu-1")
    path.write_text(text.replace("ExecStart=hunter-c", f"ExecStart={program}"))
    return path


def systemd_tool(*command):
    if not shutil.which(command[0]):
        pytest.skip(f"{command[0]} is not installed")
    return subprocess.run([str(c) for c in command], capture_output=True, text=True, timeout=LONGEST)


def test_the_unit_is_hardened(unit):
    result = systemd_tool("systemd-analyze", "security", "--offline=true", "--threshold=19", "--no-pager", unit)
    assert result.returncode == 0, result.stdout + result.stderr


def test_the_unit_holds_its_secrets():
    text = (UNITS / "hunter-c.service").read_text()
    for line in ("ProtectHome=yes", "UMask=0077", "LimitCORE=0", "MemoryMax=2G"):
        assert f"\n{line}\n" in text, line
    assert "#   IPAddressDeny=any" in text


def test_the_unit_is_right(unit):
    result = systemd_tool("systemd-analyze", "verify", "--man=no", unit)
    assert result.returncode == 0 and "hunter-c" not in result.stderr, result.stderr


def test_user_and_folder(tmp_path):
    (tmp_path / "etc").mkdir()
    result = systemd_tool("systemd-sysusers", f"--root={tmp_path}", UNITS / "hunter-c.sysusers")
    assert result.returncode == 0, result.stderr
    user = re.search(r"^hunter-c:x:(\d+):(\d+):.*:/var/lib/hunter-c:", (tmp_path / "etc/passwd").read_text(), re.M)
    assert user and re.search(rf"^hunter-c:x:{user[2]}:", (tmp_path / "etc/group").read_text(), re.M)
    result = systemd_tool("systemd-tmpfiles", f"--root={tmp_path}", "--create", UNITS / "hunter-c.tmpfiles")
    assert result.returncode == 0, result.stderr
    assert (tmp_path / "etc/hunter-c").stat().st_mode & 0o777 == 0o750
