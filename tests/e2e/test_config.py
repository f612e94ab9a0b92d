"""validate, list-tests and list-groups: where the configuration is found, what is printed, and the exit codes."""
import json
import os
import pathlib
import random
import re

import pytest

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
    assert 'no test or group "lat" in hunter.yaml (did you mean "late"?)' in result.err


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
    checked = hunter("validate")
    assert checked.code == 0 and checked.out.splitlines()[-2:] == [
        "hunter.yaml:8:16: slack: ${NO_TOKEN} is not set: the agent will not start",
        "hunter.yaml: valid, but the agent will not start, 3 tests, 2 groups"], checked
    document = json.loads(hunter("validate", "--output", "json").out)
    assert document["valid"] is True and document["tests"] == 3 and document["groups"] == 2
    assert document["missing"] == "hunter.yaml:8:16: slack: ${NO_TOKEN} is not set"


def test_unsupported_tests_are_named(hunter, tmp_path):
    (tmp_path / "hunter.yaml").write_text(GOOD.replace("test_groups:", "  d: {type: bigquery, query: q}\ntest_groups:"))
    document = json.loads(hunter("validate", "--output", "json").out)
    assert document["unsupported"] == [{"test": "d", "reason": "BigQuery is not supported"}]
    assert "1 of the tests cannot run" in hunter("validate").out
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
    assert 'conf.d/c.yaml:2:3: tests: "one" is already defined at conf.d/b.yaml:1\n' in result.out


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


def test_references_in_flow_style(hunter, tmp_path):
    """As text they would be no YAML: {file: ${X}}."""
    (tmp_path / "hunter.yaml").write_text(
        "tests:\n  a: {type: csv, file: ${DIR:-${BASE}/x}/a.csv, metrics: [${M-p99}]}\n")
    (tmp_path / "b" / "x").mkdir(parents=True)
    (tmp_path / "b" / "x" / "a.csv").write_text("time,p99\n2026-01-01,1\n")
    result = hunter("analyze", "a", "--metrics", "p99", env={"BASE": "b"})
    assert (result.code, result.err) == (0, "")
    result = hunter("validate")
    assert result.code == 0
    assert "${BASE} is not set: the test cannot run" in result.out
    assert "hunter.yaml: 1 test cannot run: ${BASE} is not set" in result.out


def test_home(hunter, tmp_path):
    (tmp_path / "a.csv").write_text("time,m\n2026-01-01,1\n")
    (tmp_path / "hunter.yaml").write_text("tests:\n  a: {type: csv, file: ~/a.csv}\n")
    assert hunter("list-metrics", "a", env={"HOME": str(tmp_path)}).out == "m\n"


