"""analyze, regressions, list-metrics and run on a real Graphite (carbon and graphite-web) with history of ours, at fixed dates."""
import datetime
import json
import os
import pathlib
import re
import subprocess
import urllib.request

import pytest
import servers
from agent import noise
from state_address import state_of
from waiting import LONGEST

START = 1709251200  # 2024-03-01 00:00:00 UTC
HOUR = 3600
POINTS = 120
SINCE, UNTIL = "2024-03-01", "2024-03-08"
CHANGE = 70  # 2024-03-03 22:00


def rows(base, factor=1.0, step=HOUR, points=POINTS, at=CHANGE, gaps=()):
    return [(f"{base * (factor if i >= at else 1) * (1 + 0.01 * noise(i)):.6f}", START + step * i)
            for i in range(points) if i not in gaps]


def history():
    return {
        "perf.main.shop.throughput": rows(5000, 0.9, gaps=(3, 4, 50)),
        "perf.main.shop.latency.p99": rows(80e6, 1.2),
        "perf.feature-x.shop.throughput": rows(5000, 1.1),
        "perf.feature-x.shop.latency.p99": rows(80e6, 0.8),
        "servers.web1.cpu": rows(0.5),
        "servers.web2.cpu": rows(0.5, 1.5),
        "servers.web3.cpu": rows(0.5),
        "odd.inf": [("inf" if i == 5 else "nan" if i == 7 else 100 + noise(i), START + HOUR * i) for i in range(20)],
        "odd.old": [(1, START - 40 * 86400)],
        "odd.café": rows(7),
        "day.build": rows(300, 1.3, step=86400, points=60, at=40),
        "disk.used;dc=1;host=a": rows(10),
        "disk.used;dc=1;host=b": rows(10, 2),
    }


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    with servers.graphite(tmp_path_factory.mktemp("graphite")) as running:
        running.feed(history())
        for path in history():
            if ";" in path:
                running.tag(path)
        tags = ["perf-test", "shop"]
        for i in range(0, POINTS, 2):  # every other run published what it ran
            commit = f"c{i:04d}"
            running.event(START + HOUR * i + 600, tags, data={"run_id": f"r{i}", "commit": commit, "version": None, "branch": "main"}
                          if i % 4 else json.dumps({"commit": commit, "version": f"1.{i}"}))
        running.event(START + HOUR * 10 + 700, tags, data={"commit": "it's \"c\" é"})  # the last of its hour
        running.event(START + HOUR * 11, tags, data="free text")
        running.event(START + HOUR * 12, ["shop"], data={"commit": "not-ours"})
        running.event(START + HOUR * 2, tags + ["feature-x"], data={"commit": "on-branch"})
        yield running


def config(folder, url, tests, more=""):
    path = folder / "hunter.yaml"
    path.write_text(f"graphite:\n  url: {url}\n{more}tests:\n{tests}")
    return path


# As a file of Hunter has it.
SHOP = """
  shop:
    type: graphite
    prefix: perf.%{BRANCH}.shop
    tags: [perf-test, shop]
    metrics:
      throughput: {suffix: throughput}
      p99: {suffix: latency.p99, direction: -1, scale: 1.0e-6}
"""


def analyze(hunter, *arguments):
    return hunter("analyze", "--since", SINCE, "--until", UNTIL, *arguments)


def lines(text):
    return [line for line in text.splitlines() if line.startswith("2024-")]


