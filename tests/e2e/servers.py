"""Real servers for the tests: started on a free port of the loopback with history of our own, stopped by their process.

    with servers.prometheus(tmp_path, openmetrics(...)) as server:
        server.url      # http://127.0.0.1:PORT
"""
import contextlib
import email
import email.policy
import fcntl
import functools
import glob
import http.server
import json
import os
import pathlib
import pwd
import random
import re
import shutil
import signal
import smtplib
import socket
import subprocess
import tempfile
import threading
import urllib.error
import urllib.parse
import urllib.request

import pytest
from waiting import GLANCE, LONGEST, wait


def _ports():
    """From which ports of the tests come: below those that the system gives to whoever asks for any."""
    with contextlib.suppress(OSError):
        return range(10000, int(pathlib.Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split()[0]))
    return range(10000, 32768)


def free_port():
    """A port nobody listens on, nor will: the system gives it to nobody, and no other test of the run (HUNTER_TEST_RUN) gets it.
    A stranger may take it all the same, so whoever starts a server tries again."""
    run, ports = os.environ.get("HUNTER_TEST_RUN"), _ports()
    while True:
        port = random.SystemRandom().choice(ports)
        with contextlib.suppress(OSError), socket.socket() as probe:
            probe.bind(("127.0.0.1", port))
            if run:
                pathlib.Path(run, f"taken-{port}").touch(exist_ok=False)
            return port


