"""hunter-c evaluate: detectors scored on labelled series, by hand and against an independent scorer."""
import json
import math
import os
import pathlib
import pty
import random
import re
import runpy
import signal
import subprocess
import sys

import pytest
from waiting import LONGEST

TESTS = pathlib.Path(__file__).parents[1]
SYNTHETIC = TESTS / "datasets/synthetic.jsonl"
REFERENCE = os.environ.get("HUNTER_REFERENCE_DATA")


def series(seed, at=None, n=100, size=20):
    rng = random.Random(seed)
    return [round(rng.gauss(100 + (size if at and i >= at else 0), 1), 3) for i in range(n)]


def write(path, rows):
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


@pytest.fixture
def labelled(tmp_path):
    """Four series: a step that is there, one that is labelled 4 points late, one nobody labelled, and a flat one."""
    return write(tmp_path / "labelled.jsonl", [
        {"id": "right", "series": series(1, 50), "change_points": [50], "class": "step"},
        {"id": "late", "series": series(2, 60), "change_points": [64], "class": "step"},
        {"id": "wrong", "series": series(3, 40), "change_points": [], "class": "flat"},
        {"id": "flat", "series": series(4), "change_points": [], "class": "flat"}])


def scores(hunter, *arguments, **options):
    result = hunter("evaluate", "--output", "json", *arguments, **options)
    assert (result.code, result.err) == (0, "")
    return json.loads(result.out)


def test_lines_that_are_almost_json(hunter, tmp_path):
    """A key without a byte, and the words that Python writes for numbers that JSON has not."""
    values = series(1, 50)
    values[10], values[20] = float("nan"), float("inf")
    path = write(tmp_path / "odd.jsonl", [{"": 1, "series": series(1, 50), "change_points": [50]},
                                          {"series": values, "change_points": [50]}])
    [answer] = scores(hunter, "--truth", path)["detectors"]
    assert answer["all"]["series"] == 2


def test_scores_by_hand(hunter, labelled):
    [answer] = scores(hunter, "--truth", labelled)["detectors"]
    assert answer["detector"] == "edivisive"
    whole = answer["all"]
    assert (whole["series"], whole["changed"], whole["points"], whole["found"]) == (4, 2, 400, 3)
    assert [(m["margin"], m["right"], m["found"], m["seen"], m["labelled"]) for m in whole["margins"]] == [
        (0, 1, 2, 1, 2), (2, 1, 2, 1, 2), (5, 2, 2, 2, 2)]
    assert whole["flat_per_1000"] == 5  # one point in 200
    # Of each: (2 hits of 2 points, with index 0), twice; 2 of 3 where a point is found that nobody labelled; 1.
    assert whole["f1_annotated"] == pytest.approx((1 + 1 + 2 / 3 + 1) / 4)
    # |A|/n times the best overlap: 1; 0.6 * 60/64 + 0.36 * 36/40 + ... ; the larger part of 40 and 60; 1.
    assert whole["covering"] == pytest.approx((1 + 0.64 * 60 / 64 + 0.36 * 36 / 40 + 0.6 + 1) / 4)
    # Pairs that are of one segment in both, or in neither.
    pairs = 100 * 99 / 2
    late = 1 - 4 * (60 + 36) / pairs  # the four points between are torn from the others on both sides
    wrong = (40 * 39 / 2 + 60 * 59 / 2) / pairs
    assert whole["rand"] == pytest.approx((1 + late + wrong + 1) / 4)
    assert [c["class"] for c in answer["classes"]] == ["step", "flat"]


def test_point_by_point(hunter, labelled):
    whole = scores(hunter, "--truth", labelled)["detectors"][0]["all"]
    assert whole["at_once"]["points"] == 4 * 91
    assert whole["at_once"]["seen"] == 1  # the other one was announced before the point that is labelled
    assert 1 <= whole["at_once"]["delay_p50"] < 10
    assert whole["at_once"]["false"] >= 1
    assert whole["confirmed"]["alarms"] <= whole["at_once"]["alarms"]
    late = scores(hunter, "--truth", labelled, "--confirm", "20")["detectors"][0]["all"]["confirmed"]
    assert late["seen"] == 2 and late["delay_p50"] >= 16  # twenty points after where it is; labels are up to 4 later
    assert "confirmed" not in scores(hunter, "--truth", labelled, "--whole")["detectors"][0]["all"]


