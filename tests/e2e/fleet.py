"""Several agents on one state, what they watch and whom they tell: the parts of which test_fleet.py is made.

- `Source` is a Prometheus whose series get changes when a test says so; it knows who has asked for which test, and when.
- `Sink` is a webhook's receiver that keeps each post, also one that comes again, and is slow to answer.
- `Proxy` is a cable to a database: whole, cut, slow, or half dead.
- `Fleet` has the agents: started, killed, paused, and looked at.
- `Watch` sees who holds what, and how late the machine is; it tells what a test's long wait comes from.
- `verdict` holds what the sink has against what the source had.
"""
import asyncio
import collections
import contextlib
import datetime
import http.server
import json
import os
import pathlib
import random
import re
import signal
import socket
import subprocess
import threading
import time
import urllib.parse
import urllib.request

import waiting
from waiting import LONGEST, wait

START = datetime.datetime(2024, 3, 1, tzinfo=datetime.timezone.utc)
HOUR = 3600
APART = 40  # points between two changes
TOLERANCE = 5  # points that a change may be off
# Noise that by no chance looks like a change.
WAVE = (0.3, -0.7, 0.9, -0.1, -0.9, 0.6, -0.4, 0.3)
TTL = 15  # seconds of a lease
TRUST = 12  # seconds in which an agent may not know that a test is another's by now; what it finds in them is not recorded


