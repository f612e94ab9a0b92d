"""`hunter-c report`: a page that needs nothing else, and Markdown with pictures beside it; names are text in both."""
import html
import html.parser
import json
import re
import shutil
import stat
import subprocess
import xml.etree.ElementTree

import pytest
from agent import config, csv_test, write_csv
from waiting import LONGEST

HOSTILE = ["</script><script>alert(1)</script>", "<img src=x onerror=alert(1)>", "\"'><svg onload=alert(1)>", "abc\u202egpj.exe", "a|b`c``d\\|e",
           "x" * 1000, "[link](javascript:alert(1))", "@everyone #1 &amp; <!-- -->"]
EMPTY = {"br", "link", "meta", "img", "hr"}


class Page(html.parser.HTMLParser):
    """What a page consists of; its elements are closed in order."""

    def __init__(self, text):
        super().__init__()
        self.open, self.elements, self.texts, self.scripts = [], [], [], []
        self.feed(text)
        self.close()
        assert self.open == [], self.open

    def handle_starttag(self, tag, attributes):
        self.elements.append((tag, dict(attributes)))
        if tag not in EMPTY:
            self.open.append(tag)

    def handle_startendtag(self, tag, attributes):
        self.elements.append((tag, dict(attributes)))

    def handle_endtag(self, tag):
        assert self.open.pop() == tag, tag

    def handle_data(self, data):
        if self.open and self.open[-1] == "script":
            self.scripts.append((self.elements[-1][1].get("type"), data))
        elif "style" not in self.open:
            self.texts.append(data)

    @property
    def text(self):
        return " ".join(" ".join(self.texts).split())

    def plots(self):
        return [json.loads(data) for kind, data in self.scripts if kind == "application/json"]

    def rows(self):
        return sum(tag == "tr" for tag, _ in self.elements) - 1


def many(tmp_path, count, agent=""):
    """Tests of which each third has become worse, each fourth of these better again."""
    tests = ""
    for i in range(count):
        steps = [(30, 1.2 + i / 100)] if i % 3 == 0 else []
        write_csv(tmp_path / f"t{i}.csv", steps)
        tests += csv_test(tmp_path / f"t{i}.csv", f"svc.t{i:02d}", "    commit_url: https://git.example/c/{commit}\n")
    return config(tmp_path, tests, agent=agent)


def test_twenty_tests(hunter, tmp_path):
    path = many(tmp_path, 20)
    done = hunter("report", "--config", path, "--html", "r.html", "--markdown", "out.md")
    assert (done.code, done.out, done.err) == (0, "", "")
    page = Page((tmp_path / "r.html").read_text())
    assert "7 changes in 20 tests: 7 worse, 0 better" in page.text and "a detection on these points" in page.text
    assert page.rows() == 7 and len(page.plots()) == 7
    # The worst first; each row leads to its plot, and each commit to its page.
    assert re.findall(r"svc\.t\d\d", page.text)[:7] == [f"svc.t{i:02d}" for i in (18, 15, 12, 9, 6, 3, 0)]
    links = [attributes["href"] for tag, attributes in page.elements if tag == "a"]
    ids = {attributes.get("id") for _, attributes in page.elements}
    assert all(link == "https://git.example/c/c0030" or link[1:] in ids for link in links), links
    assert len([link for link in links if link.startswith("#plot-")]) == 7
    first = page.plots()[0]
    assert first["title"] == "svc.t18 p99" and first["lines"][0]["total"] == 60
    assert [(one["source"], one["verdict"]) for one in first["lines"][0]["changes"]] == [("known", 1)]
    # Nothing is fetched: the policy allows none of it, and there is nothing to fetch.
    policy = next(attributes["content"] for tag, attributes in page.elements if attributes.get("http-equiv") == "Content-Security-Policy")
    assert policy.startswith("default-src 'none'; script-src 'sha256-") and "unsafe" not in policy and "http" not in policy
    assert not [tag for tag, attributes in page.elements if {"src", "srcset", "style", "data"} & set(attributes)]
    assert not [tag for tag, _ in page.elements if tag in ("link", "iframe", "object", "embed", "base", "form")]
    # Markdown: a row and a picture for each.
    text = (tmp_path / "out.md").read_text()
    assert text.count("| ▲ +") == 7 and len(re.findall(r"worse \| \[`svc.t\d\d` `p99`\]\(out-\d.svg\) \|", text)) == 7 and "[`c0030`](https://git.example/c/c0030)" in text
    for i in range(1, 8):
        assert f"![plot {i}](out-{i}.svg)" in text
        assert xml.etree.ElementTree.parse(tmp_path / f"out-{i}.svg").getroot().tag.endswith("svg")
    assert not (tmp_path / "out-8.svg").exists()


