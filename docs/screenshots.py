#!/usr/bin/env python3
"""Makes docs/inbox.png and docs/change.png, the pictures of the page in the README, from the shipped example.

    docs/screenshots.py [BUILD-FOLDER]        # build/release, with what packaging/test.sh puts into its folder browser/

The agent runs on the morning after the example's last build (tests/e2e/clock_shim.c sets its clock), somebody triages a few
changes, and Chromium takes the pictures. They are reduced to 256 colours.
"""
import collections
import json
import os
import pathlib
import re
import struct
import subprocess
import sys
import tempfile
import time
import urllib.parse
import urllib.request
import zlib

TOP = pathlib.Path(__file__).resolve().parents[1]
NOW = 1793865600  # 2026-11-05 08:00 UTC
sys.path.insert(0, str(TOP / "tests/e2e/browser"))
from chromium import Chromium, missing  # noqa: E402


def read_png(data):
    """Width, height, and the pixels as rows of 3-byte colours, of a picture with 8 bits a colour."""
    width, height, depth, kind = struct.unpack(">IIBB", data[16:26])
    size = {2: 3, 6: 4}[kind]
    packed, at = b"", 8
    while at < len(data):
        length = struct.unpack(">I", data[at:at + 4])[0]
        packed += data[at + 8:at + 8 + length] if data[at + 4:at + 8] == b"IDAT" else b""
        at += 12 + length
    raw, stride = zlib.decompress(packed), width * size
    above, rows = bytearray(stride), []
    for y in range(height):
        start = y * (stride + 1)
        kind, row = raw[start], bytearray(raw[start + 1:start + 1 + stride])
        for i in range(stride if kind else 0):
            left, up, corner = (row[i - size], above[i], above[i - size]) if i >= size else (0, above[i], 0)
            if kind == 4:
                guess = left + up - corner
                near = min((abs(guess - left), 0, left), (abs(guess - up), 1, up), (abs(guess - corner), 2, corner))[2]
            else:
                near = (left, up, (left + up) // 2)[kind - 1]
            row[i] = (row[i] + near) & 255
        rows.append([bytes(row[i:i + 3]) for i in range(0, stride, size)])
        above = row
    assert depth == 8
    return width, height, rows


def write_png(path, width, height, rows):
    """With the 256 colours that are seen most, and each other one as the nearest of them."""
    seen = collections.Counter(color for row in rows for color in row)
    palette = [color for color, _ in seen.most_common(256)]
    index = {color: i for i, color in enumerate(palette)}
    for color in seen:
        if color not in index:
            index[color] = min(range(len(palette)), key=lambda i: sum((a - b) ** 2 for a, b in zip(palette[i], color)))

    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    pixels = b"".join(b"\0" + bytes(index[color] for color in row) for row in rows)
    path.write_bytes(b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 3, 0, 0, 0)) +
                     chunk(b"PLTE", b"".join(palette)) + chunk(b"IDAT", zlib.compress(pixels, 9)) + chunk(b"IEND", b""))


def start(build, folder):
    """The agent, and its address once it has told all."""
    subprocess.run(["cc", "-shared", "-fPIC", "-O1", TOP / "tests/e2e/clock_shim.c", "-o", folder / "shim.so"], check=True)
    (folder / "clock").write_bytes(struct.pack("q", round((NOW - time.time()) * 1000)))
    agent = subprocess.Popen([build / "hunter-c", "run", "--config", "conf/example.yaml"], cwd=TOP, text=True, stdout=subprocess.DEVNULL,
                             stderr=subprocess.PIPE, env=os.environ | {"EXAMPLE_STATE": str(folder / "state.db"), "EXAMPLE_LISTEN": "127.0.0.1:0",
                                                                      "LD_PRELOAD": str(folder / "shim.so"), "TEST_CLOCK": str(folder / "clock")})
    for line in agent.stderr:
        if "msg=started" in line:
            port = re.search(r"port=(\d+)", line)[1]
        if "msg=sent" in line:
            return agent, f"http://127.0.0.1:{port}"
    raise SystemExit("the agent has sent nothing")


def ask(url, **form):
    with urllib.request.urlopen(url, urllib.parse.urlencode(form).encode() if form else None) as answer:
        return json.load(answer)


def main():
    build = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else TOP / "build/release").resolve()
    if missing(build):
        raise SystemExit(missing(build))
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        agent, url = start(build, folder)
        browser = Chromium(build, folder)
        try:
            ask(f"{url}/api/v1/triage", test="demo.write.batch-10", state="expected", owner="ann", note="the checksum covers the headers only")
            changes = ask(f"{url}/api/v1/changes?limit=1000")["changes"]
            shown = next(c for c in changes if (c["test"], c["metric"], c["time"][:10]) == ("demo.read.inmem", "p99", "2026-10-02"))
            ask(f"{url}/api/v1/changes/{shown['id']}/triage", state="acknowledged", owner="ben", note="reproduced; bisecting the scan of long records")
            problems = browser.play("pictures.readme", url, {"id": shown["id"], "now": NOW * 1000 + 60000})
            if problems:
                raise SystemExit("\n".join(problems))
        finally:
            browser.end()
            agent.terminate()
            agent.wait()
        for picture in ("inbox", "change"):
            path = TOP / f"docs/{picture}.png"
            write_png(path, *read_png((folder / f"{picture}.png").read_bytes()))
            print(f"{path}: {path.stat().st_size / 1000:.0f} kB")


if __name__ == "__main__":
    main()
