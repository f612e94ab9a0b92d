"""PostgreSQL as a source, and analyze --update-postgres, on a real server with rows of ours at fixed dates."""
import contextlib
import json
import pathlib
import signal
import socket
import threading

import pytest
import servers
from agent import noise
from state_address import state_of

DAYS = 60
SINCE = ("--since", "2024-01-01")


def p99(i, branch="main"):
    """Lower is better; worse by a fifth from day 40 on, and on the branch all along."""
    return 100 * (1.2 if i >= 40 or branch != "main" else 1) * (1 + 0.01 * noise(i))


SCHEMA = """
CREATE TYPE kind AS ENUM ('nightly', 'release');
CREATE TABLE configs (id int PRIMARY KEY, store text NOT NULL);
INSERT INTO configs VALUES (1, 'MEM'), (2, 'ROCKS');
CREATE TABLE results (
  experiment text, config_id int REFERENCES configs, branch varchar(80), kind kind DEFAULT 'nightly', commit text,
  at timestamptz DEFAULT now(), p99 double precision, throughput numeric,
  p99_forward double precision, p99_backward real, p99_p numeric,
  throughput_forward double precision, throughput_backward real, throughput_p numeric);
CREATE TABLE odd (at timestamp, day date, epoch bigint, ms numeric, real4 real, big numeric, small smallint,
  word text, yes boolean, attribute text);
CREATE TABLE written (words text, x double precision);
CREATE ROLE reader LOGIN PASSWORD 'read me';
GRANT SELECT ON results, configs, odd TO reader;
CREATE TABLE secrets (at timestamptz, x int);
"""


def rows():
    for branch in ("main", "feature-x"):
        for i in range(DAYS if branch == "main" else 20):
            # Microseconds, as now() gives them.
            yield (f"('e{branch[0]}{i}', 1, '{branch}', 'c{branch[0]}{i:03d}', "
                   f"timestamptz '2024-01-01 06:00:00.123456+00' + interval '{i} days', {p99(i, branch):.6f}, {5000 + i % 3})")


@pytest.fixture(scope="module")
def server():
    with servers.postgres() as running:
        running.sql(SCHEMA)
        running.sql("INSERT INTO results (experiment, config_id, branch, commit, at, p99, throughput) VALUES "
                    + ",\n".join(rows()))
        yield running


def section(server, more="", user="reader", password="read me"):
    if "connect_timeout" not in more:
        more += ", connect_timeout: 5m"  # a busy machine takes its time
    return f"{{hostname: 127.0.0.1, port: {server.port}, username: {user}, password: '{password}', database: postgres{more}}}"


def config(folder, postgres, tests):
    path = folder / "hunter.yaml"
    path.write_text(f"postgres: {postgres}\ntests:\n{tests}")
    return path


STORE = """
  store:
    type: postgres
    time_column: at
    attributes: [experiment, commit, config_id]
    metrics:
      p99: {direction: -1}
      throughput: {direction: 1, scale: 0.001}
    query: |
      SELECT r.at, r.p99, r.throughput, r.experiment, r.commit, r.config_id
      FROM results r JOIN configs c ON r.config_id = c.id
      WHERE r.branch = %{BRANCH} AND c.store = 'MEM' -- the main one
      ORDER BY r.at;
"""


def analyze(hunter, *arguments, **more):
    return hunter("analyze", *SINCE, *arguments, **more)


def test_points_and_their_change(hunter, tmp_path, server):
    config(tmp_path, section(server), STORE)
    found = analyze(hunter, "store", "--branch", "main")
    assert found.code == 0 and found.err == "", found.err
    lines = found.out.splitlines()
    assert sum(line.startswith("2024-") for line in lines) == DAYS
    assert found.out.count("%") == 1
    change = next(i for i, line in enumerate(lines) if "%" in line)
    assert "+20." in lines[change] or "+19." in lines[change], found.out
    assert lines[change + 2].startswith("2024-02-10 06:00:00 +0000") and "cm040" in lines[change + 2]
    assert lines[3].split()[-1] == "5", "scaled by a thousandth: " + lines[3]