def test_changes_since_and_of_some_tests(hunter, tmp_path):
    write_csv(tmp_path / "a.csv", [(100, 1.2), (250, 1.3)], points=300)
    write_csv(tmp_path / "b.csv", [(250, 0.7)], points=300)
    path = config(tmp_path, csv_test(tmp_path / "a.csv", "a") + csv_test(tmp_path / "b.csv", "b"))
    assert Page(hunter("report", "--config", path, "--html", "-").out).rows() == 3
    done = hunter("report", "a", "--config", path, "--html", "-", "--since", "2024-03-09", "--title", "Release 7")
    page = Page(done.out)
    assert done.code == 0 and page.rows() == 1 and "since 2024-03-09 00:00 UTC" in page.text and "Release 7" in page.text
    line = page.plots()[0]["lines"][0]
    # Points from before the date show the old level; not all of them.
    assert line["total"] < 300 and line["times"][0] < line["changes"][-1]["time"] - 30 * 3600000
    before = Page(hunter("report", "--config", path, "--html", "-", "--until", "2024-03-09").out)
    assert before.rows() == 1 and max(before.plots()[0]["lines"][0]["times"]) <= 1709942400000
    nothing = Page(hunter("report", "--config", path, "--html", "-", "--since", "2024-03-12").out)
    assert "No changes in 2 tests" in nothing.text and nothing.plots() == []


def test_what_people_said(hunter, tmp_path):
    path = many(tmp_path, 4)
    assert hunter("run", "--once", "--config", path).code == 0
    known = json.loads(hunter("changes", "--config", path, "--output", "json").out)["changes"]
    chosen = next(one for one in known if one["test"] == "svc.t00")
    assert hunter("triage", str(chosen["id"]), "expected", "--note", "bigger cache", "--config", path).code == 0
    page = Page(hunter("report", "--config", path, "--html", "-").out)
    assert "what the agent knows" in page.text and page.rows() == 2
    assert sorted(plot["lines"][0]["changes"][0]["triage"] for plot in page.plots()) == ["expected", "open"]
    text = hunter("report", "--config", path, "--markdown", "-").out
    assert "| State |" in text and re.search(r"\| expected `.*` \|$", text, re.M) and "svg" not in text
    missing = hunter("report", "--config", path, "--html", "r.html", "--state-file", "no.db")
    assert missing.code == 4 and "no.db" in missing.err and not (tmp_path / "r.html").exists()


def test_hostile_names_are_text(hunter, tmp_path):
    tests = ""
    for i, name in enumerate(HOSTILE):
        write_csv(tmp_path / f"{i}.csv", [(30, 1.2)])
        rows = (tmp_path / f"{i}.csv").read_text().replace(",c00", f",<script>{i}</script>c00")
        (tmp_path / f"{i}.csv").write_text(rows)
        tests += csv_test(tmp_path / f"{i}.csv", json.dumps(name)).replace("unit: ms", "unit: \"<b>|\"")
    path = config(tmp_path, tests)
    done = hunter("report", "--config", path, "--html", "r.html", "--markdown", "wiki (1).md", "--title", "<script>alert(1)</script> *x*")
    assert done.code == 0, done.err
    written = (tmp_path / "r.html").read_text()
    page = Page(written)
    assert page.rows() == len(HOSTILE) == len(page.plots())
    assert [kind for kind, _ in page.scripts if kind != "application/json"] == [None, "module"]
    assert not [tag for tag, _ in page.elements if tag in ("img", "b", "iframe")] and "\u202e" not in written
    assert not [a for _, attributes in page.elements for a in attributes if a.startswith("on")]
    for name in HOSTILE:
        assert any(plot["lines"][0]["test"] == name for plot in page.plots()), name[:40]
    text = (tmp_path / "wiki (1).md").read_text()
    assert "x" * 300 not in text and "\u202e" not in text
    rows = [line for line in text.splitlines() if line.startswith("| ▲")]
    assert len(rows) == len(HOSTILE)
    for row in rows:  # A bar ends a cell unless a single backslash is before it.
        assert len(re.findall(r"(?<!\\)\|", row)) == 6, row
    outside = re.sub(r"(`+)(?!`).*?(?<!`)\1(?!`)", "", text)
    assert "<" not in outside and "@" not in outside and "javascript" not in outside
    assert "![plot 1](wiki%20%281%29-1.svg)" in text
    for file in tmp_path.glob("wiki*.svg"):
        xml.etree.ElementTree.parse(file)