def openmetrics(families):
    """The text that promtool imports. `families` maps a metric's name to rows (labels as a dict, value, time in s)."""
    lines = []
    for name, rows in families.items():
        lines.append(f"# TYPE {name} gauge")
        for labels, value, stamp in rows:
            inside = ",".join('%s="%s"' % (k, str(v).replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n"))
                              for k, v in labels.items())
            lines.append(f"{name}{{{inside}}} {value} {stamp}")
    return "\n".join(lines) + "\n# EOF\n"


def end(process, how=signal.SIGTERM, harder=signal.SIGKILL):
    """Ends a server: asked first, and made to if that takes too long."""
    process.send_signal(how)
    try:
        process.wait(LONGEST)
    except subprocess.TimeoutExpired:
        process.send_signal(harder)
        process.wait(LONGEST)


def _comes_up(server, ready):
    """Whether a server that was just started is ready; False if it ended instead, as one does whose port was taken meanwhile."""
    try:
        wait(lambda: server.process.poll() is not None or ready(), lambda: "a server does not get ready")
    except BaseException:
        server.process.kill()
        server.process.wait()
        raise
    return server.process.poll() is None


class Server:
    def __init__(self, process, port, folder, scheme="http"):
        self.process, self.port, self.folder = process, port, folder
        self.url = f"{scheme}://127.0.0.1:{port}"

    def stop(self):
        end(self.process)


def _answers(url):
    """Whether the server speaks: any status but the one it gives while it starts."""
    try:
        with urllib.request.urlopen(url, timeout=GLANCE):
            return True
    except urllib.error.HTTPError as error:
        return error.code != 503
    except OSError:
        return False


def _start_prometheus(folder, arguments):
    """A running server, or None if its port was taken meanwhile."""
    port = free_port()
    with open(folder / "prometheus.log", "w") as log:
        process = subprocess.Popen(
            ["prometheus", f"--config.file={folder}/prometheus.yml", f"--storage.tsdb.path={folder}/data",
             "--storage.tsdb.retention.time=100y", f"--web.listen-address=127.0.0.1:{port}", *arguments],
            stdout=log, stderr=log, stdin=subprocess.DEVNULL)
    server = Server(process, port, folder)
    return server if _comes_up(server, lambda: _answers(f"{server.url}/-/ready")) else None


@contextlib.contextmanager
def prometheus(tmp_path, history, arguments=(), scrape=""):
    """A Prometheus that holds `history` (OpenMetrics text; see openmetrics) and scrapes nothing but what `scrape` says (YAML).

    Blocks may span weeks: one for every two hours, promtool's default, takes 80 ms of processor time and a wait for the disk each.
    """
    if not shutil.which("prometheus") or not shutil.which("promtool"):
        pytest.skip("prometheus is not installed (Debian: apt install prometheus)")
    folder = tmp_path / "prometheus"
    folder.mkdir()
    (folder / "prometheus.yml").write_text("global: {scrape_interval: 1m}\n" + scrape)
    (folder / "history.txt").write_text(history)
    subprocess.run(["promtool", "tsdb", "create-blocks-from", "openmetrics", "--quiet", "--max-block-duration=1000h",
                    folder / "history.txt", folder / "data"], check=True, capture_output=True, timeout=LONGEST)
    server = None
    for _ in range(3):
        server = server or _start_prometheus(folder, arguments)
    assert server, (folder / "prometheus.log").read_text()
    try:
        yield server
    finally:
        server.stop()


def _start_victoria(folder):
    """A running server, or None if its port was taken meanwhile."""
    port = free_port()
    with open(folder / "victoria.log", "w") as log:
        process = subprocess.Popen(
            ["victoria-metrics", f"-storageDataPath={folder}/data", f"-httpListenAddr=127.0.0.1:{port}", "-retentionPeriod=100y",
             "-search.latencyOffset=0s"], stdout=log, stderr=log, stdin=subprocess.DEVNULL)
    server = Server(process, port, folder)
    return server if _comes_up(server, lambda: _answers(f"{server.url}/health")) else None


@contextlib.contextmanager
def victoria(tmp_path, history):
    """A VictoriaMetrics that holds `history`: rows of (labels with __name__, values, time stamps in ms)."""
    if not shutil.which("victoria-metrics"):
        pytest.skip("VictoriaMetrics is not installed (Debian: apt install victoria-metrics)")
    folder = tmp_path / "victoria"
    folder.mkdir()
    server = None
    for _ in range(3):
        server = server or _start_victoria(folder)
    assert server, (folder / "victoria.log").read_text()
    try:
        lines = "".join(json.dumps({"metric": labels, "values": values, "timestamps": stamps}) + "\n"
                        for labels, values, stamps in history)
        for path, body in (("api/v1/import", lines.encode()), ("internal/force_flush", None)):
            with urllib.request.urlopen(f"{server.url}/{path}", data=body, timeout=LONGEST) as answer:
                assert answer.status in (200, 204)
        yield server
    finally:
        server.stop()


class Alertmanager(Server):
    """Its alerts, and `told`: the notifications that it has sent, as JSON documents."""

    def alerts(self, **state):
        """Those of some state only: active=True, silenced=False, ..."""
        query = urllib.parse.urlencode({k: str(v).lower() for k, v in state.items()})
        with urllib.request.urlopen(f"{self.url}/api/v2/alerts?{query}", timeout=LONGEST) as answer:
            return json.load(answer)

    def post(self, *alerts):
        request = urllib.request.Request(f"{self.url}/api/v2/alerts", json.dumps(alerts).encode(), {"Content-Type": "application/json"})
        urllib.request.urlopen(request, timeout=LONGEST).read()

    def tool(self, *arguments):
        done = subprocess.run(["amtool", f"--alertmanager.url={self.url}", *arguments], capture_output=True, text=True, timeout=LONGEST)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def wait(self, condition):
        wait(condition, lambda: json.dumps(self.told, indent=1))

    def statuses(self, **labels):
        """(test, status) of all alerts of all notifications, in order, of those with these labels."""
        return [(a["labels"].get("test"), a["status"]) for told in self.told for a in told["alerts"] if labels.items() <= a["labels"].items()]


def _alertmanager_program(folder):
    """The program; one that was unpacked and not installed is copied, as it looks for its templates in /usr/share only."""
    found = pathlib.Path(shutil.which("prometheus-alertmanager")).resolve()
    share = "usr/share/prometheus/alertmanager"
    if pathlib.Path("/", share, "default.tmpl").exists():
        return found
    templates = found.parents[2] / share
    if not (templates / "default.tmpl").exists():
        pytest.skip("Alertmanager's templates are not where its package has them")
    for template in templates.glob("*.tmpl"):
        shutil.copy(template, folder)
    here = found.read_bytes()
    here = re.sub(rb"/usr/share/prometheus/alertmanager(?!/)", lambda m: b"." + b"/" * (len(m[0]) - 1), here)
    (folder / "alertmanager").write_bytes(here)
    (folder / "alertmanager").chmod(0o755)
    return folder / "alertmanager"


def _start_alertmanager(folder, program, arguments):
    """A running server, or None if its port was taken meanwhile."""
    port = free_port()
    with open(folder / "alertmanager.log", "w") as log:
        process = subprocess.Popen(
            [program, "--config.file=alertmanager.yml", "--storage.path=data", f"--web.listen-address=127.0.0.1:{port}",
             "--cluster.listen-address=", *arguments], stdout=log, stderr=log, stdin=subprocess.DEVNULL, cwd=folder)
    server = Alertmanager(process, port, folder)
    listens = lambda: "Listening on" in (folder / "alertmanager.log").read_text()  # noqa: E731 (asked over HTTP it may want a password)
    return server if _comes_up(server, listens) else None


@contextlib.contextmanager
def alertmanager(tmp_path, route="group_by: [alertname], group_wait: 500ms", more="", arguments=(), name="alertmanager", whole=None):
    """An Alertmanager that tells `told`. `route` and `more` go into its configuration, or it is `whole`, for a webhook on port 5001."""
    if not shutil.which("prometheus-alertmanager") or not shutil.which("amtool"):
        pytest.skip("Alertmanager is not installed (Debian: apt install prometheus-alertmanager)")
    folder = tmp_path / name
    folder.mkdir()
    told, changed = [], threading.Condition()

    class Sink(http.server.BaseHTTPRequestHandler):
        def do_POST(self):
            document = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            self.send_response(200)
            self.end_headers()
            with changed:
                told.append(document)
                changed.notify_all()

        def log_message(self, *_):
            pass

    sink = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Sink)
    threading.Thread(target=sink.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()
    (folder / "alertmanager.yml").write_text(whole.replace("127.0.0.1:5001", f"127.0.0.1:{sink.server_address[1]}") if whole else f"""
route: {{receiver: sink, group_interval: 1s, repeat_interval: 1h, {route}}}
receivers: [{{name: sink, webhook_configs: [{{url: "http://127.0.0.1:{sink.server_address[1]}/", send_resolved: true}}]}}]
{more}
""")
    server = None
    try:
        program = _alertmanager_program(folder)
        for _ in range(3):
            server = server or _start_alertmanager(folder, program, arguments)
        assert server, (folder / "alertmanager.log").read_text()
        server.told, server.changed = told, changed
        yield server
    finally:
        if server:
            server.stop()
        sink.shutdown()
        sink.server_close()


class Postgres:
    """A running cluster: user "admin" with password "secret" may do all; `folder` has the socket, which trusts."""

    host, user, password = "127.0.0.1", "admin", "secret"

    def __init__(self, process, port, folder, tools):
        self.process, self.port, self.folder, self.tools = process, port, folder, tools

    def sql(self, text, database="postgres"):
        """Runs statements as admin; returns the rows, fields separated by |."""
        done = subprocess.run(
            [self.tools / "psql", "-X", "-q", "-A", "-t", "-v", "ON_ERROR_STOP=1", "-h", self.folder, "-p", str(self.port),
             "-U", self.user, "-d", database, "-f", "-"], input=text, capture_output=True, text=True, timeout=LONGEST)
        assert done.returncode == 0, done.stderr
        return done.stdout.splitlines()

    def stop(self):
        end(self.process, signal.SIGINT, signal.SIGQUIT)  # the fast way: open sessions are ended


def postgres_tools():
    """The folder of initdb, postgres and psql: in PATH, or where Debian keeps it out of it."""
    folders = sorted(glob.glob("/usr/lib/postgresql/*/bin"), key=lambda f: int(f.split("/")[4]))
    for folder in os.environ["PATH"].split(":") + folders[::-1]:
        if all((pathlib.Path(folder) / name).is_file() for name in ("initdb", "postgres", "psql")):
            return pathlib.Path(folder)
    return None


def _unprivileged():
    """PostgreSQL and Exim do not run as root: the user they run as instead, or None."""
    if os.getuid() != 0:
        return None
    for name in ("postgres", "nobody"):
        with contextlib.suppress(KeyError):
            return pwd.getpwnam(name)
    return pytest.skip("root, and no other user to run the server as")


def certificate(folder):
    """server.crt and server.key for localhost, signed by itself."""
    subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "30", "-subj", "/CN=localhost",
                    "-addext", "subjectAltName=DNS:localhost", "-keyout", folder / "server.key", "-out", folder / "server.crt"],
                   check=True, capture_output=True, timeout=LONGEST)
    (folder / "server.key").chmod(0o600)