# What the options' tables cannot say, with the place where it is told.
CHECKS = [
    ("slack: {token: t, channels: [~]}", ":1:30: slack: channels: an entry has no value"),
    ("tests: {a: {type: csv, file: x, metrics: [~]}}", ':1:43: test "a": metrics: a list holds only names'),
    ("slack: {webhook_url: 'https://x/', token: t, channels: [c]}", ":1:8: slack: give either a bot token or a webhook, not both"),
    ("slack: {channels: [c]}", ":1:8: slack: bot_token (with channels) or webhook_url is missing"),
    ("slack: {}", ":1:8: slack: bot_token (with channels) or webhook_url is missing"),
    ("slack: {token: t, channels: [c], api_url: slack.com}", ":1:34: slack: api_url: it must begin with http:// or https://"),
    ("slack: {webhook_url: hooks.slack.com/x}", ":1:9: slack: webhook_url: it must begin with http:// or https://"),
    ("slack: {token: '', channels: [c]}", ":1:8: slack: bot_token: it is empty"),
    ("slack: {token: '${BLANK}', channels: [c]}", ":1:8: slack: bot_token: it is blank"),
    ('slack: {bot_token: "a\\nb", channels: [c]}', ":1:9: slack: bot_token: contains a line break"),
    ("slack: {token: t, channels: ['']}", ":1:19: slack: channels: one of them is empty"),
    ("slack: {token: t, channels: ['#']}", ":1:19: slack: channels: one of them is empty"),
    ("slack: {token: t, channels: ['a', 'b c']}", ':1:19: slack: channels: "b c" contains a blank'),
    ("slack: {webhook_url: ' '}", ":1:9: slack: webhook_url: it is blank"),
    ("slack: {webhook_url: 'https://x/ y'}", ":1:9: slack: webhook_url: it contains a blank or a line break"),
    ("webhook: {url: 'https://x/', secret: '${BLANK}'}", ":1:30: webhook: secret: it is blank"),
    ("webhook: {url: 'https://x/', secret: ''}", ":1:30: webhook: secret: it is empty"),
    ("webhook: {url: 'https://x/ y'}", ":1:16: webhook: url: it contains a blank or a line break"),
    ("webhook: {url: 'https://u:a/b@x'}", ':1:16: webhook: url: in a password write "/", "?" and "#" as'),
    ("prometheus: {url: 'http://x/', bearer_token: '${BLANK}'}", ":1:32: prometheus: bearer_token: it is blank"),
    ('graphite: {url: "http://x/", username: u, password: "a\\nb"}', ":1:43: graphite: password: contains a line break"),
    ("postgres: {hostname: x, password: ' '}", ":1:25: postgres: password: it is blank"),
    ("tests: {a: {type: csv, file: x, csv_options: {delimiter: '||'}}}",
     ':1:33: test "a": csv_options: delimiter must be one character'),
    ("tests: {a: {type: csv, file: x, csv_options: {quote_char: ab}}}",
     ':1:33: test "a": csv_options: quote_char must be one character'),
    ("tests: {a: {type: csv, file: x, csv_options: {delimiter: ';', quote_char: ';'}}}",
     ':1:33: test "a": csv_options: the delimiter must not be empty or equal to quote_char'),
    ("tests: {a: {type: csv, file: ''}}", ':1:30: test "a": file: it is empty'),
    ("prometheus: {url: 'http://x/'}\ntests: {a: {type: prometheus}}", ':2:12: test "a": the test has no query'),
    ("prometheus: {url: 'http://x/'}\ntests: {a: {type: prometheus, query: ''}}", ':2:31: test "a": query: it is empty'),
    ("prometheus: {url: 'http://x/'}\ntests: {a: {type: prometheus, metrics: {m: {query: ''}}}}",
     ':2:12: test "a": metric "m": query: it is empty'),
    ("prometheus: {url: 'http://x/'}\ntests: {a: {type: prometheus, metrics: {m: {query: up}, n: {}}}}",
     ':2:12: test "a": metric "n" has no query, nor has the test'),
    ("prometheus: {url: 'http://x/'}\ntests: {a: {type: prometheus, query: up, metrics: [m, n]}}",
     ':2:12: test "a": 2 metrics have no query of their own, so they would be equal'),
    ("prometheus: {url: \"http://x/\\r\\n\"}", ":1:19: prometheus: url: it contains a blank or a line break"),
    ("prometheus: {url: 'http://x/', headers: {X: \"a\\r\\nb\"}}",
     ':1:41: prometheus: headers: the value of "X" contains a line break'),
    ("agent: {state: ':memory:'}", ":1:16: agent: state: expected the path of a persistent file"),
    ("tests: {a: {type: csv, file: x, metrics: {m: {scale: 0}}}}", ':1:43: test "a": metric "m": scale: 0 would make all values equal'),
]

KEY = "sixteen-bytes-ok"

