"""regressions: Hunter's comparison on small CSV and JSON files."""
import csv as reader
import datetime
import io
import json
import random
import re

import pytest

DAY = datetime.timedelta(days=1)
START = datetime.datetime(2026, 1, 1)
LEVELS = {"up": [100, 120], "down": [100, 80], "same": [100, 100], "back": [100, 130, 100], "stairs": [100, 110, 125]}


def values(levels, seed):
    """20 points at each level, with a standard deviation of 1%."""
    source = random.Random(seed)
    return [level * (1 + source.gauss(0, 0.01)) for level in levels for _ in range(20)]


def csv(columns, branches=None, start=START):
    names = list(columns)
    lines = [",".join(["time", "commit", "version", *(["branch"] if branches else []), *names])]
    for i in range(len(columns[names[0]])):
        row = [(start + i * DAY).isoformat(), f"c{i}", f"1.{i // 20}", *([branches[i]] if branches else [])]
        lines.append(",".join(row + [f"{columns[name][i]:.6g}" for name in names]))
    return "\n".join(lines) + "\n"


@pytest.fixture(autouse=True)
def folder(tmp_path):
    columns = {name: values(levels, seed) for seed, (name, levels) in enumerate(LEVELS.items())}
    tests = ""
    for name, column in columns.items():
        (tmp_path / f"{name}.csv").write_text(csv({"p90": column}))
        tests += f"  {name}: {{type: csv, file: {name}.csv, attributes: [commit, version], metrics: {{p90: {{direction: -1}}}}}}\n"
    two = {"p90": columns["up"], "throughput": columns["down"]}
    (tmp_path / "two.csv").write_text(csv(two))
    branches = ["main"] * 20 + ["dev"] * 12
    dev = values([100], 7) + values([115], 8)[:12]
    (tmp_path / "branches.csv").write_text(csv({"p90": dev}, branches))
    (tmp_path / "header.csv").write_text("time,commit,version,p90\n")
    (tmp_path / "hunter.yaml").write_text(
        f"tests:\n{tests}"
        "  two: {type: csv, file: two.csv, metrics: {p90: {direction: -1}, throughput: {direction: 1}}}\n"
        "  branches: {type: csv, file: branches.csv, attributes: [commit, branch], metrics: {p90: {direction: -1}}}\n"
        "  either: {type: csv, file: down.csv, metrics: {p90: {direction: 0}}}\n"
        "  absent: {type: csv, file: absent.csv, metrics: [p90]}\n"
        "  header: {type: csv, file: header.csv, metrics: [p90]}\n"
        "test_groups: {smoke: [up, same], broken: [same, absent], worst: [up, absent]}\n")
    return tmp_path


def verdicts(result):
    """{"up": ["p90"], "same": []} of the text; checks the closing line and the exit code."""
    lines, found, current = result.out.splitlines(), {}, None
    for line in lines[:-1]:
        if line.startswith("        2"):
            continue  # when, and which commits
        if line.startswith("    "):
            found[current].append(line.split(":")[0].strip())
        else:
            current = line.split(":")[0]
            found[current] = []
            assert line == f"{current}: OK" or line == f"{current}:"
    count = sum(bool(metrics) for metrics in found.values())
    assert lines[-1] == {0: "No regressions found!", 1: "Regressions in 1 test found"}.get(
        count, f"Regressions in {count} tests found")
    assert result.code == (1 if count else 0)
    return found


def test_the_text(hunter):
    result = hunter("regressions", "two")
    document = json.loads(hunter("regressions", "two", "--output", "json").out)
    expected = "two:\n"
    for found in document["tests"][0]["regressions"]:
        before, after = found["level_before"], found["level_after"]
        size = tuple(found[key] for key in ("size", "size_low", "size_high"))
        assert abs(size[0] - 100 * (after / before - 1)) < 1e-9 and size[1] < size[0] < size[2]
        shown = tuple(("%.4g" % level).rjust(8) for level in (before, after))
        expected += "    %-16s: %s --> %s (%+6.1f%% [%.1f, %.1f])\n" % (found["metric"], *shown, *size)
        assert found["time"] == "2026-01-21T00:00:00Z"
        expected += "        2026-01-21 00:00\n"
    assert result == (1, expected + "Regressions in 1 test found\n", "")
    otava = hunter("regressions", "two", "--profile", "otava")
    assert otava.code == 1 and "2026" not in otava.out
    assert hunter("regressions", "same") == (0, "same: OK\nNo regressions found!\n", "")