def test_a_file_of_hunters(hunter, tmp_path, server):
    config(tmp_path, "${GRAPHITE_ADDRESS}", SHOP)
    found = hunter("analyze", "shop", "--since", SINCE, "--until", UNTIL, env={"GRAPHITE_ADDRESS": server.url + "/"})
    assert found.code == 0 and not found.err, found.err
    header = next(line for line in found.out.splitlines() if line.startswith("time"))
    assert header.split() == ["time", "run", "branch", "version", "commit", "throughput", "p99"], found.out
    points = lines(found.out)
    assert len(points) == POINTS and points[0].startswith("2024-03-01 00:00:00 +0000")
    text = found.out.splitlines()
    change = next(i for i, line in enumerate(text) if "%" in line)
    assert re.search(r"-(9\.[5-9]|10\.[0-5])% +\+(19\.[5-9]|20\.[0-5])%", text[change]), found.out
    assert text[change + 2].startswith("2024-03-03 22:00:00 +0000") and "c0070" in text[change + 2], found.out
    assert found.out.count("%") == 2
    value = re.search(r"c0002 +([\d.]+) +([\d.]+)", points[2])
    assert abs(float(value[1]) - 5000 * (1 + 0.01 * noise(2))) < 1 and abs(float(value[2]) - 80 * (1 + 0.01 * noise(2))) < 0.01
    assert re.search(r"\br2 +main +c0002", points[2]) and re.search(r"1\.4 +c0004", points[4])
    assert "c0010" not in found.out and "it's \"c\" é" in points[10]
    assert "not-ours" not in found.out and "free text" not in found.out


def test_gaps_are_missing_points(hunter, tmp_path, server):
    config(tmp_path, server.url, SHOP)
    values = [re.sub(r".*\+0000( +r\d+)?( +main)?( +1\.\d+)?( +c\d{4})? +", "", line).split()
              for line in lines(analyze(hunter, "shop").out)]
    assert [i for i, found in enumerate(values) if len(found) == 1] == [3, 4, 50]
    assert len(lines(analyze(hunter, "shop", "--metrics", "throughput").out)) == POINTS - 3


def test_since_and_until_of_commits_and_versions(hunter, tmp_path, server):
    config(tmp_path, server.url, SHOP)
    found = hunter("analyze", "shop", "--since-commit", "c0012", "--until-commit", "c0020", "--since", SINCE)
    assert found.code == 2  # two bounds of one side
    found = hunter("analyze", "shop", "--since", SINCE, "--until-commit", "c0020")  # it ran until the next was deployed
    assert lines(found.out)[-1].startswith("2024-03-01 21:00") and len(lines(found.out)) == 22, found.out + found.err
    config(tmp_path, server.url, SHOP.replace("prefix:", "events: per_run\n    prefix:"))
    found = hunter("analyze", "shop", "--since", SINCE, "--until-commit", "c0020")
    assert lines(found.out)[-1].startswith("2024-03-01 20:00") and len(lines(found.out)) == 21, found.out + found.err
    found = analyze(hunter, "shop", "--last", "3")
    assert len(lines(found.out)) == 3
    config(tmp_path, server.url, SHOP.replace("prefix:", "range: 3650d\n    prefix:"))
    found = hunter("analyze", "shop", "--since-version", "1.100", "--until", UNTIL)
    assert "1.100" in found.err if found.code else lines(found.out)[0].startswith("2024-03-05 04:00"), found.out + found.err


def test_a_tag_with_a_blank_is_two(hunter, tmp_path, server):
    server.event(START + HOUR * 20, ["of two words"], data={"commit": "blank"})
    for tags in ("of two words", "of, two, words"):
        config(tmp_path, server.url, SHOP.replace("perf-test, shop", tags))
        assert "blank" in lines(analyze(hunter, "shop").out)[20], tags


def test_regressions(hunter, tmp_path, server):
    config(tmp_path, server.url, SHOP)
    found = hunter("regressions", "--since", SINCE, "--until", UNTIL)
    assert found.code == 1, found.err
    assert re.search(r"throughput *: .*-(9|10)\.\d%", found.out) and re.search(r"p99 *: .*\+(19|20)\.\d%", found.out)


