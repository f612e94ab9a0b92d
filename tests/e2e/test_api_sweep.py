"""Every parameter of every address of the API with every kind of value."""
import contextlib
import http.client
import re

from agent import config, csv_test, write_csv
from stutter import said_once
from waiting import LONGEST


VALUES = ("", "0", "-1", "1", "99999999999999999999", "1e999", "nan", "true", "null", "[]", "{}", "[x", "a=b", "%00", "%ff", "%F0%9F%98%80", "..%2F..", "*", "db.*", "%22",
          "2024-13-01", "1h", "a,b,,c", "test%3D~%22%5B%22", "x" * 3000)
BODIES = ("", "null", "0", '"x"', "[]", "{}", "[[]]", "[{}]", '[{"x": null}]', '{"series": null}', '{"series": [null]}', '{"names": {}}', "{", "\ufeff", "[" * 2000,
          '{"alerts": [null]}', '{"alerts": [{"labels": []}]}', "a b c\n", "a{b=\"c\"} 1\n")


def test_every_parameter_with_every_kind_of_value(agents, names, tmp_path):
    """Whatever a request holds is answered, not with an error of ours, and the agent goes on."""
    write_csv(tmp_path / "read.csv", [(30, 1.2)])
    agent = agents(config(tmp_path, csv_test(tmp_path / "read.csv")))
    agent.pass_by(1)
    port = int(agent.address().rsplit(":", 1)[1])
    asked = 0
    for method, path in re.findall(r"^address: (GET|POST) (\S+)$", names, re.MULTILINE):
        if path.endswith("/events"):  # endless
            continue
        parameters = re.findall(rf"^parameter of {re.escape(path)}: (\S+)$", names, re.MULTILINE)
        requests = [(f"?{name}={value}", None) for name in parameters for value in VALUES] + [("?no=such", None), ("", None)]
        requests += [(f"?kind={kind}", body) for kind in ("graphite", "prometheus", "file", "test") for body in BODIES if path.endswith("/arrived")]
        for query, body in requests:
            connection = http.client.HTTPConnection("127.0.0.1", port, timeout=LONGEST)
            with contextlib.closing(connection):
                connection.request(method, path.replace("*", "1") + query, body and body.encode())
                answer = connection.getresponse()
                text = answer.read().decode()
            assert answer.status < 500 or answer.status == 503, (method, path, query, body, answer.status, text)
            said_once(text if text.startswith('{"error"') else "")
            asked += 1
    assert asked > 1000 and agent.get("/-/healthy")[0] == 200
    assert agent.end() == 0
