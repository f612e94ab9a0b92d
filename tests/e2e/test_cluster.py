"""`hunter-c cluster` and groups of `type: cluster`: what moves together is found together, and told once.

Files, and a real Prometheus with a few hundred series of one query. Dates are fixed.
"""
import csv
import datetime
import json
import re

import pytest
import servers
from state_address import open_state, state_of

START = datetime.datetime(2024, 3, 1, tzinfo=datetime.timezone.utc)
MINUTE, POINTS, STEP_AT = 60, 100, 60
TESTS, COLUMNS = 10, 8


def noise(seed, i):
    """A fixed value in about -1 .. 1 for each i, another sequence for each seed."""
    x = (i * 2654435761 + seed * 40503 + 12345) & 0xFFFFFFFF
    for _ in range(3):
        x ^= (x << 13) & 0xFFFFFFFF
        x ^= x >> 17
        x ^= (x << 5) & 0xFFFFFFFF
    return x / 2**31 - 1


def values(seed, base, factor):
    return [base * (factor if i >= STEP_AT else 1) * (1 + 0.02 * noise(seed, i)) for i in range(POINTS)]


def write_files(folder, factor=1.2, apart=datetime.timedelta(hours=1)):
    """Ten tests of eight columns; the even columns of the gpu tests get slower with commit c0060."""
    for test in range(TESTS):
        kind = "gpu" if test % 2 else "cpu"
        with open(folder / f"{kind}{test}.csv", "w", newline="") as out:
            rows = csv.writer(out)
            columns = [values(100 * test + c, 50 * (c + 1), factor if kind == "gpu" and c % 2 == 0 else 1)
                       for c in range(COLUMNS)]
            rows.writerow(["time", "commit"] + [f"{'draw' if c % 2 == 0 else 'load'}.m{c}" for c in range(COLUMNS)])
            for i in range(POINTS):
                stamp = START + i * apart
                rows.writerow([stamp.isoformat(), f"c{i:04d}"] + [f"{column[i]:.5f}" for column in columns])


def write_config(folder, group="", agent=""):
    names = [f"{'gpu' if test % 2 else 'cpu'}{test}" for test in range(TESTS)]
    metrics = ", ".join(f"'{'draw' if c % 2 == 0 else 'load'}.m{c}': {{direction: -1, unit: ms}}" for c in range(COLUMNS))
    tests = "".join(f"  bench.{name}: {{type: csv, file: {folder}/{name}.csv, attributes: [commit], metrics: {{{metrics}}}}}\n"
                    for name in names)
    path = folder / "hunter.yaml"
    path.write_text(f"""
stdout: {{}}
agent: {{state: {state_of(folder)}, listen: 127.0.0.1:0, max_age: never, {agent}}}
tests:
{tests}
test_groups:
  gpu: [{', '.join('bench.' + name for name in names if name.startswith('gpu'))}]
  all: {{type: cluster, tests: [{', '.join('bench.' + name for name in names)}]{group}}}
""")
    return path


def test_what_moved_in_files(hunter, tmp_path):
    write_files(tmp_path)
    path = write_config(tmp_path)
    found = hunter("cluster", "--config", path, "--output", "json")
    assert (found.code, found.err) == (0, "")
    report = json.loads(found.out)
    assert (report["series"], report["left_out"], report["points"]) == (TESTS * COLUMNS, 0, POINTS)
    assert len(report["clusters"]) == 1
    cluster = report["clusters"][0]
    assert cluster["time"].startswith("2024-03-03T12:00:00")
    assert (cluster["direction"], cluster["series"]) == ("up", 20)
    assert (cluster["commit_before"], cluster["commit_after"]) == ("c0059", "c0060")
    suspects = cluster["suspects"]
    assert [suspects[k] for k in ("from", "to", "count", "share")] == ["c0059", "c0060", 1, 1], suspects
    assert abs(cluster["change_percent"] - 20) < 1
    assert {"label": "path[1]=draw", "share": 1, "overall": 0.5} in cluster["shared"]
    assert len(cluster["members"]) == 20
    assert all("gpu" in m["test"] and m["metric"].startswith("draw") for m in cluster["members"])


def test_text_seed_and_selection(hunter, tmp_path):
    write_files(tmp_path)
    path = write_config(tmp_path)
    text = hunter("cluster", "--config", path, "all")
    assert text.code == 0
    assert re.match(r"time: +2024-03-03 12:00:00 \+0000\nseries moved: +20\ndirection: +up\nchange %: +\d", text.out), text.out
    assert "c0059" in text.out and re.search(r"\npath\[1\]=draw +1 +0\.5\n", text.out) and "and 15 more" in text.out
    assert "80 series of 100 points" in text.out
    assert hunter("cluster", "--config", path, "all", "--seed", "1").out == text.out
    assert "40 series of 100 points" in hunter("cluster", "--config", path, "gpu").out
    before = hunter("cluster", "--config", path, "--until", "2024-03-03")
    assert "series moved" not in before.out and "0 of them moved" in before.out
    assert "0 of them moved" in hunter("cluster", "--config", path, "--interesting", "1e8").out
    assert "80 series of 100 points, 3 clusters" in hunter("cluster", "--config", path, "-k", "3").out


def test_what_cannot_be_read(hunter, tmp_path):
    write_files(tmp_path)
    path = write_config(tmp_path)
    (tmp_path / "gpu1.csv").unlink()
    found = hunter("cluster", "--config", path)
    assert found.code == 3
    assert "gpu1" in found.err and "\nseries moved:  16\n" in found.out
    assert hunter("cluster", "--config", path, "nobody").code == 2
    assert hunter("cluster", "--config", path, "-k", "-1").code == 2