class Source:
    """Answers range queries for tNUMBER."""

    def __init__(self, tests):
        self.names = [f"t{i:05d}" for i in range(tests)]
        self.steps = {name: [] for name in self.names}  # factors; one each APART points
        self.bodies = {name: self.body(name) for name in self.names}
        self.changes = {}  # (test, number of its change) -> when it was put in, monotonic
        self.asked = collections.defaultdict(list)  # test -> [(when, process or None)]
        self.late = {}  # test -> asyncio.Event that its answers wait for
        self.processes = lambda: ()
        self.open = 0  # connections
        self.loop = asyncio.new_event_loop()
        started = threading.Event()
        self.thread = threading.Thread(target=self.run, args=(started,), daemon=True)
        self.thread.start()
        started.wait()

    def run(self, started):
        async def serve():
            self.server = await asyncio.start_server(self.serve, "127.0.0.1", 0, backlog=1000)
            self.url = f"http://127.0.0.1:{self.server.sockets[0].getsockname()[1]}"
            started.set()

        asyncio.set_event_loop(self.loop)
        self.loop.run_until_complete(serve())
        self.loop.run_forever()

    def owner(self, port):
        """The process at the other end of a connection."""
        for line in pathlib.Path("/proc/net/tcp").read_text().splitlines()[1:]:
            fields = line.split()
            if int(fields[1].split(":")[1], 16) == port and fields[2] == f"0100007F:{int(self.url.rsplit(':', 1)[1]):04X}":
                wanted = f"socket:[{fields[9]}]"
                for pid in self.processes():
                    with contextlib.suppress(OSError):
                        for fd in os.scandir(f"/proc/{pid}/fd"):
                            if os.readlink(fd.path) == wanted:
                                return pid
        return None

    async def serve(self, reader, writer):
        self.open += 1
        with contextlib.suppress(OSError, asyncio.IncompleteReadError):
            owner = None
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                length = re.search(rb"(?i)\r\ncontent-length: (\d+)", head)
                text = urllib.parse.unquote_plus((head + (await reader.readexactly(int(length[1])) if length else b"")).decode())
                name = re.search(r"query=(t\d+)", text)
                body = b'{"status":"success","data":[]}'
                if name:
                    owner = owner or self.owner(writer.get_extra_info("peername")[1])
                    self.asked[name[1]].append((time.monotonic(), owner))
                    if name[1] in self.late:
                        await self.late[name[1]].wait()
                    body = self.bodies.get(name[1], b'{"status":"success","data":{"resultType":"matrix","result":[]}}')
                writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(body) + body)
                await writer.drain()
        self.open -= 1
        writer.close()

    def drain(self):
        """Until all is read that was asked by processes that are dead by now: connections are accepted in their order."""
        with urllib.request.urlopen(self.url, timeout=LONGEST) as answer:
            answer.read()
        wait(lambda: self.open == 0, lambda: f"{self.open} connections are open")

    def at(self, name, index):
        """When a point is, in seconds; each test has its own times, so that no two of them change at once."""
        return int(START.timestamp()) + index * HOUR + int(name[1:]) * 7

    def body(self, name):
        base, values = 1000.0, []
        for i in range(APART * (len(self.steps[name]) + 1)):
            if i % APART == 0 and i > 0:
                base *= self.steps[name][i // APART - 1]
            values.append([self.at(name, i), f"{base * (1 + 0.01 * WAVE[i % len(WAVE)]):.2f}"])
        return json.dumps({"status": "success", "data": {"resultType": "matrix", "result": [
            {"metric": {"__name__": name}, "values": values}]}}).encode()

    def change(self, name):
        """One more change; none undoes the one before, or it would be told as its end."""
        self.steps[name].append(0.9 if len(self.steps[name]) % 2 else 1.25)
        self.bodies[name] = self.body(name)
        self.changes[name, len(self.steps[name])] = time.monotonic()

    def hold(self, name):
        """Answers for this test wait until release()."""
        self.late[name] = asyncio.Event()

    def release(self, name):
        self.loop.call_soon_threadsafe(self.late.pop(name).set)

    def number(self, name, when):
        """The number of the change of the test that is at this time (ISO), or None."""
        at = datetime.datetime.fromisoformat(when.replace("Z", "+00:00")).timestamp()
        index = round((at - self.at(name, 0)) / HOUR)
        nearest = max(1, round(index / APART))
        return nearest if abs(index - nearest * APART) <= TOLERANCE else None

    def asked_since(self, name, since):
        return any(when > since for when, _ in list(self.asked[name]))

    def gaps(self, since, until):
        """The longest time without a run of each test, within a span: [(seconds, test, from, until)], the longest first."""
        found = []
        for name in self.names:
            times = [since, *(when for when, _ in list(self.asked[name]) if since < when < until), until]
            found.append(max((b - a, name, a, b) for a, b in zip(times, times[1:])))
        return sorted(found, reverse=True)

    def both(self, since, until, within):
        """The longest time in which two agents ran a test in turn (by one, by another, and by the first again so soon): [(seconds, test,
        from, until)], the longest first."""
        found = []
        for name in self.names:
            runs, spans = [run for run in list(self.asked[name]) if since < run[0] < until and run[1]], []
            for first, second, third in zip(runs, runs[1:], runs[2:]):
                if first[1] == third[1] != second[1] and third[0] - first[0] < within:
                    begin = spans.pop()[0] if spans and spans[-1][1] >= first[0] else first[0]
                    spans.append((begin, third[0]))
            found += [(end - begin, name, begin, end) for begin, end in spans]
        return sorted(found, reverse=True)

    def stop(self):
        self.loop.call_soon_threadsafe(self.loop.stop)
        self.thread.join()


class Sink:
    """Keeps what is posted to it; answers late, so that a sender may be gone by then."""

    def __init__(self, slow=(0.0, 0.1)):
        self.posts, self.lock, self.slow = [], threading.Lock(), slow  # (when, key, document)
        sink = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self):
                document = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                with sink.lock:
                    sink.posts.append((time.monotonic(), self.headers["Idempotency-Key"], document))
                waiting.pause(random.uniform(*sink.slow), "a sender may be gone by the time of the answer")
                self.send_response(204)
                self.end_headers()

            def log_message(self, *_):
                pass

        class Server(http.server.ThreadingHTTPServer):
            daemon_threads, request_queue_size = True, 100

            def handle_error(self, *_):
                pass  # a client that was killed

        self.server = Server(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}/"
        threading.Thread(target=self.server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()

    def told(self):
        """(when, key, id, test, time) of each change of each post, in the order of the posts."""
        with self.lock:
            posts = list(self.posts)
        return [(when, key, change["id"], change["test"], change["time"])
                for when, key, document in posts if document["kind"] == "changes" for change in document["changes"]]

    def others(self):
        """What was posted besides changes."""
        with self.lock:
            return [document for _, _, document in self.posts if document["kind"] != "changes"]

    def stop(self):
        self.server.shutdown()
        self.server.server_close()


class Proxy:
    """A cable to a server. `mood`: "whole"; "cut" (nothing gets through, nobody is told); "slow" (each piece is 2 s late); "deaf" (what
    the client sends arrives, no answer comes back); "refused" (connections end at once)."""

    def __init__(self, port):
        self.behind, self.mood, self.pairs = port, "whole", []
        self.listener = socket.create_server(("127.0.0.1", 0), backlog=100)
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            try:
                client, _ = self.listener.accept()
            except OSError:
                return
            if self.mood == "refused":
                client.close()
                continue
            server = socket.create_connection(("127.0.0.1", self.behind))
            for end in (client, server):
                end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self.pairs.append((client, server))
            for arguments in ((client, server, "there"), (server, client, "back")):
                threading.Thread(target=self.carry, args=arguments, daemon=True).start()

    def carry(self, source, target, way):
        with contextlib.suppress(OSError):
            while data := source.recv(65536):
                if self.mood == "slow":
                    waiting.pause(2, "a slow cable")
                wait(lambda: self.mood != "cut" and (self.mood != "deaf" or way != "back"))
                if self.mood == "refused":
                    break
                target.sendall(data)
        for end in (source, target):
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)

    def turn(self, mood):
        self.mood = mood
        if mood == "refused":
            for pair in self.pairs:
                for end in pair:
                    with contextlib.suppress(OSError):
                        end.shutdown(socket.SHUT_RDWR)

    def stop(self):
        self.turn("refused")
        self.listener.close()


