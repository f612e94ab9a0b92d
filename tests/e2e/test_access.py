"""Who may do what: users, tokens, proxies, the socket, TLS; and those who try without."""
import base64
import concurrent.futures
import contextlib
import http.client
import json
import os
import pathlib
import re
import socket
import ssl
import stat
import subprocess
import time

import pytest
from agent import config, csv_test, write_csv
from state_address import state_of
from waiting import LONGEST, pause, wait

# "secret" at a cost of 10, "other" at one of 4.
SECRET = "$2b$10$WVNneNypJ4Xh4X7RkAOyYO4gbTiSz4y9Y1b8rRAgptO6rkjt50hN2"
OTHER = "$2b$04$n7/QKy/c3zaOO.wm3GBfkOPkr/ikeBcWQveGAUz4hgLbMDzovXgsK"
TOKEN = "d41d8cd98f00b204e9800998ecf8427e"
USERS = f"basic_auth_users: {{ann: '{SECRET}', bob: '{OTHER}', tim: '{OTHER}'}}\nroles: {{ann: admin, tim: triager}}\n"
TOKENS = "tokens: [{name: ci, file: ci.token, role: triager}, {name: robot, file: robot.token, role: admin}]\n"
LOOK, RUN, RELOAD = ("GET", "/api/v1/tests"), ("POST", "/api/v1/run?test=db.read"), ("POST", "/-/reload")


class UnixConnection(http.client.HTTPConnection):
    def __init__(self, path):
        super().__init__("localhost", timeout=LONGEST)
        self.path = str(path)

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(LONGEST)
        self.sock.connect(self.path)


def basic(user, password):
    return {"Authorization": "Basic " + base64.b64encode(f"{user}:{password}".encode()).decode()}


def bearer(token):
    return {"Authorization": f"Bearer {token}"}


ANN, BOB, TIM = basic("ann", "secret"), basic("bob", "other"), basic("tim", "other")


def answer_of(connection, method, path, headers):
    with contextlib.closing(connection):
        connection.request(method, path, headers=headers or {})
        response = connection.getresponse()
        return response.status, response.headers, response.read().decode()


def ask(port, method="GET", path="/api/v1/tests", headers=None, source="127.0.0.1", tls=None):
    """The answer's status, headers and text, asked from an address of the loopback."""
    kind = http.client.HTTPSConnection if tls else http.client.HTTPConnection
    more = {"context": tls} if tls else {}
    return answer_of(kind("127.0.0.1", port, timeout=LONGEST, source_address=(source, 0), **more), method, path, headers)


def status(*arguments, **more):
    return ask(*arguments, **more)[0]


def secret_file(path, text):
    """Replaces the file as a whole, as those who rotate secrets do."""
    new = path.with_suffix(".new")
    new.write_text(text)
    new.chmod(0o600)
    new.rename(path)


def write_web(tmp_path, text):
    secret_file(tmp_path / "ci.token", TOKEN + "\n")
    secret_file(tmp_path / "robot.token", "robots-" + TOKEN)
    secret_file(tmp_path / "web.yaml", text)


def prepare(tmp_path, web, listen="127.0.0.1:0", agent=""):
    write_csv(tmp_path / "read.csv", [])
    if web is not None:
        write_web(tmp_path, web)
        agent += "\n  web_config: web.yaml"
    path = config(tmp_path, csv_test(tmp_path / "read.csv"), agent=agent)
    path.write_text(path.read_text().replace("interval: 1s", "interval: 1d").replace("listen: 127.0.0.1:0", f"listen: {listen}"))
    return path


def begin(agents, path, *arguments):
    agent = agents(path, *arguments)
    agent.port = int(re.search(r" port=(\d+)", agent.begun())[1])
    return agent


def make_certificate(folder, name, common):
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "30",
                    "-subj", f"/CN={common}", "-addext", "subjectAltName=IP:127.0.0.1", "-keyout", folder / f"{name}.key",
                    "-out", folder / f"{name}.pem"], check=True, capture_output=True)
    return (folder / f"{name}.pem").read_text(), (folder / f"{name}.key").read_text()


def trusting(*certificates):
    context = ssl.create_default_context()
    for certificate in certificates:
        context.load_verify_locations(cadata=certificate)
    return context


