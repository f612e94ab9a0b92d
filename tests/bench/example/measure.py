#!/usr/bin/env python3
"""measure.py [OUTDIR]: makes the shipped example's data by running kvbench for 200 builds (about ten minutes).

Every number is measured: a row is the median of eleven executions of one workload at one build. The executions of all
builds are shuffled with a fixed seed, so that the drift of the machine does not look like a change of the program.
Invented are only the dates (one build a night) and the commit names (a hash of the build's number).
"""
import datetime
import hashlib
import pathlib
import random
import statistics
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
BUILDS, REPEATS = 200, 11
WORKLOADS = ["read.inmem", "read.range", "write.rf1", "write.batch-10"]
FIRST = datetime.datetime(2026, 4, 20, 2, 0)


def main():
    out = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else HERE.parents[2] / "conf" / "example"
    with tempfile.TemporaryDirectory() as tmp:
        program = f"{tmp}/kvbench"
        subprocess.run(["cc", "-O2", "-o", program, str(HERE / "kvbench.c")], check=True)
        jobs = [(w, b) for w in WORKLOADS for b in range(BUILDS)] * REPEATS
        random.Random(1).shuffle(jobs)
        rows = {}
        for workload, build in jobs:
            line = subprocess.run([program, workload, str(build)], check=True, capture_output=True, text=True).stdout
            rows.setdefault((workload, build), []).append([float(x) for x in line.split(",")])
    out.mkdir(parents=True, exist_ok=True)
    for workload in WORKLOADS:
        with open(out / f"{workload}.csv", "w") as f:
            f.write("time,commit,throughput,p50,p90,p95,p99\n")
            for build in range(BUILDS):
                when = FIRST + datetime.timedelta(days=build)
                commit = hashlib.sha1(f"build {build}".encode()).hexdigest()[:8]
                values = [statistics.median(v) for v in zip(*rows[workload, build])]
                f.write(f"{when:%Y-%m-%d %H:%M:%S} +0000,{commit},{','.join(f'{v:.0f}' for v in values)}\n")


main()
