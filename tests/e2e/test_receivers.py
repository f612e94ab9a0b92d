"""Every receiver that is reached over HTTP, through every fault: what passes is tried again and told once, what somebody has to
mend is said and kept, no secret is shown, and one that is slow or broken delays no other.

A receiver is a line of RECEIVERS. Its test has one agent with a receiver of that kind for each fault, each with a server of its
own behind a faulty front (front.py).
"""
import json
import re
import signal
import subprocess
from typing import Any, Callable, NamedTuple

import pytest
from agent import config, csv_test, write_csv
from fake_chats import Discord, Fake, Mattermost, Teams
from fake_grafana import Grafana
from fake_pagerduty import FakePagerDuty
from fake_slack import FakeSlack
from fake_trackers import GitHub, GitLab, Jira
from front import Front

SECRET = "se-cret0123456789se-cret01234567"


class Taker(Fake):
    """Takes any POST, once for each Idempotency-Key, as docs/configure/webhook.md asks of receivers; alerts by their labels."""

    def __init__(self):
        self.taken = {}
        super().__init__()

    def handle(self, method, path, query, headers, body, length):
        if method != "POST" or SECRET not in path + str(headers):
            return self.bad(404, {"message": "Not found"}, f"{method} {path}")
        for item in body if isinstance(body, list) else [body]:
            self.taken[headers.get("Idempotency-Key") or json.dumps(item["labels"], sort_keys=True)] = item
        return 200, {}, {}


class Kind(NamedTuple):
    server: Callable[[], Any]
    options: Callable[[Any], dict]  # of the receiver
    told: Callable[[Any], Any]  # what people can see: one of it, in the end
    # After an answer that was lost: "repeat": sending again does no harm; "look": it is looked for; "blind": it is sent again
    # a minute later.
    doubt: str
    by_status: bool  # only the status of an answer counts, so a page with status 200 is taken for success


RECEIVERS = {
    "alertmanager": Kind(Taker, lambda s: {"url": s.url, "bearer_token": SECRET}, lambda s: s.taken, "repeat", True),
    "discord": Kind(Discord, lambda s: {"url": s.webhook}, lambda s: s.posts, "blind", True),
    "github": Kind(GitHub, lambda s: {"url": s.url, "token": s.SECRET, "repository": "acme/shop"}, lambda s: s.issues, "look", False),
    "gitlab": Kind(GitLab, lambda s: {"url": s.url, "token": s.SECRET, "project": "acme/shop"}, lambda s: s.issues, "look", False),
    "grafana": Kind(Grafana, lambda s: {"url": s.url, "bearer_token": s.SECRET}, lambda s: s.annotations, "look", False),
    "jira": Kind(lambda: Jira(cloud=False), lambda s: {"url": s.url, "token": s.SECRET, "project": "PERF"}, lambda s: s.issues, "look", False),
    "mattermost": Kind(Mattermost, lambda s: {"url": s.webhook}, lambda s: s.posts, "blind", True),
    "msteams": Kind(Teams, lambda s: {"url": s.webhook}, lambda s: s.posts, "blind", True),
    "pagerduty": Kind(lambda: FakePagerDuty(SECRET), lambda s: {"url": s.url, "routing_key": SECRET}, lambda s: s.incidents, "repeat", False),
    "slack": Kind(lambda: FakeSlack(SECRET), lambda s: {"api_url": s.api, "bot_token": SECRET, "channels": ["#perf"]}, lambda s: s.posts, "look", False),
    "webhook": Kind(Taker, lambda s: {"url": f"{s.url}/hook/{SECRET}", "secret": SECRET}, lambda s: s.taken, "repeat", True),
}

PASSES = ("limited", "busy", "broken", "unheard", "silent", "alien", "lost", "page")
# What is wrong with the configuration, and the words that say so.
STAYS = {"denied": "401|Unauthorized|invalid_auth|not_authed", "redirect": "307|redirect"}
NOBODY = {"name": "resolve|nowhere", "certificate": "certificate"}


def base(kind, server):
    """Where the server is, without a path."""
    return re.search(r"http://127\.0\.0\.1:\d+", json.dumps(kind.options(server)))[0]


def stop(server):
    server.stop() if hasattr(server, "stop") else server.__exit__(None, None, None)


class Place(NamedTuple):
    server: Any
    front: Front


@pytest.fixture(scope="module")
def certificate(tmp_path_factory):
    folder = tmp_path_factory.mktemp("certificate")
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-keyout", "key.pem",
                    "-out", "cert.pem", "-days", "2", "-subj", "/CN=127.0.0.1", "-addext", "subjectAltName=IP:127.0.0.1"],
                   cwd=folder, check=True, capture_output=True)
    return folder / "cert.pem", folder / "key.pem"


@pytest.fixture
def places(certificate):
    """A server and its front for each fault."""
    made = {}

    def make(kind):
        for fault in (*PASSES, *STAYS, *NOBODY):
            server, elsewhere = kind.server(), ""
            if fault == "redirect":
                made["elsewhere"] = Place(kind.server(), None)
                elsewhere = base(kind, made["elsewhere"].server)
            front = Front(base(kind, server), "nothing" if fault in NOBODY else fault, elsewhere, certificate if fault == "certificate" else None)
            made[fault] = Place(server, front)
        return made

    yield make
    for place in made.values():
        if place.front:
            place.front.stop()
        stop(place.server)
        assert place.server.violations == []


