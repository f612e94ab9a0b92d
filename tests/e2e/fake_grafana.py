"""Grafana's annotations on loopback, as its HTTP API is documented.

Annotations are organisation-wide: found by tags (all of them) and time, 100 unless `limit` says otherwise. A request without
credentials is 401, one of a viewer 403, an annotation that is not there 404, tags that are too long together 400.
"""
import base64
import json
import re

from fake_chats import Fake

TAGS_LENGTH = 500  # annotations.tags_length


class Grafana(Fake):
    SECRET, USER, PASSWORD = "glsa_se-cret0123456789", "editor", "pass-word0123456789"

    def __init__(self):
        self.annotations, self.last, self.viewer, self.refuses = {}, 0, False, None
        super().__init__()

    def allowed(self, headers):
        basic = base64.b64encode(f"{self.USER}:{self.PASSWORD}".encode()).decode()
        return headers.get("Authorization") in (f"Bearer {self.SECRET}", f"Basic {basic}")

    def find(self):
        given = dict(self.pairs)
        tags = [value for key, value in self.pairs if key == "tags"]
        start, end = int(given.get("from", 0)), int(given.get("to", 1 << 62))
        found = [a for a in self.annotations.values() if set(tags) <= set(a["tags"]) and a["timeEnd"] >= start and a["time"] <= end]
        return sorted(found, key=lambda a: -a["timeEnd"])[:int(given.get("limit", 100))]

    def problems(self, body, whole):
        found = [f"member {key}" for key in set(body) - {"time", "timeEnd", "tags", "text", "dashboardUID", "panelId"}]
        if whole and not body.get("text"):
            found.append("text is empty")
        for key in ("time", "timeEnd"):
            if key in body and (not isinstance(body[key], int) or body[key] < 10 ** 11):
                found.append(f"{key} is not in ms")
        if not all(isinstance(t, str) and 0 < len(t) <= 100 for t in body.get("tags", [])):
            found.append("a tag that is empty or too long")
        if re.search(r"<(?!/?(div|strong|br|a)\b)", body.get("text", "")):
            found.append("markup in the text")
        return found

    def write(self, number, body):
        old = self.annotations.get(number, {"id": number})
        self.annotations[number] = old | {k: body[k] for k in ("time", "timeEnd", "tags", "text") if k in body}
        self.annotations[number].setdefault("timeEnd", body.get("time"))

    def handle(self, method, path, query, headers, body, length):
        number = re.fullmatch(r"/api/annotations/(\d+)", path)
        if not self.allowed(headers):
            return 401, {}, {"message": "Unauthorized"}
        if method == "GET" and path == "/api/annotations":
            return 200, {}, self.find()
        if self.viewer:
            return 403, {}, {"message": "You'll need additional permissions to perform this action. Permissions needed: annotations:create"}
        if method not in ("POST", "PATCH", "DELETE") or bool(number) != (method != "POST"):
            return self.bad(404, {"message": "Not found"}, f"{method} {path}")
        if number and int(number[1]) not in self.annotations:
            return 404, {}, {"message": "Annotation not found"}
        if method == "DELETE":
            del self.annotations[int(number[1])]
            return 200, {}, {"message": "Annotation deleted"}
        if self.refuses and self.refuses in str(body):
            return 400, {}, {"message": "bad request data"}
        if len(json.dumps(body["tags"], separators=(",", ":"), ensure_ascii=False).encode()) > TAGS_LENGTH:
            return self.bad(400, {"message": "tags length exceeds the maximum allowed"}, "too many tags")
        found = self.problems(body, method == "POST")
        if found:
            return self.bad(400, {"message": "Failed to save annotation"}, "; ".join(found))
        if method == "POST":
            self.last += 1
        self.write(self.last if method == "POST" else int(number[1]), body)
        return 200, {}, {"message": "Annotation added", "id": self.last} if method == "POST" else {"message": "Annotation patched"}