def test_when_and_by_which_commit(hunter, folder):
    """The largest change for the worse between the levels; of a branch, what it has beyond the baseline."""
    def place(*arguments):
        found = json.loads(hunter("regressions", *arguments, "--output", "json").out)["tests"][0]["regressions"][0]
        [line] = [line for line in hunter("regressions", *arguments).out.splitlines() if line.startswith("        ")]
        when, _, commits = line.strip().partition("  ")
        assert (found["time"][:16].replace("T", " "), f'{found["commit_before"]}..{found["commit_after"]}') == (when, commits)
        return when[:10], commits

    assert place("up") == ("2026-01-21", "c19..c20")
    assert place("stairs") == ("2026-02-10", "c39..c40")  # 15 after 10
    assert place("stairs", "--until", "2026-02-05") == ("2026-01-21", "c19..c20")
    first = (START + 20 * DAY).date().isoformat()
    assert place("branches", "--branch", "dev") == (first, "c19..c31")
    (folder / "hunter.yaml").write_text(GATED)
    (folder / "b.csv").write_text(gate_csv(110, 1, 1.5, "main", 1))
    assert place("b", "--branch", "main", "--last", "1") == ("2026-02-25", "c109..f0")


def test_several_tests(hunter):
    assert verdicts(hunter("regressions", "smoke")) == {"up": ["p90"], "same": []}
    assert verdicts(hunter("regressions", "down", "smoke", "two")) == {
        "down": [], "up": ["p90"], "same": [], "two": ["p90", "throughput"]}


def test_direction(hunter):
    assert verdicts(hunter("regressions", "down")) == {"down": []}
    assert verdicts(hunter("regressions", "down", "--ignore-direction")) == {"down": ["p90"]}


def test_without_a_direction_a_change_is_told_and_is_no_regression(hunter):
    """As in Hunter, where nothing can be worse without a direction."""
    text, document = hunter("regressions", "either"), hunter("regressions", "either", "--output", "json")
    assert text.code == document.code == 0
    assert text.out.splitlines()[0] == "either:" and "changed: the metric has no direction" in text.out.splitlines()[1]
    assert text.out.splitlines()[2:] == ["        2026-01-21 00:00", "No regressions found!", "1 change of metrics without a direction (counted with --ignore-direction)"]
    found = json.loads(document.out)
    assert found["regressed"] == 0 and found["tests"][0]["regressions"] == []
    assert [(change["metric"], change["direction"]) for change in found["tests"][0]["changed"]] == [("p90", 0)]
    assert verdicts(hunter("regressions", "either", "--ignore-direction")) == {"either": ["p90"]}
    assert hunter("regressions", "either", "--profile", "otava").out == "either: OK\nNo regressions found!\n"
    assert hunter("analyze", "either", "--fail-on-regression").code == 0
    assert "No regressions found" in hunter("analyze", "either", "--output", "regressions_only").out
    assert ",no," in hunter("analyze", "either", "--output", "csv").out
    assert [change["regression"] for change in json.loads(hunter("analyze", "either", "--output", "json").out)["tests"][0]["changes"]] == [False]


def test_the_baseline_is_the_level_around_since(hunter):
    # Worse on day 20 and back on day 40: the end is as good as the beginning.
    assert verdicts(hunter("regressions", "back")) == {"back": []}
    assert verdicts(hunter("regressions", "up", "--since", "2026-01-10")) == {"up": ["p90"]}
    # From the first point of the new level on there is nothing worse; one day before there is.
    assert verdicts(hunter("regressions", "up", "--since", "2026-01-21")) == {"up": []}
    assert verdicts(hunter("regressions", "up", "--since", "2026-01-20")) == {"up": ["p90"]}
    for since in "2026-02-20", "2027-01-01":  # no point since then: nothing can be said
        assert hunter("regressions", "up", "--since", since).code == 3


