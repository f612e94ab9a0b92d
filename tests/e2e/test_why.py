"""`hunter-c why`: each way in which a change is told, or is dropped, is explained as what it is."""
import csv
import datetime
import json
import math
import random
import re

import pytest
from agent import START, ask, config, on_demand, port_of
from state_address import drop_state, open_state

HOUR, DAY = datetime.timedelta(hours=1), datetime.timedelta(days=1)


def normal(seed, points):
    source = random.Random(seed)
    return [100 + source.gauss(0, 1) for _ in range(points)]


def flat(points=300):
    return normal(1, points)


def step(at, percent, points=300, seed=1):
    return [v + percent * (i >= at) for i, v in enumerate(normal(seed, points))]


def spike(at, length, height=30, points=300):
    return [v + height * (at <= i < at + length) for i, v in enumerate(normal(2, points))]


def ramp(at, length, height, points=300):
    return [v + height * min(max(i - at, 0), length) / length for i, v in enumerate(normal(3, points))]


def tails(points=300):
    """From 200 on one value in five is far above the others: the mean moves, the ranks hardly do."""
    source = random.Random(8)
    return [v + 12 * (i >= 200 and source.random() < 0.2) for i, v in enumerate(normal(4, points))]


def daily(points=24 * 21):
    return [v + (30 if 8 <= i % 24 < 18 else 0) for i, v in enumerate(normal(5, points))]


def write(path, values, apart):
    with open(path, "w", newline="") as out:
        rows = csv.writer(out)
        rows.writerow(["time", "commit", "p99"])
        for i, value in enumerate(values):
            rows.writerow([(START + i * apart).isoformat(), f"c{i:05d}", f"{value:.4f}"])


def configured(tmp_path, values, extra="", agent="", apart=DAY):
    write(tmp_path / "data.csv", values, apart)
    return config(tmp_path, f"""
  db.read:
    type: csv
    file: {tmp_path}/data.csv
    attributes: [commit]
    metrics: {{p99: {{direction: -1, unit: ms}}}}
{extra}
""", agent=agent)


def why(hunter, path, *at):
    done = hunter("why", "--config", path, "db.read", "p99", *at, "--output", "json")
    assert done.code == 0, done.err
    return json.loads(done.out)


def fates(found, first, last):
    return {tried["fate"] for tried in found["tried"] if first <= tried["index"] <= last}


def test_a_step_stands_and_the_smallest_is_measured(hunter, tmp_path):
    path = configured(tmp_path, step(200, 8))
    found = why(hunter, path)
    assert (found["verdict"], found["place"], found["index"]) == ("would_tell", "last_change", 200)
    assert found["change"]["commit_after"] == "c00200" and found["change"]["regression"]
    assert found["arrival"]["told"] and not found["state"] and found["record"] is None
    power = found["power"]
    assert power["evened"] and not power["added"]
    for side in (power["up"], power["down"]):
        sizes = side["sizes"]
        assert sizes[0]["size"] == 50 and sizes[0]["told"] == 5
        told = [one["size"] for one in sizes if one["told"]]
        assert side["smallest"] == min(told) <= 5 and told == sorted(told, reverse=True)
        assert sizes[-1]["size"] == 1 or sizes[-1]["told"] is None
    # By its commit, and a part of it, it is the same.
    assert why(hunter, path, "c00200")["verdict"] == "would_tell"
    text = hunter("why", "--config", path, "db.read", "p99", "c00200")
    assert "verdict: a standing change" in text.out and "smallest change that would be announced:" in text.out


def test_the_smallest_is_what_the_agent_tells(hunter, tmp_path):
    """Put into the file by hand, that step is told by a replay and the next smaller one is not."""
    power = why(hunter, configured(tmp_path, flat()))["power"]
    place = round((datetime.datetime.fromisoformat(power["time"].replace("Z", "+00:00")) - START) / DAY)
    assert place == 300 - 24
    smallest = power["up"]["smallest"]
    below = power["up"]["sizes"][-1]["size"]
    assert below < smallest, power
    for percent in (smallest, below):
        values = [v * (1 + percent / 100 * (i >= place)) for i, v in enumerate(flat())]
        path = configured(tmp_path, values, agent="  evaluation_delay: 0")
        done = hunter("replay", "--config", path, "--from", (START + place * DAY).isoformat(), "--to",
                      (START + 300 * DAY).isoformat(), "--interval", "1d", "--output", "json")
        assert done.code == 0, done.err
        near = {(START + i * DAY).strftime("%Y-%m-%dT%H:%M:%SZ") for i in range(place - 5, place + 6)}
        times = [one["time"] for one in json.loads(done.out)["changes"] if one["told"] and one["time"] in near]
        assert bool(times) == (percent == smallest), (percent, times)


