"""A Slack on loopback that is as strict as the real one: token, limits of every payload, a message a second a channel.

A bot may look what is in its channels (users.conversations, conversations.history, conversations.replies), if it has
the scopes. What goes into a thread is no part of the channel's history, as with the real one, but for a reply that the
channel shows, too. It may read the reactions to a message (reactions.get, with reactions:read) and edit its own
(chat.update): by the channel's id only, and so many times a minute. People react() and unreact(); what was edited is in
`edits`.

What it accepts is in `posts`; what a payload did wrong is in `violations`, which every test expects to be empty. The
server can be stopped and started again on its port, told to answer something else, to hang, or to be slow: then a post
that it has taken is in no history for a while, and answered when it is there, whatever has become of the client.
"""
import http.server
import json
import math
import random
import re
import socket
import struct
import threading
import time
import urllib.parse

from servers import free_port
from settling import SettlingServer
from waiting import LONGEST, pause

BLOCKS, BLOCKS_TEXT, TEXT = 50, 13000, 4000
USER = re.compile(r"<@[UW][A-Z0-9]+>")
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
    plain = USER.sub("", LINK.sub("", text))
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
    if kind == "context":
        if not 1 <= len(block.get("elements", [])) <= 10:
            problems.append(f"{where}: {len(block.get('elements', []))} elements")
        return sum(check_text(problems, f"{where}.elements[{i}]", e, "mrkdwn", 2000) for i, e in enumerate(block.get("elements", [])))
    if kind == "data_visualization":
        return check_chart(problems, where, block)
    if kind != "divider":
        problems.append(f"{where}: unexpected type {kind}")
    return 0


def check_words(problems, where, text, most):
    if not isinstance(text, str) or not 1 <= len(text) <= most:
        problems.append(f"{where}: {text!r} is not 1 to {most} characters")
    return len(str(text))


def check_chart(problems, where, block):
    """A line chart: each series has a value for each category, in their order, and for nothing else."""
    chart = block.get("chart", {})
    axes = chart.get("axis_config", {})
    categories = axes.get("categories", [])
    names = [series.get("name") for series in chart.get("series", [])]
    if set(block) - {"type", "title", "chart", "block_id"} or set(chart) != {"type", "series", "axis_config"} or \
            set(axes) - {"categories", "x_label", "y_label"} or chart["type"] != "line":
        problems.append(f"{where}: unknown or missing members")
    if not 1 <= len(names) <= 6 or len(set(names)) < len(names):
        problems.append(f"{where}: series {names}")
    if not 1 <= len(categories) <= 20 or len(set(categories)) < len(categories):
        problems.append(f"{where}: {len(categories)} categories, or one is there twice")
    words = check_words(problems, f"{where}.title", block.get("title"), 50)
    words += sum(check_words(problems, f"{where}.{label}", axes[label], 50) for label in ("x_label", "y_label") if label in axes)
    words += sum(check_words(problems, f"{where}.categories", c, 20) for c in categories)
    for series in chart.get("series", []):
        words += check_words(problems, f"{where}.series", series.get("name"), 20)
        data = series.get("data", [])
        if [point.get("label") for point in data] != categories or any(set(point) != {"label", "value"} for point in data):
            problems.append(f"{where}: the labels of {series.get('name')} are not the categories")
        if not all(isinstance(point.get("value"), (int, float)) and math.isfinite(point["value"]) for point in data):
            problems.append(f"{where}: a value of {series.get('name')} is no number")
    return words


def charts_of(message):
    return [b for b in message.get("blocks", []) if b.get("type") == "data_visualization"]


POST = {"channel", "text", "blocks", "metadata", "parse", "reply_broadcast", "thread_ts", "unfurl_links", "unfurl_media"}
UPDATE = {"channel", "ts", "text", "blocks", "metadata", "parse"}


