"""Changes of the first days are held until they can be compared: by the dates of the points, whatever becomes of the program meanwhile."""
import csv
import datetime
import json
import math
import pathlib
import random
import re
import time

import pytest
from agent import config

CASES = pathlib.Path(__file__).parents[1] / "cases/series"
MONDAY = datetime.datetime(2026, 3, 2, tzinfo=datetime.timezone.utc)
HOUR = datetime.timedelta(hours=1)
SATURDAY, TUESDAY = 5 * 24, 8 * 24
LASTING = [(SATURDAY + 10, 1.3)]
OVER = [(SATURDAY + 10, 1.3), (7 * 24 + 3, 1 / 1.3)]


def write(path, steps, points):
    noise = random.Random(1)
    with open(path, "w", newline="") as out:
        rows = csv.writer(out)
        rows.writerow(["time", "p99"])
        for i in range(points):
            value = math.prod([100, *(factor for index, factor in steps if i >= index)]) * math.exp(noise.gauss(0, .02))
            rows.writerow([(MONDAY + i * HOUR).isoformat(), f"{value:.4f}"])


def hour_of(clock, hour):
    """Half an hour after the point of that hour."""
    clock.turn((MONDAY + hour * HOUR).timestamp() + 1800 - time.time())


def written(tmp_path, detection="{}"):
    return config(tmp_path, f"""
  web: {{type: csv, file: {tmp_path}/web.csv, detection: {detection}, metrics: {{p99: {{direction: -1, unit: ms}}}}}}
""")


def known(hunter, path):
    changes = json.loads(hunter("changes", "--config", path, "--output", "json").out)["changes"]
    return sorted((change["forward_change_percent"] > 0, change["state"], change["news"]) for change in changes)


def runs(hunter, clock, path, steps, hours):
    """What a program for each of those hours tells."""
    out = ""
    for hour in hours:
        write(path.parent / "web.csv", steps, hour + 1)
        hour_of(clock, hour)
        done = hunter("run", "--once", "--config", path)
        assert done.code == 0, done.err
        out += done.out
    return out


@pytest.mark.parametrize(("detection", "until"), [("{}", TUESDAY), ("{zone: Europe/Berlin}", TUESDAY - 1)])
def test_a_step_of_saturday_is_told_on_tuesday(hunter, clock, tmp_path, detection, until):
    path = written(tmp_path, detection)
    assert runs(hunter, clock, path, LASTING, range(SATURDAY, until, 4)) == ""
    assert known(hunter, path) == [(True, "candidate", "held")]
    assert "+3" in hunter("regressions", "--config", path).out  # who asks sees it at once
    assert runs(hunter, clock, path, LASTING, [until - 1]) == ""
    out = runs(hunter, clock, path, LASTING, [until, until + 1, until + 30])
    assert out.count("  regression\n") == 1 and "+3" in out


@pytest.mark.parametrize("hours", [range(SATURDAY, TUESDAY + 48, 4), [TUESDAY + 47]], ids=["as it comes", "at a first look"])
def test_what_is_over_by_then_is_recorded(hunter, clock, tmp_path, hours):
    path = written(tmp_path)
    assert runs(hunter, clock, path, OVER, hours) == ""
    assert [change[0] for change in known(hunter, path)] == [False, True]
    assert {change[2] for change in known(hunter, path)} == {"silent"}


def test_without_cycles_nothing_waits(hunter, clock, tmp_path):
    path = written(tmp_path, "{season: none}")
    assert "+3" in runs(hunter, clock, path, LASTING, [SATURDAY + 9, SATURDAY + 30])


def test_a_series_that_ends(hunter, clock, tmp_path):
    """Nothing comes after Sunday noon: a day after the hold it is told all the same."""
    path = written(tmp_path)
    assert runs(hunter, clock, path, LASTING, [SATURDAY + 9, SATURDAY + 36]) == ""
    for hour, told in (TUESDAY, False), (TUESDAY + 23, False), (TUESDAY + 24, True), (TUESDAY + 48, False):
        hour_of(clock, hour)
        assert ("+3" in hunter("run", "--once", "--config", path).out) == told, hour


