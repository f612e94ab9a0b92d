"""analyze and regressions on a real Prometheus with history of ours, at fixed dates."""
import json
import pathlib
import re
import shutil
import socketserver
import ssl
import subprocess
import threading
from http import server as http_server

import pytest
import servers
from agent import noise
from state_address import state_of
from waiting import wait

START = 1709251200  # 2024-03-01 00:00:00 UTC
MINUTE = 60
POINTS = 120
EXAMPLE = pathlib.Path(__file__).parents[2] / "conf" / "prometheus.yaml"
SINCE, UNTIL = "2024-03-01", "2024-03-02"


def values(base, factor, at):
    return [base * (factor if i >= at else 1) * (1 + 0.01 * noise(i)) for i in range(POINTS)]


def history():
    def rows(labels, base, factor, at):
        return [(labels, f"{value:.6f}", START + MINUTE * i) for i, value in enumerate(values(base, factor, at))]

    return servers.openmetrics({
        # Worse by a tenth in eu from point 70 on; us stays.
        "latency_seconds": rows({"job": "shop", "region": "eu"}, 0.2, 1.1, 70) + rows({"job": "shop", "region": "us"}, 0.3, 1, 0),
        "throughput": rows({"job": "shop"}, 5000, 0.9, 50),
        # One sample a run, an hour apart and off the grid: with the five minutes of lookback a grid misses all of it.
        "sparse": [({"commit": "x"}, 10 if i < 12 else 12, START + 3600 * i + 1234.567) for i in range(24)],
        "odd": [({"k": "a \"quoted\" \\ name"}, v, START + MINUTE * i)
                for i, v in enumerate(["1", "NaN", "+Inf", "-Inf", "2.5", "NaN", "3"])],
        # Two repositories whose benchmarks run at the same minute, each on a commit of its own.
        "nightly": [({"bench": bench, "suite": bench * 2, "commit": f"{bench}{i}"}, f"{value:.6f}", START + 1800 * i)
                    for bench in "ab" for i, value in enumerate(values(10, 1.2, 30)[:40])],
    })


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    with servers.prometheus(tmp_path_factory.mktemp("prometheus"), history()) as running:
        yield running


def config(folder, url, tests, more=""):
    path = folder / "hunter.yaml"
    path.write_text(f"prometheus: {{url: '{url}'{more}}}\nagent: {{state: '{state_of(folder)}'}}\ntests:\n{tests}")
    return path


LATENCY = """
  shop:
    type: prometheus
    query: latency_seconds{job="shop"}
    metrics: {latency: {direction: -1, unit: s}}
"""


def analyze(hunter, *arguments):
    return hunter("analyze", "--since", SINCE, "--until", UNTIL, *arguments)


def test_raw_samples_and_their_change(hunter, tmp_path, server):
    config(tmp_path, server.url, LATENCY)
    found = analyze(hunter, "shop", "--output", "json")
    assert found.code == 0, found.err
    names = json.dumps(json.loads(found.out))
    assert r'latency{region=\"eu\"}' in names and r'latency{region=\"us\"}' in names
    text = analyze(hunter, "shop").out
    assert 'latency{region="eu"}' in text and 'latency{region="us"}' in text
    assert text.count("%") == 1, text
    assert re.search(r"\+(9\.[5-9]|10\.[0-5])%", text), text
    lines = text.splitlines()
    change = next(i for i, line in enumerate(lines) if "%" in line)
    assert lines[change + 2].startswith("2024-03-01 01:10:00 +0000"), text
    assert sum(line.startswith("2024-03-01") for line in lines) == POINTS


NIGHTLY = """
  nightly:
    type: prometheus
    query: nightly
    commit_label: commit
    metrics: {nightly: {direction: -1}}
"""


