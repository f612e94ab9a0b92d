"""The command line itself: help, version, flags, output that cannot be written."""

import json
import pathlib
import re
import subprocess

import pytest
from waiting import LONGEST

COMMANDS = ["run", "regressions", "analyze", "detect", "list-tests", "list-groups", "list-metrics", "validate"]


def test_overview(hunter):
    for arguments in (["--help"], ["-h"], ["help"]):
        result = hunter(*arguments)
        assert result.code == 0 and result.err == ""
        for command in COMMANDS:
            assert re.search(rf"^  {command} ", result.out, re.M), command


def test_no_command_is_wrong_usage(hunter):
    result = hunter()
    assert result.code == 2 and result.out == "" and "Commands:" in result.err


@pytest.mark.parametrize("command", COMMANDS)
def test_help_of_a_command(hunter, command):
    result = hunter(command, "--help")
    assert result.code == 0 and result.out.startswith(f"Usage: hunter-c {command} ")
    assert max(map(len, result.out.splitlines())) <= 100
    assert hunter("help", command).out == result.out
    assert hunter("--help", command).out == result.out


@pytest.mark.parametrize("arguments", [["--version"], ["-V"], ["analyze", "--version"]])
def test_version_names_the_libraries(hunter, arguments):
    result = hunter(*arguments)
    assert result.code == 0
    for name in ("hunter-c", "libcurl", "libyaml", "jansson", "libmicrohttpd", "SQLite"):
        assert re.search(rf"{name} \d+\.\d+", result.out), name


@pytest.mark.parametrize(
    "arguments, message",
    [
        (["analyse"], 'unknown command "analyse" (did you mean "analyze"?)'),
        (["detect", "--windw", "3"], "unknown option --windw (did you mean --window?)"),
        (["detect", "-x"], "unknown option -x"),
        (["detect", "--window"], "--window needs a value"),
        (["detect", "-P"], "-P needs a value"),
        (["detect", "--jobs=x"], '--jobs: "x" is not a whole number'),
        (["detect", "--log-level", "loud"], '--log-level: "loud" is not one of error, warn, info, debug'),
        (["analyze", "--verbose=perhaps"], '--verbose: "perhaps" is not true or false'),
        (["analyze", "--output", "--config", "x"], "--output needs a value"),
        (["analyze", "--branch", ""], "--branch is empty"),
        (["analyze", "--metrics="], "--metrics is empty"),
        (["analyze", "--metrics", ", ,"], "--metrics is empty"),
        (["analyze", "--attrs", " "], "--attrs is empty"),
        (["regressions", "--since-commit", ""], "--since-commit is empty"),
        (["regressions", "--until", ""], "--until is empty"),
        (["analyze", "--last", ""], "--last is empty"),
        (["analyze", "-P", ""], "-P is empty"),
        (["detect", "--delimiter", ""], "--delimiter is empty"),
        (["validate", "--config", ""], "--config is empty"),
        (["analyze", "--branch", "--config", "x.yaml"], "--branch needs a value"),
        (["analyze", "-P", "--since=x"], "-P needs a value"),
        (["analyze", "a", "--update-bigquery"], "unknown option --update-bigquery"),
    ],
)
def test_wrong_words(hunter, arguments, message):
    result = hunter(*arguments)
    assert result.code == 2 and result.out == ""
    assert f"hunter-c: {message}\n" in result.err and "--help'" in result.err


@pytest.mark.parametrize("command", ["analyze", "regressions", "detect"])
def test_two_detectors(hunter, tmp_path, command):
    (tmp_path / "hunter.yaml").write_text("tests: {}\n")
    result = hunter(command, "--detector", "edivisive", "--orig-edivisive")
    assert (result.code, result.out) == (2, "")
    assert result.err == "hunter-c: --orig-edivisive and --detector edivisive are mutually exclusive\n"
    assert hunter(command, "--detector", "edivisive_permutation", "--orig-edivisive").code == 0