def failures(port, **more):
    """hunter_http_authentication_failures_total by reason."""
    text = ask(port, path="/metrics", headers=bearer("robots-" + TOKEN), **more)[2]
    return {reason: int(float(n)) for reason, n in re.findall(r'^hunter_http_authentication_failures_total\{reason="(\w+)"\} (\S+)$', text, re.M)}


def no_secret_in(agent):
    log = "".join(agent.log)
    for secret in ("secret", TOKEN, SECRET, OTHER, base64.b64encode(b"ann:secret").decode()):
        assert secret not in log, log


def test_roles(agents, tmp_path):
    agent = begin(agents, prepare(tmp_path, USERS + TOKENS))
    nobody, wrong = {}, basic("ann", "Secret")
    for headers, looks, changes in ((ANN, 200, 200), (BOB, 200, 403), (TIM, 200, 403), (bearer(TOKEN), 200, 403),
                                    (bearer("robots-" + TOKEN), 200, 200), (nobody, 401, 401), (wrong, 401, 401)):
        assert [status(agent.port, *route, headers=headers) for route in (LOOK, RUN, RELOAD)] == [looks, changes, changes], headers
        if headers is wrong:
            continue
        assert status(agent.port, path="/metrics", headers=headers) == looks
    assert status(agent.port, path="/-/healthy") == 200 and status(agent.port, path="/-/ready") in (200, 503)
    code, headers, text = ask(agent.port)
    assert headers.get_all("WWW-Authenticate") == ['Basic realm="hunter-c", charset="UTF-8"', 'Bearer realm="hunter-c"']
    code, _, text = ask(agent.port, *RUN, headers=BOB)
    assert json.loads(text) == {"error": "requires the role admin; bob has the role viewer"}
    assert status(agent.port, path="/api/v1/nothing") == 404 and status(agent.port, "DELETE") == 405
    # As it was without users: pages of other sites.
    for strange in ({"Host": "evil.example"}, {"Origin": "http://evil.example"}, {"Origin": "null"}, {"Sec-Fetch-Site": "cross-site"}):
        assert status(agent.port, *RUN, headers=ANN | strange) == 403
    no_secret_in(agent)
    assert agent.end() == 0


def test_malformed_credentials(agents, tmp_path):
    agent = begin(agents, prepare(tmp_path, USERS + TOKENS))
    for value in ("", "Basic", "Basic !", "Basic YW5u", "Digest x", "Bearer", "Bearer a b", "Basic " + "QUFB" * 5000, "Bearer " + "x" * 9000,
                  "Basic " + base64.b64encode(b"ann\0:secret").decode(), "Basic " + base64.b64encode(b"ann:secret\0").decode(),
                  "Basic " + base64.b64encode(b"ann:secret").decode() + ",Basic x"):
        assert status(agent.port, headers={"Authorization": value}) == 401, value[:50]
    assert status(agent.port, headers={"Authorization": "Basic " + "A" * 40000}) in (413, 431)

    def raw(text):
        with socket.create_connection(("127.0.0.1", agent.port), LONGEST) as client:
            client.sendall(text)
            client.shutdown(socket.SHUT_WR)
            with contextlib.suppress(ConnectionError):
                return b"".join(iter(lambda: client.recv(65536), b""))
            return b""

    good = b"Authorization: " + ANN["Authorization"].encode() + b"\r\n"
    head = b"GET /api/v1/tests HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n"
    assert b" 200 OK" in raw(head + good + b"\r\n")
    assert b" 400 " in raw(head + good + good + b"\r\n")
    assert b" 400 " in raw(head + good + b"Authorization: Basic x\r\n\r\n")
    assert b" 200 OK" not in raw(head + good.replace(b"Basic ", b"Basic \0") + b"\r\n")
    assert b" 200 OK" not in raw(head + b"X: y\0\r\n".replace(b"y", good.strip()) + b"\r\n")
    assert b" 200 OK" not in raw(head + b"Authorization : " + good[15:] + b"\r\n")
    assert b" 200 OK" not in raw(head + b"X-Y: z\r\n " + good + b"\r\n")
    # What follows a request in its connection is judged by itself.
    both = raw(head.replace(b"Connection: close\r\n", b"") + good + b"\r\n" + head + b"\r\n")
    assert both.count(b" 200 OK") == 1 and both.count(b" 401 ") == 1
    smuggled = b"POST /-/reload HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\n\r\n"
    for ends in (b"Content-Length: 4\r\nTransfer-Encoding: chunked\r\n", b"Content-Length: 4\r\nContent-Length: 5\r\n"):
        assert b'"loaded"' not in raw(b"POST /api/v1/run HTTP/1.1\r\nHost: localhost\r\n" + good + ends + b"\r\n0\r\n\r\n" + smuggled)
    no_secret_in(agent)
    assert agent.end() == 0