def test_series_of_one_time_keep_their_commits(hunter, tmp_path, server):
    config(tmp_path, server.url, NIGHTLY)
    series = ['nightly{bench="a",suite="aa"}', 'nightly{bench="b",suite="bb"}']
    found = analyze(hunter, "nightly", "--output", "json")
    document = json.loads(found.out)["tests"][0]
    assert [m["name"] for m in document["metrics"]] == series, found.out + found.err
    assert [(c["metric"], c["attributes"]["commit"]) for c in document["changes"]] == list(zip(series, ["a30", "b30"]))
    groups = json.loads(analyze(hunter, "nightly", "--output", "json", "--profile", "otava").out)["nightly"]
    assert [(g["attributes"]["commit"], [c["metric"] for c in g["changes"]]) for g in groups] == [
        ("a30", series[:1]), ("b30", series[1:])]
    lines = analyze(hunter, "nightly", "--output", "csv", "--attrs", "commit").out.splitlines()
    assert [line.split(",regression,")[-1].split(",yes,")[-1].split(",kind,")[0].split(",step,")[0] for line in lines] == [
        "commit,commit_before,labels", 'a30,a29,"bench=a, suite=aa"', 'b30,b29,"bench=b, suite=bb"']
    assert [(c["labels"], c["commit_before"]) for c in document["changes"]] == [
        ({"bench": "a", "suite": "aa"}, "a29"), ({"bench": "b", "suite": "bb"}, "b29")]
    rows = [line.split() for line in analyze(hunter, "nightly").out.splitlines() if line.startswith("2024-03-01")]
    assert len(rows) == 80 and [row[3] for row in rows[:4]] == ["a0", "b0", "a1", "b1"]


def test_what_list_metrics_prints_can_be_asked_for(hunter, tmp_path, server):
    config(tmp_path, server.url, NIGHTLY)
    names = hunter("list-metrics", "nightly", "--since", SINCE, "--until", UNTIL).out.splitlines()
    assert names == ['nightly{bench="a",suite="aa"}', 'nightly{bench="b",suite="bb"}']
    assert hunter("list-metrics", "nightly", "--since", UNTIL, "--until", "2024-03-03").out == ""

    def found(*arguments):
        document = json.loads(analyze(hunter, "nightly", "--output", "json", *arguments).out)
        return [m["name"] for m in document["tests"][0]["metrics"]]

    assert found("--metrics", names[1]) == names[1:]
    assert found("--metrics", ",".join(names[::-1])) == names[::-1]
    assert found("--metrics", names[1], "--metrics", names[0]) == names[::-1]


def test_regressions(hunter, tmp_path, server):
    config(tmp_path, server.url, LATENCY + """
  speed:
    type: prometheus
    query: throughput
    metrics: {throughput: {direction: -1}}
""")
    found = hunter("regressions", "--since", "2024-03-01 00:00", "--until", UNTIL)
    assert found.code == 1, found.err
    assert re.search(r'latency\{region="eu"\} *: .*\( *\+(9\.[5-9]|10\.[0-5])% \[', found.out), found.out
    assert 'latency{region="us"}' not in found.out
    assert "speed: OK" in found.out  # it fell, and lower is better
    assert "Regressions in 1 test found" in found.out


def test_without_metrics_each_name_is_one(hunter, tmp_path, server):
    config(tmp_path, server.url, """
  all:
    type: prometheus
    query: '{job="shop"}'
""")
    text = analyze(hunter, "all").out
    assert 'latency_seconds{region="eu"}' in text and "throughput" in text and "job" not in text


def test_a_query_may_end_in_a_comment(hunter, tmp_path, server):
    config(tmp_path, server.url, """
  shop: {type: prometheus, query: 'throughput{job="shop"} # "all" of it'}
  grid: {type: prometheus, query: 'throughput{job="shop"} # "all" of it', step: 1m}
""")
    for test in ("shop", "grid"):
        found = analyze(hunter, test)
        assert found.code == 0 and found.out.count("\n2024-03-01") >= POINTS, found.out + found.err


def test_a_grid_and_functions(hunter, tmp_path, server):
    config(tmp_path, server.url, """
  shop:
    type: prometheus
    query: sum by (job) (latency_seconds)
    step: 5m
    metrics: {latency: {scale: 1000}}
""")
    found = hunter("analyze", "shop", "--since", "2024-03-01 00:02", "--until", "2024-03-01 01:00")
    rows = [line for line in found.out.splitlines() if line.startswith("2024-03-01")]
    assert [row[11:16] for row in rows] == [f"00:{m:02d}" for m in range(5, 60, 5)], found.out + found.err
    assert abs(float(rows[0].split()[-1]) - 1000 * (values(0.2, 1.1, 70)[5] + values(0.3, 1, 0)[5])) < 1