def test_variables_of_otava(hunter, tmp_path, server):
    """Otava's example has no section: the server is in POSTGRES_*, the branch in BRANCH."""
    (tmp_path / "hunter.yaml").write_text(f"tests:\n{STORE}")
    otava = {"POSTGRES_HOSTNAME": "127.0.0.1", "POSTGRES_PORT": str(server.port), "POSTGRES_USERNAME": "reader",
             "POSTGRES_PASSWORD": "read me", "POSTGRES_DATABASE": "postgres", "BRANCH": "main", "PGHOST": "/nowhere"}
    found = analyze(hunter, "store", env=otava)
    assert found.code == 0 and found.out.count("%") == 1 and "cm040" in found.out, found.err
    # Of a section they give what it does not say.
    (tmp_path / "hunter.yaml").write_text(f"postgres: {{hostname: 127.0.0.1, port: {server.port}}}\ntests:\n{STORE}")
    assert analyze(hunter, "store", env=otava | {"POSTGRES_HOSTNAME": "nowhere.invalid", "POSTGRES_PORT": "1"}).out == found.out
    # A server with a name of its own gets no password of theirs, and a password file wins.
    (tmp_path / "hunter.yaml").write_text(
        f"sources: {{other: {{type: postgres, hostname: 127.0.0.1, port: {server.port}, username: reader, database: postgres}}}}\n"
        f"tests:\n{STORE}")
    assert analyze(hunter, "store", env=otava).code == 3
    (tmp_path / "password").write_text("wrong")
    (tmp_path / "hunter.yaml").write_text(f"postgres: {{password_file: {tmp_path}/password}}\ntests:\n{STORE}")
    (tmp_path / "password").chmod(0o600)
    failed = analyze(hunter, "store", env=otava)
    assert failed.code == 3 and "password" in failed.err and "read me" not in failed.err
    # Kubernetes sets such a variable for a service of the name.
    (tmp_path / "hunter.yaml").write_text(f"postgres: {section(server)}\ntests:\n{STORE}")
    linked = analyze(hunter, "store", env=otava | {"POSTGRES_PORT": "tcp://10.0.0.1:5432"})
    assert linked.code == 0 and linked.out == found.out and "$POSTGRES_PORT" in linked.err


def test_commit_and_version_columns(hunter, tmp_path, server):
    config(tmp_path, section(server), STORE.replace("r.commit,", "r.commit AS sha, r.experiment AS release,").replace(
        "attributes: [experiment, commit, config_id]", "commit_column: sha\n    version_column: release\n    attributes: [config_id]"))
    found = json.loads(analyze(hunter, "store", "--branch", "main", "--output", "json").out)["tests"][0]["changes"][0]
    assert found["attributes"] == {"commit": "cm040", "version": "em40", "config_id": "1"}
    config(tmp_path, section(server), STORE.replace("attributes:", "commit_column: sha\n    attributes:"))
    found = analyze(hunter, "store", "--branch", "main")
    assert found.code == 3 and 'no column "sha" for the commit (see commit_column)' in found.err


def test_regressions_and_a_branch(hunter, tmp_path, server):
    config(tmp_path, section(server), STORE.replace("time_column", "base_branch: main\n    time_column"))
    found = hunter("regressions", *SINCE)
    assert found.code == 1 and "p99" in found.out and "throughput" not in found.out, found.out + found.err
    branch = hunter("regressions", "--since", "2024-01-02", "--branch", "feature-x")
    assert branch.code == 1 and "+20." in branch.out or "+19." in branch.out, branch.out + branch.err