def test_body_behind_the_password(agents, tmp_path):
    """The password is checked before the body is read."""
    agent = begin(agents, prepare(tmp_path, USERS))
    form = {"Content-Type": "application/x-www-form-urlencoded"}
    for headers, expected in ((ANN, 200), (basic("ann", "wrong"), 401)):
        with contextlib.closing(http.client.HTTPConnection("127.0.0.1", agent.port, timeout=LONGEST)) as connection:
            connection.request("POST", "/api/v1/run", body="test=db.read", headers=headers | form)
            assert connection.getresponse().status == expected
    with socket.create_connection(("127.0.0.1", agent.port), LONGEST) as client:
        fresh = basic("tim", "other")["Authorization"]
        client.sendall(f"POST /-/reload HTTP/1.1\r\nHost: localhost\r\nAuthorization: {fresh}\r\nContent-Length: 60000\r\n"
                       "Content-Type: application/x-www-form-urlencoded\r\nExpect: 100-continue\r\n\r\n".encode())
        assert client.recv(65536).startswith(b"HTTP/1.1 403 ")
    assert agent.end() == 0


def test_rotation(agents, tmp_path):
    agent = begin(agents, prepare(tmp_path, USERS + TOKENS))
    assert status(agent.port, headers=ANN) == 200 and status(agent.port, headers=bearer(TOKEN)) == 200
    secret_file(tmp_path / "ci.token", "another-token-of-some-length\n")
    wait(lambda: status(agent.port, headers=bearer("another-token-of-some-length"), source="127.0.0.2") == 200)
    assert status(agent.port, headers=bearer(TOKEN)) == 401  # what was right before is replayed
    secret_file(tmp_path / "web.yaml", USERS.replace(SECRET, OTHER) + TOKENS)
    assert status(agent.port, *RELOAD, headers=bearer("robots-" + TOKEN)) == 200  # which takes it over at once
    assert status(agent.port, headers=ANN) == 401 and status(agent.port, headers=basic("ann", "other")) == 200
    # A broken file is logged once, and what was before stays.
    secret_file(tmp_path / "web.yaml", "basic_auth_users: {ann: secret}\nnonsense: 1\n")
    code, _, text = ask(agent.port, *RELOAD, headers=basic("ann", "other"))
    told = json.loads(text)
    assert code == 500 and told["loaded"] and told["error"].startswith("agent.web_config: "), text
    line = agent.wait_log("web configuration not reloaded")
    assert "2 errors, the first: " in line and 'web.yaml:2:1: unknown key \\"nonsense\\"' in line, line
    assert status(agent.port, *RELOAD, headers=basic("ann", "other")) == 500  # it has been looked at again
    assert status(agent.port, headers=basic("ann", "other")) == 200 and status(agent.port, headers=basic("bob", "secret")) == 401
    secret_file(tmp_path / "web.yaml", "roles: {}\n")  # nobody
    assert status(agent.port, *RELOAD, headers=basic("ann", "other")) == 500
    assert status(agent.port) == 401
    secret_file(tmp_path / "web.yaml", USERS)
    wait(lambda: status(agent.port, headers=ANN, source="127.0.0.3") == 200)
    assert len([line for line in agent.log if "not reloaded" in line]) == 2
    no_secret_in(agent)
    assert agent.end() == 0


def test_a_broken_file_at_the_start(hunter, tmp_path):
    path = prepare(tmp_path, "basic_auth_users: {ann: secret}\n")
    refused = hunter("run", "--config", path)
    assert refused.code == 2 and "web.yaml:1:25" in refused.err and "bcrypt" in refused.err, refused.err
    checked = hunter("validate", "--config", path)
    assert checked.code == 2 and "web.yaml:1:25" in checked.out + checked.err, checked
    secret_file(tmp_path / "web.yaml", USERS)
    assert hunter("validate", "--config", path).code == 0


