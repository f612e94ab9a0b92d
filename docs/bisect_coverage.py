#!/usr/bin/env python3
"""Makes docs/bisect.svg from the table of docs/design/bisection.md between the markers of its name: sets that hold the culprit against what
they claim."""
import pathlib
import re

DOCS = pathlib.Path(__file__).resolve().parent
LEFT, TOP, SIZE = 60, 20, 300
LOWEST = 0.7


def rows():
    table = re.search(r"<!-- coverage -->(.*?)<!-- /coverage -->", (DOCS / "design/bisection.md").read_text(), re.S)[1]
    for line in table.strip().splitlines()[2:]:
        yield [float(cell.strip().rstrip("%")) / 100 for cell in line.strip("|").split("|")]


def place(share):
    return SIZE * (share - LOWEST) / (1 - LOWEST)


def main():
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {LEFT + SIZE + 40} {TOP + SIZE + 50}" '
           'font-family="sans-serif" font-size="12">',
           f'<rect width="100%" height="100%" fill="#fff"/><path d="M{LEFT} {TOP}v{SIZE}h{SIZE}" fill="none" stroke="#000"/>',
           f'<path d="M{LEFT} {TOP + SIZE}L{LEFT + SIZE} {TOP}" stroke="#7f7f7f" stroke-dasharray="4 3"/>']
    for tick in (0.7, 0.8, 0.9, 1):
        out.append(f'<text x="{LEFT + place(tick):.1f}" y="{TOP + SIZE + 16}" text-anchor="middle">{tick:.0%}</text>')
        out.append(f'<text x="{LEFT - 6}" y="{TOP + SIZE - place(tick) + 4:.1f}" text-anchor="end">{tick:.0%}</text>')
    out.append(f'<text x="{LEFT + SIZE / 2}" y="{TOP + SIZE + 38}" text-anchor="middle">claimed by the set; '
               'upwards: sets that hold the culprit</text>')
    for _, claimed, held in rows():
        out.append(f'<circle cx="{LEFT + place(claimed):.1f}" cy="{TOP + SIZE - place(held):.1f}" r="4" fill="#1f77b4"/>')
    (DOCS / "bisect.svg").write_text("\n".join(out) + "\n</svg>\n")


main()
