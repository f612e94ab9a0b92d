"""How a test waits: for the thing itself, looked at again and again. It never waits for time to pass in which the thing should have come.

    wait(lambda: agent.metric("hunter_runs_total") > 3, lambda: "".join(agent.log))

That something does NOT happen is seen at what comes after it: a later run, a later line of a log.
"""
import time

LONGEST = 300  # seconds: bounds what hangs, here and wherever a test needs a timeout; nothing that works comes near it
GLANCE = 5  # seconds that one of many looks may take
LOOK = 0.02  # seconds between two looks


def wait(condition, what=lambda: "it did not happen", passing=()):
    """What condition() returned when it was true at last; what() tells why it never was. Exceptions of the kinds `passing` mean: not yet."""
    end = time.monotonic() + LONGEST
    while True:
        try:
            if found := condition():
                return found
            problem = ""
        except passing as error:
            problem = f"\n{error!r}"
        assert time.monotonic() < end, what() + problem
        time.sleep(LOOK)


def pause(seconds, why):
    """Where time itself is what a test is about: the pace of a peer that is slow on purpose, the moment of a kill, a stop that has to last.
    `why` says which. What a test looks at afterwards must be right however long this took in truth."""
    assert why
    time.sleep(seconds)
