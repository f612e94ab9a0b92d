"""Makes literals.jsonl: dicts as repr() and json.dumps() write them, and what python_read_dict must say about each."""
import json
import random

rng = random.Random(20240301)
LETTERS = ["a", "B", "0", " ", "'", '"', "\\", "\n", "\t", "\x00", "\x07", "\x7f", "\x85", "é", "ß", "\u2028", "\ud800", "日", "\U0001f600",
           "/", "{", ",", ":", "u'", "None"]


def text():
    return "".join(rng.choice(LETTERS) for _ in range(rng.randrange(8)))


def scalar():
    return rng.choice([None, True, False, 0, -7, 2**70, 1.5, -2.5e-300, 1e22, float("inf"), text(), text(), "fe6583ab"])


def value(depth):
    kind = rng.randrange(8)
    if depth > 2 or kind < 5:
        return scalar()
    items = [value(depth + 1) for _ in range(rng.randrange(4))]
    if kind == 5:
        return {text(): item for item in items}
    return items if kind == 6 else tuple(items)


def clean(string):
    return "".join("\ufffd" if c == "\x00" or "\ud800" <= c < "\ue000" else c for c in string)


def expected(data, words):
    def said(v):
        if isinstance(v, str):
            return clean(v)
        if v is None or isinstance(v, (dict, list, tuple, set)):
            return None
        return words(v)

    return [[clean(k), said(v)] for k, v in data.items() if isinstance(k, str)]


def case(written, pairs):
    print(json.dumps({"text": written, "pairs": pairs}))


for i in range(300):
    data = {text(): value(0) for _ in range(rng.randrange(6))}
    if i % 10 == 0:
        data[17] = data[(1, 2)] = data[None] = "no text as key"
    case(repr(data), expected(data, repr))
for i in range(150):
    data = {text(): value(1) for _ in range(rng.randrange(6))}
    written = json.dumps(data, ensure_ascii=True).replace("Infinity", "1e999")
    back = json.loads(written)
    case(written, expected(back, lambda v: "1e999" if v == float("inf") else "-1e999" if v == -float("inf") else json.dumps(v)))
# Python 2, and what people write by hand.
case(r"""{u'commit': u'caf\xe9', 'run_id': 12345678901234567890L, b'x': b'y', }""",
     [["commit", "café"], ["run_id", "12345678901234567890"], ["x", "y"]])
case(r"""{'unknown': '\q', 'slash': '\/', 'wide': '\U0001f600', 'n': -inf, 'm': .5}""",
     [["unknown", "\\q"], ["slash", "/"], ["wide", "\U0001f600"], ["n", "-inf"], ["m", ".5"]])
case(' \n{} ', [])
for broken in ["", "free text", "{", "{'a'", "{'a':", "{'a': 1", "{'a': 1,,}", "{'a' 1}", "{'a', 'b'}", "[1]", "'a'", "{'a': 1} x", "{'a': 'b}",
               "{'a': Nope}", "{'a': datetime(2024, 1, 1)}", r"{'a': '\u12'}", r"{'a': '\x'}", "{'a': -}", "{'a': xx'b'}", "{'a': (1, 2]}",
               "{" + "'a': {" * 200 + "}" * 201, "{'a': '\\"]:
    case(broken, None)
