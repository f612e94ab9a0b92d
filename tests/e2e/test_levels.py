"""What a message says of levels is true of the values as measured: the means of whole days, and their ratio."""
import datetime
import math
import random
import re

import pytest

START = datetime.datetime(2026, 1, 1)
DAY = 24
UP, DOWN, END = 28 * DAY, 32 * DAY, 36 * DAY


def swinging(noise, hour):
    return 0.1 * math.exp(math.sin(hour * math.pi / 12) + noise.gauss(0, 0.05))


def counted(noise, hour):
    return max(0, round(noise.gauss(1, 0.1) * 60 * (1 + 0.9 * math.sin(hour * math.pi / 12))))


def nightless(noise, hour):
    return 0 if hour % DAY < 8 else noise.gauss(1, 0.05) * 200 * math.sin((hour % DAY - 8) * math.pi / 16)


def replayed(hunter, folder, values):
    (folder / "v.csv").write_text("time,v\n" + "".join(
        f"{(START + i * datetime.timedelta(hours=1)).isoformat()},{value:.6g}\n" for i, value in enumerate(values)))
    (folder / "hunter.yaml").write_text("tests: {s: {type: csv, file: v.csv, metrics: {v: {direction: -1}}}}\n")
    result = hunter("replay", "s", "--from", "2026-01-25", "--to", (START + datetime.timedelta(hours=len(values))).isoformat())
    assert result.code == 0, result
    return result.out


def mean(values):
    return sum(values) / len(values)


@pytest.mark.parametrize("value", [swinging, counted, nightless])
def test_levels_are_means_of_whole_days(hunter, tmp_path, value):
    noise = random.Random(5)
    values = [value(noise, hour) * (1.5 if UP <= hour < DOWN else 1) for hour in range(END)]
    out = replayed(hunter, tmp_path, values)
    [(size, before, after)] = re.findall(r"v: ([+-]\d+)% \[.*\]  (\S+) --> (\S+)  regression", out)
    [back] = re.findall(r"v: back to (\S+) after", out)
    usual = mean(values[UP - 4 * DAY:UP])
    assert float(before) == pytest.approx(usual, rel=0.05)
    assert float(after) == pytest.approx(mean(values[UP:DOWN]), rel=0.15)  # of the few hours until it is told
    assert float(size) == pytest.approx(100 * (float(after) / float(before) - 1), abs=1)
    assert float(back) == pytest.approx(usual, rel=0.1)


def test_three_times_the_old_level_is_not_back(hunter, tmp_path):
    """What is left of a step to fifty times the level may be next to nothing of the step, and yet no recovery."""
    noise = random.Random(3)
    for left, words in (0.09, "back to 0.08"), (0.3, "-94%"):
        values = [math.exp(noise.gauss(0, 0.1)) * (5 if UP <= hour < DOWN else 0.087 if hour < UP else left)
                  for hour in range(UP + 16 * DAY)]
        out = replayed(hunter, tmp_path, values)
        assert words in out and ("back to" in out) == (left < 0.1), out