def test_branches(hunter, tmp_path, server):
    config(tmp_path, server.url, SHOP)
    found = analyze(hunter, "shop", "--branch", "feature-x")
    assert re.search(r"\+(9|10)\.\d% +-(19|20)\.\d%", found.out), found.out + found.err
    assert "on-branch" in lines(found.out)[2] and "c0004" not in found.out  # events need the branch as a tag
    found = hunter("regressions", "--branch", "feature-x", "--since", SINCE, "--until", UNTIL)
    assert found.code in (0, 1) and "p99" not in found.out.split("shop")[-1]
    config(tmp_path, server.url, SHOP.replace("%{BRANCH}", "main").replace("tags:", "branch_prefix: 'perf.%{BRANCH}.shop'\n    tags:"))
    assert "on-branch" in analyze(hunter, "shop", "--branch", "feature-x").out
    config(tmp_path, server.url, SHOP.replace("%{BRANCH}", "main"))
    found = analyze(hunter, "shop", "--branch", "feature-x")
    assert found.code == 2 and "set branch_prefix, or use %{BRANCH} in its prefix" in found.err
    config(tmp_path, server.url, SHOP)
    found = analyze(hunter, "shop", "--branch", "x,perf.main")
    assert found.code == 2 and "cannot be part of a Graphite target" in found.err


def test_wildcards_and_expressions(hunter, tmp_path, server):
    config(tmp_path, server.url, """
  cpu: {type: graphite, target: servers.*.cpu, metrics: {cpu: {direction: -1}}}
  named: {type: graphite, target: 'aliasByNode(servers.*.cpu, 1)'}
  sum: {type: graphite, target: 'scale(sumSeries(servers.{web1,web3}.cpu), 100)', metrics: {sum: {}}}
  tags: {type: graphite, target: "seriesByTag('name=disk.used')", metrics: {used: {direction: -1}}}
  letters: {type: graphite, target: odd.caf?}
  café: {type: graphite, target: odd.café}
""")
    found = analyze(hunter, "cpu")
    header = next(line for line in found.out.splitlines() if line.startswith("time"))
    assert header.split() == ["time", "cpu{web1}", "cpu{web2}", "cpu{web3}"], found.out + found.err
    assert found.out.count("%") == 1 and re.search(r"\+(49|50)\.\d%", found.out)
    assert analyze(hunter, "named").out.split("\n")[1].split() == ["time", "web1", "web2", "web3"]
    point = lines(analyze(hunter, "sum").out)[5].split()
    assert abs(float(point[-1]) - 100 * (1 + 0.01 * noise(5))) < 0.01
    found = analyze(hunter, "tags")
    assert 'used{host="a"}' in found.out and 'used{host="b"}' in found.out and "dc=" not in found.out, found.out + found.err
    assert len(lines(analyze(hunter, "letters").out)) == POINTS
    assert "UTF8_METRICS" in analyze(hunter, "café").err


def test_a_long_expression_goes_by_post(hunter, tmp_path, server):
    longer = ",".join(f"perf.absent.m{i}" for i in range(300))
    config(tmp_path, server.url, f"  long: {{type: graphite, target: 'group(servers.web1.cpu,{longer})', metrics: {{m: {{}}}}}}\n")
    found = analyze(hunter, "long")
    assert len(lines(found.out)) == POINTS, found.out + found.err


def test_many_metrics(hunter, tmp_path, server):
    metrics = "".join(f"      m{i:03}: {{suffix: 'web{1 + i % 3}.cpu', scale: {i + 1}}}\n" for i in range(150))
    config(tmp_path, server.url, f"  many:\n    type: graphite\n    prefix: servers\n    metrics:\n{metrics}")
    found = analyze(hunter, "many", "--output", "json")
    assert found.code == 0 and '"m149"' in found.out, found.err
    assert hunter("list-metrics", "many").out.split() == [f"m{i:03}" for i in range(150)]


def test_infinity_costs_its_point(hunter, tmp_path, server):
    config(tmp_path, server.url, "  odd: {type: graphite, target: odd.inf}\n")
    points = lines(analyze(hunter, "odd").out)
    assert len(points) == 19  # NaN is a missing point
    assert "inf" in points[5] and "inf" not in "".join(points[:5] + points[6:])


def test_resolutions(hunter, tmp_path, server):
    config(tmp_path, server.url, "  days: {type: graphite, target: 'group(day.build, servers.web1.cpu)'}\n")
    document = analyze(hunter, "days", "--output", "json")
    assert document.code == 0, document.err
    found = hunter("analyze", "days", "--metrics", "day.build", "--since", "2024-02-01", "--until", "2024-06-01")
    assert len(lines(found.out)) == 60 and "+30" in found.out or "+29" in found.out, found.out + found.err