def test_a_grid_misses_what_raw_samples_show(hunter, tmp_path, server):
    config(tmp_path, server.url, """
  raw: {type: prometheus, query: sparse}
  grid: {type: prometheus, query: sparse, step: 1h}
""")
    raw = analyze(hunter, "raw")
    stamps = [line[:19] for line in raw.out.splitlines() if line.startswith("2024-03-01")]
    assert len(stamps) == 24 and all(stamp.endswith(":20:34") for stamp in stamps), raw.out + raw.err
    assert "+20.0%" in raw.out
    grid = analyze(hunter, "grid")
    assert "no data" in grid.err and 'without step, raw samples are read' in grid.err


def test_an_expression_needs_a_step(hunter, tmp_path, server):
    config(tmp_path, server.url, "  shop: {type: prometheus, query: 'rate(throughput[5m])'}\n")
    found = analyze(hunter, "shop")
    assert found.code == 3
    assert "status 400" in found.err and 'add step' in found.err and "shop" in found.err


def test_queries_of_metrics_and_a_long_one(hunter, tmp_path, server):
    longer = " or ".join(f'absent_{i}' for i in range(200))
    config(tmp_path, server.url, f"""
  shop:
    type: prometheus
    step: 1m
    metrics:
      eu: {{query: 'latency_seconds{{region="eu"}}'}}
      long: {{query: 'throughput or {longer}'}}
""")
    text = analyze(hunter, "shop")
    assert text.code == 0, text.err
    header = next(line for line in text.out.splitlines() if line.startswith("time"))
    assert header.split() == ["time", "eu", "long"], text.out


def test_special_values(hunter, tmp_path, server):
    config(tmp_path, server.url, "  odd: {type: prometheus, query: odd}\n")
    found = analyze(hunter, "odd")
    assert found.code == 0, found.err
    rows = [line for line in found.out.splitlines() if line.startswith("2024-03-01")]
    assert len(rows) == 7, found.out


@pytest.fixture(scope="module")
def example(tmp_path_factory):
    """A Prometheus with the data that the head of conf/prometheus.yaml makes, and a service with two builds."""
    folder = tmp_path_factory.mktemp("example")
    script = re.search(r"^#   \{ echo.*?>history.txt$", EXAMPLE.read_text(), re.M | re.S)[0]
    subprocess.run(["bash", "-ec", "\n".join(line[1:] for line in script.splitlines())], cwd=folder, check=True)
    bench = (folder / "history.txt").read_text().replace("# EOF\n", "")
    with servers.prometheus(folder, bench + service()) as running:
        yield running


def service():
    """A service that is scraped each minute for six hours; from 03:00 on it is another build, and slower."""
    def rows(labels, value):
        return [(labels | {"instance": i}, value(k), START + MINUTE * k) for i in ("a:80", "b:80") for k in range(360)]

    return servers.openmetrics({
        "work_seconds": rows({"job": "shop"}, lambda k: f"{0.2 * (1.2 if k >= 180 else 1) * (1 + 0.01 * noise(k)):.6f}"),
        # During the rollout, of ten minutes, both are there.
        "shop_build_info": [({"job": "shop", "instance": i, "revision": revision, "version": version}, 1, START + MINUTE * k)
                            for i, delay in (("a:80", 0), ("b:80", 10))
                            for revision, version, of in (("a60027ff", "1.4", range(0, 180 + delay)),
                                                          ("15ce8e36", "1.5", range(180 + delay, 360))) for k in of]})


def test_the_example_finds_what_is_in_its_data(hunter, tmp_path, example):
    def ask(*arguments):
        return hunter(*arguments, "--config", EXAMPLE, env={"PROMETHEUS_URL": example.url})

    found = ask("analyze", "bench.read", "--since", "2024-01-01")
    lines = found.out.splitlines()
    assert found.code == 0 and found.err == "" and sum(line.startswith("2024-") for line in lines) == 90, found.out + found.err
    assert sum("%" in line for line in lines) == 1, found.out
    change = next(i for i, line in enumerate(lines) if "%" in line)
    assert lines[change + 2].startswith("2024-03-01 06:00:00 +0000") and lines[change + 2].split()[3:5] == ["c60", "1.2"], found.out
    found = ask("regressions", "bench.read", "--since-commit", "c40")
    assert found.code == 3 and "no data in the selected range" in found.err  # the last 365 days have none
    found = ask("regressions", "bench.read", "--since", "2024-01-20")
    assert found.code == 1 and re.search(r"p99 *: .*\( *\+(9\.[5-9]|10\.[0-5])% \[", found.out), found.out
    found = ask("analyze", "bench.read", "--since", "2024-01-01", "--branch", 'no"ne')
    assert found.code == 3 and "no data" in found.err
    assert "bench_p99_seconds" in ask("analyze", "bench.all", "--since", "2024-01-01").out


