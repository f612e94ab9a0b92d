"""Everything at once: kill -9, and faults of sources, receivers, disk and clock, at random from a seed; then all is well again,
and what the receivers hold is held against what the data hold.

- Each change of the data has arrived at each receiver. At a bot and at a webhook, which can tell what they have already, once;
  an incoming webhook of Slack may be told again after a doubt.
- A change that was taken out of the data is taken back where it was told and can be answered, and no other is.
- What goes into a thread is there after the message that it continues, and shares a date with it.
- A source that is down and one that is up again are told in turn, and in the end none is down.
- The state files are whole.

Two agents watch the same data: one tells a bot and a webhook, its state on a file system of its own that is full or read-only
at times; the other tells an incoming webhook, and its files may not grow at times. HUNTER_TEST_FULL makes an hour of it;
HUNTER_TEST_SEED repeats a seed, that is, what is done and when; not what meets what, as that is up to the machine.
"""
import contextlib
import datetime
import http.server
import json
import os
import random
import re
import resource
import signal
import socket
import struct
import subprocess
import threading
import time
import urllib.parse
from typing import NamedTuple

import faulty
import pytest
from agent import CANARY, START, Agent
from clock_shim import Clock
from fake_slack import FakeSlack
from state_address import KIND, open_state, state_of
from test_faults import Prometheus
from waiting import LONGEST, pause, wait

FULL = bool(os.environ.get("HUNTER_TEST_FULL"))
SEED = int(os.environ.get("HUNTER_TEST_SEED", "1"))
SECONDS, LONGEST_PAUSE = (3600, 3.0) if FULL else (30, 0.8)
SERIES, FILES = 4, 2
APART = 40  # points between two changes
TOLERANCE = 5  # points that a change may be off
# Noise that by no chance looks like a change where one was taken out.
WAVE = (0.3, -0.7, 0.9, -0.1, -0.9, 0.6, -0.4, 0.3)
HOUR = datetime.timedelta(hours=1)
SETTLE = 600 if FULL else 240  # seconds within which all must have arrived, a message a second


class Data:
    """What the series are: steps at known points, of which some are taken out again."""

    def __init__(self, folder):
        self.folder = folder
        self.steps = {name: {} for name in [f"s{i}" for i in range(SERIES)] + [f"f{i}" for i in range(FILES)]}
        self.taken_out = set()  # (name, index)
        self.points = dict.fromkeys(self.steps, APART)
        self.bodies, self.lock = {}, threading.Lock()
        for name in self.steps:
            self.write(name)

    def add(self, name):
        """A change in the middle of what comes new. Half of the series only rise, half only fall: none comes back to an earlier
        level, also once some are taken out, or it would be told as the end of another."""
        self.steps[name][self.points[name]] = 0.8 if int(name[1]) % 2 else 1.25
        self.points[name] += APART
        self.write(name)

    def take_out(self, name, index):
        del self.steps[name][index]
        self.taken_out.add((name, index))
        self.write(name)

    def rows(self, name):
        steps, base, rows = self.steps[name], 1000, []
        for i in range(self.points[name]):
            base *= steps.get(i, 1)
            rows.append((START + i * HOUR, f"{base * (1 + 0.01 * WAVE[i % len(WAVE)]):.6g}"))
        return rows

    def write(self, name):
        rows = self.rows(name)
        if name[0] == "f":
            new = self.folder / "new.csv"
            new.write_text(f"time,m{name}\n" + "".join(f"{at.isoformat()},{value}\n" for at, value in rows))
            with contextlib.suppress(IsADirectoryError):  # it is away for a while
                new.rename(self.folder / f"{name}.csv")
            return
        body = json.dumps({"status": "success", "data": {"resultType": "matrix", "result": [
            {"metric": {"__name__": f"m{name}"}, "values": [[at.timestamp(), value] for at, value in rows]}]}}).encode()
        with self.lock:
            self.bodies[name] = body

    def good(self, request, _part=1):
        asked = urllib.parse.unquote_plus(request.decode(errors="replace"))
        name = re.search(r"query=m(s\d)", asked)
        with self.lock:
            return self.bodies[name[1]] if name else Prometheus.good(request)

    nothing, name, lacking = Prometheus.nothing, "prometheus", staticmethod(Prometheus.lacking)
    with_stamp, with_value = staticmethod(Prometheus.with_stamp), staticmethod(Prometheus.with_value)


