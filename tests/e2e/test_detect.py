"""hunter-c detect: numbers, CSV and JSON lines in, change points out."""
import datetime
import json
import math
import os
import pathlib
import random
import signal
import subprocess
import threading

import pytest
from waiting import LONGEST

TESTS = pathlib.Path(__file__).parents[1]
GOLDEN = TESTS / "golden/edivisive.jsonl"
FIELDS = ["index", "pvalue", "mean_before", "mean_after", "stddev_before", "stddev_after", "forward_change_percent",
          "magnitude", "kind", "level_before", "level_after", "size", "size_low", "size_high", "place_from", "place_to"]


def noise(n, level=100.0, sd=1.0, seed=1):
    rng = random.Random(seed)
    return [rng.gauss(level, sd) for _ in range(n)]


STEP = noise(50) + noise(50, 120, seed=2)


def lines(*values):
    return "".join(f"{v}\n" for v in values)


def row(**members):
    return json.dumps(members) + "\n"


def points(text):
    """Text output: (index, p, before, after, percent) of each line."""
    return [tuple(float(v) for v in line.split("\t")) for line in text.splitlines()]


def indices(text):
    return [int(p[0]) for p in points(text)]


def answers(result):
    return [json.loads(line) for line in result.out.splitlines()]


def found(answer):
    return [c["index"] for c in answer["change_points"]]


# Text


def test_step(hunter):
    result = hunter("detect", stdin=lines(*STEP))
    assert (result.code, result.err) == (0, "")
    [(index, p, before, after, percent)] = points(result.out)
    assert index == 50 and 0 <= p < 1e-6
    assert before == pytest.approx(100, abs=1) and after == pytest.approx(120, abs=1)
    assert percent == pytest.approx(100 * (after / before - 1), rel=1e-3)


@pytest.mark.parametrize("values", [
    pytest.param([], id="empty"),
    pytest.param([5], id="one"),
    pytest.param([5, 6], id="two"),
    pytest.param([7] * 200, id="constant"),
    pytest.param([0] * 200, id="zero"),
    pytest.param(["nan"] * 200, id="all-missing"),
    pytest.param(["inf"] * 200, id="infinite"),
    pytest.param(["1e-300"] * 100, id="tiny-constant"),
    pytest.param(["1e300"] * 100, id="huge-constant"),
])
@pytest.mark.parametrize("profile", ["default", "otava"])
def test_nothing_to_find(hunter, values, profile):
    result = hunter("detect", "--profile", profile, stdin=lines(*values))
    assert (result.code, result.out, result.err) == (0, "", "")


def test_seq_1_100(hunter):
    """A ramp is one trend; Otava sees nothing but steps in it."""
    result = hunter("detect", "--output", "jsonl", stdin=lines(*range(1, 101)))
    assert (result.code, result.err) == (0, "")
    [trend] = answers(result)[0]["change_points"]
    assert trend["kind"] == "trend" and (trend["place_from"], trend["place_to"]) == (0, 99)
    assert (trend["level_before"], trend["level_after"]) == (pytest.approx(0.5), pytest.approx(100.5))
    assert len(points(hunter("detect", "--profile", "otava", stdin=lines(*range(1, 101))).out)) > 5


@pytest.mark.parametrize("scale", [1e-300, 1e-30, 1, 1e30, 1e300])
def test_scale_does_not_matter(hunter, scale):
    assert indices(hunter("detect", stdin=lines(*(v / 128 * scale for v in STEP))).out) == [50]


@pytest.mark.parametrize("at", [0, 20, 99])
def test_infinity_within(hunter, at):
    for word in ("inf", "-inf", "Infinity", "1e999"):
        values = STEP[:at] + [word] + STEP[at + 1:]
        result = hunter("detect", stdin=lines(*values))
        assert result.code == 0 and result.err == ""
        for point in points(result.out):
            assert not math.isnan(point[1])


CASES = [json.loads(line) for path in sorted((TESTS / "cases/series").glob("*.jsonl")) for line in path.read_text().splitlines()]


def detected(hunter, case, *flags):
    given = {name: case[name] for name in ("id", "series", "start", "step") if name in case}
    return answers(hunter("detect", "--input", "jsonl", "--output", "jsonl", *flags, stdin=row(**given)))[0]["change_points"]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["id"])