WARNINGS = [
    (f"slack: {{token: {KEY}}}", ":1:8: warning: slack: channels is missing: list the channels to post to"),
    ("tests: {a: {type: csv, file: x, metrics: {m: {column: time}}}}",
     ':1:12: warning: test "a": time_column: same column as metric "m"'),
    ("prometheus: {url: 'http://x/'}\ntests: {a: {type: prometheus, query: 'rate(x[5m]) '}}",
     ':2:31: warning: test "a": query: expected a plain selector, as the test has no step; this is an expression'),
    ("test_groups: {a: [a, b]}\ntests: {a: {type: csv, file: x}, b: {type: csv, file: x}}",
     ':1:15: warning: group "a": hides the test of the same name at hunter.yaml:2'),
    ("webhook: {url: 'http://x/', retry_for: 5m}", ":1:40: warning: webhook: retry_for: applies to sources only and has no effect here"),
    ("webhook: {url: 'https://x/', secret: short}", ":1:30: warning: webhook: secret: shorter than 16 bytes: too easy to guess"),
    ("webhook: {url: 'https://x/', secret_file: short}", ":1:30: warning: webhook: secret_file: shorter than 16 bytes: too easy to guess"),
    ("slack: {bot_token: short, channels: [c]}", ":1:9: warning: slack: bot_token: shorter than 16 bytes: too easy to guess"),
    ("webhook: {url: 'https://x/', secret_file: open}", ':1:30: warning: webhook: secret_file: every user can read "open"'),
    ("prometheus: {url: 'https://x/', username: u, password_file: open}", ':1:46: warning: prometheus: password_file: every user can'),
    ("prometheus: {url: 'https://x/', cert_file: closed, key_file: open}", ':1:52: warning: prometheus: key_file: every user can read'),
    ("postgres: {sslkey: open}", ':1:12: warning: postgres: sslkey: every user can read "open"'),
    (f"prometheus: {{url: 'http://x/', bearer_token: {KEY}}}", ":1:14: warning: prometheus: url: sends a token or password"),
    ("prometheus: {url: 'http://x/', username: u, password_file: closed}", ":1:14: warning: prometheus: url: sends a token or password"),
    ("prometheus: {url: 'http://u:p@x/'}", ":1:14: warning: prometheus: url: sends a token or password"),
    ("prometheus: {url: 'http://x/', headers: {X-Api-Key: k}}", ":1:14: warning: prometheus: url: sends a token or password"),
    (f"sources: {{eu: {{type: graphite, url: 'HTTP://127.1.example/', bearer_token: {KEY}}}}}", ':1:32: warning: source "eu": url: sends a token'),
    (f"slack: {{bot_token: {KEY}, channels: [c], api_url: 'http://x/'}}", ":1:53: warning: slack: api_url: sends a token or password"),
    ("slack: {webhook_url: 'http://x/services/key'}", ":1:9: warning: slack: webhook_url: a secret sent without TLS"),
    ("prometheus: {url: 'https://x/', insecure_skip_verify: true}", ":1:33: warning: prometheus: insecure_skip_verify: another program"),
    ("postgres: {hostname: db.example}", ":1:11: warning: postgres: sslmode: the server can be impersonated without verify-full"),
    ("postgres: {hostname: db.example, sslmode: require}", ":1:34: warning: postgres: sslmode: the server can be impersonated without"),
    ("tests: {a: {type: csv, file: x, tags: }}", ':1:39: warning: test "a": tags: it has no value and is ignored'),
    ("tests: {a: {type: csv, file: x, metrics: ~}}", ':1:42: warning: test "a": metrics: it has no value and is ignored'),
    ("tests: {a: {type: csv, file: x, inherit: null}}", ':1:42: warning: test "a": inherit: it has no value and is ignored'),
    ("tests: {a: {type: csv, file: x, detection: {combine: }}}", ':1:54: warning: test "a": detection: combine: it has no value'),
    ("test_groups: {g: }", ':1:18: warning: group "g": it has no value and is ignored'),
    ("known_changes:", ":1:15: warning: known_changes: it has no value and is ignored"),
    ("routes:", ":1:8: warning: routes: it has no value and is ignored"),
    ("tests:", ":1:7: warning: tests: it has no value and is ignored"),
    ("mute_times: {w: {months: , days_of_month: 1}}\ntests: {a: {type: csv, file: x, mute: w}}", ':1:26: warning: mute time "w": months: it has no value and is ignored'),
    ("prometheus: {url: 'https://x/', headers: {X-A: }}", ':1:43: warning: prometheus: headers: "X-A" has no value and is ignored'),
    ("tests: {a: {type: csv, file: $PLACE/x.csv}}", ':1:30: warning: "$PLACE" is not expanded here: write ${PLACE}'),
]


@pytest.mark.parametrize("text, said", CHECKS, ids=range(len(CHECKS)))
def test_what_can_never_work_is_an_error(hunter, tmp_path, text, said):
    (tmp_path / "hunter.yaml").write_text(text + "\n")
    result = hunter("validate", env={"BLANK": " \n"})
    assert (result.code, result.out.splitlines()[-1]) == (2, "hunter.yaml: 1 error")
    assert result.out.startswith("hunter.yaml" + said)


@pytest.mark.parametrize("text", [
    "webhook: {url: 'HTTPS://x.example/y'}",
    "prometheus: {url: 'HTTP://x.example/y'}",
    "slack: {webhook_url: 'HTTPS://x.example/y'}",
    "prometheus: {url: 'https://x.example/y', username: key, password: ''}",
    "postgres: {hostname: localhost, password: ''}",
    "prometheus: {url: 'http://127.0.0.1:9090/', bearer_token: sixteen-bytes-ok}",
    "prometheus: {url: 'http://[::1]:9090/', bearer_token: sixteen-bytes-ok}",
    "prometheus: {url: 'http://prom.localhost/', username: u, password: short}",
    "prometheus: {url: 'http://x.example/', headers: {X-Scope-OrgID: perf}}",
    "webhook: {url: 'http://x.example/', secret: sixteen-bytes-ok}",
    "postgres: {hostname: x.example, sslmode: verify-full}",
    "postgres: {hostname: x.example, sslrootcert: ca.pem}",
    "postgres: {hostname: /run/postgresql}",
])
def test_what_works_is_accepted(hunter, tmp_path, text):
    """The scheme in capitals, and a password that is none, in each section alike; and what is not careless."""
    (tmp_path / "hunter.yaml").write_text(text + "\n")
    (tmp_path / "hunter.yaml").chmod(0o640)
    assert hunter("validate").out == "hunter.yaml: OK, 0 tests, 0 groups\n"