def changes(folder, condition):
    with open_state(folder) as state:
        return state.execute(f"SELECT test, series, members, shared FROM changes WHERE {condition}").fetchall()


TOLD = "id IN (SELECT change FROM announced)"


def test_one_message_for_all_and_none_after(hunter, tmp_path):
    write_files(tmp_path)
    path = write_config(tmp_path)
    first = hunter("run", "--once", "--config", path)
    assert first.code == 0
    assert "all\n" in first.out and re.search(r"\n    20 series \+(19|20|21)%, 100% \S+.*  regression\n", first.out) and "regression" in first.out
    assert "c0059 .. c0060" in first.out
    assert [row[0] for row in changes(tmp_path, TOLD + " AND members > 0")] == ["all"]
    assert changes(tmp_path, TOLD + " AND members = 0 AND time = 1709467200000") == []
    assert len(changes(tmp_path, "members = 0 AND time = 1709467200000")) >= 18
    assert changes(tmp_path, "news = 1") == []
    for _ in range(2):
        again = hunter("run", "--once", "--config", path)
        assert (again.code, again.out) == (0, "")
    listed = json.loads(hunter("changes", "--config", path, "--output", "json", "--test", "all").out)
    assert '"members": 20' in json.dumps(listed)


def test_replayed_it_is_one_message(hunter, tmp_path):
    write_files(tmp_path)
    path = write_config(tmp_path, agent="interval: 1h")
    replayed = hunter("replay", "--config", path, "--from", "2024-03-02", "--to", "2024-03-05")
    assert replayed.code == 0
    assert replayed.out.count("%, 100% path[1]=draw") == 1
    assert "c0059 .. c0060" in replayed.out and "all: 1 announced, 0 withdrawn later" in replayed.out


def test_nights_are_counted_and_not_days(hunter, tmp_path):
    """A cluster that is clear after more than max_age (14 days) lies within the newest 100 points: news, all the same."""
    write_files(tmp_path, factor=1.02, apart=datetime.timedelta(days=1))
    path = write_config(tmp_path, group=", interesting: 60", agent="interval: 1d")
    path.write_text(path.read_text().replace("max_age: never", "max_age: 14d"))
    replayed = hunter("replay", "--config", path, "--from", "2024-04-01", "--to", "2024-06-08")
    assert replayed.code == 0 and "all: 1 announced, 0 withdrawn later" in replayed.out, replayed.out[-1500:]
    [told] = re.findall(r"^\[(2024-\d\d-\d\d)[^]]*\]\n(?:(?!^\[).*\n)*?  all\n", replayed.out, re.M)
    assert told > "2024-05-15", told  # the step is of 2024-04-30


def test_what_moves_alone_is_told_alone(hunter, tmp_path):
    write_files(tmp_path, factor=1)
    with open(tmp_path / "cpu0.csv", newline="") as file:
        rows = list(csv.reader(file))
    for i, row in enumerate(rows[1:]):
        row[3] = str(float(row[3]) * (1.5 if i >= 50 else 1))
    with open(tmp_path / "cpu0.csv", "w", newline="") as file:
        csv.writer(file).writerows(rows)
    told = hunter("run", "--once", "--config", write_config(tmp_path))
    assert told.code == 0
    assert ("bench.cpu0", "load.m1", 0, None) in changes(tmp_path, TOLD)
    assert changes(tmp_path, "test = 'all'") == []


def test_without_any_data_nothing_is_concluded(hunter, tmp_path):
    path = write_config(tmp_path)
    failed = hunter("run", "--once", "--config", path)
    assert failed.code == 3
    assert "10 of 10 tests failed; the first: " in failed.err
    assert changes(tmp_path, "true") == []


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    """300 series of one name: 200 hosts with a gpu, of which those in eu get faster."""
    rows = []
    for i in range(300):
        region, renderer = ("eu", "us", "ap")[i % 3], "gpu" if i < 200 else "cpu"
        factor = 0.7 if region == "eu" and renderer == "gpu" else 1
        labels = {"host": f"h{i}", "region": region, "renderer": renderer}
        rows += [(labels, f"{value:.6f}", int(START.timestamp()) + MINUTE * k)
                 for k, value in enumerate(values(i, 20, factor))]
    with servers.prometheus(tmp_path_factory.mktemp("prometheus"), servers.openmetrics({"frame_ms": rows})) as running:
        yield running


def test_one_query_of_many_series(hunter, tmp_path, server):
    path = tmp_path / "hunter.yaml"
    path.write_text(f"prometheus: {{url: '{server.url}'}}\n"
                    "tests:\n  frames: {type: prometheus, query: 'frame_ms', metrics: {frame_ms: {direction: -1}}}\n")
    found = hunter("cluster", "--config", path, "--since", "2024-03-01", "--until", "2024-03-01 03:00", "--output", "json")
    assert found.code == 0, found.err
    report = json.loads(found.out)
    assert (report["series"], report["points"]) == (300, POINTS)
    assert len(report["clusters"]) == 1
    cluster = report["clusters"][0]
    assert (cluster["direction"], cluster["series"]) == ("down", 67)
    assert cluster["time"].startswith("2024-03-01T01:00:00")
    shared = {label["label"]: label["share"] for label in cluster["shared"]}
    assert shared == {"region=eu": 1, "renderer=gpu": 1}
