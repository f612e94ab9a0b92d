"""Command lines of Apache Otava 0.8: with --profile otava, hunter-c prints what otava printed.

Trailing blanks aside, output is compared character for character. Exit codes are ours (docs/reference/analyze.md); of messages the
meaning is compared.
"""
import os
import pathlib
import shlex

import pytest

CARRIED = pathlib.Path(__file__).parents[1] / "cases/otava-cli"
REFERENCE = os.environ.get("HUNTER_REFERENCE_DATA")
FOLDER = REFERENCE and pathlib.Path(REFERENCE) / "compat/otava-cli"

CODES = {"multi-nobranch": 3, "nobranchcol": 3, "unknown-test": 2, "since-after-until": 2, "bad-date": 2}
MEANINGS = {
    "multi-nobranch": ["multi", "branches", "--branch", "feature-x", "feature-y", "main"],
    "nobranchcol": ["sample", "--branch", "column", '"branch"'],
    "unknown-test": ["test or group", "nosuch"],
    "since-after-until": ["invalid time range", "2026-01-05 00:00:00 +0000", "2026-01-03 00:00:00 +0000"],
    "bad-date": ["notadate", "not a date"],
}


def cases(folder):
    lines = (folder / "cases.txt").read_text().splitlines()
    return [pytest.param(folder, *line.split("|"), id=line.split("|")[0]) for line in lines if line]


def reference_cases():
    if not FOLDER:
        return [pytest.param(None, None, None, id="reference", marks=pytest.mark.skip("HUNTER_REFERENCE_DATA is not set"))]
    return cases(FOLDER)


def stripped(text):
    return [line.rstrip() for line in text.splitlines()]


def run(hunter, folder, arguments):
    words = shlex.split(arguments)
    if words[0] == "analyze":
        words += ["--profile", "otava"]
    return hunter(*words, "--config-file", "otava.yaml", cwd=folder)


@pytest.mark.parametrize("folder, name, arguments", cases(CARRIED) + reference_cases())
def test_case(hunter, folder, name, arguments):
    result = run(hunter, folder, arguments)
    expected = stripped((folder / f"{name}.out").read_text())
    assert result.code == CODES.get(name, 0), result.err
    for word in MEANINGS.get(name, []):
        assert word in result.err
    if name == "list-metrics-histo":  # whose order is free
        assert sorted(stripped(result.out)) == sorted(expected)
    elif name == "p-value-long":  # Otava refuses its own long option
        assert stripped(result.out) == stripped(run(hunter, folder, arguments.replace("--p-value", "-P")).out)
        assert "Traceback" not in result.err and result.out
    else:
        assert stripped(result.out) == expected
        if not MEANINGS.get(name):
            assert not result.err


def test_all_cases_are_there():
    assert len(cases(CARRIED)) == 6
    if FOLDER:
        assert len(reference_cases()) == 28