def test_ten_thousand_guesses(agents, tmp_path):
    """They are answered soon, few of them are looked at, and whoever may come in is served."""
    agent = begin(agents, prepare(tmp_path, USERS + TOKENS))
    assert status(agent.port, headers=ANN) == 200
    began, longest, codes = time.monotonic(), 0, []

    def guess(worker):
        connection = http.client.HTTPConnection("127.0.0.1", agent.port, timeout=LONGEST, source_address=("127.0.0.66", 0))
        with contextlib.closing(connection):
            for i in range(1250):
                name = ("ann", f"user{i}")[i % 2]
                connection.request("GET", "/api/v1/tests", headers=basic(name, f"guess{worker}-{i}"))
                response = connection.getresponse()
                response.read()
                codes.append(response.status)

    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        guesses = [pool.submit(guess, worker) for worker in range(8)]
        while not all(one.done() for one in guesses):
            before = len(codes)
            assert status(agent.port, headers=ANN) == 200
            assert status(agent.port, headers=bearer(TOKEN), source="127.0.0.66") == 200  # even from there
            longest = max(longest, len(codes) - before)
        for one in guesses:
            one.result()
    took = time.monotonic() - began
    assert len(codes) == 10000 and set(codes) == {401, 429}
    assert codes.count(401) < 60 + took, (took, codes.count(401))
    assert longest < 2000, f"so many guesses were answered before two who may come in: {longest}"
    assert status(agent.port, headers=BOB) == 200  # who has not been there before
    counted = failures(agent.port)
    assert counted["password"] == codes.count(401) and counted["slowed"] + counted.get("busy", 0) == codes.count(429)
    no_secret_in(agent)
    assert len(agent.log) < 100
    assert agent.end() == 0


def test_unknown_users_take_as_long(agents, tmp_path):
    agent = begin(agents, prepare(tmp_path, USERS.replace(OTHER, SECRET)))
    spent = {"ann": 0, "nobody": 0}

    def used():
        """Processor time of all its threads, ns: what else the machine does must not count."""
        threads = pathlib.Path(f"/proc/{agent.process.pid}/task").iterdir()
        return sum(int((thread / "schedstat").read_text().split()[0]) for thread in threads)

    assert status(agent.port, headers=ANN) == 200  # the threads are there
    for i in range(6):
        for name in spent:
            before = used()
            assert status(agent.port, headers=basic(name, "wrong"), source=f"127.0.1.{i + 1}") == 401
            spent[name] += used() - before
    assert 0.7 < spent["ann"] / spent["nobody"] < 1.4, spent
    assert agent.end() == 0


def test_stopping_while_a_password_is_checked(agents, tmp_path):
    agent = begin(agents, prepare(tmp_path, USERS.replace("$2b$10$", "$2b$12$")))
    with contextlib.ExitStack() as stack:
        for i in range(8):
            client = stack.enter_context(socket.create_connection(("127.0.0.1", agent.port), LONGEST, source_address=(f"127.0.1.{i + 1}", 0)))
            value = basic("ann", f"guess{i}")["Authorization"]
            # The second is read when the first is refused, since the agent ends.
            client.sendall(2 * f"GET /api/v1/tests HTTP/1.1\r\nHost: localhost\r\nAuthorization: {value}\r\n\r\n".encode())
        wait(lambda: status(agent.port, headers=TIM) in (200, 429))
        assert agent.end() == 0


def test_roles_come_from_a_proxy_only_if_it_is_said(agents, tmp_path):
    agent = begin(agents, prepare(tmp_path, USERS + "trusted_proxies: [127.0.0.8]\n"))
    headers = {"X-WEBAUTH-USER": "zoe", "X-ROLES": "admin"}
    assert status(agent.port, headers=headers, source="127.0.0.8") == 200
    assert status(agent.port, *RUN, headers=headers, source="127.0.0.8") == 403


