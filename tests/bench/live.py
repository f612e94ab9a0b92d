#!/usr/bin/env python3
"""What the agent tells of service metrics while they arrive: `hunter-c replay` of made series, one at a time.

    tests/bench/live.py [--build-dir DIR] [--series N] [--seed N] [--jobs N] [--noise FACTOR] [--only WORD] [DETECTION...]

Four weeks are there before, so that a weekly cycle is known, and three are lived through. The agent looks as often as points
come. A DETECTION is what stands in braces behind `detection:`; without, the default is measured. For each a table:

- without a change: messages in three weeks, the mean and the most of N series. Office hours are twice the level from 8 to 18 on
  weekdays, weekends 60% of it around a daily sine of 30%, and a daily sine of 30% at 1 h and of 8% at 10 min;
- a lasting step of 10 or 20% at a random point of the second week: how many are told within 6 h or 3 points (whose first has
  the new level), in the right direction and not withdrawn at the end, the points until then, and messages beside them;
- a lasting step of 20% that comes 30 points after an outage of four points at twice the level.

Noise is lognormal, 5% (3% beside a sine of 8%), times --noise. Messages of a step's series beside the first right one are in the last column.
"""
import argparse
import concurrent.futures
import datetime
import json
import math
import pathlib
import random
import subprocess
import sys
import tempfile

TOP = pathlib.Path(__file__).resolve().parents[2]
START = datetime.datetime(2026, 1, 5, tzinfo=datetime.timezone.utc)  # a Monday
BEFORE, LIVE = 28, 21  # days
HOUR = 3600


def sine(share):
    return lambda day, hour: 1 + share * math.sin(2 * math.pi * (hour - 9) / 24)


def office(day, hour):
    return 2.0 if day < 5 and 8 <= hour < 18 else 1.0


def weekends(day, hour):
    return (0.6 if day >= 5 else 1.0) * sine(0.3)(day, hour)


def flat(day, hour):
    return 1.0


# name: (level by day of the week and hour, seconds between points, standard deviation of the noise)
KINDS = {
    "office hours, 1 h": (office, HOUR, 0.05),
    "weekends, 1 h": (weekends, HOUR, 0.05),
    "daily sine, 1 h": (sine(0.3), HOUR, 0.05),
    "daily sine, 10 min": (sine(0.08), 600, 0.03),
    "no cycle, 1 h": (flat, HOUR, 0.05),
}
# (name of the row, kind, size of the step, outage before it, the points within which it is to be told)
QUIET = ["office hours, 1 h", "weekends, 1 h", "daily sine, 1 h", "daily sine, 10 min", "no cycle, 1 h"]
STEPS = [(kind, size, False, limit) for kind in QUIET[:3] for size, limit in ((0.1, 6), (0.2, 3))]
AFTER_OUTAGE = [("no cycle, 1 h", 0.2, True, 3), ("daily sine, 1 h", 0.2, True, 3)]


