"""A webhook's receiver, and whether a document fits the schema of docs/."""
import http.server
import json
import pathlib
import re
import threading

from waiting import pause

SCHEMA = json.loads((pathlib.Path(__file__).parents[2] / "docs/reference/webhook.schema.json").read_text())


def valid(schema, value, where="$"):
    """The part of JSON Schema that our schema uses; raises at the first breach."""
    if "$ref" in schema:
        valid(SCHEMA["$defs"][schema["$ref"].rsplit("/", 1)[1]], value, where)
    if "const" in schema:
        assert value == schema["const"], where
    if "enum" in schema:
        assert value in schema["enum"], where
    if "oneOf" in schema:
        fits = 0
        for choice in schema["oneOf"]:
            try:
                valid(choice, value, where)
                fits += 1
            except AssertionError as error:
                problem = error
        assert fits == 1, problem
    kinds = {"object": dict, "array": list, "string": str, "integer": int, "number": (int, float), "null": type(None), "boolean": bool}
    if "type" in schema:
        types = schema["type"] if isinstance(schema["type"], list) else [schema["type"]]
        assert any(isinstance(value, kinds[t]) and (t == "boolean") == isinstance(value, bool) for t in types), where
    if "pattern" in schema:
        assert re.search(schema["pattern"], value), where
    if "minimum" in schema:
        assert value >= schema["minimum"], where
    if isinstance(value, dict):
        assert set(schema.get("required", [])) <= set(value), where
        if schema.get("additionalProperties") is False:
            assert set(value) <= set(schema["properties"]), where
        for name, part in schema.get("properties", {}).items():
            if name in value:
                valid(part, value[name], f"{where}.{name}")
    if isinstance(value, list) and "items" in schema:
        for i, item in enumerate(value):
            valid(schema["items"], item, f"{where}[{i}]")


class Hook:
    """Takes posts; answers what it is told to, then 204."""

    def __init__(self):
        self.taken, self.statuses = [], []
        self.slow = 0  # seconds before the answer
        hook = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self):
                body = self.rfile.read(int(self.headers["Content-Length"]))
                status = hook.statuses.pop(0) if hook.statuses else 204
                hook.taken.append((dict(self.headers), body, status))
                pause(hook.slow, "a receiver that is slow")
                self.send_response(status)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}/hook/path-canary"
        threading.Thread(target=self.server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()
