"""explained_by and relative_to: analyze, regressions and the agent on series that follow a load or a control."""
import datetime
import json
import math
import os
import random
import subprocess

import pytest
from state_address import state_of

HOUR = datetime.timedelta(hours=1)
START = datetime.datetime(2026, 3, 2)
N, STEP = 500, 400


def table(columns, start=START):
    names = list(columns)
    rows = [",".join([(start + i * HOUR).isoformat(), *(f"{columns[name][i]:.6g}" for name in names)])
            for i in range(len(columns[names[0]]))]
    return "\n".join(["time," + ",".join(names), *rows]) + "\n"


def series(step=1.12, load_step=1.0, seed=5):
    """A load of AR .9, a latency that follows it with a step of its own, and the same elsewhere."""
    source = random.Random(seed)
    wander, load, p99, other = 0, [], [], []
    for i in range(N):
        wander = 0.9 * wander + source.gauss(0, 0.15)
        more = math.log(load_step) if i >= STEP else 0
        load.append(1000 * math.exp(wander + more))
        level = 100 * math.exp(0.8 * (wander + more))
        p99.append(level * math.exp(source.gauss(0, 0.02)) * (step if i >= STEP else 1))
        other.append(level * math.exp(source.gauss(0, 0.02)))
    return load, p99, other


CONFIG = """
agent: {{state: "{state}", max_age: never}}
tests:
  web:
    type: csv
    file: {folder}/web.csv
    {of_test}
    metrics: {{p99: {{direction: -1{of_metric}}}}}
  shop: {{type: csv, file: {folder}/shop.csv, metrics: [traffic]}}
  eu: {{type: csv, file: {folder}/eu.csv, metrics: [p99]}}
  both:
    type: csv
    file: {folder}/both.csv
    explained_by: both/traffic
    metrics: {{p99: {{direction: -1}}, traffic: {{}}}}
"""


def write(folder, of_metric="", of_test="", **options):
    load, p99, other = series(**options)
    (folder / "web.csv").write_text(table({"p99": p99}))
    (folder / "shop.csv").write_text(table({"traffic": load}))
    (folder / "eu.csv").write_text(table({"p99": other}))
    (folder / "both.csv").write_text(table({"p99": p99, "traffic": load}))
    (folder / "hunter.yaml").write_text(CONFIG.format(folder=folder, state=state_of(folder), of_metric=of_metric, of_test=of_test))


@pytest.fixture
def run(hunter):
    def go(*arguments, code=0):
        done = hunter(*arguments)
        assert done.code == code, done.out + done.err
        return done

    return go


def changes(run, test="web", *more):
    out = json.loads(run("analyze", test, "--output", "json", "--season", "none", *more).out)
    return out["tests"][0]["changes"]


def near(change):
    return abs(change["index"] - STEP) <= 5


def test_hidden_by_its_load(run, tmp_path):
    write(tmp_path)
    assert not any(near(change) for change in changes(run))


@pytest.mark.parametrize("of_metric, of_test", [(", explained_by: shop/traffic", ""), ("", "explained_by: shop/traffic")])
def test_explained_by(run, tmp_path, of_metric, of_test):
    write(tmp_path, of_metric, of_test)
    [change] = changes(run)
    assert near(change)
    assert change["size_low"] < 12 < change["size_high"]
    assert change["explained_by"] == "shop/traffic" and change["relative_to"] is None
    assert change["other_changed"] is False and change["other_size"] is None
    text = run("analyze", "web").out
    assert "p99: at equal shop/traffic (which explains 9" in text
    done = run("regressions", "web", "--since", "2026-03-10", code=1)
    assert "at equal traffic" in done.out
    [worse] = json.loads(run("regressions", "web", "--since", "2026-03-10", "--output", "json", code=1).out)[
        "tests"][0]["regressions"]
    assert worse["explained_by"] == "shop/traffic"