def test_a_service_knows_its_build(hunter, tmp_path, example):
    config(tmp_path, example.url, """
  shop:
    type: prometheus
    query: avg by (job) (work_seconds)
    step: 5m
    build_info: shop_build_info{job="shop"}
    metrics: {work: {direction: -1}}
""")
    text = hunter("analyze", "shop", "--since", "2024-03-01", "--until", "2024-03-01 06:00").out
    lines = [line for line in text.splitlines() if line.startswith("2024-03-01")]
    assert len(lines) == 72 and text.count("%") == 1, text
    assert [line.split()[3:5] for line in lines] == [["a60027ff", "1.4"]] * 36 + [["15ce8e36", "1.5"]] * 36, text
    found = hunter("analyze", "shop", "--until", "2024-03-01 06:00", "--since-commit", "15ce8e36")
    assert sum(line.startswith("2024-03-01") for line in found.out.splitlines()) == 36, found.out + found.err
    found = hunter("regressions", "--since-version", "1.4", "--until", "2024-03-01 06:00")
    assert found.code == 1 and "work" in found.out, found.out + found.err


def test_list_metrics_asks_the_server(hunter, tmp_path, example):
    config(tmp_path, example.url, """
  shop:
    type: prometheus
    query: work_seconds
    range: 3650d
    build_info: shop_build_info
    metrics: {work: {direction: -1}}
""")
    assert hunter("list-metrics", "shop") == (0, 'work{instance="a:80"}\nwork{instance="b:80"}\n', "")


def test_a_small_server_is_asked_in_pieces(hunter, tmp_path):
    """A server that loads 100 samples a query at most gives the 240 of two series, raw and on a grid."""
    rows = [({"region": region}, 10 + i, START + MINUTE * i) for region in ("eu", "us") for i in range(POINTS)]
    with servers.prometheus(tmp_path, servers.openmetrics({"work": rows}), ["--query.max-samples=100"]) as small:
        config(tmp_path, small.url, """
  raw: {type: prometheus, query: work}
  grid: {type: prometheus, query: work, step: 1m}
""")
        for test in ("raw", "grid"):
            found = analyze(hunter, test, "--until", "2024-03-01 02:00")
            points = [line.split()[3:] for line in found.out.splitlines() if line.startswith("2024-03-01")]
            assert found.err == "" and points == [[str(10 + i)] * 2 for i in range(POINTS)], found.out + found.err


def test_more_steps_than_an_answer_may_have(hunter, tmp_path, server):
    """Two pieces; after the last sample there are five minutes in which it is repeated."""
    config(tmp_path, server.url, "  fine: {type: prometheus, query: 'avg(latency_seconds)', step: 10s, range: 2d}\n")
    found = hunter("analyze", "fine", "--until", "2024-03-01 02:30", "--log-level", "debug")
    assert found.code == 0 and found.err.count("on a grid") == 2, found.err
    points = sum(line.startswith("2024-03-01") for line in found.out.splitlines())
    assert points - 6 * (119 + 5) in (0, 1), found.out  # Prometheus 3 leaves the end of the five minutes out


def test_nothing_listens(hunter, tmp_path):
    port = servers.free_port()
    config(tmp_path, f"http://127.0.0.1:{port}", LATENCY)
    found = analyze(hunter, "shop")
    assert found.code == 3
    assert f"cannot reach http://127.0.0.1:{port}: Connection refused" in found.err


