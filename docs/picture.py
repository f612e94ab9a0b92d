#!/usr/bin/env python3
"""Makes docs/picture.svg, the picture in the README: a terminal in which hunter-c runs on the shipped example.

Nothing in it is drawn by hand. The program (build/release/hunter-c, or $HUNTER_C) runs on a pseudo terminal, so that it
writes its colours, and what it writes is set as text. `docs/picture.py --check` exits with 1 if the picture is stale.
"""
import html
import os
import pathlib
import pty
import re
import subprocess
import sys
import tempfile

TOP = pathlib.Path(__file__).resolve().parents[1]
PROGRAM = os.path.abspath(os.environ.get("HUNTER_C", TOP / "build/release/hunter-c"))
# The command, and how many lines of its output are shown.
COMMANDS = [
    (["regressions", "reads", "--since", "2026-06-01"], 99),
    (["analyze", "demo.read.inmem", "--since", "2026-09-25", "--until", "2026-10-10"], 99),
    (["run", "--once"], 18),
]
COLUMN, LINE, MARGIN = 8.4, 18, 16  # pixels
COLORS = {"31": "#f2777a", "32": "#99cc99", "33": "#ffcc66", "34": "#6699cc", "35": "#cc99cc", "36": "#66cccc"}


def run_on_terminal(arguments, environment):
    """Everything the program writes to a terminal."""
    ours, theirs = pty.openpty()
    child = subprocess.Popen([PROGRAM, *arguments], stdin=subprocess.DEVNULL, stdout=theirs,
                             stderr=subprocess.DEVNULL, env=environment, cwd=TOP)
    os.close(theirs)
    pieces = []
    while True:
        try:
            piece = os.read(ours, 65536)
        except OSError:  # how Linux says that the other end was closed
            break
        if not piece:
            break
        pieces.append(piece)
    child.wait()
    os.close(ours)
    return b"".join(pieces).decode().replace("\r\n", "\n")


def style_of(codes, style):
    """The style after an escape sequence: what SVG says for it."""
    style = dict(style)
    for code in codes.split(";"):
        if code in ("", "0"):
            style = {}
        elif code == "1":
            style["font-weight"] = "bold"
        elif code == "2":
            style["opacity"] = "0.6"
        elif code == "22":
            style.pop("font-weight", None)
            style.pop("opacity", None)
        elif code == "39":
            style.pop("fill", None)
        elif code in COLORS or (code[0] == "9" and "3" + code[1:] in COLORS):
            style["fill"] = COLORS["3" + code[1]]
    return style


def spans(line, style):
    """The line as [(text, style)], and the style that goes on after it."""
    found = []
    for i, piece in enumerate(re.split(r"\x1b\[([0-9;]*)m", line)):
        if i % 2:
            style = style_of(piece, style)
        elif piece:
            found.append((piece, style))
    return found, style


def draw(text):
    lines = text.rstrip("\n").split("\n")
    plain = [re.sub(r"\x1b\[[0-9;]*m", "", line) for line in lines]
    width = max(map(len, plain)) * COLUMN + 2 * MARGIN
    height = len(lines) * LINE + 2 * MARGIN + 20
    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:.0f}" height="{height}" '
        f'viewBox="0 0 {width:.0f} {height}" role="img" aria-label="hunter-c in a terminal">',
        '<rect width="100%" height="100%" rx="8" fill="#2d2d2d"/>',
        *(f'<circle cx="{MARGIN + 4 + 18 * i}" cy="16" r="5" fill="#555"/>' for i in range(3)),
        '<g font-family="DejaVu Sans Mono, Menlo, Consolas, monospace" font-size="14" fill="#d3d0c8" '
        'style="white-space:pre">',
    ]
    style = {}
    for row, line in enumerate(lines):
        found, style = spans(line, style)
        column = 0
        for piece, look in found:
            if piece.strip():
                attributes = "".join(f' {k}="{v}"' for k, v in look.items())
                out.append(f'<text x="{MARGIN + column * COLUMN:.1f}" y="{MARGIN + 32 + row * LINE}" '
                           f'textLength="{len(piece) * COLUMN:.1f}" xml:space="preserve"{attributes}>'
                           f"{html.escape(piece, quote=False)}</text>")
            column += len(piece)
    return "\n".join([*out, "</g>", "</svg>", ""])


def main():
    with tempfile.TemporaryDirectory() as scratch:
        environment = {"PATH": os.environ["PATH"], "TERM": "xterm", "HUNTER_CONFIG": "conf/example.yaml",
                       "EXAMPLE_STATE": f"{scratch}/state.db"}
        screen = ""
        for arguments, limit in COMMANDS:
            screen += f"\x1b[1m$ hunter-c {' '.join(arguments)}\x1b[0m\n"
            lines = run_on_terminal(arguments, environment).rstrip("\n").split("\n")
            screen += "\n".join(lines[:limit] + (["..."] if len(lines) > limit else [])) + "\n\n"
    picture = TOP / "docs/picture.svg"
    if sys.argv[1:] == ["--check"]:
        return 0 if picture.read_text() == draw(screen) else 1
    picture.write_text(draw(screen))
    return 0


sys.exit(main())