class Pulse:
    """A thread that is to wake up ten times a second: by how much it is late, everything else on the machine is, too."""

    EVERY = 0.1

    def __init__(self):
        self.late, self.over = [], threading.Event()  # (when, seconds too late)
        self.thread = threading.Thread(target=self.run, daemon=True)
        self.thread.start()

    def run(self):
        while True:
            asleep = time.monotonic()
            if self.over.wait(self.EVERY):
                return
            now = time.monotonic()
            self.late.append((now, now - asleep - self.EVERY))

    def lost(self, since, until):
        """Seconds in which it was not running and should have been."""
        return sum(late for when, late in list(self.late) if since < when <= until)

    def stop(self):
        self.over.set()
        self.thread.join()


def shard_of(test):
    """Of 256, as the agents reckon it."""
    number = 0xcbf29ce484222325
    for byte in b"test " + test.encode():
        number = (number ^ byte) * 0x100000001b3 % 2**64
    return ((number ^ number >> 32) * 0x9e3779b97f4a7c15 % 2**64) >> 56


class Watch:
    """Who holds which shard, as the database has it, and what happened to whom. One test's wait is explained by the faults that hit
    those who held it meanwhile."""

    def __init__(self, fleet, connect, pulse):
        self.fleet, self.connect, self.pulse = fleet, connect, pulse
        self.holders = collections.defaultdict(list)  # shard -> [(when, the holder's name, or None)], each time that it is another
        self.over = threading.Event()
        self.thread = threading.Thread(target=self.run, daemon=True)
        self.thread.start()

    def run(self):
        with contextlib.closing(self.connect()) as connection, connection.cursor() as cursor:
            while not self.over.wait(0.5):
                cursor.execute("SELECT shard, name FROM shards LEFT JOIN agents ON instance = holder")
                now = time.monotonic()
                for shard, name in cursor.fetchall():
                    if not self.holders[shard] or self.holders[shard][-1][1] != name:
                        self.holders[shard].append((now, name))

    def held(self, test, since, until):
        """[(from when on, the holder's name)] within a span."""
        spans = self.holders[shard_of(test)]
        before = [span for span in spans if span[0] <= since][-1:]
        return before + [span for span in spans if since < span[0] <= until]

    def hits(self, test, since, until):
        """The faults that stopped whoever held the test when they came."""
        spans, found = self.held(test, since, until), []
        for when, what, name in self.fleet.faults:
            holder = [span[1] for span in spans if span[0] <= when + 1][-1:]  # it is seen a moment later
            if since - TTL < when <= until and holder == [name]:
                found.append((when, what, name))
        return found

    def waits(self, since, until):
        """[(seconds beyond what may be, test, from, until)], the worst first: interval + 2 TTL for each fault that hit a holder, and
        the time that the machine did not have."""
        found = []
        for name in self.fleet.source.names:
            times = [since, *(when for when, _ in list(self.fleet.source.asked[name]) if since < when < until), until]
            for begin, end in zip(times, times[1:]):
                if end - begin > self.fleet.interval + TTL:
                    may = self.fleet.interval + 2 * TTL * max(1, len(self.hits(name, begin, end))) + self.pulse.lost(begin, end)
                    found.append((end - begin - may, name, begin, end))
        return sorted(found, reverse=True)

    def story(self, test, begin, end):
        """What became of a test in this time, in seconds from its begin."""
        lines = [(when, f"held by {name}") for when, name in self.held(test, begin, end)]
        lines += [(when, f"{what} {name}") for when, what, name in self.hits(test, begin, end)]
        text = "".join(f"  {when - begin:6.1f} {what}\n" for when, what in sorted(lines))
        return (f"{test} of shard {shard_of(test)} waited {end - begin:.1f} s, in which the machine was late by {self.pulse.lost(begin, end):.1f} s\n"
                f"{text}")

    def moves(self):
        """How often a shard has changed hands: (the median, the most)."""
        counts = sorted(len(spans) - 1 for spans in self.holders.values())
        return counts[len(counts) // 2], counts[-1]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.over.set()
        self.thread.join()


class Member:
    """An agent of a fleet, by its name; its process comes and goes."""

    def __init__(self, name, path, log):
        self.name, self.path, self.log = name, path, log
        self.process, self.paused, self.environment = None, False, {}
        self.begins = 0  # where the log of this process begins

    def alive(self):
        return self.process is not None and self.process.poll() is None

    def said(self):
        with open(self.log, encoding="utf-8", errors="replace") as file:
            file.seek(self.begins)
            return file.read()

    def port(self):
        found = re.search(r"msg=started.*?port=(\d+)|port=(\d+).*?msg=started", self.said())
        return found and (found[1] or found[2])

    def get(self, path, timeout=LONGEST):
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.port()}{path}", timeout=timeout) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as error:
            return error.code, error.read().decode()

    def post(self, path, timeout=LONGEST):
        request = urllib.request.Request(f"http://127.0.0.1:{self.port()}{path}", data=b"", method="POST")
        try:
            with urllib.request.urlopen(request, timeout=timeout) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as error:
            return error.code, error.read().decode()

    def metric(self, name):
        """The sum of a metric over its labels."""
        return sum(float(v) for v in re.findall(rf"^{name}(?:{{[^}}]*}})? (\S+)$", self.get("/metrics")[1], re.M))


