"""Trackers on loopback, as strict as the real ones are documented to be: GitHub, GitLab and Jira.

Each has `issues` ({number: {...}}, comments among them), GitHub and GitLab also `commits` ({sha: [comments]}). `made` counts
the issues and comments that were made. See fake_chats.py for `violations` and `answers`.
"""
import base64
import re

from fake_chats import Fake, has_foreign_markup

SHA = "6dcb09b5b57875f334f61aebed695e2e4193db5e"
FIRST = "2020-01-01T00:00:00Z"


class Tracker(Fake):
    SECRET = "to-ken0123456789"
    PAGE = 100

    def __init__(self):
        self.issues, self.commits, self.made = {}, {SHA: []}, []
        self.page = self.PAGE  # at most so many on a page, whatever is asked for
        self.ids = 1000
        super().__init__()

    def new_id(self):
        self.ids += 1
        return self.ids

    def check(self, where, text):
        if has_foreign_markup(text):
            self.violations.append(f"markup in the {where}: {text!r}")

    def paged(self, items, query, key="per_page"):
        size = min(int(query.get(key, "30")), self.page)
        start = (int(query.get("page", "1")) - 1) * size
        return items[start:start + size]

    def note(self, kind, item):
        self.made.append(kind)
        return item

    def open_issues(self):
        return [i for i in self.issues.values() if i["state"] not in ("closed", "Done")]


