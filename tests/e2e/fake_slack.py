"""A Slack on loopback that is as strict as the real one: token, limits of every payload, a message a second a channel.

A bot may look what is in its channels (users.conversations, conversations.history, conversations.replies), if it has
the scopes. What goes into a thread is no part of the channel's history, as with the real one.

What it accepts is in `posts`; what a payload did wrong is in `violations`, which every test expects to be empty. The
server can be stopped and started again on its port, told to answer something else, to hang, or to be slow: then a post
that it has taken is in no history for a while, and answered when it is there, whatever has become of the client.
"""
import http.server
import json
import random
import re
import socket
import struct
import threading
import time
import urllib.parse

BLOCKS, BLOCKS_TEXT, TEXT = 50, 13000, 4000
LINK = re.compile(r"<(https?://[^<>|\s]{1,2000}|!date\^-?\d+\^[^<>|^]*{date[^<>|^]*)\|[^<>]+>")
WEBHOOK = "/services/T0001/B0001/"


def check_text(problems, where, value, kind, most):
    if not isinstance(value, dict) or value.get("type") != kind or set(value) - {"type", "text", "emoji", "verbatim"}:
        problems.append(f"{where}: no {kind} text object")
        return 0
    text = value.get("text")
    if not isinstance(text, str) or not 1 <= len(text) <= most:
        problems.append(f"{where}: text is not 1 to {most} characters")
        return 0
    plain = LINK.sub("", text)
    if "<" in plain or ">" in plain or re.search("&(?!amp;|lt;|gt;)", plain):
        problems.append(f"{where}: unescaped markup")
    return len(text)


def check_block(problems, where, block):
    kind = block.get("type")
    if kind == "header":
        return check_text(problems, where, block.get("text"), "plain_text", 150)
    if kind == "section" and "fields" in block:
        if not 1 <= len(block["fields"]) <= 10:
            problems.append(f"{where}: {len(block['fields'])} fields")
        return sum(check_text(problems, f"{where}.fields[{i}]", f, "mrkdwn", 2000) for i, f in enumerate(block["fields"]))
    if kind == "section":
        return check_text(problems, where, block.get("text"), "mrkdwn", 3000)
    if kind != "divider":
        problems.append(f"{where}: unexpected type {kind}")
    return 0


def check(message):
    """What Slack would refuse in the body of a message."""
    problems = []
    if set(message) - {"channel", "text", "blocks", "metadata", "parse", "thread_ts", "unfurl_links", "unfurl_media"}:
        problems.append(f"unknown arguments in {sorted(message)}")
    if len(json.dumps(message.get("metadata", {}))) > 8000:
        problems.append("metadata is too large")
    if not 1 <= len(message.get("text") or "") <= TEXT:
        problems.append("text is missing or too long")
    blocks = message.get("blocks", [])
    if not 1 <= len(blocks) <= BLOCKS:
        problems.append(f"{len(blocks)} blocks")
    if sum(check_block(problems, f"blocks[{i}]", b) for i, b in enumerate(blocks)) > BLOCKS_TEXT:
        problems.append("too much text in all blocks")
    return problems


def answer(ok, **more):
    return 200, {"Content-Type": "application/json; charset=utf-8"}, json.dumps({"ok": ok, **more})


