"""A state whose changes detectors of an earlier revision found: what these find otherwise is recorded, and nobody is told.

tests/samples/state/before_seasons.sql are the rows that the program of commit 8d5f8e6, the last before seasons, wrote in one run
over what series() gives.
"""
import csv
import datetime
import math
import pathlib
import random
import re
import sqlite3
from typing import NamedTuple

import pytest

DUMP = pathlib.Path(__file__).parents[1] / "samples" / "state" / "before_seasons.sql"
START = datetime.datetime(2026, 3, 2, tzinfo=datetime.timezone.utc)  # a Monday
POINTS = 240  # hours that the earlier version saw
LATER = 30  # hours later the level of "late" goes up
LEVELS = {
    "flat": lambda i: 100,
    "step": lambda i: 120 if i >= 100 else 100,
    "outage": lambda i: 300 if 60 <= i < 64 else 120 if i >= 94 else 100,  # hid what came behind it
    "season": lambda i: 100 * (1 + .3 * math.sin(2 * math.pi * i / 24)),
    "leak": lambda i: 100 * (1 + max(0, min(1, (i - 100) / 60))),
    "office": lambda i: 200 if i // 24 % 7 < 5 and 8 <= i % 24 < 18 else 100,  # one message after the other
    "late": lambda i: 130 if i >= POINTS + LATER else 100,
}


def series(name, points):
    noise = random.Random(name)
    return [f"{LEVELS[name](i) * math.exp(noise.gauss(0, .03)):.4f}" for i in range(points)]


def write(path, points):
    columns = [series(name, points) for name in LEVELS]
    with open(path, "w", newline="") as out:
        rows = csv.writer(out)
        rows.writerow(["time", *LEVELS])
        for i, values in enumerate(zip(*columns)):
            rows.writerow([(START + datetime.timedelta(hours=i)).isoformat(), *values])


@pytest.fixture
def path(hunter, tmp_path):
    (tmp_path / "flat.csv").write_text("time,v\n" + "".join(f"{1700000000 + 60 * i},1\n" for i in range(9)))
    (tmp_path / "tables.yaml").write_text(f"agent: {{state: {tmp_path}/state.db}}\ntests: {{flat: {{type: csv, file: {tmp_path}/flat.csv}}}}\n")
    assert hunter("run", "--once", "--config", "tables.yaml").code == 0
    with sqlite3.connect(tmp_path / "state.db") as state:
        state.executescript(DUMP.read_text())
    state.close()
    write(tmp_path / "web.csv", POINTS)
    path = tmp_path / "hunter.yaml"
    path.write_text(f"""
agent: {{state: {tmp_path}/state.db, listen: "127.0.0.1:0", max_age: never, group_wait: 0s}}
tests:
  web: {{type: csv, file: {tmp_path}/web.csv, metrics: [{", ".join(LEVELS)}]}}
""")
    return path


class Change(NamedTuple):
    metric: str
    time: int
    state: int
    news: int


SILENT, MESSAGE, WITHDRAWN = 0, 2, 3  # as they are stored


def changes(path):
    """By their ids, from the file itself."""
    with sqlite3.connect(path.parent / "state.db") as state:
        rows = state.execute("SELECT id, metric, time, state, news FROM changes").fetchall()
    state.close()
    return {row[0]: Change(*row[1:]) for row in rows}


def run(hunter, path):
    done = hunter("run", "--once", "--config", path)
    assert done.code == 0, done.err
    return done, re.findall(r"detector revision changed.* new=(\d+) vanished=(\d+)", done.err)


def test_an_upgrade_announces_nothing_old(hunter, path, tmp_path):
    before = changes(path)
    told = {key for key, change in before.items() if change.news == MESSAGE}
    assert len(told) == 15
    done, lines = run(hunter, path)
    assert done.out == ""
    after = changes(path)
    new = [change for key, change in after.items() if key not in before]
    assert lines == [(str(len(new)), lines[0][1])] and int(lines[0][1]) > 10, done.err
    assert {change.news for change in new} == {SILENT} and "outage" in {change.metric for change in new}
    assert {key: after[key] for key in told} == {key: before[key] for key in told}
    for _ in range(2):
        done, lines = run(hunter, path)
        assert (done.out, lines, changes(path)) == ("", [], after)
    write(tmp_path / "web.csv", POINTS + LATER)
    done, lines = run(hunter, path)
    assert (done.out, lines) == ("", [])
    now = changes(path)
    assert not [now[key] for key in told if now[key].state == WITHDRAWN]


def test_what_is_new_is_news(hunter, path, tmp_path):
    """The first run of this version sees a step that is later than all that the earlier one saw."""
    write(tmp_path / "web.csv", POINTS + LATER + 12)
    done, lines = run(hunter, path)
    assert len(lines) == 1
    assert done.out.count("  improvement\n") == 1 and "late: +" in done.out, done.out
    assert run(hunter, path)[0].out == ""