def test_text_has_the_detectors_side_by_side(hunter, labelled):
    result = hunter("evaluate", "--truth", labelled, "--detector", "edivisive,kernel(penalty=2)", "--detector",
                    "combine(all: edivisive, kernel)", "--by-class")
    assert result.code == 0
    assert re.match(r"series: +4\npoints: +400\nseries with changes: 2\n", result.out)
    table = result.out.split("series with changes:\ndetector ")[1].splitlines()
    assert table[0].split()[:4] == ["F1", "within", "5", "precision"]
    assert [re.split(r" {2,}", row)[:3] for row in table[2:5]] == [
        [name, "1", "1"] for name in ("edivisive", "kernel(penalty=2)", "combine(all: edivisive, kernel)")]
    assert re.search(r"^edivisive by class:\n(.+\n)*flat .* 5$", result.out, re.M)


def test_number_of_threads_does_not_matter(hunter, labelled):
    def counts(jobs):
        answer = scores(hunter, "--truth", labelled, "--jobs", jobs)
        for one in answer["detectors"]:
            del one["seconds"]
        return answer
    assert counts("1") == counts("7")


def daily(seed, at=None, days=30):
    rng = random.Random(seed)
    return [100 * (1 + 0.3 * math.sin(2 * math.pi * i / 24)) * (1.2 if at and i >= at else 1) * (1 + rng.gauss(0, 0.03))
            for i in range(24 * days)]


def test_seasons(hunter, tmp_path):
    """A cycle hides the step, and is removed where times are known: from whole series, and point by point."""
    hourly = {"start": "2026-01-05T00:00:00Z", "step": 3600}
    path = write(tmp_path / "daily.jsonl", [
        {"id": "up", "series": daily(1, 500), "change_points": [500], **hourly},
        {"id": "up too", "series": daily(2, 400), "change_points": [400], "times": [1767571200 + 3600 * i for i in range(720)]},
        {"id": "as it was", "series": daily(3), "change_points": [], **hourly},
        {"id": "of no day", "series": series(4, 50), "change_points": [50]}])
    [answer] = scores(hunter, "--truth", path)["detectors"]
    whole = answer["all"]
    assert (whole["seasonal"], whole["found"], whole["margins"][2]["right"], whole["flat_found"]) == (3, 3, 3, 0)
    live = whole["confirmed"]
    assert (live["seen"], live["labelled"], live["right_withdrawn"]) == (3, 3, 0)
    assert live["delay_p90"] <= 8
    [answer] = scores(hunter, "--truth", path, "--season", "none")["detectors"]
    assert answer["all"]["seasonal"] == 0
    assert answer["all"]["margins"][2]["right"] == answer["all"]["confirmed"]["seen"] == 1
    kernel, asked = (scores(hunter, "--truth", tmp_path / "daily.jsonl", "--whole", "--detector", "kernel", *flags)
                     ["detectors"][0]["all"]["seasonal"] for flags in ([], ["--season", "auto"]))
    assert (kernel, asked) == (0, 3)


def late_cycle(seed, at=60):
    """Points come irregularly at first, so that their cycle is seen only when the step is long past."""
    rng = random.Random(seed)
    times, values = [1767571200], []
    for i in range(720):
        times.append(times[-1] + (rng.randrange(600, 6600) if i < 100 else 3600))
    for i, t in enumerate(times):
        values.append(100 * (1 + 0.3 * math.sin(2 * math.pi * t / 86400)) * (1.2 if i >= at else 1) * (1 + rng.gauss(0, 0.03)))
    return {"id": str(seed), "series": values, "change_points": [at], "times": times}


def test_refits_change_nothing_that_was_seen(hunter, tmp_path):
    """What shows in old points once the cycle is removed is no news, though it is there in the whole series."""
    path = write(tmp_path / "late.jsonl", [late_cycle(seed) for seed in range(12)])
    whole = scores(hunter, "--truth", path)["detectors"][0]["all"]
    assert (whole["seasonal"], whole["margins"][2]["right"]) == (12, 12)
    for live in (whole["confirmed"], whole["at_once"]):
        assert live["seen"] < 12 and live["delay_p90"] < 60


def test_a_season_needs_times(hunter, labelled):
    result = hunter("evaluate", "--truth", labelled, "--season", "day")
    assert (result.code, result.out) == (3, "")
    assert '--season day: series "right" has no "times", nor "start" and "step"' in result.err
    for flags, says in ((("--season", "month"), '--season: "month" is none of'), (("--zone", "x/../y"), "--zone: "),
                        (("--holidays", "2026-13-01"), '--holidays: "2026-13-01" is not a date'), (("--holidays", "no.txt"), "--holidays: no.txt is neither")):
        result = hunter("evaluate", "--truth", labelled, *flags)
        assert result.code == 2 and says in result.err