def test_wrong_path_and_tls(hunter, tmp_path, server):
    config(tmp_path, server.url + "/prometheus", LATENCY)
    found = analyze(hunter, "shop")
    assert found.code == 3 and "status 404" in found.err and "path" in found.err
    config(tmp_path, server.url.replace("http:", "https:"), LATENCY)
    found = analyze(hunter, "shop")
    assert found.code == 3 and "the server does not speak TLS" in found.err


class Fault(socketserver.ThreadingTCPServer):
    """Answers each request with the same bytes, and keeps what it was asked."""
    allow_reuse_address = daemon_threads = True

    def __init__(self, answers, tls=None):
        self.answers, self.requests = list(answers), []
        super().__init__(("127.0.0.1", 0), Fault.Handler)
        self.tls = tls
        self.url = f"{'https' if tls else 'http'}://127.0.0.1:{self.server_address[1]}"
        threading.Thread(target=self.serve_forever, args=(0.02,), daemon=True).start()

    def handle_error(self, request, client_address):
        """Clients that break off are what some tests are about."""

    class Handler(socketserver.StreamRequestHandler):
        timeout = 20

        def setup(self):
            self.request.settimeout(self.timeout)
            if self.server.tls:
                self.request = self.server.tls.wrap_socket(self.request, server_side=True)
            super().setup()

        def handle(self):
            head = b""
            while not head.endswith(b"\r\n\r\n"):
                line = self.rfile.readline()
                if not line:
                    return
                head += line
            self.server.requests.append(head.decode())
            answers = self.server.answers
            self.wfile.write(answers.pop(0) if len(answers) > 1 else answers[0])


def http(status, body, headers=""):
    return f"HTTP/1.1 {status} X\r\nConnection: close\r\nContent-Length: {len(body)}\r\n{headers}\r\n{body}".encode()


GOOD = json.dumps({"status": "success", "data": {"resultType": "matrix", "result": [
    {"metric": {"region": "eu"}, "values": [[START + MINUTE * i, "1"] for i in range(20)]}]}})


PART = GOOD[:-1] + ', "warnings": ["No StoreAPIs matched for this query"]}'


def test_half_of_the_data_is_none(hunter, tmp_path, fault):
    server = fault(http(200, PART))
    config(tmp_path, server.url, LATENCY)
    found = analyze(hunter, "shop")
    assert found.code == 3 and "may lack data: No StoreAPIs matched" in found.err and "partial_response: allow" in found.err
    assert found.out == ""
    config(tmp_path, server.url, LATENCY, ", partial_response: allow")
    found = analyze(hunter, "shop")
    assert found.code == 0 and found.out.count("2024-03-01") == 20 and "No StoreAPIs matched" in found.err


def test_too_much_is_asked_in_halves(hunter, tmp_path, fault):
    server = fault(http(422, json.dumps({"status": "error", "errorType": "execution", "error": "too many samples"})), http(200, GOOD))
    config(tmp_path, server.url, LATENCY, ", flavor: prometheus")
    found = analyze(hunter, "shop")
    assert found.code == 0 and found.out.count("2024-03-01") == 20, found.err
    ranges = [re.search(r"%5B(\d+)ms%5D&time=(\d+)", request).groups() for request in server.requests]
    assert ranges == [("86400000", "1709337599"), ("43200000", "1709294399"), ("43200000", "1709337599")]


def test_many_tests_ask_once_what_the_server_is(hunter, tmp_path, fault):
    server = fault(http(200, GOOD))
    config(tmp_path, server.url, "".join(f"  t{i}: {{type: prometheus, query: m{i}}}\n" for i in range(200)), ", max_concurrent: 1")
    assert hunter("regressions", "--since", SINCE, "--until", UNTIL).code == 0
    assert sum("buildinfo" in request for request in server.requests) <= 40 and len(server.requests) >= 200


@pytest.fixture
def fault():
    running = []

    def start(*answers, tls=None):
        running.append(Fault(answers, tls))
        return running[-1]

    yield start
    for server in running:
        server.shutdown()
        server.server_close()