def test_cases(hunter, case):
    """Series whose steps were lost once: each of them is found and, but for small ones that drift, nothing else. A least magnitude
    leaves of them those that are larger, as they are without it, or that add up to as much."""
    every = detected(hunter, case)
    steps = [change for change in every if abs(change["size"]) > 3]
    assert [change["kind"] for change in steps] == ["step"] * len(case["steps"])
    assert all(abs(change["index"] - at) <= case["near"] for change, at in zip(steps, case["steps"])), steps
    if "magnitude" in case:
        left = detected(hunter, case, "-M", str(case["magnitude"]))
        assert [change["index"] for change in left] == case["reported"]
        for change in left:
            [known] = [other for other in every if other["index"] == change["index"]]
            assert [change[name] for name in ("kind", "size", "pvalue")] == [known[name] for name in ("kind", "size", "pvalue")]


def test_comments_blanks_and_missing_points(hunter):
    text = "# a comment\n\n  # another\r\n" + lines(*STEP[:50]) + "\t\n NaN \nnull\n" + lines(*STEP[50:])
    assert indices(hunter("detect", stdin=text).out) == [52]


def test_line_ends(hunter):
    text = lines(*STEP)
    plain = hunter("detect", stdin=text).out
    assert hunter("detect", stdin=text.replace("\n", "\r\n")).out == plain
    assert hunter("detect", stdin="\ufeff" + text).out == plain
    assert hunter("detect", stdin=text.rstrip("\n")).out == plain


def test_word(hunter, tmp_path):
    (tmp_path / "a.txt").write_text("1\n2\nthree\n4\n")
    result = hunter("detect", "a.txt")
    assert result.code == 3 and result.out == ""
    assert result.err == 'hunter-c: a.txt:3: "three" is not a number\n'
    result = hunter("detect", stdin="1 2\n")
    assert result.code == 3 and result.err == 'hunter-c: standard input:1: "1 2" is not a number\n'


def test_several_files(hunter, tmp_path):
    (tmp_path / "a.txt").write_text(lines(*STEP))
    (tmp_path / "b.txt").write_text(lines(*STEP[20:]))
    (tmp_path / "bad.txt").write_text("x\n")
    result = hunter("detect", "a.txt", "missing.txt", "bad.txt", ".", "b.txt")
    assert result.code == 3
    assert [line.split("\t")[0] for line in result.out.splitlines()] == ["a.txt:50", "b.txt:30"]
    assert "missing.txt: no such file" in result.err
    assert "bad.txt:1:" in result.err
    assert ".: cannot be read: Is a directory" in result.err


def test_jsonl_from_text(hunter, tmp_path):
    (tmp_path / "a.txt").write_text(lines(*STEP))
    (tmp_path / "none.txt").write_text("")
    a, none = answers(hunter("detect", "--output", "jsonl", "a.txt", "none.txt"))
    assert a["id"] == "a.txt" and found(a) == [50]
    assert none == {"id": "none.txt", "change_points": []}


# Flags


@pytest.mark.parametrize("flags, words", [
    (["--window", "1"], ["--window", "2"]),
    (["--window", "x"], ["--window"]),
    (["--p-value", "0"], ["--p-value", "0", "1"]),
    (["-P", "2"], ["--p-value", "0", "1"]),
    (["--p-value", "nan"], ["--p-value"]),
    (["--magnitude", "-1"], ["--magnitude", "0"]),
    (["-M-0.5"], ["--magnitude", "0"]),
    (["--profile", "otavia"], ["--profile", "otava"]),
    (["--detector", "edivisiv"], ["edivisive"]),
    (["--jobs", "1000"], ["--jobs", "256"]),
    (["--input", "xml"], ["--input", "jsonl"]),
    (["--delimiter", ";;", "--column", "1"], ["--delimiter"]),
    (["--no-such-flag"], ["--no-such-flag"]),
    (["--column"], ["--column"]),
])
def test_impossible_options(hunter, flags, words):
    result = hunter("detect", *flags, stdin=lines(1, 2, 3))
    assert result.code == 2 and result.out == ""
    for word in words:
        assert word in result.err


def test_flags_count(hunter):
    small = noise(100, 100, 1) + noise(100, 103, 1, seed=3)
    assert indices(hunter("detect", stdin=lines(*small)).out) == [100]
    assert indices(hunter("detect", "-M", "0.1", stdin=lines(*small)).out) == []
    assert indices(hunter("detect", "--orig-edivisive", stdin=lines(*STEP)).out) == [50]
    assert indices(hunter("detect", "--detector", "edivisive", "--window", "30", stdin=lines(*STEP)).out) == [50]


def test_help(hunter):
    result = hunter("detect", "--help")
    assert result.code == 0 and result.err == ""
    for flag in ("--input", "--column", "--delimiter", "--output", "--detector", "--profile", "--window", "-P, --p-value",
                 "-M, --magnitude", "--orig-edivisive", "--jobs", "--max-line"):
        assert flag in result.out