def check(message, known=POST):
    """What Slack would refuse in the body of a message."""
    problems = []
    if set(message) - known:
        problems.append(f"unknown arguments in {sorted(message)}")
    if len(json.dumps(message.get("metadata", {}))) > 8000:
        problems.append("metadata is too large")
    if not 1 <= len(message.get("text") or "") <= TEXT:
        problems.append("text is missing or too long")
    blocks = message.get("blocks", [])
    if not 1 <= len(blocks) <= BLOCKS:
        problems.append(f"{len(blocks)} blocks")
    if len(charts_of(message)) > 2:
        problems.append(f"{len(charts_of(message))} charts")
    if sum(check_block(problems, f"blocks[{i}]", b) for i, b in enumerate(blocks)) > BLOCKS_TEXT:
        problems.append("too much text in all blocks")
    return problems


def answer(ok, **more):
    return 200, {"Content-Type": "application/json; charset=utf-8"}, json.dumps({"ok": ok, **more})


class FakeSlack:
    def __init__(self, token, channels=("#perf",)):
        self.token, self.channels = token, channels
        self.posts, self.violations, self.refused = [], [], []
        self.limited_at = []  # when it refused a request as one too many
        self.stamps = []  # `ts` of each post
        self.shown = []  # time.monotonic() from when on each post is in the history
        # (status, body) or (status, body, headers) given instead of looking at the request, first come first served
        self.answers = []
        self.answer_after = {}  # number of posts that are there -> the same, given once, from then on
        self.times = []  # (time.monotonic(), channel) of each request to post
        self.hang = False  # take the request, never answer
        self.accept_then_hang = False  # the message is posted, but the answer never comes
        self.close_after = set()  # numbers of the posts that are taken and not answered: the connection is closed
        self.dated = True  # answers say the date; an agent whose clock differs holds notices of missing data back
        self.rude = False  # it is reset instead
        self.scopes = {"chat:write", "channels:read", "channels:history", "reactions:read"}
        self.per_minute = 50  # requests a minute of a method of tier 3; more are 429
        self.retry_after = 1  # seconds, of such an answer
        self.tier_3 = {}  # method -> time.monotonic() of each request that was not limited
        self.reactions = {}  # ts -> [[name, [users]]], in the order of their first use
        self.listed = None  # users that reactions.get lists of one emoji at most, None: all
        self.reads = []  # (time.monotonic(), ts) of each reactions.get that was answered
        self.edits = []  # (time.monotonic(), body) of each chat.update that was accepted
        self.update_error = None  # chat.update is refused so
        self.read_error = None  # reactions.get is refused so
        self.charts = True  # it knows charts; an old one does not
        self.uploads = []  # {"title", "png", "channel_id", "thread_ts", "alt_txt"} of each that was completed
        self.places = {}  # file id -> what was said of it, and the bytes that came
        self.upload_hangs = None  # "ask", "send" or "complete": is never answered
        self.kicked = set()  # channels that the bot is not in any more
        self.deleted = set()  # ts of posts that somebody has deleted
        self.looks = []  # what was asked about channels
        self.page = 2  # channels or messages of a page, at most
        self.delay = 0  # seconds before a good answer
        self.slow = (0, 0)  # seconds between taking a post and showing and answering it, at random between the two
        self.random = random.Random(0)
        self.server, self.port, self.last = None, free_port(), {}  # it may be stopped, and started again
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
                    found = slack.look(self.path, self.headers)
                self.answer(found)

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
                    slack.released.wait(LONGEST)
                    return
                status, headers, text = answer
                data = text.encode()
                (self.send_response if slack.dated else self.send_response_only)(status)
                for key, value in headers.items():
                    self.send_header(key, value)
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            def log_message(self, *_):
                pass

        self.released = threading.Event()
        self.server = SettlingServer(("127.0.0.1", self.port), Handler)
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
            if path.startswith("/upload/v1/"):
                return self.upload(path, headers, body)
            if path == "/api/files.completeUploadExternal":
                return self.complete_upload(headers, body)
            answer = self.webhook_post(path, headers, body) if path.startswith(WEBHOOK) else self.api_post(path, headers, body)
            if path == "/api/chat.update":
                return answer
            if answer[0] == 200 and len(self.posts) in self.close_after:
                return "close"
            hidden = self.shown[-1] - time.monotonic() if answer[0] == 200 and self.shown else 0
        if answer[0] == 200 and hidden + self.delay > 0:
            pause(max(0, hidden) + self.delay, "Slack is slow")
        return None if self.accept_then_hang else answer

    @staticmethod
    def channel_of(body):
        try:
            return json.loads(body).get("channel", "")
        except (ValueError, UnicodeDecodeError):
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
                  "conversations.replies": "channels:history", "reactions.get": "reactions:read",
                  "files.getUploadURLExternal": "files:write"}.get(method)
        if not needed:
            return answer(False, error="unknown_method")
        if needed not in self.scopes or "private" in asked.get("types", "") and "groups:read" not in self.scopes:
            return answer(False, error="missing_scope", needed=needed, provided="chat:write")
        if method == "reactions.get":
            return self.read_reactions(asked)
        if method == "files.getUploadURLExternal":
            return self.ask_upload(asked)
        ids = {self.channel_id(c): c for c in self.channels}
        if method == "users.conversations":
            key, found = "channels", [{"id": i, "name": c.lstrip("#")} for i, c in ids.items()]
        elif asked.get("channel") not in ids:
            return answer(False, error="channel_not_found")
        else:
            thread = asked.get("ts") if method == "conversations.replies" else None
            if thread and thread not in self.stamps:
                return answer(False, error="thread_not_found")
            shown = ("text", "thread_ts", *(["metadata"] if asked.get("include_all_metadata") == "true" else []))
            key, found = "messages", [
                {"type": "message", "ts": ts} | {k: p[k] for k in shown if k in p}
                for p, ts, since in zip(self.posts, self.stamps, self.shown)
                if since <= time.monotonic()
                and (ts == thread or p.get("thread_ts") == thread or not thread and p.get("reply_broadcast")) and p.get("channel") in (asked["channel"], ids[asked["channel"]]) and float(ts) >= float(asked.get("oldest", 0))]
        start = int(asked.get("cursor", "0"))
        end = start + self.page
        more = str(end) if end < len(found) else ""
        return answer(True, **{key: found[start:end]}, has_more=bool(more), response_metadata={"next_cursor": more})

    def ask_upload(self, asked):
        if self.upload_hangs == "ask":
            self.note(self.refused, "hang ask")
            return None
        if not asked.get("filename", "").endswith(".png") or not 0 < int(asked.get("length", 0)) < 1 << 20 or not asked.get("alt_txt"):
            self.note(self.violations, f"upload of {asked}")
        file = f"F{len(self.places) + 1:04d}"
        self.places[file] = dict(asked)
        return answer(True, upload_url=f"http://127.0.0.1:{self.port}/upload/v1/{file}", file_id=file)

    def upload(self, path, headers, body):
        """The bytes, where it was said; nobody's token belongs there."""
        if self.upload_hangs == "send":
            self.note(self.refused, "hang send")
            return None
        place = self.places.get(path.removeprefix("/upload/v1/"))
        if place is None or len(body) != int(place["length"]) or headers.get("Authorization"):
            self.note(self.violations, f"{len(body)} bytes to {path}")
        place["png"] = body
        return 200, {"Content-Type": "text/plain"}, f"OK - {len(body)}"

    def complete_upload(self, headers, body):
        if self.upload_hangs == "complete":
            self.note(self.refused, "hang complete")
            return None
        said = json.loads(body)
        if headers.get("Authorization") != f"Bearer {self.token}" or set(said) - {"files", "channel_id", "thread_ts"}:
            self.note(self.violations, f"completed an upload with {sorted(said)}")
        if said["channel_id"] not in {self.channel_id(c) for c in self.channels} or said["thread_ts"] not in self.stamps:
            return answer(False, error="invalid_thread_ts")
        (file,) = said["files"]
        self.note(self.uploads, said | self.places[file["id"]] | {"title": file["title"]})
        return answer(True, files=[file])

    def message(self, channel, ts):
        """The post of that ts in the channel with that id, or the error that Slack gives."""
        ids = {self.channel_id(c): c for c in self.channels}
        if channel not in ids:
            return None, "channel_not_found"
        if ids[channel] in self.kicked:
            return None, "not_in_channel"
        for post, stamp, since in zip(self.posts, self.stamps, self.shown):
            if stamp == ts and ts not in self.deleted and since <= time.monotonic() and post.get("channel") in (channel, ids[channel]):
                return post, None
        return None, "message_not_found"

    def over_tier_3(self, method):
        """At most so many requests a minute, whoever asks; then 429 with Retry-After."""
        now = time.monotonic()
        recent = self.tier_3[method] = [t for t in self.tier_3.get(method, []) if now - t < 60]
        if len(recent) >= self.per_minute:
            self.note(self.limited_at, now)
            self.note(self.refused, f"429 {method}")
            return 429, {"Retry-After": str(self.retry_after)}, ""
        recent.append(now)
        return None

    def react(self, ts, name, user):
        with self.lock:
            for reaction in self.reactions.setdefault(ts, []):
                if reaction[0] == name:
                    reaction[1].append(user)
                    return
            self.reactions[ts].append([name, [user]])

    def unreact(self, ts, name, user):
        with self.lock:
            next(users for n, users in self.reactions[ts] if n == name).remove(user)
            self.reactions[ts] = [r for r in self.reactions[ts] if r[1]]

    def read_reactions(self, asked):
        limited = self.over_tier_3("reactions.get")
        if limited:
            return limited
        if not asked.get("channel") or not asked.get("timestamp"):
            return answer(False, error="no_item_specified")
        if not re.fullmatch(r"\d+\.\d+", asked["timestamp"]):
            return answer(False, error="bad_timestamp")
        post, error = self.message(asked["channel"], asked["timestamp"])
        if error or self.read_error:
            self.note(self.refused, self.read_error or error)
            return answer(False, error=self.read_error or error)
        most = self.listed if self.listed is not None else None if asked.get("full") == "true" else 2
        reactions = [{"name": n, "users": users[:most], "count": len(users)} for n, users in self.reactions.get(asked["timestamp"], [])]
        message = {"type": "message", "user": "UBOT", "text": post["text"], "ts": asked["timestamp"]}
        self.note(self.reads, (time.monotonic(), asked["timestamp"]))
        return answer(True, type="message", channel=asked["channel"], message=message | ({"reactions": reactions} if reactions else {}))

    def update(self, headers, body):
        """chat.update: what is not given of metadata stays, blocks go with a text alone."""
        if headers.get("Authorization") != f"Bearer {self.token}":
            self.note(self.refused, "invalid_auth")
            return answer(False, error="invalid_auth")
        limited = self.over_tier_3("chat.update")
        if limited:
            return limited
        message = json.loads(body)
        post, error = self.message(message.get("channel"), message.get("ts"))
        if not self.charts and charts_of(message):
            error = error or "invalid_blocks"
        error = error or self.update_error or ("msg_too_long" if len(message.get("text", "")) > TEXT else None)
        if error:
            self.note(self.refused, error)
            return answer(False, error=error)
        for problem in check({"blocks": [{"type": "divider"}]} | message, UPDATE):
            self.note(self.violations, problem)
        post.update({k: message[k] for k in ("text", "metadata") if k in message})
        post["blocks"] = message.get("blocks", [])
        self.note(self.edits, (time.monotonic(), message))
        return answer(True, channel=message["channel"], ts=message["ts"], text=message.get("text", ""))

    def context(self, ts):
        """What the last block of the message says, if it is a context."""
        with self.lock:
            block = (self.posts[self.stamps.index(ts)].get("blocks") or [{}])[-1]
            return block["elements"][0]["text"] if block.get("type") == "context" else None

    def api_post(self, path, headers, body):
        if path == "/api/chat.update":
            return self.update(headers, body)
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
        if message["channel"] in self.kicked:
            self.note(self.refused, "not_in_channel")
            return answer(False, error="not_in_channel")
        if not message.get("metadata", {}).get("event_payload", {}).get("key"):
            self.note(self.violations, "no key in the metadata")
        if not self.charts and charts_of(message):
            self.note(self.refused, "invalid_blocks")
            return answer(False, error="invalid_blocks")
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
        if not self.charts and charts_of(message):
            self.note(self.refused, "invalid_blocks")
            return 400, {"Content-Type": "text/html"}, "invalid_blocks"
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

    def wait(self, condition):
        """Until condition() holds; looked at with each request."""
        with self.changed:
            assert self.changed.wait_for(condition, LONGEST), f"posts {len(self.posts)}, refused {self.refused}"

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop()