def test_a_plot_of_many_points_is_reduced_and_many_plots_are_left_out(hunter, tmp_path):
    columns = [f"m{i:02d}" for i in range(60)]
    with open(tmp_path / "wide.csv", "w") as out:
        out.write("time," + ",".join(columns) + "\n")
        for i in range(3000):
            value = 100 + (i * 7919 % 13) / 10 + 30 * (i >= 1500) + 500 * (i == 777)
            out.write(f"{1709251200 + 60 * i}," + ",".join(f"{value + c:.2f}" for c in range(60)) + "\n")
    metrics = "".join(f"      {name}: {{direction: -1}}\n" for name in columns)
    path = config(tmp_path, f"  wide:\n    type: csv\n    file: {tmp_path}/wide.csv\n    metrics:\n{metrics}")
    page = Page(hunter("report", "--config", path, "--html", "-").out)
    assert page.rows() == 60 and len(page.plots()) == 50
    assert "The plots of 10 less important changes were left out." in page.text
    line = page.plots()[0]["lines"][0]
    assert line["total"] == 3000 and len(line["times"]) <= 1601 and max(line["values"]) > 600


def test_mistakes(hunter, tmp_path):
    path = many(tmp_path, 3)
    for arguments, what in [
            ([], "report needs --html FILE, --markdown FILE, or both"), (["--html", "no/such/folder.html"], "--html: no/such/folder.html"),
            (["--html", str(tmp_path)], "Is a directory"), (["--html", "-", "--markdown", "-"], "both would be written"),
            (["--html", "a.html", "--since", "gestern"], "--since"), (["nobody", "--html", "a.html"], "nobody")]:
        done = hunter("report", "--config", path, *arguments)
        assert done.code == 2 and what in done.err, (arguments, done)
    assert not (tmp_path / "a.html").exists()
    full = hunter("report", "--config", path, "--html", "/dev/full")
    assert full.code == 3 and "No space left" in full.err
    # A test that cannot be read is named, and the others are there.
    (tmp_path / "t1.csv").unlink()
    done = hunter("report", "--config", path, "--html", "a.html", "--markdown", "a.md")
    assert done.code == 3 and "svc.t01" in done.err
    assert "1 of 3 tests could not be read: svc.t01" in Page((tmp_path / "a.html").read_text()).text
    assert "**1 of 3 tests could not be read:** `svc.t01`" in (tmp_path / "a.md").read_text()
    # Replaced as a whole, with the permissions that it had.
    (tmp_path / "a.html").chmod(0o640)
    assert hunter("report", "--config", path, "--html", "a.html").code == 3
    assert stat.S_IMODE((tmp_path / "a.html").stat().st_mode) == 0o640 and not list(tmp_path.glob("*.new-*"))


def test_a_file_is_whole_or_as_it_was(hunter, tmp_path):
    path = many(tmp_path, 3)
    folder, link = tmp_path / "pages", tmp_path / "link.html"
    folder.mkdir()
    page = folder / "r.html"
    page.write_text("as it was")
    page.chmod(0o604)
    wrong = tmp_path / "wrong.yaml"
    wrong.write_text("tests: {a: {type: nothing}}\n")
    assert hunter("report", "--config", wrong, "--html", page).code != 0
    assert page.read_text() == "as it was" and [file.name for file in folder.iterdir()] == ["r.html"]
    link.symlink_to(page)
    assert hunter("report", "--config", path, "--html", link).code == 0
    assert link.is_symlink() and stat.S_IMODE(page.stat().st_mode) == 0o604 and Page(page.read_text()).rows() == 1
    assert [file.name for file in folder.iterdir()] == ["r.html"]
    link.unlink()
    link.symlink_to(folder / "later.html")  # which is not there yet
    assert hunter("report", "--config", path, "--html", link).code == 0
    assert link.is_symlink() and Page((folder / "later.html").read_text()).rows() == 1
    assert hunter("report", "--config", path, "--html", folder / f"{'a' * 250}.html").code == 0
    done = hunter("report", "--config", path, "--html", folder)
    assert done.code != 0 and "Is a directory" in done.err
    done = hunter("report", "--config", path, "--html", "/dev/stderr")
    assert done.code == 0 and "</html>" in done.err


