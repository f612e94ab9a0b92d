#!/usr/bin/env python3
"""scenarios.py [FILE]: measures the series of tests/datasets/measured.jsonl with kvbench (a few minutes).

Nine scenarios: the mean, the variance or both change, and the number, the size or the length of the changes varies, at
four steps each: 36 series of 200 builds. Every number is measured: a point is the median of eleven measurements of the
work of one build. What changes is how much work that is. The measurements of all series and builds are shuffled with a
fixed seed, so that the drift of the machine does not look like a change of the program. Invented are only the dates.
"""
import datetime
import json
import pathlib
import random
import statistics
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
BUILDS, REPEATS, READS = 200, 11, 2000
FIRST = datetime.date(2026, 4, 20)
KINDS = ("mean", "variance", "both")
VARIED = {"number": (1, 2, 4, 8), "size": (0.02, 0.05, 0.1, 0.2), "length": (5, 10, 20, 40)}


def places(rng, varied, value):
    """Where the series changes."""
    if varied == "number":
        room = BUILDS / (value + 1)
        return [round(room * (k + 1) + rng.uniform(-0.2, 0.2) * room) for k in range(value)]
    first = rng.randrange(BUILDS // 4, BUILDS * 3 // 4 - 40)
    return [first] if varied == "size" else [first, first + value]


def work(rng, kind, varied, value):
    """(points of change, reads of each build): the level and the spread between builds as shares of READS."""
    changes, size = places(rng, varied, value), value if varied == "size" else 0.1
    level, spread, reads = 1.0, 0.0, []
    for build in range(BUILDS):
        if build in changes:
            back = level != 1 or spread > 0
            if kind != "variance":
                level = 1.0 if back else 1 + size
            if kind != "mean":
                spread = 0.0 if back else size
        reads.append(round(READS * max(0.2, level + spread * rng.gauss(0, 1))))
    return changes, reads


def measure(jobs):
    """Nanoseconds of each job, in its order."""
    with tempfile.TemporaryDirectory() as tmp:
        program = f"{tmp}/kvbench"
        subprocess.run(["cc", "-O2", "-o", program, HERE / "kvbench.c"], check=True)
        lines = "".join(f"{reads}\n" for _, _, reads in jobs)
        done = subprocess.run([program, "amounts"], input=lines, check=True, capture_output=True, text=True)
    return [int(line) for line in done.stdout.split()]


def main():
    out = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else HERE.parents[1] / "datasets/measured.jsonl"
    rng = random.Random(1)
    series = [(f"{kind}/{varied}/{value}", f"{kind}_{varied}", *work(rng, kind, varied, value))
              for kind in KINDS for varied, values in VARIED.items() for value in values]
    jobs = [(s, b, reads) for s, row in enumerate(series) for b, reads in enumerate(row[3])] * REPEATS
    rng.shuffle(jobs)
    took = {}
    for (s, b, _), ns in zip(jobs, measure(jobs)):
        took.setdefault((s, b), []).append(ns)
    times = [str(FIRST + datetime.timedelta(days=b)) for b in range(BUILDS)]
    with open(out, "w") as f:
        for s, (name, group, changes, _) in enumerate(series):
            values = [round(statistics.median(took[s, b]) / READS, 2) for b in range(BUILDS)]
            f.write(json.dumps({"id": name, "class": group, "change_points": changes, "series": values, "times": times}) + "\n")


main()