def test_functions_that_give_more_values_than_they_announce(hunter, tmp_path, server):
    """sumSeries() of hours and days has its last day beyond the end it names in about half of all windows."""
    config(tmp_path, server.url, """
  sum: {type: graphite, target: 'sumSeries(day.build, servers.web1.cpu)'}
  ratio: {type: graphite, target: 'divideSeries(servers.web1.cpu, day.build)'}
  line: {type: graphite, target: 'constantLine(5)'}
  limit: {type: graphite, target: 'threshold(7)'}
""")
    more = 0
    for since, until in (("02-20 13:00", "03-04 00:00"), ("03-01 00:00", "03-04 03:00"), ("03-01 05:00", "03-04 12:30"),
                         ("03-01 05:00", "03-05 23:59")):
        begin, end = (int(datetime.datetime.fromisoformat(f"2024-{time}+00:00").timestamp()) for time in (since, until))
        query = f"target=sumSeries(day.build,servers.web1.cpu)&from={begin - 1}&until={end - 1}"
        header, values = urllib.request.urlopen(f"{server.url}/render?{query}&format=raw", timeout=LONGEST).read().decode().strip().split("|")
        first, last, step = map(int, header.split(",")[-3:])
        more += values.count(",") + 1 > (last - first) // step
        points = json.load(urllib.request.urlopen(f"{server.url}/render?{query}&format=json", timeout=LONGEST))[0]["datapoints"]
        times = [f"{datetime.datetime.utcfromtimestamp(at):%F %T}" for value, at in points if value is not None and begin <= at < end]
        found = hunter("analyze", "sum", "--since", f"2024-{since}", "--until", f"2024-{until}")
        assert found.code == 0 and [line[:19] for line in lines(found.out)] == times, found.out + found.err
        assert hunter("analyze", "ratio", "--since", f"2024-{since}", "--until", f"2024-{until}").code == 0
    assert more >= 2
    for name in ("line", "limit"):
        found = analyze(hunter, name)
        assert found.code == 0 and lines(found.out), name + found.err


def test_what_gives_nothing_is_explained(hunter, tmp_path, server):
    config(tmp_path, server.url, """
  broken: {type: graphite, target: 'scale(servers.web1.cpu, 2'}
  absent: {type: graphite, prefix: perf.main.shop, metrics: {ours: {suffix: throughput}, theirs: {suffix: latency.p50}}}
  folder: {type: graphite, target: perf.main}
  inside: {type: graphite, target: 'sumSeries(servers.web9.cpu)'}
  old: {type: graphite, target: odd.old}
  filter: {type: graphite, target: 'removeBelowValue(currentAbove(servers.web1.cpu, 10), 0)'}
  function: {type: graphite, target: 'noSuchFunction(servers.web1.cpu)'}
  tags: {type: graphite, target: "seriesByTag('name=disk.free')"}
""")
    found = analyze(hunter, "broken")
    assert found.code == 3 and "the server returns nothing: ( is not closed (character 6)" in found.err
    found = analyze(hunter, "absent")
    assert found.code == 0 and len(lines(found.out)) == POINTS - 3
    assert 'the server has no metric "perf.main.shop.latency.p50"' in found.err
    for name, words in {"folder": "is a folder, not a metric", "inside": 'no metric "servers.web9.cpu"',
                        "old": "no values of|the series have no values in the range", "filter": "though its metrics exist",
                        "tags": "none has these tags"}.items():
        found = analyze(hunter, name)
        assert found.code == 3 and re.search(words, found.err), name + found.err
    found = analyze(hunter, "function")
    assert found.code == 3 and "status 400: Invalid parameters (Received request for unknown function: noSuchFunction)" in found.err