def test_credentials_are_sent_and_never_shown(hunter, tmp_path, fault):
    server = fault(http(401, "Unauthorized: Bearer canary-token"))
    (tmp_path / "token").write_text("canary-token\n")
    config(tmp_path, server.url, LATENCY, f", bearer_token_file: {tmp_path}/token, headers: {{X-Scope-OrgID: canary-tenant}}")
    found = analyze(hunter, "shop")
    assert "Authorization: Bearer canary-token\r\n" in server.requests[0]
    assert "X-Scope-OrgID: canary-tenant\r\n" in server.requests[0]
    assert found.code == 3 and "status 401: Unauthorized: Bearer ************: check username" in found.err
    assert "canary" not in found.out + found.err


@pytest.mark.parametrize("more", ["", ", partial_response: allow"])
def test_secrets_are_not_shown_where_a_good_answer_repeats_them(hunter, tmp_path, fault, more):
    server = fault(http(200, PART.replace("No StoreAPIs", "Bearer canary-token, canary-tenant: no StoreAPIs")))
    (tmp_path / "token").write_text("canary-token\n")
    config(tmp_path, server.url, LATENCY, f", bearer_token_file: {tmp_path}/token, headers: {{X-Scope-OrgID: canary-tenant}}" + more)
    found = analyze(hunter, "shop")
    assert "Bearer ************, *************: no StoreAPIs" in found.err
    assert "canary" not in found.out + found.err


def test_redirect_to_another_host(hunter, tmp_path, fault):
    other = fault(http(200, "<html>Sign in</html>"))
    server = fault(http(302, "", f"Location: {other.url}/login\r\n"))
    config(tmp_path, server.url, LATENCY, ", bearer_token: canary, headers: {X-Key: canary}")
    found = analyze(hunter, "shop")
    assert "canary" in server.requests[0] and "canary" not in other.requests[0] + found.err
    assert found.code == 3 and "after a redirect, without credentials" in found.err


INTERNAL = [  # what another host may say that only the agent can reach; each would be quoted if the configured server said it
    http(500, "internal-canary"),
    http(200, "internal-canary"),
    http(200, '{"status":"error","errorType":"x","error":"internal-canary"}'),
    http(422, '{"status":"error","errorType":"execution","error":"internal-canary"}'),
    http(200, '{"status":"success","warnings":["internal-canary"],"data":{"resultType":"matrix","result":[]}}'),
    http(200, '{"status":"success","data":{"resultType":"internal-canary","result":[]}}'),
]


@pytest.mark.parametrize("answer", INTERNAL, ids=range(len(INTERNAL)))
def test_words_of_another_host_are_not_shown(hunter, tmp_path, fault, answer):
    other = fault(answer)
    place = other.url.replace("127.0.0.1", "localhost")
    server = fault(http(302, "", f"Location: {place}/admin\r\n"))
    config(tmp_path, server.url, LATENCY)
    found = analyze(hunter, "shop")
    assert found.code == 3 and f"status 302: a redirect, which is not followed; set url to the final address (it points to {place};" in found.err
    assert not other.requests
    config(tmp_path, server.url, LATENCY, ", redirects: any")
    for command in (("analyze", "shop"), ("run", "--once")):
        found = hunter(*command, "--config", tmp_path / "hunter.yaml", "--log-level", "debug")
        assert found.code in (0, 3) and "after a redirect" in found.err, found.err
        assert "internal-canary" not in found.out + found.err
    assert other.requests


def test_a_server_that_recovers(hunter, tmp_path, fault):
    server = fault(http(503, "not now"), b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\nhalf", http(200, GOOD))
    config(tmp_path, server.url, LATENCY, ", flavor: prometheus")
    found = analyze(hunter, "shop")
    assert found.code == 0 and found.out.count("2024-03-01") == 20, found.err
    assert len(server.requests) == 3


def certificate(folder, name, alternative):
    """A self-signed certificate that is its own authority, and a server's context that shows it."""
    if not shutil.which("openssl"):
        pytest.skip("openssl is not installed (Debian: apt install openssl)")
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2",
                    "-subj", f"/CN={name}", "-addext", f"subjectAltName={alternative}",
                    "-keyout", folder / f"{name}.key", "-out", folder / f"{name}.pem"], check=True, capture_output=True)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(folder / f"{name}.pem", folder / f"{name}.key")
    return folder / f"{name}.pem", context