def test_earlier_data_make_the_baseline(hunter):
    # Two points of the old level are left after --since; the level is known from the 18 before them.
    found = json.loads(hunter("regressions", "up", "--since", "2026-01-19", "--output", "json").out)
    before = found["tests"][0]["regressions"][0]["before"]
    assert (before["count"], before["first"], before["last"]) == (20, "2026-01-01T00:00:00Z", "2026-01-20T00:00:00Z")
    # 30 days of them and no more.
    found = json.loads(hunter("regressions", "stairs", "--since", "2026-02-09", "--output", "json").out)
    before = found["tests"][0]["regressions"][0]["before"]
    assert (before["count"], before["first"]) == (20, "2026-01-21T00:00:00Z")


def test_the_baseline_of_a_commit_or_version_is_its_last_point(hunter):
    assert verdicts(hunter("regressions", "stairs", "--since-version", "1.0")) == {"stairs": ["p90"]}
    found = json.loads(hunter("regressions", "stairs", "--since-version", "1.1", "--output", "json").out)
    before = found["tests"][0]["regressions"][0]["before"]
    assert (before["first"], before["last"]) == ("2026-01-21T00:00:00Z", "2026-02-09T00:00:00Z")
    assert verdicts(hunter("regressions", "stairs", "--since-commit", "c40")) == {"stairs": []}
    assert verdicts(hunter("regressions", "stairs", "--since-commit", "c39")) == {"stairs": ["p90"]}
    result = hunter("regressions", "stairs", "--since-version", "2.0")
    assert result.code == 3 and 'test "stairs"' in result.err and 'version "2.0"' in result.err
    assert result.out == ""


def test_until_and_metrics(hunter):
    assert verdicts(hunter("regressions", "up", "--until", "2026-01-20")) == {"up": []}
    assert verdicts(hunter("regressions", "up", "--until-commit", "c19")) == {"up": []}
    assert verdicts(hunter("regressions", "two", "--metrics", "throughput")) == {"two": ["throughput"]}


def test_last_compares_with_the_last_points_only(hunter):
    found = json.loads(hunter("regressions", "stairs", "--last", "5", "--output", "json").out)
    assert found["tests"][0]["regressions"][0]["after"]["count"] == 5
    # 30 points from the end hold a change: the level at the end is what follows it.
    found = json.loads(hunter("regressions", "stairs", "--last", "30", "--output", "json").out)
    assert found["tests"][0]["regressions"][0]["after"]["count"] == 20


def test_a_branch_is_compared_with_the_main_branch(hunter):
    result = hunter("regressions", "branches", "--branch", "dev", "--output", "json")
    found = json.loads(result.out)["tests"][0]["regressions"][0]
    assert result.code == 1
    assert (found["before"]["count"], found["after"]["count"]) == (20, 12)
    assert found["forward_change_percent"] == pytest.approx(15, abs=2)
    found = json.loads(hunter("regressions", "branches", "--branch", "dev", "--last", "4", "--output", "json").out)
    assert found["tests"][0]["regressions"][0]["after"]["count"] == 4
    assert verdicts(hunter("regressions", "branches", "--branch", "dev", "--last", "1")) == {"branches": ["p90"]}
    # The other way round it is an improvement.
    assert verdicts(hunter("regressions", "branches", "--branch", "main", "--base-branch", "dev")) == {"branches": []}
    result = hunter("regressions", "branches", "--branch", "nope")
    assert result.code == 3 and "nope" in result.err


def test_a_branch_of_a_json_file_is_compared_with_its_base_branch(hunter, folder):
    results = [{"timestamp": int((START + i * DAY).timestamp()), "attributes": {"branch": branch},
                "metrics": [{"name": "p90", "value": value}]}
               for branch, level, seed in (("master", 100, 3), ("dev", 115, 4))
               for i, value in enumerate(values([level], seed))]
    (folder / "results.json").write_text(json.dumps(results))
    (folder / "hunter.yaml").write_text(
        "tests: {j: {type: json, file: results.json, base_branch: master, metrics: {p90: {direction: -1}}}}\n")
    assert verdicts(hunter("regressions", "j")) == {"j": []}
    assert verdicts(hunter("regressions", "j", "--branch", "dev")) == {"j": ["p90"]}