class FakeSlack:
    def __init__(self, token, channels=("#perf",)):
        self.token, self.channels = token, channels
        self.posts, self.violations, self.refused = [], [], []
        self.stamps = []  # `ts` of each post
        self.shown = []  # time.monotonic() from when on each post is in the history
        # (status, body) or (status, body, headers) given instead of looking at the request, first come first served
        self.answers = []
        self.answer_after = {}  # number of posts that are there -> the same, given once, from then on
        self.times = []  # (time.monotonic(), channel) of each request to post
        self.hang = False  # take the request, never answer
        self.accept_then_hang = False  # the message is posted, but the answer never comes
        self.close_after = set()  # numbers of the posts that are taken and not answered: the connection is closed
        self.rude = False  # it is reset instead
        self.scopes = {"channels:read", "channels:history"}
        self.looks = []  # what was asked about channels
        self.page = 2  # channels or messages of a page, at most
        self.delay = 0  # seconds before a good answer
        self.slow = (0, 0)  # seconds between taking a post and showing and answering it, at random between the two
        self.random = random.Random(0)
        self.server, self.port, self.last = None, 0, {}
        self.lock, self.changed = threading.Lock(), threading.Condition()
        self.start()

    @property
    def api(self):
        return f"http://127.0.0.1:{self.port}/api/"

    @property
    def webhook(self):
        return f"http://127.0.0.1:{self.port}{WEBHOOK}{self.token}"

    def start(self):
        slack = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self):
                with slack.lock:
                    self.answer(slack.look(self.path, self.headers))

            def do_POST(self):
                body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
                self.answer(slack.take(self.path, self.headers, body))

            def answer(self, answer):
                if answer == "close":
                    self.close_connection = True
                    if slack.rude:
                        self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                        self.rfile.close()
                        self.connection.close()
                    return
                if answer is None:
                    self.close_connection = True
                    slack.released.wait(60)
                    return
                status, headers, text = answer
                data = text.encode()
                self.send_response(status)
                for key, value in headers.items():
                    self.send_header(key, value)
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            def log_message(self, *_):
                pass

        class Server(http.server.ThreadingHTTPServer):
            allow_reuse_address = daemon_threads = True

            def handle_error(self, *_):
                pass  # a client that was killed

        self.released = threading.Event()
        self.server = Server(("127.0.0.1", self.port), Handler)
        self.port = self.server.server_address[1]
        threading.Thread(target=self.server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()

    def stop(self):
        self.released.set()
        self.server.shutdown()
        self.server.server_close()

    def note(self, kind, value):
        with self.changed:
            kind.append(value)
            self.changed.notify_all()

    def take(self, path, headers, body):
        with self.lock:
            self.times.append((time.monotonic(), self.channel_of(body)))
            given = self.answers.pop(0) if self.answers else self.answer_after.pop(len(self.posts), None)
            if given:
                status, text, *more = given
                self.note(self.refused, status)
                return status, {"Content-Type": "application/json"} | (more[0] if more else {}), text
            if self.hang:
                self.note(self.refused, "hang")
                return None
            answer = self.webhook_post(path, headers, body) if path.startswith(WEBHOOK) else self.api_post(path, headers, body)
            if answer[0] == 200 and len(self.posts) in self.close_after:
                return "close"
            hidden = self.shown[-1] - time.monotonic() if answer[0] == 200 and self.shown else 0
        if answer[0] == 200 and hidden + self.delay > 0:
            time.sleep(max(0, hidden) + self.delay)
        return None if self.accept_then_hang else answer

    @staticmethod
    def channel_of(body):
        try:
            return json.loads(body).get("channel", "")
        except ValueError:
            return ""

    def channel_id(self, channel):
        return f"C{self.channels.index(channel):04d}" if channel.startswith("#") else channel

    def look(self, path, headers):
        """Pages of channels or messages, the oldest first."""
        address = urllib.parse.urlsplit(path)
        asked = dict(urllib.parse.parse_qsl(address.query))
        method = address.path.removeprefix("/api/")
        self.note(self.looks, method)
        if headers.get("Authorization") != f"Bearer {self.token}":
            return answer(False, error="invalid_auth")
        needed = {"users.conversations": "channels:read", "conversations.history": "channels:history",
                  "conversations.replies": "channels:history"}.get(method)
        if not needed:
            return answer(False, error="unknown_method")
        if needed not in self.scopes or "private" in asked.get("types", "") and "groups:read" not in self.scopes:
            return answer(False, error="missing_scope", needed=needed, provided="chat:write")
        ids = {self.channel_id(c): c for c in self.channels}
        if method == "users.conversations":
            key, found = "channels", [{"id": i, "name": c.lstrip("#")} for i, c in ids.items()]
        elif asked.get("channel") not in ids:
            return answer(False, error="channel_not_found")
        else:
            thread = asked.get("ts") if method == "conversations.replies" else None
            if thread and thread not in self.stamps:
                return answer(False, error="thread_not_found")
            shown = ("text", "metadata") if asked.get("include_all_metadata") == "true" else ("text",)
            key, found = "messages", [
                {"type": "message", "ts": ts} | {k: p[k] for k in shown}
                for p, ts, since in zip(self.posts, self.stamps, self.shown)
                if since <= time.monotonic()
                and (ts == thread or p.get("thread_ts") == thread) and p.get("channel") in (asked["channel"], ids[asked["channel"]]) and float(ts) >= float(asked.get("oldest", 0))]
        start = int(asked.get("cursor", "0"))
        end = start + self.page
        more = str(end) if end < len(found) else ""
        return answer(True, **{key: found[start:end]}, has_more=bool(more), response_metadata={"next_cursor": more})

    def api_post(self, path, headers, body):
        if path != "/api/chat.postMessage":
            return answer(False, error="unknown_method")
        if headers.get("Authorization") != f"Bearer {self.token}":
            self.note(self.refused, "invalid_auth")
            return answer(False, error="invalid_auth")
        if not headers.get("Content-Type", "").startswith("application/json"):
            self.note(self.violations, "content type")
        message = json.loads(body)
        if message.get("channel") not in self.channels:
            self.note(self.refused, "channel_not_found")
            return answer(False, error="channel_not_found")
        if not message.get("metadata", {}).get("event_payload", {}).get("key"):
            self.note(self.violations, "no key in the metadata")
        limited = self.limited(message["channel"])
        if limited:
            return limited
        if "thread_ts" in message and message["thread_ts"] not in self.stamps:
            self.note(self.refused, "thread_not_found")
            return answer(False, error="thread_not_found")
        self.accept(message)
        return answer(True, channel=self.channel_id(message["channel"]), ts=self.stamps[-1])

    def webhook_post(self, path, headers, body):
        if path != WEBHOOK + self.token:
            return 404, {}, "no_service"
        message = json.loads(body)
        if "channel" in message or "thread_ts" in message:
            self.note(self.violations, "a webhook's channel is fixed")
        limited = self.limited("")
        if limited:
            return limited
        self.accept(message)
        return 200, {"Content-Type": "text/html"}, "ok"

    def limited(self, channel):
        """A message a second; a bit less, as this process may have been late with the one before."""
        now = time.monotonic()
        if now - self.last.get(channel, -10) < 0.7:
            self.note(self.refused, 429)
            return 429, {"Retry-After": "1"}, ""
        self.last[channel] = now
        return None

    def accept(self, message):
        for problem in check(message):
            self.note(self.violations, problem)
        self.stamps.append(f"{time.time():.6f}")
        self.shown.append(time.monotonic() + self.random.uniform(*self.slow))
        self.note(self.posts, message)

    def wait(self, condition, timeout=30):
        """Until condition() holds; looked at with each request."""
        with self.changed:
            assert self.changed.wait_for(condition, timeout), f"posts {len(self.posts)}, refused {self.refused}"

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop()
