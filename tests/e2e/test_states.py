"""What the pages of states ask the API for: tests with their configuration, what a silence would select, the agent's status, clusters."""
import json
import re
import urllib.parse

import pytest
from agent import Agent, bot, config, csv_test, write_csv
from state_address import KIND

SECRET = "s3cret-canary-81"


def ask(agent, path, **parameters):
    status, text = agent.get(f"/api/v1/{path}?{urllib.parse.urlencode(parameters)}")
    answer = json.loads(text)
    assert status == 200 or "error" in answer, text
    return status, answer


def names(agent, **parameters):
    return [test["name"] for test in ask(agent, "tests", **parameters)[1]["tests"]]


@pytest.fixture(scope="module")
def agent(program, tmp_path_factory):
    """Tests that are well, one that fails, names like markup, and a source that nobody answers."""
    folder = tmp_path_factory.mktemp("states")
    write_csv(folder / "read.csv", [(30, 1.2)])
    write_csv(folder / "calm.csv", [])
    tests = csv_test(folder / "read.csv", "db.read", "    tags: [Storage]") + csv_test(folder / "calm.csv", "db.calm", "    stale_after: never")
    tests += csv_test(folder / "missing.csv", "web.lost") + csv_test(folder / "calm.csv", '"<b>bold</b>"')
    tests += '  eu.up: {type: prometheus, source: eu, query: up, step: 1h, metrics: {p50: {}}}\n'
    source = f'sources: {{eu: {{type: prometheus, url: "http://ann:{SECRET}@127.0.0.1:1/x?k={SECRET}", headers: {{X: {SECRET}}}, retry_for: 0s}}}}\n'
    agent = Agent(program, config(folder, tests, f"{source}test_groups: {{all: {{tests: [db.read, web.lost]}}}}"))
    agent.wait(lambda: ask(agent, "tests", state="new")[1]["total"] == 0 and ask(agent, "changes", open="true")[1]["changes"])
    yield agent
    assert agent.end() == 0


def test_search(agent):
    assert names(agent) == ["<b>bold</b>", "db.calm", "db.read", "eu.up", "web.lost"]
    assert names(agent, q="DB") == ["db.calm", "db.read"]
    assert names(agent, q="  storage  db ") == ["db.read"]  # all words, in any of its texts
    assert names(agent, q="p50") == ["eu.up"] and names(agent, q="prometheus") == ["eu.up"] and names(agent, q="<b>") == ["<b>bold</b>"]
    assert names(agent, q="nothing") == []
    assert names(agent, test="db.*", q="calm") == ["db.calm"]
    status, page = ask(agent, "tests", q="db", limit=1)
    assert (page["total"], page["next"]) == (2, "db.calm") and names(agent, q="db", limit=1, after=page["next"]) == ["db.read"]
    assert ask(agent, "tests", q="x" * 501)[0] == ask(agent, "tests", q="x " * 17)[0] == 400


def test_states(agent):
    answer = ask(agent, "tests", q="db")[1]
    elsewhere = {} if KIND == "file" else {"elsewhere": 0}
    assert answer["states"] == {"failing": 0, "stale": 1, "new": 0, "ok": 1, "running": answer["states"]["running"], **elsewhere}
    assert names(agent, state="failing") == ["eu.up", "web.lost"] and names(agent, state="failing,ok", q="web") == ["web.lost"]
    assert ask(agent, "tests", state="ok")[1]["states"]["failing"] == 2  # of all, whatever is listed
    assert names(agent, state="stale", q="db") == ["db.read"]  # its points are of 2024
    status, answer = ask(agent, "tests", state="failing,broken")
    assert status == 400 and '"broken"' in answer["error"]
    well, old, lost = (ask(agent, "tests", test=name)[1]["tests"][0] for name in ("db.calm", "db.read", "web.lost"))
    assert (well["state"], well["last_point"], well["stale"]) == ("ok", "2024-03-03T11:00:00Z", False)
    assert (old["state"], old["last_point"], old["stale"]) == ("stale", "2024-03-03T11:00:00Z", True)
    assert (lost["state"], lost["last_point"]) == ("failing", None) and "no such file" in lost["problem"]