def test_relative_to(run, tmp_path):
    write(tmp_path, ", relative_to: eu/p99")
    [change] = changes(run)
    assert near(change)
    assert change["size_low"] < 12 < change["size_high"]
    assert change["relative_to"] == "eu/p99" and change["explained_by"] is None
    assert "p99: relative to eu/p99\n" in run("analyze", "web").out


def test_of_the_same_test(run, tmp_path):
    """What a test says of all its metrics does not hold for the one that it names."""
    write(tmp_path)
    found = changes(run, "both")
    assert [change["metric"] for change in found if near(change)] == ["p99"]
    assert all(change["explained_by"] is None for change in found if change["metric"] == "traffic")
    [change] = changes(run, "both", "--metrics", "p99")
    assert near(change) and change["explained_by"] == "both/traffic"


def test_both_changed(run, tmp_path):
    """A step of the load at the same time is told, and suppresses nothing."""
    write(tmp_path, ", explained_by: shop/traffic", step=1.3, load_step=3)
    [change] = [change for change in changes(run) if near(change)]
    assert change["other_changed"] is True
    assert change["other_size"] > 80
    assert "shop/traffic +" in run("analyze", "web").out


def test_load_that_explains_nothing(run, tmp_path):
    write(tmp_path, ", explained_by: shop/traffic")
    source = random.Random(1)
    (tmp_path / "shop.csv").write_text(table({"traffic": [source.uniform(50, 60) for _ in range(N)]}))
    assert "p99: as it is, since it does not follow shop/traffic\n" in run("analyze", "web").out


def test_points_without_partner(run, tmp_path):
    write(tmp_path, ", explained_by: shop/traffic")
    load, _, _ = series()
    (tmp_path / "shop.csv").write_text(table({"traffic": load[:-7]}))
    assert "; 7 points left out, at whose time that has none\n" in run("analyze", "web").out


def test_other_cannot_be_read(run, tmp_path):
    write(tmp_path, ", explained_by: shop/traffic")
    (tmp_path / "shop.csv").unlink()
    done = run("analyze", "web", "eu", code=3)
    assert 'test "shop", referenced by other tests' in done.err
    assert "eu:" in done.out


def test_read_once(run, tmp_path):
    """Several tests that name the same series have it read once: a pipe gives its content once."""
    write(tmp_path)
    names = [f"more{i}" for i in range(5)]
    with open(tmp_path / "hunter.yaml", "a") as config:
        for name in names:
            config.write(f"  {name}: {{type: csv, file: {tmp_path}/web.csv, explained_by: shop/traffic,"
                         " metrics: {p99: {direction: -1}}}\n")
    (tmp_path / "shop.csv").rename(tmp_path / "kept.csv")
    os.mkfifo(tmp_path / "shop.csv")
    with subprocess.Popen(["sh", "-c", "exec cat kept.csv > shop.csv"], cwd=tmp_path) as writer:
        out = json.loads(run("analyze", *names, "--output", "json", "--season", "none").out)
        writer.kill()
    assert [len(test["changes"]) for test in out["tests"]] == [1] * 5


@pytest.mark.parametrize("of_metric, problem", [
    (", explained_by: shop/trafic", 'explained_by: the test "shop" has no metric "trafic" (did you mean "traffic"?)'),
    (", relative_to: shp/traffic", 'relative_to: unknown test "shp" (did you mean "shop"?)'),
    (", explained_by: traffic", 'explained_by: "traffic" is not TEST/METRIC'),
    (", explained_by: web/p99", "explained_by: the metric refers to itself"),
    (", explained_by: shop/traffic, relative_to: eu/p99", "relative_to and explained_by: use one of them"),
])
def test_errors(run, tmp_path, of_metric, problem):
    write(tmp_path, of_metric)
    done = run("validate", code=2)
    assert problem in done.out + done.err
    assert "hunter.yaml:8:" in done.out + done.err


def test_circle(run, tmp_path):
    write(tmp_path, ", explained_by: shop/traffic")
    text = (tmp_path / "hunter.yaml").read_text().replace("metrics: [traffic]", "metrics: [traffic], relative_to: web/p99")
    (tmp_path / "hunter.yaml").write_text(text)
    done = run("validate", code=2)
    assert "depends on this metric" in done.out + done.err


