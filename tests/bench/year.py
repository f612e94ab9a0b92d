#!/usr/bin/env python3
"""A year of 1,000 series through `hunter-c replay`: how many messages, how many of them true, how many changes missed.

    tests/bench/year.py [--build-dir DIR] [--tests N] [--seed N] [DETECTION...]
    tests/bench/year.py --services [--days N] [--tests N] [--seed N] [DETECTION...]

100 tests with ten metrics each are measured once a day, from 60 days before the year on. Changes come to a test, twice a
year on average, and touch half of its metrics, each by 1 to 30%; a fifth of them is taken back 5 to 30 days later. Now and
then a test has a bad day or three, which is no change. The noise of a metric has a standard deviation of 0.5 to 5% and is
normal, heavy-tailed, of two modes, dependent from day to day, or has outliers. A DETECTION is what stands in braces behind
`detection:`; without, some are compared. Rows for docs/design/accuracy.md are printed.

With --services the series are the hourly ones of tests/bench/generate_service.h, with their cycles, outages and drift, each a test that
is looked at every hour, from four weeks on, for 60 days or what --days says (337 for the rest of a year). --tests is how many there are
of each class, a multiple of eight: half of them have no step, the others one or three. What was told is true within five
points of a step.
"""
import argparse
import datetime
import json
import math
import pathlib
import random
import subprocess
import sys
import tempfile

TOP = pathlib.Path(__file__).resolve().parents[2]
FIRST, YEAR, DAYS = datetime.date(2025, 1, 1), datetime.date(2025, 3, 2), 425
BEFORE = (YEAR - FIRST).days
METRICS, SAME = 10, 5
WEEK, SERVICE_BEFORE = 7 * 86400, 28
SERVICES_USUAL = ["season: auto", "season: none"]
USUAL = ["confirm: auto", "'confirm': 'off'", "fdr: 0.05", "profile: otava, 'confirm': 'off'"]


def noise(rng, kind, sd):
    """Deviations of a metric's days, as shares of its level."""
    values, last, slow = [], 0.0, 0.0
    for _ in range(DAYS):
        z = rng.gauss(0, 1)
        if kind == "heavy":
            z /= math.sqrt(sum(rng.gauss(0, 1) ** 2 for _ in range(3)))
        elif kind == "modes":
            z = 0.3 * z + (2.0 if rng.random() < 0.5 else 0.0)
        elif kind == "dependent":
            last = z = 0.5 * last + math.sqrt(0.75) * z
        elif kind == "outliers" and rng.random() < 0.02:
            slow = rng.uniform(0.1, 0.5)
        values.append(sd * z + slow)
        slow = 0.0
    return values


def steps(rng):
    """(day, factor for each metric or 1) of a test's year, in order."""
    found, day = [], 0.0
    while True:
        day += rng.expovariate(2 / 365)
        if day >= DAYS:
            return sorted(found)
        size = math.exp(rng.uniform(math.log(0.01), math.log(0.3))) * rng.choice((-1, 1))
        factors = [1 + size if rng.random() < 0.5 else 1.0 for _ in range(METRICS)]
        found.append((int(day), factors))
        back = day + rng.uniform(5, 30)
        if rng.random() < 0.2 and back < DAYS:
            found.append((int(back), [1 / f for f in factors]))


def make_test(rng, name, folder, truth, trouble):
    """Writes the test's CSV; adds (test, metric, day, change, sd of the noise) to the truth, and (test, bad day) to trouble."""
    changes = steps(rng)
    bad = {day + k: rng.uniform(1.1, 1.5) for day in range(DAYS) if rng.random() < 1 / 200 for k in range(rng.choice((1, 1, 3)))}
    trouble |= {(name, day) for day in bad}
    columns = []
    for m in range(METRICS):
        sd = math.exp(rng.uniform(math.log(0.005), math.log(0.05)))
        kind = rng.choices(("normal", "heavy", "modes", "dependent", "outliers"), (60, 10, 10, 10, 10))[0]
        level, column, deviations = 100.0, [], noise(rng, kind, sd)
        for day in range(DAYS):
            for at, factors in changes:
                if at == day and factors[m] != 1:
                    level *= factors[m]
                    truth.append((name, f"m{m}", day, abs(factors[m] - 1), sd))
            column.append(level * (1 + deviations[day]) * bad.get(day, 1.0))
        columns.append(column)
    with open(folder / f"{name}.csv", "w") as f:
        f.write("time," + ",".join(f"m{m}" for m in range(METRICS)) + "\n")
        for day in range(DAYS):
            date = FIRST + datetime.timedelta(days=day)
            f.write(f"{date}T02:00:00Z," + ",".join(f"{column[day]:.4f}" for column in columns) + "\n")


