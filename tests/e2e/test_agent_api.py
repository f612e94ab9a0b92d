"""How the commands find a running agent and ask it: the socket, the loopback, tokens, TLS; and what they say where it does not work.

They find it by the lock of its state file. In a database they write by themselves, so those tests are about files.
"""
import csv
import http.server
import io
import json
import os
import pathlib
import pwd
import re
import subprocess
import tempfile
import threading

import pytest
import servers
from agent import write_csv
from state_address import state_of
from test_access import TOKEN, begin, make_certificate, prepare, secret_file
from waiting import LONGEST, wait

WEB = "tokens: [{name: ci, file: ci.token, role: triager}, {name: robot, file: robot.token, role: viewer}]\n"


def with_change(tmp_path, web=None, listen="127.0.0.1:0", agent=""):
    """A configuration whose test has one change."""
    path = prepare(tmp_path, web, listen, agent)
    write_csv(tmp_path / "read.csv", [(30, 1.2)])
    return path


def started(agents, path):
    agent = agents(path)
    agent.begun()
    return agent


def wait_for_change(hunter, path):
    """Until the state has the change; read beside the agent."""
    def changes():
        listed = hunter("changes", "--config", path, "--output", "json")
        return listed.code == 0 and json.loads(listed.out)["changes"]

    return wait(changes)[0]["id"]


@pytest.mark.state_file
def test_by_socket(agents, hunter, tmp_path):
    """A socket in agent.listen is all that it takes."""
    path = with_change(tmp_path, listen=f"['127.0.0.1:0', 'unix:{tmp_path}/api.sock']")
    agent = started(agents, path)
    number = wait_for_change(hunter, path)
    done = hunter("triage", "--config", path, number, "expected", "--note", "bigger cache, PR 4411")
    assert done.code == 0 and "1 change changed" in done.out and "bigger cache, PR 4411" in done.out, done
    shown = hunter("triage", number, "--agent", f"unix:{tmp_path}/api.sock", "--output", "json")
    triage = json.loads(shown.out)["changes"][0]["triage"]
    assert shown.code == 0 and (triage["state"], triage["note"], triage["version"]) == ("expected", "bigger cache, PR 4411", 1), shown
    listed = hunter("changes", "--output", "json", env={"HUNTER_AGENT": f"unix:{tmp_path}/api.sock"})
    assert [change["id"] for change in json.loads(listed.out)["changes"]] == [number], listed
    # The audit log says from where.
    entry = json.loads(agent.get("/api/v1/audit")[1])["audit"][0]
    assert (entry["action"], entry["change"]) == ("triaged", number) and entry["origin"].startswith("unix socket"), entry
    assert agent.end() == 0


def test_what_has_no_effect_is_refused(hunter, tmp_path):
    state = tmp_path / "state.db"
    for words, said in ((("silence", "list", "--for", "2h", "--state-file", state), "--for has no effect with silence list"),
                        (("silence", "end", "1", "--all", "--state-file", state), "--all has no effect with silence end"),
                        (("silence", "add", "test=a", "--all", "--state-file", state), "--all has no effect with silence add"),
                        (("regressions", "--config", pathlib.Path(__file__).resolve().parents[2] / "conf/example.yaml", "--state", state, "--agent", "http://127.0.0.1:1"), "are mutually exclusive")):
        refused = hunter(*words)
        assert refused.code == 2 and said in refused.err, refused


