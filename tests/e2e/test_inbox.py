"""/api/v1/inbox: what people go through, in groups of one cause, the worst first; and saying something of many that somebody else sees, too."""
import urllib.parse

import pytest
from agent import Agent, ask, config, csv_test, on_demand, port_of, post, write_csv

HOSTILE = '"<script>alert(1)</script>\\u202e"'


@pytest.fixture(scope="module")
def running(program, tmp_path_factory):
    """Two regressions and an improvement of one commit, a regression of another, and one that nobody knows a commit of."""
    folder = tmp_path_factory.mktemp("inbox")
    for name, steps in (("read", [(30, 1.5)]), ("write", [(30, 1.2)]), ("good", [(30, 0.7)]), ("late", [(40, 1.3)]), ("plain", [(50, 1.1)])):
        write_csv(folder / f"{name}.csv", steps)
    lines = (folder / "plain.csv").read_text().splitlines()
    (folder / "plain.csv").write_text("\n".join(",".join(line.split(",")[::2]) for line in lines) + "\n")
    tests = "".join(csv_test(folder / f"{name}.csv", f"db.{name}", "    owner: team-{metric}\n" if name == "late" else "")
                    for name in ("read", "write", "good", "late"))
    tests += csv_test(folder / "plain.csv", HOSTILE).replace("attributes: [commit]", "attributes: []")
    agent = Agent(program, on_demand(config(folder, tests + "test_groups: {rw: [db.read, db.write]}\n")))
    agent.wait_metric("hunter_runs_total", 5)
    agent.port = port_of(agent)
    agent.wait(lambda: all(change["announced"] for change in ask(agent.port, "/api/v1/changes").json["changes"]))
    agent.ids = {change["test"]: change["id"] for change in ask(agent.port, "/api/v1/changes").json["changes"]}
    assert len(agent.ids) == 5, agent.ids
    yield agent
    assert agent.end() == 0


def inbox(agent, **parameters):
    answer = ask(agent.port, "/api/v1/inbox?" + urllib.parse.urlencode(parameters))
    assert answer.status == 200, answer.json
    return answer.json


def named(answer):
    return sorted(change["test"] for group in answer["groups"] for change in group["changes"])


def test_groups_of_one_cause(running):
    answer = inbox(running)
    assert (answer["total"], answer["waiting"], answer["worse"], answer["group_count"], answer["more"], answer["next"]) == (5, 5, 4, 3, False, None)
    assert answer["owners"] == ["team-p99"]
    first = answer["groups"][0]
    assert (first["kind"], first["name"]) == ("incident", "c0030")
    assert (first["count"], first["waiting"], first["worse"], first["better"], first["version"]) == (3, 3, 2, 1, 0)
    # The worst first, improvements after regressions.
    assert [change["test"] for change in first["changes"]] == ["db.read", "db.write", "db.good"]
    assert [group["kind"] for group in answer["groups"]] == ["incident"] * 3
    assert {(group["key"], change['incident']) for group in answer["groups"] for change in group["changes"]} == {
        (group["key"], group["key"]) for group in answer["groups"]}
    known = {change["id"]: change for change in ask(running.port, "/api/v1/changes").json["changes"]}
    for group in answer["groups"]:
        for change in group["changes"]:
            same = known[change["id"]]
            assert {key: same[key] for key in change if key not in ("commit", "suspects", "triage")} == \
                {key: change[key] for key in change if key not in ("commit", "suspects", "triage")}
            assert same["triage"].items() >= change["triage"].items()
    assert first["changes"][0]["suspects"] == 1 and answer["groups"][2]["changes"][0]["commit"] is None


@pytest.mark.parametrize(("parameters", "found"), [
    ({"matchers": 'test=~"db.*", test!="db.late"'}, ["db.good", "db.read", "db.write"]),
    ({"matchers": 'commit!="c0030"'}, ["<script>", "db.late"]), # of one without a commit that is missing, and passes
    ({"matchers": 'group="rw"'}, ["db.read", "db.write"]), ({"matchers": 'direction="improvement"'}, ["db.good"]),
    ({"text": "DB wri"}, ["db.write"]), ({"text": "c0040"}, ["db.late"]), ({"text": " "}, 5), ({"matchers": " "}, 5),
    ({"verdict": "better"}, ["db.good"]), ({"verdict": "worse"}, 4), ({"owner": "TEAM-p99"}, ["db.late"]), ({"owner": ""}, 4),
    ({"test": "db.*"}, 4), ({"test": "db.read"}, ["db.read"]), ({"triage": "fixed"}, []), ({"state": "confirmed,moved"}, 5), ({"open": "true"}, 4)])