def test_the_branch_is_bound(hunter, tmp_path, server):
    """Nothing of what is asked for as a branch becomes SQL, in quotes or not."""
    before = server.sql("SELECT count(*) FROM results")
    attack = "x'; DROP TABLE results; --"
    for place in ("r.branch = %{BRANCH}", "r.branch = '%{BRANCH}'", "r.branch LIKE '%{BRANCH}%'", "r.branch = E'%{BRANCH}'"):
        config(tmp_path, section(server, user="admin", password="secret"), STORE.replace("r.branch = %{BRANCH}", place))
        found = analyze(hunter, "store", "--branch", attack)
        assert found.code == 3 and "returns no rows" in found.err, found.err
        always = analyze(hunter, "store", "--branch", "' OR true OR '")
        assert "returns no rows" in always.err, always.err
    assert server.sql("SELECT count(*) FROM results") == before


@pytest.mark.parametrize("place", [
    "r.branch = '%{BRANCH}'", "r.branch LIKE '%{BRANCH}%' AND r.kind = 'nightly'", "'x' || r.branch = 'x%{BRANCH}'",
    "r.branch = %{BRANCH} AND %{BRANCH} = r.branch::text", "r.branch=%{BRANCH}", "r.branch = E'\\x%{BRANCH}' OR r.branch = %{BRANCH}"])
def test_where_a_branch_may_stand(hunter, tmp_path, server, place):
    config(tmp_path, section(server), STORE.replace("r.branch = %{BRANCH}", f"({place})"))
    found = analyze(hunter, "store", "--branch", "main", "--output", "json")
    assert found.code == 0, found.err
    assert found.out.count('"cm') >= 1 and "feature" not in found.out


def test_an_enum_takes_a_branch(hunter, tmp_path, server):
    config(tmp_path, section(server), STORE.replace("r.branch = %{BRANCH}", "r.kind = '%{BRANCH}' AND 'nightly' = %{BRANCH}"))
    found = analyze(hunter, "store", "--branch", "nightly")
    assert found.code == 0 and "not in order of time" not in found.err, found.err


def test_a_branch_is_needed_or_useless(hunter, tmp_path, server):
    config(tmp_path, section(server), STORE)
    missing = analyze(hunter, "store")
    assert missing.code == 2 and "--branch" in missing.err and "base_branch" in missing.err
    config(tmp_path, section(server), STORE.replace("%{BRANCH}", "'main'"))
    useless = analyze(hunter, "store", "--branch", "main")
    assert useless.code == 0 and "--branch has no effect" in useless.err


def odd(server, *values):
    server.sql("TRUNCATE odd; INSERT INTO odd VALUES " + ", ".join(values))


ODD = "  odd: {type: postgres, time_column: %s, metrics: %s, attributes: [attribute], query: 'SELECT * FROM odd'}\n"


def test_types_and_missing_values(hunter, tmp_path, server):
    odd(server,
        "('2024-01-01 00:00:00', '2024-01-01', 1704067200, 1704067200000.5, 0.1, 12345678901234567890.123, 1, '1e3', true, 'a')",
        "('2024-01-02 00:00:00.5', '2024-01-02', 1704153600, 1704153600000, 'NaN', 'NaN', NULL, 'null', NULL, NULL)",
        "('2024-01-03 00:00:00', '2024-01-03', 1704240000, 1704240000000, 'Infinity', 1e-300, -32768, ' 7 ', false, '')")
    for column in ("at", "day", "epoch", "ms"):
        config(tmp_path, section(server), ODD % (column, "[real4, big, small, word]"))
        found = hunter("analyze", "odd", "--since", "2023-12-01")
        assert found.code == 0 and found.err == "", found.err
        table = [line.split() for line in found.out.splitlines() if line.startswith("2024-01-0")]
        assert [row[:2] for row in table] == [[f"2024-01-0{i}", "00:00:00"] for i in (1, 2, 3)], found.out
        assert table[0][3:] == ["a", "0.1", "1.23457e+19", "1", "1000"], found.out
        assert table[1][3:] == [], found.out
        assert table[2][3:] == ["inf", "1e-300", "-32768", "7"], found.out