def test_why_says_until_when(hunter, clock, tmp_path):
    path = written(tmp_path)
    assert runs(hunter, clock, path, LASTING, [SATURDAY + 36]) == ""
    assert known(hunter, path) == [(True, "candidate", "held")]
    found = json.loads(hunter("why", "--config", path, "--output", "json", "web", "p99").out)
    assert found["verdict"] == "hold" and found["arrival"] is None  # the state says what happened
    text = hunter("why", "--config", path, "web", "p99").out
    assert "verdict: a candidate: held until a cycle can be ruled out: until 2026-03-10 00:00:00 +0000\n" in text, text
    assert "+3" in runs(hunter, clock, path, LASTING, [TUESDAY])
    assert json.loads(hunter("why", "--config", path, "--output", "json", "web", "p99").out)["verdict"] == "told"


@pytest.mark.parametrize(("step", "first"), [(SATURDAY - 12, SATURDAY + 36), (7 * 24 + 10, 12 * 24 + 10)],
                         ids=["of Friday, on Sunday", "of Monday, on the second Saturday"])
def test_a_first_look_on_a_weekend(hunter, clock, tmp_path, step, first):
    """As points came nothing would have held it: its age counts, not when it was looked at."""
    path = written(tmp_path)
    assert "+3" in runs(hunter, clock, path, [(step, 1.3)], [first])
    assert known(hunter, path) == [(True, "confirmed", "queued")]


def test_a_held_change_is_as_old_at_the_next_look(hunter, clock, tmp_path):
    """Back on Saturday morning, perhaps: it waits for the next points, not for Tuesday."""
    path, steps = written(tmp_path), [(7 * 24 + 10, 1.3), (12 * 24 + 8, 1 / 1.3), (12 * 24 + 10, 1.3)]
    assert runs(hunter, clock, path, steps[:2], [12 * 24 + 9]) == ""
    assert known(hunter, path) == [(True, "candidate", "held")]
    assert "+3" in runs(hunter, clock, path, steps, [12 * 24 + 40])


def test_an_agent_that_is_killed(agents, clock, tmp_path):
    path = written(tmp_path)
    for hour, told in (SATURDAY + 9, 0), (SATURDAY + 40, 0), (TUESDAY - 1, 0), (TUESDAY, 1), (TUESDAY + 9, 0):
        write(tmp_path / "web.csv", LASTING, hour + 1)
        hour_of(clock, hour)
        agent = agents(path)
        agent.pass_by(2)
        agent.wait(lambda agent=agent, told=told: agent.metric("hunter_deliveries_total") == told)
        agent.process.kill()
        agent.process.wait()


def test_weekends_are_no_news(hunter, tmp_path):
    """From the first day on: a third less on each weekend, and a step on a Wednesday, which alone is told."""
    step = 16 * 24 + 9
    weekends = [(day * 24, factor) for week in (0, 7, 14, 21) for day, factor in ((week + 5, 2 / 3), (week + 7, 1.5))]
    path = written(tmp_path)
    path.write_text(path.read_text().replace("interval: 1s", "interval: 1h\n  evaluation_delay: 0"))
    write(tmp_path / "web.csv", [*weekends, (step, 1.25)], 28 * 24)
    done = hunter("replay", "--config", path, "--from", (MONDAY + 12 * HOUR).isoformat(), "--to",
                  (MONDAY + 28 * 24 * HOUR).isoformat(), "--output", "json")
    assert done.code == 0, done.err
    told = [change for change in json.loads(done.out)["changes"] if change["told"]]
    assert len(told) == 1, told
    assert f"{MONDAY + (step - 3) * HOUR:%Y-%m-%dT%H}" <= told[0]["time"] <= f"{MONDAY + (step + 3) * HOUR:%Y-%m-%dT%H:59}"


