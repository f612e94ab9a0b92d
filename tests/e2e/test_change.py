"""/api/v1/changes/ID, which the page of a change shows: the change, its test, and what is related to it."""
import json

from agent import ask, config, csv_test, on_demand, port_of, post, write_csv
from test_access import ANN, BOB, TIM, USERS, begin, prepare
from test_agent_api import wait_for_change
from test_cluster import write_config, write_files

LINKS = """    commit_url: "https://git.example/app/commit/{commit}"
    compare_url: "https://git.example/app/compare/{before}...{after}"
"""


def ids_of(port):
    return {f"{change['test']} {change['series']}": change["id"] for change in ask(port, "/api/v1/changes?limit=1000").json["changes"]}


def story(port, number, query=""):
    answer = ask(port, f"/api/v1/changes/{number}{query}")
    assert answer.status == 200, answer.json
    return answer.json


def related(found):
    return {one["test"]: one["relations"] for one in found["siblings"]}


def test_a_change_and_its_siblings(agents, tmp_path):
    """db.read and db.write changed with c0030; db.late is only in the same message, db.calm in none."""
    for name, steps in (("read", [(30, 1.5)]), ("write", [(30, 1.2)]), ("late", [(45, 1.8)]), ("calm", [])):
        write_csv(tmp_path / f"{name}.csv", steps)
    tests = "".join(csv_test(tmp_path / f"{name}.csv", f"db.{name}", LINKS) for name in ("read", "write", "late", "calm"))
    path = on_demand(config(tmp_path, tests, agent="  external_url: https://perf.example\n"))
    agent = agents(path)
    agent.wait_metric("hunter_runs_total", 4)
    port = port_of(agent)
    ids = ids_of(port)
    agent.wait(lambda: all(change["announced"] for change in ask(port, "/api/v1/changes").json["changes"]))
    listed = {change["id"]: change for change in ask(port, "/api/v1/changes").json["changes"]}
    found = story(port, ids["db.read p99"])
    assert found["change"] == listed[ids["db.read p99"]]
    assert found["links"] == {"commit": "https://git.example/app/commit/c0030", "compare": "https://git.example/app/compare/c0029...c0030",
                              "suspects": ["https://git.example/app/commit/c0030"]}
    test = found["test"]
    assert (test["kind"], test["failing"], test["problem"], test["interval_seconds"]) == ("test", False, None, 86400)
    assert test["last_run"] and test["next_run"] > test["last_run"]
    assert (found["last_point"], found["ended"], found["cluster"], found["silence"]) == ("2024-03-03T11:00:00Z", None, None, None)
    assert found["matchers"] == [{"of": "series", "matchers": 'test="db.read", metric="p99"'}, {"of": "test", "matchers": 'test="db.read"'},
                                 {"of": "commit", "matchers": 'commit="c0030"'}]
    [points] = found["plot"]["lines"]
    assert len(points["times"]) == len(points["values"]) == 60 and points["times"] == sorted(points["times"])
    assert abs(points["values"][29] - 100) < 5 and abs(points["values"][30] - 150) < 5
    assert all(len(one["plot"]["lines"][0]["times"]) == 60 for one in found["siblings"])
    relations = related(found)
    assert "commit" in relations["db.write"] and "db.calm" not in relations and "db.read" not in relations
    assert found["siblings"][0]["test"] == "db.write" and found["siblings_total"] == len(found["siblings"])
    one = found["siblings"][0]
    assert {key: one[key] for key in ("id", "regression", "triage", "state", "unit")} == {
        "id": ids["db.write p99"], "regression": True, "triage": "open", "state": "confirmed", "unit": "ms"}
    # A page at a time.
    few = story(port, ids["db.late p99"], "?limit=1")
    assert len(few["siblings"]) <= 1 and few["siblings_total"] >= len(few["siblings"])
    for wrong in ("0", "101", "x"):
        assert ask(port, f"/api/v1/changes/{ids['db.read p99']}?limit={wrong}").status == 400
    # What is silenced and by whom, and what somebody has said.
    assert post(port, "/api/v1/silences", matchers='test="db.read"', **{"for": "2h"}, reason="migration", person="ann")[0] == 200
    assert post(port, f"/api/v1/changes/{ids['db.write p99']}/triage", state="expected", person="ann")[0] == 200
    found = story(port, ids["db.read p99"])
    assert (found["silence"]["reason"], found["silence"]["person"], found["silence"]["matchers"]) == ("migration", "ann", 'test="db.read"')
    assert found["siblings"][0]["triage"] == "expected"
    assert story(port, ids["db.write p99"])["silence"] is None
    assert ask(port, "/api/v1/changes/999").json["error"] == "there is no change 999"
    assert ask(port, "/api/v1/changes/999").status == 404
    assert ask(port, "/api/v1/changes/x").status == 404
    assert agent.end() == 0