HBA = """
local     all     all                    trust
hostnossl encrypted all  127.0.0.1/32     reject
host      closed  all    127.0.0.1/32     reject
host      all     admin,reader,stranger  127.0.0.1/32     scram-sha-256
host      all     admin,reader,stranger  ::1/128          scram-sha-256
"""


def _speaks(server, otherwise):
    """Whether a PostgreSQL answers, and not by an exception of this kind."""
    with contextlib.suppress(otherwise):
        server.sql("SELECT 1")
        return True
    return False


def _start_postgres(folder, tools, user):
    """A running cluster of the folder's data, or None if its port was taken meanwhile."""
    port = free_port()
    with open(folder / "server.log", "w") as log:
        process = subprocess.Popen(
            [tools / "postgres", "-D", folder / "data", "-p", str(port), "-c", "listen_addresses=127.0.0.1",
             "-c", f"unix_socket_directories={folder}", "-c", "fsync=off", "-c", "ssl=on",
             "-c", f"ssl_cert_file={folder}/server.crt", "-c", f"ssl_key_file={folder}/server.key"],
            stdout=log, stderr=log, stdin=subprocess.DEVNULL, cwd=folder, **user)
    server = Postgres(process, port, folder, tools)
    return server if _comes_up(server, lambda: _speaks(server, AssertionError)) else None


@contextlib.contextmanager
def postgres():
    """An empty PostgreSQL with TLS, on a free port of the loopback, in a folder of its own that its user can reach."""
    tools = postgres_tools()
    if not tools or not shutil.which("openssl"):
        pytest.skip("PostgreSQL's server or openssl is not installed (Debian: apt install postgresql openssl)")
    account = _unprivileged()
    user = {"user": account.pw_uid, "group": account.pw_gid, "extra_groups": []} if account else {}
    folder = pathlib.Path(tempfile.mkdtemp(prefix="hunter-postgres-"))
    server = None
    try:
        certificate(folder)
        (folder / "password").write_text("secret")
        for path in (folder, *folder.iterdir()):
            os.chown(path, account.pw_uid, account.pw_gid) if account else None
        subprocess.run([tools / "initdb", "-D", folder / "data", "-U", "admin", "--pwfile", folder / "password", "-E", "UTF8",
                        "--locale=C", "-A", "scram-sha-256", "--no-sync"], check=True, capture_output=True, timeout=LONGEST,
                       cwd=folder, **user)
        (folder / "data" / "pg_hba.conf").write_text(HBA)
        for _ in range(3):
            server = server or _start_postgres(folder, tools, user)
        assert server, (folder / "server.log").read_text()
        yield server
    finally:
        if server:
            server.stop()
        shutil.rmtree(folder)


# Keeps servers from outliving the run that started them, whatever ends it: waits for its end, then ends those whose numbers are
# in the folder (NAME.pid, and PostgreSQL's own notes), and removes the folder.
KEEPER = """
trap '' INT TERM HUP
tail --pid="$1" -f /dev/null
for file in "$2"/*.pid; do [ ! -f "$file" ] || kill "$(head -n 1 "$file")"; done
for file in "$2"/postmaster.pid "$2"/*/postmaster.pid; do [ ! -f "$file" ] || kill -QUIT "$(head -n 1 "$file")"; done
rm -rf "$2"
"""


class Folder:
    """A folder in which servers run as another user than root; it goes, and they with it, when the run is over."""

    def __init__(self, name, owner=None, where=None):
        self.account = _unprivileged()
        self.path = pathlib.Path(tempfile.mkdtemp(prefix=f"hunter-{name}-", dir=where))
        self.path.chmod(0o755)
        self.own(self.path)
        self.keeper = subprocess.Popen(["sh", "-c", KEEPER, "sh", str(owner or os.getpid()), self.path], stdin=subprocess.DEVNULL,
                                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True, cwd="/")

    def own(self, path):
        if self.account:
            os.chown(path, self.account.pw_uid, self.account.pw_gid)

    def write(self, name, text):
        path = self.path / name
        path.write_text(text)
        self.own(path)
        return path

    def user(self):
        """What subprocess needs to run something here."""
        account = self.account
        return {"cwd": self.path} | ({"user": account.pw_uid, "group": account.pw_gid, "extra_groups": []} if account else {})

    def start(self, name, *command, env=None):
        """Starts a process that logs to NAME.log; the keeper knows it by NAME.pid."""
        with open(self.path / f"{name}.log", "a") as log:
            process = subprocess.Popen([str(word) for word in command], stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                                       start_new_session=True, env=os.environ | (env or {}), **self.user())
        (self.path / f"{name}.pid").write_text(f"{process.pid}\n")
        return process

    def ended(self, name):
        (self.path / f"{name}.pid").unlink(missing_ok=True)

    def remove(self):
        os.killpg(self.keeper.pid, signal.SIGKILL)
        self.keeper.wait()
        shutil.rmtree(self.path, ignore_errors=True)