def test_a_branch_with_the_data_of_the_main_branch_is_not_ok(hunter, folder):
    log = "#[StartTime: 1767225600.000 (seconds since epoch)]\n" + "".join(
        f"Tag=read,{i},1,10,1,2,3,4,5,6,7,8,9,10,{11 + i % 3}\n" for i in range(30))
    (folder / "log.csv").write_text(log)
    (folder / "hunter.yaml").write_text("tests: {log: {type: histostat, file: log.csv}}\n")
    assert verdicts(hunter("regressions", "log")) == {"log": []}
    for arguments in ([], ["--last", "3"], ["--since", "2026-01-01T00:00:10Z"]):
        result = hunter("regressions", "log", "--branch", "dev", *arguments)
        assert (result.code, result.out) == (3, "")
        assert 'test "log": branch "dev" has the same data as the main branch' in result.err


def test_threshold(hunter):
    found = json.loads(hunter("regressions", "two", "--output", "json").out)["tests"][0]["regressions"]
    assert len(found) == 2 and all(f["pvalue"] < 0.001 for f in found)
    least = min(f["pvalue"] for f in found)
    assert verdicts(hunter("regressions", "two", "-P", str(least / 10))) == {"two": []}


def test_tests_that_cannot_be_read(hunter):
    result = hunter("regressions", "broken")
    assert result.code == 3
    assert result.out == "same: OK\nNo regression in the tests that could be compared\n"
    assert result.err.splitlines()[-1] == "hunter-c: 1 of 2 tests could not be analyzed: absent"
    assert hunter("regressions", "worst").code == 1  # 2 over 1 over 3
    assert hunter("regressions", "worst", "nosuch").code == 2
    document = json.loads(hunter("regressions", "worst", "--output", "json").out)
    assert document["regressed"] == 1
    assert [f["name"] for f in document["failed"]] == ["absent"]
    assert "absent.csv" in document["failed"][0]["error"]


def test_csv_says_what_json_says(hunter):
    arguments = ("regressions", "two", "up", "same", "either", "absent", "--output")
    result = hunter(*arguments, "csv")
    rows = list(reader.DictReader(io.StringIO(result.out)))
    document = json.loads(hunter(*arguments, "json").out)
    expected = [(test["name"], one) for test in document["tests"] for one in (*test["regressions"], *test["changed"])]
    assert result.code == 1 and [(row["test"], row["metric"]) for row in rows] == [(test, one["metric"]) for test, one in expected]
    assert [row["regression"] for row in rows] == ["yes", "yes", "yes", "no"]
    for row, (_, one) in zip(rows, expected):
        for key in "time", "direction", "unit", "commit_before", "commit_after", "kind", "level_after", "size_low", "pvalue", "accepted":
            value = row[key] if isinstance(one[key], str | None) else type(one[key])(row[key])
            assert value == (one[key] or "" if isinstance(one[key], str | None) else one[key]), key
    [up] = [row for row in rows if row["test"] == "up"]
    assert (up["commit_before"], up["commit_after"], up["time"]) == ("c19", "c20", "2026-01-21T00:00:00Z")


def test_no_data_is_not_ok(hunter):
    result = hunter("regressions", "header")
    assert (result.code, result.out) == (3, "")
    assert 'test "header": no data in the selected range' in result.err


def test_a_metric_without_values_is_not_ok(hunter, folder):
    """A benchmark that died must not pass the gate."""
    alive = values([100], 3) + values([100], 4)
    columns = {"never": [float("nan")] * 40, "died": alive[:25] + [float("nan")] * 15,
               "broke": alive[:25] + [float("inf")] * 15, "alive": alive}
    (folder / "dead.csv").write_text(csv(columns))
    (folder / "dead.yaml").write_text("tests:\n  t: {type: csv, file: dead.csv, metrics: {m: {column: COLUMN, direction: -1}}}\n"
                                      "  all: {type: csv, file: dead.csv, metrics: [never, died, broke, alive]}\n")
    for column, since in ("never", "2026-01-01"), ("died", "2026-01-30"), ("broke", "2026-01-30"):
        (folder / "one.yaml").write_text((folder / "dead.yaml").read_text().replace("COLUMN", column))
        result = hunter("regressions", "t", "--config", "one.yaml", "--since", since)
        assert result.code == 3 and "t: OK" not in result.out, result
        side = "at" if column == "never" else "since"
        assert f'test "t": not enough data: m has no values {side} the baseline' in result.err
    result = hunter("regressions", "all", "--config", "dead.yaml", "--since", "2026-01-30", "--output", "json")
    document = json.loads(result.out)
    assert result.code == 3 and document["tests"] == []
    assert document["failed"] == [{"name": "all", "error":
        'test "all": not enough data: never has no values at the baseline; 2 more metrics lack data'}]
    for column in "never", "died", "broke":
        assert f"metric={column}" in result.err