def test_tokens(agents, hunter, tmp_path):
    path = with_change(tmp_path, WEB)
    agent = begin(agents, path)
    url = f"http://127.0.0.1:{agent.port}"
    number = wait_for_change(hunter, path)
    token, viewer = tmp_path / "ci.token", tmp_path / "robot.token"
    done = hunter("triage", number, "acknowledged", "--owner", "ann", "--agent", url, "--token-file", token)
    assert done.code == 0, done
    by_variable = hunter("triage", number, "fixed", env={"HUNTER_AGENT": url, "HUNTER_TOKEN_FILE": str(token)})
    assert by_variable.code == 0 and by_variable.out.split("\n")[2].endswith("  ci"), by_variable
    # Who signs in is who says it, whatever the request claims.
    assert "ci" in hunter("triage", number, "--agent", url, "--token-file", token).out
    # Viewers are not told from where.
    for secret, seen in ((token, True), (viewer, False)):
        change = json.loads(hunter("changes", "--agent", url, "--token-file", secret, "--output", "json").out)["changes"][0]
        origins = {event["origin"] for event in change["history"] if event["event"] == "triaged"}
        assert origins == ({"127.0.0.1"} if seen else {None}), change
    listed = hunter("changes", "--agent", url, "--token-file", viewer)
    assert listed.code == 0 and "fixed" in listed.out, listed
    refused = hunter("triage", number, "open", "--agent", url, "--token-file", viewer)
    assert refused.code == 2 and "requires the role triager; robot has the role viewer" in refused.err, refused
    refused = hunter("triage", number, "open", "--agent", url)
    assert refused.code == 2 and "--token-file" in refused.err, refused
    wrong = tmp_path / "wrong.token"
    secret_file(wrong, "another-token-of-some-length")
    refused = hunter("triage", number, "open", "--agent", url, "--token-file", wrong)
    assert refused.code == 2 and "or token" in refused.err, refused
    refused = hunter("triage", number, "open", "--agent", url, "--token-file", tmp_path / "missing")
    assert refused.code == 2 and "--token-file" in refused.err and "No such file" in refused.err, refused
    os.chmod(token, 0o644)
    warned = hunter("triage", number, "--agent", url, "--token-file", token)
    assert warned.code == 0 and "token file is readable by every user of this machine" in warned.err, warned
    assert not any(TOKEN in text for text in (done.err, refused.err, warned.err, "".join(agent.log)))
    assert agent.end() == 0


@pytest.mark.state_file
def test_discovered_by_port(agents, hunter, tmp_path):
    """Without a socket the loopback is asked, with the token that it takes; 0.0.0.0 is the loopback, too."""
    port = servers.free_port()
    path = with_change(tmp_path, WEB, listen=f"0.0.0.0:{port}")
    agent = begin(agents, path)
    number = wait_for_change(hunter, path)
    done = hunter("triage", "--config", path, number, "infra", "--token-file", tmp_path / "ci.token")
    assert done.code == 0 and "infra" in done.out, done
    refused = hunter("triage", "--config", path, number, "open")
    assert refused.code == 2 and "--token-file" in refused.err, refused
    assert agent.end() == 0


def test_tls(agents, hunter, tmp_path):
    make_certificate(tmp_path, "server", "hunter.example")
    port = servers.free_port()
    tls = "tls_server_config: {cert_file: server.pem, key_file: server.key}\n"
    path = with_change(tmp_path, WEB + tls, listen=f"127.0.0.1:{port}")
    agent = begin(agents, path)
    number = wait_for_change(hunter, path)
    token = ("--token-file", tmp_path / "ci.token")
    url = f"https://127.0.0.1:{port}"
    done = hunter("triage", number, "false", "--agent", url, "--ca-file", tmp_path / "server.pem", *token)
    assert done.code == 0, done
    # The configuration says which certificate it is.
    assert hunter("triage", "--config", path, number, "open", *token).code == 0
    refused = hunter("triage", number, "--agent", url, *token)
    assert refused.code == 4 and "certificate" in refused.err, refused
    refused = hunter("triage", number, "--agent", f"http://127.0.0.1:{port}", *token)
    assert refused.code == 4, refused
    assert agent.end() == 0


