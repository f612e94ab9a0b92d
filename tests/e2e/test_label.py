"""hunter-c evaluate --label: a person at a terminal labels series, and evaluate scores with the labels."""
import json
import os
import random
import re
import signal

import pytest
from person import Person

FLAT = 'fl"ät'  # an id that is written with escapes


def series(seed, *steps, n=100):
    rng = random.Random(seed)
    return [round(rng.gauss(100 + 20 * sum(i >= at for at in steps), 1), 3) for i in range(n)]


def write(path, rows):
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


@pytest.fixture
def rows(tmp_path):
    rows = [{"id": "two", "series": series(1, 30, 60), "start": "2026-01-05T00:00:00Z", "step": 86400, "kind": "nightly"},
            {"id": "one", "series": series(2, 50)[:70] + [None] * 2 + series(3, 0, n=28)},
            {"id": FLAT, "series": series(4)}]
    write(tmp_path / "s.jsonl", rows)
    return {row["id"]: row for row in rows}


@pytest.fixture
def sit(program, tmp_path):
    people = []

    def start(*arguments):
        people.append(Person(program, tmp_path, *arguments))
        return people[-1], people[-1].read()

    yield start
    for person in people:
        os.close(person.terminal)


def labels(path):
    """{id: (changes, maybes)} of a file of labels."""
    return {row["id"]: (row["true"], row["maybe"]) for row in map(json.loads, path.read_text().splitlines())}


def shown(screen):
    return re.search(r"^(\d+) of (\d+)  (\S+)", screen, re.M).groups()


def letter(screen, at):
    """The letter of the place nearest to a true change."""
    places = {int(index): mark for mark, index in re.findall(r"   ([a-z]) (\d+)", screen)}
    nearest = min(places, key=lambda place: abs(place - at))
    assert abs(nearest - at) <= 2
    return places[nearest]


def picture(screen):
    return screen[screen.index("1 of 1"):]


STEPS = {"two": [30, 60], "one": [50], FLAT: []}


def answer_of(screen):
    return "".join(letter(screen, at) for at in STEPS[shown(screen)[2]]) or "-"


def test_a_session(hunter, sit, tmp_path, rows):
    """All are labelled; the file is whole after each answer, and what evaluate reads."""
    person, screen = sit("--label", "l.jsonl", "--series", "s.jsonl")
    for number in (1, 2, 3):
        at, of, name = shown(screen)
        assert (at, of) == (str(number), "3") and "┊" in screen or name == FLAT
        assert not re.search(r"edivisive|kernel|%|p =|▲|▼", screen)  # nothing says what a detector thinks
        assert ("2026" in screen[screen.index(f" of 3  {name}"):]) == (name == "two") and "1970" not in screen
        places = re.findall(r"   ([a-z]) (\d+)", screen)
        assert [mark for mark, _ in places] == [chr(ord("a") + i) for i in range(len(places))]
        assert [int(i) for _, i in places] == sorted(int(i) for _, i in places)
        screen = person.type(answer_of(screen))
        assert len(labels(tmp_path / "l.jsonl")) == number
        assert f"labelled: {'change at' if STEPS[name] else 'no change'}" in screen
    assert "3 of 3 series are labelled in l.jsonl" in screen and "hunter-c evaluate --truth l.jsonl" in screen
    assert person.code() == 0
    for name, (sure, maybe) in labels(tmp_path / "l.jsonl").items():
        assert maybe == [] and len(sure) == len(STEPS[name]) and all(abs(a - b) <= 2 for a, b in zip(sure, STEPS[name]))
    written = {row["id"]: row for row in map(json.loads, (tmp_path / "l.jsonl").read_text().splitlines())}
    assert {name: row["series"] for name, row in written.items()} == {name: row["series"] for name, row in rows.items()}
    assert written["two"]["times"][:2] == ["2026-01-05T00:00:00Z", "2026-01-06T00:00:00Z"]
    assert written["two"]["class"] == "nightly" and "times" not in written["one"]
    result = hunter("evaluate", "--truth", "l.jsonl", "--output", "json", "--whole")
    assert result.code == 0 and json.loads(result.out)["detectors"][0]["all"]["pooled"]["f1"] == 1