def make(kind, seed, size=0.0, outage=False, noise=1.0):
    """([(time, value)], index of the step or None)"""
    level, step, sd = KINDS[kind]
    rng = random.Random(f"{kind} {seed} {size} {outage}")
    a_day, count = 86400 // step, (BEFORE + LIVE) * 86400 // step
    at = rng.randrange((BEFORE + 7) * a_day, (BEFORE + 14) * a_day) if size else None
    points = []
    for i in range(count):
        seconds = i * step
        value = 100 * level(seconds // 86400 % 7, seconds % 86400 / HOUR) * math.exp(noise * sd * rng.gauss(0, 1))
        if at is not None and i >= at:
            value *= 1 + size
        if outage and at - 34 <= i < at - 30:
            value *= 2
        points.append((START + datetime.timedelta(seconds=seconds), value))
    return points, at


def replay(hunter, points, step, detection):
    with tempfile.TemporaryDirectory() as folder:
        with open(f"{folder}/a.csv", "w") as f:
            f.write("time,v\n" + "".join(f"{t:%Y-%m-%dT%H:%M:%SZ},{v:.5g}\n" for t, v in points))
        with open(f"{folder}/hunter.yaml", "w") as f:
            f.write(f"agent: {{interval: {step}s}}\ndetection: {{{detection}}}\ntests:\n"
                    f"  a: {{type: csv, file: {folder}/a.csv, time_column: time, metrics: {{v: {{direction: -1}}}}}}\n")
        begin = START + datetime.timedelta(days=BEFORE)
        end = START + datetime.timedelta(days=BEFORE + LIVE)
        done = subprocess.run([hunter, "replay", "--config", f"{folder}/hunter.yaml", "--from", begin.isoformat(),
                               "--to", end.isoformat(), "--output", "json"], capture_output=True, text=True)
    if done.returncode != 0:
        raise RuntimeError(done.stderr)
    return json.loads(done.stdout)


def moment(text):
    return datetime.datetime.fromisoformat(text.replace("Z", "+00:00"))


def delay(answer, points, at, step):
    """Points of the new level that were there when it was told; None: it was not."""
    best = None
    for change in answer["changes"]:
        if not change["told"] or change["withdrawn"] or change["mean_after"] <= change["mean_before"]:
            continue
        if abs((moment(change["time"]) - points[at][0]).total_seconds()) <= 5 * step:
            seen = int((moment(change["told"]) - points[at][0]).total_seconds() // step) + 1
            best = seen if best is None else min(best, seen)
    return best


def run(task):
    hunter, detection, kind, seed, size, outage, noise = task
    step = KINDS[kind][1]
    points, at = make(kind, seed, size, outage, noise)
    answer = replay(hunter, points, step, detection)
    return answer["messages"], delay(answer, points, at, step) if at is not None else None


def quiet_row(kind, results):
    messages = [m for m, _ in results]
    return f"| {kind}, no change | {sum(messages) / len(messages):.1f} | {max(messages)} | | | |"


def step_row(kind, size, outage, limit, results):
    delays = sorted(d for _, d in results if d is not None)
    beside = sum(m - (d is not None) for m, d in results) / len(results)
    early = sum(d <= limit for d in delays)
    middle = delays[len(delays) // 2] if delays else "-"
    where = ", 30 points after an outage" if outage else ""
    return (f"| {kind}, a step of {size:.0%}{where} | | | {early} of {len(results)} within {limit} points | "
            f"{len(delays)} told, after {middle} | {beside:.1f} |")


def measure(hunter, detection, options, pool):
    rows = [(kind, 0.0, False, 0) for kind in QUIET] + STEPS + AFTER_OUTAGE
    rows = [r for r in rows if options.only in ("outage" if r[2] else "step" if r[1] else "quiet") or options.only in r[0]]
    print(f"`detection: {{{detection}}}`\n\n| series | messages in three weeks, mean | most | told in time | told at all, points, median | "
          "other messages a series |\n|---|--:|--:|--:|--:|--:|", flush=True)
    for kind, size, outage, limit in rows:
        count = max(options.series, 25) if outage and options.series >= 8 else options.series
        tasks = [(hunter, detection, kind, options.seed + i, size, outage, options.noise) for i in range(count)]
        results = list(pool.map(run, tasks))
        print(step_row(kind, size, outage, limit, results) if size else quiet_row(kind, results), flush=True)
    print(flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build-dir", type=pathlib.Path, default=TOP / "build/release")
    parser.add_argument("--series", type=int, default=8)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--noise", type=float, default=1.0, metavar="FACTOR")
    parser.add_argument("--only", default="", metavar="WORD", help="rows whose series have it in their name, or quiet, step, outage")
    parser.add_argument("detections", nargs="*", default=["season: auto"], metavar="DETECTION")
    options = parser.parse_args()
    try:
        with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
            for detection in options.detections:
                measure(options.build_dir / "hunter-c", detection, options, pool)
    except RuntimeError as problem:
        sys.exit(f"live.py: {problem}")


main()