def test_rows_out_of_order_and_without_time(hunter, tmp_path, server):
    odd(server, "('2024-01-03', NULL, 1, 1, 3, 3, 3, '', true, 'c')", "('2024-01-01', NULL, 1, 1, 1, 1, 1, '', true, 'a')",
        "(NULL, NULL, 1, 1, 9, 9, 9, '', true, 'z')", "('infinity', NULL, 1, 1, 9, 9, 9, '', true, 'z')")
    config(tmp_path, section(server), ODD % ("at", "[real4]"))
    found = analyze(hunter, "odd")
    assert found.code == 0 and "not in order of time" in found.err and "2 rows without a time" in found.err, found.err
    stamps = [line[:10] for line in found.out.splitlines() if line.startswith("2024")]
    assert stamps == ["2024-01-01", "2024-01-03"]


def test_values_of_the_wrong_kind(hunter, tmp_path, server):
    odd(server, "('2024-01-01', '2024-01-01', 1, 1, 1, 1, 1, 'fast', true, 'a')")
    for metrics, column, words in (("[word]", "at", '"word": "fast" is not a number'), ("[yes]", "at", '"yes": "t" is not a number'),
                                   ("[big]", "word", '"word": "fast" is not a date')):
        config(tmp_path, section(server), ODD % (column, metrics))
        found = analyze(hunter, "odd")
        assert found.code == 3 and words in found.err and "row 1" in found.err and "postgres" in found.err, found.err


def test_without_metrics_all_numbers_are_some(hunter, tmp_path, server):
    odd(server, "('2024-01-01', '2024-01-01', 1, 1, 1, 1, 1, 'fast', true, 'a')")
    config(tmp_path, section(server),
           "  odd: {type: postgres, time_column: at, attributes: [attribute, epoch, at], query: 'SELECT * FROM odd'}\n")
    listed = hunter("list-metrics", "odd")
    assert listed.out.split() == ["ms", "real4", "big", "small"], listed.out + listed.err
    found = analyze(hunter, "odd", "--output", "json")
    assert found.code == 0, found.err
    assert all(name in found.out for name in ('"ms"', '"real4"', '"big"', '"small"')) and '"word"' not in found.out
    found = analyze(hunter, "odd")
    assert "at" in found.out.splitlines()[1].split() and found.out.count("2024-01-01") == 2, found.out  # the time is an attribute, too


@pytest.mark.parametrize("change,words", [
    (("r.throughput,", ""), ['no column "throughput"', 'metric "throughput"']),
    (("r.commit,", ""), ['no column "commit"', "an attribute"]),
    (("time_column: at", "time_column: att"), ['no column "att"', "time_column", 'did you mean "at"']),
    (("r.p99,", "r.p98,"), ["42703", "p98"]),
    (("FROM results r", "FROM result r"), ["42P01", "search_path"]),
    (("FROM results r JOIN", "FROM (SELECT x FROM secrets) AS s, results r JOIN"), ["42501", "grant"]),
    (("SELECT", "SELEKT"), ["42601"]),
    (("ORDER BY r.at;", "; DROP TABLE results"), ["42601", "one statement"]),
    (("WHERE", "WHERE $1 = 2 AND"), ["parameters of its own"]),
    (("WHERE", 'WHERE "%{BRANCH}" = 2 AND'), ["part of a name"]),
    (("r.p99,", "1/0 AS p99,"), ["22012", "division by zero"]),
])
def test_wrong_queries(hunter, tmp_path, server, change, words):
    config(tmp_path, section(server), STORE.replace(*change))
    found = analyze(hunter, "store", "--branch", "main")
    assert found.code in (2, 3) and 'test "store"' in found.err, found.err
    for word in words:
        assert word in found.err, found.err
    assert "read me" not in found.err


@pytest.mark.parametrize("statement", [
    "INSERT INTO written VALUES ('x', 1) RETURNING now() AS at, x AS p99", "DELETE FROM written", "COPY written TO STDOUT",
    "SELECT now() AS at, nextval('counter') AS p99", "COMMIT", "TRUNCATE written", "",
    "WITH gone AS (DELETE FROM written RETURNING x) SELECT now() AS at, x AS p99 FROM gone",
    "SELECT now() AS at, set_config('transaction_read_only', 'off', true) AS p99"])
