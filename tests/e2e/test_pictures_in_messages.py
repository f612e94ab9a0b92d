"""PNG pictures in messages: in the thread in Slack, inline in mail. One that fails neither costs nor delays its message."""
import email
import email.policy
import struct
import zlib

import pytest
from agent import CANARY, bot, config, csv_test, write_csv
from fake_slack import FakeSlack
from scripted_smtp import ScriptedSmtp


@pytest.fixture
def slack():
    with FakeSlack(CANARY) as slack:
        slack.scopes.add("files:write")
        yield slack
        assert slack.violations == []


def with_png(slack):
    return bot(slack).replace("{", "{picture: png, ", 1)


def changed(tmp_path, section, points=60):
    write_csv(tmp_path / "a.csv", [(30, 1.2)], points=points)
    return config(tmp_path, csv_test(tmp_path / "a.csv"), section)


def pixels(png):
    """Size and rows of RGB of a PNG, checked as a reader would."""
    assert png[:8] == b"\x89PNG\r\n\x1a\n"
    at, data = 8, b""
    while at < len(png):
        (length,), kind = struct.unpack(">I", png[at:at + 4]), png[at + 4:at + 8]
        body = png[at + 8:at + 8 + length]
        assert struct.unpack(">I", png[at + 8 + length:at + 12 + length])[0] == zlib.crc32(kind + body)
        if kind == b"IHDR":
            width, height, depth, color = struct.unpack(">IIBB", body[:10])
        data += body if kind == b"IDAT" else b""
        at += 12 + length
    assert depth == 8 and color in (2, 6)
    raw, size, rows, before = zlib.decompress(data), 3 if color == 2 else 4, [], bytearray(width * (3 if color == 2 else 4))
    for y in range(height):
        start = y * (width * size + 1)
        kind, row = raw[start], bytearray(raw[start + 1:start + 1 + width * size])
        for i in range(len(row)):
            a, b, c = row[i - size] if i >= size else 0, before[i], before[i - size] if i >= size else 0
            p = a + b - c
            row[i] = (row[i] + [0, a, b, (a + b) // 2, min((abs(p - a), 0, a), (abs(p - b), 1, b), (abs(p - c), 2, c))[2]][kind]) & 255
        rows.append([tuple(row[x * size:x * size + 3]) for x in range(width)])
        before = row
    return width, height, rows


def check_picture(png):
    """It shows something: a light ground, and lines in colours on it."""
    width, height, rows = pixels(png)
    assert (width, height) == (800, 320)
    colours = {}
    for row in rows:
        for pixel in row:
            colours[pixel] = colours.get(pixel, 0) + 1
    ground = max(colours, key=colours.get)
    assert min(ground) > 200 and colours[ground] > width * height / 2
    assert sum(n for c, n in colours.items() if max(c) - min(c) > 60) > 100


def test_png_in_the_thread(hunter, tmp_path, slack):
    done = hunter("run", "--once", "--config", changed(tmp_path, with_png(slack)))
    assert done.code == 0 and "level=warn" not in done.err, done.err
    assert len(slack.posts) == 1 and not [b for b in slack.posts[0]["blocks"] if b["type"] == "data_visualization"]
    (upload,) = slack.uploads
    assert (upload["thread_ts"], upload["channel_id"]) == (slack.stamps[0], "C0000")
    assert "db.read p99" in upload["title"] and "db.read p99" in upload["alt_txt"]
    check_picture(upload["png"])


def test_without_the_scope(hunter, tmp_path, slack):
    slack.scopes.discard("files:write")
    done = hunter("run", "--once", "--config", changed(tmp_path, with_png(slack)))
    assert done.code == 0 and "messages have no picture (missing_scope: files:write)" in done.err, done.err
    assert len(slack.posts) == 1 and slack.uploads == []


@pytest.mark.parametrize("stage", ["ask", "send", "complete"])
def test_an_upload_that_hangs(hunter, tmp_path, slack, stage):
    """The message is there at once; the picture is given up."""
    slack.upload_hangs = stage
    done = hunter("run", "--once", "--config", changed(tmp_path, with_png(slack)))
    assert done.code == 0 and "messages have no picture" in done.err, done.err
    assert slack.refused == [f"hang {stage}"] and len(slack.posts) == 1 and slack.uploads == []
    done = hunter("run", "--once", "--config", tmp_path / "hunter.yaml")
    assert done.code == 0 and len(slack.posts) == 1, done.err


def test_a_webhook_cannot_upload(hunter, tmp_path, slack):
    path = changed(tmp_path, f'slack: {{webhook_url: "{slack.webhook}", picture: png}}')
    done = hunter("validate", "--config", path)
    assert done.code == 2 and "picture: png needs a bot_token" in done.out + done.err


# Mail.


def receiver(url, **more):
    lines = "".join(f"  {key}: {value}\n" for key, value in more.items())
    return f"email:\n  url: {url}\n  from: Perf <perf@example.com>\n  to: [ann@example.com]\n{lines}"


def mail_of(server):
    return email.message_from_bytes(server.mails[0].data, policy=email.policy.default)


def test_inline_in_mail(hunter, tmp_path):
    with ScriptedSmtp() as server:
        assert hunter("run", "--once", "--config", changed(tmp_path, receiver(server.url))).code == 0
        mail = mail_of(server)
    assert mail.get_content_type() == "multipart/alternative"
    text, related = mail.iter_parts()
    assert (text.get_content_type(), related.get_content_type()) == ("text/plain", "multipart/related")
    html, picture = related.iter_parts()
    assert (html.get_content_type(), picture.get_content_type()) == ("text/html", "image/png")
    assert picture.get_content_disposition() == "inline"
    id = picture["Content-ID"].strip("<>")
    assert f'<img src="cid:{id}" width="800" height="320" alt="' in html.get_content() and "db.read p99" in html.get_content()
    check_picture(picture.get_content())


def test_no_picture_in_mail(hunter, tmp_path):
    with ScriptedSmtp() as server:
        assert hunter("run", "--once", "--config", changed(tmp_path, receiver(server.url, picture="none"))).code == 0
        assert [part.get_content_type() for part in mail_of(server).iter_parts()] == ["text/plain", "text/html"]


@pytest.fixture
def no_cairo(tmp_path, monkeypatch):
    """The library cannot be loaded: what is found under its name is none."""
    folder = tmp_path / "broken"
    folder.mkdir()
    (folder / "libcairo.so.2").write_text("no library\n")
    monkeypatch.setenv("LD_LIBRARY_PATH", str(folder))


def test_mail_without_cairo(hunter, tmp_path, no_cairo):
    with ScriptedSmtp() as server:
        done = hunter("run", "--once", "--config", changed(tmp_path, receiver(server.url)))
        assert done.code == 0 and "mails have no pictures" in done.err and "cairo" in done.err, done.err
        assert [part.get_content_type() for part in mail_of(server).iter_parts()] == ["text/plain", "text/html"]


def test_slack_without_cairo(hunter, tmp_path, slack, no_cairo):
    done = hunter("run", "--once", "--config", changed(tmp_path, with_png(slack)))
    assert done.code == 0 and "messages have no picture" in done.err and "cairo" in done.err, done.err
    assert len(slack.posts) == 1 and slack.uploads == []