@pytest.mark.parametrize("values, at, fate, options", [
    (spike(200, 3), 200, "excursion", ""),
    (ramp(120, 120, 30), 200, "ramp", ""),
    (tails(), 200, "rank rule", "    detection: {p_value: 0.05}"),
    (step(200, 8), 200, "magnitude", "    detection: {min_magnitude: 0.5}"),
    (step(200, 0.5), 200, "weak", ""),
])
def test_what_drops_a_place_is_said(hunter, tmp_path, values, at, fate, options):
    path = configured(tmp_path, values, options)
    seen = set()
    for place in range(at - 80, at + 81, 20):
        found = why(hunter, path, (START + place * DAY).isoformat())
        seen |= fates(found, at - 100, at + 100)
    assert fate in seen, seen


@pytest.mark.parametrize("detection, values, fate, measure", [
    ("profile: otava", step(200, 8), "weak", "p"),
    ("profile: otava, min_magnitude: 0.5", step(200, 8), "magnitude", "magnitude"),
    ("detector: edivisive_permutation", flat(150), "test", "p"),
    ("detector: kernel", step(200, 0.8), "penalty", "saving"),
    ("detector: stepfit", step(200, 0.8), "threshold", "cohen"),
    ("detector: modes", [v + 20 * (80 <= i < 120 or i >= 200) for i, v in enumerate(normal(6, 203))], "pending", "runs"),
    ("detector: lookback, magnitude: 0.3", step(200, 8), "magnitude", "magnitude"),
    ("combine: {all: [edivisive, kernel]}", spike(200, 7), "votes", "detectors"),
])
def test_each_detector_says_what_drops_a_place(hunter, tmp_path, detection, values, fate, measure):
    path = configured(tmp_path, values, f"    detection: {{{detection}}}")
    found = []
    for place in range(25, len(values), 50):
        found += [one for one in why(hunter, path, f"c{place:05d}")["tried"] if one["fate"] == fate]
    numbers = [one for one in found if one["measure"] == measure]
    assert numbers, found
    for one in numbers:
        assert one["measured"] >= one["limit"] if measure == "p" else one["measured"] <= one["limit"], one
    at = numbers[0]["time"]
    text = hunter("why", "--config", path, "db.read", "p99", at).out
    assert re.search(f"  {measure} +[0-9,.e-]+ +[0-9,.e-]+\n", text), text


def test_an_excursion_is_the_verdict(hunter, tmp_path):
    found = why(hunter, configured(tmp_path, spike(200, 3)), "c00200")
    assert (found["verdict"], found["dropped_by"], found["change"]) == ("detector", "excursion", None)


@pytest.mark.parametrize("points, percent, words", [
    (1, 8, r"1 point at \+[789]\.\d%, a change if it lasts"), (2, 3.5, r"2 points at \+[2345]\.\d%, a change if they last")])
def test_the_newest_points_may_be_a_change(hunter, tmp_path, points, percent, words):
    """They are no outlier, nor nothing; five points later they are one of both, as it turned out."""
    values = [v + percent * (300 - points <= i < 300) for i, v in enumerate(normal(1, 306))]
    found = why(hunter, configured(tmp_path, values[:300]))
    assert found["verdict"] == "onset" and re.fullmatch("no change yet: " + words, found["reason"]), found["reason"]
    found = why(hunter, configured(tmp_path, values), f"c{300 - points:05d}")
    assert found["verdict"] in ("detector", "nothing") and found["change"] is None, found["reason"]
    assert why(hunter, configured(tmp_path, normal(1, 300)))["verdict"] == "nothing"


def test_nothing_is_there(hunter, tmp_path):
    path = configured(tmp_path, [100.0] * 300)
    found = why(hunter, path)
    assert (found["verdict"], found["place"], found["index"]) == ("nothing", "newest", 299)
    assert found["power"]["up"]["smallest"] == 1