def cut(folder, n, load=None):
    """Leaves the first n points of each file."""
    for name in ("web", "shop", "eu", "both"):
        text = (folder / f"{name}.csv").read_text().splitlines()
        (folder / f"{name}.csv").write_text("\n".join(text[:n + 1]) + "\n")


def known(run, *more):
    return json.loads(run("changes", "--output", "json", *more).out)["changes"]


def of_web(found):
    return [change for change in found if change["test"] == "web"]


@pytest.mark.parametrize("of_metric, words", [
    (", explained_by: shop/traffic", "at equal traffic"),
    (", relative_to: eu/p99", "relative to eu/p99"),
])
def test_agent(run, tmp_path, of_metric, words):
    """It tells the step while points arrive, once, and says by what it was judged."""
    config = tmp_path / "hunter.yaml"
    told = []
    for n in [*range(STEP - 60, N, 12), N]:
        write(tmp_path, of_metric)
        cut(tmp_path, n)
        config.write_text(config.read_text().split("  both:")[0])
        told += [line for line in run("run", "--once").out.splitlines() if "p99" in line and words in line]
    [line] = told
    assert "+12% " in line or "+11% " in line or "+13% " in line
    [change] = of_web(known(run))
    assert change["state"] == "confirmed"
    assert words.split()[-1] in (change["explained_by"] or change["relative_to"])
    assert change["other_changed"] is False


def test_agent_fails_with_the_other(run, tmp_path):
    """Without the other's data a run fails, and neither makes nor removes a change."""
    write(tmp_path, ", explained_by: shop/traffic")
    run("run", "--once")
    before = of_web(known(run))
    assert len(before) == 1
    load = (tmp_path / "shop.csv").read_text()
    for broken in (None, "time,other\n2026-03-02,1\n"):
        if broken is None:
            (tmp_path / "shop.csv").unlink()
        else:
            (tmp_path / "shop.csv").write_text(broken)
        done = run("run", "--once", code=3)
        assert 'test \\"shop\\", referenced by other tests' in done.err
        assert of_web(known(run)) == before
    (tmp_path / "shop.csv").write_text(load)
    run("run", "--once")
    assert of_web(known(run)) == before


def test_replay(run, tmp_path):
    """The other's past is read, too, though only the one is asked for; without it there is none to replay."""
    write(tmp_path, ", explained_by: shop/traffic")
    times = ["--from", "2026-03-10", "--to", "2026-03-22"]
    out = run("replay", "web", *times).out
    assert out.count("at equal traffic") == 1
    (tmp_path / "shop.csv").unlink()
    assert "shop" in run("replay", "web", *times, code=3).err


@pytest.mark.parametrize("slower, code", [(1, 0), (1.1, 1)])
def test_a_branch_is_judged_by_the_control_of_main(run, tmp_path, slower, code):
    """Three runs do not show what is usual: the centre of the ratio is main's."""
    source = random.Random(4)
    load = [100 * math.exp(source.gauss(0, 0.2)) for _ in range(60)] + [150, 160, 155]
    (tmp_path / "web.csv").write_text("time,branch,p99,base\n" + "".join(
        f"{1767225600 + i * 86400},{'main' if i < 60 else 'dev'},"
        f"{load[i] * source.gauss(1, 0.01) * (slower if i >= 60 else 1):.4f},{load[i]:.4f}\n" for i in range(63)))
    of_both = "type: csv, file: %s, attributes: [branch], base_branch: main" % (tmp_path / "web.csv")
    (tmp_path / "hunter.yaml").write_text(f"""
tests:
  base: {{{of_both}, metrics: {{base: {{direction: 0}}}}}}
  web: {{{of_both}, metrics: {{p99: {{direction: -1}}}}, relative_to: base/base}}
""")
    run("regressions", "web", "--branch", "dev", code=code)
