#!/usr/bin/python3
"""Whether the suspects of a change hold the deployment that did it, with a real Prometheus and a real Graphite.

    tests/bench/deployments.py [--build-dir DIR] [--services N] [--steps SD...] [--seed N] [--only prometheus|graphite]

60 services, each deployed at another minute of an hour (of points a minute apart: second of a minute), and seven times more
at random. The deployment in question moves the level at once, by so many standard deviations of a point; noise is normal. Ninety
points each, two thirds of them before. One line for each way of asking and each size:

- found: services of which a change is found within a window and three points of the deployment;
- culprit: those of them whose suspects hold it by name. The rest is listed on stderr;
- in the range: those whose range, from what ran before (exclusive) to the last suspect, has it: one that was gone before anybody
  looked is there, between two that were seen;
- suspects: how many there are, median and most; of these deployments `least` would be left if each point said exactly what it holds:
  those between the last grid time before the culprit and the first behind it;
- width: from `since` to `until` of the suspects in steps, median and nine in ten, and the least that points can tell: the window and a step.
"""
import argparse
import contextlib
import datetime
import json
import math
import pathlib
import random
import statistics
import subprocess
import sys
import tempfile

TOP = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(TOP / "tests/e2e"))
import servers  # noqa: E402

MINUTE, HOUR = 60, 3600
END = int(datetime.datetime(2026, 2, 2, 12, tzinfo=datetime.timezone.utc).timestamp())
POINTS, BEFORE, OTHERS = 90, 60, 7
# name: step, window and distance of samples, s; the query or target of a series.
PROMETHEUS = {"1m": (60, 60, 15, "avg_over_time(x_1m[1m])"), "10m": (600, 600, 60, "avg_over_time(x_10m[10m])"),
              "1h": (HOUR, HOUR, 240, "avg_over_time(x_1h[1h])"), "10m of 1h": (600, HOUR, 120, "avg_over_time(x_10mof1h[1h])")}
GRAPHITE = {"1m": (60, 60, 60, "minute.{}"), "10m": (600, 600, 60, "summarize(minute.{},'10min','avg')"),
            "1h": (HOUR, HOUR, 60, "summarize(minute.{},'1h','avg')"),
            "10m of 1h": (600, HOUR, 60, "movingAverage(summarize(minute.{},'10min','avg'),'1h')")}


class Service:
    def __init__(self, name, number, ask, size, chance):
        self.name, self.chance = name, chance
        self.step, self.window, self.scrape, _ = ask
        self.end = END
        self.begin = self.end - POINTS * self.step
        slot = self.begin + BEFORE * self.step
        self.culprit = slot // HOUR * HOUR + number * MINUTE if self.step > MINUTE else slot + number
        others = [chance.randrange(self.begin + self.window, self.end) for _ in range(OTHERS)]
        self.deployments = sorted({self.culprit, *others})
        self.size = size

    def commit(self, when):
        return "c%02d" % sum(d <= when for d in self.deployments)

    def samples(self):
        spread = math.sqrt(self.window / self.scrape)
        for when in range(self.begin - self.window, self.end, self.scrape):
            yield when, 100 + self.size * (when >= self.culprit) + self.chance.gauss(0, spread)

    def least(self):
        """Deployments that no point tells from the culprit, and the width, s, of what the points around it tell of."""
        before = (self.culprit - 1) // self.step * self.step
        return sum(before < d <= before + self.step for d in self.deployments)


