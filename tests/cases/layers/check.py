#!/usr/bin/env python3
"""check.py ROOT: who may include whom (docs/architecture.md). Prints each breach and fails on any."""
import pathlib
import re
import sys

# A room may include itself and these. Single files that cross the floor are named in full.
GROUND = {"agent/core", "detectors"}
MAY = {
    "agent/core": {"agent/core", "detectors/change.h"},
    "detectors": {"detectors", "agent/core/field.h", "agent/core/error.h"},
    "conf": {"conf", "agent/core", "detectors"},
    "sources": {"sources", "agent/core", "detectors"},
    "notifiers": {"notifiers", "agent/core", "detectors"},
    "agent/engine": {"agent/engine", *GROUND, "conf", "sources", "notifiers"},
    "agent/report": {"agent/report", "agent/engine", "agent/analyze.h", "agent/cli.h", "agent/regressions.h", "agent/select.h", *GROUND, "conf", "sources", "notifiers"},
    "agent/news": {"agent/news", "agent/engine", "agent/analyze.h", *GROUND, "conf", "notifiers"},
    "agent/shapes": {"agent/shapes", *GROUND, "conf"},
    "agent/watch": {"agent/watch", "agent/shapes", "agent/news", "agent/report", "agent/engine", "agent/analyze.h", "agent/cli.h", "agent/select.h", *GROUND, "conf", "sources", "notifiers"},
    "agent": {"agent", "agent/core", "agent/engine", "agent/report", "agent/news", "agent/shapes", "agent/watch", "conf", "sources", "notifiers", "detectors"},
}


def room(path):
    return next(name for name in sorted(MAY, key=len, reverse=True) if path.startswith(name + "/"))


def check(root):
    breaches, seen = [], 0
    for file in sorted(p for name in ("agent", "conf", "detectors", "notifiers", "sources") for p in (root / name).rglob("*.[ch]")):
        name = str(file.relative_to(root))
        allowed = MAY[room(name)]
        for number, line in enumerate(file.read_text().splitlines(), 1):
            match = re.match(r'\s*#\s*include\s*"([^"]+)"', line)
            if not match:
                continue
            seen += 1
            target = match[1]
            if not (root / target).is_file():
                breaches.append(f"{name}:{number}: {target} is not a path from the top of the tree")
            elif name == "detectors/change.h" or (target not in allowed and room(target) not in allowed):
                breaches.append(f"{name}:{number}: {room(name)} may not include {target}")
    return breaches, seen


def main():
    breaches, seen = check(pathlib.Path(sys.argv[1]))
    print("\n".join(breaches) or f"{seen} includes, no breach")
    return bool(breaches) or seen < 50


sys.exit(main())