def test_without_tests(hunter, tmp_path):
    path = config(tmp_path, "")
    done = hunter("report", "--config", path, "--html", "-")
    assert done.code in (0, 2) and (done.code == 2 or "No changes in 0 tests" in Page(done.out).text), done


@pytest.mark.skipif(not shutil.which("chromium"), reason="no chromium")
def test_a_browser_draws_it(hunter, tmp_path):
    """The scripts and the style are those that the policy names."""
    path = many(tmp_path, 4)
    assert hunter("report", "--config", path, "--html", "r.html").code == 0
    for budget in (5000, 20000, 60000, 120000):  # of its own time; a busy machine draws fewer frames in it
        done = subprocess.run(["chromium", "--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={tmp_path}/profile", "--enable-logging=stderr",
                               f"--virtual-time-budget={budget}", "--dump-dom", f"file://{tmp_path}/r.html"], capture_output=True, text=True, timeout=LONGEST)
        assert "CONSOLE" not in done.stderr, done.stderr
        if done.stdout.count("<canvas") >= 4:
            break
    assert done.stdout.count('class="plot zooms"') == 2 and done.stdout.count("<canvas") >= 4


def test_no_commit_that_no_message_names(hunter, tmp_path):
    """Where nothing was deployed around the change, the report says so in the message's words; a range has the commit that it ends with."""
    tests = ""
    for name, until in (("same", 60), ("told", 30), ("none", 0)):
        write_csv(tmp_path / f"{name}.csv", [(30, 1.3)])
        rows = [line.split(",") for line in (tmp_path / f"{name}.csv").read_text().splitlines()]
        lines = [rows[0]] + [[row[0], "" if until == 0 else "aaaa1111" if i < until else "bbbb2222", row[2]] for i, row in enumerate(rows[1:])]
        (tmp_path / f"{name}.csv").write_text("\n".join(map(",".join, lines)) + "\n")
        tests += csv_test(tmp_path / f"{name}.csv", name)
    path = config(tmp_path, tests)
    told = hunter("run", "--once", "--config", path)
    assert told.code == 0 and "aaaa1111 .. bbbb2222" in told.out and "no deployment in between (aaaa1111 throughout)" in told.out, told
    for options in ((), ("--state-file", tmp_path / "state.db")):
        text = hunter("report", "--config", path, "--markdown", "-", *options).out
        rows = {name: next(line for line in text.splitlines() if f"`{name}`" in line) for name in ("same", "told", "none")}
        assert "no deployment in between (aaaa1111 throughout)" in html.unescape(rows["same"]) and "`aaaa1111`" not in rows["same"], rows
        assert "`bbbb2222`" in rows["told"] and "aaaa1111" not in rows["told"] and "aaaa" not in rows["none"], rows
        page = Page((hunter("report", "--config", path, "--html", "-", *options)).out)
        assert "no deployment in between (aaaa1111 throughout)" in page.text
    assert hunter("changes", "--config", path).out.count("aaaa1111") == 1


def test_no_commit_is_blamed_for_a_trend(hunter, tmp_path):
    """A trend has no first bad commit: no list, plot or page names the last one of its range, which is only the newest."""
    path = tmp_path / "drift.csv"
    write_csv(path, [])
    rows = [line.split(",") for line in path.read_text().splitlines()]
    path.write_text("\n".join([",".join(rows[0])] + [f"{row[0]},{0xaaaa0000 + i:x},{float(row[2]) + i / 2}" for i, row in enumerate(rows[1:])]) + "\n")
    conf = config(tmp_path, csv_test(path, "drift"))
    told = hunter("run", "--once", "--config", conf)
    assert told.code == 0 and "trend from" in told.out and ".. aaaa" in told.out, told
    for options in ((), ("--state-file", tmp_path / "state.db")):
        text = hunter("report", "--config", conf, "--markdown", "-", *options).out
        assert "`drift`" in text and "aaaa0" not in text, text
    drawn = hunter("plot", "drift", "--config", conf).out
    assert "worse" in drawn and "aaaa0" not in drawn, drawn