def test_annotators_and_unsure_spans(hunter, tmp_path):
    path = write(tmp_path / "a.jsonl", [
        {"id": "two", "series": series(1, 50), "change_points": {"ann": [50], "ben": []}},
        {"id": "none", "series": series(1), "annotations": {}},
        {"id": "unsure", "series": series(2, 60), "change_points": [], "unsure": [[55, 65]], "dates": ["x"]}])
    result = hunter("evaluate", "--truth", path)
    assert re.match(r"series: +2\npoints: +200\nseries with changes: +1\nseries without labels: +1\n", result.out)
    whole = scores(hunter, "--truth", path)["detectors"][0]["all"]
    assert whole["margins"][2]["right"] == 1 and whole["margins"][2]["seen"] == 0.5
    assert whole["found"] == 2 and whole["flat_found"] == 0 and whole["at_once"]["false"] == 0


def test_a_maybe_counts_neither_way(hunter, tmp_path):
    """What is found near a maybe is not false, and what is near a true change as well is right."""
    path = write(tmp_path / "m.jsonl", [
        {"id": "maybe", "series": series(1, 50), "true": [], "maybe": [55], "kind": "flat"},
        {"id": "both", "series": series(2, 60), "true": [60], "maybe": [62], "kind": "steps"},
        {"id": "too far", "series": series(3, 40), "true": [], "maybe": [34], "kind": "flat"}])
    [answer] = scores(hunter, "--truth", path)["detectors"]
    pooled, live = answer["all"]["pooled"], answer["all"]["confirmed"]
    assert (pooled["right"], pooled["found"], pooled["labelled"]) == (1, 2, 1)
    assert (answer["all"]["flat_found"], live["seen"], live["labelled"], live["false"]) == (1, 1, 1, 1)
    assert [c["class"] for c in answer["classes"]] == ["flat", "steps"]
    text = hunter("evaluate", "--truth", path, "--whole").out
    assert re.search(r"^all series:\n.*\n.*\nedivisive +0\.6667 +0\.5 +1 ", text, re.M)


def test_standard_input(hunter):
    text = json.dumps({"series": series(1, 50), "change_points": [50]})
    assert scores(hunter, "--truth", "-", stdin=text)["detectors"][0]["all"]["margins"][0]["f1"] == 1


@pytest.mark.parametrize("arguments, says", [
    ([], "--truth FILE (labelled series) or --from-triage (triaged changes) is required"),
    (["--truth", "{path}", "--detector", "kernell"], '--detector: unknown detector "kernell" (did you mean "kernel"?)'),
    (["--truth", "{path}", "--detector", "kernel(window=5)"], '--detector: the detector "kernel" has no option "window"'),
    (["--truth", "{path}", "--detector", "edivisive(window=1"], '--detector: "edivisive(window=1" lacks a )'),
    (["--truth", "{path}", "--detector", "edivisive,kernel", "--tune"], "--tune takes one --detector"),
    (["--truth", "{path}", "--detector", "lookback(best=min", "x"], "lacks a )"),
    (["--truth", "{path}", "--confirm", "soon"], 'confirm: "soon" is neither auto, off nor a number of points'),
    (["--truth", "{path}", "more"], "evaluate takes no arguments (give the file with --truth)"),
])
def test_wrong_flags(hunter, labelled, arguments, says):
    result = hunter("evaluate", *[a.format(path=labelled) for a in arguments])
    assert result.code == 2 and says in result.err and result.out == ""


@pytest.mark.parametrize("text, says", [
    ('{"series": [1, 2], "change_points": [1]}\n{"series": [1, 2]}\n', ':2: no "change_points"'),
    ('{"series": [1, 2], "change_points": [9]}', ':1: "change_points" 9 is not within the series (from 0 to 1)'),
    ('\n\n{"series": [1, "x"], "change_points": []}', ':3: "series"[1] is not a number'),
    ('nonsense', ':1: not valid JSON at byte 1'),
    ('', 'no labelled series in the files'),
])
def test_bad_files(hunter, tmp_path, text, says):
    path = tmp_path / "bad.jsonl"
    path.write_text(text)
    result = hunter("evaluate", "--truth", path)
    assert result.code == 3 and says in result.err and result.out == ""
    assert hunter("evaluate", "--truth", tmp_path / "none.jsonl").code == 3


