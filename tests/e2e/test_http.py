"""What all HTTP sources share, on real servers where it can be: TLS, credentials, proxies, several servers, live data."""
import base64
import http.server
import json
import pathlib
import re
import select
import shutil
import signal
import socket
import ssl
import subprocess
import threading
import urllib.request

import faulty
import pytest
import servers
from state_address import state_of
from test_faults import Prometheus
from waiting import LONGEST, pause, wait

START, MINUTE, POINTS = 1709251200, 60, 20  # 2024-03-01 00:00:00 UTC
PASSWORD = "canary-password"
BCRYPT = "$2b$04$abcdefghijklmnopqrstuuag0.YlF7tv7WKWN7rgqJ5KkJ9XU2wny"  # of PASSWORD


def history(level):
    return servers.openmetrics({"speed": [({"job": "shop"}, level + i % 3, START + MINUTE * i) for i in range(POINTS)]})


def config(folder, sections, tests="  shop: {type: prometheus, query: speed}\n"):
    path = folder / "hunter.yaml"
    path.write_text(f"{sections}\ntests:\n{tests}")
    return path


def analyze(hunter, *arguments, env=None):
    found = hunter("analyze", "--since", "2024-03-01", "--until", "2024-03-02", *arguments, env=env)
    assert "canary" not in found.out + found.err
    return found


def levels(found):
    return [int(line.split()[-1]) for line in found.out.splitlines() if line.startswith("2024-03-01 00:")]


EXPECTED = [10 + i % 3 for i in range(POINTS)]


def openssl(*arguments):
    subprocess.run(["openssl", *map(str, arguments)], check=True, capture_output=True, timeout=LONGEST)


@pytest.fixture(scope="module")
def authority(tmp_path_factory):
    """A folder with ca.pem and what it signed: server.pem for prom.internal, client.pem; and other.pem, which it did not."""
    if not shutil.which("openssl"):
        pytest.skip("openssl is not installed (Debian: apt install openssl)")
    folder = tmp_path_factory.mktemp("authority")
    key = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes")
    for name in ("ca", "other"):
        openssl("req", "-x509", *key, "-days", 2, "-subj", f"/CN={name}", "-keyout", folder / f"{name}.key", "-out", folder / f"{name}.pem")
    for name, use in (("server", "subjectAltName=DNS:prom.internal"), ("client", "extendedKeyUsage=clientAuth")):
        (folder / f"{name}.ext").write_text(use)
        openssl("req", *key, "-subj", f"/CN={name}", "-keyout", folder / f"{name}.key", "-out", folder / f"{name}.csr")
        openssl("x509", "-req", "-in", folder / f"{name}.csr", "-CA", folder / "ca.pem", "-CAkey", folder / "ca.key", "-CAcreateserial",
                "-days", 2, "-extfile", folder / f"{name}.ext", "-out", folder / f"{name}.pem")
    (folder / "both.pem").write_text((folder / "client.pem").read_text() + (folder / "client.key").read_text())
    return folder


def get(url, authority, path, client=False):
    """What the server answers to one who knows all secrets."""
    context = ssl.create_default_context(cafile=authority / "ca.pem")
    context.check_hostname = False
    if client:
        context.load_cert_chain(authority / "client.pem", authority / "client.key")
    request = urllib.request.Request(url + path, headers={
        "Authorization": "Basic " + base64.b64encode(f"canary-user:{PASSWORD}".encode()).decode()})
    with urllib.request.urlopen(request, timeout=LONGEST, context=context) as answer:
        return answer.read().decode()


def ready(url, authority, client=False):
    return wait(lambda: get(url, authority, "/-/ready", client), passing=OSError)


@pytest.fixture(scope="module")
def secured(authority, tmp_path_factory):
    """A Prometheus with TLS that wants to know who asks."""
    folder = tmp_path_factory.mktemp("secured")
    web = folder / "web.yml"
    web.write_text(f"tls_server_config: {{cert_file: {authority}/server.pem, key_file: {authority}/server.key}}\n"
                   f"basic_auth_users: {{canary-user: '{BCRYPT}'}}\n")
    with servers.prometheus(folder, history(10), [f"--web.config.file={web}"]) as server:
        url = server.url.replace("http:", "https:")
        ready(url, authority)
        yield url


def test_tls_and_basic_auth(hunter, tmp_path, authority, secured):
    (tmp_path / "password").write_text("wrong\n")
    config(tmp_path, f"prometheus: {{url: '{secured}', ca_file: {authority}/ca.pem, server_name: prom.internal, "
                     f"username: canary-user, password_file: {tmp_path}/password}}")
    found = analyze(hunter)
    assert found.code == 3 and "status 401: Unauthorized: check username and password" in found.err, found.err
    assert f'test "shop": {secured}/' in found.err
    (tmp_path / "password").write_text(PASSWORD + "\n")
    found = analyze(hunter)
    assert found.code == 0 and levels(found) == EXPECTED, found.err