class StatePostgres:
    """A running PostgreSQL for states: user "hunter" needs no password and may create databases, "admin" may do all."""

    def __init__(self, folder, process, port, tools):
        self.folder, self.process, self.port, self.tools, self.maker = folder, process, port, tools, None

    def address(self, database="postgres"):
        return f"postgresql://hunter@127.0.0.1:{self.port}/{database}"

    def connect(self, database="postgres", user="admin"):
        """A psycopg2 connection without transactions of its own."""
        connection = psycopg2().connect(host="127.0.0.1", port=self.port, user=user, dbname=database, connect_timeout=LONGEST)
        connection.autocommit = True
        return connection

    def sql(self, text, database="postgres"):
        """Runs a statement as admin; its rows as tuples, None if it has none."""
        with contextlib.closing(self.connect(database)) as connection, connection.cursor() as cursor:
            cursor.execute(text)
            return cursor.fetchall() if cursor.description else None

    def create(self, database=None):
        """The address of a new, empty database that belongs to hunter."""
        database = database or "state_" + os.urandom(6).hex()
        self.maker = self.maker or self.connect()
        strategy = " STRATEGY FILE_COPY" if self.maker.server_version >= 150000 else ""  # what older ones do: half as long
        with self.maker.cursor() as cursor:
            cursor.execute(f"CREATE DATABASE {database} OWNER hunter{strategy}")
        return self.address(database)

    def stop(self):
        end(self.process, signal.SIGINT, signal.SIGQUIT)
        self.folder.ended("postgres")


def psycopg2():
    """Python's client of PostgreSQL."""
    return pytest.importorskip("psycopg2", reason="psycopg2 is not installed (Debian: apt install python3-psycopg2)")


# As quick as it gets: nothing of it has to survive the machine.
QUICK = ("fsync=off", "full_page_writes=off", "synchronous_commit=off", "max_connections=600", "shared_buffers=64MB", "max_wal_size=256MB",
         "dynamic_shared_memory_type=mmap")

STATE_HBA = "local all all trust\nhost all all 127.0.0.1/32 trust\nhost replication all 127.0.0.1/32 trust\n"


def _memory():
    """A folder in memory, if there is one with room for some hundred databases: to make one there takes a tenth of the time."""
    with contextlib.suppress(OSError):
        room = os.statvfs("/dev/shm")
        if room.f_bavail * room.f_frsize > 4 << 30:
            return "/dev/shm"
    return None


def _listens(port):
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def _start_state_postgres(folder, tools, settings):
    """A running server of the folder's data, or None if its port was taken meanwhile."""
    port = free_port()
    options = [word for setting in (*QUICK, *settings) for word in ("-c", setting)]
    process = folder.start("postgres", tools / "postgres", "-D", folder.path / "data", "-p", port, "-c", "listen_addresses=127.0.0.1",
                           "-c", f"unix_socket_directories={folder.path}", *options)
    server = StatePostgres(folder, process, port, tools)
    return server if _comes_up(server, lambda: _speaks(server, psycopg2().OperationalError)) else None


def start_state_postgres(owner=None, settings=(), where=None):
    """A PostgreSQL for states that lasts as long as process `owner` (this one); see state_postgres."""
    tools = postgres_tools()
    if not tools:
        pytest.skip("PostgreSQL's server is not installed (Debian: apt install postgresql)")
    psycopg2()
    folder, server = Folder("state", owner, where or _memory()), None
    try:
        subprocess.run([tools / "initdb", "-D", folder.path / "data", "-U", "admin", "-E", "UTF8", "--locale=C", "-A", "trust", "--no-sync"],
                       check=True, capture_output=True, timeout=LONGEST, **folder.user())
        (folder.path / "data" / "pg_hba.conf").write_text(STATE_HBA)
        for _ in range(3):
            server = server or _start_state_postgres(folder, tools, settings)
        assert server, (folder.path / "postgres.log").read_text()
        server.sql("CREATE ROLE hunter LOGIN CREATEDB IN ROLE pg_signal_backend")  # autovacuum may be in a database that it drops
    except BaseException:
        if server:
            server.stop()
        folder.remove()
        raise
    return server


@contextlib.contextmanager
def state_postgres(settings=(), where=None):
    """An empty PostgreSQL for states, on a free port of the loopback; `settings` are its own, as "name=value"; in a folder in `where`."""
    server = start_state_postgres(settings=settings, where=where)
    try:
        yield server
    finally:
        server.stop()
        server.folder.remove()


# A PostgreSQL that all tests of a run share, each with databases of its own, in front of it a PgBouncer. The first that asks starts
# them. The runner (tests/conftest.py) names a folder for their ports in HUNTER_TEST_RUN, and itself in HUNTER_TEST_RUNNER.


