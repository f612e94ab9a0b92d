"""No message says the same thing twice in a row: "state file s.db: state file s.db: ..."."""
import re

# A piece before ": " may itself have colons, as an address or a line of a file has; the line's number may be missing the second time.
TWICE = re.compile(r'(?:^|: |")([^:"\s](?:[^:"\n]|:(?! ))*?)(?::\d+)*: \1(?::\d+)*: ', re.MULTILINE)


def said_once(text):
    """The text, which is what a program wrote about what went wrong."""
    found = TWICE.search(text)
    assert not found, f"repeats itself: {found[0]!r} in:\n{text}"
    return text