@pytest.mark.parametrize("text, said", WARNINGS, ids=range(len(WARNINGS)))
def test_what_may_not_work_is_a_warning(hunter, tmp_path, text, said):
    (tmp_path / "hunter.yaml").write_text(text + "\n")
    for name, mode, secret in (("hunter.yaml", 0o640, None), ("short", 0o600, "short"), ("open", 0o644, KEY), ("closed", 0o640, KEY)):
        if secret:
            (tmp_path / name).write_text(secret + "\n")
        (tmp_path / name).chmod(mode)
    result = hunter("validate", env={"PLACE": "p"})
    assert result.code == 0, result.out
    assert result.out.startswith("hunter.yaml" + said)
    assert result.out.rstrip().endswith(", 1 warning")


def test_a_secret_in_a_file_that_all_can_read(hunter, tmp_path):
    path = tmp_path / "hunter.yaml"
    path.write_text(f"slack: {{token: {KEY}, channels: [c]}}\nwebhook: {{url: 'https://x/', secret: '${{KEY}}'}}\n")
    path.chmod(0o644)
    result = hunter("validate", env={"KEY": KEY})
    assert result.out.startswith("hunter.yaml:1:9: warning: slack: bot_token: the file is readable by every user\n") or \
        result.out.startswith("hunter.yaml:1:8: warning: slack: bot_token: the file is readable by every user\n"), result.out
    assert result.out.rstrip().endswith(", 1 warning")
    path.chmod(0o640)
    assert "warning" not in hunter("validate", env={"KEY": KEY}).out
    path.chmod(0o644)
    assert hunter("list-tests", env={"KEY": KEY}).err == "", "only validate says so"


def test_a_configuration_found_where_others_write(hunter, tmp_path):
    path = tmp_path / "hunter.yaml"
    path.write_text("tests: {a: {type: csv, file: x}}\n")
    tmp_path.chmod(0o1777)
    said = "hunter.yaml: warning: file or folder writable by other users"
    assert hunter("validate").out.startswith(said)
    assert "warning" not in hunter("validate", "--config", "hunter.yaml").out
    tmp_path.chmod(0o700)
    assert "warning" not in hunter("validate").out
    path.chmod(0o666)
    assert hunter("validate").out.startswith(said)


def test_the_password_of_the_state(hunter, tmp_path):
    (tmp_path / "hunter.yaml").write_text(
        "agent: {state: 'postgresql://h@db/h', state_password_file: password}\ntests: {a: {type: csv, file: a.csv}}\n")
    (tmp_path / "a.csv").write_text("time,m\n2026-01-01,1\n")
    assert 'state_password_file: cannot read "' in hunter("validate").out
    (tmp_path / "password").write_text(" \n")
    assert "state_password_file: " in hunter("validate").out
    (tmp_path / "password").write_text("s3cret\n")
    assert "state_password_file" not in hunter("validate").out


def test_secret_files_lie_beside_the_configuration(hunter, tmp_path):
    (tmp_path / "conf").mkdir()
    (tmp_path / "conf/hunter.yaml").write_text(
        "prometheus: {url: 'https://x/', bearer_token_file: token}\nsources: {db: {type: postgres, hostname: localhost, sslkey: key}}\n"
        "tests: {a: {type: csv, file: a.csv}}\n")
    (tmp_path / "a.csv").write_text("time,m\n2026-01-01,1\n")
    assert 'cannot read "conf/token"' in hunter("validate", "--config", "conf/hunter.yaml").out
    (tmp_path / "conf/token").write_text(" \n")
    assert "prometheus: bearer_token_file: conf/token is empty" in hunter("validate", "--config", "conf/hunter.yaml").out
    (tmp_path / "conf/token").write_text(KEY)
    (tmp_path / "conf/token").chmod(0o600)
    assert "warning" not in hunter("validate", "--config", "conf/hunter.yaml").out
    assert hunter("analyze", "a", "--config", "conf/hunter.yaml").code == 0, "data are found from where the program is started"


