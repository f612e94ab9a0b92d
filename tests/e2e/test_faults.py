"""Broken servers, proxies and networks, beside a good test: what fails says so, and nothing else is harmed.

Whatever the server does (see faulty.py): the bad test fails with exit code 3 and a message that names the test and the
server and no secret; the good one has all its points; time and memory are bounded; no point is lost or made up.
"""
import concurrent.futures
import json
import re
import subprocess
import sys
import urllib.parse
from typing import NamedTuple

import faulty
import pytest
from waiting import LONGEST

START, MINUTE, POINTS = 1709251200, 60, 20  # 2024-03-01 00:00:00 UTC
VALUES = [str(10 + i * i % 7) for i in range(POINTS)]
SECRETS = ("canary-token", "canary-header", "canary-user", "canary-password", "canary")
MEMORY = 110 << 10  # KiB: an answer of at most 64 MB, and the program

# Runs a program and notes its peak memory, which would begin at this process's own if it were forked from here.
LAUNCHER = """
import os, sys
child = os.posix_spawn(sys.argv[2], sys.argv[2:], os.environ)
_, status, usage = os.wait4(child, 0)
open(sys.argv[1], "w").write(str(usage.ru_maxrss))
sys.exit(os.waitstatus_to_exitcode(status) & 255)
"""