def test_list_metrics_asks_the_server(hunter, tmp_path, server):
    tests = SHOP + """
  all: {type: graphite, prefix: perf.main.shop}
  cpu: {type: graphite, target: servers.*.cpu, metrics: {cpu: {}}}
  none: {type: graphite, prefix: perf.main.nothing}
  absent: {type: graphite, prefix: perf.main.shop, metrics: {ours: {suffix: throughput}, theirs: {suffix: latency.p50}}}
"""
    config(tmp_path, server.url, tests)
    assert hunter("list-metrics", "shop").out.split() == ["throughput", "p99"]
    assert hunter("list-metrics", "all").out.split() == ["throughput", "latency.p99"]
    assert hunter("list-metrics", "cpu").out.split() == ["cpu{web1}", "cpu{web2}", "cpu{web3}"]
    found = hunter("list-metrics", "none")
    assert found.out == "" and found.code == 0
    found = hunter("list-metrics", "absent")
    assert found.out.split() == ["ours"] and "latency.p50" in found.err
    config(tmp_path, f"http://127.0.0.1:{servers.free_port()}", tests)
    found = hunter("list-metrics", "shop")
    assert found.code == 3 and "Connection refused" in found.err


def test_all_below_a_prefix(hunter, tmp_path, server):
    config(tmp_path, server.url, "  all: {type: graphite, prefix: perf.main.shop}\n")
    found = analyze(hunter, "all")
    header = next(line for line in found.out.splitlines() if line.startswith("time"))
    assert header.split() == ["time", "throughput", "latency.p99"], found.out + found.err
    assert len(lines(found.out)) == POINTS


def test_run_once_tells_it_once(hunter, tmp_path, server):
    config(tmp_path, server.url, SHOP.replace("prefix:", "range: 3650d\n    prefix:"),
           f"agent: {{state: {state_of(tmp_path)}, listen: '127.0.0.1:0', max_age: never, group_wait: 0s}}\n")
    first = hunter("run", "--once")
    assert first.code == 0, first.err
    assert "shop" in first.out and "p99" in first.out and "throughput" in first.out and "c0070" in first.out, first.out
    again = hunter("run", "--once")
    assert again.code == 0 and "p99" not in again.out, again.out


def test_the_shipped_example(hunter, program, server):
    """What conf/graphite.yaml says to try is tried."""
    path = pathlib.Path(__file__).parents[2] / "conf" / "graphite.yaml"
    script = "\n".join(line[4:] for line in path.read_text().splitlines() if line.startswith("#   "))
    assert script.startswith("for i") and script.endswith("hunter-c analyze store.read --config conf/graphite.yaml")
    feed = script.rsplit("\n", 1)[0]
    environment = os.environ | {"GRAPHITE_URL": server.url, "CARBON": f"127.0.0.1/{server.ports['line']}"}
    subprocess.run(["bash", "-euc", feed], check=True, timeout=LONGEST, env=environment)
    server.feed({"fed.last": [(1, START)]})
    found = hunter("analyze", "store.read", "--config", path, env=environment)
    assert re.search(r"\+(9\.[5-9]|10\.[0-5])%", found.out) and found.out.count("%") == 1, found.out + found.err
    assert re.search(r"159 +main +1\.0 +c159 ", found.out) and re.search(r"160 +main +1\.0 +c160 ", found.out)
    assert hunter("list-metrics", "store.all", "--config", path, env=environment).out.split() == [
        "read.throughput", "read.latency.p99"]


def test_a_wrong_path(hunter, tmp_path, server):
    config(tmp_path, server.url + "/wrong", SHOP)
    found = analyze(hunter, "shop")
    assert found.code == 3 and "status 404" in found.err and "shop" in found.err


def test_validate(hunter, tmp_path):
    config(tmp_path, "http://g/", """
  a: {type: graphite}
  b: {type: graphite, prefix: x, target: y}
  c: {type: graphite, prefix: x, metrics: {m: {direction: 1}}}
  d: {type: graphite, target: x, metrics: {m: {}, n: {target: 'y.*'}}}
""")
    found = hunter("validate")
    assert found.code == 2 and len(found.out.splitlines() + found.err.splitlines()) == 4
    text = found.out + found.err
    assert 'test "a": "prefix" or "target" is missing' in text and 'test "b": "prefix" and "target" are mutually exclusive' in text
    assert 'test "c": metric "m": "suffix" is missing' in text
