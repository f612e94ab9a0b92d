"""The schedule of a running agent: what is late is run once."""
import signal
import time

from agent import config, csv_test, write_csv
from waiting import pause


def test_a_process_that_was_stopped_makes_no_burst(agents, tmp_path):
    tests = ""
    for i in range(4):
        write_csv(tmp_path / f"{i}.csv", [(30, 1.2)])
        tests += csv_test(tmp_path / f"{i}.csv", f"t{i}", "    interval: 2s\n")
    begun = time.monotonic()
    agent = agents(config(tmp_path, tests))
    agent.wait_metric("hunter_runs_total", 8)
    agent.process.send_signal(signal.SIGSTOP)
    pause(9, "the time that passes meanwhile is what this is about")
    agent.process.send_signal(signal.SIGCONT)
    woken = time.monotonic()
    runs_before = agent.metric("hunter_runs_total")
    agent.wait_metric("hunter_missed_runs_total", 4 * 3)
    agent.wait_metric("hunter_runs_total", runs_before + 8)
    runs, seconds = agent.metric("hunter_runs_total"), time.monotonic() - woken
    # One late run of each test, and those that were due since.
    assert runs - runs_before <= 4 * (2 + seconds / 2), (runs, seconds)
    assert agent.metric("hunter_missed_runs_total") <= 4 * ((time.monotonic() - begun) / 2 + 1)
    agent.end()
    assert sum("p99: +" in line for line in agent.out) == 4