@pytest.mark.parametrize(
    "arguments, form",
    [
        (["--column", "x", "--input", "jsonl"], '"-" is read as jsonl'),
        (["--column", "x", "--input", "text"], '"-" is read as text'),
        (["--column", "x", "a.jsonl"], '"a.jsonl" is read as jsonl'),
        (["--column", "x", "a.csv", "b.ndjson"], '"b.ndjson" is read as jsonl'),
    ],
)
def test_column_of_what_is_no_csv(hunter, arguments, form):
    result = hunter("detect", *arguments, stdin="1\n")
    assert (result.code, result.out) == (2, "")
    assert result.err == f"hunter-c: --column is for CSV, and {form}\n"


def test_delimiter_of_what_is_no_csv(hunter):
    assert hunter("detect", "--delimiter", ";", stdin="1\n").err == 'hunter-c: --delimiter is for CSV, and "-" is read as text\n'
    assert hunter("detect", "--delimiter", ";", "--column", "1", stdin="x;y\n1;2\n").code == 0


def test_two_dashes_end_the_flags(hunter):
    result = hunter("detect", "--", "--window")
    assert result.code == 3 and "--window" in result.err and "no such file" in result.err


def test_full_disk_is_told(program):
    with open("/dev/full", "w") as full:
        result = subprocess.run([program, "--help"], stdout=full, stderr=subprocess.PIPE, text=True)
    assert result.returncode == 3
    assert result.stderr == "hunter-c: cannot write the output: No space left on device\n"


def test_reader_that_goes_away_is_not_told(program):
    command = f"seq 1 200000 | sed 's/.*/{{\"id\": \"&\", \"series\": [1, 2]}}/' | {program} detect --input jsonl | head -n 1"
    result = subprocess.run(["sh", "-c", command], capture_output=True, text=True)
    assert result.stdout == '{"id": "1", "change_points": []}\n' and result.stderr == ""


def test_a_log_line_never_lands_inside_a_row(hunter, program, tmp_path):
    rows = [f"{1767225600 + t * 86400}," + ",".join(str((100 if t < 40 else 130) + (t + i) % 5) for i in range(120)) for t in range(80)]
    (tmp_path / "x.csv").write_text("time," + ",".join(f"m{i:03}" for i in range(120)) + "\n" + "\n".join(rows) + "\n")
    (tmp_path / "hunter.yaml").write_text("agent: {state: s.db, max_age: never}\ntests: {a: {type: csv, file: x.csv}}\n")
    assert hunter("run", "--once").code == 0
    result = subprocess.run([program, "changes", "--limit", "110"], cwd=tmp_path, capture_output=True, timeout=LONGEST, check=True)
    mixed = subprocess.run([program, "changes", "--limit", "110"], cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                           timeout=LONGEST, check=True).stdout.decode().splitlines()
    logged = json.loads(subprocess.run([program, "changes", "--limit", "110", "--log-format", "json"], cwd=tmp_path, capture_output=True, timeout=LONGEST).stderr)
    assert (logged["level"], logged["shown"]) == ("warn", 110), logged
    assert mixed[:-1] == result.stdout.decode().splitlines() and mixed[-1].startswith("hunter-c: warning: output truncated: use --limit")


def test_closed_descriptors_are_not_reused(program, tmp_path):
    """The first file that is opened must not become standard error: the log would be written into it."""
    (tmp_path / "m.csv").write_text("time,m\n2026-01-01,1\n")
    (tmp_path / "hunter.yaml").write_text("agent: {state: state.db}\ntests: {t: {type: csv, file: m.csv, metrics: [m]}}\n")
    subprocess.run(["sh", "-c", f"exec {program} run --once --log-level debug <&- >&- 2>&-"], cwd=tmp_path, timeout=LONGEST)
    assert (tmp_path / "state.db").read_bytes().startswith(b"SQLite format 3\0")
    for path in tmp_path.iterdir():
        assert b"msg=" not in path.read_bytes(), path
    result = subprocess.run(["sh", "-c", f"{program} --help >&-"], capture_output=True, text=True)
    assert result.returncode == 3 and "cannot write the output: Bad file descriptor" in result.stderr
    result = subprocess.run(["sh", "-c", f"{program} detect <&-"], capture_output=True, text=True)
    assert result.returncode == 3 and "Bad file descriptor" in result.stderr