# CSV


def test_ids_reach_no_terminal_raw(hunter):
    """U+009B begins an escape sequence, U+202E turns the text behind it; the id stays the same."""
    name = "a\u009b2J\u202e\u200f\x7fé"
    line = json.dumps({"id": name, "series": STEP}, ensure_ascii=False)
    out = hunter("detect", "--input", "jsonl", stdin=line + "\n" + line.replace("[", "[x") + "\n").out
    assert not set(out) & set("\u009b\u202e\u200f\x7f") and "é" in out
    assert [json.loads(row)["id"] for row in out.splitlines()] == [name, name]


def csv(header, columns, delimiter=","):
    rows = [delimiter.join(header)] if header else []
    return "\n".join(rows + [delimiter.join(map(str, r)) for r in zip(*columns)]) + "\n"


def test_csv_column(hunter, tmp_path):
    (tmp_path / "results.csv").write_text(csv(["time", "p50", "p99"], [range(100), noise(100), STEP]))
    assert indices(hunter("detect", "--input", "csv", "--column", "p99", "results.csv").out) == [50]
    assert indices(hunter("detect", "--column", "p99", "results.csv").out) == [50]
    assert indices(hunter("detect", "--column", "3", "results.csv").out) == [50]
    assert indices(hunter("detect", "--column", "2", "results.csv").out) == []
    text = (tmp_path / "results.csv").read_text()
    assert indices(hunter("detect", "--column", "p99", stdin=text).out) == [50]


def test_csv_forms(hunter, tmp_path):
    quoted = [f'"a, ""{i}""\nb"' for i in range(100)]
    assert indices(hunter("detect", "--column", "v", stdin=csv(["note", "v"], [quoted, STEP])).out) == [50]
    semicolons = csv(["a", "v"], [range(100), STEP], ";")
    assert indices(hunter("detect", "--column", "v", "--delimiter", ";", stdin=semicolons).out) == [50]
    (tmp_path / "r.tsv").write_text(csv(["a", "v"], [range(100), STEP], "\t"))
    assert indices(hunter("detect", "--column", "v", "r.tsv").out) == [50]
    assert indices(hunter("detect", "--column", "2", stdin=csv(None, [range(100), STEP])).out) == [50]
    assert indices(hunter("detect", "--input", "csv", stdin=csv(["v"], [STEP])).out) == [50]
    assert indices(hunter("detect", "--input", "csv", stdin=csv(None, [STEP])).out) == [50]
    missing = STEP[:50] + ["", "NaN", "null"] + STEP[50:]
    assert indices(hunter("detect", "--column", "v", stdin=csv(["a", "v"], [range(103), missing])).out) == [53]


def test_csv_jsonl(hunter, tmp_path):
    (tmp_path / "r.csv").write_text(csv(["a", "v"], [range(100), STEP]))
    [answer] = answers(hunter("detect", "--column", "v", "--output", "jsonl", "r.csv"))
    assert answer["id"] == "r.csv" and found(answer) == [50]


@pytest.mark.parametrize("text, column, code, words", [
    ("a,b\n1,2\n", "c", 2, ['"c"', "a, b"]),
    ("a,b\n1,2\n", "3", 2, ['"3"', "a, b"]),
    ("a,b\n1,2\n", "0", 2, ['"0"']),
    ("a,b\n1,2\n", None, 2, ["--column", "a, b"]),
    ("a,a\n1,2\n", "a", 3, [":1:", "duplicate column", '"a"']),
    ("a,b\n1,2\n1,x\n", "b", 3, [":3:", "column 2", '"x"']),
    ("a,b\n1,2\n1\n", "b", 3, [":3:", "column 2"]),
    ("", "b", 3, ["empty"]),
    ('a,b\n1,"2\n', "b", 3, ["standard input:"]),
    ("a,b\n", "b", 0, []),
])
def test_csv_problems(hunter, text, column, code, words):
    flags = ["--column", column] if column else []
    result = hunter("detect", "--input", "csv", *flags, stdin=text)
    assert result.code == code and result.out == ""
    for word in words:
        assert word in result.err


# JSON lines