def test_filters(running, parameters, found):
    answer = inbox(running, **parameters)
    if isinstance(found, int):
        assert answer["total"] == found
    else:
        assert [test if test.startswith("db.") else "<script>" for test in named(answer)] == found and answer["total"] == len(found)


def test_groups_and_order(running):
    assert {group["name"] for group in inbox(running, by="test")["groups"]} == set(running.ids)
    assert [group["kind"] for group in inbox(running, by="none")["groups"]] == ["change"] * 5
    by_size = [change["size"] for group in inbox(running, by="none")["groups"] for change in group["changes"]]
    assert by_size[:4] == sorted(by_size[:4], reverse=True) and by_size[4] < 0
    assert sorted((group["kind"], group["key"]) for group in inbox(running, by="commit")["groups"] if group["count"] > 1) == [("commit", "commit:c0030")]
    # The whole of one is listed, and selected to be triaged.
    key = inbox(running)["groups"][0]["key"]
    assert named(inbox(running, incident=key)) == ["db.good", "db.read", "db.write"]
    for more, tests in (("", ["db.good", "db.read", "db.write"]), ("&open=true", ["db.read", "db.write"]), ("&test=db.read", ["db.read"]), ("&test=db.late", []),
                        ("&test=db.*e&open=true", ["db.write"])):
        listed = ask(running.port, f"/api/v1/changes?incident={key}{more}").json["changes"]
        assert sorted(change["test"] for change in listed) == tests, more
    status, answer = post(running.port, "/api/v1/triage", incident=key, state="expected", dry_run="true", person="ann")
    assert (status, answer["changed"], answer["count"]) == (200, 3, 3), answer
    status, answer = post(running.port, "/api/v1/triage", incident="i999", state="expected", person="ann")
    assert status == 404 and "the incident i999" in answer["error"], answer
    answer = ask(running.port, "/api/v1/changes?incident=i999")
    assert answer.status == 400 and "there is no incident i999" in answer.json["error"], answer
    times = [group["latest"] for group in inbox(running, by="none", sort="latest")["groups"]]
    assert times == sorted(times, reverse=True)


def test_pages(running):
    found, after = [], 0
    while after is not None:
        answer = inbox(running, by="none", limit=2, after=after)
        found += [change["id"] for group in answer["groups"] for change in group["changes"]]
        after = answer["next"]
    assert sorted(found) == sorted(running.ids.values())
    group = inbox(running, rows=1)["groups"][0]
    assert len(group["changes"]) == 1 and group["next"] == 1
    none = inbox(running, rows=0)["groups"][0]
    assert none["changes"] == [] and none["next"] == 0, none
    rest = inbox(running, **{"in": group["key"], "after": 1})["groups"][0]
    assert rest["count"] == 3 and rest["next"] is None and [change["test"] for change in rest["changes"]] == ["db.write", "db.good"]
    assert inbox(running, **{"in": "commit:none"})["groups"] == [] and inbox(running, after=9000)["groups"] == []


@pytest.mark.parametrize(("matchers", "told"), [
    ("test", "column 5: expected"), ('test=~"(', "column 7: the quotation mark is not closed"), ('test=~"("', "column "),
    ('test=~"(.*a){20}x"', None)])
def test_matchers_that_are_being_typed(running, matchers, told):
    answer = inbox(running, matchers=matchers)
    if told:
        assert answer["problem"].startswith(told) and (answer["total"], answer["groups"], answer["next"]) == (0, [], None), answer
    else:
        assert answer["problem"] is None


@pytest.mark.parametrize(("parameters", "told"), [
    ({"by": "incidnt"}, 'did you mean "incident"'), ({"by": "commit,test"}, 'by: "commit,test" is none of incident, commit, '), ({"incident": "x1"}, "incident: "),
    ({"verdict": "bad"}, "verdict: "), ({"sort": "up"}, "sort: "), ({"after": "-1"}, "after: "), ({"limit": "501"}, "limit: "), ({"rows": "x"}, "rows: "),
    ({"state": "gone"}, "state: "), ({"text": "a " * 17}, "text: more than 16 words"), ({"before": "1"}, "unknown parameter")])
