"""analyze and list-metrics on small CSV files: output forms, selection, exit codes and bad input."""
import datetime
import json
import math
import random
import re
import subprocess

import pytest

DAY = datetime.timedelta(days=1)
START = datetime.datetime(2026, 1, 1)


def csv(values, header="time,commit,m"):
    """One row a day from 2026-01-01, commits c0, c1, ..."""
    rows = [f"{(START + i * DAY).isoformat()},c{i},{value}" for i, value in enumerate(values)]
    return "\n".join([header, *rows]) + "\n"


def noisy(levels, seed=1):
    """20 points at each level, with a standard deviation of 1%."""
    source = random.Random(seed)
    return [f"{level * (1 + source.gauss(0, 0.01)):.6g}" for level in levels for _ in range(20)]


FILES = {
    "step": csv(noisy([100, 120])),
    "better": csv(noisy([100, 80])),
    "flat": csv(noisy([100, 100])),
    "header": csv([]),
    "empty": "",
    "one": csv([5]),
    "two": csv([5, 6]),
    "missing": csv([""] * 20),
    "constant": csv([5] * 20),
    "infinite": csv(["inf" if i == 7 else 5 for i in range(20)]),
    "tiny": csv(noisy([1e-300, 2e-300])),
    "huge": csv(noisy([1e300, 0.5e300])),
    "ragged": csv([1, 2, 3]) + "2026-01-04,c3\n",
    "word": csv([1, 2, "three"]),
    "twice": "time,commit,m,m\n2026-01-01,c0,1,2\n",
    "timeless": csv([1, 2, 3], "when,commit,m"),
}


@pytest.fixture(autouse=True)
def folder(tmp_path):
    tests = ""
    for name, text in FILES.items():
        (tmp_path / f"{name}.csv").write_text(text)
        tests += f"  {name}: {{type: csv, file: {name}.csv, attributes: [commit], metrics: {{m: {{direction: -1}}}}}}\n"
    (tmp_path / "hunter.yaml").write_text(
        f"tests:\n{tests}"
        "  absent: {type: csv, file: absent.csv, metrics: [m]}\n"
        "  folder: {type: csv, file: '.', metrics: [m]}\n"
        "  wide: {type: csv, file: wide.csv, attributes: [commit, version], metrics: [app.read.a, app.read.b]}\n"
        "test_groups: {moved: [step, better], all: [step, flat, absent, folder, better]}\n")
    rows = [f"{(START + i * DAY).isoformat()},c{i},1.{i // 5},{100 if i < 20 else 130},{'' if i == 3 else 7}" for i in range(40)]
    (tmp_path / "wide.csv").write_text("\n".join(["time,commit,version,app.read.a,app.read.b", *rows]) + "\n")
    return tmp_path


def changes(result):
    return [(t["name"], c["metric"], c["index"]) for t in json.loads(result.out)["tests"] for c in t["changes"]]


def test_the_table(hunter):
    result = hunter("analyze", "wide")
    lines = result.out.splitlines()
    assert (result.code, result.err) == (0, "")
    assert lines[:5] == [
        "wide:",
        "time                       commit    version         a    b",
        "-------------------------  --------  ---------  ------  ---",
        "2026-01-01 00:00:00 +0000  c0        1.0           100    7",
        "2026-01-02 00:00:00 +0000  c1        1.0           100    7",
    ]
    assert lines[6].split() == ["2026-01-04", "00:00:00", "+0000", "c3", "1.0", "100"]
    assert len(lines) == 43 + 3
    dots = next(i for i, line in enumerate(lines) if "·" in line)
    assert lines[dots + 1].split() == ["+30.0%"]
    assert lines[dots] == lines[dots + 2]
    assert lines[dots + 3].startswith("2026-01-21 00:00:00 +0000  c20 ")
    assert "\033" not in result.out