def test_golden(hunter):
    result = hunter("detect", "--input", "jsonl", "--profile", "otava", GOLDEN)
    assert (result.code, result.err) == (0, "")
    cases = [json.loads(line) for line in GOLDEN.read_text().splitlines()]
    got = answers(result)
    assert len(got) == len(cases) > 700
    for case, answer in zip(cases, got):
        assert answer["id"] == case["id"]
        if case["fragile"]:
            continue
        assert found(answer) == [c["index"] for c in case["change_points"]], case["id"]
        tolerance = 5e-3 if case["series_id"] in ("open-203", "open-204") else 1e-9
        for ours, theirs in zip(answer["change_points"], case["change_points"]):
            assert list(ours) == FIELDS
            assert ours["pvalue"] == pytest.approx(theirs["pvalue"], rel=tolerance, abs=0)
            assert ours["mean_before"] == pytest.approx(theirs["mean_1"], rel=1e-9)
            assert ours["mean_after"] == pytest.approx(theirs["mean_2"], rel=1e-9)
            assert ours["stddev_before"] == pytest.approx(theirs["std_1"], rel=1e-6)
            assert ours["stddev_after"] == pytest.approx(theirs["std_2"], rel=1e-6)
            assert ours["forward_change_percent"] == pytest.approx(theirs["forward_change_percent"], rel=1e-6)
            assert ours["magnitude"] == pytest.approx(theirs["magnitude"], rel=1e-6)


def test_ids_come_back_as_written(hunter):
    ids = ['"a"', "17", "-1.50e3", '"\\u00e4\\n"', '"ä"', "null", "12345678901234567890123"]
    text = "".join(f'{{"id": {i}, "series": []}}\n' for i in ids) + '{"series": []}\n'
    result = hunter("detect", "--input", "jsonl", stdin=text)
    assert result.code == 0
    assert result.out.splitlines() == [f'{{"id": {i}, "change_points": []}}' for i in ids + ["null"]]


def test_options_of_a_line(hunter):
    def answer(flags=(), **options):
        [one] = answers(hunter("detect", "--input", "jsonl", *flags, stdin=row(id=1, series=small, options=options)))
        return found(one)

    small = noise(100, 100, 1) + noise(100, 103, 1, seed=3)
    assert answer() == [100]
    assert answer(min_magnitude=0.1) == answer(magnitude=0.1) == []
    assert answer(["-M", "0.1"]) == []
    assert answer(["-M", "0.1"], magnitude=0) == [100]
    assert answer(["-M", "0.1"], magnitude=None) == []
    assert answer(window_len=30, max_pvalue=0.01) == answer(window=30, p_value="0.01") == [100]
    assert answer(detector="edivisive_permutation") == [100]
    # Another detector does not inherit the flags that were meant for this one.
    assert answer(["-M", "0.1"], detector="edivisive_permutation") == [100]


def test_options_change_from_line_to_line(hunter):
    ramp = list(range(1, 101))
    text = "".join(row(id=i, series=ramp, options={"profile": p} if p else {})
                   for i, p in enumerate(["otava", "otava", "default", None, "otava", "bad", "otava"]))
    got = answers(hunter("detect", "--input", "jsonl", stdin=text))
    assert found(got[0]) and found(got[0]) == found(got[1]) == found(got[4]) == found(got[6])
    assert found(got[2]) == found(got[3]) and len(found(got[2])) == 1
    assert "profile" in got[5]["error"]


@pytest.mark.parametrize("line, id, words", [
    ("{", None, ["standard input:2:", "not valid JSON at byte 2"]),
    ('{"id": "a", "series": [1, 2', "a", ["not valid JSON at byte 28"]),
    ('{"id": "a", "series": [1, "x"]}', "a", ['"series"[1] is not a number']),
    ('{"series": {}, "id": 7}', 7, ['"series" is not an array']),
    ('{"id": 7}', 7, ['no "series"']),
    ('{"id": [], "series": []}', None, ['"id" is neither a string nor a number']),
    ("[1, 2]", None, ["not valid JSON at byte 1"]),
    ("hello", None, ["not valid JSON at byte 1"]),
    ('{"id": 1, "series": [], "options": {"window": 1}}', 1, ["window", "2"]),
    ('{"id": 1, "series": [], "options": {"p_value": 2}}', 1, ["p_value", "1"]),
    ('{"id": 1, "series": [], "options": {"windw": 3}}', 1, ["windw"]),
    ('{"id": 1, "series": [], "options": {"detector": "x"}}', 1, ['"x"']),
    ('{"id": 1, "series": [], "options": {"window": [3]}}', 1, ["option"]),
    ('{"id": 1, "series": [], "options": 3}', 1, ["options"]),
])
def test_bad_line_costs_only_itself(hunter, line, id, words):
    good = row(id="good", series=STEP)
    result = hunter("detect", "--input", "jsonl", stdin=good + line + "\n\n" + good)
    assert result.code == 3 and result.err == ""
    first, bad, last = answers(result)
    assert found(first) == found(last) == [50]
    assert list(bad) == ["id", "error"] and bad["id"] == id
    for word in words:
        assert word in bad["error"]