class Prometheus:
    name, values = "prometheus", VALUES
    nothing = b'{"status": "success", "data": {"resultType": "matrix", "result": []}}'

    @staticmethod
    def test(word):
        return f"{{type: prometheus, query: '{word}'}}"

    @classmethod
    def good(cls, _, part=1):
        """All of the points, or the first half of them, ..."""
        values = cls.values[: len(cls.values) // part]
        return json.dumps({"status": "success", "data": {"resultType": "matrix", "result": [
            {"metric": {"__name__": "good"}, "values": [[START + MINUTE * i, v] for i, v in enumerate(values)]}]}}).encode()

    @staticmethod
    def lacking(body):
        return b'{"isPartial": true, ' + body[1:]

    @staticmethod
    def with_value(body, value):
        return body.replace(b'"%s"' % VALUES[2].encode(), b'"%s"' % value, 1)

    @staticmethod
    def with_stamp(body, stamp):
        return body.replace(b"%d" % (START + 2 * MINUTE), stamp, 1)


class Graphite:
    """Answers in whichever format is asked for."""
    name, values, nothing = "graphite", VALUES, b"[]"

    @staticmethod
    def test(word):
        return f"{{type: graphite, prefix: '{word}', metrics: {{m: {{suffix: good}}}}}}"

    @classmethod
    def good(cls, request, part=1):
        values = cls.values[: len(cls.values) // part]
        asked = urllib.parse.unquote_plus(request.decode(errors="replace"))
        path = asked.split(" ")[1].split("?")[0]
        target = re.search(r"[?&\n](?:target|query)=([^&\s]+)", asked)
        if not path.endswith("/render") and not path.endswith("/render/"):
            return b"[]"
        name, end = target[1] if target else "good", START + MINUTE * len(values)
        if "format=raw" in asked:
            return f"{name},{START},{end},{MINUTE}|{','.join(v + '.0' for v in values)}\n".encode()
        return json.dumps([{"target": name, "datapoints": [[float(v), START + MINUTE * i] for i, v in enumerate(values)]}]).encode()

    @staticmethod
    def with_value(body, value):
        return body.replace(b"%s.0" % VALUES[2].encode(), value, 1)

    @staticmethod
    def with_stamp(body, stamp):
        return body.replace(b"%d" % START, stamp, 1)


KINDS = {kind.name: kind for kind in (Prometheus, Graphite)}

# What the bad test's message says, besides its name and the server.
FAIL = {
    "cut_body": "transfer closed with 30 bytes remaining",
    "cut_chunk": "transfer closed|incomplete|chunk",
    "cut_unannounced": "not an answer",
    "half_close": "transfer closed with 30 bytes remaining",
    "drip": "no complete response within 1s",
    "silence": "no complete response within 1s",
    "reset": "reset by peer|Recv failure",
    "reset_within": "reset by peer|Recv failure|transfer closed",
    "huge": "exceeds max_body .64000000 bytes",
    "huge_announced": "exceeds max_body .64000000 bytes",
    "bomb": "exceeds max_body .64000000 bytes",
    "bad_gzip": "decod|gzip|content encoding",
    "page": "status 200 with an HTML page: a login page",
    "stamp": "not an answer|timestamp",
    "latin": "not an answer|valid",
    "nul": "not an answer|valid",
    "deep": "not an answer",
    "deep_within": "not an answer",
    "empty": "not an answer|empty",
    "no_content": "status 204",
    "alien": "the server does not speak HTTP",
    "long_head": "response headers are too large",
    "always": r"status 500: the disk is full",
    "limit_hour": "status 429: not now",
    "limit_ever": "status 429: slow down",
    "redirect": r"omitted \(response of http://127\.0\.0\.1:\d+ after a redirect, without credentials\)",
    "loop": "status 302: a redirect, which is not followed",
}
# What succeeds when it is asked again, and after how many seconds at least.
AGAIN = {"then_good": 0.2, "busy": 0.2, "limit": 0.2, "limit_zero": 0.2, "limit_one": 0.95, "limit_date": 0.95,
         "limit_past": 0.2, "limit_rubbish": 0.2}

# Faults that are not asked again: it would not help, or the server said when, and that is too late. Huge
# answers are another matter: Graphite is asked once more in the other format, Prometheus for halves, six times.
ONCE = {"cut_unannounced", "page", "stamp", "latin", "nul", "deep", "deep_within", "empty", "no_content", "limit_hour", "redirect"}
TOO_MUCH = {"huge", "huge_announced", "bomb"}

# libcurl asks again by itself, up to five times, where a connection that was used before turns out to be dead.
DEAD_CONNECTIONS = {"reset"}

PACKED = ("packed", "packed_by_zstd")

# Graphite's raw format is plain text, so what breaks JSON there breaks nothing, or something else.
NOT_GRAPHITE = {"cut_unannounced", "stamp", "latin", "nul", "deep_within", "empty", "no_content"}


class Run(NamedTuple):
    code: int
    out: str
    err: str
    memory: int  # KiB
    server: faulty.Server
    elsewhere: faulty.Server

    def rows(self, test):
        """The points of a test's table: (time, value)."""
        found = re.search(rf"^{test}:\n(.*?)(\n\n|\Z)", self.out, re.M | re.S)
        table = found[1] if found else ""
        return [(line[:19], line.split()[-1]) for line in table.splitlines() if line.startswith("2024-03-01 00:")]


TOKEN = "bearer_token: canary-token"
USER = "username: canary-user, password: canary-password"


def config(kind, url, faults, credentials, timeout):
    tests = "".join(f"  bad_{fault}: {kind.test('fault_' + fault)}\n" for fault in faults)
    return (f"{kind.name}: {{url: '{url}', timeout: {timeout}, {credentials}, headers: {{X-Key: canary-header}}}}\n"
            f"tests:\n{tests}  good: {kind.test('good')}\n  fine: {kind.test('fine')}\n")


def run(program, folder, kind, faults, credentials=TOKEN, timeout="1s"):
    folder.mkdir()
    with faulty.Server(kind) as elsewhere, faulty.Server(kind, elsewhere.url) as server:
        elsewhere.elsewhere = server.url
        (folder / "hunter.yaml").write_text(config(kind, server.url, faults, credentials, timeout))
        done = subprocess.run([sys.executable, "-S", "-E", "-c", LAUNCHER, folder / "memory", program, "analyze", "--config",
                               folder / "hunter.yaml", "--since", "2024-03-01", "--until", "2024-03-02"],
                              capture_output=True, text=True, encoding="utf-8", timeout=LONGEST)
    return Run(done.returncode, done.stdout, done.stderr, int((folder / "memory").read_text()), server, elsewhere)


@pytest.fixture(scope="module", params=KINDS.values(), ids=KINDS)
def kind(request, program):
    """A kind of server that this program has a source for."""
    found = subprocess.run([program, "validate", "--config", "/dev/stdin", "--output", "json"], capture_output=True, text=True,
                           input=f"{request.param.name}: {{url: 'http://127.0.0.1/'}}\ntests: {{t: {request.param.test('t')}}}\n")
    if json.loads(found.stdout)["unsupported"]:
        pytest.skip(f"this version has no source {request.param.name}")
    return request.param


@pytest.fixture(scope="module")
def runs(kind, program, tmp_path_factory):
    """A run of the program for each fault, several at once, as most of them wait most of the time."""
    folder = tmp_path_factory.mktemp(kind.name)
    faults = [*FAIL, *AGAIN, *PACKED, "overflow"]

    def start(fault):
        return run(program, folder / fault, kind, [fault], timeout="20s" if fault in TOO_MUCH else "1s")

    with concurrent.futures.ThreadPoolExecutor(6) as pool:
        return dict(zip(faults, pool.map(start, faults)))


@pytest.fixture(scope="module")
def measured(program):
    """Whether memory says something about the program: a sanitizer has its own."""
    with open(program, "rb") as file:
        return not re.search(rb"__(asan|tsan|msan)_init", file.read())


def complete(found, test, missing=()):
    expected = [(f"2024-03-01 00:{i:02}:00", value) for i, value in enumerate(VALUES)]
    rows = found.rows(test)
    assert [row for i, row in enumerate(rows) if i not in missing] == \
        [row for i, row in enumerate(expected) if i not in missing], found.out + found.err
    assert len(rows) == len(expected)


def bounded(found, measured):
    assert not measured or found.memory < MEMORY
    assert not any(secret in found.out + found.err for secret in SECRETS)
    assert len(found.err) < 4000


@pytest.mark.parametrize("fault", FAIL)
def test_a_fault_fails_its_test_only(runs, kind, measured, fault):
    if kind is Graphite and fault in NOT_GRAPHITE:
        pytest.skip("it is no fault in Graphite's format")
    found = runs[fault]
    assert found.code == 3, found.out + found.err
    bounded(found, measured)
    complete(found, "good")
    complete(found, "fine")
    assert found.rows(f"bad_{fault}") == []
    line = next(line for line in found.err.splitlines() if f'test "bad_{fault}"' in line)
    assert found.server.url in line and re.search(FAIL[fault], line), line
    times = len(found.server.times_of(fault))
    if fault in ONCE:
        assert times == 1
    elif fault in TOO_MUCH:
        assert times == (2 if kind is Graphite else 7)
    elif fault == "loop":
        assert times == 6
    else:
        assert 3 <= times <= (18 if fault in DEAD_CONNECTIONS else 3)


@pytest.mark.parametrize("fault", AGAIN)
def test_what_passes_is_asked_again(runs, measured, fault):
    found = runs[fault]
    assert found.code == 0, found.err
    bounded(found, measured)
    for test in ("good", "fine", f"bad_{fault}"):
        complete(found, test)
    first, second = found.server.times_of(fault)[:2]
    assert second - first >= AGAIN[fault]


@pytest.mark.parametrize("packing", PACKED)
def test_packed_answers(runs, measured, packing):
    found = runs[packing]
    assert found.code == 0, found.err
    bounded(found, measured)
    complete(found, f"bad_{packing}")
    assert re.search(rb"(?i)accept-encoding: [^\r]*gzip", found.server.requests[0])


def test_a_value_beyond_a_double_costs_that_point_only(runs, measured):
    found = runs["overflow"]
    assert found.code == 0, found.err
    bounded(found, measured)
    complete(found, "good")
    complete(found, "bad_overflow", missing=[2])
    assert not re.search(r"\d", found.rows("bad_overflow")[2][1].replace("00:02:00", "")), found.out


@pytest.mark.parametrize("credentials,sent", [(TOKEN, b"Bearer canary-token"), (USER, b"Basic Y2FuYXJ5LXVzZXI6Y2FuYXJ5LXBhc3N3b3Jk")],
                         ids=["token", "user"])
def test_secrets_stay_with_their_server(program, kind, measured, tmp_path, credentials, sent):
    found = run(program, tmp_path / "redirect", kind, ["redirect"], credentials)
    assert found.code == 3
    bounded(found, measured)
    assert all(sent in request and b"canary-header" in request for request in found.server.requests)
    assert len(found.elsewhere.requests) == 1
    assert b"fault_page" in found.elsewhere.requests[0]
    assert b"canary" not in found.elsewhere.requests[0] and b"authorization" not in found.elsewhere.requests[0].lower()


def test_all_faults_at_once(program, kind, measured, tmp_path):
    """One process, every fault: the good tests are as good, and memory is still bounded."""
    found = run(program, tmp_path / "all", kind, [*FAIL, *AGAIN])
    assert found.code == 3, found.err
    complete(found, "good")
    complete(found, "fine")
    for fault in AGAIN:
        complete(found, f"bad_{fault}")
    assert not measured or found.memory < 2 * MEMORY  # several large answers come at the same time
    assert not any(secret in found.out + found.err for secret in SECRETS)