def test_wrong_requests(running, parameters, told):
    answer = ask(running.port, "/api/v1/inbox?" + urllib.parse.urlencode(parameters))
    assert answer.status == 400 and told in answer.json["error"], answer.json


def test_two_people_and_many_changes(running):
    """The sum of the versions says whether all are as they were seen."""
    group = inbox(running)["groups"][0]
    ids = [change["id"] for change in group["changes"]]
    status, answer = post(running.port, f"/api/v1/changes/{ids[1]}/triage", state="infra", person="bob", version=0)
    assert status == 200, answer
    status, answer = post(running.port, "/api/v1/triage", ids=",".join(map(str, ids)), state="expected", version=group["version"])
    assert status == 409 and (answer["changed"], answer["count"]) == (0, 3), answer
    assert f"change {ids[1]} is infra now, as bob said at" in answer["error"]
    assert {change["id"]: change["triage"]["state"] for change in answer["changes"]} == {ids[0]: "open", ids[1]: "infra", ids[2]: "open"}
    group = inbox(running)["groups"][0]
    assert (group["version"], group["waiting"]) == (1, 2) and [change["test"] for change in group["changes"]][-1] == "db.write"
    status, answer = post(running.port, "/api/v1/triage", ids=",".join(map(str, ids)), state="expected", version=1)
    assert status == 200 and answer["changed"] == 3, answer
    # The same again, with what was seen before that: nothing is changed, and nothing is wrong.
    status, answer = post(running.port, "/api/v1/triage", ids=",".join(map(str, ids)), state="expected", version=1)
    assert status == 200 and answer["changed"] == 0, answer
    assert named(inbox(running, triage="expected")) == ["db.good", "db.read", "db.write"]


def test_without_a_direction_it_is_changed(agents, tmp_path):
    """Neither worse nor better wherever it is shown, and what is only the end of another change waits for nobody."""
    either = {"direction: -1": "direction: 0"}
    write_csv(tmp_path / "up.csv", [(30, 1.5)])
    write_csv(tmp_path / "over.csv", [(20, 1.8), (40, 1 / 1.8)], points=80)
    write_csv(tmp_path / "worse.csv", [(30, 1.1)])
    tests = "".join(csv_test(tmp_path / f"{name}.csv", name).replace(*next(iter(either.items()))) for name in ("up", "over"))
    agent = agents(on_demand(config(tmp_path, tests + csv_test(tmp_path / "worse.csv", "worse"))))
    agent.wait_metric("hunter_runs_total", 3)
    agent.port = port_of(agent)
    known = ask(agent.port, "/api/v1/changes").json["changes"]
    states = {(change["test"], change["state"], change["ends"] is not None, change["regression"], change["direction"]) for change in known}
    assert states == {("up", "confirmed", False, False, 0), ("over", "recovered", False, False, 0), ("over", "confirmed", True, False, 0),
                      ("worse", "confirmed", False, True, -1)}
    begun, end = (next(change for change in known if change["test"] == "over" and change["state"] == state) for state in ("recovered", "confirmed"))
    assert end["ends"] == begun["id"]
    # The worse first, although it is smaller.
    waiting = ask(agent.port, "/api/v1/changes?open=true").json["changes"]
    assert sorted(change["test"] for change in waiting) == ["up", "worse"]
    answer = inbox(agent, by="none", state="confirmed,moved")
    assert [(change["test"], change["direction"], change["regression"]) for group in answer["groups"] for change in group["changes"]] == [
        ("worse", -1, True), ("up", 0, False)]
    assert (answer["total"], answer["waiting"], answer["worse"]) == (2, 2, 1)
    assert [(group["worse"], group["better"]) for group in answer["groups"]] == [(1, 0), (0, 0)]
    assert named(inbox(agent, verdict="changed")) == ["over", "up"] and named(inbox(agent, verdict="better")) == []
    preview = ask(agent.port, "/api/v1/silences/preview?" + urllib.parse.urlencode({"matchers": 'test=~"up|over|worse"'})).json
    assert preview["open_changes"] == 2
    assert {(change["test"], change["direction"], change["regression"]) for change in preview["first_changes"]} == {("up", 0, False), ("worse", -1, True)}
    one = ask(agent.port, f"/api/v1/changes/{end['id']}").json
    assert one["change"]["ends"] == begun["id"]
    assert agent.end() == 0