def gate_csv(count, runs, factor, branch, seed):
    """Main has runs with 2% noise, then come those that are slower by the factor."""
    noise = random.Random(seed)
    rows = [f"{(START + i * DAY / 2).isoformat()},c{i},main,{20 * (1 + noise.gauss(0, .02)):.4f}" for i in range(count)]
    rows += [f"{(START + count * DAY / 2 + i * DAY / 144).isoformat()},f{i},{branch},{20 * factor * (1 + noise.gauss(0, .02)):.4f}"
             for i in range(runs)]
    return "\n".join(["time,commit,branch,p99", *rows]) + "\n"


GATED = "tests: {b: {type: csv, file: b.csv, attributes: [commit, branch], base_branch: main, metrics: {p99: {direction: -1}}}}\n"


@pytest.mark.parametrize("factor, first", [(1.5, 1), (1.1, 2)])
def test_a_few_slower_runs_fail_the_gate(hunter, folder, factor, first):
    """More runs never decide less: with two or three their own variance says next to nothing."""
    (folder / "hunter.yaml").write_text(GATED)
    for runs in range(first, 11):
        for branch, arguments in ("dev", ["--branch", "dev"]), ("main", ["--branch", "main", "--last", str(runs)]):
            (folder / "b.csv").write_text(gate_csv(110, runs, factor, branch, runs))
            assert verdicts(hunter("regressions", "b", *arguments)) == {"b": ["p99"]}, (runs, branch)
            (folder / "b.csv").write_text(gate_csv(110, runs, 1, branch, runs))
            assert verdicts(hunter("regressions", "b", *arguments)) == {"b": []}, (runs, branch)


@pytest.mark.parametrize("branch, arguments", [("dev", ["--branch", "dev"]), ("main", ["--branch", "main", "--last", "1"])])
def test_a_single_run_may_be_an_outlier(hunter, folder, branch, arguments):
    """+10% of one run in 2% noise asks for another; where that is accepted or better, nothing is asked."""
    (folder / "hunter.yaml").write_text(GATED)
    (folder / "b.csv").write_text(gate_csv(110, 1, 1.15, branch, 1))
    result = hunter("regressions", "b", *arguments)
    assert result.code == 3 and "No regression" not in result.out
    assert re.search(r'test "b": not enough data: p99 has 1 point, 2[23]\.\d+, possibly an outlier: one more point is needed', result.err)
    (folder / "hunter.yaml").write_text(GATED + "known_changes: [{test: b, time: 2026-02-25, reason: cache}]\n")
    accepted = hunter("regressions", "b", *arguments)
    assert accepted.code == 0 and "accepted: cache" in accepted.out, accepted
    (folder / "hunter.yaml").write_text(GATED.replace("-1", "1"))
    assert hunter("regressions", "b", *arguments).code == 0
    (folder / "hunter.yaml").write_text(GATED)
    (folder / "b.csv").write_text(gate_csv(110, 2, 1.15, branch, 1))
    assert hunter("regressions", "b", *arguments[:3], *["2"] * (branch == "main")).code == 1


@pytest.mark.parametrize("main, runs, code, words", [
    (2, 1, 3, "p99 has 2 points at the baseline and 1 to compare"), (6, 3, 3, "p99 has 6 points at the baseline and 3 to compare"),
    (9, 1, 1, ""), (5, 5, 1, ""), (3, 0, 3, "p99 has 3 points")])
def test_equal_values_decide_when_there_are_many(hunter, folder, main, runs, code, words):
    (folder / "hunter.yaml").write_text(GATED)
    rows = [f"{(START + i * DAY).isoformat()},c{i},{'main' if i < main else 'dev'},{100 + (i >= main)}" for i in range(main + runs)]
    (folder / "b.csv").write_text("\n".join(["time,commit,branch,p99", *rows]) + "\n")
    result = hunter("regressions", "b", "--branch", "dev" if runs else "main")
    assert result.code == code and (not words or result.err.rstrip().endswith(words)), result


