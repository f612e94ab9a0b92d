"""What happens, as it happens: server-sent events, resumed by id, and the same by polling."""
import contextlib
import http.client
import itertools
import json
import re
import signal
import urllib.parse

import pytest
from agent import csv_test, write_csv
from test_access import UnixConnection, ask, bearer, begin, make_certificate, prepare, secret_file, trusting, TOKEN, TOKENS
from waiting import LONGEST, wait

LISTENERS, OF_ONE = 200, 50


class Stream:
    """A client that reads events one by one."""

    def __init__(self, connection, after=None, headers=None):
        self.connection = connection
        connection.request("GET", "/api/v1/events", headers={
            "Accept": "text/event-stream", **({"Last-Event-ID": after} if after else {}), **(headers or {})})
        self.response = connection.getresponse()
        self.status, self.id = self.response.status, None

    def event(self):
        """The next event as (kind, data); an id alone is ("", None), and None the end of the stream."""
        kind, data, any_line = "", None, False
        for line in iter(self.response.readline, b""):
            name, _, value = line.decode().rstrip("\n").partition(": ")
            if line == b"\n" and any_line:
                return kind, data
            any_line |= name in ("id", "event", "data")
            if name == "id":
                self.id = value
            elif name == "event":
                kind = value
            elif name == "data":
                data = json.loads(value)
        return None

    def next(self, kind):
        """The data of the next event of that kind."""
        while (event := self.event()) is not None:
            if event[0] == kind:
                return event[1]
        raise AssertionError(f"the stream ended before {kind}")

    def close(self):
        self.response.close()
        self.connection.close()


@contextlib.contextmanager
def watching(agent, after=None, headers=None, of=1):
    stream = Stream(http.client.HTTPConnection("127.0.0.1", agent.port, timeout=LONGEST, source_address=(f"127.0.0.{of}", 0)), after, headers)
    with contextlib.closing(stream):
        assert stream.status == 200
        assert stream.event() in (("", None), ("reset", {}))
        yield stream


def post(agent, path, headers=None, **form):
    body = urllib.parse.urlencode(form)
    with contextlib.closing(http.client.HTTPConnection("127.0.0.1", agent.port, timeout=LONGEST)) as connection:
        connection.request("POST", path, body, {"Content-Type": "application/x-www-form-urlencoded", **(headers or {})})
        answer = connection.getresponse()
        return answer.status, json.loads(answer.read())


def poll(agent, after=None):
    return json.loads(ask(agent.port, path="/api/v1/events" + (f"?after={after}" if after else ""))[2])


def run(agent):
    return post(agent, "/api/v1/run", test="db.read")[1]


def test_what_happens_is_told(agents, tmp_path):
    agent = begin(agents, prepare(tmp_path, None))
    run(agent)  # the first one is over
    with watching(agent) as stream:
        write_csv(tmp_path / "read.csv", [(30, 1.2)])
        run(agent)
        change = stream.next("change")  # found by this run, or by the first one of the schedule
        number = change["id"]
        assert number > 0 and change == {"id": number, "test": "db.read", "metric": "p99", "state": "confirmed", "triage": "open", "regression": True,
                          "known": False}
        post(agent, f"/api/v1/changes/{number}/triage", state="expected", owner="ann", person="bea")
        assert stream.next("triage") == {"id": number, "test": "db.read", "metric": "p99", "state": "confirmed", "triage": "expected",
                                         "owner": "ann", "person": "bea", "version": 1}
        silence = post(agent, "/api/v1/silences", matchers='test="db.read"', **{"for": "1h"})[1]
        told = stream.next("silence")
        assert (told["id"], told["matchers"], told["ended"]) == (silence["id"], 'test="db.read"', False)
        assert post(agent, f"/api/v1/silences/{silence['id']}/end")[0] == 200
        assert stream.next("silence")["ended"]
        (tmp_path / "read.csv").rename(tmp_path / "away.csv")
        run(agent)
        told = stream.next("test")
        assert told["name"] == "db.read" and told["failing"] and "read.csv" in told["problem"], told
        run(agent)  # fails in the same way, which is no news
        (tmp_path / "away.csv").rename(tmp_path / "read.csv")
        run(agent)
        assert stream.next("test") == {"name": "db.read", "failing": False, "problem": None}
    # Those who poll are told the same.
    kinds = [event["event"] for event in poll(agent, stream.id.rpartition("-")[0] + "-0")["events"]]
    assert [kind for kind, _ in itertools.groupby(kinds)] == ["change", "triage", "silence", "test"], kinds
    # What people must not see is not in it, nor is an old level withdrawn in silence.
    write_csv(tmp_path / "read.csv", [])
    before = poll(agent)["id"]
    run(agent)
    assert [(e["event"], e["data"]["state"], e["data"]["known"]) for e in poll(agent, before)["events"]] == [("change", "withdrawn", True)]
    assert agent.end() == 0