class Hook:
    """A webhook's receiver that knows what it has by its key; its `mood` is how it answers."""

    def __init__(self):
        self.documents, self.keys, self.mood = [], set(), "well"
        hook = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self):
                document = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                mood, status = hook.mood, 204
                if mood in ("refuse", "busy", "reset"):
                    status = {"refuse": 500, "busy": 429}.get(mood)
                else:
                    hook.take(self.headers["Idempotency-Key"], document)
                if mood == "hang":
                    pause(1.5, "a receiver that hangs")
                if mood in ("reset", "taken_reset"):
                    self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                    self.rfile.close()
                    self.connection.close()
                    return
                self.send_response(status)
                self.send_header("Retry-After", "1") if status == 429 else None
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, *_):
                pass

        class Server(http.server.ThreadingHTTPServer):
            daemon_threads = True

            def handle_error(self, *_):
                pass  # a client that was killed

        self.lock = threading.Lock()
        self.server = Server(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}/hook"
        threading.Thread(target=self.server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()

    def take(self, key, document):
        with self.lock:
            if key not in self.keys:
                self.keys.add(key)
                self.documents.append(document)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.server.shutdown()
        self.server.server_close()


HOOK_MOODS = ("refuse", "busy", "reset", "hang", "taken_reset")
SOURCE_MOODS = ("always", "reset", "reset_within", "cut_body", "silence", "page", "late", "nothing", "lacking", "empty", "limit_ever")
SLACK_MOODS = ("refuse", "busy", "reset", "hang", "taken_hang", "taken_reset", "slow", "away")


class Slack(FakeSlack):
    """With moods, as the hook has them; `slow`: what it has taken is shown late; `away`: nobody listens."""

    def __init__(self):
        super().__init__(CANARY)
        self.mood, self.page = "well", 100

    def take(self, path, headers, body):
        if self.mood in ("refuse", "busy"):
            return (500, {}, "") if self.mood == "refuse" else (429, {"Retry-After": "1"}, "")
        if self.mood == "reset":
            return "close"
        return super().take(path, headers, body)

    def turn(self, mood):
        if self.mood == "away" and mood != "away":
            self.start()
        if mood == "away" and self.mood != "away":
            self.stop()
        self.mood = mood
        self.hang = mood == "hang"
        self.accept_then_hang = mood == "taken_hang"
        self.rude = mood in ("reset", "taken_reset")
        self.close_after = range(10**9) if mood == "taken_reset" else ()
        self.slow = (0.05, 0.6) if mood == "slow" else (0, 0)


class House:
    """An agent, its folder, and how it is started again and again."""

    def __init__(self, program, folder, sections, data, server, clock):
        self.program, self.folder, self.clock = program, folder, clock
        self.agent, self.log = None, []
        self.full = self.doubtful = False  # its disk is; and was at some time since it was started
        tests = "".join(f"  {name}: {{type: prometheus, query: m{name}, range: 3650d, metrics: {{m{name}: {{direction: -1}}}}}}\n"
                        if name[0] == "s" else
                        f"  {name}: {{type: csv, file: '{data.folder}/{name}.csv', metrics: {{m{name}: {{direction: -1}}}}}}\n"
                        for name in data.steps)
        self.path = folder.parent / f"{folder.name}.yaml"
        self.path.write_text(f"prometheus: {{url: '{server.url}', timeout: 1s, retry_for: 0s}}\n{sections}\n"
                             f"agent: {{state: '{state_of(folder)}', listen: '127.0.0.1:0', max_age: never, interval: 1s, "
                             f"group_wait: 0s, group_interval: {'1s' if 'webhook_url' in sections else '1d'}}}\n"  # no thread: joiners wait for that
                             # or steps up and down, within a first weekend or of a service, would rightly be held, and not told
                             f"detection: {{season: none, kind: benchmark}}\ntests:\n{tests}")
        self.start()

    def start(self):
        self.doubtful = self.full
        environment = os.environ.copy()
        os.environ.update(self.clock.environment)
        try:
            self.agent = Agent(self.program, self.path)
        finally:
            os.environ.clear()
            os.environ.update(environment)

    def started(self):
        with self.agent.changed:
            self.agent.changed.wait_for(lambda: any("msg=started" in line for line in self.agent.log) or "" in self.agent.log, LONGEST)
        return any("msg=started" in line for line in self.agent.log)

    def end(self, how):
        """Sends the signal, or none; returns the exit code."""
        if how:
            self.agent.process.send_signal(how)
        code = self.agent.process.wait(LONGEST)
        for reader in self.agent.readers:
            reader.join()
        self.log += self.agent.log
        return code

    def limit_files(self, size):
        with contextlib.suppress(ProcessLookupError):  # it has ended meanwhile
            pid, kind = self.agent.process.pid, resource.RLIMIT_FSIZE
            hard = resource.prlimit(pid, kind)[1]
            resource.prlimit(pid, kind, (hard if size is None else size, hard))

    def revive(self):
        """As whoever runs it does: an agent whose disk is full when it begins ends with 4. Nothing else ends it."""
        code = self.agent.process.poll()
        if code is not None:
            assert code == 4 and self.doubtful, (code, "".join(self.agent.log[-20:]))
            self.end(0)
            self.start()


class Disk:
    """A small file system of its own for a folder, or none where it cannot be mounted."""

    def __init__(self, folder):
        self.folder, self.filler = folder, folder / "filler"
        folder.mkdir()
        self.problem = "the state is in a database"
        if KIND != "file":
            return
        done = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64m", "tmpfs", folder], check=False, capture_output=True, text=True)
        self.problem = done.stderr.strip() if done.returncode != 0 else None

    def fill(self):
        with contextlib.suppress(OSError), open(self.filler, "wb", buffering=0) as out:
            while True:
                out.write(bytes(1 << 16))

    def make_room(self):
        self.filler.unlink(missing_ok=True)

    def remount(self, how):
        subprocess.run(["mount", "-o", f"remount,{how}", self.folder], check=True, capture_output=True)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if not self.problem:
            subprocess.run(["umount", "-l", self.folder], check=True)


@pytest.fixture(scope="module")
def places(tmp_path_factory, program):
    folder = tmp_path_factory.mktemp("storm")
    with Disk(folder / "bot") as disk:
        (folder / "hook").mkdir()
        (folder / "data").mkdir()
        yield folder, disk, Clock(folder, program)


def test_the_disk_can_be_full(places):
    if places[1].problem:
        pytest.skip(f"no file system can be mounted, so none is full or read-only in the storm: {places[1].problem}")


def test_the_clock_can_be_set(places):
    if places[2].problem:
        pytest.skip(f"no clock is wrong in the storm: {places[2].problem}")


class Storm:
    def __init__(self, seed, data, server, slack, incoming, hook, houses, disk, clock):
        self.random, self.data, self.server, self.slack, self.incoming, self.hook = random.Random(seed), data, server, slack, incoming, hook
        self.houses, self.disk, self.clock = houses, disk, clock
        self.done = []  # what was done, for who looks at a failure

    def one_of(self, *choices):
        return self.random.choice(choices)

    # What may happen.

    def change(self):
        for name in self.random.sample(sorted(self.data.steps), self.random.randint(1, 2)):
            self.data.add(name)

    def take_out(self):
        """One of the last changes, told by now or not, but not the one that others lean on: the very last."""
        name = self.one_of(*sorted(self.data.steps))
        steps = sorted(self.data.steps[name])
        if len(steps) >= 2:
            self.data.take_out(name, self.one_of(*steps[-3:-1]))

    def kill(self):
        house = self.one_of(*self.houses)
        house.end(signal.SIGKILL)
        if house is self.houses[0] and not self.disk.problem and self.random.random() < 0.2:
            self.start_read_only(house)
        house.start()

    def start_read_only(self, house):
        self.disk.remount("ro")
        house.start()
        assert house.end(0) == 4, "".join(house.agent.log)
        self.disk.remount("rw")

    def stop(self):
        house = self.one_of(*self.houses)
        code = house.end(signal.SIGTERM)
        assert code in (0, -signal.SIGTERM) or code == 4 and house.doubtful, (code, "".join(house.agent.log))  # or it had just begun
        house.start()

    def freeze(self):
        house = self.one_of(*self.houses)
        house.agent.process.send_signal(signal.SIGSTOP)
        pause(self.random.uniform(0, 1), "how long it is frozen")
        house.agent.process.send_signal(signal.SIGCONT)

    def source(self):
        self.server.mood = self.one_of(*SOURCE_MOODS)

    def file(self):
        path = self.data.folder / f"f{self.random.randrange(FILES)}.csv"
        if path.is_file():
            path.unlink()
            path.mkdir() if self.random.random() < 0.5 else None

    def receivers(self):
        self.slack.turn(self.one_of(*SLACK_MOODS))
        self.hook.mood = self.one_of(*HOOK_MOODS)
        self.incoming.turn(self.one_of("refuse", "busy", "slow", "away"))

    def full(self):
        if not self.disk.problem:
            self.houses[0].full = self.houses[0].doubtful = True
            self.disk.fill()
        self.houses[1].doubtful = True
        self.houses[1].limit_files(4096)

    def date(self):
        """Less than an hour ahead, as a bot looks an hour back for what it may have posted; or any time back."""
        self.clock.turn(self.one_of(3000, 600, -60, -7200, -10 * 86400) * self.random.random())

    def heal(self):
        self.server.mood = None
        for name in self.data.steps:
            path = self.data.folder / f"{name}.csv"
            if path.is_dir():
                path.rmdir()
            if name[0] == "f" and not path.exists():
                self.data.write(name)
        self.slack.turn("well")
        self.incoming.turn("well")
        self.hook.mood = "well"
        self.disk.make_room()
        self.houses[0].full = False
        self.houses[1].limit_files(None)

    WEIGHTS = {"change": 8, "take_out": 1.5, "kill": 5, "stop": 1, "freeze": 1, "source": 2, "file": 1, "receivers": 4, "full": 2,
               "date": 1, "heal": 5}

    def blow(self):
        end = time.monotonic() + SECONDS
        while time.monotonic() < end:
            what = self.random.choices([*self.WEIGHTS], [*self.WEIGHTS.values()])[0]
            self.done.append(what)
            getattr(self, what)()
            pause(self.random.uniform(0, LONGEST_PAUSE), "the pace of the storm")
            for house in self.houses:
                house.revive()


# What the receivers hold.


def index_of(time_text):
    at = datetime.datetime.fromisoformat(time_text.replace("Z", "+00:00"))
    return round((at - START) / HOUR)


def index_at(epoch):
    return round((datetime.datetime.fromtimestamp(epoch, datetime.timezone.utc) - START) / HOUR)


def is_near(pair, pairs):
    return any(pair[0] == name and abs(pair[1] - index) <= TOLERANCE for name, index in pairs)


def known(program, folder):
    """All that an agent knows: (name, index) and state by id."""
    done = subprocess.run([program, "changes", "--state-file", state_of(folder), "--output", "json", "--limit", "1000000"],
                          capture_output=True, text=True, timeout=LONGEST, check=True)
    return {c["id"]: c for c in json.loads(done.stdout)["changes"]}


def place_of(change):
    return change["test"], index_of(change["time"])


def wanted(data):
    return {(name, index) for name, steps in data.steps.items() for index in steps}


def is_settled(house, data):
    """All changes are known and believed, those taken out are not, and nothing waits."""
    with open_state(house.folder) as state:
        if state.execute("SELECT count(*) FROM deliveries WHERE state = 1").fetchone() != (0,):
            return False
        if state.execute("SELECT count(*) FROM changes WHERE news = 1").fetchone() != (0,):
            return False
        if state.execute("SELECT count(*) FROM conditions").fetchone() != (0,):
            return False
        rows = state.execute("SELECT test, time, state FROM changes").fetchall()
    there = {(test, round((time / 1000 - START.timestamp()) / 3600)) for test, time, kind in rows if kind in (1, 2)}
    return all(is_near(pair, there) for pair in wanted(data)) and not any(
        is_near(pair, there) for pair in data.taken_out if is_out(pair, data))


def settle(storm):
    storm.heal()
    storm.clock.turn(0)
    for house in storm.houses:
        house.end(signal.SIGKILL)
        house.start()
        assert house.started(), "".join(house.agent.log)
    for house in storm.houses:
        wait(lambda: is_settled(house, storm.data), lambda: "".join(house.agent.log[-20:]))  # noqa: B023
    for house in storm.houses:
        house.agent.pass_by(2 * len(storm.data.steps))
        house.agent.wait(lambda: house.agent.metric("hunter_delivery_queue_length") == 0)  # noqa: B023


class Post(NamedTuple):
    """A bot's post: the thread that it is in or begins, and what it tells and takes back."""
    thread: str
    head: bool
    key: tuple
    ids: list
    back: set  # (name, index)


def read_posts(slack):
    for message, stamp in zip(slack.posts, slack.stamps):
        payload = message["metadata"]["event_payload"]
        named = re.findall(r"m([sf]\d) [^;]*? of <!date\^(\d+)\^", message["text"])
        back = named if "no longer found: " in message["text"] else []
        yield Post(message.get("thread_ts", stamp), "thread_ts" not in message, (payload["key"], payload.get("part")),
                   payload.get("changes", []), {(name, index_at(int(date))) for name, date in back})


def is_out(place, data):
    return is_near(place, data.taken_out) and not is_near(place, wanted(data))


def check_slack(slack, data, changes):
    """A bot's channel, in its order; `changes` are those that its agent knows."""
    assert slack.violations == []
    threads, told, keys = {}, {}, set()  # places and dates of each thread; the thread of each change
    for post in read_posts(slack):
        assert post.key not in keys, f"{post.key} is there twice"
        assert post.head or post.thread in threads, "it is before what it continues, or continues what does"
        keys.add(post.key)
        mine = {place_of(changes[i]) for i in post.ids}
        there = threads.setdefault(post.thread, set())
        assert post.head or not mine or {i for _, i in mine} & {i for _, i in there}, f"{mine} is in the thread of {there}"
        for i in post.ids:
            assert i not in told, f"change {i} is told twice"
            told[i] = post.thread
        for place in post.back:
            assert is_near(place, there), f"{place} is taken back before it is told, or elsewhere"
            assert is_near(place, data.taken_out), f"{place} is taken back and is there"
        there |= mine
    check_told({place_of(changes[i]) for i in told}, data, changes)
    back = {(post.thread, place) for post in read_posts(slack) for place in post.back}
    for i, thread in told.items():
        place = place_of(changes[i])
        assert not is_out(place, data) or is_near(place, {at for where, at in back if where == thread}), \
            f"{place} was told, is no more, and was not taken back"


def check_told(places, data, changes):
    missing = {pair for pair in wanted(data) if not is_near(pair, places)}
    assert not missing, f"never told: {missing}; known: {[(place_of(c), c['state'], c['news']) for c in changes.values()]}"


def check_hook(hook, data, changes):
    told, down = set(), {}
    for document in hook.documents:
        for change in document.get("changes", []):
            assert change["id"] not in told, f"change {change['id']} is told twice"
            told.add(change["id"])
        if document["kind"] == "notice":
            subject, over = document["subject"], document["recovered"]
            if "no longer found" not in document["summary"]:
                assert over == down.get(subject, False), f"{subject}: {document}"
                down[subject] = not over
    assert not any(down.values()), down
    assert all(document.get("left_out", 0) == 0 for document in hook.documents)
    check_told({place_of(changes[i]) for i in told}, data, changes)


def places_in(posts):
    """What is told by texts: under each date the tests; in a list by test each with its own."""
    told = set()
    for post in posts:
        date = None
        for block in post["blocks"]:
            found = re.match(r"\W*<!date\^[^|]*\|(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d [+]0000)>", block.get("text", {}).get("text", ""))
            date = found[1] if found else date
            for field in block.get("fields", []):
                for name, own in re.findall(r"^\*([sf]\d)\*(?: since <!date\^[^|]*\|([^>]*)>)?", field["text"]):
                    told.add((name, index_of(own or date)))
    return told


def check_incoming(incoming, data, changes):
    assert incoming.violations == []
    check_told(places_in(incoming.posts), data, changes)


def leave_notes(storm, folder):
    """For who looks at a failure."""
    for i, house in enumerate(storm.houses):
        (folder / f"log{i}").write_text("".join(house.log + house.agent.log))
        with contextlib.suppress(OSError, subprocess.SubprocessError):
            (folder / f"changes{i}").write_text(json.dumps(known(house.program, house.folder), indent=1))
    (folder / "notes.json").write_text(json.dumps({
        "done": storm.done, "posts": list(zip(storm.slack.stamps, storm.slack.posts)), "incoming": storm.incoming.posts,
        "hook": storm.hook.documents, "wanted": sorted(wanted(storm.data)), "taken_out": sorted(storm.data.taken_out)}, indent=1))


@pytest.mark.parametrize("seed", [SEED])
def test_storm(program, places, seed):
    folder, disk, clock = places
    data = Data(folder / "data")
    with contextlib.ExitStack() as stack:
        server = stack.enter_context(faulty.Server(data, "http://127.0.0.1:9"))
        slack, incoming, hook = (stack.enter_context(made) for made in (Slack(), Slack(), Hook()))
        bot = (f'slack: {{timeout: 1s, bot_token: "{CANARY}", channels: ["#perf"], api_url: "{slack.api}"}}\n'
               f'webhook: {{timeout: 1s, url: "{hook.url}"}}')
        houses = [House(program, folder / "bot", bot, data, server, clock),
                  House(program, folder / "hook", f'slack: {{timeout: 1s, webhook_url: "{incoming.webhook}"}}', data, server, clock)]
        storm = Storm(seed, data, server, slack, incoming, hook, houses, disk, clock)
        try:
            storm.blow()
            settle(storm)
            for house in houses:
                assert house.end(signal.SIGTERM) == 0
            for house in houses:
                done = subprocess.run([program, "store", "check", "--state-file", state_of(house.folder)],
                                      capture_output=True, text=True, timeout=LONGEST)
                assert done.returncode == 0, done.stdout + done.stderr
            changes = known(program, houses[0].folder)
            check_hook(hook, data, changes)
            check_slack(slack, data, changes)
            check_incoming(incoming, data, known(program, houses[1].folder))
        except AssertionError as error:
            raise AssertionError(f"seed {seed} (notes are in {folder}): {error}") from error
        finally:
            leave_notes(storm, folder)
            for house in houses:
                house.agent.process.kill()
                house.agent.process.wait()
                for reader in house.agent.readers:
                    reader.join()
