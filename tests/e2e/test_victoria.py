"""Tests of type prometheus on a real VictoriaMetrics with history of ours, at fixed dates."""
import json
import re

import pytest
import servers
from agent import noise

START = 1709251200000  # 2024-03-01 00:00:00 UTC, ms
MINUTE, DAY = 60000, 86400000
SINCE, UNTIL = "2024-03-01", "2024-06-01"


def level(i):
    """Worse by a tenth from day 60 on."""
    return round(50 * (1.1 if i >= 60 else 1) * (1 + 0.01 * noise(i)), 4)


def stamp(i):
    """Once a day, at a minute, a second and a millisecond of its own."""
    return START + DAY * i + (i * 7919 % 1440) * MINUTE + 1234 + i


def history():
    nightly = [({"__name__": "bench_seconds", "bench": name, "branch": branch, "commit": f"{i:08x}"}, [level(i)], [stamp(i)])
               for i in range(90) for name, branch in (("read", "main"), ("write", "main"), ("read", "it's \"x\" \\ y"))]
    minutely = ({"__name__": "load", "job": "shop"}, [100 + noise(i) for i in range(600)],
                [START + MINUTE * i + 123 for i in range(600)])
    return nightly + [minutely]


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    with servers.victoria(tmp_path_factory.mktemp("victoria"), history()) as running:
        yield running


def config(folder, url, tests, more=""):
    (folder / "hunter.yaml").write_text(f"prometheus: {{url: '{url}'{more}}}\ntests:\n{tests}")


NIGHTLY = """
  nightly:
    type: prometheus
    query: bench_seconds{branch="%{BRANCH}"}
    commit_label: commit
    metrics: {seconds: {direction: -1, unit: s}}
"""


def analyze(hunter, *arguments):
    return hunter("analyze", "--since", SINCE, "--until", UNTIL, *arguments)


def rows(text):
    return [line for line in text.splitlines() if line.startswith("2024-")]


@pytest.mark.parametrize("more", ["", ", flavor: victoriametrics", ", flavor: prometheus"])
def test_one_point_a_day(hunter, tmp_path, server, more):
    config(tmp_path, server.url, NIGHTLY, more)
    found = analyze(hunter, "nightly")
    assert found.code == 0 and found.err == "", found.err
    lines = rows(found.out)
    assert len(lines) == 90, found.out
    assert 'seconds{bench="read"}' in found.out and 'seconds{bench="write"}' in found.out
    assert [line.split()[3] for line in lines] == [f"{i:08x}" for i in range(90)]
    document = json.loads(analyze(hunter, "nightly", "--output", "json").out)
    assert len(re.findall("percent", json.dumps(document))) >= 2
    change = next(i for i, line in enumerate(found.out.splitlines()) if "%" in line)
    assert found.out.splitlines()[change + 2].split()[3] == f"{60:08x}", found.out


def test_a_query_may_end_in_a_comment(hunter, tmp_path, server):
    for more in ("", ", flavor: prometheus"):
        config(tmp_path, server.url, "  load: {type: prometheus, query: 'load # all of it'}\n", more)
        found = hunter("analyze", "load", "--since", SINCE, "--until", UNTIL)
        assert found.code == 0 and len(rows(found.out)) == 600, found.out + found.err


def test_how_it_was_asked_is_logged(hunter, tmp_path, server):
    for more, words in (("", "api/v1/export"), (", flavor: prometheus", "api/v1/query ")):
        config(tmp_path, server.url, NIGHTLY, more)
        found = analyze(hunter, "nightly", "--log-level", "debug")
        assert "raw samples" in found.err and words in found.err, found.err
    config(tmp_path, server.url, NIGHTLY.replace("commit_label", "step: 1d\n    commit_label"))
    assert "on a grid" in analyze(hunter, "nightly", "--log-level", "debug").err


def test_commits_bound_the_range(hunter, tmp_path, server):
    config(tmp_path, server.url, NIGHTLY)
    found = hunter("analyze", "nightly", "--since", SINCE, "--until-commit", f"{79:08x}")
    assert len(rows(found.out)) == 80, found.err
    config(tmp_path, server.url, NIGHTLY + "    range: 3650d\n")
    found = hunter("regressions", "--since-commit", f"{20:08x}", "--until", UNTIL)
    assert found.code == 1 and len(re.findall(r"\+(?:9\.\d|10\.\d)%", found.out)) == 2, found.out + found.err
    found = hunter("regressions", "--since-commit", "nope", "--until", UNTIL)
    assert found.code == 3 and 'no point in the selected range has commit "nope"' in found.err, found.err


def test_a_branch_cannot_leave_its_quotes(hunter, tmp_path, server):
    config(tmp_path, server.url, NIGHTLY)
    found = analyze(hunter, "nightly", "--branch", "it's \"x\" \\ y")
    assert len(rows(found.out)) == 90 and "write" not in found.out, found.err
    found = analyze(hunter, "nightly", "--branch", '"} or bench_seconds{branch="main')
    assert found.code == 3 and rows(found.out) == [] and "no data" in found.err
    config(tmp_path, server.url, NIGHTLY.replace('="%{BRANCH}"', '=~"none|%{BRANCH}"'))
    assert len(rows(analyze(hunter, "nightly", "--branch", "it's \"x\" \\ y").out)) == 90
    assert rows(analyze(hunter, "nightly", "--branch", ".*").out) == []
    config(tmp_path, server.url, NIGHTLY.replace("%{BRANCH}", "main"))
    found = analyze(hunter, "nightly", "--branch", "x")
    assert found.code == 2 and "does not support branches" in found.err


def test_stamps_are_true(hunter, tmp_path, server):
    config(tmp_path, server.url, "  load: {type: prometheus, query: load}\n")
    found = hunter("analyze", "load", "--since", "2024-03-01 01:00", "--until", "2024-03-01 02:00", "--output", "json")
    assert found.code == 0, found.err
    text = hunter("analyze", "load", "--since", "2024-03-01 01:00", "--until", "2024-03-01 02:00").out
    assert len(rows(text)) == 60 and rows(text)[0].startswith("2024-03-01 01:00:00")


def test_an_expression_needs_a_step(hunter, tmp_path, server):
    config(tmp_path, server.url, "  load: {type: prometheus, query: 'rate(load[5m])'}\n")
    found = analyze(hunter, "load")
    assert found.code == 3 and "expecting metricSelector" in found.err and "add step" in found.err, found.err
    assert "remoteAddr" not in found.err
    config(tmp_path, server.url, "  load: {type: prometheus, query: 'avg_over_time(load[10m])', step: 10m}\n")
    found = hunter("analyze", "load", "--since", "2024-03-01 00:10", "--until", "2024-03-01 10:00")
    assert found.code == 0 and len(rows(found.out)) == 59, found.out + found.err


def test_names_from_the_server(hunter, tmp_path, server):
    config(tmp_path, server.url, NIGHTLY)
    found = hunter("list-metrics", "nightly")
    assert found.code == 0 and "no data" in found.err  # the last 365 days have none
    config(tmp_path, server.url, NIGHTLY + "    range: 3650d\n")
    assert hunter("list-metrics", "nightly").out.splitlines() == ['seconds{bench="read"}', 'seconds{bench="write"}']