class GitHub(Tracker):
    """The REST API of 2022-11-28: a repository `acme/shop` with issues, comments and commits."""
    TITLE, BODY = 256, 65536

    def __init__(self):
        self.enabled = True  # the repository has issues
        self.people, self.secondary = {"ann", "bob"}, 0  # who can be assigned; requests that hit the secondary limit
        super().__init__()

    @staticmethod
    def error(message, **more):
        return {"message": message, "documentation_url": "https://docs.github.com/rest"} | more

    def handle(self, method, path, query, headers, body, length):
        if headers.get("Authorization") != f"Bearer {self.SECRET}":
            return 401, {}, self.error("Bad credentials")
        if headers.get("X-GitHub-Api-Version") != "2022-11-28" or headers.get("Accept") != "application/vnd.github+json" or not headers.get("User-Agent"):
            self.violations.append(f"headers: {dict(headers)}")
        if self.secondary:
            self.secondary -= 1
            return 403, {"Retry-After": "1"}, self.error("You have exceeded a secondary rate limit. Please wait a few minutes before you try again.")
        if path == "/repos/acme/shop":
            return 200, {}, {"full_name": "acme/shop"}
        found = re.fullmatch(r"/repos/acme/shop/(.*)", path)
        if not found:
            return 404, {}, self.error("Not Found")
        return self.route(method, found[1], query, body or {})

    def route(self, method, path, query, body):
        if path == "issues":
            return self.create(body) if method == "POST" else self.list(query)
        if found := re.fullmatch(r"issues/(\d+)(/comments)?", path):
            issue = self.issues.get(int(found[1]))
            if not issue:
                return 404, {}, self.error("Not Found")
            if issue.get("deleted"):
                return 410, {}, self.error("This issue was deleted")
            return self.comments(method, issue["list"], query, body) if found[2] else self.issue(method, issue, body)
        if found := re.fullmatch(r"(?:issues/)?comments/(\d+)", path):
            lists = [i["list"] for i in self.issues.values()] if path.startswith("issues") else list(self.commits.values())
            for comment in [c for comments in lists for c in comments]:
                if comment["id"] == int(found[1]) and method == "PATCH":
                    return self.text(comment, body)
            return 404, {}, self.error("Not Found")
        if found := re.fullmatch(r"commits/([^/]+)(/comments)?", path):
            shas = [s for s in self.commits if s.startswith(found[1]) and len(found[1]) >= 7]
            if not shas or not re.fullmatch("[0-9a-f]+", found[1]):
                return 422, {}, self.error(f"No commit found for SHA: {found[1]}")
            return self.comments(method, self.commits[shas[0]], query, body) if found[2] else (200, {}, {"sha": shas[0]})
        return self.bad(404, self.error("Not Found"), f"{method} {path}")

    def text(self, item, body):
        text = body.get("body")
        if not isinstance(text, str) or not text.strip() or len(text) > self.BODY:
            return self.bad(422, self.error("Validation Failed", errors=[{"field": "body", "code": "custom", "message": f"body is too long (maximum is {self.BODY} characters)"}]), "body")
        self.check("body", text)
        item["body"] = text
        return 200, {}, self.shown(item)

    @staticmethod
    def shown(item):
        return {k: v for k, v in item.items() if k != "list"}

    def comments(self, method, comments, query, body):
        if method == "GET":
            return 200, {}, [self.shown(c) for c in self.paged(comments, query)]
        comment = {"id": self.new_id()}
        answer = self.text(comment, body)
        if answer[0] == 200:
            comments.append(self.note("comment", comment))
            return 201, {}, comment
        return answer

    def create(self, body):
        if not self.enabled:
            return 410, {}, self.error("Issues has been disabled in this repository.")
        title = body.get("title", "")
        if not 1 <= len(title) <= self.TITLE or "\n" in title:
            return self.bad(422, self.error("Validation Failed", errors=[{"resource": "Issue", "field": "title", "code": "custom"}]), "title")
        if re.search(r"@\w", title):
            self.violations.append(f"a mention in {title!r}")
        if set(body.get("assignees", [])) - self.people:
            return 422, {}, self.error("Validation Failed", errors=[{"value": body["assignees"], "resource": "Issue", "field": "assignees", "code": "invalid"}])
        number = len(self.issues) + 1
        issue = {"id": self.new_id(), "number": number, "title": title, "state": "open", "labels": [{"name": n} for n in body.get("labels", [])],
                 "assignees": [{"login": n} for n in body.get("assignees", [])], "created_at": FIRST, "list": []}
        answer = self.text(issue, body)
        if answer[0] != 200:
            return answer
        self.issues[number] = self.note("issue", issue)
        return 201, {}, self.shown(issue)

    def list(self, query):
        if query.get("state") != "all" or query.get("sort", "created") not in ("created", "updated"):
            self.violations.append(f"the list of issues is asked for with {query}")
        pull = {"number": 999, "title": "a pull request", "body": None, "state": "open", "pull_request": {}}
        return 200, {}, [self.shown(i) for i in self.paged([pull] + [i for i in reversed(self.issues.values()) if not i.get("deleted")], query)]

    def issue(self, method, issue, body):
        if method == "GET":
            return 200, {}, self.shown(issue)
        if method != "PATCH" or set(body) - {"title", "body", "state", "state_reason", "labels", "assignees"}:
            return self.bad(422, self.error("Validation Failed"), f"{method} {sorted(body)}")
        if body.get("state", issue["state"]) not in ("open", "closed"):
            return self.bad(422, self.error("Validation Failed", errors=[{"field": "state", "code": "invalid"}]), f"state {body['state']}")
        issue |= {k: body[k] for k in ("state", "state_reason", "title") if k in body}
        return self.text(issue, body) if "body" in body else (200, {}, self.shown(issue))


