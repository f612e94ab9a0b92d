"""hunter-c evaluate --from-triage: the detection scored on what people said, and a better configuration proposed.

The agent finds the steps of series with known ones: small ones, which the people of these tests call false, and a large
one, which is real."""
import datetime
import json
import random
import re
import subprocess

import pytest

POINTS, SMALL, LARGE = 150, 50, 100
START = datetime.datetime(2026, 1, 1, tzinfo=datetime.timezone.utc)
COMMENTED = """# what we watch
agent:
  state: state.db   # beside it
{more}tests:
  # measured at night
  db:
    type: csv
    file: db.csv
    time_column: time
    metrics: [{metrics}]
"""


def day(index):
    return (START + datetime.timedelta(days=index)).strftime("%Y-%m-%dT00:00:00Z")


def values(seed, small=0.0, large=0.1):
    """A step of `small` that stands, and one of `large`."""
    rng = random.Random(seed)
    return [100 * (1 + (small if i >= SMALL else 0)) * (1 + (large if i >= LARGE else 0)) * (1 + rng.gauss(0, 0.003))
            for i in range(POINTS)]


def write_csv(path, series):
    rows = [",".join(["time", *series])]
    rows += [",".join([day(i), *(f"{column[i]:.4f}" for column in series.values())]) for i in range(POINTS)]
    path.write_text("\n".join(rows) + "\n")


class World:
    def __init__(self, hunter, folder):
        self.hunter, self.folder = hunter, folder

    def watch(self, series, config=COMMENTED, **more):
        """The agent has seen the series once; those of `more` are other tests, in files of their names."""
        (self.folder / "hunter.yaml").write_text(
            config.format(metrics=", ".join(series), more=more.pop("more", ""), **{k: ", ".join(v) for k, v in more.items()}))
        for name, columns in {"db": series, **more}.items():
            write_csv(self.folder / f"{name}.csv", columns)
        result = self.hunter("run", "--once")
        assert result.code == 0, result.err
        found = json.loads(self.hunter("changes", "--output", "json").out)["changes"]
        self.changes = {(c["test"], c["metric"], c["time"]): c for c in found}

    def change(self, metric, index, test="db"):
        """The change of the metric whose place is within two points of the index."""
        for away in (0, 1, -1, 2, -2):
            if (test, metric, day(index + away)) in self.changes:
                return self.changes[test, metric, day(index + away)]
        raise AssertionError(f"{test}/{metric} at {index}: {sorted(self.changes)}")

    def say(self, state, *changes):
        result = self.hunter("triage", *(one["id"] for one in changes), state)
        assert result.code == 0, result.err

    def judge(self, series, test="db"):
        """What is there: people call small steps false."""
        small = [self.change(metric, SMALL, test) for metric, (step, _) in series.items() if step]
        large = [self.change(metric, LARGE, test) for metric, (_, step) in series.items() if step]
        self.say("false", *small)
        self.say("expected", *large)

    def evaluate(self, *arguments, code=0):
        result = self.hunter("evaluate", "--from-triage", *arguments)
        assert result.code == code, result.err
        return result

    def scores(self, *arguments, **options):
        return json.loads(self.evaluate("--output", "json", *arguments, **options).out)


@pytest.fixture
def world(hunter, tmp_path):
    return World(hunter, tmp_path)


def some(count, small=0.012, large=0.1):
    """Every second series has a small step."""
    return {f"m{k}": (small if k % 2 == 0 else 0, large) for k in range(count)}


def data(steps, seed=1):
    return {name: values(seed + k, *step) for k, (name, step) in enumerate(steps.items())}