def test_the_certificate_must_hold_the_name(hunter, tmp_path, authority, secured):
    user = f"username: canary-user, password: {PASSWORD}"
    config(tmp_path, f"prometheus: {{url: '{secured}', ca_file: {authority}/ca.pem, {user}}}")
    found = analyze(hunter)
    assert found.code == 3 and "server_name sets the name that the certificate must have" in found.err, found.err
    config(tmp_path, f"prometheus: {{url: '{secured}', ca_file: {authority}/other.pem, server_name: prom.internal, {user}}}")
    found = analyze(hunter)
    assert found.code == 3 and "ca_file sets the certificates to trust" in found.err, found.err
    config(tmp_path, f"prometheus: {{url: '{secured}', server_name: prom.internal, {user}}}")
    assert analyze(hunter).code == 3
    config(tmp_path, f"prometheus: {{url: '{secured}', ca_file: {authority}/ca.pem, server_name: other.internal, {user}}}")
    assert analyze(hunter).code == 3


def test_redirects_of_a_server_with_another_name(hunter, tmp_path, authority):
    """They stay with the server, whatever name it goes by, and so do the credentials."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(authority / "server.pem", authority / "server.key")
    with faulty.Server(Prometheus, tls=context) as server:
        config(tmp_path, f"prometheus: {{url: '{server.url}', ca_file: {authority}/ca.pem, server_name: prom.internal, "
                         "bearer_token: canary-token}", "  shop: {type: prometheus, step: 1m, query: fault_loop}\n")
        found = analyze(hunter)
        assert found.code == 3 and f"{server.url}/api/v1/query_range: status 302: a redirect, which is not followed" in found.err
        assert len(server.times_of("loop")) == 6
        place = server.url.removeprefix("https://").encode()
        assert all(b"Bearer canary-token" in request and b"Host: " + place in request for request in server.requests)


def test_redirects_never_lead_from_tls_to_plain(hunter, tmp_path, authority):
    """Not on the same host, and not where every redirect is wanted."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(authority / "server.pem", authority / "server.key")
    with faulty.Server(Prometheus) as plain, faulty.Server(Prometheus, plain.url, tls=context) as server:
        for redirects in ("same-host", "any"):
            config(tmp_path, f"prometheus: {{url: '{server.url}', ca_file: {authority}/ca.pem, server_name: prom.internal, "
                             f"redirects: {redirects}}}", "  shop: {type: prometheus, step: 1m, query: fault_redirect}\n")
            found = analyze(hunter)
            assert found.code == 3 and f"(it points to {plain.url};" in found.err, found.err
        assert not plain.requests


def test_plain_http_to_the_tls_port(hunter, tmp_path, secured):
    config(tmp_path, f"prometheus: {{url: '{secured.replace('https:', 'http:')}'}}")
    found = analyze(hunter)
    assert found.code == 3 and "use https:// in url" in found.err, found.err


def accepted(secured, authority):
    """Connections that the server has accepted, with the one that asks."""
    text = get(secured, authority, "/metrics")
    return int(float(re.search(r"^net_conntrack_listener_conn_accepted_total\{.*\} (\S+)$", text, re.M)[1]))


def test_http_2_carries_all_requests_over_one_connection(hunter, tmp_path, authority, secured):
    config(tmp_path, f"prometheus: {{url: '{secured}', ca_file: {authority}/ca.pem, server_name: prom.internal, "
                     f"username: canary-user, password: {PASSWORD}}}",
           "".join(f"  t{i}: {{type: prometheus, query: speed}}\n" for i in range(40)))
    before = accepted(secured, authority)
    found = analyze(hunter)
    assert found.code == 0 and len(levels(found)) == 40 * POINTS, found.err
    assert accepted(secured, authority) - before == 2  # hunter-c's, and that of the second question


