"""Service metrics on a real Prometheus: a daily cycle, a step within it, an outage, a slow leak and a recovery."""
import json
import math
import random

import pytest
import servers

HOUR = 3600
DAYS = 49
START = 1772409600  # Monday 2026-03-02 00:00:00 UTC
LIVE = 28  # days that are there before the agent looks


def hourly(name, at):
    """Values around a daily sine of 30% in 4% noise; `at` gives the level at each hour."""
    noise = random.Random(name)
    return [(({"service": name}), f"{at(i) * (1 + .3 * math.sin(2 * math.pi * i / 24)) * math.exp(noise.gauss(0, .04)):.4f}",
             START + HOUR * i) for i in range(24 * DAYS)]


STEP, OUTAGE, LEAK, UP, DOWN = 24 * 35 + 7, 24 * 33 + 10, 24 * 33, 24 * 34, 24 * 37


def history():
    return servers.openmetrics({"latency_ms": [
        *hourly("calm", lambda i: 100),
        *hourly("step", lambda i: 120 if i >= STEP else 100),
        *hourly("outage", lambda i: 300 if OUTAGE <= i < OUTAGE + 4 else 100),
        *hourly("leak", lambda i: 100 * (1 + max(0, min(1, (i - LEAK) / 120)))),
        *hourly("back", lambda i: 130 if UP <= i < DOWN else 100),
    ]})


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    with servers.prometheus(tmp_path_factory.mktemp("prometheus"), history()) as running:
        yield running


@pytest.fixture
def path(tmp_path, server):
    path = tmp_path / "hunter.yaml"
    path.write_text(f"""
prometheus: {{url: "{server.url}"}}
agent: {{evaluation_delay: 0}}
tests:
  latency: {{type: prometheus, query: latency_ms, range: 28d, step: 1h, interval: 1h,
    metrics: {{latency_ms: {{direction: -1, unit: ms}}}}}}
""")
    return path


def of(changes, service):
    return [change for change in changes if service in change["metric"]]


def hour_of(index):
    import datetime
    return datetime.datetime.fromtimestamp(START + HOUR * index, datetime.timezone.utc)


def test_batch(hunter, path):
    """As a whole: the cycles are removed, the step and the leak are what they are, and what is over is no regression."""
    flags = ("--config", path, "--since", "2026-03-02", "--until", "2026-04-20")
    done = hunter("analyze", "latency", *flags)
    assert done.out.count("daily cycle removed (") == 5, done.out[-600:] + done.err
    found = json.loads(hunter("analyze", "latency", "--output", "json", *flags).out)["tests"][0]["changes"]
    assert of(found, "calm") == of(found, "outage") == [], found
    assert [change["kind"] for change in of(found, "step")] == ["step"]
    step = of(found, "step")[0]
    assert step["place_from"] <= f"{hour_of(STEP):%Y-%m-%dT%H:%M:%SZ}" <= step["place_to"]
    assert step["size_low"] < 20 < step["size_high"], step
    assert "trend" in [change["kind"] for change in of(found, "leak")], of(found, "leak")
    assert len(of(found, "back")) == 2
    worse = hunter("regressions", *flags)
    assert worse.code == 1 and "step" in worse.out and "leak" in worse.out and "calm" not in worse.out
    assert "outage" not in worse.out and "back" not in worse.out, worse.out


def test_told_while_it_happens(hunter, path):
    """Hour by hour: each is told once and right, nothing else is, and what is over is told as over."""
    done = hunter("replay", "--config", path, "--from", f"{hour_of(24 * LIVE):%Y-%m-%d}", "--to", f"{hour_of(24 * DAYS):%Y-%m-%d}",
                  "--output", "json")
    assert done.code == 0, done.err
    changes = [change for change in json.loads(done.out)["changes"] if change["told"]]
    assert of(changes, "calm") == [], changes
    for service, index, within in ("step", STEP, 6), ("back", UP, 6), ("outage", OUTAGE, 6):
        first = of(changes, service)[0]
        assert f"{hour_of(index - 3):%Y-%m-%dT%H}" <= first["time"] <= f"{hour_of(index + 3):%Y-%m-%dT%H:%M}", (service, first)
        assert first["told"] <= f"{hour_of(index + within):%Y-%m-%dT%H:%M:%SZ}", (service, first)
    assert [len(of(changes, service)) for service in ("step", "outage", "back", "leak")] == [1, 1, 1, 1], changes
    assert of(changes, "step")[0]["withdrawn"] is of(changes, "step")[0]["recovered"] is None
    assert hour_of(OUTAGE + 4).isoformat()[:13] <= of(changes, "outage")[0]["recovered"] <= hour_of(OUTAGE + 12).isoformat()
    assert hour_of(DOWN - 3).isoformat()[:13] <= of(changes, "back")[0]["recovered"] <= hour_of(DOWN + 6).isoformat()
    assert of(changes, "leak")[0]["told"] <= f"{hour_of(LEAK + 72):%Y-%m-%dT%H:%M:%SZ}"