def test_tls_is_checked(hunter, tmp_path, fault):
    trusted, context = certificate(tmp_path, "here", "IP:127.0.0.1")
    server = fault(http(200, GOOD), tls=context)
    config(tmp_path, server.url, LATENCY, ", bearer_token: canary")
    found = analyze(hunter, "shop")
    assert found.code == 3 and "ca_file sets the certificates to trust" in found.err, found.err
    assert server.requests == []
    config(tmp_path, server.url, LATENCY, f", ca_file: {trusted}")
    assert analyze(hunter, "shop").code == 0
    config(tmp_path, server.url, LATENCY, ", insecure_skip_verify: true")
    assert analyze(hunter, "shop").code == 0

    other, context = certificate(tmp_path, "elsewhere", "DNS:elsewhere.example")
    server = fault(http(200, GOOD), tls=context)
    config(tmp_path, server.url, LATENCY, f", ca_file: {other}")
    found = analyze(hunter, "shop")
    assert found.code == 3 and server.requests == [], found.err
    config(tmp_path, server.url, LATENCY, f", ca_file: {tmp_path}/missing.pem")
    found = analyze(hunter, "shop")
    assert found.code == 3 and "missing.pem" in found.err, found.err


def test_an_https_port_asked_by_http(hunter, tmp_path, fault):
    _, context = certificate(tmp_path, "here", "IP:127.0.0.1")
    server = fault(http(200, GOOD), tls=context)
    config(tmp_path, server.url.replace("https:", "http:"), LATENCY, ", timeout: 5s")
    found = analyze(hunter, "shop")
    assert found.code == 3 and server.requests == []
    assert re.search("is it https://|Recv failure|Empty reply|no complete response", found.err), found.err


BROKEN = {
    "cut": (http(200, GOOD[:-20]), "not an answer of Prometheus' API"),
    "empty": (http(200, ""), "not an answer of Prometheus' API"),
    "deep": (http(200, "[" * 100000), "not an answer of Prometheus' API"),
    "word": (http(200, GOOD.replace('"1"', '"one"', 1)), "a value is not a number"),
    "huge": (b"HTTP/1.1 200 OK\r\nContent-Length: 1000000000000\r\n\r\n", "exceeds max_body"),
    "alien": (b"garbage\r\n\r\n", "the server does not speak HTTP"),
    "verbose": (http(500, "x" * 100000), "status 500: xxxx"),
}


@pytest.mark.parametrize("answer,words", BROKEN.values(), ids=BROKEN)
def test_broken_answers_fail_and_say_so(hunter, tmp_path, fault, answer, words):
    config(tmp_path, fault(answer).url, LATENCY)
    found = analyze(hunter, "shop")
    assert found.code == 3 and words in found.err, found.err
    assert len(found.err) < 3000


class Exporter(http_server.BaseHTTPRequestHandler):
    """A target whose metric has the value of the scrape's number; after the tenth it has it no more."""
    scrapes = 0

    def do_GET(self):
        Exporter.scrapes += 1
        body = f"work {Exporter.scrapes}\n" if Exporter.scrapes <= 10 else "other 1\n"
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body.encode())

    def log_message(self, *arguments):
        """Nobody reads it."""


def test_what_is_scraped_now(hunter, tmp_path):
    """Samples as they come, and none where a series has ended: Prometheus marks it stale, which is no point."""
    target = http_server.ThreadingHTTPServer(("127.0.0.1", 0), Exporter)
    threading.Thread(target=target.serve_forever, args=(0.02,), daemon=True).start()
    scrape = ("scrape_configs: [{job_name: live, scrape_interval: 100ms, scrape_timeout: 100ms, "
              f"static_configs: [{{targets: ['127.0.0.1:{target.server_address[1]}']}}]}}]\n")
    try:
        with servers.prometheus(tmp_path, servers.openmetrics({"unrelated": [({}, 1, START)]}), scrape=scrape) as server:
            wait(lambda: Exporter.scrapes >= 20)
            config(tmp_path, server.url, "  live: {type: prometheus, query: work, range: 1h}\n")
            found = hunter("analyze", "live")
    finally:
        target.shutdown()
        target.server_close()
    values = [line.split()[-1] for line in found.out.splitlines() if line.startswith("20")]
    expected = [str(i) for i in range(1, 11)]  # a busy machine may miss a scrape
    assert found.code == 0 and len(values) >= 5 and values == [v for v in expected if v in values], found.out + found.err