def test_what_people_said(world):
    steps = some(4)
    world.watch(data(steps))
    world.say("false", world.change("m0", SMALL))
    world.say("infra", world.change("m2", SMALL))
    world.say("expected", world.change("m0", LARGE))
    world.say("fixed", world.change("m1", LARGE))
    world.say("acknowledged", world.change("m2", LARGE))  # and of m3 nobody has said anything
    answer = world.scores()
    [detector] = answer["detectors"]
    assert detector["detector"] == "edivisive"
    assert (detector["all"]["series"], detector["all"]["changed"]) == (3, 3)
    said = answer["triage"]
    assert (said["real"], said["found"], said["other_alarms"]) == (3, 3, 0)
    assert said["false"] == {"changes": 1, "announced": 1}
    assert said["infra"] == {"changes": 1, "announced": 1}
    assert said["ignored"] == said["open"] == {"changes": 0, "announced": 0}
    assert detector["all"]["confirmed"]["false"] == 1  # the one of infra counts for nothing
    changes = {(c["metric"], c["state"]): c for c in said["changes"]}
    assert changes["m0", "false"]["announced"] and 1 <= changes["m0", "false"]["delay"] < 20
    assert said["not_scored"] == []
    text = world.evaluate().out
    assert re.search(r"^edivisive +3 +3 +1 +1 +0 +1 +1 +0 +0 ", text, re.M), text
    assert re.search(r"^ *\d+  db +m0 +2026-02-2\d 00:00:00 \+0000 +1\.\d+  false +yes +\d+$", text, re.M)
    assert "cannot be scored" not in text


def test_other_settings_are_scored_apart(world):
    """The settings of today are scored, not those by which the changes were found."""
    config = COMMENTED + """  strict:
    type: csv
    file: strict.csv
    time_column: time
    metrics: [{strict}]
"""
    steps = some(4)
    world.watch(data(steps), config, strict=data(steps, 50))
    world.judge(steps)
    world.judge(steps, "strict")
    path = world.folder / "hunter.yaml"
    path.write_text(path.read_text() + "    detection: {magnitude: 0.05, confirm: 6 points}\n")
    answer = world.scores()
    names = {d["detector"]: d["all"]["confirmed"] for d in answer["detectors"]}
    assert list(names) == ["all settings", "edivisive", "edivisive(magnitude=0.05, confirm=6 points)"]
    assert [names[n]["false"] for n in names] == [2, 2, 0]
    assert [names[n]["seen"] for n in names] == [8, 4, 4]
    assert names["edivisive(magnitude=0.05, confirm=6 points)"]["delay_p50"] >= 5
    only = world.scores("strict")
    assert [d["detector"] for d in only["detectors"]] == ["edivisive(magnitude=0.05, confirm=6 points)"]
    assert only["triage"]["false"] == {"changes": 2, "announced": 0}
    text = world.evaluate("--by-class").out
    found = text.split("triaged changes, and what would be announced:")[1].splitlines()[3:6]
    assert [row.split()[:-9][-2:] for row in found] == [["8", "8"], ["4", "4"], ["4", "4"]], found
    assert len(re.findall(r"^strict +4 ", text, re.M)) == 2  # has none of the middle one's settings


def test_judged_relative_to_another(world):
    """What follows the load is no change of the latency, as in the agent."""
    load, own = values(3, 0, 0.3), values(4, 0.1, 0)
    config = COMMENTED.replace("[{metrics}]", "{{load: {{}}, latency: {{relative_to: db/load}}}}")
    world.watch({"load": load, "latency": [a * b for a, b in zip(load, own)]}, config)
    world.say("expected", world.change("latency", SMALL), world.change("load", LARGE))
    answer = world.scores()["triage"]
    assert (answer["real"], answer["found"], answer["other_alarms"]) == (2, 2, 0)