@pytest.mark.state_file
def test_unavailable(agents, hunter, tmp_path):
    port = servers.free_port()
    down = hunter("triage", 1, "open", "--agent", f"http://127.0.0.1:{port}/")
    assert down.code == 4 and "Connection refused" in down.err, down
    down = hunter("changes", "--agent", f"unix:{tmp_path}/none.sock")
    assert down.code == 4 and re.search(rf"cannot reach unix:{tmp_path}/none.sock: [A-Z][a-z ]+$", down.err), down
    for wrong in ("localhost:9469", "unix:api.sock", "http://ann:pw@localhost/", "ftp://localhost/"):
        refused = hunter("silence", "list", "--agent", wrong)
        assert refused.code == 2 and "--agent" in refused.err and "pw" not in refused.err, refused
    path = with_change(tmp_path)
    refused = hunter("triage", 1, "--config", path, "--state-file", state_of(tmp_path), "--agent", "http://localhost/")
    assert refused.code == 2 and "mutually exclusive" in refused.err, refused
    # No agent and no state.
    refused = hunter("triage", 1, "open", "--config", path)
    assert refused.code == 4 and "does not exist yet" in refused.err and "the agent creates it on its first run" in refused.err, refused
    # An agent whose port nobody can know: what to configure.
    agent = started(agents, path)
    number = wait_for_change(hunter, path)
    refused = hunter("triage", number, "expected", "--config", path)
    assert refused.code == 4 and "agent.listen has no address with a fixed port: add unix:/path" in refused.err, refused
    assert "an agent is using the state file" in refused.err
    # It can still be named, and looked at.
    port = int(re.search(r"port=(\d+)", agent.wait_log("msg=started"))[1])
    assert hunter("triage", number, "expected", "--agent", f"http://127.0.0.1:{port}").code == 0
    assert "expected" in hunter("changes", "--triage", "expected", "--config", path).out
    assert agent.end() == 0
    # And now that it is gone, directly.
    done = hunter("triage", number, "open", "--config", path)
    assert done.code == 0 and "1 change changed" in done.out, done


@pytest.mark.state_file
def test_before_the_first_run(agents, hunter, tmp_path):
    """A silence makes the state, for the agent's user; what needs a state says in words that there is none."""
    path = with_change(tmp_path)

    def refused(*arguments):
        done = hunter(*arguments)
        return done.code == 4 and "does not exist yet" in done.err and "the agent creates it on its first run" in done.err

    look = [("changes",), ("changes", "--open"), ("silence", "list"), ("silence", "end", 1), ("triage", 1), ("triage", 1, "expected"), ("store", "check"),
            ("triage", 1, "expected", "--dry-run"), ("store", "audit"), ("store", "backup", tmp_path / "b.db"), ("store", "prune", "--older-than", "90d"),
            ("store", "prune", "--older-than", "90d", "--dry-run"), ("evaluate", "--from-triage")]
    assert [words for words in look if not refused(*words, "--config", path)] == []
    given = [("why", "db.read", "p99"), ("plot", "db.read", "p99"), ("report", "--markdown", "-")]
    assert [words for words in given if not refused(*words, "--state-file", tmp_path / "none.db", "--config", path)] == []
    assert refused("store", "copy", tmp_path / "none.db", tmp_path / "b.db") and refused("regressions", "--state", tmp_path / "none.db", "--config", path)
    assert [file.name for file in tmp_path.iterdir() if ".db" in file.name] == []
    if os.geteuid() == 0:
        os.chown(tmp_path, 65534, 65534)
    done = hunter("silence", "add", 'test="db.read"', "--for", "2h", "--owner", "early", "--config", path)
    assert done.code == 0 and "active" in done.out, done
    made = [file for file in tmp_path.iterdir() if file.name.startswith("state.db")]
    assert {file.name for file in made} >= {"state.db", "state.db.lock"} and {file.stat().st_uid for file in made} == {tmp_path.stat().st_uid}
    agent = started(agents, path)
    wait_for_change(hunter, path)
    silences = hunter("silence", "list", "--output", "json", "--config", path)
    assert [(one["id"], one["owner"], one["state"]) for one in json.loads(silences.out)["silences"]] == [(1, "early", "active")]
    agent.wait_metric("hunter_silenced_changes", 1)
    assert agent.end() == 0