def tuning_rows():
    """Small steps in noise, where a magnitude of 10% sees nothing, and many flat series."""
    return ([{"id": f"step{i}", "series": series(i, 50, size=5), "change_points": [50]} for i in range(20)] +
            [{"id": f"flat{i}", "series": series(100 + i), "change_points": []} for i in range(20)])


def test_tune(hunter, tmp_path):
    path = write(tmp_path / "t.jsonl", tuning_rows())
    arguments = ["--truth", path, "--tune", "--detector", "edivisive(magnitude=0.1)", "--whole"]
    answer = scores(hunter, *arguments)
    assert answer["tuned_on"] + answer["tried_on"] == 40 and 10 <= answer["tuned_on"] <= 30
    first, best = answer["trials"][0], answer["trials"][answer["best"]]
    assert first["detector"] == "edivisive(magnitude=0.1, p_value=0.001, magnitude=0.1, window=50)"
    assert first["recall"] == 0 and best["recall"] > 0.9 and best["f1"] == max(t["f1"] for t in answer["trials"])
    given, tuned = answer["detectors"]
    assert given["detector"] == "edivisive(magnitude=0.1)" and tuned["detector"] == best["detector"]
    assert given["all"]["series"] == answer["tried_on"]
    assert tuned["all"]["margins"][2]["f1"] > 0.9 > given["all"]["margins"][2]["f1"]
    # No trial of the frontier is beaten by another.
    front = [t for t in answer["trials"] if t["frontier"]]
    assert front and not any(t["recall"] >= f["recall"] and t["false_per_1000"] < f["false_per_1000"]
                             for f in front for t in answer["trials"])
    text = hunter("evaluate", *arguments)
    assert text.code == 0 and "<- best" in text.out and "as given, not among the best" in text.out
    assert hunter("evaluate", *arguments).out == text.out


@pytest.mark.parametrize("name", ["s{}", "x{}", "item{}", "series-{}", "bench.{}.p99"])
def test_numbered_series_are_split(hunter, tmp_path, name):
    """Whatever the names have in common: neither half is much smaller than the other, and a series stays in its own."""
    rows = [{"id": name.format(i), "series": [i % 3, 1, 2] * 4, "change_points": []} for i in range(200)]
    answer = scores(hunter, "--truth", write(tmp_path / "n.jsonl", rows), "--tune", "--whole")
    assert answer["tuned_on"] + answer["tried_on"] == 200 and 70 <= answer["tuned_on"] <= 130
    again = scores(hunter, "--truth", write(tmp_path / "n.jsonl", rows[::-1]), "--tune", "--whole")
    assert again["tuned_on"] == answer["tuned_on"]


def test_tune_needs_something_to_tune(hunter, labelled, tmp_path):
    result = hunter("evaluate", "--truth", labelled, "--tune", "--detector", "combine(any: kernel)")
    assert result.code == 2 and "has no p_value, penalty, magnitude or window" in result.err
    one = write(tmp_path / "one.jsonl", [{"series": series(1), "change_points": []}])
    result = hunter("evaluate", "--truth", one, "--tune")
    assert result.code == 3 and "1 series are too few to split into halves" in result.err