def test_full_commits_are_short_in_tables_alone(hunter, folder):
    """40 characters a row would push the numbers apart; programs get all of them, and Otava's table is Otava's."""
    commits = [f"{i:02}" + 19 * "9f" for i in range(40)]
    rows = "".join(f"2026-01-01T{i // 2:02}:{i % 2 * 30:02},{c},{100 + i % 2 + 50 * (i >= 20)}\n" for i, c in enumerate(commits))
    (folder / "full.csv").write_text("time,commit,m\n" + rows)
    (folder / "full.yaml").write_text("tests: {full: {type: csv, file: full.csv, attributes: [commit], metrics: {m: {}}}}\n")
    def analyze(*flags):
        return hunter("analyze", "full", "--config", "full.yaml", *flags).out
    rows = analyze().splitlines()
    assert rows[1].split() == ["time", "commit", "m"] and rows[3].split()[3:] == [commits[0][:12], "100"]
    assert commits[20] not in analyze() and commits[20] in analyze("--output", "json") and commits[20] in analyze("--output", "csv")
    assert commits[0] in analyze("--profile", "otava") and commits[20] in analyze("--profile", "otava", "--output", "json")


def test_verbose_shows_p_values(hunter):
    lines = hunter("analyze", "step", "--verbose").out.splitlines()
    dots = next(i for i, line in enumerate(lines) if "·" in line)
    assert re.fullmatch(r" +\+\d+\.\d%", lines[dots + 1])
    assert re.fullmatch(r" +p=\S+", lines[dots + 2])
    assert float(lines[dots + 2].split("=")[1]) < 1e-10


def test_log_is_text(hunter):
    assert hunter("analyze", "step", "--output", "log").out == hunter("analyze", "step").out


def test_json_is_one_document(hunter):
    result = hunter("analyze", "step", "flat", "--output", "json")
    document = json.loads(result.out)
    step, flat = document["tests"]
    assert document["failed"] == [] and result.code == 0
    assert step["name"] == "step" and flat["changes"] == []
    assert step["metrics"] == [{"name": "m", "direction": -1, "unit": None, "points": 40, "missing": 0}]
    change = step["changes"][0]
    assert change["time"] == "2026-01-21T00:00:00Z" and change["timestamp"] == 1768953600
    assert change["attributes"] == {"commit": "c20"} and change["attributes_before"] == {"commit": "c19"}
    assert change["commit_before"] == "c19" and change["labels"] == {}
    assert change["index"] == 20 and change["regression"] is True
    assert change["forward_change_percent"] == pytest.approx(20, abs=2)
    assert change["forward_change_percent"] == pytest.approx(100 * (change["mean_after"] / change["mean_before"] - 1))
    assert (change["count_before"], change["count_after"]) == (20, 20)


def test_csv_has_a_line_a_change(hunter):
    lines = hunter("analyze", "moved", "--output", "csv").out.splitlines()
    assert lines[0].split(",")[:4] == ["test", "metric", "time", "index"]
    assert lines[0].split(",")[12:] == [
        "commit", "version", "branch", "run", "commit_before", "labels",
        "kind", "level_before", "level_after", "size", "size_low", "size_high", "place_from", "place_to", "suspects", "suspects_from", "suspects_to",
        "accepted"]
    assert lines[1].startswith("step,m,2026-01-21T00:00:00Z,20,") and ",yes,c20,,,,c19,,step," in lines[1]
    assert lines[2].startswith("better,m,2026-01-21T00:00:00Z,20,") and ",no,c20,,,,c19,,step," in lines[2]
    assert len(lines) == 3


def test_csv_of_a_place_at_the_beginning_of_time(hunter, folder):
    """1970-01-01T00:00:00Z is a time like any other."""
    values = [100 + min(i, 40) + (i * 7 % 5 - 2) / 2 for i in range(80)]
    (folder / "early.csv").write_text("time,m\n" + "".join(f"{i * 60},{value}\n" for i, value in enumerate(values)))
    (folder / "hunter.yaml").write_text("tests: {early: {type: csv, file: early.csv, metrics: {m: {}}}}\n")
    lines = [line.split(",") for line in hunter("analyze", "early", "--output", "csv").out.splitlines()]
    places = [dict(zip(lines[0], line))["place_from"] for line in lines[1:]]
    assert "1970-01-01T00:00:00Z" in places, lines


@pytest.mark.parametrize("commit, shown", [
    ("=HYPERLINK(A1)", "'=HYPERLINK(A1)"), ("+1+cmd", "'+1+cmd"), ("-2+3", "'-2+3"), ("@SUM(A1)", "'@SUM(A1)"),
    ("\t=1+1", "' =1+1"), ("x;=1+1", "x;'=1+1"), ("=1; @a;-5;b-1", "'=1;' @a;-5;b-1"), ("\uff1d1", "'\uff1d1"), ("-12", "-12"), ("+1.5", "+1.5"), ("a=b", "a=b"), ("c-1", "c-1")])
