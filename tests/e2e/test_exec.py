"""The receiver `exec`: a real script gets each message, and what becomes of it counts."""
import json
import os
import re
import signal

import pytest
from agent import CANARY, config, csv_test, write_csv
from hook import SCHEMA, valid


def script(tmp_path, text):
    """A program that appends its input to `told`, a line each, and then does what the text says."""
    path = tmp_path / "tell.sh"
    path.write_text(f'#!/bin/sh\ncat >>{tmp_path}/told\necho >>{tmp_path}/told\n{text}\n')
    path.chmod(0o755)
    return path


def told(tmp_path):
    path = tmp_path / "told"
    return [json.loads(line) for line in path.read_text().splitlines() if line] if path.exists() else []


def test_the_script_gets_the_document(hunter, tmp_path):
    write_csv(tmp_path / "a.csv", [(30, 1.2), (45, 0.7)])
    path = script(tmp_path, 'echo "$TOKEN $1 $2 $3" >$OUT; echo "done with $TOKEN"')
    section = f'exec: {{command: [{path}, one, "two words", one], environment: {{TOKEN: "{CANARY}", OUT: {tmp_path}/arguments}}}}'
    result = hunter("run", "--once", "--config", config(tmp_path, csv_test(tmp_path / "a.csv"), section))
    assert result.code == 0 and CANARY not in result.err + result.out, result.err
    assert 'output="done with *' in result.err
    documents = told(tmp_path)
    for document in documents:
        valid(SCHEMA, document)
    assert [(c["test"], c["commit_after"]) for d in documents for c in d["changes"]] == [("db.read", "c0030"), ("db.read", "c0045")]
    assert (tmp_path / "arguments").read_text() == f"{CANARY} one two words one\n"


@pytest.mark.parametrize("text, code, words, again", [
    ("if [ $(wc -l <$0.tries) = 1 ]; then echo not now >&2; exit 75; fi", 0, "exit status 75: not now", 0),
    ("echo no such board >&2; exit 1", 3, "given up.*exit status 1: no such board", 0),
    ("exec sleep 100", 3, "given up.*timed out after 1s", 0),
], ids=["again", "final", "timeout"])
def test_its_end_counts(hunter, tmp_path, text, code, words, again):
    write_csv(tmp_path / "a.csv", [(30, 1.2)])
    path = script(tmp_path, f"echo >>$0.tries\n{text}")
    section = f"exec: {{command: {path}, timeout: 1s}}"
    result = hunter("run", "--once", "--config", config(tmp_path, csv_test(tmp_path / "a.csv"), section))
    assert result.code == code and re.search(words, result.err), result.err
    documents = told(tmp_path)
    assert len(documents) == (2 if code == 0 else 1) and len({d["key"] for d in documents}) == 1
    assert hunter("run", "--once", "--config", tmp_path / "hunter.yaml").code == again
    assert len(told(tmp_path)) == len(documents)


def test_a_program_that_is_not_there_yet(hunter, tmp_path):
    """The configuration is blamed, and nothing is lost."""
    write_csv(tmp_path / "a.csv", [(30, 1.2)])
    path = config(tmp_path, csv_test(tmp_path / "a.csv"), f"exec: {{command: [{tmp_path}/tell.sh]}}")
    result = hunter("run", "--once", "--config", path)
    assert result.code == 2 and "cannot start: No such file or directory" in result.err, result.err
    script(tmp_path, "")
    assert hunter("run", "--once", "--config", path).code == 0 and len(told(tmp_path)) == 1


def test_a_slow_command_delays_nobody(agents, tmp_path, hook):
    """The webhook is told meanwhile; at the end of the agent the command is ended, and run again by the next one."""
    write_csv(tmp_path / "a.csv", [(30, 1.2)])
    path = script(tmp_path, f"echo $$ >{tmp_path}/pid; exec sleep 600")
    section = f'exec: {{command: [{path}], timeout: 1h}}\nwebhook: {{url: "{hook.url}"}}'
    agent = agents(config(tmp_path, csv_test(tmp_path / "a.csv"), section, "  grace: 500ms"))
    agent.wait(lambda: (tmp_path / "pid").exists() and (tmp_path / "pid").read_text().strip())
    agent.wait(lambda: len(hook.taken) == 1)
    pid = int((tmp_path / "pid").read_text())
    os.kill(pid, 0)
    agent.end()
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)
    script(tmp_path, "")
    agent = agents(tmp_path / "hunter.yaml")
    agent.wait_log("receiver=exec.*|msg=sent.*receiver=exec")
    agent.wait(lambda: len(told(tmp_path)) == 2)
    assert len({d["key"] for d in told(tmp_path)}) == 1 and len(hook.taken) == 1
    assert agent.end(signal.SIGTERM) == 0


@pytest.mark.parametrize("section, words", [
    ("exec: {shell: true}", '"command" is missing'),
    ("exec: {command: []}", "command: it is empty"),
    ("exec: {command: ./tell.sh}", "neither an absolute path nor the name of a program in PATH"),
    ("exec: {command: mail -s x}", "use a list, [PROGRAM, ARGUMENT], or add shell: true"),
    ("exec: {command: [a, b], shell: true}", "expected a string with shell: true"),
    ("exec: {command: [a], environment: {1X: y}}", '"1X" is not the name of a variable'),
    ("exec: {command: [a], timeout: 2d}", "timeout: "),
])
def test_what_is_refused(hunter, tmp_path, section, words):
    write_csv(tmp_path / "a.csv", [(30, 1.2)])
    result = hunter("validate", "--config", config(tmp_path, csv_test(tmp_path / "a.csv"), section))
    assert result.code == 2 and words in result.err + result.out, result.err + result.out
