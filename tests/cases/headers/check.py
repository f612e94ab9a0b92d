#!/usr/bin/env python3
"""check.py ROOT COMPILER [FLAG...]: each header stands alone, any two can be included together, and guards follow paths.

Two headers clash only if the file that includes all of them does, so one such file, and one in the opposite order, stand
for all pairs.
"""
import concurrent.futures
import os
import pathlib
import re
import subprocess
import sys

FOLDERS = ("agent", "conf", "detectors", "notifiers", "sources")


def main():
    root, compiler = pathlib.Path(sys.argv[1]), sys.argv[2:]

    def errors(headers):
        text = "".join(f'#include "{header}"\n' for header in headers)
        done = subprocess.run([*compiler, f"-I{root}", "-std=c17", "-D_GNU_SOURCE", '-DHUNTER_VERSION=""', "-fsyntax-only", "-w",
                               "-x", "c", "-"], input=text, capture_output=True, text=True)
        return [line for line in done.stderr.splitlines() if re.search(r"error:", line)] or ([done.stderr] if done.returncode else [])

    headers = sorted(str(p.relative_to(root)) for folder in FOLDERS for p in (root / folder).rglob("*.h"))
    found = errors(headers) or errors(headers[::-1])
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        for alone in pool.map(lambda h: errors([h]), headers):
            found += alone
    for header in headers:
        guard = re.sub(r"\W", "_", header).upper()
        if f"#ifndef {guard}\n#define {guard}\n" not in (root / header).read_text():
            found.append(f"{header}: its guard is not {guard}")
    print("\n".join(found) or f"{len(headers)} headers, any two together")
    return bool(found) or len(headers) < 50


sys.exit(main())