def test_interrupt_ends_it(program):
    """Ctrl-C while it reads: nothing is printed, and it is gone."""
    process = subprocess.Popen([program, "evaluate", "--truth", "-"], stdin=subprocess.PIPE,
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    process.stdin.write(b'{"series": [1, 2], "change_points": []}\n')
    process.stdin.flush()
    process.send_signal(signal.SIGINT)
    assert process.wait(timeout=LONGEST) == -signal.SIGINT
    assert process.stdout.read() == b""


def test_progress_on_a_terminal(program, tmp_path):
    """stderr is a terminal: how far it is, in one line that is wiped in the end. Without one, nothing (see above)."""
    path = write(tmp_path / "many.jsonl", [{"series": series(i, n=1000), "change_points": []} for i in range(400)])
    master, slave = pty.openpty()
    process = subprocess.Popen([program, "evaluate", "--truth", path, "--detector", "kernel", "--jobs", "1"],
                               stdout=subprocess.PIPE, stderr=slave)
    os.close(slave)
    seen = b""
    while b" of 400 done" not in seen:
        seen += os.read(master, 1000)
    process.send_signal(signal.SIGINT)
    assert process.wait(timeout=LONGEST) == -signal.SIGINT
    assert process.stdout.read() == b""
    os.close(master)
    assert re.search(rb"\r\x1b\[Kkernel: \d+ of 400 done", seen)


# An independent scorer


def scorer(*arguments):
    done = subprocess.run([sys.executable, pathlib.Path(REFERENCE) / "datasets/score.py", *arguments], capture_output=True,
                          text=True, check=True, env=os.environ | {"PYTHONDONTWRITEBYTECODE": "1"})
    return done.stdout


@pytest.mark.skipif(not REFERENCE, reason="HUNTER_REFERENCE_DATA is not set")
@pytest.mark.parametrize("name", ["sap-hana-small-per-build", "sap-hana-small", "lnt-series"])
@pytest.mark.parametrize("profile", ["default", "otava"])
def test_whole_series_as_another_scorer_counts(hunter, tmp_path, name, profile):
    path = pathlib.Path(REFERENCE) / f"datasets/{name}.jsonl"
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    lines = "".join(json.dumps({"id": r["name"], "series": r["series"]}) + "\n" for r in rows)
    found = [json.loads(line) for line in hunter("detect", "--input", "jsonl", "--profile", profile, stdin=lines).out.splitlines()]
    predictions = write(tmp_path / "p.jsonl", [
        {"name": f["id"], "cps": [c["index"] for c in f["change_points"]]} for f in found])
    out = tmp_path / "out.json"
    scorer("data", path, "--pred", predictions, "--out", out)
    theirs = json.loads(out.read_text())[f"pred:{predictions.name}"]
    ours = scores(hunter, "--truth", path, "--detector", f"edivisive(profile={profile})", "--whole")["detectors"][0]["all"]
    assert ours["series"] == theirs["n"]
    assert ours["f1_annotated"] == pytest.approx(theirs["f1"], abs=1e-12)
    assert ours["covering"] == pytest.approx(theirs["cover"], abs=1e-12)


@pytest.mark.skipif(not REFERENCE, reason="HUNTER_REFERENCE_DATA is not set")
def test_point_by_point_as_another_scorer_counts(hunter, tmp_path):
    """Alarms of a detector that is run anew on each prefix, scored by both; two series of each class."""
    path = pathlib.Path(REFERENCE) / "datasets/synthetic.jsonl"
    rows = [r for r in map(json.loads, path.read_text().splitlines()) if int(r["name"].rsplit("/", 1)[1]) < 2]
    lines = "".join(json.dumps({"id": f"{r['name']} {n}", "series": r["series"][:n]}) + "\n"
                    for r in rows for n in range(10, len(r["series"]) + 1))
    events = {r["name"]: {"name": r["name"], "alarms": [], "final": []} for r in rows}
    for line in hunter("detect", "--input", "jsonl", stdin=lines).out.splitlines():
        answer = json.loads(line)
        name, n = answer["id"].rsplit(" ", 1)
        event, found = events[name], [c["index"] for c in answer["change_points"]]
        event["alarms"] += [[i, int(n)] for i in found if all(abs(i - a) > 5 for a, _ in event["alarms"])]
        event["final"] = found
    predictions, out = write(tmp_path / "p.jsonl", events.values()), tmp_path / "out.json"
    scorer("stream", "--per", "2", "--pred", predictions, "--out", out)
    theirs = json.loads(out.read_text())["pred"]
    truth = write(tmp_path / "truth.jsonl", [
        {"id": r["name"], "series": r["series"], "change_points": r["annotations"]["truth"], "class": r["class"]} for r in rows])
    for ours in scores(hunter, "--truth", truth)["detectors"][0]["classes"]:
        live, other = ours["at_once"], theirs[ours["class"]]
        assert (live["alarms"], live["false"], live["withdrawn"]) == (other["alarms"], other["false"], other["withdrawn"])
        if live["seen"]:
            assert (live["delay_p50"], live["delay_p90"]) == (other["p50"], other["p90"])


def real():
    """Histories labelled by eye, and the scorer that came with them."""
    path = pathlib.Path(REFERENCE) / "datasets/real-dev.jsonl"
    return path, [json.loads(line) for line in path.read_text().splitlines()], runpy.run_path(str(path.with_name("score_real.py")))


def found(hunter, lines, *flags):
    answers = hunter("detect", "--input", "jsonl", *flags, stdin="".join(json.dumps(line) + "\n" for line in lines)).out
    return {a["id"]: [c["index"] for c in a["change_points"]] for a in map(json.loads, answers.splitlines())}


@pytest.mark.skipif(not REFERENCE, reason="HUNTER_REFERENCE_DATA is not set")
@pytest.mark.parametrize("detector", ["edivisive", "edivisive(profile=otava)", "edivisive(profile=otava, p_value=1e-5)", "kernel"])
def test_real_histories_as_another_scorer_counts(hunter, detector):
    path, rows, scorer = real()
    flags = ["--detector", "kernel"] if detector == "kernel" else [
        f"--{name.replace('_', '-')}={value}" for name, value in re.findall(r"(\w+)=([^,)]+)", detector)]
    theirs = scorer["score"](rows, found(hunter, [{"id": r["id"], "series": r["series"]} for r in rows], *flags))
    ours = scores(hunter, "--truth", path, "--detector", detector, "--season", "none", "--whole")["detectors"][0]["all"]
    assert ours["series"] == len(rows) == 91
    assert [ours["pooled"][k] for k in ("recall", "precision", "f1")] + [ours["flat_per_1000"]] == pytest.approx(
        [theirs[k] for k in ("recall", "precision", "F1", "false/1,000 flat")], abs=1e-12)


@pytest.mark.skipif(not REFERENCE, reason="HUNTER_REFERENCE_DATA is not set")
def test_real_histories_point_by_point(hunter, tmp_path):
    """Alarms of runs on each prefix of the shorter histories, counted by hand."""
    _, rows, _ = real()
    rows = [r for r in rows if len(r["series"]) <= 150 and r["true"] and r["maybe"]][:12]
    runs = found(hunter, [{"id": f"{r['id']} {n}", "series": r["series"][:n]} for r in rows
                          for n in range(10, len(r["series"]) + 1)])
    count = {"alarms": 0, "false": 0, "seen": 0, "labelled": 0}
    for row in rows:
        alarms = []
        for n in range(10, len(row["series"]) + 1):
            alarms += [(i, n) for i in runs[f"{row['id']} {n}"] if all(abs(i - a) > 5 for a, _ in alarms)]
        count["alarms"] += len(alarms)
        count["false"] += sum(all(abs(i - at) > 5 for at in row["true"] + row["maybe"]) for i, _ in alarms)
        count["seen"] += sum(any(abs(i - at) <= 5 and n > at for i, n in alarms) for at in row["true"])
        count["labelled"] += len(row["true"])
    path = write(tmp_path / "short.jsonl", rows)
    live = scores(hunter, "--truth", path, "--season", "none")["detectors"][0]["all"]["at_once"]
    assert {k: live[k] for k in count} == count and count["seen"] > 5 and count["alarms"] > count["seen"]


def test_generated_services(hunter, program, tmp_path):
    """Of eight series of a class four have no step; of the others the truth is where the level changes."""
    made = pathlib.Path(program).parent / "tests/write_series"
    if not made.exists():
        pytest.skip("no write_series beside the program")
    written = [subprocess.run([made, "--service", "--series", "8", "--first", "11", *flags], capture_output=True, text=True, check=True).stdout
               for flags in ([], [], ["--days", "3"])]
    assert written[0] == written[1]
    rows = [json.loads(line) for line in written[0].splitlines()]
    classes = {row["class"] for row in rows}
    assert len(classes) >= 25 and len(rows) == 8 * len(classes)
    assert [sum(row["group"] == g for row in rows) for g in ("flat", "step", "several")] == [n * len(classes) for n in (4, 3, 1)]
    for row in rows:
        if row["class"] != "night_job" or row["size"] != 0.2:
            continue
        day, [at] = 24, row["change_points"]
        before, after = (sum(row["series"][i:j]) / (j - i) for i, j in ((at - 3 * day, at), (at, at + 3 * day)))
        assert abs(after / before - 1) == pytest.approx(0.2, abs=0.03)
    short = [json.loads(line) for line in written[2].splitlines()]
    assert {len(row["series"]) for row in short if row["step"] == 3600} == {72}
    (tmp_path / "a.jsonl").write_text(written[0])
    [answer] = scores(hunter, "--truth", tmp_path / "a.jsonl", "--whole")["detectors"]
    assert answer["all"]["series"] == len(rows) and answer["all"]["seasonal"] > len(rows) / 3
