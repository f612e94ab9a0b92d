"""README.md and docs/start, as a reader runs them: each YAML block is saved, each command is run, in order.

A fenced YAML block is hunter.yaml, or the file that its first line names (`# FILE`). An indented line `$ COMMAND` is run by bash; a
comment with `exit code N` says how it ends, else it succeeds. Lines below it are in its output, in this order; three dots stand for others.
Only addresses and tokens are replaced.
"""
import os
import pathlib
import re
import shlex
import shutil
import signal
import subprocess
import time

import pytest
import servers
from agent import CANARY, Agent, noise
from person import Person
from waiting import LONGEST

TOP = pathlib.Path(__file__).parents[2]
STEP = re.compile(r"^```yaml\n((?:.*\n)*?)```$|^    \$ (.*)\n((?:    (?!\$ ).+\n)*)", re.M)
HOUR = 3600
SERVICES = ("checkout", "search")


def steps(page):
    """What a reader copies from the page, in order: (block, "", "") or ("", command, what it shows)."""
    return STEP.findall(page.read_text())


class Reader:
    """Follows a page in a folder of its own."""

    def __init__(self, program, folder, replace):
        self.program, self.folder, self.replace = program, folder, replace
        bin_ = folder / "bin"
        bin_.mkdir()
        (bin_ / "hunter-c").symlink_to(program)
        self.environment = {k: v for k, v in os.environ.items() if k not in ("HUNTER_CONFIG", "OTAVA_CONFIG", "BRANCH")} | {
            "PATH": f"{bin_}:{os.environ['PATH']}", "EXAMPLE_STATE": str(folder / "example.db"), "HOME": str(folder)}
        shutil.copytree(TOP / "conf/example", folder / "conf/example")
        shutil.copy(TOP / "conf/example.yaml", folder / "conf")

    def adapted(self, text):
        for old, new in self.replace.items():
            text = text.replace(old, new)
        return text

    def save(self, block):
        """The block, where its first line says."""
        name = re.match(r"# (\S+\.yaml)\n", block)
        path = self.folder / (name[1] if name else "hunter.yaml")
        path.parent.mkdir(exist_ok=True)
        path.write_text(self.adapted(block))

    def run(self, command, shown):
        """Runs the command, and returns what it printed."""
        done = subprocess.run(["bash", "-c", self.adapted(command)], cwd=self.folder, env=self.environment, input=CANARY + "\n",
                              capture_output=True, text=True, timeout=LONGEST)
        wanted = re.search(r"#.*exit code (\d)", command)
        assert done.returncode == int(wanted[1] if wanted else 0), f"{command}\n{done.stdout}{done.stderr}"
        parts = [part.strip() for part in re.split(r"^\s*\.\.\.$", shown, flags=re.M)]
        pattern = ".*".join(r"\s+".join(map(re.escape, part.split())) for part in parts)
        assert re.search(pattern, done.stdout, re.S), f"{command}\n{done.stdout}"
        return done.stdout

    def follow(self, page, at=None):
        """All steps of the page; at[WORDS](command) does those whose command begins with WORDS. Returns what each command printed, each time."""
        printed = {}
        for block, command, shown in steps(TOP / page):
            if block:
                self.save(block)
                continue
            own = next((do for words, do in (at or {}).items() if command.startswith(words)), None)
            printed.setdefault(command.split("  #")[0].strip(), []).append(own(command) if own else self.run(command, shown))
        return printed


@pytest.fixture
def reader(program, tmp_path):
    return lambda replace=None: Reader(program, tmp_path, replace or {})


def histograms(end):
    """A month of two services' requests up to `end`; those of search take a half longer since three days. A sample every half hour."""
    samples = 31 * 48
    count, buckets, builds = [], [], []
    for service in SERVICES:
        total, slow = 0, 0
        for i in range(samples):
            at = end - (samples - 1 - i) * HOUR // 2
            requests = 100000 * (1 + 0.02 * noise(i))
            share = 0.02 * (1 + 0.02 * noise(i * 7 + len(service))) * (1.5 if service == "search" and at > end - 72 * HOUR else 1)
            total, slow = total + requests, slow + requests * share
            count.append(({"service": service}, f"{total:.0f}", at))
            buckets += [({"service": service, "le": le}, f"{value:.0f}", at)
                        for le, value in (("0.1", total - slow), ("1", total), ("+Inf", total))]
            builds.append(({"service": service, "revision": "15ce8e36" if at > end - 72 * HOUR else "a60027ff", "version": "1"}, "1", at))
    return servers.openmetrics({"http_request_duration_seconds_bucket": buckets, "http_request_duration_seconds_count": count,
                                "app_build_info": builds})