@pytest.mark.parametrize("count, runs, arguments", [
    (1, 1, ["--branch", "dev"]), (3, 1, ["--branch", "dev"]), (2, 2, ["--branch", "dev"]), (3, 0, ["--branch", "main"]),
    (5, 0, ["--branch", "main", "--last", "2"])])
def test_too_few_points_are_no_yes(hunter, folder, count, runs, arguments):
    (folder / "hunter.yaml").write_text(GATED)
    (folder / "b.csv").write_text(gate_csv(count, runs, 1, "dev", 1))
    for output in "text", "json":
        result = hunter("regressions", "b", *arguments, "--output", output)
        assert result.code == 3 and "No regression" not in result.out
        assert 'test "b": not enough data: p99 has ' in result.err + result.out
    main = hunter("analyze", "b", "--branch", "main", "--fail-on-regression")
    assert main.code == 3 and f'test "b": not enough data: p99 has {count} point' in main.err


def test_one_metric_that_lacks_data_is_no_yes(hunter, folder):
    """The others are judged all the same."""
    fine, slow, young = values([100, 100], 1), values([100, 130], 2), [float("nan")] * 37 + [7, 7.1, 7.2]
    for others, code in ({"fine": fine}, 3), ({"fine": fine, "slow": slow}, 1):
        (folder / "b.csv").write_text(csv({**others, "young": young}))
        (folder / "hunter.yaml").write_text("tests: {b: {type: csv, file: b.csv, metrics: {%s}}}\n" % ", ".join(
            f"{name}: {{direction: -1}}" for name in (*others, "young")))
        result = hunter("regressions", "b")
        assert result.code == code and "not enough data: young has 3 points" in result.err
        assert "No regression" not in result.out and ("    slow" in result.out) == (code == 1)
        result = hunter("analyze", "b", "--fail-on-regression")
        assert result.code == code and "not enough data: young has 3 points" in result.err
        assert hunter("regressions", "b", "--metrics", "fine").code == 0


def test_a_metric_that_the_branch_lacks_is_no_yes(hunter, folder):
    rows = [f"{(START + i * DAY).isoformat()},{branch},{100 + i % 3},{'' if branch == 'dev' else 5 + i % 2}"
            for branch in ("main", "dev") for i in range(20)]
    (folder / "b.csv").write_text("\n".join(["time,branch,p50,p99", *rows]) + "\n")
    (folder / "hunter.yaml").write_text(
        "tests: {b: {type: csv, file: b.csv, attributes: [branch], base_branch: main, metrics: [p50, p99]}}\n")
    result = hunter("regressions", "b", "--branch", "dev")
    assert result.code == 3 and 'test "b": not enough data: p99 has no values' in result.err, result


def test_bad_flags(hunter):
    for arguments in (["--since", "2026-02-01", "--until", "2026-01-01"], ["--p-value", "2"], ["--output", "xml"],
                      ["--since", "x"], ["--metrics", "nope"]):
        result = hunter("regressions", "up", *arguments)
        assert (result.code, result.out) == (2, "")


