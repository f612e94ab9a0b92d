"""Changes as alerts of a real Alertmanager: they fire, are sent again, and end, with its groups, silences and inhibitions."""
import datetime
import json
import os
import pathlib
import random
import re
import signal
import subprocess

import servers
from agent import START, config, csv_test, write_csv
from waiting import pause

FAST = "resend: 2s"
HASH = "$2b$04$RuiUl1Ee4mbVTqChyCJBbuWZrRaDpesBpVnQ9ZGSLYGdvtE39mfBW"  # of c4n4ry-pass
DOCS = pathlib.Path(__file__).parents[2] / "docs/configure/receivers.md"


def section(*addresses, more=FAST):
    return "alertmanager: {urls: [%s], %s}" % (", ".join(f'"{a}"' for a in addresses), more)


def stamp(text):
    return datetime.datetime.fromisoformat(text.replace("Z", "+00:00"))


def test_alerts_say_what_changed(hunter, tmp_path):
    """One pass: labels that tell which series, annotations that tell what is known, an end unless it is sent again."""
    write_csv(tmp_path / "a.csv", [(30, 1.2)])
    write_csv(tmp_path / "b.csv", [(30, 0.7)])
    links = ('compare_url: "https://x.test/{before}...{after}", dashboard: "https://g.test/d?from={from}", '
             'runbook: "https://x.test/runbook/{test}", owner: team-db')
    tests = "".join(csv_test(tmp_path / f"{n}.csv", f"db.{w}", "".join(f"    {x}\n" for x in links.split(", ")))
                    for n, w in (("a", "read"), ("b", "write")))
    with servers.alertmanager(tmp_path) as server:
        path = config(tmp_path, tests, section(server.url, more='labels: {cluster: prod}, severity: critical'))
        before = datetime.datetime.now(datetime.timezone.utc)
        result = hunter("run", "--once", "--config", path)
        assert result.code == 0, result.err
        alerts = {a["labels"]["test"]: a for a in server.alerts()}
        read = alerts["db.read"]
        assert read["labels"] == {"alertname": "PerformanceRegression", "test": "db.read", "metric": "p99", "verdict": "regression",
                                  "severity": "critical", "change": read["labels"]["change"], "owner": "team-db", "cluster": "prod"}
        assert alerts["db.write"]["labels"]["alertname"] == "PerformanceImprovement"
        assert alerts["db.write"]["labels"]["severity"] == "info"
        told = read["annotations"]
        assert told["summary"].startswith("p99 of db.read: +20") and told["summary"].endswith(", regression")
        assert told["before"].endswith(" ms") and told["after"].endswith(" ms") and told["size"].startswith("+20")
        assert told["since"] == f"{START + datetime.timedelta(hours=30):%Y-%m-%dT%H:%M:%SZ}"
        assert told["runbook_url"] == "https://x.test/runbook/db.read" and told["suspects"].startswith("c0029 .. c0030")
        assert told["suspects_url"] == "https://x.test/c0029...c0030" and told["dashboard"] == read["generatorURL"]
        assert "c0029 .. c0030" in told["description"] and "→" in told["description"] and "\n" in told["description"]
        start, end = stamp(read["startsAt"]), stamp(read["endsAt"])
        assert before - datetime.timedelta(seconds=1) <= start and datetime.timedelta(minutes=19) < end - start < datetime.timedelta(minutes=21)
        assert told["firing_until"].startswith(f"{start + datetime.timedelta(days=7):%Y-%m-%dT%H:%M}")
        server.wait(lambda: len(server.told) == 2)  # grouped by alertname
        assert server.statuses() == [("db.read", "firing"), ("db.write", "firing")] or server.statuses() == [("db.write", "firing"), ("db.read", "firing")]


def test_all_instances_are_told(agents, tmp_path):
    """Each of them, and one that is down delays no other; it is told when it is back."""
    write_csv(tmp_path / "a.csv", [(30, 1.2)])
    with servers.alertmanager(tmp_path, name="one") as one:
        with servers.alertmanager(tmp_path, name="gone") as gone:
            pass
        agent = agents(config(tmp_path, csv_test(tmp_path / "a.csv"), section(one.url, gone.url)))
        one.wait(lambda: one.told)
        agent.wait_log("delivery failed, will retry")
        assert one.statuses() == [("db.read", "firing")]


