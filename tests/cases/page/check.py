#!/usr/bin/env python3
"""check.py ROOT: the page's code never makes markup of text, and has nothing inline; where there is node, it is also well-formed. Prints each
breach and fails on any."""
import pathlib
import re
import shutil
import subprocess
import sys

FORBIDDEN = [r"\b(inner|outer)HTML\b", r"insertAdjacentHTML", r"document\.write", r"\beval\s*\(", r"new\s+Function\b", r"setTimeout\s*\(\s*['\"`]",
             r"createContextualFragment", r"DOMParser", r"srcdoc", r"https?://(?!www\.w3\.org/2000/svg)", r"\bstyle\s*:\s*['\"`]",
             r"setAttribute\(\s*['\"](style|on)"]
INLINE = [r"\sstyle\s*=", r"\son[a-z]+\s*=", r"<script(?![^>]*\ssrc=)", r"<style"]


def main(root):
    files = sorted(p for p in (root / "agent/web/page").iterdir() if p.suffix in (".js", ".html", ".css"))
    breaches = []
    for file in files:
        for number, line in enumerate(file.read_text().splitlines(), 1):
            for pattern in FORBIDDEN * (file.suffix == ".js") + INLINE * (file.suffix == ".html"):
                if re.search(pattern, line):
                    breaches.append(f"{file.relative_to(root)}:{number}: {pattern}: {line.strip()[:100]}")
        if file.suffix == ".js" and shutil.which("node"):
            done = subprocess.run(["node", "--check", "--input-type=module"], stdin=file.open(), capture_output=True, text=True)
            if done.returncode:
                breaches.append(f"{file.relative_to(root)}: {done.stderr}")
    print("\n".join(breaches))
    return 1 if breaches or len(files) < 5 else 0


if __name__ == "__main__":
    sys.exit(main(pathlib.Path(sys.argv[1])))