def test_json_is_recognised(hunter, tmp_path):
    text = row(id="a", series=STEP) + row(id="b", series=STEP[:50])
    asked = hunter("detect", "--input", "jsonl", stdin=text)
    assert asked.code == 0 and len(answers(asked)) == 2
    for begin in ("", "\n  \n", "\ufeff", "\r\n\t"):
        assert hunter("detect", stdin=begin + text) == asked
    (tmp_path / "series").write_text(text)
    assert hunter("detect", "series") == asked
    assert hunter("detect", "--input", "text", stdin=text).code == 3
    assert json.loads(hunter("detect", "--output", "jsonl", stdin=lines(*STEP)).out)["id"] == "-"
    for begin in ("", "\n\n", "# {\n"):
        assert indices(hunter("detect", stdin=begin + lines(*STEP)).out) == [50]
    long = "\n" * 300000 + text
    assert hunter("detect", "--input", "jsonl", stdin=long) == asked


def test_recognised_json_is_answered_at_once(program):
    """Looking at the first character does not keep a line waiting."""
    with subprocess.Popen([program, "detect"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as running:
        for number in range(3):
            running.stdin.write(row(id=number, series=STEP))
            running.stdin.flush()
            assert json.loads(running.stdout.readline())["id"] == number
        running.stdin.close()
        assert running.wait(LONGEST) == 0


LONG = [i % 7 for i in range(64000)]


@pytest.mark.parametrize("series, options, words", [
    (LONG * 4, {"window": 1000000}, ["edivisive", "256000 points", "smaller window"]),
    (LONG * 4, {"detector": "edivisive_permutation"}, ["edivisive_permutation", "fewer permutations"]),
    (LONG, {"detector": "stepfit", "algorithm": "mannwhitneyu", "radius": 25, "threshold": 0.99}, ["stepfit", "smaller radius"]),
    (list(range(64000)), {"detector": "stepfit", "algorithm": "mannwhitneyu", "radius": 50, "threshold": 0.99}, None),
    (list(range(64000)), {"profile": "otava", "p_value": 1, "magnitude": 1e300}, ["edivisive", "64000 points"]),
])
def test_work_of_a_line_is_bounded(hunter, series, options, words):
    """What would take minutes or hours is an error that says so; dear options on what is cheap for them are answered."""
    text = row(id="dear", series=series, options=options) + row(id="good", series=STEP)
    result = hunter("detect", "--input", "jsonl", "--jobs", "1", stdin=text)
    dear, good = answers(result)
    assert found(good) == [50]
    if not words:
        assert result.code == 0 and "error" not in dear
        return
    assert result.code == 3 and list(dear) == ["id", "error"]
    for word in ["standard input:1:", "billion steps", *words]:
        assert word in dear["error"]


def test_work_of_a_file_is_bounded(hunter):
    result = hunter("detect", "--window", "1000000", stdin="".join(f"{i % 7}\n" for i in range(200000)))
    assert result.code == 3 and result.out == ""
    assert "standard input: the detector edivisive would take more than 12.0 billion steps for 200000 points" in result.err


def test_bad_bytes(program):
    text = b'\xff\xfe\n{"id": "\xc3(", "series": []}\n\x00\n{"id": 1, "series": []}\n'
    done = subprocess.run([program, "detect", "--input", "jsonl"], input=text, capture_output=True, timeout=LONGEST)
    got = [json.loads(line) for line in done.stdout.splitlines()]
    assert done.returncode == 3 and ["error" in a for a in got] == [True, True, True, False]


def test_missing_and_infinite_points(hunter):
    text = '{"id": 1, "series": [%s]}\n' % ", ".join(["null", "NaN"] + [repr(v) for v in STEP[2:]])
    [answer] = answers(hunter("detect", "--input", "jsonl", stdin=text))
    assert found(answer) == [50]
    text = '{"id": 1, "series": [%s]}\n' % ", ".join(["1e9999", "-Infinity"] + [repr(v) for v in STEP[2:]])
    result = hunter("detect", "--input", "jsonl", stdin=text)
    assert result.code == 0 and "error" not in answers(result)[0]


def test_numbers_keep_every_bit(hunter):
    values = [v / 3 for v in STEP]
    for profile in ("default", "otava"):
        [answer] = answers(hunter("detect", "--input", "jsonl", "--profile", profile, stdin=row(id=1, series=values)))
        change = answer["change_points"][0]
        assert change["index"] == 50
        assert change["mean_before"] == pytest.approx(math.fsum(values[:50]) / 50, rel=1e-14)
        assert change["magnitude"] == pytest.approx(change["mean_after"] / change["mean_before"] - 1, rel=1e-12)


def test_not_finite_is_null(hunter):
    [answer] = answers(hunter("detect", "--input", "jsonl", "--profile", "otava",
                              stdin=row(id=1, series=[1e308] * 30 + [-1e308] * 30)))
    for change in answer["change_points"]:
        assert all(v is None or math.isfinite(v) for key, v in change.items() if key != "kind")


def test_text_from_jsonl(hunter):
    text = row(id="a\tb", series=STEP) + row(id=7, series=STEP) + row(series=STEP) + "x\n"
    result = hunter("detect", "--input", "jsonl", "--output", "text", stdin=text)
    assert result.code == 3
    assert [line.split("\t")[0] for line in result.out.splitlines()] == ["a\\tb:50", "7:50", "3:50"]
    assert result.err == "hunter-c: standard input:4: not valid JSON at byte 1\n"


def test_jobs_do_not_change_the_output(hunter, tmp_path):
    rng = random.Random(5)
    with open(tmp_path / "many.jsonl", "w") as f:
        for i in range(3000):
            if i % 97 == 0:
                f.write("broken\n")
            n = rng.choice([0, 1, 2, 10, 60, 200, 900])
            step = rng.choice([0, 10])
            f.write(row(id=i, series=[rng.gauss(100, 2) + (step if j > n / 2 else 0) for j in range(n)],
                        options=rng.choice([{}, {"window": 30}, {"profile": "otava"}])))
    one = hunter("detect", "--jobs", "1", "many.jsonl")
    assert one.code == 3 and len(answers(one)) == 3000 + 31
    assert [a["id"] for a in answers(one) if "error" not in a] == list(range(3000))
    for jobs in (2, 3, 8):
        assert hunter("detect", "--jobs", jobs, "many.jsonl").out == one.out


def test_several_jsonl_files(hunter, tmp_path):
    (tmp_path / "a.jsonl").write_text(row(id="a", series=STEP).rstrip("\n"))
    (tmp_path / "b.ndjson").write_text("x\n" + row(id="b", series=STEP))
    (tmp_path / "empty.jsonl").write_text("")
    result = hunter("detect", "a.jsonl", "missing.jsonl", "empty.jsonl", "b.ndjson")
    assert result.code == 3 and "missing.jsonl: no such file" in result.err
    a, bad, b = answers(result)
    assert found(a) == found(b) == [50] and bad["error"].startswith("b.ndjson:1: ")


def is_sanitized(program):
    """Built with a sanitizer, whose memory is not the program's."""
    return any(word in program.read_bytes() for word in (b"__asan_init", b"__tsan_init"))


def answers_and_peak(program, path, count, *flags):
    """The `count` answers of detect on the file, its exit code and its peak memory in KiB.

    The peak is read while the input is still open: what wait4 reports counts from the fork, with the memory of pytest.
    """
    with subprocess.Popen([program, "detect", "--input", "jsonl", *flags], stdin=subprocess.PIPE,
                          stdout=subprocess.PIPE) as child:
        def feed():
            with open(path, "rb") as f:
                while block := f.read(1 << 20):
                    child.stdin.write(block)
            child.stdin.flush()

        feeder = threading.Thread(target=feed)
        feeder.start()
        got = [json.loads(child.stdout.readline()) for _ in range(count)]
        feeder.join()
        status = pathlib.Path(f"/proc/{child.pid}/status").read_text()
        child.stdin.close()
        assert child.stdout.read() == b""
        return got, child.wait(), int(status.split("VmHWM:")[1].split()[0])


def test_line_of_100_megabytes(program, tmp_path):
    path = tmp_path / "long.jsonl"
    good = row(id="good", series=STEP)
    with open(path, "w") as f:
        f.write(good + '{"id": "long", "series": [')
        for _ in range(1000):
            f.write("1.5, " * 20000)
        f.write("1]}\n" + good)
    assert path.stat().st_size > 100e6
    (first, bad, last), code, memory = answers_and_peak(program, path, 3, "--jobs", "2")
    assert code == 3 and found(first) == found(last) == [50]
    assert bad["id"] == "long" and "--max-line" in bad["error"] and "standard input:2: " in bad["error"]
    if not is_sanitized(program):
        assert memory < 60 * 1024


def test_memory_is_bounded(program, tmp_path):
    """40 MB of lines of 200 points, with two threads, in far less."""
    path = tmp_path / "many.jsonl"
    values = noise(200)
    with open(path, "w") as f:
        for i in range(10000):
            f.write(row(id=i, series=values))
    got, code, memory = answers_and_peak(program, path, 10000, "--jobs", "2")
    assert code == 0 and [a["id"] for a in got] == list(range(10000))
    if not is_sanitized(program):
        assert memory < 25 * 1024


def test_threads_are_those_it_may_use(program):
    """One for each processor of the affinity mask, not for each that is there."""
    cpu = {min(os.sched_getaffinity(0))}
    with subprocess.Popen([program, "detect", "--input", "jsonl"], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                          preexec_fn=lambda: os.sched_setaffinity(0, cpu)) as child:
        child.stdin.write(row(id="a", series=STEP).encode() * 100)
        child.stdin.flush()
        assert found(json.loads(child.stdout.readline())) == [50]
        threads = len(os.listdir(f"/proc/{child.pid}/task"))
        child.stdin.close()
        child.stdout.read()
    if not is_sanitized(program):
        assert threads == 1


def test_max_line(hunter):
    text = row(id="a", series=list(range(400))) + row(id="b", series=[1])
    a, b = answers(hunter("detect", "--input", "jsonl", "--max-line", "1KiB", stdin=text))
    assert a["id"] == "a" and "1024" in a["error"]
    assert b == {"id": "b", "change_points": []}
    blank = hunter("detect", "--input", "jsonl", "--max-line", "1KiB", stdin=" " * 5000 + row(id="a", series=[1]))
    assert blank.code == 3 and "1024" in answers(blank)[0]["error"]  # what is kept of the line are its blanks
    result = hunter("detect", "--max-line", "1KiB", stdin="1\n" + "#" * 2000 + "\n1\n")
    assert result.code == 3 and "standard input:2: line longer than 1024 bytes" in result.err


def test_deep_nesting(hunter):
    text = '{"x": ' + "[" * 1000000 + "\n" + row(id="b", series=[1])
    bad, good = answers(hunter("detect", "--input", "jsonl", stdin=text))
    assert "not valid JSON" in bad["error"] and good["id"] == "b"


# As part of a pipeline


def test_answers_while_the_input_is_open(program):
    with subprocess.Popen([program, "detect", "--input", "jsonl"], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                          text=True) as child:
        guard = threading.Timer(LONGEST, child.kill)
        guard.start()
        for i in range(3):
            child.stdin.write(row(id=i, series=STEP))
            child.stdin.flush()
            assert json.loads(child.stdout.readline())["id"] == i
        child.stdin.close()
        assert child.wait() == 0
        guard.cancel()


def test_reader_that_goes_away(program, tmp_path):
    path = tmp_path / "many.jsonl"
    path.write_text(row(id="x", series=STEP) * 5000)
    for jobs in ("1", "2"):
        with subprocess.Popen([program, "detect", "--jobs", jobs, path], stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE) as child:
            child.stdout.readline()
            child.stdout.close()
            assert child.stderr.read() == b""
            assert child.wait(LONGEST) in (0, -signal.SIGPIPE)


def test_interrupt(program):
    with subprocess.Popen([program, "detect", "--input", "jsonl"], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE) as child:
        child.stdin.write(row(id=1, series=STEP).encode())
        child.stdin.flush()
        child.stdout.readline()
        child.send_signal(signal.SIGINT)
        assert child.wait(LONGEST) in (-signal.SIGINT, 128 + signal.SIGINT)
        assert child.stderr.read() == b""


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no /dev/full")
def test_full_disk(program):
    for flags, text in ((["--input", "jsonl"], row(id=1, series=STEP) * 2000), ([], lines(*STEP))):
        for jobs in ("1", "2"):
            with open("/dev/full", "w") as full:
                done = subprocess.run([program, "detect", *flags, "--jobs", jobs], input=text, stdout=full,
                                      stderr=subprocess.PIPE, text=True, timeout=LONGEST)
            assert done.returncode == 3
            assert "No space left on device" in done.stderr


# Seasons


def daily(days=30, at=None, zone_hours=0, seed=3):
    """Hourly values with a daily cycle of 30%, and from the index `at` on 20% more."""
    rng = random.Random(seed)
    return [100 * (1 + 0.3 * math.sin(2 * math.pi * (i + zone_hours) / 24)) * (1.2 if at is not None and i >= at else 1)
            * (1 + rng.gauss(0, 0.02)) for i in range(24 * days)]


def hours(n, start=1767225600):
    return [start + 3600 * i for i in range(n)]


def iso(seconds):
    return datetime.datetime.fromtimestamp(seconds, datetime.timezone.utc).isoformat()


def test_a_step_within_a_daily_cycle(hunter):
    series = daily(at=400)
    times = hours(len(series))
    text = (row(id="none", series=series) + row(id="epoch", series=series, times=times) +
            row(id="iso", series=series, times=[iso(t) for t in times]) +
            row(id="step", series=series, start=times[0], step=3600) +
            row(id="off", series=series, times=times, options={"season": "none"}) +
            row(id="otava", series=series, times=times, options={"profile": "otava"}) +
            row(id="blind", series=series, options={"profile": "otava"}))
    result = hunter("detect", "--input", "jsonl", stdin=text)
    assert (result.code, result.err) == (0, "")
    none, epoch, *same, off, otava, blind = answers(result)
    assert found(epoch) == [400]
    assert all(a["change_points"] == epoch["change_points"] for a in same)
    [change] = epoch["change_points"]
    assert list(change) == FIELDS and change["kind"] == "step"
    assert change["mean_before"] == pytest.approx(100, abs=3) and change["level_after"] == pytest.approx(120, abs=3)
    assert change["size_low"] < 20 < change["size_high"] and change["size"] == pytest.approx(20, abs=1)
    assert change["place_from"] <= 400 <= change["place_to"]
    assert found(none) != [400]
    assert off["change_points"] == none["change_points"]
    assert otava["change_points"] == blind["change_points"]


def test_season_by_flag(hunter):
    series = daily(at=400)
    text = row(id="a", series=series, start="2026-01-01", step=3600)
    assert indices_of_lines(hunter, text) == [400]
    assert indices_of_lines(hunter, text, "--season", "none") != [400]
    assert indices_of_lines(hunter, text, "--season", "day", "--detector", "kernel") == [400]
    assert indices_of_lines(hunter, text, "--detector", "kernel") != [400]


def indices_of_lines(hunter, text, *flags):
    result = hunter("detect", "--input", "jsonl", *flags, stdin=text)
    assert (result.code, result.err) == (0, "")
    return found(answers(result)[0])


def test_the_zone_is_that_of_the_clocks(hunter):
    """A cycle of New York's days, over the end of daylight saving: in UTC half of the days come an hour late."""
    start = 1792800000  # 2026-10-24, the clocks change on 1 November
    times = hours(24 * 16, start)
    change = 1793512800
    rng = random.Random(1)
    series = [100 * (2 if 9 <= ((t - (4 if t < change else 5) * 3600) // 3600) % 24 < 17 else 1) * (1 + rng.gauss(0, 0.01)) for t in times]
    answer = hunter("detect", "--input", "jsonl", stdin=row(series=series, times=times, options={"zone": "America/New_York"}))
    assert answer.code == 0 and found(answers(answer)[0]) == []


def test_season_without_times(hunter):
    text = lines(*STEP)
    plain = hunter("detect", stdin=text)
    assert hunter("detect", "--season", "auto", stdin=text).out == plain.out
    for season in ("day", "week"):
        result = hunter("detect", "--season", season, stdin=text)
        assert (result.code, result.out) == (2, "")
        assert f'--season {season}: "-" is read as text, which has no times; use JSON lines with times' in result.err
        result = hunter("detect", "--input", "jsonl", "--season", season, stdin=row(id=1, series=STEP))
        assert result.code == 3
        assert answers(result) == [{"id": 1, "error": 'standard input:1: season: removing cycles requires '
                                    '"times", or "start" and "step"'}]


@pytest.mark.parametrize("members, problem", [
    ({"times": [1, 2]}, '"times" has 2 items and "series" 3'),
    ({"times": [1, 2, "later"]}, '"times"[2] is not a time'),
    ({"times": [1, 3, 2]}, '"times"[2] is before the one in front of it'),
    ({"start": "later", "step": 1}, '"start" is not a time'),
    ({"start": 0, "step": -1}, '"step" is not a number of seconds above 0'),
    ({"times": [1, 2, 3], "options": {"season": "month"}}, 'season: "month" is none of auto, none, day, week'),
    ({"times": [1, 2, 3], "options": {"zone": "../x"}}, "zone: "),
])
def test_bad_times(hunter, members, problem):
    result = hunter("detect", "--input", "jsonl", stdin=row(id=7, series=[1, 2, 3], **members) + row(id=8, series=STEP))
    assert result.code == 3
    bad, good = answers(result)
    assert bad["id"] == 7 and problem in bad["error"]
    assert found(good) == [50]