def test_configuration(agent):
    shown = ask(agent, "configuration", test="eu.up")[1]
    assert SECRET not in json.dumps(shown)
    options = {(section["of"], option["name"]): option for section in shown["sections"] for option in section["options"]}
    assert options["server", "url"]["value"] == "http://***@127.0.0.1:1/x?***" and options["server", "url"]["hidden"]
    assert options["server", "headers"]["value"] == "X=***"
    assert (options["source", "query"]["value"], options["source", "query"]["default"]) == ("up", False)
    assert (options["test", "interval"]["value"], options["test", "interval"]["default"]) == ("1s", True)
    shown = ask(agent, "configuration", test="db.read")[1]
    assert shown["groups"] == ["all"] and shown["receivers"] == ["stdout"] and shown["file"].endswith("hunter.yaml") and shown["line"] > 1
    assert [section["of"] for section in shown["sections"]] == ["test", "source", "detection", "metric"]
    assert ask(agent, "configuration", test="db.*")[0] == 404 and ask(agent, "configuration")[0] == 400


def test_preview(agent):
    answer = ask(agent, "silences/preview", matchers=" test=~'db.*' ")[1]
    change = answer["first_changes"][0]
    assert (answer["matchers"], answer["problem"], answer["warning"]) == ('test=~"db.*"', None, None)
    assert (answer["tests"], answer["first_tests"], answer["open_changes"]) == (2, ["db.read", "db.calm"], 1)
    assert (change["test"], change["metric"], change["regression"]) == ("db.read", "p99", True) and 19 < change["size"] < 21
    assert ask(agent, "silences/preview", matchers="group=all")[1]["first_tests"] == ["db.read", "web.lost"]
    assert "did you mean" in ask(agent, "silences/preview", matchers="metrik=p99")[1]["warning"]
    # Whoever is typing is told where it goes wrong, which is no failed request.
    status, answer = ask(agent, "silences/preview", matchers='test="db')
    assert status == 200 and re.search(r"column \d+", answer["problem"]) and (answer["tests"], answer["first_changes"]) == (0, [])
    costly = ask(agent, "silences/preview", matchers="test=~'(.*.*.*)*[;!]'")[1]
    assert (costly["problem"], costly["tests"], costly["open_changes"]) == ("matching takes too long: (.*.*.*)*[;!]", 0, 0)
    assert ask(agent, "silences/preview")[0] == 400
    assert ask(agent, "silences")[1]["silences"] == []  # nothing was added


def test_status(agent):
    status = ask(agent, "status")[1]
    assert SECRET not in json.dumps(status)
    assert status["version"] == ask(agent, "me")[1]["version"] and status["unready"] is None and status["clock"]["wrong"] is False
    assert status["configuration"]["tests"] == 5 and status["configuration"]["last_reload_successful"] is True
    assert status["state"]["bytes"] > 0 and status["state"]["problem"] is None
    sources = {source["name"]: source for source in status["sources"]}
    assert (sources["eu"]["address"], sources["eu"]["tests"], sources["eu"]["failing"]) == ("http://***@127.0.0.1:1/x?***", 1, 1)
    assert "Connection refused" in sources["eu"]["problem"]
    assert (sources["csv"]["address"], sources["csv"]["tests"], sources["csv"]["failing"], sources["csv"]["up"]) == (None, 4, 1, True)
    agent.wait(lambda: not ask(agent, "status")[1]["sources"][1 if sources["csv"] is status["sources"][0] else 0]["up"])  # three failures
    receiver = agent.wait(lambda: next((r for r in ask(agent, "status")[1]["receivers"] if r["waiting"] == 0 and r["destinations"]), None))
    assert (receiver["name"], receiver["type"]) == ("stdout", "stdout") and receiver["destinations"][0]["last_sent"]


def test_what_waits(agents, tmp_path, slack):
    """A receiver that is down: what waits, since when, and why; then it is sent. Routes as a tree."""
    write_csv(tmp_path / "read.csv", [(30, 1.2)])
    routes = """
routes:
  receivers: [slack]
  routes:
    - {match: 'test=~"db.*"', at_least: 5%, verdict: regression, continue: true}
    - {match: 'metric="x"', receivers: []}
"""
    path = config(tmp_path, csv_test(tmp_path / "read.csv"), bot(slack) + routes)
    down = path.read_text().replace(slack.api, "http://127.0.0.1:1/")
    up = path.read_text()
    path.write_text(down)
    agent = agents(path)
    agent.wait(lambda: any(receiver["waiting"] for receiver in ask(agent, "status")[1]["receivers"]))
    agent.wait_log("delivery failed")
    status = ask(agent, "status")[1]
    receiver = next(receiver for receiver in status["receivers"] if receiver["name"] == "slack")
    waits = receiver["destinations"][0]
    assert (waits["destination"], waits["waiting"], waits["state"], waits["last_sent"]) == ("#perf", 1, "retrying", None)
    assert waits["since"] == receiver["since"] and waits["attempts"] >= 1 and "Connection refused" in waits["problem"]
    root = status["routes"]
    assert (root["match"], root["receivers"], [len(route["routes"]) for route in root["routes"]]) == ("", ["slack"], [0, 0])
    first, second = root["routes"]
    assert (first["match"], first["at_least"], first["verdict"], first["continue"], first["receivers"]) == (
        'test=~"db.*"', 5, "regression", True, ["slack"])
    assert (second["match"], second["receivers"], second["file"].endswith("hunter.yaml")) == ('metric="x"', [], True)
    path.write_text(up)
    agent.get("/-/healthy")
    agent.process.send_signal(1)
    slack.wait(lambda: len(slack.posts) == 1)
    agent.wait(lambda: ask(agent, "status")[1]["receivers"][0]["destinations"][0]["last_sent"])
    waits = ask(agent, "status")[1]["receivers"][0]["destinations"][0]
    assert (waits["state"], waits["waiting"], waits["since"]) == ("idle", 0, None) and "Connection refused" in waits["problem"]
    assert agent.end() == 0


