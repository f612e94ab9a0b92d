"""A secret in every field that takes one, and peers that quote whatever they are sent: nobody is shown any of it.

Neither in what is printed, nor in the log at its most talkative, nor in the metrics, the API, the state file, or a
message that goes out. Each field has a canary of its own, so that a failure names the one that sang.
"""
import base64
import contextlib
import http.client
import http.server
import json
import re
import socketserver
import struct
import threading

import pytest
from agent import Agent, config, csv_test, write_csv
from state_address import state_text
from waiting import LONGEST, wait

SONG = "7f3a9c"  # in each canary


def canary(field):
    return f"canary.{field}.{SONG}"


def packed(field):
    """User and password, as they are sent."""
    return base64.b64encode(f"me:{canary(field)}".encode()).decode()


PACKED = {packed(field): field for field in ("password", "password-file", "user-info", "proxy", "tunnel", "to-bearer")}


def songs(text):
    """The fields whose canaries are in a text."""
    return sorted({*re.findall(r"canary\.([\w-]+)\." + SONG, text), *(f for word, f in PACKED.items() if word in text)})


class Echo(http.server.ThreadingHTTPServer):
    """Answers every request, a proxy's too, with what it was asked: first line and headers. `heard` is all of it."""
    daemon_threads = True

    def __init__(self, status):
        self.status, self.heard = status, []
        super().__init__(("127.0.0.1", 0), Echo.Handler)
        self.place = f"127.0.0.1:{self.server_address[1]}"
        threading.Thread(target=self.serve_forever, args=(0.02,), daemon=True).start()

    def __exit__(self, *_):
        self.shutdown()
        self.server_close()

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            self.rfile.read(int(self.headers.get("Content-Length", 0)))
            heard = f"{self.requestline}; " + "; ".join(f"{k}: {v}" for k, v in self.headers.items())
            self.server.heard.append(heard)
            body = json.dumps({"status": "error", "error": heard, "ok": False}) if self.server.status % 2 else heard
            self.send_response(self.server.status, re.sub(r"[^ -~]", " ", heard)[:200])
            self.send_header("Content-Type", "application/json" if self.server.status % 2 else "text/plain")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body.encode())

        do_POST = do_CONNECT = do_GET

        def log_message(self, *_):
            pass


class EchoPostgres(socketserver.ThreadingTCPServer):
    """A PostgreSQL that wants the password as it is, and quotes it when it refuses it."""
    daemon_threads = True

    def __init__(self):
        self.heard = []
        super().__init__(("127.0.0.1", 0), EchoPostgres.Handler)
        threading.Thread(target=self.serve_forever, args=(0.02,), daemon=True).start()

    def __exit__(self, *_):
        self.shutdown()
        self.server_close()

    class Handler(socketserver.StreamRequestHandler):
        def take(self):
            return self.rfile.read(struct.unpack("!I", self.rfile.read(4))[0] - 4)

        def handle(self):
            while struct.unpack("!I", self.take()[:4])[0] != 3 << 16:
                self.wfile.write(b"N")  # neither TLS nor GSSAPI
            self.wfile.write(b"R" + struct.pack("!II", 8, 3))
            self.rfile.read(1)
            word = self.take().rstrip(b"\0").decode()
            self.server.heard.append(word)
            parts = f'SFATAL\0VFATAL\0C28P01\0Mno user has "{word}"\0D{word}\0Htry another than {word}\0\0'.encode()
            self.wfile.write(b"E" + struct.pack("!I", 4 + len(parts)) + parts)


def sections(folder, echo, postgres):
    """Sources and receivers that have a canary in each field for secrets."""
    def file(field):
        (folder / field).write_text(canary(field) + "\n")
        return folder / field

    at = f"http://{echo.place}"
    sources = {
        "token": f"url: '{at}', bearer_token: {canary('token')}",
        "token-file": f"url: '{at}', bearer_token_file: {file('token-file')}",
        "password": f"url: '{at}', username: me, password: {canary('password')}",
        "password-file": f"url: '{at}', username: me, password_file: {file('password-file')}",
        "header": f"url: '{at}', headers: {{X-Key: {canary('header')}, Authorization: Token {canary('authorization')}}}",
        "user-info": f"url: 'http://me:{canary('user-info')}@{echo.place}'",
        "proxy": f"url: 'http://prom.internal', proxy: 'http://me:{canary('proxy')}@{echo.place}'",
        "tunnel": f"url: 'https://prom.internal', proxy: 'http://me:{canary('tunnel')}@{echo.place}'",
    }
    again = "1s" if echo.status == 503 else "0s"
    lines = [f"  {kind}-{name}: {{type: {kind}, {options}, retry_for: {again}}}"
             for kind in ("prometheus", "graphite") for name, options in sources.items()]
    lines.append(f"  pg: {{type: postgres, hostname: 127.0.0.1, port: {postgres.server_address[1]}, username: me, "
                 f"password: {canary('postgres')}, database: d, sslmode: disable}}")
    lines.append(f"  pg-file: {{type: postgres, hostname: 127.0.0.1, port: {postgres.server_address[1]}, username: me, "
                 f"password_file: {file('postgres-file')}, database: d, sslmode: disable}}")
    tests = "".join(f"  prometheus-{name}: {{type: prometheus, source: prometheus-{name}, query: up, range: 1h}}\n"
                    f"  graphite-{name}: {{type: graphite, source: graphite-{name}, prefix: a, range: 1h, "
                    "metrics: {m: {suffix: b}}}\n" for name in sources)
    tests += "".join(f"  {name}: {{type: postgres, source: {name}, query: 'SELECT at, x FROM r', time_column: at, "
                     "metrics: {x: {column: x}}}\n" for name in ("pg", "pg-file"))
    return "\n".join(["sources:", *lines]), tests