def test_who_was_away_goes_on_where_they_were(agents, tmp_path):
    path = prepare(tmp_path, None)
    agent = begin(agents, path)
    with watching(agent) as stream:
        first = stream.id
    ids = []
    for i in range(3):
        post(agent, "/api/v1/silences", matchers=f'test="t{i}"', **{"for": "1h"})
    with watching(agent, first) as stream:
        for i in range(3):
            assert stream.next("silence")["matchers"] == f'test="t{i}"'
            ids.append(stream.id)
    with watching(agent, ids[1]) as stream:
        assert stream.next("silence")["matchers"] == 'test="t2"'
    answer = poll(agent, ids[0])
    assert [event["id"] for event in answer["events"]] == ids[1:] and answer["id"] == ids[2] and not answer["reset"], answer
    assert poll(agent, ids[2]) == {"events": [], "id": ids[2], "reset": False}
    # An id that is not of this agent: what it shows may lack anything.
    for wrong in ("x", "1-2", ids[2] + "0", "-", "18446744073709551615"):
        assert poll(agent, urllib.parse.quote(wrong)) == {"events": [], "id": ids[2], "reset": True}
        with contextlib.closing(Stream(http.client.HTTPConnection("127.0.0.1", agent.port, timeout=LONGEST), wrong)) as stream:
            assert stream.event() == ("reset", {}) and stream.id == ids[2]
    assert json.loads(ask(agent.port, path="/api/v1/me")[2])["events"] == ids[2]
    assert agent.end() == 0
    agent = begin(agents, path)
    with contextlib.closing(Stream(http.client.HTTPConnection("127.0.0.1", agent.port, timeout=LONGEST), ids[2])) as stream:
        assert stream.event() == ("reset", {}) and stream.id not in ids
    assert agent.end() == 0


def test_a_reload_ends_streams_and_is_told(agents, tmp_path):
    """What people may see can have changed with it, so they sign in again."""
    web = "tokens: [{name: ci, file: ci.token, role: viewer}, {name: robot, file: robot.token, role: admin}]\n"
    path = prepare(tmp_path, web)
    agent = begin(agents, path)
    headers, robot = bearer(TOKEN), bearer("robots-" + TOKEN)
    assert Stream(http.client.HTTPConnection("127.0.0.1", agent.port, timeout=LONGEST)).status == 401
    with watching(agent, headers=headers) as stream:
        path.write_text(path.read_text() + csv_test(tmp_path / "read.csv", "db.more"))
        assert post(agent, "/-/reload", robot)[0] == 200
        rest = list(iter(stream.event, None))
        after = stream.id
    assert rest in ([], [("configuration", {"tests": 2})])
    if not rest:
        with watching(agent, after, headers) as stream:
            assert stream.next("configuration") == {"tests": 2}
    with watching(agent, headers=headers) as stream:
        secret_file(tmp_path / "ci.token", "another-token-of-some-length\n")
        assert post(agent, "/-/reload", robot)[0] == 200
        list(iter(stream.event, None))
    assert Stream(http.client.HTTPConnection("127.0.0.1", agent.port, timeout=LONGEST), stream.id, headers).status == 401
    assert agent.end() == 0