def test_client_certificate(hunter, tmp_path, authority):
    web = tmp_path / "web.yml"
    web.write_text(f"tls_server_config: {{cert_file: {authority}/server.pem, key_file: {authority}/server.key, "
                   f"client_auth_type: RequireAndVerifyClientCert, client_ca_file: {authority}/ca.pem}}\n")
    with servers.prometheus(tmp_path, history(10), [f"--web.config.file={web}"]) as server:
        url = server.url.replace("http:", "https:")
        ready(url, authority, client=True)
        tls = f"ca_file: {authority}/ca.pem, server_name: prom.internal"
        for files in (f"cert_file: {authority}/client.pem, key_file: {authority}/client.key", f"cert_file: {authority}/both.pem"):
            config(tmp_path, f"prometheus: {{url: '{url}', {tls}, {files}}}")
            found = analyze(hunter)
            assert found.code == 0 and levels(found) == EXPECTED, found.err
        config(tmp_path, f"prometheus: {{url: '{url}', {tls}}}")
        found = analyze(hunter)
        assert found.code == 3 and "a client certificate: cert_file, key_file" in found.err, found.err
        config(tmp_path, f"prometheus: {{url: '{url}', {tls}, cert_file: {authority}/client.pem, key_file: {authority}/ca.key}}")
        found = analyze(hunter)
        assert found.code == 3 and "(cert_file, key_file)" in found.err, found.err


def test_several_servers(hunter, tmp_path):
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    with servers.prometheus(tmp_path / "a", history(10)) as eu, servers.prometheus(tmp_path / "b", history(50)) as us:
        config(tmp_path, f"prometheus: {{url: '{us.url}'}}\n"
                         f"sources:\n  eu: {{type: prometheus, url: '{eu.url}'}}\n  down: {{type: prometheus, url: 'http://127.0.0.1:1'}}\n",
               "  eu: {source: eu, query: speed}\n  us: {type: prometheus, query: speed}\n  down: {source: down, query: speed}\n")
        assert levels(analyze(hunter, "eu")) == EXPECTED
        assert levels(analyze(hunter, "us")) == [value + 40 for value in EXPECTED]
        found = analyze(hunter)
        assert found.code == 3 and len(levels(found)) == 2 * POINTS
        assert 'test "down": cannot reach http://127.0.0.1:1: Connection refused' in found.err


class Exporter(http.server.ThreadingHTTPServer):
    """A gauge that counts how often it was scraped."""
    daemon_threads = True

    def __init__(self):
        self.scrapes, self.changed = 0, threading.Condition()
        super().__init__(("127.0.0.1", 0), Exporter.Handler)
        threading.Thread(target=self.serve_forever, args=(0.02,), daemon=True).start()

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            with self.server.changed:
                self.server.scrapes += 1
                body = f"# TYPE scrapes gauge\nscrapes {self.server.scrapes}\n".encode()
                self.server.changed.notify_all()
            self.send_response(200)
            self.send_header("Content-Type", "text/plain; version=0.0.4")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_):
            pass


def scraped(server):
    """What it has stored; it does not store what came too late."""
    with urllib.request.urlopen(f"{server.url}/api/v1/query?query=scrapes%5B1h%5D", timeout=LONGEST) as answer:
        result = json.load(answer)["data"]["result"]
    return [int(value) for _, value in result[0]["values"]] if result else []


def test_live_scraping(hunter, tmp_path):
    """What Prometheus scrapes now is what we read: each sample once, in order, without an end that comes and goes."""
    with Exporter() as exporter, servers.prometheus(tmp_path, history(10)) as server:
        (server.folder / "prometheus.yml").write_text(
            "scrape_configs: [{job_name: ours, scrape_interval: 100ms, scrape_timeout: 100ms, "
            f"static_configs: [{{targets: ['127.0.0.1:{exporter.server_address[1]}']}}]}}]\n")
        server.process.send_signal(signal.SIGHUP)
        config(tmp_path, f"prometheus: {{url: '{server.url}'}}", "  live: {type: prometheus, query: scrapes, range: 1h}\n")
        seen = []
        for wanted in (15, 25):
            with exporter.changed:
                assert exporter.changed.wait_for(lambda: exporter.scrapes >= wanted, LONGEST)
            before = scraped(server)
            found = hunter("analyze", "live", "--since", "1h")
            assert found.code == 0, found.err
            values = [int(line.split()[-1]) for line in found.out.splitlines() if re.match(r"20\d\d-", line)]
            assert values[:len(seen)] == seen and len(values) >= max(len(before), len(seen) + 1)
            assert values == scraped(server)[:len(values)], found.out
            seen = values
        exporter.shutdown()


