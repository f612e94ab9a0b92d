"""validate, list-tests and list-groups: where the configuration is found, what is printed, and the exit codes."""
import json
import pathlib
import random

GOOD = """\
tests:
  b.write: {type: csv, file: b.csv, metrics: [m]}
  a.read: {type: csv, file: a.csv, metrics: [m]}
  c: {type: csv, file: c.csv, metrics: [m]}
test_groups:
  late: [c, b.write]
  all: [late, a.read]
"""

BAD = """\
agent: {intervall: 5m}
tests:
  x: {type: csv, flie: y}
  z: {type: prometheus, query: up, range: soon}
"""


def test_lists_are_sorted(hunter, tmp_path):
    (tmp_path / "hunter.yaml").write_text(GOOD)
    assert hunter("list-tests") == (0, "a.read\nb.write\nc\n", "")
    assert hunter("list-tests", "late") == (0, "b.write\nc\n", "")
    assert hunter("list-tests", "late", "b.*") == (0, "b.write\nc\n", "")
    assert hunter("list-groups") == (0, "all\nlate\n", "")


def test_unknown_group(hunter, tmp_path):
    (tmp_path / "hunter.yaml").write_text(GOOD)
    result = hunter("list-tests", "lat")
    assert (result.code, result.out) == (2, "")
    assert 'there is no test or group "lat" in hunter.yaml (did you mean "late"?)' in result.err


def test_arguments_that_mean_nothing(hunter, tmp_path):
    (tmp_path / "hunter.yaml").write_text(GOOD)
    for command in ("list-groups", "validate"):
        result = hunter(command, "hunter.yaml")
        assert (result.code, result.out) == (2, ""), command
        assert "takes no arguments" in result.err


def test_all_problems_at_once(hunter, tmp_path):
    (tmp_path / "hunter.yaml").write_text(BAD)
    result = hunter("validate")
    lines = result.out.splitlines()
    assert result.code == 2
    assert lines[0] == 'hunter.yaml:1:9: agent: unknown key "intervall" (did you mean "interval"?)'
    assert lines[1] == 'hunter.yaml:3:18: warning: test "x": unknown key "flie" (did you mean "file"?)'
    assert lines[2] == 'hunter.yaml:3:6: test "x": "file" is missing'
    assert lines[3].startswith('hunter.yaml:4:43: test "z": range: "soon" is not')
    assert lines[-1] == "hunter.yaml: 4 errors, 1 warning"


def test_a_broken_file_is_used_by_no_command(hunter, tmp_path):
    (tmp_path / "hunter.yaml").write_text(BAD)
    for command in ("list-tests", "list-groups", "analyze", "regressions"):
        result = hunter(command)
        assert (result.code, result.out) == (2, ""), command
        assert 'agent: unknown key "intervall"' in result.err, command


def test_json(hunter, tmp_path):
    (tmp_path / "hunter.yaml").write_text(BAD)
    result = hunter("validate", "--output", "json")
    document = json.loads(result.out)
    assert result.code == 2
    assert document["valid"] is False and document["errors"] == 4 and document["warnings"] == 1
    assert [p["severity"] for p in document["problems"]] == ["error", "warning", "error", "error", "error"]
    (tmp_path / "hunter.yaml").write_text(
        GOOD + "slack: {token: $NO_TOKEN}\n" + "x-more: {}\n")
    document = json.loads(hunter("validate", "--output", "json").out)
    assert document["valid"] is True and document["tests"] == 3 and document["groups"] == 2
    assert document["missing"] == "hunter.yaml:8:16: slack: ${NO_TOKEN} is not set"


def test_unsupported_tests_are_named(hunter, tmp_path):
    (tmp_path / "hunter.yaml").write_text(GOOD.replace("test_groups:", "  d: {type: bigquery, query: q}\ntest_groups:"))
    document = json.loads(hunter("validate", "--output", "json").out)
    assert document["unsupported"] == [{"test": "d", "reason": "BigQuery is not supported"}]
    assert "1 of the tests cannot be run" in hunter("validate").out
    assert hunter("list-tests").out == "a.read\nb.write\nc\nd\n"
    result = hunter("analyze", "d")
    assert result.code == 3
    assert "BigQuery is not supported" in result.err


def test_places(hunter, tmp_path):
    home = tmp_path / "home"
    (home / ".hunter").mkdir(parents=True)
    (home / ".hunter" / "hunter.yaml").write_text("tests: {home: {type: csv, file: x}}\n")
    (tmp_path / "h.yaml").write_text("tests: {env: {type: csv, file: x}}\n")
    (tmp_path / "o.yaml").write_text("tests: {otava: {type: csv, file: x}}\n")
    (tmp_path / "f.yaml").write_text("tests: {flag: {type: csv, file: x}}\n")
    env = {"HOME": str(home)}
    assert hunter("list-tests", env=env).out == "home\n"
    env["OTAVA_CONFIG"] = "o.yaml"
    assert hunter("list-tests", env=env).out == "otava\n"
    env["HUNTER_CONFIG"] = "h.yaml"
    assert hunter("list-tests", env=env).out == "env\n"
    assert hunter("list-tests", "--config", "f.yaml", env=env).out == "flag\n"
    assert hunter("list-tests", "--config-file", "f.yaml", env=env).out == "flag\n"


def test_no_configuration(hunter, tmp_path):
    if pathlib.Path("/etc/hunter-c/hunter.yaml").exists():
        return
    result = hunter("list-tests", env={"HOME": str(tmp_path)})
    assert result.code == 2 and "--config" in result.err and "$HUNTER_CONFIG" in result.err
    result = hunter("validate", "--config", "gone.yaml")
    assert result.code == 2 and "gone.yaml" in result.out and "No such file" in result.out


def test_folder(hunter, tmp_path):
    folder = tmp_path / "conf.d"
    folder.mkdir()
    (folder / "a.yaml").write_text("templates: {t: {type: csv}}\n")
    (folder / "b.yaml").write_text("tests: {one: {inherit: t, file: x}}\n")
    assert hunter("list-tests", "--config", "conf.d").out == "one\n"
    (folder / "c.yaml").write_text("tests:\n  one: {inherit: t, file: y}\n")
    result = hunter("validate", "--config", "conf.d")
    assert result.code == 2
    assert 'conf.d/c.yaml:2:3: tests: "one" is already at conf.d/b.yaml:1\n' in result.out


def test_hostile_files_end(hunter, tmp_path):
    """Depth, bombs, binary rubbish: a message and exit code 2."""
    rubbish = random.Random(1).randbytes(100_000)
    files = {
        "deep": b"[" * 10_000,
        "deep-block": b"- " * 10_000,
        "cycle": b"a: &a [*a]\n",
        "bomb": b"a0: &a0 [x]\n" + b"".join(
            b"a%d: &a%d [%s]\n" % (i, i, b", ".join([b"*a%d" % (i - 1)] * 9)) for i in range(1, 10)),
        "rubbish": rubbish,
        "tab": b"tests:\n\tx: 1\n",
        "latin1": "tests:\n  a: gr\xf6\xdfe\n".encode("latin-1"),
        "two": b"a: 1\n---\nb: 1\n",
    }
    for name, content in files.items():
        (tmp_path / f"{name}.yaml").write_bytes(content)
        result = hunter("validate", "--config", f"{name}.yaml")
        assert result.code == 2, name
        assert result.out.startswith(f"{name}.yaml:"), name
