#!/usr/bin/env python3
"""check.py ROOT: tests wait for the thing itself (tests/e2e/waiting.py, tests/unit/waiting.h). Prints each place where one waits for
time to pass, gives a wait a bound of its own, or is skipped without a word, and fails on any.

Benchmarks measure time, and are left out.
"""
import ast
import pathlib
import re
import sys

# Where time itself is what a test needs, and how often: whoever adds one says here what for.
PAUSES = {
    # Peers that are slow on purpose.
    "e2e/fake_slack.py": 1, "e2e/faulty.py": 1, "e2e/hook.py": 1, "e2e/test_http.py": 1, "e2e/test_access.py": 1, "e2e/test_face.py": 2,
    "e2e/fleet.py": 3, "e2e/test_replay.py": 1,  # the last is a person
    # The moment of a kill, which is to be any.
    "e2e/test_alertmanager.py": 1, "e2e/test_pagerduty.py": 1, "e2e/test_kept.py": 1, "e2e/test_kill.py": 2, "e2e/test_kill_triage.py": 1,
    "e2e/test_reactions.py": 1, "e2e/test_recovered.py": 1, "e2e/test_run.py": 1, "e2e/test_silences.py": 1,
    # How long a fault lasts: a storm, a process that is stopped, a state that is locked, a cable that is cut; what is asked in 15 s.
    "e2e/test_storm.py": 3, "e2e/test_schedule.py": 1, "e2e/test_state.py": 1, "e2e/test_fleet.py": 2,
    # A loop that is to have nothing to do.
    "unit/test_jumping.c": 2,
}
# A thread's own rhythm, which its end interrupts.
RHYTHMS = {"self.over.wait(0.5)", "over.wait(0.5)"}
# Who waits; the others ask them to.
WAITERS = {"e2e/waiting.py", "unit/waiting.h"}
BOUNDED = ("wait", "wait_for", "join", "acquire", "result", "settimeout", "communicate", "create_connection", "select", "Timer")


def is_number(node):
    return isinstance(node, ast.Constant) and isinstance(node.value, (int, float)) and not isinstance(node.value, bool)


def wrong(call, text):
    """What is wrong with a call, or None."""
    name = call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
    if name == "sleep":
        return "a sleep"
    if name == "wait" and isinstance(call.func, ast.Attribute) and isinstance(call.func.value, ast.Call) and "Event()" in text:
        return "a sleep in disguise"
    if name in ("skip", "importorskip") and not any(k.arg == "reason" for k in call.keywords) and not (name == "skip" and call.args):
        return "a skip that does not say why"
    bounds = [k.value for k in call.keywords if k.arg in ("timeout", "connect_timeout")]
    bounds += call.args[-1:] if name in BOUNDED else []
    if any(is_number(bound) and bound.value > 0 for bound in bounds) and text not in RHYTHMS:
        return "a bound of its own instead of LONGEST"
    return None


def of_python(name, source):
    lines, pauses = source.splitlines(), 0
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Call):
            text = lines[node.lineno - 1].encode()[node.col_offset:node.end_col_offset if node.end_lineno == node.lineno else None].decode()
            pauses += text.startswith(("pause(", "waiting.pause("))
            if found := wrong(node, text):
                yield f"{name}:{node.lineno}: {found}: {text}"
        elif isinstance(node, ast.ImportFrom) and node.module == "time":
            yield f"{name}:{node.lineno}: say time.NAME"
    yield from counted(name, pauses)


def of_c(name, source):
    bare = re.sub(r'"(?:\\.|[^"\\\n])*"|/\*.*?\*/', lambda m: "\n" * m[0].count("\n"), source, flags=re.S)
    for number, line in enumerate(bare.splitlines(), 1):
        if re.search(r"\b(u|nano|clock_nano|thrd_)?sleep\(|\bpoll\(NULL|\bselect\(0", line):
            yield f"{name}:{number}: a sleep: {line.strip()}"
    yield from counted(name, len(re.findall(r"\bpause_for\(", bare)))


def counted(name, pauses):
    if pauses != PAUSES.get(name, 0):
        yield f"{name}: {pauses} pauses, where {PAUSES.get(name, 0)} are known (see PAUSES)"


def main():
    tests, seen, breaches = pathlib.Path(sys.argv[1]) / "tests", 0, []
    for file in sorted([*tests.glob("*.py"), *tests.glob("e2e/**/*.py"), *tests.glob("cases/**/*.py"), *tests.glob("unit/*.[ch]"), *tests.glob("fuzz/*.c")]):
        name = str(file.relative_to(tests))
        if name not in WAITERS:
            seen += 1
            breaches += (of_python if file.suffix == ".py" else of_c)(name, file.read_text())
    print("\n".join(breaches) or f"{seen} files, none of which waits for time to pass")
    return bool(breaches) or seen < 200


sys.exit(main())