def weeks(path, first, days, off=(), series=3, label=0 * HOUR):
    """Traffic of hours with a daily cycle, less on Saturdays, still less on Sundays and on the days `off`; an hour has the time of its
    beginning, later by `label`."""
    noise = random.Random(first.day)
    with open(path, "w", newline="") as out:
        rows = csv.writer(out)
        rows.writerow(["time", *(f"s{i}" for i in range(series))])
        for at in (first + i * HOUR for i in range(24 * days)):
            kind = .65 if at.date().isoformat() in off else {5: .72, 6: .65}.get(at.weekday(), 1)
            value = 100 * kind * (1 + .5 * math.sin(2 * math.pi * (at.hour - 8.5) / 24))
            rows.writerow([(at + label).isoformat(), *(f"{value * (1 + noise.gauss(0, .02)):.3f}" for _ in range(series))])


def told(hunter, path, first, last):
    answer = json.loads(hunter("replay", "--config", path, "--from", first.isoformat(), "--to", last.isoformat(),
                               "--output", "json").out)
    return [(change["test"], change["time"], change["told"]) for change in answer["changes"] if change.get("told")]


@pytest.mark.parametrize("label", [0, 1], ids=["start", "end"])
def test_weekends_of_data_that_begin_on_any_day(tmp_path, hunter, label):
    """Also where an hour has the time of its end, so that a weekend is over an hour late."""
    tests, days = "", 17
    for day in range(7):
        weeks(tmp_path / f"{day}.csv", MONDAY + day * 24 * HOUR, days, label=label * HOUR)
        tests += f"""
  from{day}: {{type: csv, file: {tmp_path}/{day}.csv, range: 30d, interval: 1h, metrics: {{s0: {{direction: -1}}, s1: {{direction: 1}}, s2: {{}}}}}}"""
    path = config(tmp_path, tests)
    assert told(hunter, path, MONDAY + 24 * HOUR, MONDAY + (days + 6) * 24 * HOUR) == []
    assert told(hunter, path, MONDAY + 9 * 24 * HOUR, MONDAY + (days + 6) * 24 * HOUR) == []


def test_holidays(tmp_path, hunter):
    """One before weeks are known, two after: told only where they are not named."""
    off = ["2026-03-11", "2026-04-03", "2026-04-06"]
    weeks(tmp_path / "x.csv", MONDAY, 42, off)
    row = f"{{type: csv, file: {tmp_path}/x.csv, range: 60d, interval: 1h, metrics: {{s0: {{}}, s1: {{}}}}, detection: {{%s}}}}"
    (tmp_path / "days.txt").write_text("# 2026\n" + "\n".join(off) + "\n")
    path = config(tmp_path, f"""
  named: {row % f"holidays: [{', '.join(off)}]"}
  file: {row % "holidays: days.txt"}
  not: {row % "kind: benchmark"}""")
    answer = told(hunter, path, MONDAY + 24 * HOUR, MONDAY + 42 * 24 * HOUR)
    assert {test for test, _, _ in answer} == {"not"}
    assert {time[:10] for _, time, _ in answer} >= {"2026-03-11"}


def test_a_holiday_on_the_command_line(tmp_path, hunter):
    """Today is one: a date, or a file of them."""
    today = "2026-04-08"
    weeks(tmp_path / "x.csv", MONDAY, 38, [today])
    (tmp_path / "days.txt").write_text(f"2026-01-01\n{today} # a Wednesday\n")
    path = config(tmp_path, f"""
  x: {{type: csv, file: {tmp_path}/x.csv, metrics: {{s0: {{}}}}}}""")

    def found(*flags):
        return json.loads(hunter("analyze", "x", "--config", path, "--output", "json", *flags).out)["tests"][0]["changes"]

    assert found() != []
    assert found("--holidays", f"2026-01-01,{today}") == found("--holidays", f"{tmp_path}/days.txt") == []


def replayed(hunter, tmp_path, metric):
    """What is told of x.csv from the second week on, hour by hour."""
    path = config(tmp_path, f"""
  x: {{type: csv, file: {tmp_path}/x.csv, interval: 10m, metrics: {{{metric}}}}}""")
    rows = (tmp_path / "x.csv").read_text().splitlines()
    first, last = (datetime.datetime.fromisoformat(row.split(",")[0].replace("Z", "+00:00")) for row in (rows[1], rows[-1]))
    return told(hunter, path, first + 4 * 24 * HOUR, last + HOUR)