def test_csv_holds_no_formulas(hunter, folder, commit, shown):
    """A spreadsheet would run what somebody put into a commit; numbers are none."""
    rows = "".join(f"2026-01-{i + 1:02},{commit},{100 + i % 2 + 50 * (i >= 15)}\n" for i in range(30))
    (folder / "cell.csv").write_text("time,commit,=m\n" + rows)
    (folder / "hunter.yaml").write_text("tests: {cell: {type: csv, file: cell.csv, attributes: [commit], metrics: {'=m': {}}}}\n")
    lines = hunter("analyze", "cell", "--output", "csv").out.splitlines()
    assert lines[1].startswith("cell,'=m,") and f",{shown},,,," in lines[1], lines


def test_regressions_only(hunter):
    result = hunter("analyze", "moved", "--output", "regressions_only")
    assert re.fullmatch(
        "Regressions in step:\n2026-01-21 00:00:00 \\+0000\n"
        "    m               :\t {4,5}\\d+(\\.\\d)?\t--> {4,6}\\d+(\\.\\d)?\t\\( \\+\\d+\\.\\d% \\[[\\d.]+, [\\d.]+\\]\\)\n"
        "No regressions found in better.\n", result.out), result.out


def test_results_come_in_the_order_asked(hunter):
    result = hunter("analyze", "flat", "moved", "step", "--output", "json")
    assert [t["name"] for t in json.loads(result.out)["tests"]] == ["flat", "step", "better"]


def test_one_failure_costs_only_its_test(hunter):
    result = hunter("analyze", "all", "--output", "json")
    document = json.loads(result.out)
    assert result.code == 3
    assert [t["name"] for t in document["tests"]] == ["step", "flat", "better"]
    assert [f["name"] for f in document["failed"]] == ["absent", "folder"]
    assert 'test "absent": absent.csv: ' in result.err
    assert result.err.splitlines()[-1] == "hunter-c: 2 of 5 tests could not be analyzed: absent, folder"


def test_many_tests_keep_their_order(hunter, folder):
    """More than are under way at once; every fifth cannot be read, every seventh is of a kind that is not supported."""
    names = [f"t{i}" for i in range(150)]
    lines = [f"  {name}: {{type: csv, file: {'absent' if i % 5 == 0 else 'two'}.csv, metrics: [m]}}"
             if i % 7 else f"  {name}: {{type: bigquery, query: x, time_column: t, metrics: [m]}}"
             for i, name in enumerate(names)]
    (folder / "hunter.yaml").write_text("tests:\n" + "\n".join(lines) + "\n")
    result = hunter("analyze", "--output", "json")
    document = json.loads(result.out)
    assert result.code == 3
    assert [t["name"] for t in document["tests"]] == [n for i, n in enumerate(names) if i % 5 and i % 7]
    assert [f["name"] for f in document["failed"]] == [n for i, n in enumerate(names) if not (i % 5 and i % 7)]
    assert "and 27 more" in result.err.splitlines()[-1]
    assert "BigQuery" in document["failed"][0]["error"]