def test_csv_with_two_branches_is_no_dead_end(hunter, folder):
    """What the messages say to do works: --branch main is the main branch against what it was, and base_branch is read."""
    levels = {"main": values([100, 120], 1), "dev": values([150, 150], 2)}
    rows = [f"{(START + i * DAY).isoformat()},{branch},{levels[branch][i]:.6g}" for i in range(40) for branch in levels]
    (folder / "both.csv").write_text("\n".join(["time,branch,p90", *rows]) + "\n")
    config = "agent: {state: state.db, listen: 127.0.0.1:0}\ntests: {both: {type: csv, file: both.csv, %s metrics: {p90: {direction: -1}}}}\n"
    (folder / "hunter.yaml").write_text(config % "")
    nothing = hunter("regressions", "both", "--since", "2026-01-10")
    assert nothing.code == 3 and "select one with --branch, or set base_branch in the test (dev, main)" in nothing.err
    main = hunter("regressions", "both", "--since", "2026-01-10", "--branch", "main", "--output", "json")
    assert main.code == 1 and main.err == ""
    found = json.loads(main.out)["tests"][0]["regressions"][0]
    assert (found["before"]["count"], found["after"]["count"]) == (20, 20)
    assert verdicts(hunter("regressions", "both", "--since", "2026-01-25", "--branch", "main")) == {"both": []}
    assert verdicts(hunter("regressions", "both", "--branch", "dev", "--base-branch", "dev")) == {"both": []}
    assert verdicts(hunter("regressions", "both", "--branch", "dev")) == {"both": ["p90"]}

    (folder / "hunter.yaml").write_text(config % "base_branch: dev,")
    assert verdicts(hunter("regressions", "both")) == {"both": []}  # dev alone
    assert verdicts(hunter("regressions", "both", "--branch", "dev")) == {"both": []}
    main = json.loads(hunter("regressions", "both", "--branch", "main", "--ignore-direction", "--output", "json").out)
    found = main["tests"][0]["regressions"][0]
    assert found["before"]["mean"] > 145 and found["after"]["mean"] < 125  # dev's end, main's end
    assert json.loads(hunter("analyze", "both", "--output", "json").out)["tests"][0]["changes"] == []
    assert hunter("run", "--once").code == 0

    (folder / "hunter.yaml").write_text(config % "base_branch: trunk,")
    assert 'no row of branch "trunk" (there are: dev, main)' in hunter("analyze", "both").err
    assert 'no row of branch "trunk"' in hunter("regressions", "both", "--branch", "dev").err
    (folder / "both.csv").write_text((folder / "both.csv").read_text().replace("main", "master"))
    (folder / "hunter.yaml").write_text(config % "")
    assert "base_branch of the test, or --base-branch" in hunter("regressions", "both", "--branch", "dev").err
    assert verdicts(hunter("regressions", "both", "--branch", "dev", "--base-branch", "master")) == {"both": ["p90"]}
    # The names of columns do not depend on a branch.
    (folder / "hunter.yaml").write_text("tests: {both: {type: csv, file: both.csv}}\n")
    assert hunter("list-metrics", "both") == (0, "p90\n", "")


def test_main_branch_of_json(hunter, folder):
    levels = {"main": values([100, 120], 1), "dev": values([150, 150], 2)}
    (folder / "both.json").write_text(json.dumps([
        {"timestamp": int((START + i * DAY).timestamp()), "metrics": [{"name": "p90", "value": levels[branch][i]}],
         "attributes": {"branch": branch}} for i in range(40) for branch in levels]))
    (folder / "hunter.yaml").write_text("tests: {both: {type: json, file: both.json, metrics: {p90: {direction: -1}}}}\n")
    assert verdicts(hunter("regressions", "both", "--branch", "main")) == {"both": ["p90"]}
    found = json.loads(hunter("regressions", "both", "--branch", "dev", "--output", "json").out)["tests"][0]["regressions"][0]
    assert found["before"]["mean"] < 125  # main's alone, not both taken together


def test_a_key_of_another_type_is_warned_of(hunter, folder):
    (folder / "hunter.yaml").write_text(
        "templates: {all: {time_column: at, query: q}}\n"
        "tests:\n  a: {type: json, file: a.json, inherit: all, prefix: p}\n"
        "  b: {type: csv, file: b.csv, inherit: all}\n  c: {type: bigquery, query: q, metrics: [m]}\n")
    found = hunter("validate")
    assert found.code == 0 and [line for line in (found.out + found.err).splitlines() if "no effect" in line] == [
        'hunter.yaml:3:47: warning: test "a": "prefix" has no effect on a test of type json'], found.out + found.err