def test_proxy(agents, tmp_path):
    web = USERS + TOKENS + "trusted_proxies: [127.0.0.8]\nrole_header: X-ROLES\n"
    agent = begin(agents, prepare(tmp_path, web, agent="  external_url: https://hunter.example.com/perf"))
    proxied = {"X-WEBAUTH-USER": "zoe", "X-ROLES": "admin", "Host": "hunter.example.com", "X-Forwarded-For": "203.0.113.5"}
    assert status(agent.port, *RUN, headers=proxied, source="127.0.0.8") == 200
    assert status(agent.port, *RUN, headers=proxied | {"X-ROLES": "viewer, triager"}, source="127.0.0.8") == 403
    assert status(agent.port, headers={"X-WEBAUTH-USER": "zoe"}, source="127.0.0.8") == 200
    assert status(agent.port, *RUN, headers={"X-WEBAUTH-USER": "ann"}, source="127.0.0.8") == 200  # the file's role
    assert status(agent.port, headers={"X-WEBAUTH-USER": ""}, source="127.0.0.8") == 400
    assert status(agent.port, headers={"X-ROLES": "admin"}, source="127.0.0.8") == 401
    # From anywhere else the headers are nothing.
    for forged in (proxied, {"X-WEBAUTH-USER": "ann", "X-ROLES": "admin", "X-Forwarded-For": "127.0.0.8", "X-Real-IP": "127.0.0.8"}):
        assert status(agent.port, *RUN, headers=forged) == 401
        assert status(agent.port, *RUN, headers=forged | BOB) == 403
    assert failures(agent.port)["header"] == 4
    # The browser's side of it: its origin is the proxy's, whatever Host the proxy gives us.
    ours = {"X-WEBAUTH-USER": "zoe", "X-ROLES": "admin", "Origin": "https://hunter.example.com", "Sec-Fetch-Site": "same-origin"}
    for host in ("hunter.example.com", f"127.0.0.1:{agent.port}", "HUNTER.example.com:443"):
        assert status(agent.port, *RUN, headers=ours | {"Host": host}, source="127.0.0.8") == 200
    for strange in ({"Origin": "https://evil.example"}, {"Origin": "https://hunter.example.com.evil.example"}, {"Origin": "null"},
                    {"Origin": "https://hunter.example.com:444"}, {"Sec-Fetch-Site": "cross-site"}, {"Host": "evil.example"}):
        assert status(agent.port, *RUN, headers={"Host": "hunter.example.com"} | ours | strange, source="127.0.0.8") == 403, strange
    # Guesses through the proxy slow down their client, not the proxy.
    for _ in range(6):
        last = status(agent.port, headers=basic("bob", "wrong") | {"X-Forwarded-For": "1.2.3.4, 203.0.113.6"}, source="127.0.0.8")
    assert last == 429
    assert status(agent.port, headers=BOB | {"X-Forwarded-For": "203.0.113.6, 203.0.113.7"}, source="127.0.0.8") == 200
    assert agent.end() == 0


def test_socket(agents, hunter, tmp_path):
    path = tmp_path / "api.sock"
    settings = prepare(tmp_path, USERS, listen=f"['127.0.0.1:0', 'unix:{path}']", agent="  socket_mode: 0600")
    agent = begin(agents, settings)
    assert stat.S_ISSOCK(path.stat().st_mode) and stat.S_IMODE(path.stat().st_mode) == 0o600

    def through(method, page, headers=None):
        return answer_of(UnixConnection(path), method, page, headers)[0]

    assert [through(*route) for route in (LOOK, RUN, RELOAD)] == [200, 200, 200]
    assert through(*RUN, headers={"Host": "anything"}) == 403
    assert through(*RUN, headers={"Host": ""}) == 403
    assert through(*RUN, headers={"Origin": "http://evil.example"}) == 403
    assert through(*RUN, headers={"Sec-Fetch-Site": "cross-site"}) == 403
    for header in ("X-Forwarded-For", "Forwarded", "Via", "X-Real-IP"):
        assert through(*LOOK, headers={header: "203.0.113.5"}) == 403  # a proxy would make everybody an admin
    assert status(agent.port, *LOOK) == 401
    # Whoever comes second leaves it alone; what nobody listens on is replaced; it is removed in the end.
    second = tmp_path / "second.yaml"
    second.write_text(settings.read_text().replace(state_of(tmp_path), state_of(tmp_path, "other.db")))
    refused = hunter("run", "--config", second)
    assert refused.code == 4 and "in use by another process" in refused.err, refused.err
    assert through(*LOOK) == 200
    agent.process.kill()
    agent.process.wait()
    assert path.exists()
    agent = begin(agents, settings)
    assert through(*LOOK) == 200
    assert agent.end() == 0 and not path.exists()
    path.write_text("precious")
    refused = hunter("run", "--config", settings)
    assert refused.code == 4 and "not a socket" in refused.err and path.read_text() == "precious", refused.err
    path.unlink()
    for wrong, told in (("socket_owner: nobody-there", "no user"), ("socket_owner: ':none'", "no group"),
                        ("socket_mode: rw", "octal"), ("socket_mode: 9999", "octal"), ("socket_mode: 0666\n  nonsense: 1", "socket_mode: 0666 makes every user")):
        settings.write_text(settings.read_text().replace("socket_mode: 0600", wrong))
        refused = hunter("run", "--config", settings)
        assert refused.code == 2 and told in refused.err, refused.err
        settings.write_text(settings.read_text().replace(wrong, "socket_mode: 0600"))
    assert not path.exists()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root gives files away")
