"""What a release tells of services, against the last one: one command.

    tests/bench/services/compare.py HUNTER_C [--series N] [--seed N] [--jobs N] [--figures FILE] [--write]

Runs the 32 classes without a change, the 17 with a step, 12 classes from their first day, points every five minutes, and a team of 40
(live.py, cold.py and team.py say how each is judged), and prints each figure beside that of FILE, by class and by age of the series. --write
keeps the new ones there. A figure that is worse by more than its own chance (two standard errors of the counts) is marked, and the exit code is 1.
"""
import argparse
import concurrent.futures
import json
import os
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from svc import FLAT, STEP, gen, judge, replay  # noqa: E402

AGES = ((0, 3), (3, 14), (14, 28), (28, 42))  # days
COLD = ("std", "std_ar6", "flat", "flat_ar5", "weekdays", "outages", "waves", "holidays", "traffic_ar", "churn", "counts30", "wander")
FIVE = ("std", "std_ar6", "flat_ar5", "outages", "counts30", "wander")
LIMITS = {5: 48, 10: 12, 20: 4}  # percent: points


def told(kind, name, count, points):
    """False messages per 1,000 points."""
    return f"{kind}: {name}, false per 1,000", (count, points / 1000)


def flat(hc, name, seed, n):
    series = {f"f{i}": gen(name, seed + i, None, 1, 16) for i in range(n)}
    found, _ = replay(hc, series)
    false = [one for key in series for one in judge(series[key], found[key], 4)["false"]]
    points = n * len(next(iter(series.values()))["values"]) * 0.75
    return [told("four weeks known", name, len(false), points), ("all: withdrawn of what is false", (sum(one[3] for one in false), len(false)))]


def step(hc, name, seed, n):
    out = []
    for percent, limit in LIMITS.items():
        series = {f"s{i}": gen(name, seed + 1000 * percent + i, percent / 100, 1, 16) for i in range(n)}
        found, _ = replay(hc, series)
        hits = [judge(series[key], found[key], 4)["hit"].get(0) for key in series]
        out.append((f"all: {percent}% found", (sum(hit is not None for hit in hits), n)))
        out.append((f"all: {percent}% within {limit} points", (sum(hit is not None and hit[0] <= limit for hit in hits), n)))
        out.append((f"step: {name}, {percent}% within {limit} points", (sum(hit is not None and hit[0] <= limit for hit in hits), n)))
    return out


def cold(hc, name, seed, n):
    series = {f"c{i}": gen(name, seed + i, None, 1, 6) for i in range(n)}
    found, _ = replay(hc, series, 0.06)
    false = [one for key in series for one in judge(series[key], found[key], 0)["false"]]
    return [told("age", f"days {low} to {high}", sum(24 * low <= one[1] < 24 * high for one in false), n * 24 * (high - max(low, 0.42)))
            for low, high in AGES] + [told("from the first day", name, len(false), n * 24 * (42 - 0.42))]


def five(hc, name, seed, n):
    series = {f"m{i}": gen(name, seed + i, None, 12, 5) for i in range(n)}
    found, _ = replay(hc, series, 2)
    return [("every 5 minutes: false per series and week", (sum(len(judge(series[key], found[key], 2)["false"]) for key in series), n * 3))]


def team(hc, _name, seed, n):
    series = {f"t{i}": gen("team", seed + i, [(0.05, 0.1, 0.2, 0.3)[i % 4]], 1, 16) for i in range(n)}
    found, _ = replay(hc, series)
    judged = [judge(series[key], found[key], 4) for key in series]
    return [("team: false a week of 40", (40 * sum(len(one["false"]) for one in judged), n * 12)),
            ("team: true told", (sum(len(one["hit"]) for one in judged), n))]


def work(job):
    return job[0](*job[1:])


def measure(hc, seed, n, jobs):
    """By figure: what was counted, and of how much."""
    todo = [(flat, hc, name, seed, n) for name in FLAT] + [(step, hc, name, seed, n) for name in STEP]
    todo += [(cold, hc, name, seed + 500, n) for name in COLD] + [(five, hc, name, seed + 700, n) for name in FIVE]
    todo += [(team, hc, "team", seed + 100 * part, 4 * n) for part in range(4)]
    out = {}
    with concurrent.futures.ProcessPoolExecutor(jobs) as pool:
        for figures in pool.map(work, todo):
            for name, (count, of) in figures:
                key = name.replace("four weeks known: ", "class: ") if name.startswith("four") else name
                before = out.get(key, (0, 0))
                out[key] = (before[0] + count, before[1] + of)
    every = [value for key, value in out.items() if key.startswith("class: ")]
    out["all: false per 1,000"] = (sum(count for count, _ in every), sum(of for _, of in every))
    return out


def is_better_high(name):
    return "found" in name or "within" in name or "true" in name


def is_worse(name, now, before):
    (count, of), (then, then_of) = now, before
    if not of or not then_of:
        return False
    rate, old = count / of, then / then_of
    chance = 2 * (max(count, 1) / of ** 2 + max(then, 1) / then_of ** 2) ** 0.5
    return rate < old - chance if is_better_high(name) else rate > old + chance


def show(now, before):
    """Returns how many are worse."""
    worse = 0
    print(f"{'':62} {'before':>8} {'now':>8}")
    for name in sorted(now):
        bad = name in before and is_worse(name, now[name], before[name])
        texts = [f"{one[0] / one[1]:.2f}" if one and one[1] else "-" for one in (before.get(name), now[name])]
        print(f"{name:62} {texts[0]:>8} {texts[1]:>8}{'  worse' if bad else ''}")
        worse += bad
    return worse


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("hunter_c")
    parser.add_argument("--series", type=int, default=2)
    parser.add_argument("--seed", type=int, default=80000)
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--figures", type=pathlib.Path, default=pathlib.Path(__file__).with_name("figures.json"))
    parser.add_argument("--write", action="store_true")
    asked = parser.parse_args()
    kept = json.loads(asked.figures.read_text()) if asked.figures.exists() else {}
    now = measure(asked.hunter_c, asked.seed, asked.series, asked.jobs)
    same = kept.get("seed") == asked.seed and kept.get("series") == asked.series
    worse = show(now, kept.get("figures", {}) if same else {})
    if not same:
        print(f"{asked.figures} has no figures of seed {asked.seed} and {asked.series} series: nothing to compare with")
    if asked.write:
        asked.figures.write_text(json.dumps({"seed": asked.seed, "series": asked.series, "figures": now}, indent=1, sort_keys=True) + "\n")
    return 1 if worse else 0


if __name__ == "__main__":
    sys.exit(main())