def test_what_is_back_within_hours(tmp_path, hunter):
    """Latency of a service in which single hours stand out, two of them rising above a daily low: nothing is told; a step is."""
    rows = (CASES / "spike.csv").read_text().splitlines()
    (tmp_path / "x.csv").write_text("\n".join(rows) + "\n")
    assert replayed(hunter, tmp_path, "p50: {direction: -1, unit: s}") == []
    late = len(rows) - 10 * 24
    slower = [f"{at},{1.5 * float(value):.5g}" for at, value in (row.split(",") for row in rows[late:])]
    (tmp_path / "x.csv").write_text("\n".join([*rows[:late], *slower]) + "\n")
    assert len(replayed(hunter, tmp_path, "p50: {direction: -1, unit: s}")) == 1


@pytest.mark.parametrize("daily", [0, .3])
@pytest.mark.parametrize("first, second", [(1.2, 1.3), (3, 2)])
def test_a_spike_in_two_hours(tmp_path, hunter, first, second, daily):
    """A quarter of an hour that lies in two hours is over in the third, and told to nobody; what stays there is told."""
    for stays in False, True:
        noise = random.Random(1)
        factors = {300: first} | {i: second for i in range(301, 480 if stays else 302)}
        rows = [(MONDAY + i * HOUR, 100 * (1 + daily * math.sin(math.pi * i / 12)) * factors.get(i, 1) * (1 + noise.gauss(0, .02)))
                for i in range(480)]
        (tmp_path / "x.csv").write_text("time,p99\n" + "".join(f"{at.isoformat()},{value:.3f}\n" for at, value in rows))
        assert len(replayed(hunter, tmp_path, "p99: {direction: -1, unit: ms}")) == stays


def replayed_step(hunter, tmp_path, begin, at, first, days=15, weekend=.7):
    """What the replay from `first` on prints of hours with lower weekends, and a step of 20% at `at`."""
    noise = random.Random(1)
    with open(tmp_path / "web.csv", "w", newline="") as out:
        rows = csv.writer(out)
        rows.writerow(["time", "p99"])
        for time_of in (begin + i * HOUR for i in range(24 * days)):
            value = 100 * (weekend if time_of.weekday() > 4 else 1) * (1.2 if time_of >= at else 1)
            rows.writerow([f"{time_of.isoformat()}Z", f"{value * math.exp(noise.gauss(0, .03)):.3f}"])
    path = written(tmp_path)
    path.write_text(path.read_text().replace("interval: 1s", "interval: 1h"))
    done = hunter("replay", "--config", path, "--from", f"{first.isoformat()}Z", "--to", f"{(begin + 24 * days * HOUR).isoformat()}Z")
    assert done.code == 0, done.err
    assert re.findall(r"(\d+ \w+) in web since (\S+ \S+)", done.out) == [("1 regression", f"{at:%Y-%m-%d %H:%M:%S}")], done.out
    return done.out


def test_the_second_weekend_ends_no_change(hunter, tmp_path):
    """Its lower level is not the one from before the change, which has been announced, and stands."""
    out = replayed_step(hunter, tmp_path, datetime.datetime(2026, 11, 10, 3), datetime.datetime(2026, 11, 19, 14), datetime.datetime(2026, 11, 18))
    assert "recovered" not in out and "back" not in out, out


@pytest.mark.parametrize(("begin", "at"), [(13, datetime.datetime(2026, 11, 20, 1)), (11, datetime.datetime(2026, 11, 13, 10))],
                         ids=["the second", "the first"])
def test_a_weekend_as_low_as_before_is_no_end(hunter, tmp_path, begin, at):
    """Nor is the Monday behind it news, when no whole working day is known from before the weekend."""
    begin = datetime.datetime(2026, 11, begin, 3)
    replayed_step(hunter, tmp_path, begin, at, begin + 12 * HOUR, days=13, weekend=1 / 1.2)