def test_a_cluster_and_its_members(agents, tmp_path):
    write_files(tmp_path)
    path = write_config(tmp_path, agent="interval: 1d, group_wait: 0s")
    agent = agents(path)
    agent.wait_log("msg=sent")
    port = port_of(agent)
    ids = ids_of(port)
    cluster = next(number for name, number in ids.items() if name.startswith("all "))
    found = story(port, cluster, "?limit=100")
    members = [one for one in found["siblings"] if "cluster" in one["relations"]]
    assert found["siblings"][:20] == members
    assert found["test"] == {"kind": "cluster"} and found["cluster"] is None and found["change"]["members"] == 20
    assert len(members) == 20 and all("gpu" in one["test"] and one["metric"].startswith("draw") for one in members)
    assert found["matchers"][0] == {"of": "cluster", "matchers": 'test="all"'}
    # The cluster is the first of a member's siblings.
    found = story(port, members[3]["id"])
    assert found["cluster"] == cluster and found["siblings"][0]["id"] == cluster
    assert len(found["siblings"]) == 12 and found["siblings_total"] == 20
    assert all("cluster" in one["relations"] for one in found["siblings"])
    assert agent.end() == 0


def test_one_that_is_gone_and_one_that_was_pruned(agents, hunter, tmp_path):
    """Of a test that is not configured any more the change is still shown, until it is pruned."""
    write_csv(tmp_path / "read.csv", [(30, 1.5)])
    write_csv(tmp_path / "write.csv", [])
    path = on_demand(config(tmp_path, csv_test(tmp_path / "read.csv")))
    assert hunter("run", "--once", "--config", path).code == 0
    path.write_text(path.read_text().replace("read", "write"))
    agent = agents(path)
    port = port_of(agent)
    found = story(port, 1)
    assert found["test"] is None and found["change"]["test"] == "db.read" and found["links"]["commit"] is None
    assert agent.end() == 0
    assert "forgotten: 1 changes" in hunter("store", "prune", "--older-than", "0s", "--config", path).out
    agent = agents(path)
    port = port_of(agent)
    answer = ask(port, "/api/v1/changes/1")
    assert answer.status == 404 and answer.json["error"] == "change 1 was settled and pruned"
    assert ask(port, "/api/v1/changes/2").json["error"] == "there is no change 2"
    assert agent.end() == 0


def test_roles_and_strange_names(agents, hunter, tmp_path):
    """A viewer is not told from where others acted; names go through as they are."""
    path = prepare(tmp_path, USERS)
    name = '<script>alert(1)</script> \u202e "quoted", {a="b"}'
    write_csv(tmp_path / "read.csv", [(30, 1.5)], name=name)
    path.write_text(path.read_text().replace("{p99:", "{" + json.dumps(name) + ":"))
    agent = begin(agents, path)
    assert wait_for_change(hunter, path) == 1
    found = ask(agent.port, "/api/v1/changes/1", headers=BOB).json
    assert found["change"]["metric"] == name
    assert found["matchers"][0]["matchers"] == 'test="db.read", metric="<script>alert(1)</script> \\u202e \\"quoted\\", {a=\\"b\\"}"'
    form = {"Content-Type": "application/x-www-form-urlencoded"}
    assert ask(agent.port, "/api/v1/changes/1/triage", "POST", body="state=infra", headers=BOB | form).status == 403
    assert ask(agent.port, "/api/v1/changes/1/triage", "POST", body="state=infra", headers=TIM | form).status == 200
    for person, origin in ((BOB, None), (ANN, "127.0.0.1")):
        history = ask(agent.port, "/api/v1/changes/1", headers=person).json["change"]["history"]
        said = next(event for event in history if event["event"] == "triaged")
        assert (said["person"], said["origin"]) == ("tim", origin)
    assert ask(agent.port, "/api/v1/changes/1").status == 401
    assert agent.end() == 0