def test_places_by_letter_index_and_date(sit, tmp_path, rows):
    write(tmp_path / "s.jsonl", [rows["two"]])
    person, screen = sit("--label", "l.jsonl", "--series", "s.jsonl")
    mark = letter(screen, 30)
    place = int(re.search(rf"   {mark} (\d+) ", screen)[1])
    for wrong, says in [("z", 'no candidate "z", only a to'), ("0", "0 is not within the series: a change has an index from 1 to 99"),
                        ("100?", "100 is not within the series"), ("2027-01-01", "is not within the series, after 2026-01-05 00:00 and up to"),
                        ("2026-13-01", "2026-13-01"), ("", '"-" if nothing changed'), (f"- {mark}", '"-" must be the only answer'), ("??", '"?" must follow a candidate'),
                        ("back", "this is the first series"), ("quit now", "quit must be the only answer"),
                        ("x" * 2000, "no candidate \"x\"")]:
        assert says in person.type(wrong) and not (tmp_path / "l.jsonl").exists()
    assert "a and c are changes" in person.type("?") == person.type("help").replace("help\n", "?\n", 1)
    screen = person.type(f"  {mark} 77?, 2026-02-14 2026-03-01 12:00? 40 40")
    assert "labelled: change at " in screen and "maybe at 56 (2026-03-02 00:00), 77 (2026-03-23 00:00)" in screen
    assert labels(tmp_path / "l.jsonl") == {"two": (sorted({place, 40}), [56, 77])} and person.code() == 0


def test_interrupted_and_gone_on_with(sit, tmp_path, rows):
    """Ctrl-C loses no answer, and the next start goes on behind the last one; other lines of the file stay as they are."""
    foreign = '{"id": "other", "series": [1, NaN, 3], "change_points": {"ann": [1], "ben": []}, "note": "é"}'
    (tmp_path / "l.jsonl").write_text(foreign + "\n")
    person, screen = sit("--label", "l.jsonl", "--series", "s.jsonl")
    order = [shown(screen)[2]]
    screen = person.type(answer_of(screen))
    order.append(shown(screen)[2])
    person.type("\x03", end="")
    assert person.code() == -signal.SIGINT
    assert [name.name for name in tmp_path.glob("l.jsonl*")] == ["l.jsonl"]
    first, second = (tmp_path / "l.jsonl").read_text().splitlines()
    assert first == foreign and json.loads(second)["id"] == order[0]
    person, screen = sit("--label", "l.jsonl", "--series", "s.jsonl")
    assert shown(screen) == ("2", "3", order[1])
    last = shown(person.type("skip"))[2]
    assert "1 of 3 series are labelled" in person.type("\x04", end="") and person.code() == 0
    person, screen = sit("--label", "l.jsonl", "--series", "s.jsonl")
    assert shown(screen)[2] == order[1]
    screen = person.type("quit")
    assert "1 of 3 series are labelled" in screen and person.code() == 0 and last not in order
    assert (tmp_path / "l.jsonl").read_text().splitlines() == [first, second]


def test_back(sit, tmp_path, rows):
    person, screen = sit("--label", "l.jsonl", "--series", "s.jsonl")
    one = shown(screen)[2]
    screen = person.type("12")
    two = shown(screen)[2]
    screen = person.type("back")
    assert shown(screen)[2] == one and "labelled: change at 12" in screen
    screen = person.type("")  # as it was
    assert shown(screen)[2] == two and labels(tmp_path / "l.jsonl") == {one: ([12], [])}
    person.type("back")
    screen = person.type("13? 14")
    assert shown(screen)[2] == two and labels(tmp_path / "l.jsonl") == {one: ([14], [13])}
    person.type("back")
    person.type("-")
    assert labels(tmp_path / "l.jsonl") == {one: ([], [])}
    person.type("quit")
    assert person.code() == 0