class GitLab(Tracker):
    """The REST API v4: a project `acme/shop`; its limit of requests is answered with 429 and RateLimit headers."""
    TITLE, BODY = 255, 1048576

    def __init__(self):
        self.limited = 0
        super().__init__()

    def handle(self, method, path, query, headers, body, length):
        if headers.get("Authorization") != f"Bearer {self.SECRET}" and headers.get("PRIVATE-TOKEN") != self.SECRET:
            return 401, {}, {"message": "401 Unauthorized"}
        if self.limited:
            self.limited -= 1
            return 429, {"Content-Type": "text/plain", "RateLimit-Limit": "60", "RateLimit-Remaining": "0", "RateLimit-Reset": "1", "Retry-After": "1"}, "Retry later\n"
        if re.fullmatch(r"/api/v4/projects/acme%2[Ff]shop", path):
            return 200, {}, {"path_with_namespace": "acme/shop"}
        found = re.fullmatch(r"/api/v4/projects/acme%2[Ff]shop/(.*)", path)
        if not found:
            return 404, {}, {"message": "404 Project Not Found"}
        return self.route(method, found[1], query, body or {})

    def route(self, method, path, query, body):
        if path == "issues":
            return self.create(body) if method == "POST" else self.list(query)
        if found := re.fullmatch(r"issues/(\d+)(?:/notes(?:/(\d+))?)?", path):
            issue = self.issues.get(int(found[1]))
            if not issue or issue.get("deleted"):
                return 404, {}, {"message": "404 Issue Not Found" if path.endswith(found[1]) else "404 Not found"}
            return self.notes(method, issue["list"], found[2], query, body) if "/notes" in path else self.issue(method, issue, body)
        if found := re.fullmatch(r"repository/commits/([^/]+)(?:/discussions(?:/(\w+)/notes/(\d+))?)?", path):
            shas = [s for s in self.commits if s.startswith(found[1]) and len(found[1]) >= 7]
            if not shas:
                return 404, {}, {"message": "404 Commit Not Found"}
            if "/discussions" not in path:
                return 200, {}, {"id": shas[0], "short_id": shas[0][:8]}
            return self.discussions(method, self.commits[shas[0]], found[3], query, body)
        return self.bad(404, {"error": "404 Not Found"}, f"{method} {path}")

    def text(self, item, body, key):
        text = body.get(key)
        if not isinstance(text, str) or not text.strip() or len(text) > self.BODY:
            return self.bad(400, {"message": {key: [f"is too long (maximum is {self.BODY} characters)"]}}, f"{key} of {len(text or '')}")
        if re.search(r"^/(?!assign @\w+( @\w+)*$)", text, re.M):
            self.violations.append(f"a quick action in {text!r}")
        self.check(key, re.sub(r"^/assign .*$", "", text, flags=re.M))
        item[key] = text
        return None

    @staticmethod
    def shown(item):
        return {k: v for k, v in item.items() if k != "list"}

    def create(self, body):
        title = body.get("title", "")
        if not 1 <= len(title) <= self.TITLE:
            return self.bad(400, {"message": {"title": [f"is too long (maximum is {self.TITLE} characters)"]}}, "title")
        if re.search(r"@\w", title):
            self.violations.append(f"a mention in {title!r}")
        number = len(self.issues) + 1
        issue = {"id": self.new_id(), "iid": number, "title": title, "state": "opened", "created_at": FIRST, "list": [],
                 "labels": [n for n in body.get("labels", "").split(",") if n]}
        problem = self.text(issue, body, "description")
        if problem:
            return problem
        action = re.search(r"^/assign (.*)$", issue["description"], re.M)
        issue["assignees"] = [{"username": n.lstrip("@")} for n in action[1].split()] if action else []
        issue["description"] = re.sub(r"\n?^/assign .*$", "", issue["description"], flags=re.M)
        self.issues[number] = self.note("issue", issue)
        return 201, {}, self.shown(issue)

    def list(self, query):
        if query.get("scope", "all") != "all":
            self.violations.append(f"the list of issues is asked for with {query}")
        found = [i for i in reversed(self.issues.values()) if not i.get("deleted") and query.get("search", "") in i["description"]]
        return 200, {}, [self.shown(i) for i in self.paged(found, query)]

    def issue(self, method, issue, body):
        if method == "GET":
            return 200, {}, self.shown(issue)
        if method != "PUT" or set(body) - {"title", "description", "state_event", "labels"}:
            return self.bad(400, {"error": "at least one parameter must be provided"}, f"{method} {sorted(body)}")
        if "description" in body:
            problem = self.text(issue, body, "description")
            if problem:
                return problem
        event = body.get("state_event")
        if event not in (None, "close", "reopen"):
            return self.bad(400, {"error": "state_event does not have a valid value"}, f"state_event {event}")
        issue["state"] = {"close": "closed", "reopen": "opened"}.get(event, issue["state"])
        return 200, {}, self.shown(issue)

    def notes(self, method, notes, number, query, body):
        if method == "GET":
            if query.get("sort", "desc") not in ("asc", "desc") or query.get("order_by", "created_at") not in ("created_at", "updated_at"):
                return self.bad(400, {"error": "sort does not have a valid value"}, str(query))
            ordered = notes if query.get("sort") == "asc" else list(reversed(notes))
            return 200, {}, self.paged(ordered, query)
        note = {"id": self.new_id(), "system": False} if method == "POST" else next((n for n in notes if str(n["id"]) == number), None)
        if not note:
            return 404, {}, {"message": "404 Note Not Found"}
        problem = self.text(note, body, "body")
        if problem:
            return problem
        if method == "POST":
            notes.append(self.note("comment", note))
        return (201 if method == "POST" else 200), {}, note

    def discussions(self, method, discussions, number, query, body):
        if method == "GET":
            return 200, {}, self.paged(discussions, query)
        if method == "PUT":
            notes = [n for d in discussions for n in d["notes"] if str(n["id"]) == number]
            if not notes:
                return 404, {}, {"message": "404 Note Not Found"}
            return self.text(notes[0], body, "body") or (200, {}, notes[0])
        note = {"id": self.new_id()}
        problem = self.text(note, body, "body")
        if problem:
            return problem
        discussions.append({"id": f"{self.new_id():040x}", "individual_note": False, "notes": [note]})
        self.note("comment", note)
        return 201, {}, discussions[-1]