def _shared(name, start):
    """What start() returns (a port), called once a run."""
    run = pathlib.Path(os.environ["HUNTER_TEST_RUN"])
    with open(run / f"{name}.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        noted = run / f"{name}.port"
        if not noted.exists():
            noted.write_text(str(start(int(os.environ["HUNTER_TEST_RUNNER"])).port))
    return int(noted.read_text())


@functools.cache
def run_postgres():
    """The run's StatePostgres."""
    return StatePostgres(None, None, _shared("postgres", start_state_postgres), postgres_tools())


@functools.cache
def run_pgbouncer():
    """The run's Bouncer."""
    postgres = run_postgres()
    return Bouncer(None, None, _shared("pgbouncer", lambda owner: start_pgbouncer(postgres, owner)))


# Only what the protocol needs: a client that asks for more when it connects is refused, and no session outlives a transaction.
BOUNCER = """
[databases]
* = host=127.0.0.1 port={behind}
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = {port}
unix_socket_dir =
auth_type = trust
auth_file = {folder}/users
pool_mode = transaction
max_client_conn = 2000
default_pool_size = 8
server_idle_timeout = 5
server_lifetime = 60
"""


class Bouncer:
    """A running PgBouncer, in transaction mode."""

    def __init__(self, folder, process, port):
        self.folder, self.process, self.port = folder, process, port

    def address(self, database="postgres"):
        return f"postgresql://hunter@127.0.0.1:{self.port}/{database}"

    def stop(self):
        end(self.process)
        self.folder.ended("pgbouncer")


def start_pgbouncer(postgres, owner=None):
    """A PgBouncer that lasts as long as process `owner` (this one); see pgbouncer."""
    program = shutil.which("pgbouncer", path=os.environ["PATH"] + ":/usr/sbin")
    if not program:
        pytest.skip("pgbouncer is not installed (Debian: apt install pgbouncer)")
    folder = Folder("pgbouncer", owner)
    try:
        shutil.copy(program, folder.path / "pgbouncer")  # where its user can reach it
        folder.write("users", '"hunter" ""\n"admin" ""\n')
        for _ in range(3):
            port = free_port()
            folder.write("pgbouncer.ini", BOUNCER.format(behind=postgres.port, port=port, folder=folder.path))
            process = folder.start("pgbouncer", folder.path / "pgbouncer", folder.path / "pgbouncer.ini")
            server = Bouncer(folder, process, port)
            if _comes_up(server, lambda: _listens(port)):  # noqa: B023
                return server
        raise AssertionError((folder.path / "pgbouncer.log").read_text())
    except BaseException:
        folder.remove()
        raise


@contextlib.contextmanager
def pgbouncer(postgres):
    """A PgBouncer in transaction mode in front of a StatePostgres."""
    server = start_pgbouncer(postgres)
    try:
        yield server
    finally:
        server.stop()
        server.folder.remove()


PATRONI = """
scope: hunter
name: {name}
restapi: {{listen: "127.0.0.1:{rest}", connect_address: "127.0.0.1:{rest}"}}
etcd3: {{hosts: [{etcds}]}}
log: {{level: INFO}}
bootstrap:
  dcs:
    ttl: {ttl}
    loop_wait: 1
    retry_timeout: 3
    primary_start_timeout: 0
    synchronous_mode: true
    synchronous_mode_strict: true
    postgresql:
      use_pg_rewind: true
      parameters: {{dynamic_shared_memory_type: mmap, max_connections: 300, shared_buffers: 32MB, fsync: "off", full_page_writes: "on", wal_log_hints: "on", max_wal_senders: 10}}
  initdb: [{{encoding: UTF8}}, {{locale: C}}, {{username: admin}}, no-sync]
postgresql:
  listen: 127.0.0.1:{port}
  connect_address: 127.0.0.1:{port}
  data_dir: {folder}/{name}
  bin_dir: {tools}
  pgpass: {folder}/{name}.pgpass
  authentication: {{superuser: {{username: admin}}, replication: {{username: admin}}, rewind: {{username: admin}}}}
  parameters: {{unix_socket_directories: "{folder}"}}
  pg_hba: [local all all trust, host all all 127.0.0.1/32 trust, host replication all 127.0.0.1/32 trust]
  remove_data_directory_on_rewind_failure: true
  remove_data_directory_on_diverged_timelines: true
"""


class Patroni:
    """Three nodes of PostgreSQL under Patroni, with an etcd for each: a commit is on two of them before it is answered."""

    names = ("n1", "n2", "n3")

    def __init__(self, folder, tools, ttl):
        self.folder, self.tools, self.processes = folder, tools, {}
        self.ports = {name: free_port() for name in self.names}
        rest = {name: free_port() for name in self.names}
        self.rest = {name: f"http://127.0.0.1:{port}" for name, port in rest.items()}
        self.etcd = {name: (free_port(), free_port()) for name in self.names}
        etcds = ", ".join(f'"127.0.0.1:{client}"' for client, _ in self.etcd.values())
        for name in self.names:
            folder.write(f"{name}.yml", PATRONI.format(name=name, rest=rest[name], etcds=etcds, ttl=ttl, port=self.ports[name],
                                                       folder=folder.path, tools=tools))

    def address(self, database="hunter"):
        hosts = ",".join(f"127.0.0.1:{port}" for port in self.ports.values())
        return f"postgresql://hunter@{hosts}/{database}?target_session_attrs=read-write"

    def start_etcd(self, program):
        peers = ",".join(f"{name}=http://127.0.0.1:{peer}" for name, (_, peer) in self.etcd.items())
        for name, (client, peer) in self.etcd.items():
            self.processes["etcd-" + name] = self.folder.start(
                "etcd-" + name, program, "--name", name, "--data-dir", self.folder.path / f"etcd-{name}",
                "--listen-client-urls", f"http://127.0.0.1:{client}", "--advertise-client-urls", f"http://127.0.0.1:{client}",
                "--listen-peer-urls", f"http://127.0.0.1:{peer}", "--initial-advertise-peer-urls", f"http://127.0.0.1:{peer}",
                "--initial-cluster", peers, "--heartbeat-interval", "250", "--election-timeout", "2500", "--logger", "zap",
                env={"ETCD_UNSUPPORTED_ARCH": "arm64"} if os.uname().machine == "aarch64" else None)

    def start(self, name):
        """Starts a node, for the first time or after it was killed."""
        libraries = [str(self.folder.path / "python"), *filter(None, [os.environ.get("PYTHONPATH")])]
        self.processes[name] = self.folder.start(name, "/usr/bin/python3", "-m", "patroni", self.folder.path / f"{name}.yml",
                                                 env={"PYTHONPATH": ":".join(libraries)})

    def says(self, name):
        """What a node says of itself, {} while it says nothing."""
        try:
            with urllib.request.urlopen(self.rest[name] + "/patroni", timeout=GLANCE) as answer:
                return json.load(answer)
        except urllib.error.HTTPError as error:
            return json.loads(error.read() or b"{}")
        except (OSError, ValueError):
            return {}

    def primary(self):
        """The name of the node that takes writes, None while there is none."""
        for name in self.names:
            said = self.says(name)
            if said.get("role") in ("master", "primary") and said.get("state") == "running":
                return name
        return None

    def wait(self, condition):
        return wait(condition, self.log)

    def wait_whole(self):
        """Until all nodes run, and the primary has a synchronous standby."""
        self.wait(lambda: all(self.says(name).get("state") == "running" for name in self.names) and self.primary())
        self.wait(lambda: self.sql("SELECT count(*) FROM pg_stat_replication WHERE sync_state = 'sync'") == [(1,)])

    def connect(self, database="postgres"):
        ports = ",".join(str(port) for port in self.ports.values())
        connection = psycopg2().connect(host="127.0.0.1,127.0.0.1,127.0.0.1", port=ports, user="admin", dbname=database,
                                        target_session_attrs="read-write", connect_timeout=GLANCE)
        connection.autocommit = True
        return connection

    def sql(self, text, database="postgres"):
        """Runs a statement at the primary; None while there is none."""
        with contextlib.suppress(psycopg2().OperationalError), contextlib.closing(self.connect(database)) as connection:
            with connection.cursor() as cursor:
                cursor.execute(text)
                return cursor.fetchall() if cursor.description else []
        return None

    def postmaster(self, name):
        with contextlib.suppress(OSError, ValueError):
            return int((self.folder.path / name / "postmaster.pid").read_text().split()[0])
        return None

    def kill(self, name):
        """The machine is gone: Patroni, then PostgreSQL, at once; it is gone too when this returns."""
        postmaster = self.postmaster(name)
        self.processes[name].kill()
        self.processes[name].wait()
        if postmaster:
            with contextlib.suppress(ProcessLookupError):
                os.kill(postmaster, signal.SIGKILL)
        self.folder.ended(name)
        wait(lambda: not postmaster or not _listens(self.ports[name]), self.log)

    def log(self):
        return "".join(f"--- {file.name}\n" + "".join(file.read_text(errors="replace").splitlines(True)[-40:])
                       for file in sorted(self.folder.path.glob("*.log")))

    def stop(self):
        for name in self.names:
            if self.processes[name].poll() is None:
                self.kill(name)
        for name, process in self.processes.items():
            if process.poll() is None:
                process.kill()
            process.wait()
            self.folder.ended(name)


def _patroni_library():
    """The folder of Python's packages in which Patroni is: Debian's, or that of an unpacked package. None without it."""
    roots = [pathlib.Path(folder).parent for folder in os.environ["PATH"].split(":") if folder.endswith("usr/bin")]
    for root in [*roots, pathlib.Path("/usr")]:
        if (root / "lib/python3/dist-packages/patroni").is_dir():
            return root / "lib/python3/dist-packages"
    return None


@contextlib.contextmanager
def patroni(ttl=20):
    """Three nodes of PostgreSQL with synchronous_mode_strict, user "hunter" and its database "hunter"."""
    tools, library, etcd = postgres_tools(), _patroni_library(), shutil.which("etcd")
    if not tools or not library or not etcd:
        pytest.skip("PostgreSQL's server, Patroni or etcd is not installed (Debian: apt install postgresql patroni etcd-server)")
    for needed in ("psycopg2", "etcd", "psutil", "click", "prettytable", "dateutil"):
        pytest.importorskip(needed, reason=f"Patroni's python3-{needed} is not installed")
    folder = Folder("patroni")
    cluster = Patroni(folder, tools, ttl)
    try:
        shutil.copytree(library / "patroni", folder.path / "python" / "patroni")  # where its user can reach it
        shutil.copy(etcd, folder.path / "etcd")
        cluster.start_etcd(folder.path / "etcd")
        cluster.wait(lambda: all(_listens(client) for client, _ in cluster.etcd.values()))
        cluster.start("n1")
        cluster.wait(cluster.primary)
        for name in cluster.names[1:]:
            cluster.start(name)
        cluster.wait_whole()
        cluster.sql("CREATE ROLE hunter LOGIN")
        cluster.sql("CREATE DATABASE hunter OWNER hunter")
        yield cluster
    finally:
        cluster.stop()
        folder.remove()


EXIM = """
spool_directory = {folder}/spool
log_file_path = {folder}/%slog
pid_file_path = {folder}/exim.pid
primary_hostname = localhost
exim_path = {folder}/exim4
local_interfaces = <; [127.0.0.1]:{smtp} ; [127.0.0.1]:{smtps}
tls_on_connect_ports = {smtps}
tls_advertise_hosts = *
tls_certificate = {folder}/server.crt
tls_privatekey = {folder}/server.key
host_lookup =
rfc1413_query_timeout = 0s
never_users =
keep_environment =
deliver_drop_privilege = true
acl_smtp_mail = accept
acl_smtp_rcpt = recipients
acl_smtp_data = accept
begin acl
recipients:
  deny message = no such user
    local_parts = nobody
  deny message = login first
    !authenticated = *
  accept
begin routers
all:
  driver = accept
  transport = maildir
begin transports
maildir:
  driver = appendfile
  directory = {folder}/mail
  create_directory
  maildir_format
  return_path_add
  envelope_to_add
begin authenticators
plain:
  driver = plaintext
  public_name = PLAIN
  server_prompts = :
  server_advertise_condition = ${{if def:tls_in_cipher}}
  server_condition = ${{if and {{{{eq{{$auth2}}{{hunter}}}}{{eq{{$auth3}}{{{password}}}}}}}}}
  server_set_id = $auth2
"""


class Exim:
    """A running mail server that takes mail of user "hunter" for everybody but nobody@...; its certificate is for localhost."""

    user, password = "hunter", "s3cret-canary word"

    def __init__(self, process, folder, smtp, smtps):
        self.process, self.folder, self.certificate = process, folder, folder / "server.crt"
        self.smtp, self.smtps = f"smtp://localhost:{smtp}", f"smtps://localhost:{smtps}"

    def raw(self, person):
        """The mails to person@..., in the order of their arrival."""
        files = sorted((self.folder / "mail" / "new").glob("*"), key=lambda f: f.stat().st_mtime_ns)
        mark = f"Envelope-to: {person}@".encode()
        return [data for data in (f.read_bytes() for f in files) if mark in data]

    def mails(self, person, count):
        """The same, parsed, when there are so many."""
        wait(lambda: len(self.raw(person)) >= count, self.log)
        return [email.message_from_bytes(f, policy=email.policy.default) for f in self.raw(person)]

    def log(self):
        return "".join(f.read_text(errors="replace") for f in self.folder.glob("*log"))

    def stop(self):
        end(self.process)


def _exim_tools():
    """The program, and the library that tells it another user's name; None where one is missing."""
    path = os.environ["PATH"] + ":/usr/sbin"
    program = shutil.which("exim4", path=path)
    if not program:
        return None, None
    roots = [pathlib.Path(program).parents[1], pathlib.Path("/usr")]
    return program, next((f for root in roots for f in root.glob("lib/*/libnss_wrapper.so")), None)


def _copy_exim(folder, program, wrapper, account):
    """A copy that is not set-uid, with the libraries that lie beside it, as it runs as another user; the environment to run it in."""
    own = pathlib.Path(program).parents[1]
    shutil.copy(program, folder / "exim4")
    (folder / "exim4").chmod(0o755)
    beside = ":".join(str(f) for f in own.glob("lib/*-linux-*"))
    listed = subprocess.run(["ldd", folder / "exim4"], capture_output=True, text=True, env=os.environ | {"LD_LIBRARY_PATH": beside})
    for library in [wrapper, *re.findall(r"=> (\S+) \(", listed.stdout)]:
        if own != pathlib.Path("/usr") and pathlib.Path(library).is_relative_to(own) or library == wrapper:
            shutil.copy(library, folder)
    uid, gid = (account.pw_uid, account.pw_gid) if account else (os.getuid(), os.getgid())
    (folder / "passwd").write_text(f"root:x:0:0::/:/bin/sh\nDebian-exim:x:{uid}:{gid}::/:/bin/false\n")
    (folder / "group").write_text(f"root:x:0:\nmail:x:8:\nDebian-exim:x:{gid}:\n")
    return os.environ | {"LD_LIBRARY_PATH": str(folder), "LD_PRELOAD": str(folder / "libnss_wrapper.so"),
                         "NSS_WRAPPER_PASSWD": str(folder / "passwd"), "NSS_WRAPPER_GROUP": str(folder / "group")}


def _greets(port):
    """Whether a mail server does."""
    with contextlib.suppress(OSError), smtplib.SMTP("127.0.0.1", port, timeout=GLANCE):
        return True
    return False


def _start_exim(folder, environment, user):
    """A running server, or None if one of its ports was taken meanwhile."""
    smtp, smtps = free_port(), free_port()
    (folder / "exim.conf").write_text(EXIM.format(folder=folder, smtp=smtp, smtps=smtps, password=Exim.password))
    with open(folder / "server.log", "w") as log:
        process = subprocess.Popen([folder / "exim4", "-C", folder / "exim.conf", "-bdf", "-q30m"], stdout=log, stderr=log,
                                   stdin=subprocess.DEVNULL, cwd=folder, env=environment, **user)
    server = Exim(process, folder, smtp, smtps)
    return server if _comes_up(server, lambda: _greets(smtp)) else None


@contextlib.contextmanager
def exim():
    """Debian's mail server with STARTTLS, TLS and a login, which keeps all mail it takes in a folder of its own."""
    program, wrapper = _exim_tools()
    if not program or not wrapper or not shutil.which("openssl"):
        pytest.skip("exim4, libnss-wrapper or openssl is missing (Debian: apt install exim4-daemon-light libnss-wrapper openssl)")
    account = _unprivileged()
    user = {"user": account.pw_uid, "group": account.pw_gid, "extra_groups": []} if account else {}
    folder = pathlib.Path(tempfile.mkdtemp(prefix="hunter-exim-"))
    server = None
    try:
        certificate(folder)
        environment = _copy_exim(folder, program, wrapper, account)
        for path in (folder, *folder.iterdir()):
            os.chown(path, account.pw_uid, account.pw_gid) if account else None
        for _ in range(3):
            server = server or _start_exim(folder, environment, user)
        assert server, (folder / "server.log").read_text()
        yield server
    finally:
        if server:
            server.stop()
        shutil.rmtree(folder)


CARBON = """
[cache]
STORAGE_DIR = {folder}
LOCAL_DATA_DIR = {folder}/whisper
CONF_DIR = {folder}
LOG_DIR = {folder}
PID_DIR = {folder}
USER =
MAX_CREATES_PER_MINUTE = inf
MAX_UPDATES_PER_SECOND = inf
LINE_RECEIVER_INTERFACE = 127.0.0.1
LINE_RECEIVER_PORT = {line}
PICKLE_RECEIVER_INTERFACE = 127.0.0.1
PICKLE_RECEIVER_PORT = {pickle}
CACHE_QUERY_INTERFACE = 127.0.0.1
CACHE_QUERY_PORT = {cache}
ENABLE_UDP_LISTENER = False
WHISPER_SPARSE_CREATE = True
ENABLE_LOGROTATION = False
ENABLE_TAGS = False
LOG_UPDATES = False
"""

# Graphite takes no point that is older than its archive: twelve years.
CARBON_SCHEMAS = "[minutes]\npattern = ^minute\\.\nretentions = 1m:12y\n[days]\npattern = ^day\\.\nretentions = 1d:12y\n[hours]\npattern = .*\nretentions = 1h:12y\n"

GRAPHITE_WEB = """
SECRET_KEY = 'test'
ALLOWED_HOSTS = ['*']
TIME_ZONE = 'Europe/Berlin'
LOG_ROTATION = False
LOG_DIR = CONF_DIR = STORAGE_DIR = '{folder}'
WHISPER_DIR = '{folder}/whisper'
INDEX_FILE = '{folder}/index'
CARBONLINK_HOSTS = ['127.0.0.1:{cache}']
DEFAULT_CACHE_DURATION = 0
DATABASES = {{'default': {{'ENGINE': 'django.db.backends.sqlite3', 'NAME': '{folder}/graphite.db'}}}}

from django.db.backends.signals import connection_created

def never_sync(connection, **_):
    connection.cursor().execute('PRAGMA synchronous = OFF')

connection_created.connect(never_sync)
"""


class Graphite:
    """graphite-web on `url`, with a carbon behind it."""

    def __init__(self, folder, ports):
        self.folder, self.ports, self.processes = folder, ports, []
        self.url = f"http://127.0.0.1:{ports['web']}"

    def start(self, *command):
        environment = os.environ | {"PYTHONPATH": str(self.folder), "GRAPHITE_SETTINGS_MODULE": "hunter_graphite",
                                    "DJANGO_SETTINGS_MODULE": "graphite.settings", "PYTHONWARNINGS": "ignore"}
        log = open(self.folder / "log", "a")
        with log:
            self.processes.append(subprocess.Popen(["/usr/bin/python3", *command], stdout=log, stderr=log, cwd=self.folder,
                                                   stdin=subprocess.DEVNULL, env=environment))
        return self.processes[-1]

    def wait(self, ready):
        """Whether ready() came true before a process ended."""
        ended = lambda: any(process.poll() is not None for process in self.processes)  # noqa: E731
        wait(lambda: ended() or ready(), lambda: (self.folder / "log").read_text())
        return not ended()

    def listens(self, port):
        with socket.socket() as probe:
            return probe.connect_ex(("127.0.0.1", self.ports[port])) == 0

    def render(self, target, since, until):
        address = f"{self.url}/render?target={urllib.parse.quote(target)}&from={since}&until={until}&format=raw"
        with urllib.request.urlopen(address, timeout=LONGEST) as answer:
            return answer.read().decode()

    def feed(self, series):
        """Sends points, {path: [(value, time in s), ...]}, and waits until the last is there."""
        lines = [f"{path} {value} {stamp}\n" for path, rows in series.items() for value, stamp in rows]
        last = max(stamp for rows in series.values() for _, stamp in rows)
        lines.append(f"fed.canary {len(lines)}.5 {last}\n")
        with socket.create_connection(("127.0.0.1", self.ports["line"])) as carbon:
            carbon.sendall("".join(lines).encode())
        wanted = f"{len(lines) - 1}.5"
        assert self.wait(lambda: wanted in self.render("fed.canary", last - 7200, last)), (self.folder / "log").read_text()

    def post(self, path, data, content_type):
        request = urllib.request.Request(self.url + path, data.encode(), {"Content-Type": content_type})
        urllib.request.urlopen(request, timeout=LONGEST).read()

    def event(self, when, tags, **more):
        """Posts an event; `data` may be an object or text."""
        self.post("/events/", json.dumps({"what": "Performance Test", "when": when, "tags": tags} | more), "application/json")

    def tag(self, path):
        """Makes a series name;tag=value;... known to seriesByTag()."""
        self.post("/tags/tagSeries", "path=" + urllib.parse.quote(path), "application/x-www-form-urlencoded")

    def stop(self):
        for process in self.processes:
            process.terminate()
        for process in self.processes:
            end(process)


def _start_graphite(folder):
    """A running server, or None if a port was taken meanwhile."""
    ports = {name: free_port() for name in ("web", "line", "pickle", "cache")}
    (folder / "carbon.conf").write_text(CARBON.format(folder=folder, **ports))
    (folder / "storage-schemas.conf").write_text(CARBON_SCHEMAS)
    (folder / "storage-aggregation.conf").write_text("[all]\npattern = .*\nxFilesFactor = 0\n")
    (folder / "hunter_graphite.py").write_text(GRAPHITE_WEB.format(folder=folder, **ports))
    server = Graphite(folder, ports)
    made = server.start("/usr/bin/graphite-manage", "migrate", "--run-syncdb", "-v0").wait(LONGEST)
    assert made == 0, (folder / "log").read_text()
    server.processes.clear()
    server.start("/usr/bin/carbon-cache", f"--config={folder}/carbon.conf", f"--logdir={folder}", f"--pidfile={folder}/pid",
                 "--nodaemon", "start")
    server.start("/usr/bin/gunicorn", "--bind", f"127.0.0.1:{ports['web']}", "--workers=1", "graphite.wsgi:application")
    if server.wait(lambda: server.listens("line") and server.listens("cache") and _answers(server.url + "/metrics/find?query=*")):
        return server
    server.stop()
    return None


@contextlib.contextmanager
def graphite(tmp_path):
    """An empty graphite-web with carbon (hours are kept, below day. days, below minute. minutes), in another time zone than ours."""
    if not all(os.path.exists(f"/usr/bin/{name}") for name in ("carbon-cache", "graphite-manage", "gunicorn")):
        pytest.skip("Graphite is not installed (Debian: apt install graphite-carbon graphite-web gunicorn)")
    folder = tmp_path / "graphite"
    (folder / "whisper").mkdir(parents=True)
    server = None
    for _ in range(3):
        server = server or _start_graphite(folder)
    assert server, (folder / "log").read_text()
    try:
        yield server
    finally:
        server.stop()