class Fleet:
    """`address` is the state's, or a function of an agent's name that gives it."""

    def __init__(self, program, folder, address, source, sink, interval=5, more="", tests=None, agent=""):
        self.program, self.folder, self.source, self.sink = program, folder, source, sink
        self.address = address if callable(address) else lambda _: address
        self.interval, self.more, self.agent, self.members, self.left = interval, more, agent, {}, []
        self.kills = self.pauses = self.ends = self.joins = 0
        self.faults = []  # (when, what, whom)
        self.tests = tests or source.names
        source.processes = lambda: [m.process.pid for m in self.members.values() if m.alive()]

    def configure(self, name, tests=None, detection="season: none", extra=""):
        path = self.folder / f"{name}.yaml"
        lines = "".join(f"  {test}: {{type: prometheus, query: {test}, range: 3650d, metrics: {{{test}: {{direction: -1}}}}{extra}}}\n"
                        for test in tests or self.tests)
        new = self.folder / f"{name}.new"
        new.write_text(f"""
prometheus: {{url: "{self.source.url}"}}
webhook: {{url: "{self.sink.url}"}}
agent: {{name: {name}, state: "{self.address(name)}", listen: "127.0.0.1:0", max_age: never, interval: {self.interval}s, group_wait: 0s, {self.agent}}}
detection: {{kind: benchmark, {detection}}} # a service's step, when the like has come and gone, would wait
{self.more}
tests:
{lines}""")
        new.rename(path)
        return path

    def member(self, name, **configuration):
        if name not in self.members:
            self.members[name] = Member(name, self.configure(name, **configuration), self.folder / f"{name}.log")
        return self.members[name]

    def start(self, name, environment=None, **configuration):
        member = self.member(name, **configuration)
        assert not member.alive()
        member.environment = environment or member.environment
        member.begins = member.log.stat().st_size if member.log.exists() else 0
        with open(member.log, "a") as log:
            member.process = subprocess.Popen([self.program, "run", "--config", member.path], stdin=subprocess.DEVNULL, stdout=log,
                                              stderr=log, env=os.environ | member.environment)
        member.paused = False
        return member

    def wait(self, condition, what=""):
        def look():
            if found := condition():
                return found
            for member in self.members.values():
                if member.process and member.process.poll() not in (None, 0, -signal.SIGKILL):
                    raise AssertionError(f"{member.name} ended with {member.process.returncode}\n{self.tails()}")
            return None

        return wait(look, lambda: f"{what}\n{self.tails()}")

    def started(self, *names):
        for name in names or self.members:
            self.wait(self.members[name].port, f"{name} does not start")

    def tails(self):
        return "".join(f"--- {m.name}\n" + "".join(m.log.read_text(errors="replace").splitlines(True)[-15:])
                       for m in self.members.values() if m.log.exists())

    # What may happen to an agent.

    def kill(self, name):
        self.kills += 1
        self.faults.append((time.monotonic(), "kill", name))
        self.members[name].process.kill()
        self.members[name].process.wait()

    def pause(self, name):
        self.pauses += 1
        self.faults.append((time.monotonic(), "pause", name))
        self.members[name].paused = True
        self.members[name].process.send_signal(signal.SIGSTOP)
        # The signal alone lets it go on for a moment, in which it can end what it is to be paused in.
        os.waitid(os.P_PID, self.members[name].process.pid, os.WSTOPPED | os.WEXITED | os.WNOWAIT)

    def go_on(self, name):
        self.members[name].paused = False
        self.members[name].process.send_signal(signal.SIGCONT)

    def ask_to_end(self, name):
        self.ends += 1
        self.faults.append((time.monotonic(), "end", name))
        self.members[name].process.send_signal(signal.SIGTERM)

    def end(self, name):
        self.ask_to_end(name)
        code = self.members[name].process.wait(LONGEST)
        assert code == 0, f"{name} ended with {code}\n{self.tails()}"

    def close(self):
        for member in self.members.values():
            if member.alive():
                member.process.kill()
                member.process.wait()

    # What the fleet is doing.

    def working(self):
        return [m for m in self.members.values() if m.alive() and not m.paused]

    def picture(self, name=None):
        """GET /api/v1/agents, of one agent."""
        member = self.members[name] if name else self.working()[0]
        status, text = member.get("/api/v1/agents")
        assert status == 200, text
        return json.loads(text)["agents"]

    def asked_all(self, since, count=1):
        """Whether each test was asked for since then."""
        return all(sum(when > since for when, _ in self.source.asked[test]) >= count for test in self.tests)

    def quiet(self, since=None):
        """Until each test has run from then, or from now on."""
        since = since or time.monotonic()
        self.wait(lambda: self.asked_all(since), "not every test is run")

    def missing(self):
        told = {(test, self.source.number(test, when)) for _, _, _, test, when in self.sink.told()}
        return [change for change in self.source.changes if change not in told]

    def settle(self):
        """Until each change has arrived."""
        wait(lambda: not self.missing(), lambda: f"{len(self.missing())} changes were not told: {self.missing()[:10]}\n{self.tails()}")

    def storm(self, seconds, seed, each=3.0, changes=1.0, pause=(1, 60), fewest=1):
        """At random: every `each` seconds something happens to an agent, and `changes` a second come into the data."""
        rng, until = random.Random(seed), time.monotonic() + seconds
        happens, comes, back, names = time.monotonic() + each, time.monotonic(), [], sorted(self.members)
        while (now := time.monotonic()) < until or back:
            for item in [item for item in back if item[0] <= now or now >= until]:
                back.remove(item)
                _, name, paused = item
                self.go_on(name) if paused else self.start(name)
            if now < until and now >= comes:
                self.source.change(rng.choice(self.tests))
                comes += rng.expovariate(changes)
            if now < until and now >= happens:
                happens = now + rng.expovariate(1 / each)
                working = [m.name for m in self.working() if m.port()]
                if len(working) > fewest:
                    name, what = rng.choice(working), rng.random()
                    if what < 0.4:
                        self.kill(name)
                        back.append((now + rng.uniform(0, 20), name, False))
                    elif what < 0.75:
                        self.pause(name)
                        back.append((now + rng.uniform(*pause), name, True))
                    else:
                        self.ask_to_end(name)
                        self.members[name].process.wait(LONGEST)
                        back.append((now + rng.uniform(0, 10), name, False))
                        self.joins += 1
            waiting.pause(0.05, "the pace of the storm")
        assert names == sorted(self.members)