def options_of(kind, fault, place):
    """The receiver's options, by way of the front."""
    text = json.dumps(kind.options(place.server) | {"timeout": "3s" if fault == "silent" else "20s", "connect_timeout": "10s"})
    text = text.replace(place.front.backend, place.front.url)
    return json.loads(re.sub(r"127\.0\.0\.1:\d+", "nowhere.invalid", text) if fault == "name" else text)


def lines_of(agent, fault, words):
    return [line for line in agent.log if f"receiver={fault}" in line and re.search(words, line)]


@pytest.mark.parametrize("name", RECEIVERS)
def test_faults(agents, tmp_path, places, name):
    kind = RECEIVERS[name]
    places = places(kind)
    faults = {fault: place for fault, place in places.items() if place.front}
    write_csv(tmp_path / "a.csv", [(30, 1.2)])
    receivers = {fault: {name: options_of(kind, fault, place)} for fault, place in faults.items()}
    path = config(tmp_path, csv_test(tmp_path / "a.csv"), f"receivers: {json.dumps(receivers)}")
    agent = agents(path)

    def failed(fault):
        return lines_of(agent, fault, "delivery failed, will retry")

    def sent(fault):
        return lines_of(agent, fault, "msg=sent")

    sends_blindly = [f for f in ("silent", "alien", "unheard", "lost") if kind.doubt == "blind"]
    passes = [f for f in PASSES if f not in sends_blindly and not (f == "page" and kind.by_status)]
    agent.wait(lambda: all(sent(fault) for fault in passes))
    agent.wait(lambda: all(failed(fault) for fault in (*sends_blindly, *STAYS, *NOBODY)))
    for fault in passes:
        assert len(failed(fault)) == 1 and len(sent(fault)) == 1, (fault, failed(fault), sent(fault))
        assert len(kind.told(faults[fault].server)) == 1, fault
    limited = faults["limited"].front.times
    assert limited[1] - limited[0] >= 1.95, "earlier than Retry-After"
    for fault in sends_blindly:  # not at once, as it may have arrived
        assert "wait_ms=60000" in failed(fault)[0], failed(fault)
        assert len(kind.told(faults[fault].server)) == (fault == "lost"), fault
    if kind.by_status:
        agent.wait(lambda: sent("page"))
    for fault, words in (STAYS | NOBODY).items():
        line = failed(fault)[0]
        assert re.search(words, line, re.I), line
        assert ("error" in line.split(" ", 2)[1]) == (fault in STAYS), line
        assert not sent(fault) and len(kind.told(faults[fault].server)) == 0, fault
    elsewhere = places["elsewhere"].server
    # What only reads may follow a redirect on the same host, without credentials.
    assert len(kind.told(elsewhere)) == 0 and all(r[0] == "GET" and r[2] == 401 for r in getattr(elsewhere, "requests", []))
    assert faults["certificate"].front.times == []
    waits = {fault: int(re.search(r"wait_ms=(\d+)", failed(fault)[0])[1]) for fault in STAYS}
    assert set(waits.values()) == {300000}, waits

    # Somebody has mended it and reloads.
    for fault in STAYS:
        faults[fault].front.fault, faults[fault].front.always = "nothing", False
    path.write_text(path.read_text() + "# mended\n")
    agent.process.send_signal(signal.SIGHUP)
    agent.wait(lambda: all(sent(fault) for fault in STAYS))
    for fault in STAYS:
        assert len(kind.told(faults[fault].server)) == 1, fault
    metrics = agent.get("/metrics")[1]
    assert re.search(r'hunter_deliveries_total\{[^}]*receiver="denied"[^}]*result="misconfigured"[^}]*\} [1-9]', metrics) or \
        re.search(r'hunter_deliveries_total\{[^}]*misconfigured[^}]*denied[^}]*\} [1-9]', metrics), metrics
    agent.end()
    shown = "".join(agent.log + agent.out) + metrics
    for secret in {SECRET, getattr(places["busy"].server, "SECRET", SECRET)}:
        assert secret not in shown


def test_all_at_once(agents, tmp_path):
    """None but one answers: that one is told meanwhile."""
    fronts, servers, receivers = [], [], {}
    for name, kind in RECEIVERS.items():
        servers.append(kind.server())
        url = base(kind, servers[-1])
        fronts.append(Front(url, "silent"))
        fronts[-1].always = True
        options = json.loads(json.dumps(kind.options(servers[-1])).replace(url, fronts[-1].url))
        receivers["silent-" + name] = {name: options | {"timeout": "1h"}}
    servers.append(Taker())
    receivers["well"] = {"webhook": RECEIVERS["webhook"].options(servers[-1])}
    write_csv(tmp_path / "a.csv", [(30, 1.2)])
    try:
        agent = agents(config(tmp_path, csv_test(tmp_path / "a.csv"), f"receivers: {json.dumps(receivers)}", "  grace: 100ms"))
        agent.wait(lambda: all(front.times for front in fronts) and servers[-1].taken)
        agent.wait_log("msg=sent.*receiver=well")
        assert len(re.findall("msg=sent", "".join(agent.log))) == 1
        agent.end()
    finally:
        for server in fronts + servers:
            stop(server)
