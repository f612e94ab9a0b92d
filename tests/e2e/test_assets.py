"""The page's files as the agent serves them: compressed or not, kept by version, and what browsers may do with them."""
import gzip
import http.client
import json
import pathlib
import re

import pytest
from agent import Agent, config, csv_test, write_csv
from waiting import LONGEST

PAGES = ["/", "/change/1", "/explore?test=a&metric=b%3Cscript%3E", "/clusters", "/tests", "/silences", "/status"]
ROOT = pathlib.Path(__file__).parents[2] / "agent/web/page"


@pytest.fixture(scope="module")
def ask(program, tmp_path_factory):
    folder = tmp_path_factory.mktemp("page")
    write_csv(folder / "read.csv", [(30, 1.2)])
    agent = Agent(program, config(folder, csv_test(folder / "read.csv")))
    host = agent.address().removeprefix("http://")

    def ask(path, **headers):
        connection = http.client.HTTPConnection(host, timeout=LONGEST)
        connection.request("GET", path, headers={name.replace("_", "-"): value for name, value in headers.items()})
        answer = connection.getresponse()
        body = answer.read()
        connection.close()
        return answer, body

    yield ask
    assert agent.end() == 0


@pytest.mark.parametrize("path", PAGES)
def test_a_page(ask, path):
    answer, body = ask(path)
    policy = answer.headers["Content-Security-Policy"]
    assert answer.status == 200 and body == (ROOT / "page.html").read_bytes()
    assert "default-src 'none'" in policy and "unsafe" not in policy and "frame-ancestors 'none'" in policy
    assert answer.headers["Content-Type"] == "text/html; charset=utf-8" and answer.headers["Referrer-Policy"] == "no-referrer"


@pytest.mark.parametrize("file", sorted(p.name for p in ROOT.iterdir()) + ["dygraph.js", "dygraph.css"])
def test_a_file(ask, file):
    """Compressed for those who accept it, the same otherwise; 304 for those who have it."""
    packed, body = ask(f"/assets/{file}", Accept_Encoding="br, gzip;q=0.5")
    plain, text = ask(f"/assets/{file}", Accept_Encoding="gzip;q=0")
    assert packed.headers["Content-Encoding"] == "gzip" and "Content-Encoding" not in plain.headers
    assert packed.headers["Vary"] == plain.headers["Vary"] == "Accept-Encoding"
    assert gzip.decompress(body) == text and (not (ROOT / file).exists() or text == (ROOT / file).read_bytes())
    etag = plain.headers["ETag"]
    known, nothing = ask(f"/assets/{file}", If_None_Match=f'"other", {etag}')
    assert known.status == 304 and nothing == b"" and known.headers["ETag"] == etag
    assert ask(f"/assets/{file}", If_None_Match='"other"')[0].status == 200


def test_weight(ask):
    """All of them together, as they are sent."""
    page = sum(len(ask(f"/assets/{p.name}", Accept_Encoding="gzip")[1]) for p in ROOT.iterdir())
    assert page + len(ask("/assets/dygraph.js", Accept_Encoding="gzip")[1]) < 250_000


@pytest.mark.parametrize("path", ["/assets/", "/assets/nothing.js", "/assets/../hunter.yaml", "/assets/page.js/", "/change/", "/change/x", "/nothing"])
def test_no_such_file(ask, path):
    answer, body = ask(path)
    assert answer.status == 404 and json.loads(body)["error"]


def test_what_the_page_loads_is_there(ask):
    """The scripts that the page names, and those that they name."""
    seen, names = set(), re.findall(r"/assets/([\w.]+)", ask("/")[1].decode())
    while names:
        file = names.pop()
        if file not in seen:
            seen.add(file)
            answer, text = ask(f"/assets/{file}")
            assert answer.status == 200, file
            if file != "dygraph.js":
                names += re.findall(r"from '\./([\w.]+)'", text.decode())
    assert {"page.js", "dom.js", "api.js", "page.css"} <= seen


def test_who_asks(ask):
    found = json.loads(ask("/api/v1/me")[1])
    assert (found["person"], found["role"], found["unproven"]) == ("local", "admin", True) and found["version"]


def test_other_sites_get_nothing(ask):
    answer, body = ask("/", Sec_Fetch_Site="cross-site", Sec_Fetch_Mode="cors", Origin="https://elsewhere.example")
    assert answer.status == 403 and b"<html" not in body
    assert ask("/", Sec_Fetch_Site="cross-site", Sec_Fetch_Mode="navigate")[0].status == 200