def test_configured_tests(hunter, sit, tmp_path):
    """One series of each test, then a second of each; the same ones whatever their number."""
    tests = {}
    for test in ("x", "y", "z"):
        columns = [series(ord(test) + i, 50) for i in range(2)]
        (tmp_path / f"{test}.csv").write_text("time,a,b\n" + "".join(
            f"2026-0{1 + d // 28}-{1 + d % 28:02} 00:00,{a},{b}\n" for d, (a, b) in enumerate(zip(*columns))))
        tests[test] = {"type": "csv", "file": f"{test}.csv", "time_column": "time", "metrics": ["a", "b"]}
    (tmp_path / "hunter.yaml").write_text(json.dumps({"tests": tests}))
    names = {}
    for count in (2, 5, 20):
        person, screen = sit("--label", "l.jsonl", "--count", count, "--config", tmp_path / "hunter.yaml")
        names[count] = []
        while (found := re.search(r"^\d+ of \d+  (\S+)", screen, re.M)):
            names[count].append(found[1])
            screen = person.type("skip")
        assert person.code() == 0 and not (tmp_path / "l.jsonl").exists()
    assert len(names[20]) == 6 and {name.split("/")[0] for name in names[20][:3]} == {"x", "y", "z"}
    assert names[2] == names[20][:2] and names[5] == names[20][:5]
    person, screen = sit("--label", "l.jsonl", "--config", tmp_path / "hunter.yaml", "y")
    assert shown(screen)[1] == "2" and shown(screen)[2].startswith("y/")
    person.type(letter(screen, 50) + " " + "2026-02-05 00:00")
    person.type("quit")
    [row] = map(json.loads, (tmp_path / "l.jsonl").read_text().splitlines())
    assert row["class"] == "y" and 32 in row["true"] and len(row["times"]) == 100


@pytest.mark.parametrize("arguments, code, says", [
    (["--label", "l.jsonl", "--series", "-"], 2, "--series -: standard input is used for the answers"),
    (["--label", "l.jsonl", "--series", "s.jsonl", "db"], 2, '--series and a test ("db") are mutually exclusive'),
    (["--label", "l.jsonl", "--series", "s.jsonl", "--truth", "t"], 2, "--truth does not apply to --label"),
    (["--label", "l.jsonl", "--series", "s.jsonl", "--tune"], 2, "--tune does not apply to --label"),
    (["--truth", "l.jsonl", "--series", "s.jsonl"], 2, "--series does not apply to --truth"),
    (["--label", "s.jsonl", "--series", "s.jsonl"], 2, "--label: s.jsonl has series without labels"),
    (["--label", "nowhere/l.jsonl", "--series", "s.jsonl"], 2, "--label: nowhere/l.jsonl: cannot write the file: No such file or directory"),
    (["--label", "/proc/l.jsonl", "--series", "none.jsonl"], 2, "--label: /proc/l.jsonl: cannot write the file"),
    (["--label", "l.jsonl", "--series", "none.jsonl"], 3, "none.jsonl"),
    (["--label", "l.jsonl", "--series", "s.jsonl,s.jsonl"], 3, "duplicate series id \""),
    (["--label", "l.jsonl", "--series", "bad.jsonl"], 3, 'bad.jsonl:1: no "series"'),
    (["--label", "bad.jsonl", "--series", "s.jsonl"], 3, 'bad.jsonl:1: no "series"'),
    (["--label", "l.jsonl", "--series", "short.jsonl"], 3, "no series to label"),
])
def test_wrong_input(hunter, tmp_path, rows, arguments, code, says):
    (tmp_path / "bad.jsonl").write_text('{"id": "a"}\n')
    write(tmp_path / "short.jsonl", [{"series": [1]}])
    result = hunter("evaluate", *arguments)
    assert (result.code, result.out) == (code, "") and says in result.err
    assert not (tmp_path / "l.jsonl").exists()


def test_an_answer_that_cannot_be_written(sit, tmp_path, rows):
    (tmp_path / "sub").mkdir()
    person, screen = sit("--label", "sub/l.jsonl", "--series", "s.jsonl")
    person.type("-")
    (tmp_path / "sub").rename(tmp_path / "gone")
    assert "sub/l.jsonl: cannot write the file: No such file or directory" in person.type("12") and person.code() == 3
    assert len(labels(tmp_path / "gone/l.jsonl")) == 1


def test_answers_through_a_pipe(hunter, tmp_path, rows):
    result = hunter("evaluate", "--label", "l.jsonl", "--series", "s.jsonl", stdin="-\n12")
    assert result.code == 0 and "2 of 3 series are labelled" in result.out and len(labels(tmp_path / "l.jsonl")) == 2


def test_more_places_than_letters(hunter, tmp_path):
    (tmp_path / "many.jsonl").write_text(json.dumps({"series": series(5, *range(10, 1000, 12), n=1000)}))
    result = hunter("evaluate", "--label", "m.jsonl", "--series", "many.jsonl", stdin="a z 500?\n")
    assert "more candidates without a letter: give their index or date" in result.out
    [(name, (sure, maybe))] = labels(tmp_path / "m.jsonl").items()
    assert name == "many.jsonl:1" and len(sure) == 2 and maybe == [500]