@pytest.mark.state_file
def test_silences(agents, hunter, tmp_path):
    """Added through the agent that has the state, or without one."""
    path = with_change(tmp_path, listen=f"['127.0.0.1:0', 'unix:{tmp_path}/api.sock']")

    def silence(*arguments):
        return hunter("silence", *arguments, "--config", path)

    def listed(*arguments):
        done = silence("list", "--output", "json", *arguments)
        assert done.code == 0, done
        return json.loads(done.out)["silences"]

    agent = started(agents, path)
    wait_for_change(hunter, path)
    done = silence("add", 'test=~"db.*",region = eu', "--for", "2h", "--owner", "ann", "--reason", "migration")
    assert done.code == 0 and 'test=~"db.*", region="eu"' in done.out and "active" in done.out, done
    assert "It can select 1 test, and selects 0 open changes now." in done.out, done
    # The same again, as if the answer had been lost: no other silence.
    again = silence("add", 'test=~"db.*", region="eu"', "--for", "2h", "--owner", "ann", "--reason", "migration")
    assert again.code == 0
    (one,) = listed()
    typo = silence("add", 'tset=~"db.*"', "--for", "1h")
    assert typo.code == 0 and 'has "tset" (did you mean "test"?)' in typo.err, typo
    assert silence("end", "2").code == 0
    assert (one["id"], one["owner"], one["reason"], one["state"], one["ended"]) == (1, "ann", "migration", "active", None), one
    by_api = json.loads(hunter("silence", "list", "--output", "json", "--agent", f"unix:{tmp_path}/api.sock").out)
    assert by_api["silences"] == [one]
    for arguments, told in ((("add", "test=~", "--for", "2h"), "matchers: "), (("add", 'test="x"'), 'one of "for"'),
                            (("add", 'test="x"', "--for", "31d"), "agent.max_silence"), (("add", 'test="x"', "--for", "never"), "at most"),
                            (("add", 'test="x"', "--until", "yesterday"), "in the past"), (("end", "7"), "there is no silence 7"),
                            (("add", 'test="x"', "--from", "never", "--for", "2h"), "from: a silence has a beginning"),
                            (("add", 'test="x"', "--from", "9999-12-31", "--for", "30d"), "after the year 9999"),
                            (("end", "x"), "the id of a silence"), (("stop", "7"), "expected add MATCHERS"), (("add", 'test="x"', "--from", "2h", "--until", "1h"), "before it begins")):
        refused = silence(*arguments)
        assert refused.code == 2 and told in refused.err, (arguments, refused)
    done = silence("end", "1")
    assert done.code == 0 and "over" in done.out, done
    assert silence("end", "1").code == 0  # it is over already
    done = silence("add", 'test="db.read"', "--for", "1h", "--output", "json")
    assert (json.loads(done.out)["open_changes"], json.loads(done.out)["tests"], json.loads(done.out)["warning"]) == (1, 1, None), done
    assert silence("end", "3").code == 0
    assert [entry["action"] for entry in json.loads(agent.get("/api/v1/audit")[1])["audit"]] == ["silence ended", "silenced", "silence ended", "silence ended", "silenced", "silenced"]
    lines = hunter("store", "audit", "--config", path, "--output", "json").out.splitlines()
    assert len(lines) == 1 + 6 and all('"action": ' in line for line in lines[1:]), lines
    ended = next(csv.DictReader(io.StringIO(hunter("silence", "list", "--all", "--config", path, "--output", "csv").out)))
    assert ended["state"] == "over" and ended["ended"] and ended["from"] <= ended["ended"] < ended["until"], ended
    refused = hunter("store", "check", "--agent", f"unix:{tmp_path}/api.sock")
    assert refused.code == 2 and "--agent has no effect with store check" in refused.err, refused
    assert agent.end() == 0
    done = silence("add", 'test="db.read"', "--from", "tomorrow", "--for", "1 day")
    assert done.code == 0 and "pending" in done.out and "selects 1 open change now" in done.out, done
    assert [(each["id"], each["state"]) for each in listed("--all")] == [(1, "over"), (2, "over"), (3, "over"), (4, "pending")]
    assert silence("end", "4").code == 0
    nothing = silence("add", "test=nosuch", "--for", "1h")
    assert nothing.code == 0 and "no configured test and no open change matches" in nothing.err, nothing


@pytest.mark.state_file
@pytest.mark.skipif(os.geteuid() != 0, reason="only root becomes another user")
def test_another_user(agents, program, hunter):
    """Who may not read the state asks the agent by its socket."""
    with tempfile.TemporaryDirectory() as folder:  # those of pytest are closed to others
        another_user(agents, program, hunter, pathlib.Path(folder))