def test_socket_owner(agents, tmp_path):
    path = tmp_path / "api.sock"
    agent = begin(agents, prepare(tmp_path, None, listen=f"['127.0.0.1:0', 'unix:{path}']", agent="  socket_owner: nobody:daemon"))
    import grp
    import pwd
    assert (path.stat().st_uid, path.stat().st_gid) == (pwd.getpwnam("nobody").pw_uid, grp.getgrnam("daemon").gr_gid)
    assert stat.S_IMODE(path.stat().st_mode) == 0o660
    assert agent.end() == 0


def test_other_machines(agents, hunter, tmp_path):
    """Where they can connect, users must sign in."""
    refused = hunter("run", "--config", prepare(tmp_path, None, listen="0.0.0.0:0"))
    assert refused.code == 2 and "needs authentication: set agent.web_config" in refused.err, refused.err
    certificate, key = make_certificate(tmp_path, "server", "server")
    refused = hunter("run", "--config", prepare(tmp_path, "tls_server_config: {cert_file: server.pem, key_file: server.key}\n",
                                                listen="0.0.0.0:0"))
    assert refused.code == 2 and "reachable from other machines and needs authentication" in refused.err, refused.err
    agent = begin(agents, prepare(tmp_path, USERS, listen="0.0.0.0:0"))
    agent.wait_log("passwords and tokens are sent unencrypted")
    assert status(agent.port) == 401 and status(agent.port, headers=ANN) == 200
    assert agent.end() == 0
    agent = begin(agents, prepare(tmp_path, None, listen="0.0.0.0:0"), "--insecure")
    assert [status(agent.port, *route) for route in (LOOK, RUN, RELOAD)] == [200, 200, 200]
    assert agent.end() == 0


def test_metrics_listen_is_open(agents, tmp_path):
    certificate, key = make_certificate(tmp_path, "server", "server")
    path = prepare(tmp_path, USERS + "tls_server_config: {cert_file: server.pem, key_file: server.key}\n",
                   agent="  metrics_listen: 127.0.0.1:0")
    agent = begin(agents, path)
    port = int(re.search(r" port=(\d+)", agent.wait_log("serving metrics"))[1])
    assert status(port, path="/metrics") == 200 and status(port, path="/api/v1/tests") == 404
    assert status(agent.port, path="/metrics", tls=trusting(certificate)) == 401
    assert agent.end() == 0


