"""A PagerDuty on loopback: the Events API v2, as strict as its documentation.

`incidents` maps a dedup_key to "triggered", "acknowledged" or "resolved"; `events` has all that was accepted, `violations` what was
not. The first `answers` are given instead of looking at the request: (status, body) or (status, body, headers).
"""
import http.server
import json
import re
import threading

from settling import SettlingServer
from waiting import LONGEST

MOST = 512 * 1024
SEVERITIES = ("critical", "error", "warning", "info")
DATE = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:?\d\d)")


def text(value, most):
    return isinstance(value, str) and 0 < len(value) <= most


def check_payload(payload):
    if not isinstance(payload, dict):
        return ["'payload' is missing or blank"]
    errors = [f"'payload.{name}' is missing or blank" for name in ("summary", "source", "severity") if not text(payload.get(name), 10**9)]
    if not text(payload.get("summary"), 1024):
        errors.append("'payload.summary' is longer than 1024 characters")
    if payload.get("severity") not in SEVERITIES:
        errors.append("'payload.severity' is invalid (must be one of the following: 'critical', 'warning', 'error' or 'info')")
    if "timestamp" in payload and not DATE.fullmatch(payload["timestamp"]):
        errors.append("'payload.timestamp' is invalid")
    if set(payload) - {"summary", "source", "severity", "timestamp", "component", "group", "class", "custom_details"}:
        errors.append(f"unknown members in {sorted(payload)}")
    return errors


def check(event, key):
    errors = []
    if event.get("routing_key") != key:
        errors.append("Invalid routing key")
    if event.get("event_action") not in ("trigger", "acknowledge", "resolve"):
        errors.append("'event_action' is invalid")
    if event.get("event_action") == "trigger":
        errors += check_payload(event.get("payload"))
    if not text(event.get("dedup_key"), 255):
        errors.append("'dedup_key' is longer than 255 characters, or missing")
    for link in event.get("links", []):
        if not re.fullmatch(r"https?://\S+", link.get("href", "")) or set(link) - {"href", "text"}:
            errors.append("'links' is invalid")
    if set(event) - {"routing_key", "event_action", "dedup_key", "payload", "images", "links", "client", "client_url"}:
        errors.append(f"unknown members in {sorted(event)}")
    return errors


class FakePagerDuty:
    def __init__(self, key):
        self.key, self.events, self.incidents, self.violations, self.answers = key, [], {}, [], []
        self.lose = set()  # numbers of the events that are taken and not answered
        self.log = []  # (dedup_key, state) of each change of an incident
        self.changed = threading.Condition()
        fake = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self):
                body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
                with fake.changed:
                    status, answer, *more = fake.take(self.path, self.headers, body)
                    fake.changed.notify_all()
                    lost = len(fake.events) in fake.lose
                if lost:
                    self.close_connection = True
                    return
                data = answer.encode()
                self.send_response(status)
                for name, value in (more[0] if more else {}).items():
                    self.send_header(name, value)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            def log_message(self, *_):
                pass

        self.server = SettlingServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()

    @property
    def url(self):
        return f"http://127.0.0.1:{self.server.server_address[1]}/v2/enqueue"

    def take(self, path, headers, body):
        if self.answers:
            return self.answers.pop(0)
        if path != "/v2/enqueue" or not headers.get("Content-Type", "").startswith("application/json"):
            self.violations.append(f"{path} {headers.get('Content-Type')}")
            return 404, ""
        if len(body) > MOST:
            self.violations.append("more than 512 KB")
            return 413, ""
        event = json.loads(body)
        errors = check(event, self.key)
        if errors:
            if errors != ["Invalid routing key"]:
                self.violations += errors
            return 400, json.dumps({"status": "invalid event", "message": "Event object is invalid", "errors": errors})
        self.events.append(event)
        key, before = event["dedup_key"], self.incidents.get(event["dedup_key"])
        after = {"trigger": before if before in ("triggered", "acknowledged") else "triggered",
                 "acknowledge": "acknowledged" if before in ("triggered", "acknowledged") else before,
                 "resolve": "resolved" if before else None}[event["event_action"]]
        if after and after != before:
            self.incidents[key] = after
            self.log.append((key, after))
        return 202, json.dumps({"status": "success", "message": "Event processed", "dedup_key": key})

    def wait(self, condition):
        """Until condition() holds; looked at with each request."""
        with self.changed:
            assert self.changed.wait_for(condition, LONGEST), f"{self.log} {self.violations}"

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.server.shutdown()
        self.server.server_close()
