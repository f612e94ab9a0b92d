"""Real servers for the tests: started on a free port of the loopback with history of our own, stopped by their process.

    with servers.prometheus(tmp_path, openmetrics(...)) as server:
        server.url      # http://127.0.0.1:PORT
"""
import contextlib
import email
import email.policy
import glob
import http.server
import json
import os
import pathlib
import pwd
import re
import shutil
import signal
import smtplib
import socket
import subprocess
import tempfile
import threading
import time
import urllib.error
import urllib.parse
import urllib.request

import pytest


def free_port():
    """A port nobody listens on; somebody may take it before it is used, so whoever starts a server tries again."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


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


class Server:
    def __init__(self, process, port, folder, scheme="http"):
        self.process, self.port, self.folder = process, port, folder
        self.url = f"{scheme}://127.0.0.1:{port}"

    def stop(self):
        self.process.terminate()
        try:
            self.process.wait(20)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait(20)


def _answers(url):
    """Whether the server speaks: any status but the one it gives while it starts."""
    try:
        with urllib.request.urlopen(url, timeout=2):
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
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        if process.poll() is not None:
            return None
        if _answers(f"{server.url}/-/ready"):
            return server
        time.sleep(0.05)
    server.stop()
    return None


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
                    folder / "history.txt", folder / "data"], check=True, capture_output=True, timeout=300)
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
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline and process.poll() is None:
        if _answers(f"{server.url}/health"):
            return server
        time.sleep(0.05)
    if process.poll() is None:
        server.stop()
    return None


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
            with urllib.request.urlopen(f"{server.url}/{path}", data=body, timeout=20) as answer:
                assert answer.status in (200, 204)
        yield server
    finally:
        server.stop()


class Alertmanager(Server):
    """Its alerts, and `told`: the notifications that it has sent, as JSON documents."""

    def alerts(self, **state):
        """Those of some state only: active=True, silenced=False, ..."""
        query = urllib.parse.urlencode({k: str(v).lower() for k, v in state.items()})
        with urllib.request.urlopen(f"{self.url}/api/v2/alerts?{query}", timeout=20) as answer:
            return json.load(answer)

    def post(self, *alerts):
        request = urllib.request.Request(f"{self.url}/api/v2/alerts", json.dumps(alerts).encode(), {"Content-Type": "application/json"})
        urllib.request.urlopen(request, timeout=20).read()

    def tool(self, *arguments):
        done = subprocess.run(["amtool", f"--alertmanager.url={self.url}", *arguments], capture_output=True, text=True, timeout=60)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def wait(self, condition, timeout=30):
        """Until condition() holds; looked at with each notification, and in between."""
        deadline = time.monotonic() + timeout
        with self.changed:
            while not condition():
                assert time.monotonic() < deadline, json.dumps(self.told, indent=1)
                self.changed.wait(0.1)

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
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline and process.poll() is None:
        if "Listening on" in (folder / "alertmanager.log").read_text():  # it may ask for a password
            return server
        time.sleep(0.05)
    if process.poll() is None:
        server.stop()
    return None


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
             "-U", self.user, "-d", database, "-f", "-"], input=text, capture_output=True, text=True, timeout=120)
        assert done.returncode == 0, done.stderr
        return done.stdout.splitlines()

    def stop(self):
        self.process.send_signal(signal.SIGINT)  # the fast way: open sessions are ended
        try:
            self.process.wait(20)
        except subprocess.TimeoutExpired:
            self.process.send_signal(signal.SIGQUIT)
            self.process.wait(20)


def _postgres_tools():
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
                   check=True, capture_output=True, timeout=60)
    (folder / "server.key").chmod(0o600)


HBA = """
local     all     all                    trust
hostnossl encrypted all  127.0.0.1/32     reject
host      closed  all    127.0.0.1/32     reject
host      all     admin,reader,stranger  127.0.0.1/32     scram-sha-256
host      all     admin,reader,stranger  ::1/128          scram-sha-256
"""


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
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline and process.poll() is None:
        with contextlib.suppress(AssertionError):
            server.sql("SELECT 1")
            return server
        time.sleep(0.05)
    if process.poll() is None:
        server.stop()
    return None


@contextlib.contextmanager
def postgres():
    """An empty PostgreSQL with TLS, on a free port of the loopback, in a folder of its own that its user can reach."""
    tools = _postgres_tools()
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
                        "--locale=C", "-A", "scram-sha-256", "--no-sync"], check=True, capture_output=True, timeout=120,
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

    def mails(self, person, count, timeout=30):
        """The same, parsed, when there are so many."""
        deadline = time.monotonic() + timeout
        while len(found := self.raw(person)) < count:
            assert time.monotonic() < deadline, self.log()
            time.sleep(0.05)
        return [email.message_from_bytes(f, policy=email.policy.default) for f in found]

    def log(self):
        return "".join(f.read_text(errors="replace") for f in self.folder.glob("*log"))

    def stop(self):
        self.process.terminate()
        self.process.wait(20)


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


def _start_exim(folder, environment, user):
    """A running server, or None if one of its ports was taken meanwhile."""
    smtp, smtps = free_port(), free_port()
    (folder / "exim.conf").write_text(EXIM.format(folder=folder, smtp=smtp, smtps=smtps, password=Exim.password))
    with open(folder / "server.log", "w") as log:
        process = subprocess.Popen([folder / "exim4", "-C", folder / "exim.conf", "-bdf", "-q30m"], stdout=log, stderr=log,
                                   stdin=subprocess.DEVNULL, cwd=folder, env=environment, **user)
    server = Exim(process, folder, smtp, smtps)
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline and process.poll() is None:
        with contextlib.suppress(OSError), smtplib.SMTP("127.0.0.1", smtp, timeout=2):
            return server
        time.sleep(0.05)
    if process.poll() is None:
        server.stop()
    return None


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
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline and all(process.poll() is None for process in self.processes):
            if ready():
                return True
            time.sleep(0.05)
        return False

    def listens(self, port):
        with socket.socket() as probe:
            return probe.connect_ex(("127.0.0.1", self.ports[port])) == 0

    def render(self, target, since, until):
        address = f"{self.url}/render?target={urllib.parse.quote(target)}&from={since}&until={until}&format=raw"
        with urllib.request.urlopen(address, timeout=20) as answer:
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
        urllib.request.urlopen(request, timeout=20).read()

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
            try:
                process.wait(20)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait(20)


def _start_graphite(folder):
    """A running server, or None if a port was taken meanwhile."""
    ports = {name: free_port() for name in ("web", "line", "pickle", "cache")}
    (folder / "carbon.conf").write_text(CARBON.format(folder=folder, **ports))
    (folder / "storage-schemas.conf").write_text(CARBON_SCHEMAS)
    (folder / "storage-aggregation.conf").write_text("[all]\npattern = .*\nxFilesFactor = 0\n")
    (folder / "hunter_graphite.py").write_text(GRAPHITE_WEB.format(folder=folder, **ports))
    server = Graphite(folder, ports)
    made = server.start("/usr/bin/graphite-manage", "migrate", "--run-syncdb", "-v0").wait(60)
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