def test_data_that_is_gone(world):
    steps = some(4)
    config = COMMENTED + """  gone:
    type: csv
    file: gone.csv
    time_column: time
    metrics: [{gone}]
"""
    world.watch(data(steps), config, gone=data({"g": (0, 0.1)}, 50))
    world.judge(steps)
    world.say("expected", world.change("g", LARGE, "gone"))
    lines = (world.folder / "db.csv").read_text().splitlines()
    (world.folder / "db.csv").write_text("\n".join(lines[:1] + lines[SMALL + 20:]) + "\n")
    path = world.folder / "hunter.yaml"
    whole = path.read_text()
    path.write_text(whole[:whole.index("  gone:")].replace("m0, m1", "m1"))
    answer = world.scores()["triage"]
    reasons = sorted((c["test"], c["metric"], c["state"], c["reason"]) for c in answer["not_scored"])
    assert reasons == [
        ("db", "m0", "expected", "the source no longer has the series"),
        ("db", "m0", "false", "the source no longer has the series"),
        ("db", "m2", "false", "the source no longer has points of that time"),
        ("gone", "g", "expected", "the configuration has no such test")]
    assert (answer["real"], answer["found"]) == (3, 3)
    text = world.evaluate().out
    assert len(text.split("\ncannot be scored:\n")[1].splitlines()) == 2 + 4
    # A test whose data cannot be read at all is an error, but not the end.
    path.write_text(whole)
    (world.folder / "gone.csv").unlink()
    result = world.evaluate("--output", "json", code=3)
    assert "gone.csv" in result.err
    assert [c["reason"] for c in json.loads(result.out)["triage"]["not_scored"] if c["test"] == "gone"] == [
        "cannot read the test's data"]
    (world.folder / "db.csv").write_text("\n".join(lines[:1] + lines[-5:]) + "\n")
    result = world.evaluate(code=3)
    assert result.out == "" and "none of the triaged changes can be scored" in result.err


def test_nobody_has_said_anything(world):
    world.watch(data(some(2)))
    result = world.evaluate(code=3)
    assert "none of the 3 changes is triaged" in result.err
    world.say("expected", world.change("m1", LARGE))
    world.say("open", world.change("m1", LARGE))  # taken back
    assert "is triaged: see hunter-c triage" in world.evaluate(code=3).err


@pytest.mark.parametrize("flags", [["--truth", "x"], ["--detector", "kernel"], ["--confirm", "off"], ["--whole"],
                                   ["--season", "none"]])
def test_flags_that_do_not_go_together(hunter, tmp_path, flags):
    result = hunter("evaluate", "--from-triage", *flags)
    assert result.code == 2 and f"{flags[0]} does not apply to --from-triage" in result.err
    assert hunter("evaluate", "--state-file", "x", "--truth", "x").code == 2


def apply(folder, tool, diff):
    subprocess.run(tool, cwd=folder, input=diff, text=True, check=True, capture_output=True)


@pytest.mark.parametrize("tool", [["patch", "-p0"], ["git", "apply", "-"], ["git", "apply", "-p0", "-"]])
def test_a_proposal(world, tool):
    steps = some(16)
    world.watch(data(steps), more="slack: {bot_token: xoxb-secret, channels: ['#perf']}\ndetection:\n  window: 50  # points\n")
    world.judge(steps)
    before = (world.folder / "hunter.yaml").read_text()
    result = world.evaluate("--tune")
    assert "xoxb-secret" not in result.out
    assert re.search(r"^on the 8 validation series: false alarms 4 -> 0, found 8 -> 8 of 8, "
                     r"delay median (\d+) -> \d+ points, alarms where no change is recorded 0 -> 0$", result.out, re.M)
    assert "missed" not in result.out
    apply(world.folder, tool, result.out)
    after = (world.folder / "hunter.yaml").read_text()
    assert after == before.replace("  window: 50  # points\n", "  window: 50  # points\n  magnitude: 0.02\n")
    assert world.hunter("validate").code == 0
    again = world.scores()["triage"]
    assert again["false"] == {"changes": 8, "announced": 0} and (again["real"], again["found"]) == (16, 16)
    result = world.evaluate("--tune")
    assert "no proposal: no tried setting is better" in result.out and "+++" not in result.out


