"""What of a server's answers and address is used and shown: series that cannot be labelled are left out, and the exit code says that data lack."""
import contextlib
import http.server
import json
import threading

import pytest
from state_address import state_of

START, STEP, POINTS = 1709251200, 3600, 60  # 2024-03-01 00:00:00 UTC

SPOILT = [b'"a\\u0000b"', b'"\\ud800"', b'"J\xf6rg"']


def points(at):
    return [[START + STEP * i, f"{(100 if i < at else 150) + i % 3}"] for i in range(POINTS)]


class Prometheus(http.server.BaseHTTPRequestHandler):
    label = SPOILT[0]

    def do_GET(self):
        if "query_range" not in self.path:
            self.send_error(404)
            return
        series = [b'{"metric":{"region":%s},"values":%s}' % (label, json.dumps(points(at)).encode())
                  for label, at in ((b'"eu"', 30), (self.label, 20), (b'"us"', POINTS))]
        body = b'{"status":"success","data":{"resultType":"matrix","result":[%s]}}' % b",".join(series)
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


@contextlib.contextmanager
def serving(label):
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), type("Labelled", (Prometheus,), {"label": label})) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


@pytest.mark.parametrize("label", SPOILT)
def test_a_series_that_is_left_out(hunter, tmp_path, label):
    with serving(label) as url:
        (tmp_path / "hunter.yaml").write_text(
            f"prometheus: {{url: '{url}'}}\nagent: {{state: '{state_of(tmp_path)}'}}\n"
            "tests:\n  shop: {type: prometheus, query: sum by (region) (x), step: 1h, metrics: {x: {direction: -1}}}\n")
        said = "series left out: a string is not Unicode text"
        found = hunter("analyze", "--since", "2024-03-01", "--until", "2024-03-05", "--output", "json")
        assert found.code == 3 and said in found.err, found.err
        assert 'x{region=\\"eu\\"}' in found.out and "2024-03-02T06:00:00Z" in found.out
        judged = hunter("regressions", "--since", "2024-03-01", "--until", "2024-03-05")
        assert judged.code == 1 and said in judged.err, judged.err
        once = hunter("run", "--once")
        assert once.code == 3, once.err


def test_variables_in_addresses(hunter, tmp_path, monkeypatch):
    """An address in an error and in the log is that of the file: what a variable puts there may be a key."""
    monkeypatch.setenv("KEY", "canary")
    with serving(SPOILT[0]) as url:
        (tmp_path / "hunter.yaml").write_text(
            f"prometheus: {{url: '{url}/${{KEY}}/'}}\ngraphite: {{url: '{url}/${{KEY}}/'}}\ntests:\n"
            "  a: {type: prometheus, query: up}\n  b: {type: graphite, target: x}\n")
        found = hunter("analyze", "--log-level", "debug")
        assert found.code == 3 and f"{url}/${{KEY}}/render: status 404" in found.err, found.err
        assert "canary" not in found.err