def test_from_nothing_is_new(hunter, folder):
    """A level of 0 has no percentage; a unit stands behind the numbers, which have no bare point."""
    (folder / "new.csv").write_text(csv({"errors": [0] * 20 + [5 + i % 2 for i in range(20)], "lat": values([100, 120], 1)}))
    (folder / "hunter.yaml").write_text(
        "tests:\n  new: {type: csv, file: new.csv, metrics: {errors: {direction: -1}, lat: {direction: -1, unit: ms}}}\n")
    told = hunter("regressions", "new").out.splitlines()
    assert told[1] == "    errors          :        0 -->      5.5 (new)", told
    told = [line for line in told if not line.startswith("        ")]
    assert told[2].startswith("    lat             :") and " ms --> " in told[2] and re.search(r" 120(\.\d)? ms \( \+", told[2])
    told = hunter("analyze", "new", "--output", "regressions_only").out
    assert "5.5\t(new)\n" in told and " 120.3 ms\t( +" in told
    assert " new" in hunter("analyze", "new").out and "+0.0%" not in hunter("analyze", "new").out
    (folder / "new.csv").write_text(csv({"errors": [0] * 40, "lat": [7] * 20 + [7.0001] * 20}))
    told = hunter("regressions", "new")
    assert told.code == 1 and "(+0.0014%)" in told.out, told.out


HASHES = [f"{i * 2654435761 % 2 ** 32:08x}" for i in range(40)]


def test_abbreviated_commit(hunter, folder):
    text = csv({"p90": values([100, 120], 1)})
    for i, commit in reversed(list(enumerate(HASHES))):
        text = text.replace(f",c{i},", f",{commit},")
    (folder / "hashes.csv").write_text(text)
    (folder / "hunter.yaml").write_text(
        "tests: {hashes: {type: csv, file: hashes.csv, attributes: [commit], metrics: {p90: {direction: -1}}}}\n")
    for option in ("--since-commit", "--until-commit"):
        whole = hunter("analyze", "hashes", option, HASHES[10])
        assert whole.code == 0 and HASHES[10] in whole.out
        assert hunter("analyze", "hashes", option, HASHES[10][:5]) == whole
        assert hunter("analyze", "hashes", option, HASHES[10][:5].upper()) == whole
    assert hunter("regressions", "hashes", "--since-commit", HASHES[10][:4]).code == 1
    # Three digits are no abbreviation, and what begins two commits is none of them.
    assert hunter("analyze", "hashes", "--since-commit", HASHES[10][:3]).code == 3
    (folder / "hashes.csv").write_text(text.replace(HASHES[20], HASHES[10][:6] + "00"))
    for command in (["analyze"], ["regressions"]):
        found = hunter(*command, "hashes", "--since-commit", HASHES[10][:5])
        assert found.code == 3 and f'commit "{HASHES[10][:5]}" is ambiguous: "{HASHES[10]}" and "{HASHES[10][:6]}00" begin with it' in found.err


def test_branch_variable(hunter, folder):
    """As with Otava $BRANCH stands for --branch, which wins."""
    rows = csv({"p90": values([100], 7) + values([130], 8)}, ["main"] * 20 + ["dev"] * 20)
    (folder / "hunter.yaml").write_text("tests: {branches: {type: csv, file: b.csv, attributes: [branch], metrics: [p90]}}\n")
    (folder / "b.csv").write_text(rows)
    by_flag = hunter("analyze", "branches", "--branch", "dev")
    assert by_flag.code == 0 and hunter("analyze", "branches", env={"BRANCH": "dev"}) == by_flag
    assert hunter("analyze", "branches", "--branch", "dev", env={"BRANCH": "main"}) == by_flag
    assert hunter("analyze", "branches", env={"BRANCH": ""}) == hunter("analyze", "branches") != by_flag


@pytest.mark.parametrize("command", [["regressions"], ["analyze"], ["run", "--once"]])
def test_too_much_work_for_one_series(hunter, folder, command):
    """Options that ask for hours of work cost their test, with a reason, and no other."""
    times = [START + i * datetime.timedelta(minutes=1) for i in range(200000)]
    (folder / "long.csv").write_text("time,p90\n" + "".join(f"{time.isoformat()},{i % 7}\n" for i, time in enumerate(times)))
    (folder / "hunter.yaml").write_text(
        f"agent: {{state: {folder}/state.db, max_age: never}}\n"
        "tests:\n"
        "  long: {type: csv, file: long.csv, metrics: [p90], detection: {window: 1000000}}\n"
        "  up: {type: csv, file: up.csv, metrics: [p90]}\n")
    result = hunter(*command, *([] if command[0] == "run" else ["long", "up"]))
    assert result.code == 3
    assert 'series "p90": the detector edivisive would take more than 12.0 billion steps for 200000 points' in \
        result.err.replace('\\"', '"')
    assert result.out or command[0] == "run"