@pytest.mark.parametrize("over", ["tls", "socket"])
def test_over(over, agents, tmp_path):
    web, listen = None, "127.0.0.1:0"
    if over == "tls":
        certificate = make_certificate(tmp_path, "server", "hunter.example")[0]
        web = TOKENS + "tls_server_config: {cert_file: server.pem, key_file: server.key}\n"
    else:
        listen = f"['127.0.0.1:0', 'unix:{tmp_path}/api.sock']"
    agent = begin(agents, prepare(tmp_path, web, listen))
    headers = bearer(TOKEN) if over == "tls" else {}

    def connection():
        if over == "tls":
            return http.client.HTTPSConnection("127.0.0.1", agent.port, timeout=LONGEST, context=trusting(certificate))
        return UnixConnection(tmp_path / "api.sock")

    with contextlib.closing(Stream(connection(), headers=headers)) as stream:
        assert stream.event() == ("", None)
        for i in range(3):
            with contextlib.closing(connection()) as other:
                body = urllib.parse.urlencode({"matchers": f'test="t{i}"', "for": "1h"})
                other.request("POST", "/api/v1/silences", body, {"Content-Type": "application/x-www-form-urlencoded", **headers})
                assert other.getresponse().status == 200
            assert stream.next("silence")["matchers"] == f'test="t{i}"'
        agent.process.send_signal(signal.SIGTERM)
        assert stream.event() is None
        assert agent.process.wait(LONGEST) == 0


def test_places(agents, tmp_path):
    """There is a limit; beyond it people poll; and who listens takes no place of others."""
    agent = begin(agents, prepare(tmp_path, None))
    with contextlib.ExitStack() as stack:
        streams = []
        for of in range(1, 1 + LISTENERS // OF_ONE):
            streams += [stack.enter_context(watching(agent, of=of)) for _ in range(OF_ONE)]
            refused = Stream(http.client.HTTPConnection("127.0.0.1", agent.port, timeout=LONGEST))
            assert refused.status == 503 and int(refused.response.headers["Retry-After"]) > 0
            assert "too many clients are listening: 200 may, of one address 50" in refused.response.read().decode()
            refused.close()
        before = poll(agent)["id"]
        post(agent, "/api/v1/silences", matchers='test="t"', **{"for": "1h"})
        for stream in streams:
            assert stream.next("silence")["matchers"] == 'test="t"'
        assert [event["event"] for event in poll(agent, before)["events"]] == ["silence"]
        assert ask(agent.port, path="/-/healthy")[0] == 200
        for stream in streams[:5]:
            stream.close()
        # That they have left is noticed when something is sent to them.
        def there_is_room():
            post(agent, "/api/v1/silences", matchers='test="u"', **{"for": "1h"})
            with contextlib.closing(Stream(http.client.HTTPConnection("127.0.0.1", agent.port, timeout=LONGEST))) as again:
                return again.status == 200

        wait(there_is_room)
        # The end waits for none of them.
        agent.process.send_signal(signal.SIGTERM)
        for stream in streams[5:]:
            while stream.event() is not None:
                pass
        assert agent.process.wait(LONGEST) == 0


def test_requests(agents, tmp_path):
    agent = begin(agents, prepare(tmp_path, None))
    assert ask(agent.port, path="/api/v1/events?before=1")[0] == 400
    assert ask(agent.port, "POST", "/api/v1/events")[0] == 405
    assert ask(agent.port, path="/api/v1/events", headers={"Sec-Fetch-Site": "cross-site", "Accept": "text/event-stream"})[0] == 403
    answer = ask(agent.port, "HEAD", "/api/v1/events", {"Accept": "text/event-stream"})
    assert answer[0] == 200 and answer[2] == "", answer
    with watching(agent) as stream:
        headers = stream.response.headers
        assert headers["Content-Type"] == "text/event-stream" and headers["Cache-Control"] == "no-store", headers
        assert headers["X-Accel-Buffering"] == "no" and re.fullmatch(r"[0-9a-f]+-0", stream.id), headers
    assert agent.end() == 0