def write_config(folder, names, detection):
    metrics = ", ".join(f"m{m}: {{direction: -1}}" for m in range(METRICS))
    with open(folder / "hunter.yaml", "w") as f:
        f.write(f"agent: {{interval: 1d}}\ndetection: {{{detection}}}\ntests:\n")
        for name in names:
            f.write(f"  {name}: {{type: csv, file: {folder}/{name}.csv, time_column: time, metrics: {{{metrics}}}}}\n")


def replay(hunter, folder):
    until = FIRST + datetime.timedelta(days=DAYS)
    done = subprocess.run([hunter, "replay", "--config", folder / "hunter.yaml", "--from", str(YEAR), "--to", str(until),
                           "--output", "json"], capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(done.stderr)
    return json.loads(done.stdout)


def day_of(text):
    return (datetime.date.fromisoformat(text[:10]) - FIRST).days


def judge(answer, truth, trouble):
    """Numbers of one replay. A change told is true within SAME days of one that was made; of the others, some are at bad days."""
    told = sorted((c for c in answer["changes"] if c["told"]), key=lambda c: c["told"])
    places, seen, delays, right, gone_right, bad = {}, set(), [], 0, 0, 0
    for index, (test, metric, day, _, _) in enumerate(truth):
        places.setdefault((test, metric), []).append((day, index))
    for change in told:
        at = day_of(change["time"])
        near = [(abs(day - at), index) for day, index in places.get((change["test"], change["metric"]), ()) if abs(day - at) <= SAME]
        if not near:
            bad += any((change["test"], at + k) in trouble for k in range(-SAME, SAME + 1))
            continue
        right += 1
        gone_right += bool(change["withdrawn"])
        if min(near)[1] not in seen:
            seen.add(min(near)[1])
            delays.append(day_of(change["told"]) - truth[min(near)[1]][2])
    return told, right, gone_right, bad, seen, sorted(delays)


def share(seen, truth, least, most):
    """Of the changes whose size is so many deviations of the noise, those that were told."""
    some = [i for i, (_, _, day, size, sd) in enumerate(truth) if least <= size / sd < most]
    return f"{sum(i in seen for i in some)} of {len(some)}"


def row(hunter, folder, names, truth, trouble, detection):
    write_config(folder, names, detection)
    answer = replay(hunter, folder)
    told, right, gone_right, bad, seen, delays = judge(answer, truth, trouble)
    gone = sum(bool(c["withdrawn"]) for c in told)
    days = delays[len(delays) // 2] if delays else "-"
    print(f"| `{detection}` | {answer['messages']} | {len(told)} | {right} | {bad} | {len(told) - right - bad} | {len(truth) - len(seen)} of {len(truth)} | "
          f"{share(seen, truth, 2, 1e9)} | {share(seen, truth, 1, 2)} | {share(seen, truth, 0, 1)} | {days} | {gone} ({gone_right}) |", flush=True)


def make_services(written, folder):
    """Writes each series as a CSV file, moved by whole weeks into the first one. Returns {test: (class, step times)}."""
    first = int(datetime.datetime(FIRST.year, FIRST.month, FIRST.day, tzinfo=datetime.timezone.utc).timestamp())
    tests = {}
    for line in written.splitlines():
        series = json.loads(line)
        if series["step"] != 3600 or series["family"] == "ci":
            continue
        name = series["id"].replace("/", "-")
        start = first + (series["start"] - first) % WEEK
        with open(folder / f"{name}.csv", "w") as f:
            f.write("time,v\n")
            for i, value in enumerate(series["series"]):
                if value is not None:
                    f.write(f"{start + 3600 * i},{value}\n")
        tests[name] = series["class"], [start + 3600 * at for at in series["change_points"]]
    return tests


def seconds_of(text):
    return datetime.datetime.fromisoformat(text.replace("Z", "+00:00")).timestamp()


def replay_services(hunter, folder, tests, detection, days):
    with open(folder / "hunter.yaml", "w") as f:
        f.write(f"agent: {{interval: 1h}}\ndetection: {{{detection}}}\ntests:\n")
        for name in tests:
            f.write(f"  {name}: {{type: csv, file: {folder}/{name}.csv, time_column: time, metrics: {{v: {{direction: -1}}}}}}\n")
    begin = FIRST + datetime.timedelta(days=7 + SERVICE_BEFORE)
    done = subprocess.run([hunter, "replay", "--config", folder / "hunter.yaml", "--from", str(begin), "--to",
                           str(begin + datetime.timedelta(days=days)), "--output", "json"], capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(done.stderr)
    return json.loads(done.stdout)


def judge_services(answer, tests, begin, end):
    """(changes told, true ones, delays in hours, steps, withdrawn, {class: false})"""
    told, right, delays, gone, wrong = 0, 0, {}, 0, {}
    for change in sorted((c for c in answer["changes"] if c["told"]), key=lambda c: c["told"]):
        kind, steps = tests[change["test"]]
        at = seconds_of(change["time"])
        near = [s for s in steps if abs(s - at) <= SAME * 3600]
        told, right, gone = told + 1, right + bool(near), gone + bool(change["withdrawn"])
        if near:
            delays.setdefault((change["test"], near[0]), (seconds_of(change["told"]) - near[0]) / 3600)
        else:
            wrong[kind] = wrong.get(kind, 0) + 1
    steps = sum(begin < s < end for _, truth in tests.values() for s in truth)
    return told, right, sorted(delays.values()), steps, gone, wrong


def services(options):
    made = options.build_dir / "tests/write_series"
    written = subprocess.run([made, "--service", "--days", str(7 + SERVICE_BEFORE + options.days), "--series", str(options.tests or 8),
                              "--first", str(800000 + 8 * options.seed)], capture_output=True, text=True, check=True).stdout
    begin = datetime.datetime(FIRST.year, FIRST.month, FIRST.day, tzinfo=datetime.timezone.utc).timestamp() + (7 + SERVICE_BEFORE) * 86400
    with tempfile.TemporaryDirectory() as tmp:
        folder = pathlib.Path(tmp)
        tests = make_services(written, folder)
        print(f"{len(tests)} series, {options.days} days\n\n| `detection` | messages | changes told | true | false | missed | "
              "hours, median | withdrawn | most false of |\n|---|--:|--:|--:|--:|--:|--:|--:|---|", flush=True)
        for detection in options.detections or SERVICES_USUAL:
            answer = replay_services(options.build_dir / "hunter-c", folder, tests, detection, options.days)
            told, right, delays, steps, gone, wrong = judge_services(answer, tests, begin, begin + options.days * 86400)
            worst = ", ".join(f"{kind} {wrong[kind]}" for kind in sorted(wrong, key=wrong.get, reverse=True)[:4])
            # The replay counts the messages that it prints, a thousand at most.
            messages = "1,000 and more" if answer["messages"] >= 1000 else answer["messages"]
            print(f"| `{detection}` | {messages} | {told} | {right} | {told - right} | {steps - len(delays)} of {steps} | "
                  f"{delays[len(delays) // 2] if delays else 0:.0f} | {gone} | {worst} |", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build-dir", type=pathlib.Path, default=TOP / "build/release")
    parser.add_argument("--tests", type=int, help="100; with --services 8 of each class")
    parser.add_argument("--services", action="store_true")
    parser.add_argument("--days", type=int, default=60)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("detections", nargs="*", metavar="DETECTION")
    options = parser.parse_args()
    if options.services:
        services(options)
        return
    rng, truth, trouble = random.Random(options.seed), [], set()
    names = [f"service-{i:03}" for i in range(options.tests or 100)]
    with tempfile.TemporaryDirectory() as tmp:
        folder = pathlib.Path(tmp)
        for name in names:
            make_test(rng, name, folder, truth, trouble)
        # What was there before the year is known; what comes in its last days cannot be told in it.
        truth = [t for t in truth if BEFORE < t[2] < DAYS - 1]
        print("| `detection` | messages | changes told | true | of bad days | false | missed | told, of 2 deviations and more | of 1 to 2 | below 1 | "
              "days, median | withdrawn (of the true) |\n|---|" + "--:|" * 11, flush=True)
        for detection in options.detections or USUAL:
            row(options.build_dir / "hunter-c", folder, names, truth, trouble, detection)


main()