def services(asks, sizes, count, seed):
    for kind, ask in asks.items():
        for size in sizes:
            for number in range(count):
                name = f"{kind.replace(' ', '')}_{size}_{number}".replace(".", "p")
                yield kind, size, Service(name, number * 60 // count, ask, size, random.Random(f"{seed} {name}"))


def judge(all_services, document, out):
    changes = {}
    for test in document["tests"]:
        for change in test["changes"]:
            name = change["labels"].get("service") or test["name"]
            changes.setdefault(name, []).append(change)
    rows = {}
    for kind, size, service in all_services:
        row = rows.setdefault((kind, size), {"n": 0, "found": 0, "held": 0, "within": 0, "counts": [], "least": [], "widths": [], "ask": service})
        row["n"] += 1
        near = [c for c in changes.get(service.name, []) if abs(c["timestamp"] - service.culprit) <= service.window + 3 * service.step]
        if not near:
            continue
        change = min(near, key=lambda c: abs(c["timestamp"] - service.culprit))
        suspects, commit = change["suspects"], service.commit(service.culprit)
        assert suspects["from"] != suspects["to"] or suspects["count"] == 0, change
        held = any(s["commit"] == commit for s in suspects["list"])
        since, until = (datetime.datetime.fromisoformat(suspects[k].replace("Z", "+00:00")).timestamp() for k in ("since", "until"))
        row["found"] += 1
        row["held"] += held
        within = suspects["count"] > 0 and (suspects["from"] or "") < commit <= suspects["to"]
        row["within"] += within
        row["counts"].append(suspects["count"])
        row["least"].append(service.least())
        row["widths"].append((until - since) / service.step)
        if not held or not within:
            print(f"{kind} {size} sd {service.name}: deployed {datetime.datetime.utcfromtimestamp(service.culprit)} {commit},",
                  json.dumps(suspects), file=sys.stderr)
    for (kind, size), row in rows.items():
        widths, service = sorted(row["widths"]), row["ask"]
        median = statistics.median(widths) if widths else math.nan
        nine = widths[int(0.9 * (len(widths) - 1))] if widths else math.nan
        print(f"| {out} | {kind} | {size} | {row['found']} of {row['n']} | {row['held']} of {row['found']} | "
              f"{row['within']} of {row['found']} | "
              f"{statistics.median(row['counts'] or [0]):g}, {max(row['counts'] or [0])} | {statistics.mean(row['least'] or [0]):.2f} of "
              f"{statistics.mean(row['counts'] or [0]):.2f} | {median:.1f}, {nine:.1f} | {(service.window + service.step) / service.step:.0f} |",
              flush=True)


def analyze(program, folder, text):
    path = folder / "hunter.yaml"
    path.write_text(text)
    ran = subprocess.run([program, "analyze", "--config", path, "--output", "json", "--until", str(END)], capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr
    sys.stderr.write(ran.stderr)
    return json.loads(ran.stdout)


def prometheus(program, options, folder):
    everything = list(services(PROMETHEUS, options.steps, options.services, options.seed))
    families = {}
    for kind, size, service in everything:
        key = kind.replace(" ", "")
        values, builds = families.setdefault(f"x_{key}", []), families.setdefault(f"build_{key}", [])
        labels = {"service": service.name}
        for when, value in service.samples():
            values.append((labels, f"{value:.6f}", when))
            builds.append((labels | {"revision": service.commit(when)}, 1, when))
    tests = "".join(f'  "{kind}": {{type: prometheus, query: "{ask[3]}", step: {ask[0]}s, range: {POINTS * ask[0]}s, '
                    f'build_info: "build_{kind.replace(" ", "")}"}}\n' for kind, ask in PROMETHEUS.items())
    with servers.prometheus(folder, servers.openmetrics(families)) as server:
        judge(everything, analyze(program, folder, f"prometheus: {{url: '{server.url}', max_body: 256MB}}\ntests:\n{tests}"), "Prometheus")


def graphite(program, options, folder):
    everything = list(services(GRAPHITE, options.steps, options.services, options.seed))
    with servers.graphite(folder) as server:
        tests = ""
        for kind, size, service in everything:
            server.feed({f"minute.{service.name}": [(f"{value:.6f}", when) for when, value in service.samples()]})
            for when in service.deployments:
                server.event(when, [service.name], data={"commit": service.commit(when)})
            step = GRAPHITE[kind]
            tests += (f'  "{service.name}": {{type: graphite, target: "{step[3].format(service.name)}", tags: [{service.name}], '
                      f"range: {POINTS * step[0]}s}}\n")
        judge(everything, analyze(program, folder, f"graphite: {{url: '{server.url}'}}\ntests:\n{tests}"), "Graphite")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--build-dir", type=pathlib.Path, default=TOP / "build/release")
    parser.add_argument("--services", type=int, default=60)
    parser.add_argument("--steps", type=float, nargs="+", default=[3, 5, 8])
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", choices=("prometheus", "graphite"))
    options = parser.parse_args()
    print("| source | points | step, sd | found | culprit among the suspects | in the range | suspects: median, most | least of mean | "
          "width in steps: median, 90% | least |\n|---|---|---|---|---|---|---|---|---|---|")
    for kind in (prometheus, graphite):
        if options.only in (None, kind.__name__):
            with contextlib.ExitStack() as stack:
                folder = pathlib.Path(stack.enter_context(tempfile.TemporaryDirectory()))
                kind(options.build_dir / "hunter-c", options, folder)


if __name__ == "__main__":
    main()