def test_reading_never_writes(hunter, tmp_path, server, statement):
    server.sql("TRUNCATE written; INSERT INTO written VALUES ('x', 1); CREATE SEQUENCE IF NOT EXISTS counter")
    config(tmp_path, section(server, user="admin", password="secret"),
           f"  odd: {{type: postgres, time_column: at, metrics: [p99], query: \"{statement}\"}}\n")
    found = hunter("analyze", "odd")
    assert found.code in (2, 3), found.out + found.err
    assert server.sql("SELECT count(*), (SELECT is_called FROM counter) FROM written") == ["1|f"]


def test_a_slow_query_is_cancelled_by_the_server(hunter, tmp_path, server):
    for more in (", statement_timeout: 300ms", ", timeout: 1s"):
        config(tmp_path, section(server, more), "  odd: {type: postgres, metrics: [x], query: 'SELECT now() AS time, 1 AS x, pg_sleep(60)'}\n")
        found = hunter("analyze", "odd")
        assert found.code == 3 and "57014" in found.err and "timeout" in found.err, found.err
    assert server.sql("SELECT count(*) FROM pg_stat_activity WHERE query LIKE '%pg_sleep(60)%' AND pid <> pg_backend_pid()") == ["0"]


def test_a_server_that_hangs(hunter, tmp_path, server):
    """Its processes are stopped: it takes connections and says nothing."""
    config(tmp_path, section(server, ", connect_timeout: 300ms"), STORE)
    server.process.send_signal(signal.SIGSTOP)
    try:
        found = analyze(hunter, "store", "--branch", "main")
    finally:
        server.process.send_signal(signal.SIGCONT)
    assert found.code == 3 and "no connection within 300ms (connect_timeout)" in found.err, found.err


@contextlib.contextmanager
def peer(answer, keep=True):
    """A listener that says `answer` to whatever comes, and then nothing more."""
    listener = socket.create_server(("127.0.0.1", 0))
    held = []

    def serve():
        with contextlib.suppress(OSError):
            while True:
                connection, _ = listener.accept()
                connection.recv(100000)
                connection.sendall(answer)
                held.append(connection) if keep else connection.close()

    threading.Thread(target=serve, daemon=True).start()
    try:
        yield listener.getsockname()[1]
    finally:
        listener.close()
        for connection in held:
            connection.close()


@pytest.mark.parametrize("answer,keep,words", [
    (b"", True, "connect_timeout"), (b"HTTP/1.1 400 Bad Request\r\n\r\n", False, "127.0.0.1"), (b"", False, "127.0.0.1"),
    # Logged in at once, then silence: the answer to BEGIN never comes.
    (b"R\0\0\0\x08\0\0\0\0Z\0\0\0\x05I", True, "(timeout)"),
    (b"R\0\0\0\x08\0\0\0\0Z\0\0\0\x05I" + b"T\x7f\xff\xff\xff", True, "127.0.0.1"),
], ids=["silent", "http", "closes", "hangs", "huge"])
def test_what_is_no_server(hunter, tmp_path, answer, keep, words):
    with peer(answer, keep) as port:
        patience = "400ms" if words == "connect_timeout" else "1m"
        config(tmp_path, f"{{hostname: 127.0.0.1, port: {port}, sslmode: disable, connect_timeout: {patience}, timeout: 800ms, "
               "username: a, database: b}", STORE)
        found = analyze(hunter, "store", "--branch", "main")
        assert found.code == 3 and words in found.err and f"127.0.0.1:{port}/b" in found.err, found.err


def test_refusals(hunter, tmp_path, server):
    def error(text, words):
        config(tmp_path, text, STORE)
        found = analyze(hunter, "store", "--branch", "main")
        assert found.code == 3 and 'test "store"' in found.err and "127.0.0.1" in found.err, found.err
        assert "wrong" not in found.err.replace("wrong database", "") and "read me" not in found.err
        for word in words:
            assert word in found.err, found.err

    error(section(server, password="wrong"), ["password authentication failed", "check username and password"])
    error(section(server, password=""), ["no password", "password_file"])
    error(section(server, user="stranger"), ["check username and password"])
    error(section(server, user="nobody"), ["no pg_hba.conf entry"])
    error(section(server).replace("database: postgres", "database: nothing"), ['"nothing" does not exist', "check database"])
    error(section(server).replace(str(server.port), str(servers.free_port())), ["Connection refused", "is a server running"])
    error(section(server).replace("database: postgres", "database: closed"), ["pg_hba.conf"])


