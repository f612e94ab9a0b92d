#!/usr/bin/env python3
"""check.py ROOT: who may include whom (docs/design/architecture.md). Prints each breach and fails on any."""
import pathlib
import re
import sys

# From the ground up: a room may include itself and those before it.
ORDER = ["agent/base", "agent/model", "detectors", "agent/decide", "conf", "sources", "notifiers", "agent/io", "agent/analysis",
         "agent/report", "agent/store", "agent/bisect", "agent/runtime", "agent/fleet", "agent/deliver", "agent/notify", "agent/monitor", "agent/http", "agent/web",
         "agent/service", "agent/cli", "agent/commands", "agent/evaluate", "agent"]
# These know what they are about, and the model, and nothing else that lies before them.
PURE = {"detectors", "sources", "notifiers", "agent/store"}
GROUND = {"agent/base", "agent/model"}
# These know nothing of each other, in either direction.
STRANGERS = [("conf", "sources"), ("conf", "notifiers"), ("agent/report", "conf"), ("agent/report", "sources"),
             ("agent/report", "notifiers"), ("agent/report", "agent/io"), ("agent/analysis", "notifiers"), ("agent/bisect", "agent/store"),
             ("agent/web", "sources"), ("agent/web", "notifiers"), ("agent/http", "agent/store"), ("agent/http", "agent/monitor"),
             ("agent/http", "agent/notify"), ("agent/deliver", "agent/notify"), ("agent/deliver", "agent/monitor"), ("agent/notify", "agent/monitor")]
# Only these know SQL; the first is common to the others, which know nothing of one another.
SQL = ["agent/store/sql/", "agent/store/sqlite/", "agent/store/postgresql/"]


def room(path):
    return next(name for name in sorted(ORDER, key=len, reverse=True) if path.startswith(name + "/"))


def allowed(here, there):
    if here == there:
        return True
    if here in PURE:
        return there in GROUND
    return ORDER.index(there) < ORDER.index(here) and (here, there) not in STRANGERS and (there, here) not in STRANGERS


def sql_room(path):
    return next((name for name in SQL if path.startswith(name)), None)


def is_sql_allowed(here, there):
    return not there or here and there in (here, SQL[0])


def check(root):
    breaches, seen = [], 0
    for file in sorted(p for name in ("agent", "conf", "detectors", "notifiers", "sources") for p in (root / name).rglob("*.[ch]")):
        name = str(file.relative_to(root))
        for number, line in enumerate(file.read_text().splitlines(), 1):
            match = re.match(r'\s*#\s*include\s*"([^"]+)"', line)
            if not match:
                continue
            seen += 1
            target = match[1]
            if not (root / target).is_file():
                breaches.append(f"{name}:{number}: {target} is not a path from the top of the tree")
            elif not is_sql_allowed(sql_room(name), sql_room(target)):
                breaches.append(f"{name}:{number}: {sql_room(target)} is the SQL of others, include agent/store/backend.h")
            elif not allowed(room(name), room(target)):
                breaches.append(f"{name}:{number}: {room(name)} may not include {target}")
    return breaches, seen


def main():
    breaches, seen = check(pathlib.Path(sys.argv[1]))
    print("\n".join(breaches) or f"{seen} includes, no breach")
    return bool(breaches) or seen < 50


sys.exit(main())