def test_clusters(agents, tmp_path):
    """The last round: the shape that series share, its members, and the change that people triage; failed rounds keep it."""
    for i in range(6):
        write_csv(tmp_path / f"{i}.csv", [(30, 1.2 if i < 4 else 1)])
    tests = "".join(csv_test(tmp_path / f"{i}.csv", f"web.{i}" if i else '"<b>web"') for i in range(6))
    groups = """
test_groups:
  all: {type: cluster, tests: ['<b>web', web.1, web.2, web.3, web.4, web.5], interval: 1s}
  other: {type: cluster, tests: [web.4, web.5], interval: 1h}
"""
    agent = agents(config(tmp_path, tests, groups))
    agent.wait(lambda: all(group["last"] for group in ask(agent, "clusters")[1]["groups"]))
    answer = ask(agent, "clusters")[1]
    assert ([group["name"] for group in answer["groups"]], answer["total"], answer["next"]) == (["all", "other"], 2, None)
    group = ask(agent, "clusters", group="all")[1]["groups"][0]
    last, (cluster,) = group["last"], group["last"]["clusters"]
    assert (group["tests"], group["failing"], last["series"], last["points"], last["found"]) == (6, False, 6, 60, 1)
    assert (cluster["members"], cluster["worse"], cluster["sign"], cluster["time"]) == (4, True, 1, "2024-03-02T06:00:00Z") and 19 < cluster["size"] < 21
    assert {member["test"] for member in cluster["first_members"]} == {"<b>web", "web.1", "web.2", "web.3"}
    assert (cluster["commit_before"], cluster["commit_after"]) == ("c0029", "c0030")
    assert len(last["times"]) == len(cluster["centroid"]) == 60 and max(cluster["centroid"][:30]) < 0 < min(cluster["centroid"][30:])
    change = ask(agent, "changes", test="all")[1]["changes"][0]
    assert (change["id"], change["members"]) == (cluster["change"], 4)
    assert ask(agent, "clusters", limit=1)[1]["next"] == "all" and ask(agent, "clusters", after="all")[1]["groups"][0]["name"] == "other"
    assert ask(agent, "clusters", group="none")[1]["groups"] == [] and ask(agent, "clusters", limit=0)[0] == 400
    # The inbox has them in one group; what only is in the other group of type cluster, which found nothing, is not there.
    # They are an incident once they are announced.
    agent.wait(lambda: {group["key"]: sorted(row["test"] for row in group["changes"]) for group in ask(agent, "inbox", by="incident")[1]["groups"]} == {
        f"i{change['id']}": sorted(["all", "<b>web", "web.1", "web.2", "web.3"])})
    inbox = ask(agent, "inbox", by="incident")[1]
    assert ask(agent, "inbox", matchers='group="all"')[1]["total"] == 5 and ask(agent, "inbox", matchers='group!="all"')[1]["total"] == 0
    for i in range(4):
        (tmp_path / f"{i}.csv").unlink()
    agent.wait(lambda: ask(agent, "clusters", group="all")[1]["groups"][0]["failing"])
    agent.wait(lambda: len(ask(agent, "clusters", group="all")[1]["groups"][0]["rounds"]) == 10)
    agent.wait(lambda: sum(bool(found["problem"]) for found in ask(agent, "clusters", group="all")[1]["groups"][0]["rounds"]) == 9)
    group = ask(agent, "clusters", group="all")[1]["groups"][0]
    assert "4 of 6 tests failed" in group["rounds"][0]["problem"] and group["last"]["clusters"][0]["change"] == cluster["change"]
    assert agent.end() == 0