def test_the_password_of_a_file_and_of_the_environment(hunter, tmp_path, server):
    (tmp_path / "password").write_text("read me\n")
    without = section(server).replace("password: 'read me', ", "")
    config(tmp_path, without.replace("}", ", password_file: password}"), STORE)
    assert analyze(hunter, "store", "--branch", "main").code == 0
    (tmp_path / "password").write_text("another")
    assert "password authentication failed" in analyze(hunter, "store", "--branch", "main").err
    config(tmp_path, "{}", STORE)
    environment = {"PGHOST": "127.0.0.1", "PGPORT": str(server.port), "PGUSER": "reader", "PGPASSWORD": "read me",
                   "PGDATABASE": "postgres"}
    assert analyze(hunter, "store", "--branch", "main", env=environment).code == 0
    (tmp_path / "hunter.yaml").write_text("tests:" + STORE)
    found = analyze(hunter, "store", "--branch", "main", env=environment)
    assert found.code == 0, found.err
    variables = "{hostname: $POSTGRES_HOSTNAME, port: '${POSTGRES_PORT}', username: reader, password: $SECRET, database: postgres}"
    config(tmp_path, variables, STORE)
    found = analyze(hunter, "store", "--branch", "main",
                    env={"POSTGRES_HOSTNAME": "127.0.0.1", "POSTGRES_PORT": str(server.port), "SECRET": "read me"})
    assert found.code == 0, found.err


def test_the_socket_and_several_servers(hunter, tmp_path, server):
    (tmp_path / "hunter.yaml").write_text(f"""
sources:
  here: {{type: postgres, hostname: {server.folder}, port: {server.port}, username: admin, database: postgres}}
  there: {{type: postgres, hostname: 127.0.0.1, port: {servers.free_port()}, username: admin}}
tests:
  one: {{source: here, time_column: at, metrics: [p99], query: "SELECT at, p99 FROM results ORDER BY at"}}
  two: {{source: there, time_column: at, metrics: [p99], query: "SELECT at, p99 FROM results ORDER BY at"}}
  three: {{type: postgres, time_column: at, metrics: [p99], query: "SELECT at, p99 FROM results ORDER BY at"}}
""")
    found = hunter("validate")
    assert found.code == 2 and 'test "three"' in found.out + found.err, found.out
    path = tmp_path / "hunter.yaml"
    path.write_text("".join(line for line in path.read_text().splitlines(True) if "three" not in line))
    found = analyze(hunter, "one", "two")
    assert found.code == 3 and 'test "two"' in found.err and "2024-02-10" in found.out, found.err


def test_tls(hunter, tmp_path, server):
    tls = section(server, f", sslmode: verify-full, sslrootcert: {server.folder}/server.crt").replace("127.0.0.1", "localhost")
    config(tmp_path, tls, STORE.replace("r.at, r.p99", "r.at, (SELECT ssl::int * 7 FROM pg_stat_ssl WHERE pid = pg_backend_pid()) AS p99"))
    found = analyze(hunter, "store", "--branch", "main")
    assert found.code == 0 and " 7 " in found.out, found.err
    # A certificate to check against is checked, whether sslmode says so or not; this one has no such name.
    config(tmp_path, section(server, f", sslrootcert: {server.folder}/server.crt"), STORE)
    found = analyze(hunter, "store", "--branch", "main")
    assert found.code == 3 and "does not match host name" in found.err and "verify-ca" in found.err, found.err
    config(tmp_path, section(server, ", sslmode: verify-ca, sslrootcert: missing.crt"), STORE)
    found = analyze(hunter, "store", "--branch", "main")
    assert found.code == 3 and "sslrootcert" in found.err, found.err


