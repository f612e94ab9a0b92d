#!/usr/bin/env python3
"""Makes docs/calibration.svg from the table of docs/design/accuracy.md between the markers of its name."""
import math
import pathlib
import re

DOCS = pathlib.Path(__file__).resolve().parent
LEFT, TOP, WIDTH, HEIGHT = 60, 20, 420, 240
LOWEST, HIGHEST = 0.5, 200  # false points per 100 points, in P
COLORS = ["#1f77b4", "#2ca02c", "#9467bd", "#d62728", "#7f7f7f"]


def rows():
    text = (DOCS / "design/accuracy.md").read_text()
    table = re.search(r"<!-- calibration -->(.*?)<!-- /calibration -->", text, re.S)[1]
    for line in table.strip().splitlines()[2:]:
        kind, points, _, *shares = [cell.strip() for cell in line.strip("|").split("|")]
        yield kind, int(points), float(shares[2].split()[0])  # the column P = 0.001


def x(points):
    return LEFT + WIDTH * math.log(points / 20) / math.log(100)


def y(share):
    share = min(max(share, LOWEST), HIGHEST)
    return TOP + HEIGHT * (1 - math.log(share / LOWEST) / math.log(HIGHEST / LOWEST))


def main():
    curves = {}
    for kind, points, share in rows():
        curves.setdefault(kind, []).append((x(points), y(share)))
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {LEFT + WIDTH + 110} {TOP + HEIGHT + 50}" '
           'font-family="sans-serif" font-size="12">',
           f'<rect width="100%" height="100%" fill="#fff"/><path d="M{LEFT} {TOP}v{HEIGHT}h{WIDTH}" fill="none" stroke="#000"/>',
           f'<path d="M{LEFT} {y(5):.1f}h{WIDTH}" stroke="#000" stroke-dasharray="4 3"/>',
           f'<text x="{LEFT + WIDTH + 6}" y="{y(5) + 4:.1f}">5 P</text>']
    for points in (20, 50, 100, 200, 500, 2000):
        out.append(f'<text x="{x(points):.1f}" y="{TOP + HEIGHT + 16}" text-anchor="middle">{points}</text>')
    for share in (0.5, 1, 10, 100):
        out.append(f'<text x="{LEFT - 6}" y="{y(share) + 4:.1f}" text-anchor="end">{share} P</text>')
    out.append(f'<text x="{LEFT + WIDTH / 2}" y="{TOP + HEIGHT + 38}" text-anchor="middle">'
               'points of the series; false change points per 100 points at P = 0.001</text>')
    for number, (kind, places) in enumerate(curves.items()):
        line = " ".join(f"{a:.1f},{b:.1f}" for a, b in places)
        out.append(f'<polyline points="{line}" fill="none" stroke="{COLORS[number]}" stroke-width="2"/>')
        out.append(f'<text x="{LEFT + WIDTH - 90}" y="{TOP + 14 + 16 * number}" fill="{COLORS[number]}">{kind}</text>')
    (DOCS / "calibration.svg").write_text("\n".join(out) + "\n</svg>\n")


main()