def test_tls(agents, tmp_path):
    certificate, key = make_certificate(tmp_path, "server", "first")
    agent = begin(agents, prepare(tmp_path, USERS + "tls_server_config: {cert_file: server.pem, key_file: server.key}\n"))
    tls = trusting(certificate)
    for version in (ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3):
        tls.minimum_version = tls.maximum_version = version
        assert [status(agent.port, *route, headers=ANN, tls=tls) for route in (LOOK, RUN)] == [200, 200]
    with pytest.raises(OSError):
        status(agent.port)  # without TLS
    with pytest.raises(ssl.SSLError):
        status(agent.port, tls=ssl.create_default_context())
    old = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    old.check_hostname, old.verify_mode = False, ssl.CERT_NONE
    old.set_ciphers("ALL:@SECLEVEL=0")
    old.minimum_version, old.maximum_version = ssl.TLSVersion.TLSv1, ssl.TLSVersion.TLSv1_1
    with pytest.raises(OSError):
        status(agent.port, tls=old)
    old.minimum_version = old.maximum_version = ssl.TLSVersion.TLSv1_2
    old.set_ciphers("AES128-SHA:AES256-GCM-SHA384:ECDHE-ECDSA-AES128-SHA:@SECLEVEL=0")  # without forward secrecy, or CBC
    with pytest.raises(OSError):
        status(agent.port, tls=old)

    def subject():
        with socket.create_connection(("127.0.0.1", agent.port), LONGEST) as plain, anybody.wrap_socket(plain) as client:
            return ssl.DER_cert_to_PEM_cert(client.getpeercert(True)).strip()

    # A connection keeps its certificate; those after the change have the new one.
    anybody = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    anybody.check_hostname, anybody.verify_mode = False, ssl.CERT_NONE
    kept = http.client.HTTPSConnection("127.0.0.1", agent.port, timeout=LONGEST, context=trusting(certificate))
    kept.request("GET", "/-/healthy")
    assert kept.getresponse().read() == b"healthy\n"
    second, second_key = make_certificate(tmp_path, "second", "second")
    secret_file(tmp_path / "server.pem", second)  # the key follows later
    wait(lambda: subject() != certificate.strip() or any(re.search("web configuration not reloaded.*key_file", line) for line in agent.log))
    assert subject() == certificate.strip()
    secret_file(tmp_path / "server.key", second_key)
    wait(lambda: subject() == second.strip())
    kept.request("GET", "/-/healthy")
    assert kept.getresponse().read() == b"healthy\n"
    kept.close()
    assert status(agent.port, headers=ANN, tls=trusting(second)) == 200
    # The oldest version changes likewise; disabling TLS requires a restart.
    secret_file(tmp_path / "web.yaml", USERS + "tls_server_config: {cert_file: server.pem, key_file: server.key, min_version: TLS13}\n")
    anybody.maximum_version = ssl.TLSVersion.TLSv1_2

    def is_refused():
        try:
            return subject() and False
        except OSError:
            return True

    wait(is_refused)
    anybody.maximum_version = ssl.TLSVersion.TLSv1_3
    secret_file(tmp_path / "web.yaml", USERS)
    wait(lambda: subject() != second.strip() or any("disabling TLS requires a restart" in line for line in agent.log))
    assert subject() == second.strip()
    assert agent.end() == 0


def test_slow_handshakes(agents, tmp_path):
    """They hold no place for long, and nobody up."""
    certificate, key = make_certificate(tmp_path, "server", "server")
    agent = begin(agents, prepare(tmp_path, USERS + "tls_server_config: {cert_file: server.pem, key_file: server.key}\n"))
    tls = trusting(certificate)
    hello = ssl.MemoryBIO()
    session = tls.wrap_bio(ssl.MemoryBIO(), hello, server_hostname="127.0.0.1")
    with pytest.raises(ssl.SSLWantReadError):
        session.do_handshake()
    first = hello.read()
    with contextlib.ExitStack() as stack:
        slow = [stack.enter_context(socket.create_connection(("127.0.0.1", agent.port), LONGEST)) for _ in range(300)]
        for i, client in enumerate(slow):
            with contextlib.suppress(OSError):
                client.sendall((b"", first[:1], first[:200], b"GET / HTTP/1.1\r\n\r\n")[i % 4])
        assert status(agent.port, headers=ANN, tls=tls) == 200
        for at in range(1, 2 * LONGEST):
            try:
                slow[297].sendall(first[at:at + 1])
                if slow[297].recv(1, socket.MSG_DONTWAIT) == b"":
                    break
            except BlockingIOError:
                pass
            except OSError:
                break
            pause(0.5, "a byte now and then")
        else:
            raise AssertionError("it keeps its place")
        assert at > 2, "there was no room for those who are quick"
        assert status(agent.port, headers=ANN, tls=tls) == 200
    assert agent.end() == 0