def page(port, where, method="GET"):
    """Headers and body of an answer of the agent, whatever its status."""
    with contextlib.closing(http.client.HTTPConnection("127.0.0.1", port, timeout=LONGEST)) as connection:
        connection.request(method, where)
        answer = connection.getresponse()
        return f"{answer.status} {answer.headers}{answer.read().decode()}"


def wait_runs(agent, port, count):
    """Until so many tests have been run, and a message has been tried."""
    def total(name):
        return sum(float(v) for v in re.findall(rf"^{name}(?:{{[^}}]*}})? (\S+)$", page(port, "/metrics"), re.M))

    wait(lambda: total("hunter_runs_total") >= count and total("hunter_deliveries_total") >= 2, lambda: "".join(agent.log))


RECEIVERS = {
    "tokens": """
slack: {{bot_token: {slack}, channels: ["#perf"], api_url: '{at}'}}
webhook: {{url: '{at}/{path}', secret: {secret}, bearer_token: {bearer}, headers: {{X-Key: {header}}}}}
""",
    "addresses": """
slack: {{webhook_url: '{at}/{slack}'}}
webhook: {{url: '{at}/{path}?key={header}', secret_file: {file}, username: me, password: {bearer}}}
""",
}


@pytest.mark.parametrize("status, receivers, form", [
    (401, "tokens", "json"), (400, "addresses", "text"), (503, "tokens", "text"), (200, "addresses", "json")])
def test_no_canary_sings(program, hunter, tmp_path, status, receivers, form):
    write_csv(tmp_path / "good.csv", [(30, 1.2)])
    with Echo(status) as echo, EchoPostgres() as postgres:
        servers, tests = sections(tmp_path, echo, postgres)
        (tmp_path / "secret").write_text(canary("webhook-secret"))
        told = RECEIVERS[receivers].format(
            at=f"http://{echo.place}", file=tmp_path / "secret", **{
                name: canary(f"to-{name}") for name in ("slack", "path", "secret", "bearer", "header")})
        path = config(tmp_path, csv_test(tmp_path / "good.csv", "good", "    interval: 1h\n") + tests, told + servers)
        agent = Agent(program, path, "--log-level", "debug", "--log-format", form)
        try:
            port = int(re.search(r'\bport"?[=:] ?"?(\d+)', agent.wait_log("started"))[1])
            wait_runs(agent, port, tests.count("\n") + 1)
            pages = [page(port, where, method) for where, method in (
                ("/metrics", "GET"), ("/-/ready", "GET"), ("/-/healthy", "GET"), ("/api/v1/tests", "GET"),
                ("/api/v1/changes", "GET"), ("/api/v1/series?test=good", "GET"), ("/api/v1/series?test=pg", "GET"),
                ("/api/v1/run?test=prometheus-token", "POST"), ("/-/reload", "POST"))]
            assert agent.end() == 0
        finally:
            agent.process.kill()
        state = state_text(tmp_path)
        runs = [hunter(*arguments, "--config", path) for arguments in (
            ["analyze"], ["validate"], ["validate", "--output", "json"], ["list-tests"], ["changes"], ["run", "--once"],
            ["list-metrics"])]
    sent = set(songs("\n".join(echo.heard + postgres.heard)))
    assert sent >= {"token", "token-file", "header", "authorization", "postgres", "postgres-file", "to-path", "to-slack",
                    "to-bearer", "to-header", *PACKED.values()}
    shown = {"log": agent.log, "output": agent.out, "pages": pages, "state": [state],
             "commands": [line for r in runs for line in (r.out + r.err).splitlines()]}
    assert [(where, line) for where, lines in shown.items() for line in lines if songs(line)] == []