def test_a_reader_that_goes_away(program, folder):
    (folder / "long.csv").write_text(csv(range(20000)))
    (folder / "hunter.yaml").write_text("tests: {long: {type: csv, file: long.csv, metrics: [m]}}\n")
    process = subprocess.Popen([str(program), "analyze"], cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert process.stdout.readline() == b"long:\n"
    process.stdout.close()
    assert process.stderr.read() == b""
    process.wait()


@pytest.mark.parametrize("arguments, code", [
    (["step"], 0), (["step", "--fail-on-regression"], 1), (["better", "--fail-on-regression"], 0),
    (["flat", "absent", "--fail-on-regression"], 3), (["step", "absent", "--fail-on-regression"], 1),
    (["nosuch", "--fail-on-regression"], 2)])
def test_exit_codes(hunter, arguments, code):
    assert hunter("analyze", *arguments).code == code


@pytest.mark.parametrize("arguments, code", [
    (["step", "--since", "2030-01-01"], 3), (["missing"], 3), (["header", "flat"], 3), (["header", "step"], 1),
    (["infinite"], 0), (["wide", "--metrics", "app.read.b", "--since", "2026-01-04", "--until", "2026-01-05"], 3)])
@pytest.mark.parametrize("output", ["text", "json", "csv", "regressions_only"])
def test_no_data_is_no_good_sign(hunter, arguments, code, output):
    result = hunter("analyze", *arguments, "--output", output, "--fail-on-regression", "--log-level", "error")
    said = f'hunter-c: test "{arguments[0]}": no data in the selected range\n'
    empty = code == 3 or arguments[0] == "header"
    assert (result.code, result.err) == (code, said if empty else "")
    assert hunter("analyze", *arguments, "--output", output).code == (3 if empty else 0)


@pytest.mark.parametrize("arguments, first, points", [
    ([], "c0", 40),
    (["--since", "2026-01-11"], "c10", 30),
    (["--until", "2026-01-11"], "c0", 10),
    (["--since", "2026-01-11", "--until", "2026-01-12"], "c10", 1),
    (["--since", "2026-01-11T00:00:00.001Z", "--until", "2026-01-13T02:00:00+02:00"], "c11", 1),
    (["--last", "7"], "c33", 7),
    (["--until-commit", "c9", "--last", "3"], "c7", 3),
    (["--since-commit", "c5", "--until-commit", "c9"], "c5", 5),
    (["--since-version", "1.2", "--until-version", "1.3"], "c10", 10),
    (["--since", "2030-01-01"], None, 0)])
def test_selection_of_points(hunter, arguments, first, points):
    result = hunter("analyze", "wide", *arguments)
    rows = [line.split() for line in result.out.splitlines() if line.startswith("2026")]
    assert result.code == (0 if points else 3) and len(rows) == points
    assert not rows or rows[0][3] == first
    assert rows or "no data in the selected range" in result.out


def test_selection_of_metrics_and_attributes(hunter):
    lines = hunter("analyze", "wide", "--metrics", "app.read.b,app.read.a", "--attrs", "version").out.splitlines()
    assert lines[1].split() == ["time", "version", "b", "a"]
    result = hunter("analyze", "wide", "--attrs", "nope")
    assert result.code == 0 and "attribute=nope" in result.err
    # A test that has none of the metrics is left out, with a word about it.
    result = hunter("analyze", "step", "wide", "--metrics", "m")
    assert "wide:" not in result.out and "test=wide" in result.err and result.code == 0


@pytest.mark.parametrize("arguments, code, words", [
    (["--metrics", "app.read.c"], 2, ['test "wide"', 'no metric "app.read.c"', 'did you mean "app.read.a"?']),
    (["--since", "2026-02-01", "--until", "2026-01-01"], 2, ["invalid time range", "2026-02-01", "2026-01-01"]),
    (["--since", "soonish"], 2, ["--since", '"soonish" is not a date']),
    (["--since", "2026-01-01", "--since-commit", "c3"], 2, ["only one of --since"]),
    (["--since-commit", "zzzzzz"], 3, ['test "wide"', 'commit "zzzzzz"']),
    (["--until-commit", "c99"], 3, ['test "wide"', 'commit "c99"', "did you mean"]),
    (["--window", "1"], 2, ["--window", '"1"']),
    (["--p-value", "0"], 2, ["--p-value", '"0"']),
    (["-P", "2"], 2, ["--p-value", '"2"']),
    (["--magnitude", "-0.1"], 2, ["--magnitude", '"-0.1"']),
    (["--last", "0"], 2, ["--last", '"0"']),
    (["--detector", "edivisiv"], 2, ["edivisiv", 'did you mean "edivisive"?']),
    (["--output", "xml"], 2, ["--output", "xml", "regressions_only"]),
    (["--branch", "main"], 3, ["wide.csv", "branch"])])
def test_impossible_options(hunter, arguments, code, words):
    result = hunter("analyze", "wide", *arguments)
    assert (result.code, result.out) == (code, "")
    for word in words:
        assert word in result.err


@pytest.mark.parametrize("name, words", [
    ("absent", ["absent.csv", "no such file"]), ("folder", ["directory"]), ("empty", ["empty.csv", "empty"]),
    ("ragged", ["ragged.csv:5"]), ("word", ["word.csv:4", "three", '"m"']), ("twice", ["twice.csv", '"m"']),
    ("timeless", ["timeless.csv", "time"])])
def test_what_cannot_be_read(hunter, name, words):
    result = hunter("analyze", name)
    assert (result.code, result.out) == (3, "")
    assert f'test "{name}"' in result.err
    for word in words:
        assert word in result.err


@pytest.mark.parametrize("name", ["flat", "header", "one", "two", "missing", "constant"])
def test_nothing_to_find(hunter, name):
    for profile in ([], ["--profile", "otava"]):
        result = hunter("analyze", name, "--output", "regressions_only", *profile)
        code = 3 if name in ("header", "missing") and not profile else 0
        assert (result.code, result.out) == (code, f"No regressions found in {name}.\n")
        assert hunter("analyze", name, *profile).code == code


def test_extreme_values(hunter):
    assert changes(hunter("analyze", "tiny", "huge", "--output", "json")) == [("tiny", "m", 20), ("huge", "m", 20)]
    result = hunter("analyze", "infinite")
    assert result.code == 0 and re.search(r"^2026-01-08 .* inf$", result.out, re.M)
    assert changes(hunter("analyze", "infinite", "--output", "json")) == []


def test_otava_prints_one_document_a_test(hunter):
    lines = hunter("analyze", "moved", "--output", "json", "--profile", "otava").out.splitlines()
    assert [list(json.loads(line)) for line in lines] == [["step"], ["better"]]
    change = json.loads(lines[0])["step"][0]["changes"][0]
    assert change["pvalue"] == "0.000000" and change["index"] == 20


def test_orig_edivisive_in_otavas_format(hunter):
    result = hunter("analyze", "step", "--orig-edivisive", "--output", "json", "--profile", "otava")
    assert [c["changes"][0]["index"] for c in json.loads(result.out)["step"]] == [20]


def test_attributes_that_look_like_numbers(hunter, folder):
    """Otava takes them for numbers; ours stay what they are."""
    (folder / "wide.csv").write_text("time,commit,version,app.read.a,app.read.b\n"
                                     "2026-01-01,100,4.10,1,1.5\n2026-01-02,7,4.5,2,20\n")
    assert hunter("analyze", "wide", "--profile", "otava").out == (
        "time                         commit    version    a     b\n"
        "-------------------------  --------  ---------  ---  ----\n"
        "2026-01-01 00:00:00 +0000       100        4.1    1   1.5\n"
        "2026-01-02 00:00:00 +0000         7        4.5    2  20\n")
    assert hunter("analyze", "wide").out.splitlines()[3:] == [
        "2026-01-01 00:00:00 +0000  100       4.10         1   1.5",
        "2026-01-02 00:00:00 +0000  7         4.5          2  20"]


def test_header_without_rows_in_otava(hunter):
    result = hunter("analyze", "header", "--profile", "otava")
    assert result.out == "time    commit    m\n------  --------  ---\n"


def test_names_do_nothing_to_the_terminal(hunter, folder):
    (folder / "evil.csv").write_bytes(b"time,a\x1b[2J,b\n" + b"".join(b"2026-01-%02d,1,2\n" % i for i in range(1, 9)))
    (folder / "hunter.yaml").write_text("tests: {evil: {type: csv, file: evil.csv}}\n")
    assert hunter("list-metrics", "evil") == (0, "a [2J\nb\n", "")


def test_list_metrics(hunter):
    assert hunter("list-metrics", "wide") == (0, "app.read.a\napp.read.b\n", "")
    result = hunter("list-metrics", "wied")
    assert result.code == 2 and 'did you mean "wide"?' in result.err
    result = hunter("list-metrics", "wide", "--since", "soonish")
    assert result.code == 2 and '"soonish" is not a date' in result.err
    assert hunter("list-metrics").code == 2
    assert hunter("list-metrics", "wide", "step").code == 2


def hourly(folder, name, values, start=1772409600):
    """A CSV of hourly values from Monday 2026-03-02 on."""
    rows = "".join(f"{start + 3600 * i},{value:.3f}\n" for i, value in enumerate(values))
    (folder / f"{name}.csv").write_text("time,p99\n" + rows)
    (folder / "hunter.yaml").write_text(
        f"tests: {{{name}: {{type: csv, file: {name}.csv, time_column: time, metrics: {{p99: {{direction: -1}}}}}}}}\n")


def found_in(result):
    return [change for test in json.loads(result.out)["tests"] for change in test["changes"]]


def daily(i, noise):
    return 100 * (1 + .3 * math.sin(2 * math.pi * i / 24)) * math.exp(noise.gauss(0, .05))


def test_a_step_within_a_daily_cycle(hunter, folder):
    """Hourly values with a cycle of 30% and a step of 20%: told, and what was removed for it is said."""
    noise = random.Random(4)
    hourly(folder, "svc", [daily(i, noise) * (1.2 if i >= 500 else 1) for i in range(720)])
    shown = hunter("analyze", "svc")
    assert re.search(r"p99: daily cycle removed \(9\d% of the variance\)\n$", shown.out), shown.out[-200:]
    found = found_in(hunter("analyze", "svc", "--output", "json"))
    assert len(found) == 1 and abs(found[0]["index"] - 500) <= 5 and found[0]["kind"] == "step"
    assert found[0]["size_low"] < 20 < found[0]["size_high"] and found[0]["place_from"] <= found[0]["time"]
    assert hunter("regressions", "svc").code == 1
    assert found_in(hunter("analyze", "svc", "--season", "none", "--output", "json")) == []
    assert "cycle" not in hunter("analyze", "svc", "--season", "none").out


def test_a_cycle_alone_is_no_change(hunter, folder):
    noise = random.Random(5)
    hourly(folder, "svc", [daily(i, noise) * (.7 if i // 24 % 7 >= 5 else 1) for i in range(720)])
    assert "p99: daily and weekly cycle removed" in hunter("analyze", "svc").out
    assert found_in(hunter("analyze", "svc", "--output", "json")) == []
    assert hunter("regressions", "svc") == (0, "svc: OK\nNo regressions found!\n", "")


def test_season_and_zone_are_checked(hunter, folder):
    hourly(folder, "svc", range(1, 50))
    assert hunter("analyze", "svc", "--season", "month").err == \
        "hunter-c: --season: \"month\" is none of auto, none, day, week\n"
    wrong = hunter("analyze", "svc", "--zone", "Europe/../etc")
    assert wrong.code == 2 and "--zone: \"Europe/../etc\" is not a time zone" in wrong.err
    wrong = hunter("analyze", "svc", "--holidays", "2026-12-25,26.12.2026")
    assert wrong.code == 2 and "--holidays: \"26.12.2026\" is not a date" in wrong.err
    (folder / "hunter.yaml").write_text(
        "tests: {svc: {type: csv, file: svc.csv, detection: {season: monthly, zone: Nowhere/Here}}}\n")
    checked = hunter("validate")
    assert checked.code == 2 and "season: \"monthly\" is none of" in checked.err + checked.out
    assert "zone: no time zone \"Nowhere/Here\"" in checked.err + checked.out


def test_a_leak_is_a_trend(hunter, folder):
    """What doubles little by little is no step, and no "OK" either."""
    noise = random.Random(6)
    hourly(folder, "leak", [100 * (1 + max(0, min(1, (i - 60) / 100))) + noise.gauss(0, 1) for i in range(220)])
    found = found_in(hunter("analyze", "leak", "--output", "json"))
    assert [change["kind"] for change in found] == ["trend"]
    assert abs(found[0]["level_before"] - 100) < 3 and abs(found[0]["level_after"] - 200) < 4
    assert "p99: trend from " in hunter("analyze", "leak").out
    result = hunter("regressions", "leak")
    assert result.code == 1 and re.search(r", \+(0\.99|1) a point\n", result.out), result.out


def test_outliers_do_not_turn_a_size_over(hunter, folder):
    """Outliers before a step up make its raw means fall; the level, the size and the verdict do not."""
    noise = random.Random(7)
    values = [(100 if i < 100 else 110) * math.exp(noise.gauss(0, .02)) for i in range(200)]
    for i in range(3, 100, 12):
        values[i] *= 4
    hourly(folder, "wild", values)
    found = found_in(hunter("analyze", "wild", "--output", "json"))
    assert len(found) == 1 and found[0]["mean_after"] < found[0]["mean_before"], found
    assert 8 < found[0]["size"] < 12 and found[0]["regression"], found