def test_step_makes_an_expression_right(hunter, tmp_path):
    (tmp_path / "hunter.yaml").write_text(
        "prometheus: {url: 'http://x/'}\ntests: {a: {type: prometheus, query: 'rate(x[5m])', step: 1h}}\n")
    assert hunter("validate").out == "hunter.yaml: OK, 1 test, 0 groups\n"


def test_hunters_slack_section_without_channels(hunter, tmp_path):
    """Hunter names them on the command line: the commands work, the agent would tell nobody and does not start."""
    (tmp_path / "a.csv").write_text("time,m\n2026-01-01,1\n")
    (tmp_path / "hunter.yaml").write_text("slack: {token: t}\ntests: {a: {type: csv, file: a.csv}}\n")
    assert hunter("analyze", "a").code == 0
    result = hunter("run", "--once")
    assert result.code == 2
    assert "hunter.yaml:1:8: slack: channels is missing" in result.err


def test_kinds_that_cannot_be_read(hunter, tmp_path):
    """Only validate and what would read them says so."""
    (tmp_path / "hunter.yaml").write_text(
        "tests:\n  a: {type: bigquery, query: x, metrics: [m]}\n  b: {type: bigquery, query: y, metrics: [m]}\n"
        "  c: {type: csv, file: c.csv, metrics: [m]}\n")
    (tmp_path / "c.csv").write_text("time,m\n2026-01-01,1\n")
    for command in (("list-tests",), ("list-groups",), ("list-metrics", "a"), ("analyze", "c")):
        result = hunter(*command)
        assert (result.code, result.err) == (0, ""), command
    assert hunter("validate").out.startswith("hunter.yaml: 2 tests cannot run: BigQuery is not supported\n")
    result = hunter("analyze", "a")
    assert result.code == 3 and "BigQuery is not supported" in result.err


def test_control_characters_do_not_reach_the_terminal(hunter, tmp_path):
    (tmp_path / "hunter.yaml").write_text('tests: {a: {type: csv, file: "x\\r\\n\\e[31m.csv"}}\n')
    for command in ("analyze", "list-metrics"):
        err = hunter(command, "a").err
        assert "x??" in err and "\r" not in err and "\x1b" not in err, command


def test_list_metrics_names_the_test(hunter, tmp_path):
    (tmp_path / "hunter.yaml").write_text("tests: {a: {type: csv, file: none.csv}}\n")
    result = hunter("list-metrics", "a")
    assert result.code == 3
    assert result.err.startswith('hunter-c: test "a": ')


def test_pipe_as_configuration(hunter, tmp_path):
    os.mkfifo(tmp_path / "hunter.yaml")
    result = hunter("validate")
    assert (result.code, result.out.splitlines()[0]) == (2, "hunter.yaml: cannot read the file: not a regular file")


def test_folder_with_a_folder(hunter, tmp_path):
    (tmp_path / "conf.d" / "3.yaml").mkdir(parents=True)
    (tmp_path / "conf.d" / "1.yaml").write_text("tests: {a: {type: csv, file: x}}\n")
    assert hunter("validate", "--config", "conf.d").out == "conf.d: OK, 1 test, 0 groups\n"


@pytest.mark.parametrize("options, problem", [
    ("window: 3", 'window: "3" is below 4'),
    ("p_value: 0.2", 'p_value: "0.2" is above 0.1'),
    ("profile: otava, window: 3, p_value: 0.2", None),
    ("detector: modes, modes: 1", "modes: "),
    ("detector: stepfit, algorithm: percent, min_stddev: 2", "min_stddev: the algorithm percent uses no deviation"),
    ("detector: stepfit, algorithm: mannwhitneyu, radius: 6", 'radius: "6" is below 7'),
    ("detector: stepfit, algorithm: mannwhitneyu, threshold: 1", 'threshold: "1": expected a p-value below 1'),
    ("detector: stepfit, algorithm: mannwhitneyu, radius: 7", None),
])
def test_options_without_effect(hunter, tmp_path, options, problem):
    """What could have no effect is an error, with its place."""
    (tmp_path / "hunter.yaml").write_text(f"tests:\n  a: {{type: csv, file: x, detection: {{{options}}}}}\n")
    found = hunter("validate")
    assert found.code == (2 if problem else 0), found.out + found.err
    assert not problem or re.search(r"hunter\.yaml:2:\d+: .*" + re.escape(problem), found.out + found.err), found.out + found.err