def test_the_agent_tells_it_once(hunter, tmp_path, server):
    path = config(tmp_path, section(server), STORE.replace("time_column", "base_branch: main\n    time_column"))
    path.write_text(path.read_text() + f"agent: {{state: {state_of(tmp_path)}, max_age: never, group_wait: 0s, listen: '127.0.0.1:0'}}\n")
    first = hunter("run", "--once", "--log-level", "warn")
    assert first.code == 0 and "store" in first.out and "p99" in first.out and "2024-02-10" in first.out, first.out + first.err
    again = hunter("run", "--once", "--log-level", "warn")
    assert again.code == 0 and again.out == "", again.out
    path.write_text(path.read_text().replace(str(server.port), str(servers.free_port())))
    down = hunter("run", "--once", "--log-level", "warn")
    assert down.code == 3 and down.out == "" and "Connection refused" in down.err, down.out + down.err


def test_a_row_cap(hunter, tmp_path, server):
    config(tmp_path, section(server, ", max_rows: 1000"),
           "  odd: {type: postgres, metrics: [x], query: \"SELECT timestamp '2024-01-01' + i * interval '1 s' AS time, i AS x "
           "FROM generate_series(1, 10000) j, generate_series(10000 * j, 10000 * j + 9999) i\"}\n")
    found = analyze(hunter, "odd")
    assert found.code == 3 and "more than 1000 rows" in found.err and "max_rows" in found.err, found.err


def test_a_cap_of_bytes(hunter, tmp_path, server):
    """Rows outside of the range are not counted as rows, and there may be any number of them."""
    config(tmp_path, section(server, ", max_body: 1MB"),
           "  odd: {type: postgres, metrics: [x], query: \"SELECT timestamp '1990-01-01' AS time, i AS x "
           "FROM generate_series(1, 10000) j, generate_series(10000 * j, 10000 * j + 9999) i\"}\n")
    found = analyze(hunter, "odd")
    assert found.code == 3 and "larger than 1000000 bytes" in found.err and "max_body" in found.err, found.err


def test_many_warnings_are_counted(hunter, tmp_path, server):
    server.sql("""CREATE OR REPLACE FUNCTION grumble() RETURNS int LANGUAGE plpgsql AS $$
        BEGIN FOR i IN 1 .. 20000 LOOP RAISE WARNING 'grumble %', i; END LOOP; RETURN 1; END $$""")
    config(tmp_path, section(server), "  odd: {type: postgres, metrics: [x], query: \"SELECT timestamp '2024-01-01' AS time, grumble() AS x\"}\n")
    found = analyze(hunter, "odd")
    assert found.code == 0 and found.err.count("grumble ") == 99 and "19901 more notices were left out" in found.err, found.err


UPDATE = STORE.replace("    metrics:", """    update_statement: |
      UPDATE results
        SET {metric}_forward=%s, {metric}_backward=%s, {metric}_p=%s
      WHERE experiment = '{experiment}' AND config_id = {config_id} AND at = '{at}'
    metrics:""")
NOT_NULL = "SELECT experiment, p99_forward, p99_backward, p99_p < 0.001 FROM results WHERE p99_p IS NOT NULL"


def test_update(hunter, tmp_path, server):
    config(tmp_path, section(server, user="admin", password="secret"), UPDATE)
    found = analyze(hunter, "store", "--branch", "main", "--update-postgres")
    assert found.code == 0 and "changes=1 rows=1" in found.err, found.err
    (row,) = server.sql(NOT_NULL)
    experiment, forward, backward, small = row.split("|")
    assert experiment == "em40" and small == "t"
    assert abs((1 + float(forward) / 100) * (1 + float(backward) / 100) - 1) < 1e-6 and 19 < float(forward) < 21
    server.sql("UPDATE results SET p99_forward = NULL, p99_backward = NULL, p99_p = NULL")
    # Cut at both ends: the row is still the right one.
    found = hunter("analyze", "store", "--branch", "main", "--update-postgres", "--since", "2024-01-15", "--last", "40")
    assert found.code == 0 and server.sql(NOT_NULL)[0].startswith("em40|"), found.err
    server.sql("UPDATE results SET p99_forward = NULL, p99_backward = NULL, p99_p = NULL")
    assert analyze(hunter, "store", "--branch", "main").code == 0 and server.sql(NOT_NULL) == []


