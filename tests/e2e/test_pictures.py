"""Pictures: SVG that a parser takes, PNG whose pixels are those of the SVG, braille, and what happens without a source, Cairo or a font."""
import fcntl
import os
import pty
import re
import struct
import subprocess
import termios
import xml.etree.ElementTree
import zlib

import pytest
from agent import ask, config, csv_test, on_demand, port_of, write_csv
from test_plot import wait_for_changes
from waiting import LONGEST

LIGHT, DARK, LEVEL, WORSE, BAND = (255, 255, 255), (0x11, 0x17, 0x1D), (0x16, 0x20, 0x2A), (0xB3, 0x26, 0x1E), "#e09500"


class Png:
    """Rows of (red, green, blue); RFC 2083, 8 bits of RGB or RGBA, not interlaced, as Cairo writes it."""

    def __init__(self, data):
        assert data[:8] == b"\x89PNG\r\n\x1a\n"
        at, packed, kinds = 8, b"", []
        while at < len(data):
            length, kind = struct.unpack(">I4s", data[at:at + 8])
            body = data[at + 8:at + 8 + length]
            assert zlib.crc32(kind + body) == struct.unpack(">I", data[at + 8 + length:at + 12 + length])[0]
            kinds.append(kind)
            if kind == b"IHDR":
                self.width, self.height, depth, color, *rest = struct.unpack(">IIBBBBB", body)
                assert (depth, rest) == (8, [0, 0, 0]) and color in (2, 6)
                self.bytes = 3 if color == 2 else 4
            elif kind == b"IDAT":
                packed += body
            at += 12 + length
        assert kinds[0] == b"IHDR" and kinds[-1] == b"IEND"
        self.rows = self.unfilter(zlib.decompress(packed))

    def unfilter(self, data):
        size, step = self.width * self.bytes, self.bytes
        assert len(data) == self.height * (size + 1)
        rows, above = [], bytearray(size)
        for y in range(self.height):
            kind, row = data[y * (size + 1)], bytearray(data[y * (size + 1) + 1:(y + 1) * (size + 1)])
            for i in range(size):
                left, up, corner = row[i - step] if i >= step else 0, above[i], above[i - step] if i >= step else 0
                if kind == 4:
                    guess = left + up - corner
                    distances = abs(guess - left), abs(guess - up), abs(guess - corner)
                    near = left if distances[0] <= min(distances[1:]) else up if distances[1] <= distances[2] else corner
                else:
                    near = (0, left, up, (left + up) // 2)[kind]
                row[i] = (row[i] + near) & 255
            rows.append(row)
            above = row
        return rows

    def at(self, x, y):
        return tuple(self.rows[y][x * self.bytes:x * self.bytes + 3])

    def near(self, x, y, color):
        """Whether the colour is there, or in the next row: a line of two pixels may lie between them."""
        return any(all(abs(a - b) <= 24 for a, b in zip(self.at(x, row), color)) for row in (y - 1, y, y + 1))


def svg_of(data):
    root = xml.etree.ElementTree.fromstring(data)
    assert root.tag == "{http://www.w3.org/2000/svg}svg"
    return root


def texts(root):
    return [element.text for element in root.iter("{http://www.w3.org/2000/svg}text") if element.get("fill") != "none"]


def levels(root):
    """The ends of the horizontal lines that are two pixels wide, with their colours."""
    found = []
    for path in root.iter("{http://www.w3.org/2000/svg}path"):
        ends = re.fullmatch(r"M([\d.]+) ([\d.]+)L([\d.]+) ([\d.]+)", path.get("d"))
        if ends and path.get("stroke-width") == "2" and ends[2] == ends[4]:
            color = path.get("stroke")
            found.append((float(ends[1]), float(ends[3]), float(ends[2]), tuple(int(color[i:i + 2], 16) for i in (1, 3, 5))))
    return found


@pytest.fixture
def changed(agents, tmp_path):
    write_csv(tmp_path / "read.csv", [(30, 1.2)])
    path = on_demand(config(tmp_path, csv_test(tmp_path / "read.csv")))
    agent = agents(path)
    port = port_of(agent)
    change = wait_for_changes(port, 1)[0]
    yield port, change, tmp_path
    assert agent.end() == 0


def test_svg_of_a_change(changed):
    port, change, tmp_path = changed
    answer = ask(port, f"/change/{change['id']}.svg?theme=light")
    assert answer.status == 200 and answer.headers["Content-Type"] == "image/svg+xml", answer
    assert answer.headers["Content-Security-Policy"] == "default-src 'none'; style-src 'unsafe-inline'; sandbox"
    root = svg_of(answer.body)
    assert (root.get("width"), root.get("height")) == ("960", "400")
    assert {"db.read p99", "lower is better", "+20.1% worse", "c0030"} <= set(texts(root)), texts(root)
    assert answer.body.count(b"stroke-linecap") == 1 and answer.body.count(b"h0") == 60, "a dot for each point"
    # The same again costs nothing.
    again = ask(port, f"/change/{change['id']}.svg?theme=light", headers={"If-None-Match": answer.headers["ETag"]})
    assert (again.status, again.body) == (304, b"")
    # What people say of it is seen, and the reader's own scheme is followed.
    ask(port, f"/api/v1/changes/{change['id']}/triage", "POST", "state=expected", {"Content-Type": "application/x-www-form-urlencoded"})
    said = ask(port, f"/change/{change['id']}.svg", headers={"If-None-Match": answer.headers["ETag"]})
    assert said.status == 200 and "c0030 · expected" in texts(svg_of(said.body))
    assert b"prefers-color-scheme: dark" in said.body and b"prefers" not in answer.body
    small = ask(port, f"/change/{change['id']}.svg?small")
    root = svg_of(small.body)
    assert small.status == 200 and (root.get("width"), root.get("height"), texts(root)) == ("160", "40", [])
    assert BAND in small.body.decode() and len(small.body) < 10000
    # Another site may show it, and not read it; nor may one whose name is made to lead here.
    path = f"/change/{change['id']}.svg?small"
    assert ask(port, path, headers={"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "no-cors", "Sec-Fetch-Dest": "image"}).status == 200
    assert ask(port, path, headers={"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "no-cors", "Sec-Fetch-Dest": "empty"}).status == 403
    assert ask(port, path, headers={"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Dest": "image", "Origin": "https://elsewhere.test"}).status == 403
    assert ask(port, path, headers={"Host": "elsewhere.test", "Sec-Fetch-Dest": "image"}).status == 403
    plot = ask(port, "/plot.svg?test=db.read&metric=p99&scale=log&width=500&height=200")
    assert plot.status == 200 and svg_of(plot.body).get("width") == "500" and b"logarithmic" in plot.body
    # The source is gone: the points that the state keeps are shown.
    (tmp_path / "read.csv").unlink()
    for query in ("?small", "", "?since=2001-01-01&cleaned=true"):
        kept = ask(port, f"/change/{change['id']}.svg{query}")
        assert kept.status == 200 and svg_of(kept.body) is not None, (query, kept)
    for path, status, words in (("/change/99.svg", 404, "there is no change 99"), ("/change/99.svg?small", 404, "there is no change 99"),
                                ("/change/1.svg?width=15", 400, "width: a number from 16 to 2400 is needed"),
                                ("/change/1.svg?height=9999", 400, "height: a number from 16 to 1600 is needed"),
                                ("/change/1.svg?theme=blue", 400, 'theme: "blue" is none of light, dark or system'),
                                ("/change/1.svg?small=perhaps", 400, "small: true or false is needed"),
                                ("/change/1.svg?metric=x", 400, "metric"), ("/plot.svg?test=x", 404, 'there is no test "x"'),
                                ("/plot.svg", 400, 'one of the parameters "test" and "change" is needed'),
                                ("/change/1.gif", 404, "not found")):
        answer = ask(port, path)
        assert answer.status == status and words in answer.json["error"], (path, answer)


def test_png_has_the_pixels_of_the_svg(hunter, tmp_path):
    write_csv(tmp_path / "read.csv", [(30, 1.2)])
    path = config(tmp_path, csv_test(tmp_path / "read.csv"))
    for name, theme, ground, level in (("light", "light", LIGHT, LEVEL), ("dark", "dark", DARK, (0xE8, 0xED, 0xF2))):
        for end in ("svg", "png"):
            done = hunter("plot", "db.read", "p99", "--config", path, "-o", f"{name}.{end}", "--theme", theme, "--width", 400, "--height", 300)
            assert (done.code, done.out) == (0, ""), done
        root = svg_of((tmp_path / f"{name}.svg").read_bytes())
        png = Png((tmp_path / f"{name}.png").read_bytes())
        assert (png.width, png.height) == (400, 300)
        assert png.at(0, 0) == png.at(399, 299) == ground
        (left, right, y, color), (left2, right2, y2, color2) = levels(root)
        assert color == level and y2 < y and abs(left2 - right) < 1
        if theme == "light":
            assert color2 == WORSE
        # Points may cover a level here and there, but not most of it.
        for x0, x1, row, wanted in ((left, right, y, color), (left2, right2, y2, color2)):
            columns = range(round(x0) + 2, round(x1) - 2)
            assert sum(png.near(x, round(row), wanted) for x in columns) > 0.6 * len(columns)
        assert not any(png.near(x, round(y), color) for x in range(round(right) + 60, 390)), "the old level goes on"


def test_without_a_font_or_cairo(hunter, tmp_path):
    write_csv(tmp_path / "read.csv", [(30, 1.2)])
    path = config(tmp_path, csv_test(tmp_path / "read.csv"))
    (tmp_path / "fonts.conf").write_text('<?xml version="1.0"?><!DOCTYPE fontconfig SYSTEM "fonts.dtd"><fontconfig></fontconfig>')
    done = hunter("plot", "db.read", "p99", "--config", path, "-o", "a.png", env={"FONTCONFIG_FILE": str(tmp_path / "fonts.conf")})
    assert done.code == 3 and "no font installed (Debian: apt install fonts-dejavu-core)" in done.err, done
    (tmp_path / "broken").mkdir()
    (tmp_path / "broken/libcairo.so.2").write_text("no library")
    done = hunter("plot", "db.read", "p99", "--config", path, "-o", "a.png", env={"LD_LIBRARY_PATH": str(tmp_path / "broken")})
    assert done.code == 3 and "Cairo (Debian: apt install libcairo2)" in done.err, done
    assert not (tmp_path / "a.png").exists()
    assert hunter("plot", "db.read", "p99", "--config", path, "-o", "a.svg", env={"LD_LIBRARY_PATH": str(tmp_path / "broken")}).code == 0


def test_nothing_else_loads_cairo(program, tmp_path):
    write_csv(tmp_path / "read.csv", [(30, 1.2)])
    path = config(tmp_path, csv_test(tmp_path / "read.csv"))
    for arguments, loaded in ((["--help"], False), (["detect"], False), (["plot", "db.read", "p99", "-o", "a.svg"], False),
                              (["plot", "db.read", "p99", "-o", "a.png"], True)):
        named = ["--config", str(path)] if "plot" in arguments else []
        done = subprocess.run([program, *arguments, *named], cwd=tmp_path, input=b"1\n2\n", capture_output=True,
                              env=os.environ | {"LD_DEBUG": "libs"}, timeout=LONGEST)
        assert done.returncode == 0, done
        assert (b"libcairo" in done.stderr) == loaded, arguments


def test_on_a_terminal(program, hunter, tmp_path):
    write_csv(tmp_path / "read.csv", [(30, 1.2)])
    path = config(tmp_path, csv_test(tmp_path / "read.csv"))
    plain = hunter("plot", "db.read", "p99", "--config", path)
    assert plain.code == 0 and "▲ +20.1% worse  2024-03-02 06:00  99.8 ms → 120 ms  c0030" in plain.out, plain
    assert "\x1b" not in plain.out and max(map(len, plain.out.splitlines())) < 80
    drawn = [line for line in plain.out.splitlines() if re.search("[\u2801-\u28ff]", line)]
    assert len(drawn) >= 5
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 50, 120, 0, 0))
    child = subprocess.Popen([program, "plot", "db.read", "p99", "--config", path], stdout=theirs, stderr=subprocess.PIPE,
                             env={k: v for k, v in os.environ.items() if k != "NO_COLOR"})
    os.close(theirs)
    shown = b""
    while True:
        try:
            more = os.read(ours, 65536)
        except OSError:  # the other side is closed
            break
        if not more:
            break
        shown += more
    os.close(ours)
    assert child.wait(LONGEST) == 0, child.stderr.read()
    child.stderr.close()
    lines = re.sub(r"\x1b\[\d*m", "", shown.decode()).splitlines()
    assert b"\x1b[31m" in shown and 100 < max(map(len, lines)) < 120
    # Below the table of analyze, for each metric.
    table = hunter("analyze", "db.read", "--plot", "--config", path)
    assert table.code == 0 and plain.out.splitlines()[2:10] == table.out[table.out.index("db.read p99"):].splitlines()[2:10]
    assert "⣀" not in hunter("analyze", "db.read", "--config", path).out


def test_what_the_state_knows_is_drawn(changed, hunter):
    port, change, tmp_path = changed
    ask(port, f"/api/v1/changes/{change['id']}/triage", "POST", "state=expected", {"Content-Type": "application/x-www-form-urlencoded"})
    config_path = tmp_path / "hunter.yaml"
    assert "c0030  expected" in hunter("plot", "db.read", "p99", "--config", config_path).out
    other = hunter("plot", "db.read", "p99", "--config", config_path, "--state-file", tmp_path / "none.db")
    assert other.code == 4, other
    later = hunter("plot", "db.read", "--config", config_path, "--since", "2024-03-03", "-o", "later.svg")
    assert later.code == 0 and "worse" not in (tmp_path / "later.svg").read_text()


def test_hostile_names(agents, tmp_path, hunter):
    name = '<script>alert(1)</script>&"\'\u202e' + "x" * 300
    write_csv(tmp_path / "read.csv", [(30, 1.2)])
    rows = (tmp_path / "read.csv").read_text().replace("c0030", '"<b onload=x>\x07"')
    (tmp_path / "read.csv").write_text(rows)
    test = csv_test(tmp_path / "read.csv").replace("  db.read:", "  ? " + repr(name).replace("\\'", "''").replace("\\u202e", "\u202e") + "\n  :")
    path = on_demand(config(tmp_path, test))
    checked = hunter("validate", "--config", path)
    if checked.code:
        pytest.fail(checked.err)
    agent = agents(path)
    port = port_of(agent)
    change = wait_for_changes(port, 1)[0]
    for picture in (f"/change/{change['id']}.svg", f"/change/{change['id']}.svg?small", f"/change/{change['id']}.svg?width=300&height=200"):
        answer = ask(port, picture)
        assert answer.status == 200 and b"<script" not in answer.body and b"<b" not in answer.body and "\u202e".encode() not in answer.body
        svg_of(answer.body)
    answer = ask(port, f"/change/{change['id']}.png")
    assert answer.status == 200 and answer.headers["Content-Type"] == "image/png" and Png(answer.body).width == 960
    assert agent.end() == 0


@pytest.mark.parametrize("arguments, words", [
    (["plot"], "plot takes a test and a metric"),
    (["plot", "a", "b", "c"], "plot takes a test and a metric"),
    (["plot", "db.read", "p99", "-o", "x.gif"], "expected a name ending in .svg or .png"),
    (["plot", "db.reed", "p99"], "db.read"),
    (["plot", "db.read", "p98"], 'there is no series "p98"'),
    (["plot", "db.read", "p99", "-o", "none/x.svg"], "none/x.svg: cannot write the file: No such file or directory"),
    (["plot", "db.read", "p99", "--since", "soon"], "soon"),
])
def test_mistakes(hunter, tmp_path, arguments, words):
    write_csv(tmp_path / "read.csv", [(30, 1.2)])
    path = config(tmp_path, csv_test(tmp_path / "read.csv"))
    done = hunter(*arguments, "--config", path)
    assert done.code == 2 and words in done.err, done