def note(**figures):
    """Prints figures of a test, and adds them as a line to the file HUNTER_TEST_FIGURES, for docs/operate/fleet.md."""
    line = json.dumps(figures)
    print(line)
    if path := os.environ.get("HUNTER_TEST_FIGURES"):
        with open(path, "a") as out:
            out.write(line + "\n")


# What an agent says of a message that it may have sent, though another agent, or itself, sends it again: each is one message.
DOUBTS = ["lease expired and taken over by other agents", "delivery failed, will retry", "exiting with messages in flight"]


def verdict(fleet, sql):
    """What came of it: figures for a table, of which those that may not be are checked. `sql` asks the database."""
    source, told = fleet.source, fleet.sink.told()
    first, twice, strange, posts = {}, [], [], {}
    for when, key, number, test, at in told:
        change = test, source.number(test, at)
        posts.setdefault(key, set()).add(when)
        if change not in source.changes:
            strange.append((test, at))
        elif change not in first:
            first[change] = when, key
        elif first[change][1] != key:  # or it is the same message: its sender did not know that it had arrived
            twice.append((change, first[change][1], key))
    late = sorted(first[change][0] - source.changes[change] for change in first)
    rows = sql("SELECT test, metric, time, count(*) FROM changes GROUP BY 1, 2, 3 HAVING count(*) > 1")
    count = sql("SELECT count(*) FROM changes")[0][0]
    again = sum(len(times) - 1 for times in posts.values())
    doubts = sum(m.log.read_text(errors="replace").count(text) for m in fleet.members.values() for text in DOUBTS)
    figures = {"changes": len(source.changes), "told": len(first), "messages": len(posts), "again": again, "twice": len(twice),
               "strange": len(strange), "rows": count, "rows_twice": len(rows), "kills": fleet.kills, "pauses": fleet.pauses,
               "ends": fleet.ends, "doubts": doubts, "median": round(late[len(late) // 2], 1) if late else None, "slowest": round(late[-1], 1) if late else None}
    assert not strange and not twice, f"{figures}\nstrange: {strange[:5]}\ntwice: {twice[:5]}\n{fleet.tails()}"
    assert len(first) == len(source.changes) == count and not rows, f"{figures}\n{rows[:5]}\n{fleet.missing()[:10]}"
    assert again <= fleet.kills + fleet.pauses + doubts, \
        f"{figures}\n{ {key: sorted(times) for key, times in posts.items() if len(times) > 1} }\n{fleet.faults}\n{fleet.tails()}"
    return figures