def test_a_token_that_changes_while_the_agent_runs(program, tmp_path):
    token = tmp_path / "token"
    token.write_text("first\n")
    with faulty.Server(Prometheus) as server:
        config(tmp_path, f"prometheus: {{url: '{server.url}', bearer_token_file: {token}}}\n"
                         f"agent: {{state: {state_of(tmp_path)}, listen: '127.0.0.1:0', interval: 1s}}")
        agent = subprocess.Popen([program, "run"], cwd=tmp_path, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            for text in ("first", "second"):
                token.write_text(text)
                asked = b"Authorization: Bearer " + text.encode()
                wait(lambda: agent.poll() is not None or any(asked in request for request in list(server.requests)))  # noqa: B023
                assert agent.poll() is None
        finally:
            agent.terminate()
            agent.wait(LONGEST)


class Proxy(http.server.ThreadingHTTPServer):
    """Takes whole addresses and CONNECT for any host, and goes to `port` of the loopback. It keeps what it was asked."""
    daemon_threads = True

    def __init__(self, port, user=None):
        self.port, self.user, self.asked = port, user, []
        super().__init__(("127.0.0.1", 0), Proxy.Handler)
        self.place = f"127.0.0.1:{self.server_address[1]}"
        threading.Thread(target=self.serve_forever, args=(0.02,), daemon=True).start()

    def handle_error(self, request, client_address):
        """Clients may go at any time."""

    def __exit__(self, *_):
        self.shutdown()
        self.server_close()

    class Handler(http.server.BaseHTTPRequestHandler):
        def refused(self):
            user = self.server.user
            expected = user and "Basic " + base64.b64encode(user.encode()).decode()
            self.server.asked.append((self.command, self.path, dict(self.headers)))
            if self.headers.get("Proxy-Authorization") == expected:
                return False
            self.send_response(407, "Proxy Authentication Required")
            self.send_header("Content-Length", "0")
            self.end_headers()
            return True

        def do_GET(self):
            if self.refused():
                return
            path = "/" + self.path.split("/", 3)[3]
            headers = {k: v for k, v in self.headers.items() if not k.startswith("Proxy-")}
            with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(urllib.request.Request(
                    f"http://127.0.0.1:{self.server.port}{path}", headers=headers)) as answer:
                body = answer.read()
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def do_CONNECT(self):
            if self.refused():
                return
            with socket.create_connection(("127.0.0.1", self.server.port)) as there:
                self.send_response(200)
                self.end_headers()
                pair = {self.connection: there, there: self.connection}
                while True:
                    for ready_one in select.select(list(pair), [], [], LONGEST)[0]:
                        data = ready_one.recv(65536)
                        if not data:
                            return
                        pair[ready_one].sendall(data)

        def log_message(self, *_):
            pass


def test_proxy(hunter, tmp_path):
    with faulty.Server(Prometheus) as server, Proxy(server.server_address[1]) as proxy:
        config(tmp_path, "prometheus: {url: 'http://prom.internal:9090/sub', bearer_token: canary-token, "
                         f"proxy: 'http://{proxy.place}'}}")
        found = analyze(hunter)
        assert found.code == 0 and len(levels(found)) == POINTS, found.err
        assert all(path.startswith("http://prom.internal:9090/sub/api/v1/") for _, path, _ in proxy.asked)
        assert any("/api/v1/query?" in path for _, path, _ in proxy.asked)

        config(tmp_path, f"prometheus: {{url: '{server.url}', proxy: 'http://127.0.0.1:1', no_proxy: [example.org, 127.0.0.1]}}")
        assert analyze(hunter).code == 0
        config(tmp_path, f"prometheus: {{url: '{server.url}', proxy: none}}")
        assert analyze(hunter, env={"http_proxy": "http://127.0.0.1:1", "no_proxy": ""}).code == 0

        count = len(proxy.asked)
        config(tmp_path, "prometheus: {url: 'http://prom.internal:9090'}")
        assert analyze(hunter, env={"http_proxy": f"http://{proxy.place}", "no_proxy": ""}).code == 0
        assert len(proxy.asked) > count
        found = analyze(hunter, env={"http_proxy": f"http://{proxy.place}", "no_proxy": "prom.internal"})
        assert found.code == 3 and "Could not resolve host: prom.internal" in found.err, found.err


def test_proxy_that_wants_a_user(hunter, tmp_path):
    with faulty.Server(Prometheus) as server, Proxy(server.server_address[1], f"canary-user:{PASSWORD}") as proxy:
        config(tmp_path, "prometheus: {url: 'http://prom.internal:9090', "
                         f"proxy: 'http://canary-user:{PASSWORD}@{proxy.place}'}}")
        assert analyze(hunter).code == 0
        config(tmp_path, f"prometheus: {{url: 'http://prom.internal:9090', proxy: 'http://canary-user:wrong@{proxy.place}'}}")
        found = analyze(hunter)
        assert found.code == 3 and "status 407: the proxy requires a user and password" in found.err, found.err
    config(tmp_path, f"prometheus: {{url: 'http://prom.internal:9090', proxy: 'http://canary-user:{PASSWORD}@{proxy.place}'}}")
    found = analyze(hunter)
    assert found.code == 3 and f"its proxy {proxy.place}: Connection refused" in found.err, found.err
    for wrong in ("canary:proxy", "ftp://canary@proxy/", "http://canary:canary@pro xy/"):
        config(tmp_path, f"prometheus: {{url: 'http://prom.internal:9090', proxy: '{wrong}'}}")
        found = analyze(hunter)
        assert found.code in (2, 3) and "must be an address" in found.err, found.err
    config(tmp_path, "prometheus: {url: 'http://prom.internal:9090'}")
    for wrong in ("ftp://canary-user:canary@proxy/", "http://canary-user:canary@pro xy:x/"):
        assert analyze(hunter, env={"http_proxy": wrong, "no_proxy": ""}).code == 3


def test_tls_through_a_proxy(hunter, tmp_path, authority, secured):
    with Proxy(int(secured.rsplit(":", 1)[1]), f"canary-user:{PASSWORD}") as proxy:
        more = f"ca_file: {authority}/ca.pem, username: canary-user, password: {PASSWORD}, headers: {{X-Key: canary-header}}"
        config(tmp_path, f"prometheus: {{url: 'https://prom.internal', {more}, proxy: 'http://canary-user:{PASSWORD}@{proxy.place}'}}")
        found = analyze(hunter)
        assert found.code == 0 and levels(found) == EXPECTED, found.err
        command, path, headers = proxy.asked[0]
        assert (command, path) == ("CONNECT", "prom.internal:443")
        assert "Authorization" not in headers and "X-Key" not in headers
        config(tmp_path, f"prometheus: {{url: 'https://prom.internal', {more}, proxy: 'http://{proxy.place}'}}")
        found = analyze(hunter)
        assert found.code == 3 and "407" in found.err and "the proxy requires a user" in found.err, found.err


def test_max_points_and_max_body(hunter, tmp_path):
    with faulty.Server(Prometheus) as server:
        config(tmp_path, f"prometheus: {{url: '{server.url}', max_points: {POINTS - 1}}}")
        found = analyze(hunter)
        assert found.code == 3 and f"max_points, {POINTS - 1}" in found.err and levels(found) == [], found.err
        config(tmp_path, f"prometheus: {{url: '{server.url}', max_points: {POINTS}}}")
        assert len(levels(analyze(hunter))) == POINTS
        size = len(Prometheus.good(b""))
        config(tmp_path, f"prometheus: {{url: '{server.url}', max_body: {max(size - 1, 1024)}}}")
        assert analyze(hunter).code == (3 if size > 1024 else 0)


def test_max_concurrent(hunter, tmp_path):
    """No more requests at once than allowed, and every one of them is made."""
    now, most, lock = 0, 0, threading.Lock()

    class Counting(Prometheus):
        @staticmethod
        def good(request):
            nonlocal now, most
            with lock:
                now += 1
                most = max(most, now)
            pause(0.02, "a server that takes a while")
            with lock:
                now -= 1
            return Prometheus.good(request)

    with faulty.Server(Counting) as server:
        config(tmp_path, f"prometheus: {{url: '{server.url}', max_concurrent: 3}}",
               "".join(f"  t{i}: {{type: prometheus, query: speed}}\n" for i in range(30)))
        found = analyze(hunter, "--output", "json")
        assert found.code == 0 and len(json.loads(found.out)["tests"]) == 30
        assert sum(b"/query?" in request for request in server.requests) == 30 and most == 3


def test_bad_endpoints_are_configuration_errors(hunter, tmp_path):
    for wrong, words in (("username: me, bearer_token: canary", "username"), ("key_file: /dev/null", "cert_file"),
                         ("max_points: 0", "max_points"), ("retry_for: 2h", "retry_for"), ("proxy: 'ftp://canary'", "proxy")):
        config(tmp_path, f"prometheus: {{url: 'http://prom.internal', {wrong}}}")
        found = hunter("validate")
        assert found.code == 2 and words in found.out + found.err and "canary" not in found.out + found.err, found.out + found.err


def test_the_documentation_lists_every_option():
    top = pathlib.Path(__file__).resolve().parents[2]
    names = re.findall(r'OPTION_[A-Z_]+\(struct endpoint, (\w+)', (top / "agent/base/transfer.c").read_text())
    section = (top / "docs/configure/configuration.md").read_text().split("### HTTP")[1].split("\n## ")[0]
    assert len(names) > 15
    assert [name for name in names if f"`{name}`" not in section.split("**Credentials**")[0]] == []