def another_user(agents, program, hunter, tmp_path):
    path = with_change(tmp_path, listen=f"['127.0.0.1:0', 'unix:{tmp_path}/api.sock']", agent="  socket_owner: ':daemon'")
    agent = started(agents, path)
    number = wait_for_change(hunter, path)
    tmp_path.chmod(0o755)

    def as_nobody(*arguments, group="daemon"):
        return subprocess.run(["setpriv", "--reuid=nobody", f"--regid={group}", "--clear-groups", program, *map(str, arguments), "--config", path],
                              capture_output=True, text=True, timeout=LONGEST)

    listed = as_nobody("changes", "--open")
    assert listed.returncode == 0 and "db.read" in listed.stdout, listed
    done = as_nobody("triage", number, "expected", "--note", "known")
    assert done.returncode == 0 and "nobody" in done.stdout, done
    done = as_nobody("silence", "add", 'test="db.read"', "--for", "1h")
    assert done.returncode == 0 and "nobody" in as_nobody("silence", "list").stdout, done
    for arguments in (("changes",), ("triage", number, "open"), ("silence", "list")):
        refused = as_nobody(*arguments, group="nogroup")
        assert refused.returncode == 4 and "Permission denied" in refused.stderr, refused
    origins = {entry["origin"] for entry in json.loads(agent.get("/api/v1/audit")[1])["audit"]}
    assert origins == {f"unix socket, uid {pwd.getpwnam('nobody').pw_uid}"}
    assert agent.end() == 0


def test_not_an_agent(hunter, tmp_path):
    """Something else answers there; what it says does not control the terminal."""

    class Other(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            if "endless" in self.path:
                body = b'{"changes": [], "next": 7}'
            elif "full" in self.path:
                body = json.dumps({"changes": [{"id": i, "series": "s", "test": "t", "metric": "4711", "time": f"2026-01-0{i}T00:00:00Z",
                                                "size": None} for i in (1, 2, 3)]}).encode()
            elif "odd" in self.path:
                body = b'{"changes": [{"id":"x"}, 5]}'
            else:
                body = b'{"status": "ok"}'
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def do_POST(self):
            self.rfile.read(int(self.headers["Content-Length"]))
            taken = "taken" in self.path
            body = b'{"changed": 0, "count": 1, "changes": [], "error": "as \\u001b[31mbob said"}' if taken else b"hello"
            self.send_response(409 if taken else 200 if "plain" in self.path else 302)
            self.send_header("Location", "https://sign-in.example/")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_):
            pass

    server = http.server.HTTPServer(("127.0.0.1", 0), Other)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        for path in ("", "/plain"):
            refused = hunter("triage", 1, "open", "--agent", f"http://127.0.0.1:{server.server_port}{path}")
            assert refused.code == 4 and "is it the right address?" in refused.err, refused
        for words, lack in ((["agents"], "agents"), (["silence", "list"], "silences"), (["changes"], "changes")):
            refused = hunter(*words, "--agent", f"http://127.0.0.1:{server.server_port}")
            assert refused.code == 4 and f'has no "{lack}": is it a hunter-c of this version?' in refused.err, refused
        config = tmp_path / "gate.yaml"
        config.write_text(f"tests:\n  t: {{type: csv, file: {tmp_path}/t.csv}}\n")
        (tmp_path / "t.csv").write_text("time,p\n" + "".join(f"2026-01-{i:02},{i % 3}\n" for i in range(1, 29)))
        for words in (["changes"], ["regressions", "t", "--config", config]):
            refused = hunter(*words, "--agent", f"http://127.0.0.1:{server.server_port}/endless")
            assert refused.code == 4 and "the response does not end" in refused.err, refused
            refused = hunter(*words, "--agent", f"http://127.0.0.1:{server.server_port}/odd")
            assert refused.code == 4 and "the response is not a list of changes" in refused.err, refused
        full = ["changes", "--agent", f"http://127.0.0.1:{server.server_port}/full", "--limit", 2]
        listed = hunter(*full, "--output", "json")
        assert listed.code == 0 and "output truncated" in listed.err, listed
        answer = json.loads(listed.out)
        assert answer["more"] and [change["id"] for change in answer["changes"]] == [3, 2], answer
        shown = hunter(*full).out
        assert re.search(r"^ *3  2026-01-03 00:00:00 \+0000  t +4711 +new$", shown, re.M), shown
        refused = hunter("triage", 1, "open", "--agent", f"http://127.0.0.1:{server.server_port}/taken")
        assert refused.code == 2 and refused.err == "hunter-c: as ?[31mbob said\n", refused
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