@pytest.fixture(scope="module")
def prometheus(tmp_path_factory):
    """Of the last month, since the pages name times such as '2 weeks ago'; the values do not depend on the date."""
    end = int(time.time()) // HOUR * HOUR
    with servers.prometheus(tmp_path_factory.mktemp("prometheus"), histograms(end)) as running:
        yield running


@pytest.mark.parametrize("page", ["README.md", "docs/start/first-alert.md", "docs/start/services.md"])
def test_from_prometheus_to_slack(reader, prometheus, slack, page):
    """A real Prometheus, and a Slack that is as strict as the real one: the change of search is posted, once."""
    port = servers.free_port()
    me = reader({"http://prometheus:9090/": prometheus.url, "127.0.0.1:9469": f"127.0.0.1:{port}", "${SLACK_BOT_TOKEN}": CANARY,
                 'channels: ["#perf"]': f'channels: ["#perf"], api_url: "{slack.api}"',
                 "agent: {state: state.db}": f'agent: {{state: state.db, listen: "127.0.0.1:{port}"}}'})
    (me.folder / "slack.token").write_text(CANARY + "\n")
    (me.folder / "slack.token").chmod(0o600)
    before = []

    def run(_):
        before[:] = slack.posts
        agent = Agent(me.program, "hunter.yaml", cwd=me.folder)
        try:
            slack.wait(lambda: len(slack.posts) > len(before))
        finally:
            assert agent.end() == 0

    # The shipped example is run by test_packaging.py.
    printed = me.follow(page, {"hunter-c run": run, "EXAMPLE_STATE=": lambda _: ""})
    assert len(slack.posts) == len(before) + 1 and "search" in str(slack.posts[-1]) and "checkout" not in str(slack.posts[-1])
    assert len(before) == ("hunter-c validate --receivers" in printed)  # the test message
    assert re.search(r"search.*\+\d\d%", printed["hunter-c replay --from '2 weeks ago'"][0], re.S)
    assert "search" in str(printed.get("hunter-c changes --open", "search"))


def test_nightly_benchmarks(reader):
    first, second = reader().follow("docs/start/nightly.md")["hunter-c run --once"]
    assert "read.inmem" in first and "read.range" in first and second == ""


def test_a_gate_in_ci(reader):
    me = reader()
    me.follow("docs/start/gate.md")
    assert "read" in (me.folder / "changes.html").read_text()


def test_label_your_own_series(reader):
    """Somebody at a terminal gives an answer to each plot."""
    me = reader()

    def label(command):
        person = Person(me.program, me.folder, *shlex.split(command)[2:])
        screen, seen = person.read(), 0
        while re.search(r"^\d+ of 20  ", screen, re.M):
            letter = re.search(r"  ([a-z]) \d+ \(", screen)
            screen, seen = person.type(letter[1] if letter and seen % 2 else "-"), seen + 1
        os.close(person.terminal)
        assert (person.code(), seen) == (0, 20)
        return screen

    printed = me.follow("docs/start/accuracy.md", {"hunter-c evaluate --label": label})
    assert len((me.folder / "labelled.jsonl").read_text().splitlines()) == 20
    assert "recall" in printed["hunter-c evaluate --truth labelled.jsonl --tune"][0]


def test_each_page_is_followed():
    """Each command of a page stands where follow() finds it."""
    source = pathlib.Path(__file__).read_text()
    for page in [TOP / "README.md", *TOP.glob("docs/start/*.md")]:
        commands = [command for _, command, _ in steps(page) if command]
        assert not commands or str(page.relative_to(TOP)) in source, page.name
        assert not re.search(r"^    hunter-c ", page.read_text(), re.M), f"{page.name}: a command without $"
