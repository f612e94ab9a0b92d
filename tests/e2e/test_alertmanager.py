"""Changes as alerts of a real Alertmanager: they fire, are sent again, and end, with its groups, silences and inhibitions."""
import datetime
import json
import pathlib
import re
import subprocess

import servers
from test_run import START, agents, config, csv_test, write_csv  # noqa: F401 (agents is a fixture)

FAST = "resend: 2s"
HASH = "$2b$04$RuiUl1Ee4mbVTqChyCJBbuWZrRaDpesBpVnQ9ZGSLYGdvtE39mfBW"  # of c4n4ry-pass
DOCS = pathlib.Path(__file__).parents[2] / "docs/receivers.md"


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
    """What docs/receivers.md says, word by word: regressions reach the team, improvements nobody, and a silence holds."""
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