def test_an_update_cannot_be_broken_out_of(hunter, tmp_path, server):
    evil = "x'; DROP TABLE written; --"
    server.sql("TRUNCATE written")
    config(tmp_path, section(server, user="admin", password="secret"), """
  store:
    type: postgres
    time_column: at
    attributes: [evil]
    update_statement: INSERT INTO written VALUES ('{metric}/{evil}%%s{{}}', %s)
    metrics: {"a'b": {column: p99}}
    query: |
      SELECT at, p99, 'x''; DROP TABLE written; --'::text AS evil FROM results WHERE branch = 'main' ORDER BY at
""")
    found = analyze(hunter, "store", "--update-postgres")
    assert found.code == 0 and "rows=1" in found.err, found.err
    assert server.sql("SELECT words FROM written") == ["a'b/" + evil + "%%s{}"]


def test_updates_that_fail_change_nothing(hunter, tmp_path, server):
    config(tmp_path, section(server), UPDATE)
    found = analyze(hunter, "store", "--branch", "main", "--update-postgres")
    assert found.code == 3 and "not updated" in found.err and "42501" in found.err and "%" in found.out, found.err
    assert server.sql(NOT_NULL) == []
    config(tmp_path, section(server, user="admin", password="secret"), UPDATE.replace("{config_id}", "{config_id} + 1"))
    found = analyze(hunter, "store", "--branch", "main", "--update-postgres")
    assert found.code == 0 and "wrote no row for p99 at 2024-02-10" in found.err, found.err


@pytest.mark.parametrize("change,words", [
    (("'{experiment}'", "'{experimnt}'"), "{experimnt}"), (("=%s", "=%s + %s"), "a fourth %s"),
    (("    update_statement: |", "    notes: |"), "update_statement"), (("      p99: {", "      'p 99': {column: p99, "), "double quotes"),
    (("= '{at}'", "= $q$ {at}$q$"), "single quotes"), (("'{at}'", "x{at}$"), "with a $"),
])
def test_wrong_update_statements_are_told_before_reading(hunter, tmp_path, change, words):
    config(tmp_path, f"{{hostname: 127.0.0.1, port: {servers.free_port()}}}", UPDATE.replace(*change))
    found = analyze(hunter, "store", "--branch", "main", "--update-postgres")
    assert found.code == 2 and words in found.err and 'test "store"' in found.err, found.err


def test_tests_of_other_types_are_not_updated(hunter, tmp_path):
    (tmp_path / "data.csv").write_text("time,x\n2024-01-01,1\n")
    (tmp_path / "hunter.yaml").write_text("tests: {file: {type: csv, file: data.csv, metrics: [x]}}\n")
    found = analyze(hunter, "file", "--update-postgres")
    assert found.code == 2 and "none of the tests is of type postgres" in found.err


def test_the_shipped_example(hunter, server):
    """conf/postgres.yaml is right, and works on the tables that its comments describe."""
    example = pathlib.Path(__file__).parents[2] / "conf" / "postgres.yaml"
    text = example.read_text()
    found = hunter("validate", "--config", str(example))
    assert found.code == 0 and "warning" not in found.out, found.out
    sql = "\n".join(line[4:] for line in text.split("\n\n")[0].splitlines() if line.startswith("#   "))
    server.sql("CREATE DATABASE example")
    server.sql(sql, "example")
    found = analyze(hunter, "--config", str(example), "store.read", "--update-postgres",
                    env={"PGHOST": str(server.folder), "PGPORT": str(server.port), "PGUSER": "admin", "PGDATABASE": "example"})
    assert found.code == 0 and "+1" in found.out and "rows=" in found.err, found.out + found.err