def test_the_documented_setup(hunter, tmp_path):
    """What docs/configure/receivers.md says, word by word: regressions reach the team, improvements nobody, and a silence holds."""
    text = DOCS.read_text().partition("### Setting up an Alertmanager")[2]
    whole = re.search(r"```yaml\n(.*?)```", text, re.S)[1]
    section = re.search(r"Add `(alertmanager: .*?)` to hunter.yaml", text)[1]
    silence = re.search(r"`amtool \S+ (silence add [^`]*)`", text)[1]
    for name, factor in (("a", 1.2), ("b", 0.7), ("c", 1.3)):
        write_csv(tmp_path / f"{name}.csv", [(30, factor)])
    tests = "".join(csv_test(tmp_path / f"{n}.csv", t) for n, t in (("a", "db.read"), ("b", "db.write"), ("c", "checkout.latency")))
    with servers.alertmanager(tmp_path, whole=whole.replace("repeat_interval", "group_wait: 1s\n      repeat_interval")) as server:
        checked = subprocess.run(["amtool", "check-config", server.folder / "alertmanager.yml"], capture_output=True, text=True)
        assert checked.returncode == 0, checked.stderr
        server.tool(*silence.replace('"', "").split())
        path = config(tmp_path, tests, section.replace("http://localhost:9093", server.url))
        assert hunter("validate", "--config", path).code == 0
        assert hunter("run", "--once", "--config", path).code == 0
        server.wait(lambda: server.told)
        assert server.statuses() == [("db.read", "firing")]
        assert "PerformanceImprovement" in server.tool("alert")


def test_behind_tls_and_a_password(hunter, tmp_path):
    """Its own certificate, and a user; without the password the alert waits for somebody who gives it."""
    write_csv(tmp_path / "a.csv", [(30, 1.2)])
    servers.certificate(tmp_path)
    (tmp_path / "password").write_text("c4n4ry-pass\n")
    (tmp_path / "password").chmod(0o600)
    (tmp_path / "web.yml").write_text(
        f"tls_server_config: {{cert_file: {tmp_path}/server.crt, key_file: {tmp_path}/server.key}}\n"
        f"basic_auth_users: {{ann: '{HASH}'}}\n")
    with servers.alertmanager(tmp_path, arguments=[f"--web.config.file={tmp_path}/web.yml"]) as server:
        address = f"https://localhost:{server.port}"
        path = config(tmp_path, csv_test(tmp_path / "a.csv"), section(address, more=f"ca_file: {tmp_path}/server.crt"))
        refused = hunter("run", "--once", "--config", path)
        assert refused.code == 2 and "alertmanager: HTTP status 401" in refused.err and server.told == []
        config(tmp_path, csv_test(tmp_path / "a.csv"),
               section(address, more=f"ca_file: {tmp_path}/server.crt, username: ann, password_file: {tmp_path}/password"))
        assert hunter("run", "--once", "--config", path).code == 0
        server.wait(lambda: server.statuses() == [("db.read", "firing")])


def test_silences_and_inhibitions_are_alertmanagers(agents, tmp_path):
    """Its silence matches our labels, and an alert about the environment holds back what was measured there."""
    for name, steps in (("a", [(30, 1.2)]), ("b", [(30, 1.3)]), ("c", [(30, 1.4)])):
        write_csv(tmp_path / f"{name}.csv", steps)
    tests = "".join(csv_test(tmp_path / f"{n}.csv", f"db.{n}", f"    tags: [{n}]\n") for n in "abc")
    rule = ('inhibit_rules: [{source_matchers: ["alertname=HostBroken"], target_matchers: ["alertname=PerformanceRegression"], '
            'equal: [test]}]')
    with servers.alertmanager(tmp_path, more=rule) as server:
        server.tool("silence", "add", "--author=ann", "--comment=known", "test=db.a", "verdict=regression")
        server.post({"labels": {"alertname": "HostBroken", "test": "db.b"}})
        server.wait(lambda: server.told)
        agents(config(tmp_path, tests, section(server.url)))
        server.wait(lambda: server.statuses(alertname="PerformanceRegression"))
        assert set(server.statuses(alertname="PerformanceRegression")) == {("db.c", "firing")}
        states = {a["labels"]["test"]: a["status"] for a in server.alerts() if a["labels"]["alertname"] == "PerformanceRegression"}
        assert states["db.a"]["state"] == states["db.b"]["state"] == "suppressed"
        assert states["db.a"]["silencedBy"] and states["db.b"]["inhibitedBy"]


def ids(hunter, path):
    return {c["test"]: str(c["id"]) for c in json.loads(hunter("changes", "--output", "json", "--config", path).out)["changes"]}


def firing(server):
    """The tests whose alerts fire."""
    return sorted(a["labels"]["test"] for a in server.alerts() if stamp(a["endsAt"]) > datetime.datetime.now(datetime.timezone.utc))