def test_the_price_names_what_is_missed(world):
    """What tells the false from the real ones costs a real one that is as small, whichever half it is in."""
    steps = some(24)
    world.watch(data(steps | {"m1": (0.012, 0.1), "m3": (0.012, 0.1), "m5": (0.012, 0.1)}))
    world.judge({name: step for name, step in steps.items() if name not in ("m1", "m3", "m5")})
    for metric in ("m1", "m3", "m5"):
        world.say("fixed", world.change(metric, SMALL))
        world.say("expected", world.change(metric, LARGE))
    answer = world.scores("--tune")
    [tuned] = answer["tuned"]
    assert tuned["proposed"] and tuned["settings"] == {"magnitude": "0.02"}
    given, best = tuned["given"], tuned["best"]
    lost = given["found"] - best["found"]
    assert 1 <= lost <= 3 and best["false"]["announced"] == 0
    text = world.evaluate("--tune").out
    assert re.search(rf"found {given['found']} -> {best['found']} of {given['real']}", text)
    [missed] = re.findall(r"^missed: (.*)$", text, re.M)
    names = re.findall(r"db/(m\d+) 2026-02-\d\d 00:00 \(\+1\.\d%\) #\d+", missed)
    assert len(names) == lost and set(names) <= {"m1", "m3", "m5"}


def test_a_dear_proposal_says_so(world):
    """It is better by the alarms where no change is recorded, which the settings of today would announce."""
    sizes = {f"m{k}": 0.09 if k < 6 else 0.085 if k < 16 else 0.07 for k in range(30)}
    world.watch({name: values(k, size, 0.25) for k, (name, size) in enumerate(sizes.items())},
                more="detection: {magnitude: 0.08}\n")
    world.say("expected", *(world.change(name, LARGE) for name in sizes))
    world.say("false", *(world.change(name, SMALL) for name, size in sizes.items() if size == 0.09))
    world.say("expected", *(world.change(name, SMALL) for name, size in sizes.items() if size == 0.085))
    path = world.folder / "hunter.yaml"
    path.write_text(path.read_text().replace("detection: {magnitude: 0.08}\n", ""))
    text = world.evaluate("--tune").out
    [(bad, left, found, kept)] = re.findall(r"^on the .* false alarms (\d+) -> (\d+), found (\d+) -> (\d+) of", text, re.M)
    lost, spared = int(found) - int(kept), int(bad) - int(left)
    assert lost > spared == 3 and "magnitude: 0.1" in text
    assert f"note: it loses {lost} real changes and avoids only 3 of the triaged false alarms\n" in text


def test_nothing_is_better(world):
    """Real and false changes look the same."""
    steps = some(12, small=0.1)
    world.watch(data(steps))
    world.judge(steps)
    result = world.evaluate("--tune")
    assert "no proposal" in result.out and "+++" not in result.out


def test_too_few(world):
    steps = some(8)
    world.watch(data(steps))
    world.judge(steps)
    result = world.evaluate("--tune", code=3)
    assert result.out == "" and "each half of the series needs 3 real changes and 3 false ones" in result.err


def test_only_the_named_test_is_changed(world):
    config = COMMENTED + """  other:
    type: csv
    file: other.csv
    time_column: time
    metrics: [{other}]
"""
    steps = some(12)
    world.watch(data(steps), config, other=data({"x": (0.012, 0.1)}, 50))
    world.judge(steps)
    world.say("false", world.change("x", SMALL, "other"))
    before = (world.folder / "hunter.yaml").read_text()
    apply(world.folder, ["patch", "-p0"], world.evaluate("--tune", "db").out)
    assert (world.folder / "hunter.yaml").read_text() == before.replace(
        "    type: csv\n    file: db.csv\n", "    type: csv\n    detection: {magnitude: 0.02}\n    file: db.csv\n")
    assert world.hunter("validate").code == 0


def test_a_configuration_elsewhere(world):
    """patch refuses names with .. and absolute ones, so the folder is named."""
    steps = some(12)
    world.watch(data(steps))
    world.judge(steps)
    elsewhere = world.folder / "elsewhere"
    elsewhere.mkdir()
    path = world.folder / "hunter.yaml"
    path.write_text(path.read_text().replace("state.db", str(world.folder / "state.db"))
                    .replace("db.csv", str(world.folder / "db.csv")))
    result = world.hunter("evaluate", "--from-triage", "--tune", "--config", path, cwd=elsewhere)
    assert f"\nin {world.folder}:\n--- hunter.yaml\n+++ hunter.yaml\n" in result.out
    apply(world.folder, ["patch", "-p0"], result.out)
    assert "magnitude: 0.02" in path.read_text()
