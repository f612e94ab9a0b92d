"""Input a hundred times larger than usual: a file of ten million rows, in memory beside its two columns."""
import itertools
import json
import subprocess

from waiting import LONGEST

ROWS, BLOCK, CHANGE = 10_000_000, 10_000, 5_000_000
START, STEP = 1_600_000_000, 10
SPREAD = 101  # the spread repeats after so many rows
VALUES = [[f"{level + i * 7919 % SPREAD / 50:.2f}" for i in range(SPREAD)] * (BLOCK // SPREAD + 2) for level in (100, 130)]


def write(path):
    """A level of 100 that becomes 130 in the middle, with a spread of 2."""
    with open(path, "w") as out:
        out.write("time,m\n")
        for first in range(0, ROWS, BLOCK):
            values = VALUES[first >= CHANGE]
            times = range(START + first * STEP, START + (first + BLOCK) * STEP, STEP)
            out.write("".join(map("%d,%s\n".__mod__, zip(times, itertools.islice(values, first % SPREAD, None)))))


def test_ten_million_rows(program, tmp_path):
    write(tmp_path / "large.csv")
    (tmp_path / "hunter.yaml").write_text("tests: {t: {type: csv, file: large.csv, detection: {kind: benchmark}, metrics: [m]}}\n")
    timed = ["/usr/bin/env", "python3", "-c",
             "import resource, subprocess, sys\n"
             "code = subprocess.run(sys.argv[1:]).returncode\n"
             "print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss, file=sys.stderr)\n"
             "sys.exit(code)"]
    done = subprocess.run([*timed, program, "analyze", "t", "--output", "json"], cwd=tmp_path, timeout=LONGEST,
                          capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)["tests"][0]["changes"]
    assert [change["index"] for change in found] == [CHANGE]
    assert found[0]["count_before"] == found[0]["count_after"] == CHANGE
    columns = ROWS * 16 / 1024
    assert int(done.stderr.splitlines()[-1]) < 4 * columns
