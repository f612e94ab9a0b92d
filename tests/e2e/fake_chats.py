"""Chats on loopback, as strict as the real ones are documented to be: Microsoft Teams, Mattermost and Discord.

What was accepted is in `posts`; what a request did wrong is in `violations`, which every test expects to be empty, and is
answered with the documented error. `answers` are given to the next requests, first come first served: (status, headers,
body) or None to hang, without looking at the request; "close" ends the connection after it was carried out, and "pass"
only carries it out.
"""
import http.server
import json
import re
import threading
import urllib.parse

from servers import free_port
from waiting import LONGEST

# What has no meaning in Markdown: an escaped character, and code.
INERT = re.compile(r"\\[^\w\s]|(`+)(?!`)(?:.|\n)*?(?<!`)\1(?!`)")


def has_foreign_markup(text):
    """Whether a Markdown text has markup that we do not write: bold, lists, links in angle brackets, and hidden marks are ours."""
    plain = INERT.sub("", re.sub(r"<!-- hunter-c [^<>]* -->", "", text))
    plain = re.sub(r"<https?://[^\s<>]+>", "", plain)
    return bool(re.search(r"@(?!\u200b)|<|https?://|#(?!\u200b)|\[|`", plain))


class Fake:
    """An HTTP server; subclasses say handle(method, path, query, headers, body) -> (status, headers, JSON or text)."""

    def __init__(self):
        self.requests, self.violations, self.answers = [], [], []
        self.lock, self.changed = threading.Lock(), threading.Condition()
        self.port = free_port()  # it may be stopped, and started again
        self.released = threading.Event()
        self.start()

    @property
    def url(self):
        return f"http://127.0.0.1:{self.port}"

    def start(self):
        fake = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do(self):
                body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
                given = fake.take(self.command, self.path, self.headers, body)
                self.close_connection = given in ("close", None)
                if given is None:
                    fake.released.wait(LONGEST)
                if self.close_connection:
                    return
                status, headers, answer = given
                data = (answer if isinstance(answer, str) else "" if answer is None else json.dumps(answer)).encode()
                self.send_response(status)
                for key, value in ({"Content-Type": "application/json"} | headers).items():
                    self.send_header(key, value)
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = do

            def log_message(self, *_):
                pass

        class Server(http.server.ThreadingHTTPServer):
            allow_reuse_address = daemon_threads = True

            def handle_error(self, *_):
                pass  # a client that was killed

        self.released.clear()
        self.server = Server(("127.0.0.1", self.port), Handler)
        self.port = self.server.server_address[1]
        threading.Thread(target=self.server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()

    def stop(self):
        self.released.set()
        self.server.shutdown()
        self.server.server_close()

    def take(self, method, path, headers, body):
        address = urllib.parse.urlsplit(path)
        pairs = urllib.parse.parse_qsl(address.query, keep_blank_values=True)
        query = dict(pairs)
        with self.lock:
            self.pairs = pairs  # of the request that is handled, with those of the same name
            given = self.answers.pop(0) if self.answers else ()
            if given is None or (given and given != "close" and given != "pass"):
                answer = given
            else:
                answer = self.parsed(method, address.path, query, headers, body)
                answer = "close" if given == "close" else answer
        with self.changed:
            self.requests.append((method, path, answer[0] if isinstance(answer, tuple) else answer))
            self.changed.notify_all()
        return answer

    def parsed(self, method, path, query, headers, body):
        content = None
        if body:
            if headers.get("Content-Type", "").partition(";")[0] != "application/json":
                return self.bad(415, {"message": "Unsupported Media Type"}, "a body that is not called JSON")
            try:
                content = json.loads(body.decode())
            except ValueError as error:
                return self.bad(400, {"message": "Problems parsing JSON"}, f"a body that is not JSON: {error}")
        return self.handle(method, path, query, headers, content, len(body))

    def bad(self, status, answer, what):
        self.violations.append(what)
        return status, {}, answer

    def wait(self, condition):
        """Waits until the condition holds; it is asked after each request."""
        with self.changed:
            assert self.changed.wait_for(condition, LONGEST), self.violations


class Chat(Fake):
    SECRET = "se-cret0123456789"

    def __init__(self):
        self.posts = []
        super().__init__()


class Teams(Chat):
    """A workflow that posts a card when its webhook is called: 202, 28 KB."""
    LIMIT = 28 * 1024
    KNOWN = {"TextBlock": {"text", "wrap", "weight", "size", "color"}, "RichTextBlock": {"inlines"},
             "TextRun": {"text", "weight", "size", "color", "selectAction", "fontType"}, "Action.OpenUrl": {"url", "title"},
             "ActionSet": {"actions"}, "Container": {"items", "style"}}

    @property
    def webhook(self):
        return f"{self.url}/workflows/1234/triggers/manual/paths/invoke?api-version=2016-06-01&sig={self.SECRET}"

    def elements(self, item):
        kind = item.get("type")
        if kind not in self.KNOWN:
            return [f"an element of type {kind}"]
        problems = [f"{kind}: {key}" for key in set(item) - self.KNOWN[kind] - {"type"}]
        if kind == "Action.OpenUrl" and not re.match(r"https?://[^\s]+$", item.get("url", "")):
            problems.append(f"a link to {item.get('url')}")
        if kind == "TextBlock" and re.search(r"[\[\]*_<@]", item["text"]):
            problems.append(f"markup in a TextBlock: {item['text']}")
        for value in item.values():
            for inner in value if isinstance(value, list) else [value] if isinstance(value, dict) else []:
                problems += self.elements(inner) if isinstance(inner, dict) else []
        return problems

    def handle(self, method, path, query, headers, body, length):
        if method != "POST" or path != "/workflows/1234/triggers/manual/paths/invoke":
            return self.bad(404, {"error": {"code": "WorkflowNotFound"}}, f"{method} {path}")
        if query.get("sig") != self.SECRET:
            return 401, {}, {"error": {"code": "DirectApiAuthorizationRequired", "message": "The request must have a SAS"}}
        if length > self.LIMIT:
            return self.bad(413, {"error": {"code": "RequestEntityTooLarge"}}, f"{length} bytes")
        attachments = body.get("attachments", [])
        card = attachments[0].get("content", {}) if len(attachments) == 1 else {}
        problems = [] if body.get("type") == "message" else ["no message"]
        if not attachments or attachments[0].get("contentType") != "application/vnd.microsoft.card.adaptive":
            problems.append("no adaptive card")
        if card.get("type") != "AdaptiveCard" or not re.fullmatch(r"1\.[0-5]", card.get("version", "")) or not card.get("body"):
            problems.append("no adaptive card of a version that Teams shows")
        problems += [p for item in card.get("body", []) + card.get("actions", []) for p in self.elements(item)]
        if problems:
            return self.bad(400, {"error": {"code": "TriggerInputSchemaMismatch"}}, "; ".join(problems))
        self.posts.append(body)
        return 202, {}, ""


class Mattermost(Chat):
    """An incoming webhook: 16,383 characters of text, 7,600 of attachments in servers before 7.0."""
    TEXT, PROPS = 16383, 7600

    @property
    def webhook(self):
        return f"{self.url}/hooks/{self.SECRET}"

    @staticmethod
    def error(status, name, text):
        return {"id": f"web.incoming_webhook.{name}.app_error", "message": text, "detailed_error": "", "request_id": "r1", "status_code": status}

    def handle(self, method, path, query, headers, body, length):
        if method != "POST" or path != f"/hooks/{self.SECRET}":
            return 400, {}, self.error(400, "invalid", "Invalid webhook.")
        text, attachments = body.get("text", ""), body.get("attachments", [])
        if not text and not attachments:
            return self.bad(400, self.error(400, "text", "No text specified."), "no text")
        if set(body) - {"text", "username", "icon_url", "channel", "props", "attachments", "type", "icon_emoji", "priority"}:
            return self.bad(400, self.error(400, "parse", "Unable to parse incoming data."), f"members {sorted(body)}")
        if len(text) > self.TEXT or len(json.dumps(attachments, ensure_ascii=False)) > self.PROPS:
            return self.bad(400, self.error(400, "split_props_length", "Unable to split webhook props."), "too long")
        for whole in [text] + [a.get(k, "") for a in attachments for k in ("text", "title", "pretext")]:
            if has_foreign_markup(whole):
                self.violations.append(f"markup in {whole!r}")
        channel = body.get("channel")
        if channel and channel.lstrip("@#") not in ("perf", "town-square"):
            return 404, {}, self.error(404, "channel", "Couldn't find the channel.")
        self.posts.append(body)
        return 200, {"Content-Type": "text/plain"}, "ok"


class Discord(Chat):
    """A webhook with its limits of lengths; 5 requests in 2 s are not enforced unless `limited`."""

    def __init__(self):
        self.limited = 0  # requests that are to be refused
        super().__init__()

    @property
    def webhook(self):
        return f"{self.url}/api/webhooks/223704706495545344/{self.SECRET}"

    def limits(self, body):
        """{field: error} as Discord reports them."""
        embeds = body.get("embeds", [])
        problems = {}
        if len(body.get("content", "")) > 2000:
            problems["content"] = 2000
        if len(embeds) > 10:
            problems["embeds"] = 10
        most = {"title": 256, "description": 4096}
        for i, embed in enumerate(embeds):
            problems |= {f"embeds.{i}.{key}": limit for key, limit in most.items() if len(embed.get(key, "")) > limit}
        if sum(len(e.get(k, "")) for e in embeds for k in most) > 6000:
            problems["embeds"] = 6000
        return problems

    def handle(self, method, path, query, headers, body, length):
        if method != "POST" or not path.startswith("/api/webhooks/223704706495545344/"):
            return self.bad(404, {"message": "404: Not Found", "code": 0}, f"{method} {path}")
        if path.rpartition("/")[2] != self.SECRET:
            return 401, {}, {"message": "Invalid Webhook Token", "code": 50027}
        if self.limited:
            self.limited -= 1
            return (429, {"Retry-After": "1", "X-RateLimit-Scope": "user", "X-RateLimit-Remaining": "0"},
                    {"message": "You are being rate limited.", "retry_after": 0.35, "global": False})
        if not body.get("content") and not body.get("embeds"):
            return self.bad(400, {"message": "Cannot send an empty message", "code": 50006}, "nothing in it")
        problems = self.limits(body)
        if problems:
            return self.bad(400, {"code": 50035, "message": "Invalid Form Body",
                                  "errors": {k: {"_errors": [{"code": "BASE_TYPE_MAX_LENGTH", "message": f"Must be {v} or fewer in length."}]} for k, v in problems.items()}}, str(problems))
        if query.get("wait") != "true":
            self.violations.append("it does not wait for the message to be saved")
        if body.get("allowed_mentions") != {"parse": []}:
            self.violations.append("mentions are allowed")
        if set(body) - {"content", "embeds", "allowed_mentions", "username", "avatar_url", "flags"}:
            self.violations.append(f"members {sorted(body)}")
        for whole in [body.get("content", "")] + [e.get(k, "") for e in body.get("embeds", []) for k in ("title", "description")]:
            if has_foreign_markup(whole):
                self.violations.append(f"markup in {whole!r}")
        self.posts.append(body | {"id": str(1000 + len(self.posts))})
        return 200, {}, self.posts[-1]