class Jira(Tracker):
    """The REST API v2, of Jira Cloud (`cloud`: basic authentication, search/jql) or of a Data Center (a token, search)."""
    SUMMARY, TEXT = 255, 32767
    STATES = {"11": ("Start", "In Progress", "indeterminate"), "31": ("Done", "Done", "done"), "41": ("Reopen", "To Do", "new")}

    def __init__(self, cloud=True):
        self.cloud, self.lag = cloud, 0  # issues that the index of the search does not have yet, the newest ones
        self.limited = 0
        self.refused_fields = set()
        super().__init__()

    @staticmethod
    def error(*messages, **fields):
        return {"errorMessages": list(messages), "errors": fields}

    def handle(self, method, path, query, headers, body, length):
        basic = "Basic " + base64.b64encode(f"bot@acme.example:{self.SECRET}".encode()).decode()
        if headers.get("Authorization") != (basic if self.cloud else f"Bearer {self.SECRET}"):
            return 401, {"WWW-Authenticate": "Basic"}, "Client must be authenticated to access this resource."
        if self.limited:
            self.limited -= 1
            return 429, {"Retry-After": "1", "RateLimit-Reason": "jira-burst-based"}, self.error("Rate limit exceeded.")
        found = re.fullmatch(r"/rest/api/2/(.*)", path)
        if not found:
            return 404, {}, self.error("null for uri: " + path)
        return self.route(method, found[1], query, body or {})

    def route(self, method, path, query, body):
        if path == "project/PERF":
            return 200, {}, {"key": "PERF"}
        if path == "issue" and method == "POST":
            return self.create(body.get("fields", {}))
        if path in ("search", "search/jql"):
            return self.search(path, query)
        found = re.fullmatch(r"issue/(PERF-\d+)(/comment(?:/(\d+))?|/transitions)?", path)
        issue = found and self.issues.get(found[1])
        if not issue or issue.get("deleted"):
            return 404, {}, self.error("Issue does not exist or you do not have permission to see it.")
        if found[2] == "/transitions":
            return self.transitions(method, issue, body)
        if found[2]:
            return self.comments(method, issue["list"], found[3], query, body)
        return self.issue(method, issue, body)

    def text(self, item, key, text):
        if not isinstance(text, str) or not text.strip() or len(text) > self.TEXT:
            return self.bad(400, self.error(**{key: f"The entered text is too long. It exceeds the allowed limit of {self.TEXT} characters."}), f"{key} of {len(text or '')}")
        plain = re.sub(r"\\[^\w\s]", "", re.sub(r"(?<!\\)\[https?://[^\]\s]+\]", "", text))
        if re.search(r"https?://|[{\[!|]|@(?!\u200b)", plain):
            self.violations.append(f"markup in {text!r}")
        item[key] = text
        return None

    def create(self, fields):
        known = {"project", "issuetype", "summary", "description", "labels", "assignee", "priority", "components"}
        refused = {f: f"Field '{f}' cannot be set. It is not on the appropriate screen, or unknown." for f in set(fields) - known | self.refused_fields & set(fields)}
        if refused:
            return 400, {}, self.error(**refused)
        if fields.get("project") != {"key": "PERF"}:
            return 400, {}, self.error(project="valid project is required")
        if fields.get("issuetype") not in ({"name": "Bug"}, {"name": "Task"}):
            return 400, {}, self.error(issuetype="The issue type selected is invalid.")
        summary = fields.get("summary", "")
        if not 1 <= len(summary) <= self.SUMMARY or "\n" in summary:
            return self.bad(400, self.error(summary="Summary must be less than 255 characters."), "summary")
        if any(" " in label for label in fields.get("labels", [])):
            return self.bad(400, self.error(labels="The label can't contain spaces."), "labels")
        key = f"PERF-{len(self.issues) + 1}"
        issue = {"key": key, "summary": summary, "state": "To Do", "labels": fields.get("labels", []), "assignee": fields.get("assignee"), "list": []}
        problem = self.text(issue, "description", fields.get("description"))
        if problem:
            return problem
        self.issues[key] = self.note("issue", issue)
        return 201, {}, {"id": str(self.new_id()), "key": key, "self": f"{self.url}/rest/api/2/issue/{key}"}

    def shown(self, issue):
        category = next(c for _, name, c in self.STATES.values() if name == issue["state"])
        return {"key": issue["key"], "fields": {"summary": issue["summary"], "description": issue["description"],
                                               "status": {"name": issue["state"], "statusCategory": {"key": category}}}}

    def search(self, path, query):
        if self.cloud and path == "search":
            return 410, {}, self.error("The requested API has been removed. Please migrate to the /rest/api/3/search/jql API.")
        if not self.cloud and path == "search/jql":
            return 404, {}, self.error("null for uri: search/jql")
        found = re.fullmatch(r'project = "PERF" AND description ~ "(\w+)"( ORDER BY created DESC)?', query.get("jql", ""))
        if not found:
            return self.bad(400, self.error("Error in the JQL Query"), query.get("jql", ""))
        seen = list(self.issues.values())[:len(self.issues) - self.lag if self.lag else None]
        return 200, {}, {"issues": [self.shown(i) for i in seen if found[1] in i["description"] and not i.get("deleted")], "isLast": True}

    def issue(self, method, issue, body):
        if method == "GET":
            return 200, {}, self.shown(issue)
        fields = body.get("fields", {})
        if method != "PUT" or set(fields) - {"description", "summary"}:
            return self.bad(400, self.error("bad request"), f"{method} {sorted(fields)}")
        return self.text(issue, "description", fields["description"]) or (204, {}, "")

    def transitions(self, method, issue, body):
        ways = {k: v for k, v in self.STATES.items() if v[1] != issue["state"]}
        if method == "GET":
            return 200, {}, {"transitions": [{"id": k, "name": v[0], "to": {"name": v[1], "statusCategory": {"key": v[2]}}} for k, v in ways.items()]}
        chosen = body.get("transition", {}).get("id")
        if chosen not in ways:
            return self.bad(400, self.error("It seems that you have tried to perform an illegal workflow operation."), f"transition {chosen}")
        issue["state"] = ways[chosen][1]
        return 204, {}, ""

    def comments(self, method, comments, number, query, body):
        if method == "GET":
            ordered = list(reversed(comments)) if query.get("orderBy") == "-created" else comments
            return 200, {}, {"comments": ordered[:min(int(query.get("maxResults", "50")), self.page)], "total": len(comments)}
        comment = {"id": str(self.new_id())} if method == "POST" else next((c for c in comments if c["id"] == number), None)
        if not comment:
            return 404, {}, self.error("Can not find a comment for the id")
        problem = self.text(comment, "body", body.get("body"))
        if problem:
            return problem
        if method == "POST":
            comments.append(self.note("comment", comment))
        return (201 if method == "POST" else 200), {}, comment