def test_the_season_is_removed(hunter, tmp_path):
    found = why(hunter, configured(tmp_path, daily(), apart=HOUR))
    assert found["season"] == ["day"] and found["verdict"] in ("nothing", "detector")
    assert found["power"]["up"]["smallest"] <= 10
    text = hunter("why", "--config", tmp_path / "hunter.yaml", "db.read", "p99")
    assert re.search("cycles removed: +day\n", text.out)


def test_a_long_past_decides_the_cycles(hunter, tmp_path):
    """Four weeks by 10 minutes: what of them is looked at has to show the weekends, else changes are held."""
    week = [v + 20 * (8 <= i // 6 % 24 < 18 and i // 144 % 7 < 5) for i, v in enumerate(normal(6, 144 * 28))]
    path = configured(tmp_path, week, apart=datetime.timedelta(minutes=10))
    found = why(hunter, path)
    assert found["season"] and not found["season_undecided"]
    assert found["power"]["up"]["smallest"] <= 5 and found["power"]["down"]["smallest"] <= 5
    assert all(one["held_until"] is None for one in found["power"]["up"]["sizes"])


def test_a_candidate_waits_for_confirmation(hunter, tmp_path):
    values = step(200, 8, points=206)
    path = configured(tmp_path, values, "    detection: {confirm: 20 points}")
    assert why(hunter, path)["verdict"] == "confirmation"
    done = hunter("run", "--once", "--config", path)
    assert done.code == 0, done.err
    found = why(hunter, path)
    assert (found["verdict"], found["record"]["state"]) == ("confirmation", "candidate")


def test_a_weekend_is_held(hunter, tmp_path):
    """Saturday, 2024-03-09, in the second week: what weekends are like is not known."""
    path = configured(tmp_path, step(200, 8, points=212), apart=HOUR)
    found = why(hunter, path)
    assert found["verdict"] == "hold" and found["arrival"]["told"] is None
    assert found["arrival"]["held_until"] > "2024-03-11" and found["season_undecided"]


def test_what_is_too_old_and_what_is_told(hunter, tmp_path):
    path = configured(tmp_path, step(200, 8), agent="")
    old = path.read_text().replace("max_age: never", "max_age: 14d")
    path.write_text(old)
    assert why(hunter, path)["verdict"] == "too_old"
    assert hunter("run", "--once", "--config", path).code == 0
    found = why(hunter, path)
    assert (found["verdict"], found["record"]["news"]) == ("max_age", "silent")
    drop_state(tmp_path)
    path.write_text(old.replace("max_age: 14d", "max_age: never"))
    assert hunter("run", "--once", "--config", path).code == 0
    found = why(hunter, path)
    assert found["state"] and found["verdict"] == "told"
    assert found["record"]["history"][-1]["event"] == "announced"


def state_of(tmp_path, statement, *values):
    with open_state(tmp_path) as db:
        db.execute(statement, values)


def verdict_of(hunter, path, *at):
    """As text and as JSON, which say the same."""
    found = why(hunter, path, *at)
    text = hunter("why", "--config", path, "db.read", "p99", *at).out
    assert found["reason"].split("; ")[-1] in text.split("\nverdict: ")[1], text
    return found["verdict"], found["reason"]


def test_what_people_have_accepted(hunter, tmp_path):
    """Told before, it was told; never told, no message of it is anywhere; in each case it is said who accepted it, until when and why."""
    path = configured(tmp_path, step(200, 8, points=150), agent="")

    def said(*arguments):
        done = hunter("triage", "1", *arguments, "--config", path)
        assert done.code == 0, done.err

    assert hunter("run", "--once", "--config", path).code == 0
    write(tmp_path / "data.csv", step(200, 8), DAY)
    held = hunter("silence", "add", "test=db.read", "--for", "2h", "--owner", "ann", "--config", path)
    assert held.code == 0, held.err
    assert "db.read" not in hunter("run", "--once", "--config", path).out
    assert verdict_of(hunter, path)[0] == "silence"
    said("acknowledged", "--note", "looking at it")
    verdict, reason = verdict_of(hunter, path)
    assert verdict == "silence" and re.search(r"; acknowledged by \S+ \(looking at it\)$", reason), reason
    said("expected", "--note", "bigger cache", "--until", "2099-03-01")
    verdict, reason = verdict_of(hunter, path)
    assert verdict == "accepted", reason
    assert re.fullmatch(r"accepted as expected by \S+ \(bigger cache\) until 2099-03-01 00:00:00 \+0000: not announced", reason), reason
    text = hunter("why", "--config", path, "db.read", "p99").out
    assert "outbox" not in text and re.search(r"  triaged +\S+ +expected, was acknowledged; note: ", text), text
    # That ends, and nothing has opened it yet.
    state_of(tmp_path, "UPDATE triage SET until = ?", 1000)
    verdict, reason = verdict_of(hunter, path)
    assert verdict == "silence" and reason.endswith("until 1970-01-01 00:00:01 +0000, which has passed"), reason
    # It is announced, and accepted after that.
    assert hunter("silence", "end", "1", "--config", path).code == 0
    assert "db.read" in hunter("run", "--once", "--config", path).out
    assert verdict_of(hunter, path) == ("told", "it was announced")
    said("infra", "--note", "new runner")
    verdict, reason = verdict_of(hunter, path)
    assert verdict == "told" and re.fullmatch(r"it was announced; accepted as infra by \S+ \(new runner\)", reason), reason
    # It outgrows that, and is to be told anew.
    state_of(tmp_path, "UPDATE triage SET triage = 1, renewals = 1")
    state_of(tmp_path, "UPDATE changes SET news = 1")
    assert verdict_of(hunter, path)[0] == "group"


def test_what_known_changes_accept(hunter, tmp_path):
    path = configured(tmp_path, step(200, 8), agent="")
    with path.open("a") as out:
        out.write("known_changes:\n- {test: db.*, commit: c00200, reason: bigger cache, until: 2099-03-01}\n")
    verdict, reason = verdict_of(hunter, path)
    assert verdict == "accepted", reason
    assert re.fullmatch(r"accepted as expected by known_changes, \S*hunter.yaml:\d+ \(bigger cache\) until 2099-03-01 .*: not announced", reason), reason
    assert "db.read" not in hunter("run", "--once", "--config", path).out
    found = why(hunter, path)
    assert found["verdict"] == "accepted" and found["record"]["triage"]["state"] == "expected"
    assert found["reason"].startswith("accepted as expected by known_changes (bigger cache) until 2099-03-01"), found["reason"]


def test_the_reason_is_recorded(hunter, tmp_path):
    """With the change, where everybody reads it; a run that finds nothing new writes nothing of it, and what is told has none."""
    path = configured(tmp_path, step(200, 8, points=206), "    detection: {confirm: 20 points}", agent="")

    def recorded():
        [change] = json.loads(hunter("changes", "--config", path, "--output", "json").out)["changes"]
        with open(tmp_path / "changes.csv", "w") as out:
            out.write(hunter("changes", "--config", path, "--output", "csv").out)
        with open(tmp_path / "changes.csv", newline="") as rows:
            [row] = csv.DictReader(rows)
        assert (row["reason"] or None, row["held_until"] or None) == (change["reason"], change["held_until"])
        return change["state"], change["reason"], change["updated"]

    assert hunter("run", "--once", "--config", path).code == 0
    first = recorded()
    assert first[:2] == ("candidate", "the `confirm` rule does not hold yet: too few points follow it")
    assert hunter("run", "--once", "--config", path).code == 0
    assert recorded() == first
    # Nobody knows it better than the state: what it says is said.
    state_of(tmp_path, "UPDATE changes SET reason = 'a \x1b[31mreason'")
    verdict, reason = verdict_of(hunter, path)
    assert verdict == "confirmation" and reason.startswith("a candidate: a ") and "\x1b" not in reason
    write(tmp_path / "data.csv", step(200, 8, points=230), DAY)
    assert "db.read" in hunter("run", "--once", "--config", path).out
    assert recorded()[:2] == ("confirmed", None)


def test_what_cannot_be_asked(hunter, tmp_path):
    path = configured(tmp_path, flat(40))

    def problem(*arguments):
        done = hunter("why", "--config", path, *arguments)
        assert done.out == ""
        return done.code, done.err

    assert problem("db.read")[0] == 2
    code, err = problem("db.read", "p50")
    assert code == 2 and 'no metric "p50"; it has 1: p99' in err
    code, err = problem("db.read", "p99", "zzz")
    assert code == 2 and '"zzz" is neither a commit of the series\' points nor a time' in err
    code, err = problem("db.read", "p99", "--state-file", str(tmp_path / "none.db"))
    assert code == 4


def test_a_part_of_several_commits(hunter, tmp_path):
    """Two of those that begin with what was asked for are named; a whole one is no part of another."""
    path = configured(tmp_path, flat(40))
    rows = (tmp_path / "data.csv").read_text()

    def asked(at, commits):
        text = rows
        for i, commit in enumerate(commits):
            text = text.replace(f"c{i + 20:05d}", commit)
        (tmp_path / "data.csv").write_text(text)
        done = hunter("why", "--config", path, "db.read", "p99", at)
        assert done.code == 0 or done.out == "", done.out
        return done.code, done.err

    some = ["abcd01", "abcd02", "abcd01", "abcd03"]
    assert asked("abcd0", some) == (2, 'hunter-c: test "db.read": commit "abcd0" is ambiguous: '
                                       '"abcd01" and "abcd03" begin with it; give more digits\n')
    code, err = asked("abcd", [f"abcd{i}0" for i in range(8)])
    assert code == 2 and 'ambiguous: "abcd00" and "abcd70" begin with it' in err, err
    assert asked("abcd02", some)[0] == asked("abcd", some + ["abcd"])[0] == 0


def test_the_agent_says_the_same(hunter, agents, tmp_path):
    path = on_demand(configured(tmp_path, step(200, 8)))
    agent = agents(path)
    agent.wait_metric("hunter_runs_total", 1)
    port = port_of(agent)
    told = ask(port, "/api/v1/why?test=db.read&metric=p99&at=c00200").json
    found = why(hunter, path, "c00200")
    for field in ("tried", "change", "arrival", "power", "index", "season"):
        assert told[field] == found[field], field
    assert told["record"]["id"] == found["record"]["id"] and told["state"]
    for query, status, text in [("", 400, "are needed"), ("?test=db.read", 400, "are needed"), ("?test=x&metric=p99", 404, "no test"),
                                ("?test=db.read&metric=x", 400, 'no metric \\"x\\"'), ("?test=db.read&metric=p99&at=zzz", 400, "neither a commit")]:
        answer = ask(port, "/api/v1/why" + query)
        assert (answer.status, text in answer.text) == (status, True), answer.text
    assert agent.end() == 0


def test_validate_says_it_for_every_metric(hunter, tmp_path):
    path = configured(tmp_path, flat())
    assert '"power"' not in hunter("validate", "--config", path, "--output", "json").out
    done = hunter("validate", "--config", path, "--power", "--output", "json")
    assert done.code == 0, done.err
    [one] = json.loads(done.out)["power"]
    assert (one["test"], one["series"]) == ("db.read", "p99") and one["power"] == why(hunter, path)["power"] | {"moved": False}
    text = hunter("validate", "--config", path, "--power").out
    up, down = (f"{one['power'][side]['smallest']}" for side in ("up", "down"))
    assert text.splitlines()[-1].split() == [up, down, "db.read", "p99"]
    (tmp_path / "data.csv").unlink()
    assert hunter("validate", "--config", path, "--power").code == 3


def test_a_time_outside_the_data(hunter, tmp_path):
    """It is answered about the nearest point, and the answer says that nobody has asked for that one."""
    path = configured(tmp_path, flat())
    assert [why(hunter, path, at)["place"] for at in ("1999-01-01", "2199-01-01", "2024-03-01", "c00000")] == [
        "first_of_all", "last_of_all", "asked", "asked"]
    assert re.search("\nplace: +last_of_all\n", hunter("why", "--config", path, "db.read", "p99", "2199-01-01").out)


def test_a_young_series_is_held_and_not_blind(hunter, tmp_path):
    """Where no step is told as each is held, that is said, and not that all are too small."""
    path = configured(tmp_path, flat(60), apart=HOUR)
    up = why(hunter, path)["power"]["up"]
    assert up["smallest"] is None and up["sizes"][0]["held_until"]
    assert re.search(r"\n +50 .*  2024-03-", hunter("why", "--config", path, "db.read", "p99").out)
    assert re.search(r"\nheld +held +2024-03-\S+ \S+ \+0000 +db.read +p99\n", hunter("validate", "--power", "--config", path).out)


def columns(path, many):
    """A column for each list of values."""
    with open(path, "w", newline="") as out:
        rows = csv.writer(out)
        rows.writerow(["time", *many])
        for i, row in enumerate(zip(*many.values())):
            rows.writerow([(START + i * DAY).isoformat(), *(f"{value:.4f}" for value in row)])


def explained(hunter, path, test, metric, *at, code=0):
    done = hunter("why", "--config", path, test, metric, *at, "--output", "json")
    assert done.code == code, done.err
    return json.loads(done.out)


def test_the_rank_among_all_series_is_said(hunter, tmp_path):
    """Of 2,000 series one has to be surer than one alone has to: the rank and what it has to be below."""
    many = {"m0": [v + 2 * (i >= 40) for i, v in enumerate(normal(9, 60))]}
    many |= {f"m{k}": many["m0"] if k < 3 else [100 + k] * 60 for k in range(1, 200)}
    columns(tmp_path / "data.csv", many)
    path = config(tmp_path, f"""
  db: {{type: csv, file: {tmp_path}/data.csv, detection: {{p_value: 0.01, fdr: 0.001, confirm: off, season: none}}, metrics: [{", ".join(many)}]}}
""")
    alone = explained(hunter, path, "db", "m0")
    assert alone["verdict"] == "fdr" and alone["arrival"]["told"] is None
    limit = f"p {alone['change']['pvalue']:.2g} > {0.001 / 200:.2g} (fdr 0.001 x 1 / 200)"
    assert alone["reason"].endswith(f"that `fdr` allows all series together: rank 1 among 200 series, {limit}"), alone["reason"]
    assert hunter("run", "--once", "--config", path).out == ""
    found = explained(hunter, path, "db", "m0")
    assert found["verdict"] == "fdr" and found["record"]["state"] == "candidate"
    assert found["reason"] == "a candidate: " + found["record"]["reason"] == alone["reason"]
    text = hunter("why", "--config", path, "db", "m0").out
    assert f"rank 1 among 200 series, {limit}\n" in text, text


def test_the_way_back_is_named_as_that(hunter, tmp_path):
    values = step(200, 8, points=260) + flat(300)[260:]
    path = configured(tmp_path, values, agent="")
    found = why(hunter, path, "c00260")
    assert (found["verdict"], found["state"]) == ("way_back", False)
    for points in (150, 240, 300):
        write(tmp_path / "data.csv", values[:points], DAY)
        assert hunter("run", "--once", "--config", path).code == 0
    found = why(hunter, path, "c00260")
    assert (found["verdict"], found["record"]["news"], found["undone"]["time"][:10]) == ("way_back", "silent", str((START + 200 * DAY).date()))
    text = hunter("why", "--config", path, "db.read", "p99", "c00260").out
    assert re.search("this is the end of:\nchange: +1\n", text) and "recovered" in text.split("this is the end of")[1]
    assert why(hunter, path, "c00200")["verdict"] == "told"


def test_a_cluster_tells_its_members(hunter, tmp_path):
    """Of twelve series that move together one message is sent; each says by whom it was told, and what moved alone that it was not."""
    many = {f"m{k}": [v + 20 * (i >= 60) for i, v in enumerate(normal(k, 100))] if k < 12 else normal(k, 100) for k in range(24)}
    many["alone"] = [v + 20 * (i >= 80) for i, v in enumerate(normal(99, 100))]
    columns(tmp_path / "data.csv", many)
    path = config(tmp_path, f"""
  db: {{type: csv, file: {tmp_path}/data.csv, metrics: [{", ".join(many)}]}}
test_groups:
  crowd: {{type: cluster, tests: [db]}}
""")
    assert hunter("run", "--once", "--config", path).code == 0
    found = explained(hunter, path, "db", "m3")
    assert (found["verdict"], found["clusters"], found["cluster"]["test"]) == ("cluster", ["crowd"], "crowd"), found["record"]
    assert found["cluster"]["history"][-1]["event"] == "announced" and found["cluster"]["reason"] is None
    assert found["record"]["reason"] == "announced by its cluster"
    text = hunter("why", "--config", path, "db", "m3").out
    assert re.search(r"\nclusters: +crowd\n", text) and re.search(r"its cluster:\nchange: .*\ntest: +crowd\n.*\nstate: +confirmed\nseries: +1[23]\n", text), text
    assert "verdict: announced by its cluster" in text
    found = explained(hunter, path, "db", "alone")
    assert (found["verdict"], found["cluster"]) == ("told", None)
    # Accepted before that: the cluster has announced nothing, neither have its members.
    drop_state(tmp_path)
    path.write_text(path.read_text() + "known_changes:\n- {test: crowd, time: 2024-04-30, reason: bigger cache}\n")
    assert "crowd" not in hunter("run", "--once", "--config", path).out
    found = explained(hunter, path, "db", "m3")
    assert found["verdict"] == "accepted", found["reason"]
    assert found["reason"] == "accepted as expected by known_changes (bigger cache), with its cluster: not announced"
    done = hunter("why", "--config", path, "crowd", "m3")
    assert done.code == 2 and '"crowd" is a cluster; why takes one of its tests' in done.err


def test_names_that_are_not_there(hunter, tmp_path):
    path = configured(tmp_path, flat(40))
    done = hunter("why", "--config", path, "db.raed", "p99")
    assert done.code == 2 and 'did you mean "db.read"' in done.err
    done = hunter("why", "--config", path, "db.read", "p98")
    assert done.code == 2 and 'it has 1: p99 (did you mean "p99"?)' in done.err
    path.write_text(path.read_text().replace("  db.read:", "  db.reads:\n    was: db.read"))
    done = hunter("why", "--config", path, "db.read", "p99")
    assert done.code == 0 and 'the test was renamed to "db.reads"' in done.err and re.match("test: +db.reads\nseries: +p99\n", done.out)


def test_data_that_are_gone(hunter, tmp_path):
    """What the agent has seen of them is said."""
    path = configured(tmp_path, flat(40))
    assert hunter("run", "--once", "--config", path).code == 0
    (tmp_path / "data.csv").unlink()
    done = hunter("why", "--config", path, "db.read", "p99")
    assert done.code == 3 and f"the agent has read points up to at least {(START + 39 * DAY):%Y-%m-%d}" in done.err


MINUTES = datetime.timedelta(minutes=5)


def remembering(points, seed=7):
    """Each point resembles the one before it."""
    source, noise, values = random.Random(seed), 0, []
    for _ in range(points):
        noise = 0.9 * noise + source.gauss(0, 1)
        values.append(100 + noise)
    return values


def test_a_service_whose_points_hang_together_is_judged_by_the_hour(hunter, tmp_path):
    service = "    detection: {kind: service}"
    path = configured(tmp_path, remembering(12 * 24 * 10 + 5), service, apart=MINUTES)
    found = why(hunter, path)
    assert found["hourly"] and found["points"] == 240
    text = hunter("why", "--config", path, "db.read", "p99").out
    assert re.search("judged by the hour: +yes\n", text)
    done = hunter("validate", "--config", path, "--power")
    assert re.search(" db.read +p99 +yes\n", done.out), done.out
    done = hunter("validate", "--config", path, "--power", "--output", "json")
    assert json.loads(done.out)["power"][0]["hourly"] is True
    for values, extra in ((remembering(2885), "    detection: {kind: benchmark}"), (remembering(2885), ""), (normal(8, 2885), service)):
        path = configured(tmp_path, values, extra, apart=MINUTES)
        found = why(hunter, path)
        assert not found["hourly"] and found["points"] == 2885


def test_an_abrupt_change_of_a_service_by_the_hour_is_told_within_minutes(hunter, tmp_path):
    """On a Wednesday."""
    values = [v * (2 if i >= 1580 else 1) for i, v in enumerate(remembering(1800))]
    path = configured(tmp_path, values, "    detection: {kind: service}", apart=MINUTES)
    done = hunter("replay", "--config", path, "--interval", "5m", "--from", (START + 1500 * MINUTES).isoformat(),
                  "--to", (START + 1800 * MINUTES).isoformat(), "--output", "json")
    changes = [change for change in json.loads(done.out)["changes"] if change["told"]]
    assert len(changes) == 1, changes
    told = datetime.datetime.fromisoformat(changes[0]["told"].replace("Z", "+00:00"))
    assert 0 < (told - (START + 1580 * MINUTES)).total_seconds() <= 45 * 60
    assert not changes[0]["withdrawn"] and changes[0]["size"] > 80


def test_what_explains_a_series_is_proposed_with_lines_to_paste(hunter, tmp_path):
    """A load that follows no calendar, latency that follows it, and a region that moves like another."""
    source, load, rows = random.Random(3), 0, []
    for i in range(400):
        load = 0.9 * load + source.gauss(0, 0.1)
        rows.append((START + i * HOUR, 1000 * math.exp(load), 100 * math.exp(0.8 * load + source.gauss(0, 0.03)), 50 + source.gauss(0, 1)))
    with open(tmp_path / "shop.csv", "w") as out:
        out.write("time,rps,p99,size\n" + "".join(f"{t.isoformat()},{a:.3f},{b:.3f},{c:.3f}\n" for t, a, b, c in rows))
    head = f"type: csv, file: {tmp_path}/shop.csv"
    path = config(tmp_path, f"""
  web: {{{head}, metrics: {{p99: {{direction: -1}}, size: {{direction: -1}}}}}}
  web.eu: {{{head}, metrics: {{p99: {{direction: -1}}}}}}
  load: {{{head}, metrics: {{rps: {{direction: 0}}}}}}
  both: {{{head}, metrics: {{rps: {{direction: 0}}, p99: {{direction: -1}}}}}}
""")
    done = hunter("validate", "--config", path, "--power", "--output", "json")
    proposals = {(one["test"], one["metric"]): one for one in json.loads(done.out)["proposals"]}
    assert set(proposals) == {("web", "p99"), ("web.eu", "p99"), ("both", "p99")}, proposals
    assert all(one["key"] == "explained_by" and one["value"] in ("load/rps", "both/rps") for one in proposals.values())
    assert proposals["web", "p99"]["explained"] > 0.5 and proposals["web", "p99"]["series"] == proposals["web", "p99"]["of"] == 1
    text = hunter("validate", "--config", path, "--power").out
    assert re.search(r'\nweb +p99 .* explained_by: "(load|both)/rps"\n', text), text
    found = json.loads(hunter("why", "--config", path, "both", "p99", "--output", "json").out)
    assert [one["value"] for one in found["proposals"]] == ["both/rps"]
    text = hunter("why", "--config", path, "both", "p99").out
    assert re.search(r' explained_by: "both/rps"\n', text), text
    # The lines as pasted: then nothing is left to propose.
    pasted = path.read_text().replace("both: {", "other: {").replace(
        "p99: {direction: -1}, size", 'p99: {direction: -1, explained_by: "load/rps"}, size')
    path.write_text(pasted)
    done = hunter("validate", "--config", path, "--power", "--output", "json")
    assert not [one for one in json.loads(done.out)["proposals"] if one["test"] == "web"], done.out
    # Without a load, regions that move alike: the second is relative to the first.
    path.write_text("\n".join(line for line in path.read_text().splitlines() if " load: " not in line and " other: " not in line
                              ).replace(', explained_by: "load/rps"', ""))
    done = hunter("validate", "--config", path, "--power", "--output", "json")
    proposals = json.loads(done.out)["proposals"]
    assert [(one["test"], one["key"], one["value"]) for one in proposals] == [("web.eu", "relative_to", "web/p99")], done.out


def test_what_two_series_share_in_one_half_by_chance_explains_nothing(hunter, tmp_path):
    """The latency of one and the load of the other of forty independent pairs, which remember and have a step each."""
    columns = {}
    for seed in (9, 34):
        source, load, latency, rows = random.Random(seed), 0, 0, []
        first = source.randrange(100, 500)
        second = first + source.randrange(-10, 10)
        for i in range(600):
            load, latency = 0.8 * load + source.gauss(0, 0.02), 0.8 * latency + source.gauss(0, 0.02)
            rows.append((1000 * math.exp(load) * (1.4 if i >= first else 1), 100 * math.exp(latency) * (1.3 if i >= second else 1)))
        columns[seed] = rows
    with open(tmp_path / "shop.csv", "w") as out:
        out.write("time,rps,p99\n")
        for i in range(600):
            out.write(f"{(START + i * HOUR).isoformat()},{columns[34][i][0]:.3f},{columns[9][i][1]:.3f}\n")
    path = config(tmp_path, f"""
  web: {{type: csv, file: {tmp_path}/shop.csv, metrics: {{p99: {{direction: -1}}, rps: {{direction: 0}}}}}}
""")
    assert json.loads(hunter("validate", "--config", path, "--power", "--output", "json").out)["proposals"] == []
