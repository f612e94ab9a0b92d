"""The detectors behind the command line: each by name, several combined, runs and hashes from lines and from tests."""
import json
import random

import pytest

RANDOM = random.Random(5)
STEP = [RANDOM.gauss(100 if i < 50 else 120, 1) for i in range(100)]
REPLICATES = [6, 6.1, 8, 8.1, 12, 12.1]
RUNS = [1, 1, 2, 2, 3, 3]
HASHES = ["a", "a", "a", "a", "b", "b"]


def lines(values):
    return "".join(f"{v}\n" for v in values)


def indices(text):
    return [int(line.split("\t")[0]) for line in text.splitlines()]


def answer(result):
    return json.loads(result.out)


def found(result):
    return [c["index"] for c in answer(result)["change_points"]]


def change_times(result):
    """The days of the changes that `analyze --output json` tells."""
    assert result.code == 0, result.err
    return [c["time"][:10] for c in json.loads(result.out)["tests"][0]["changes"]]


def line(series=REPLICATES, **members):
    return json.dumps({"series": series, **members}) + "\n"


@pytest.mark.parametrize("detector", ["edivisive", "edivisive_permutation", "kernel", "stepfit", "modes"])
def test_by_name(hunter, detector):
    result = hunter("detect", "--detector", detector, stdin=lines(STEP))
    assert (result.code, result.err, indices(result.out)) == (0, "", [50])


def test_lookback(hunter):
    assert indices(hunter("detect", "--detector", "lookback", "-M", "0.1", stdin=lines(STEP)).out) == [50]


def test_a_threshold_that_only_the_user_can_know(hunter):
    result = hunter("detect", "--input", "jsonl",
                    stdin=line(STEP, options={"detector": "stepfit", "algorithm": "absolute"}))
    assert result.code == 3 and "threshold: the algorithm absolute needs one" in answer(result)["error"]
    options = {"detector": "stepfit", "algorithm": "absolute", "threshold": 15}
    assert found(hunter("detect", "--input", "jsonl", stdin=line(STEP, options=options))) == [50]


@pytest.mark.parametrize("how", ["any: kernel", "all: edivisive, kernel", "2 within 3: modes(window=8), kernel, lookback"])
def test_combine(hunter, how):
    assert indices(hunter("detect", "--combine", how, stdin=lines(STEP)).out) == [50]
    assert found(hunter("detect", "--input", "jsonl", stdin=line(STEP, options={"combine": how}))) == [50]


@pytest.mark.parametrize("flags, words", [
    (["--combine", "all: kernl"], 'combine: unknown detector "kernl" (did you mean "kernel"?)'),
    (["--detector", "prophet"], 'unknown detector "prophet": expected one of edivisive, edivisive_permutation, kernel, '),
    (["--combine", "3: kernel, modes"], 'combine: "3" of 2: expected any, all or a number'),
    (["--combine", "kernel"], 'combine: "kernel": expected the form'),
    (["--combine", "all: kernel(penalty=x)"], 'combine: penalty: "x" is not a number'),
    (["--detector", "combine"], "combine: expected detectors"),
    (["--detector", "kernel", "--combine", "all: modes"], "detector and combine: use one of them"),
    (["--detector", "kernel", "--window", "9"], 'the detector "kernel" has no option "window"'),
])
def test_flags_that_cannot_be(hunter, flags, words):
    result = hunter("detect", *flags, stdin=lines(STEP))
    assert result.code == 2 and words in result.err


def test_runs_and_hashes_of_a_line(hunter):
    def look(**members):
        return found(hunter("detect", "--input", "jsonl", "--detector", "lookback", stdin=line(**members)))

    assert look(runs=RUNS) == [2, 4]
    assert look(runs=RUNS, hashes=HASHES) == [4]
    assert look(runs=RUNS, hashes=[None] * 6) == [2, 4]
    assert look(runs=None, hashes=["x"] * 6) == []


def test_runs_of_the_wrong_length(hunter):
    result = hunter("detect", "--input", "jsonl", stdin=line(runs=[1]))
    assert result.code == 3 and answer(result)["error"].endswith('"runs" has 1 items and "series" 6')


@pytest.fixture
def project(tmp_path):
    """project(KEYS) writes a configuration with one test, whose results have replicates and hashes."""
    rows = [f"2026-01-{run:02},{run},{hash},{value}" for run, hash, value in zip(RUNS, HASHES, REPLICATES)]
    (tmp_path / "results.csv").write_text("time,build,sha,p99\n" + "\n".join(rows) + "\n")

    def write(keys, detection="{detector: lookback}"):
        (tmp_path / "hunter.yaml").write_text(
            "tests:\n  t: {type: csv, file: results.csv, time_column: time, attributes: [build, sha], "
            f"metrics: {{p99: {{direction: -1}}}}, detection: {detection}{keys}}}\n")

    return write


@pytest.mark.parametrize("keys, times", [
    ("", ["2026-01-02", "2026-01-03"]),
    (", run_attribute: build", ["2026-01-02", "2026-01-03"]),
    (", hash_attribute: sha", ["2026-01-03"]),
    (", run_attribute: build, hash_attribute: sha", ["2026-01-03"]),
])
def test_runs_and_hashes_of_a_test(hunter, project, keys, times):
    project(keys)
    assert change_times(hunter("analyze", "t", "--output", "json")) == times


def test_an_attribute_that_is_not_there(hunter, project):
    project(", hash_attribute: md5")
    result = hunter("analyze", "t")
    assert result.code == 3 and 'hash_attribute: the points have no attribute "md5"' in result.err


def test_combine_in_yaml(hunter, project):
    project("", "{combine: {all: [lookback, {detector: stepfit, algorithm: percent, radius: 2}]}}")
    assert change_times(hunter("analyze", "t", "--output", "json")) == ["2026-01-03"]
    project("", "{combine: {4: [lookback, kernel]}}")
    result = hunter("validate")
    assert result.code == 2 and '"4" of 2: expected any, all or a number' in result.err + result.out