def test_an_alert_ends_with_its_change(hunter, agents, tmp_path):
    """Triaged away, recovered, or withdrawn; what is open again fires again, as the same alert."""
    for name in "abc":
        write_csv(tmp_path / f"{name}.csv", [(30, 1.2)])
    tests = "".join(csv_test(tmp_path / f"{n}.csv", f"db.{n}") for n in "abc")
    with servers.alertmanager(tmp_path, "group_by: [test], group_wait: 100ms") as server:
        path = config(tmp_path, tests, section(server.url), "  group_interval: 1h")
        agent = agents(path)
        server.wait(lambda: {("db.a", "firing"), ("db.b", "firing"), ("db.c", "firing")} <= set(server.statuses()))
        known = ids(hunter, path)
        url = agent.address()
        assert hunter("triage", known["db.a"], "expected", "--note", "bigger cache", "--agent", url).code == 0
        server.wait(lambda: ("db.a", "resolved") in server.statuses())
        assert hunter("triage", known["db.a"], "open", "--agent", url).code == 0
        server.wait(lambda: server.statuses(test="db.a") == [("db.a", "firing"), ("db.a", "resolved"), ("db.a", "firing")])
        write_csv(tmp_path / "b.csv", [(30, 1.2), (60, 1 / 1.2)], points=120)
        server.wait(lambda: ("db.b", "resolved") in server.statuses())
        write_csv(tmp_path / "c.csv", [])
        server.wait(lambda: ("db.c", "resolved") in server.statuses())
        assert firing(server) == ["db.a"]
        status, = {a["annotations"].get("status") for a in server.alerts() if a["labels"]["test"] == "db.a"}
        assert "open again" in status


def test_alerts_fire_while_the_agent_runs(agents, tmp_path):
    """They are sent again before they end; killed, nothing is left firing; started again, they fire again."""
    write_csv(tmp_path / "a.csv", [(30, 1.2)])
    with servers.alertmanager(tmp_path, "group_by: [test], group_wait: 100ms") as server:
        path = config(tmp_path, csv_test(tmp_path / "a.csv"), section(server.url))
        agent = agents(path)
        server.wait(lambda: server.statuses())
        first = server.alerts()[0]
        ends = stamp(first["endsAt"])
        server.wait(lambda: stamp(server.alerts()[0]["endsAt"]) > ends + datetime.timedelta(seconds=5))
        assert server.statuses() == [("db.read", "firing")]
        assert server.alerts()[0]["startsAt"] == first["startsAt"] and server.alerts()[0]["fingerprint"] == first["fingerprint"]
        agent.end(signal.SIGKILL)
        server.wait(lambda: server.statuses()[-1:] == [("db.read", "resolved")])
        agents(path)
        server.wait(lambda: server.statuses()[-1:] == [("db.read", "firing")])


def test_firing_for(agents, tmp_path):
    """An alert ends although its change stands, and the log says so."""
    write_csv(tmp_path / "a.csv", [(30, 1.2)])
    with servers.alertmanager(tmp_path, "group_by: [test], group_wait: 100ms") as server:
        agent = agents(config(tmp_path, csv_test(tmp_path / "a.csv"), section(server.url, more=FAST + ", firing_for: 6s")))
        server.wait(lambda: ("db.read", "resolved") in server.statuses())
        assert "resolved after firing for 6s" in agent.wait_log("firing for")


def test_another_address(agents, tmp_path):
    """An Alertmanager that replaces another is sent what fires."""
    write_csv(tmp_path / "a.csv", [(30, 1.2)])
    with servers.alertmanager(tmp_path, name="old") as old:
        agent = agents(config(tmp_path, csv_test(tmp_path / "a.csv"), section(old.url)))
        old.wait(lambda: old.told)
        agent.end()
    with servers.alertmanager(tmp_path, name="new") as new:
        agents(config(tmp_path, csv_test(tmp_path / "a.csv"), section(new.url)))
        new.wait(lambda: new.statuses() == [("db.read", "firing")])


TIMES = 100 if os.environ.get("HUNTER_TEST_FULL") else 5


def test_killed_while_it_fires_and_resolves(hunter, agents, tmp_path):
    """Whenever it is killed, what stands fires in the end, and what was triaged away does not."""
    for name in "ab":
        write_csv(tmp_path / f"{name}.csv", [(30, 1.2)])
    tests = "".join(csv_test(tmp_path / f"{n}.csv", f"db.{n}") for n in "ab")
    dice = random.Random(14)
    with servers.alertmanager(tmp_path, "group_by: [test], group_wait: 100ms") as server:
        path = config(tmp_path, tests, section(server.url, more="resend: 10m"))
        agent = agents(path)
        server.wait(lambda: firing(server) == ["db.a", "db.b"])
        known = ids(hunter, path)
        for i in range(TIMES):
            state, left = ("expected", ["db.b"]) if i % 2 == 0 else ("open", ["db.a", "db.b"])
            assert hunter("triage", known["db.a"], state, "--note", "x", "--agent", agent.address()).code == 0
            pause(dice.uniform(0, 0.3), "the moment of the kill: between what was said and what Alertmanager is told")
            agent.end(signal.SIGKILL)
            agent = agents(path)
            server.wait(lambda: firing(server) == left)
