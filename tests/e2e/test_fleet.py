"""Several agents on one PostgreSQL: each test is run by one of them, each change is told once, whatever happens to them.

HUNTER_TEST_FULL makes the storm 20 minutes of 8 agents with 10,000 tests, kills the primary 20 times, and rolls 1,000 tests;
HUNTER_TEST_SEED repeats a seed, that is, what is done and when; HUNTER_TEST_FIGURES=FILE keeps the figures.
"""
import contextlib
import json
import os
import signal
import subprocess
import threading
import time

import pytest
import servers
from clock_shim import Clock
from fleet import TRUST, TTL, Fleet, Proxy, Pulse, Sink, Source, Watch, note, verdict
from waiting import LONGEST, pause

FULL = bool(os.environ.get("HUNTER_TEST_FULL"))
SEED = int(os.environ.get("HUNTER_TEST_SEED", "1"))


@pytest.fixture(scope="module")
def postgres():
    with servers.state_postgres() as server:
        yield server


class World:
    """A fleet with all that belongs to it, on a database of its own."""

    def __init__(self, program, folder, postgres, tests, address=None, database=None, **options):
        self.postgres = postgres
        self.database = database or postgres.create().rsplit("/", 1)[1]
        self.source, self.sink, self.pulse = Source(tests), Sink(), Pulse()
        self.fleet = Fleet(program, folder, address or postgres.address(self.database), self.source, self.sink, **options)

    def sql(self, text):
        return self.postgres.sql(text, self.database)

    def watch(self):
        return Watch(self.fleet, lambda: self.postgres.connect(self.database), self.pulse)

    def close(self):
        self.fleet.close()
        self.pulse.stop()
        self.sink.stop()
        self.source.stop()


@pytest.fixture
def world(program, tmp_path, postgres):
    """world(TESTS, ...) makes a World; all are gone in the end."""
    made = []

    def make(tests, **options):
        made.append(World(program, tmp_path, options.pop("postgres", postgres), tests, **options))
        return made[-1]

    yield make
    for each in made:
        each.close()


def start(fleet, count, **options):
    """The agents a1, a2 ...; each test has run once when it returns."""
    since = time.monotonic()
    for number in range(count):
        fleet.start(f"a{number + 1}", **options)
    fleet.started()
    fleet.quiet(since)


def finish(world):
    """All agents run, all is told, all agents end well; returns the figures."""
    fleet = world.fleet
    for member in fleet.members.values():
        if member.paused:
            fleet.go_on(member.name)
        if not member.alive():
            fleet.start(member.name)
    fleet.started()
    fleet.settle()
    fleet.wait(lambda: world.sql("SELECT count(*) FROM deliveries WHERE state = 1") == [(0,)], "messages wait")  # of those who were killed
    for name in fleet.members:
        fleet.end(name)
    figures = verdict(fleet, world.sql)
    check_rows(world)
    return figures


def check_rows(world):
    """Whatever happened, the database is as one agent would have left it."""
    assert world.sql("SELECT count(*), min(shard), max(shard) FROM shards") == [(256, 0, 255)]
    assert world.sql("SELECT count(*) FROM deliveries WHERE state = 1") == [(0,)]
    twice = "SELECT a.change, d.receiver, count(*) FROM announced a JOIN deliveries d ON d.id = a.delivery GROUP BY 1, 2 HAVING count(*) > 1"
    assert world.sql(twice) == []


def held(world):
    """(agent, the number of shards it holds) of each, as the database has it."""
    return world.sql("SELECT min(a.name), count(s.shard) FROM agents a LEFT JOIN shards s ON s.holder = a.instance"
                     " WHERE a.gone = 0 GROUP BY a.instance")


def wait_shares(world, *shares):
    world.fleet.wait(lambda: sorted(count for _, count in held(world)) == sorted(shares), f"no fair shares: {shares}")


def longest(world, since, interval, extra=2 * TTL):
    """The longest time in which a test was not run; no longer than it may be, on a machine that is no later than it is."""
    gaps = world.source.gaps(since, time.monotonic())
    for gap, _, begin, end in gaps:
        assert gap <= interval + extra + world.pulse.lost(begin, end), f"{gaps[:5]}\n{world.fleet.tails()}"
    return round(gaps[0][0], 1)


# What a fleet is.


def test_each_test_is_run_by_one(world):
    """Three agents divide the tests; each says so; what is asked of one is done by the one that holds it."""
    there = world(60, interval=2)
    fleet = there.fleet
    start(fleet, 3)
    wait_shares(there, 85, 85, 86)
    fleet.quiet()
    since = time.monotonic()
    fleet.quiet()
    fleet.quiet()
    for name in there.source.names:
        runners = {pid for when, pid in there.source.asked[name] if when > since}
        assert len(runners) == 1, f"{name} is run by {runners}"
    assert len({pid for asked in there.source.asked.values() for when, pid in asked if when > since}) == 3
    for name in fleet.members:
        assert sorted((agent["name"], agent["shards"]) for agent in fleet.picture(name)) == sorted(held(there))
        assert fleet.members[name].get("/-/ready")[0] == 200
    for name in there.source.names:
        there.source.change(name)
    finish(there)


def test_one_leaves_and_one_comes(world):
    """At SIGTERM the others go on at once; who comes gets its share, and nothing is run late for it."""
    there = world(60, interval=2)
    fleet = there.fleet
    start(fleet, 2)
    since = time.monotonic()
    fleet.end("a2")
    wait_shares(there, 256)
    fleet.quiet()
    left = longest(there, since, 2, TTL)
    since = time.monotonic()
    fleet.start("a2")
    fleet.started()
    wait_shares(there, 128, 128)
    fleet.quiet()
    note(test="one leaves, one comes", gap_when_one_leaves=left, gap_when_one_comes=longest(there, since, 2, TTL))
    finish(there)


def test_one_is_killed(world):
    there = world(200, interval=2)
    fleet = there.fleet
    start(fleet, 3)
    wait_shares(there, 85, 85, 86)
    since = time.monotonic()
    fleet.kill("a2")
    for name in there.source.names[::4]:
        there.source.change(name)
    wait_shares(there, 128, 128)
    fleet.quiet()
    note(test="one is killed", gap=longest(there, since, 2))
    finish(there)


def run_by(there, name):
    """A test that the agent runs: with its share it need not have run one yet."""
    fleet, source = there.fleet, there.source
    mine = lambda: [test for test in source.names if source.asked[test][-1][1] == fleet.members[name].process.pid]
    return fleet.wait(mine, f"{name} runs no test")[0]


def test_one_that_slept_changes_nothing(world):
    """It is paused while a test's points are on their way to it, and goes on when another has told what they show."""
    there = world(30, interval=2)
    fleet, source = there.fleet, there.source
    start(fleet, 2)
    wait_shares(there, 128, 128)
    test = run_by(there, "a1")
    source.hold(test)
    source.change(test)
    asked = len(source.asked[test])
    fleet.wait(lambda: len(source.asked[test]) > asked)
    fleet.pause("a1")
    source.release(test)
    fleet.settle()
    fleet.go_on("a1")
    wait_shares(there, 128, 128)
    fleet.quiet()
    figures = finish(there)
    assert figures["again"] == 0


def test_a_write_in_hand_is_fenced(world):
    """An agent is paused in the middle of recording a change, past its lease; it goes on when another has told that change."""
    there = world(20, interval=2)
    fleet, source = there.fleet, there.source
    start(fleet, 2)
    wait_shares(there, 128, 128)
    fleet.quiet()
    test = run_by(there, "a1")
    waiting = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock' AND query LIKE '%FOR SHARE%'"
    with contextlib.closing(there.postgres.connect(there.database)) as connection, connection.cursor() as cursor:
        cursor.execute("BEGIN")
        cursor.execute("SELECT shard FROM shards WHERE holder = (SELECT instance FROM agents WHERE name = 'a1') FOR UPDATE")
        source.change(test)
        fleet.wait(lambda: there.sql(waiting) != [(0,)], "a1 does not write")
        fleet.pause("a1")
        cursor.execute("COMMIT")
    fleet.settle()
    wait_shares(there, 256)
    assert there.sql("SELECT test FROM changes") == [(test,)]
    rows = "SELECT xmin::text, changes.* FROM changes"
    before = there.sql(rows)
    fleet.go_on("a1")
    fleet.wait(lambda: fleet.members["a1"].metric("hunter_fenced_writes_total") > 0, "nothing is fenced")
    wait_shares(there, 128, 128)
    fleet.quiet()
    assert there.sql(rows) == before
    assert "another agent holds the lease" in fleet.members["a1"].said()
    figures = finish(there)
    assert figures["again"] == 0


def test_an_end_that_the_database_delays(world):
    """An agent that is to stop does not wait for ever for what it has asked of the database."""
    there = world(5, interval=1, agent="grace: 1s")
    fleet = there.fleet
    start(fleet, 1)
    with contextlib.closing(there.postgres.connect(there.database)) as connection, connection.cursor() as cursor:
        cursor.execute("BEGIN")
        cursor.execute("LOCK TABLE changes")
        there.source.change(there.source.names[0])
        waiting = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'"
        fleet.wait(lambda: there.sql(waiting) != [(0,)], "nothing is asked")
        begun = time.monotonic()
        fleet.members["a1"].process.send_signal(signal.SIGTERM)
        fleet.members["a1"].process.wait(LONGEST)
        assert "exiting without waiting" in fleet.members["a1"].said()
        note(test="an end that the database delays", seconds=round(time.monotonic() - begun, 1))


def test_a_quiet_fleet_asks_little(world):
    """As long as nothing is found, an agent asks one thing every five seconds; its first runs ask little, too."""
    with servers.state_postgres(("shared_preload_libraries=pg_stat_statements",)) as postgres:
        there = world(150, interval=2, postgres=postgres)
        fleet = there.fleet
        there.sql("CREATE EXTENSION pg_stat_statements")

        def asked():
            """{statement: calls} of the agents."""
            rows = there.sql("SELECT query, sum(calls) FROM pg_stat_statements JOIN pg_roles r ON r.oid = userid WHERE rolname = 'hunter' GROUP BY 1")
            return {query: int(calls) for query, calls in rows}

        def work(statements):
            """Without what only begins and ends transactions."""
            return {query: calls for query, calls in statements.items() if query.split()[0] not in ("BEGIN", "COMMIT", "ROLLBACK", "SET")}

        fleet.start("a1")
        fleet.started()
        wait_shares(there, 256)
        before = sum(work(asked()).values())
        fleet.quiet()
        fleet.quiet()
        first = sum(work(asked()).values()) - before
        names = [f"a{i}" for i in range(1, 9)]
        for name in names[1:]:
            fleet.start(name)
        fleet.started()
        wait_shares(there, *[32] * len(names))
        fleet.quiet()
        fleet.quiet()
        for _ in range(4):  # news of those who came may still make the round
            base, begun = asked(), time.monotonic()
            pause(15, "what is asked in this time is counted")
            spent = time.monotonic() - begun
            since = {query: calls - base.get(query, 0) for query, calls in asked().items() if calls > base.get(query, 0)}
            renewals = sum(calls for query, calls in since.items() if "UPDATE agents SET renewed" in query)
            others = {query: calls for query, calls in work(since).items() if "UPDATE agents SET renewed" not in query}
            if not others:
                break
        fleet.close()
    note(test="a quiet fleet asks little", a_test=round(first / 150, 1), agents=len(names), renewals=renewals, others=sum(others.values()),
         all=sum(since.values()), seconds=round(spent, 1))
    assert first <= 12 * 150
    assert renewals <= len(names) * (spent / 5 + 2) and not others, others


def ask_all(fleet, name, tests):
    """Asks one agent for a run of each."""
    for test in tests:
        status, text = fleet.members[name].post(f"/api/v1/run?test={test}")
        assert status in (200, 202), text


def test_a_run_that_is_asked_of_any(world):
    """The holder does it, whoever is asked."""
    there = world(20, interval=3600)
    fleet, source = there.fleet, there.source
    start(fleet, 2)
    for name in fleet.members:
        before = {test: len(source.asked[test]) for test in source.names}
        ask_all(fleet, name, source.names)
        fleet.wait(lambda: all(len(source.asked[test]) > before[test] for test in before), "not each is run")  # noqa: B023
    finish(there)


def test_a_run_of_a_test_that_has_left_its_shard(world):
    """The holders of some tests have another version than most: whoever is asked, an agent that has the right one runs them."""
    there = world(12, interval=3600)
    fleet, source = there.fleet, there.source
    fleet.start("a1", detection="season: none, magnitude: 0.02")
    fleet.start("a2")
    fleet.start("a3")
    fleet.started()
    wait_shares(there, 85, 85, 86)
    fleet.wait(lambda: fleet.members["a1"].metric("hunter_fleet_differing_tests") == 12, "a1 does not see that it differs")
    fleet.wait(lambda: there.sql("SELECT count(*) FROM singles") != [(0,)], "no test is leased by itself")
    fleet.quiet(since=0.001)
    processes = {fleet.members[name].process.pid for name in ("a2", "a3")}
    for name in fleet.members:
        begun = time.monotonic()
        ask_all(fleet, name, source.names)
        fleet.wait(lambda: all(any(when > begun and by in processes for when, by in source.asked[test]) for test in source.names),  # noqa: B023
                   "not each is run by one that has the right version")
    fleet.wait(lambda: there.sql("SELECT count(*) FROM requests") == [(0,)], "requests stay")


def test_what_people_say_anywhere(world):
    """Triage said to one agent is known to all, and stands when the one that heard it is killed."""
    there = world(20, interval=2)
    fleet, source = there.fleet, there.source
    start(fleet, 2)
    for name in source.names[:4]:
        source.change(name)
    fleet.settle()
    numbers = [number for _, _, number, _, _ in there.sink.told()]
    member = fleet.members["a1"]
    for number in numbers:
        seen = json.loads(member.get(f"/api/v1/changes/{number}")[1])
        assert (seen.get("change") or seen)["triage"]["state"] == "open"
    fleet.kill("a2")
    assert len(json.loads(member.get("/api/v1/changes")[1])["changes"]) == 4
    finish(there)


def test_a_single_run_that_is_refused(world):
    """It says so and does nothing, however long the agent has been dead for that it takes to be alive."""
    there = world(20, interval=2)
    fleet, source = there.fleet, there.source
    start(fleet, 1)
    fleet.kill("a1")
    source.drain()
    for name in source.names:
        source.change(name)
    with subprocess.Popen([fleet.program, "run", "--once", "--config", fleet.members["a1"].path], stderr=subprocess.PIPE, text=True) as once:
        members = source.processes
        source.processes = lambda: [*members(), once.pid]
        said = once.communicate(timeout=LONGEST)[1]
    assert once.returncode == 4 and 'in use by another agent, "a1"' in said, said
    assert there.sink.told() == [] and once.pid not in {owner for name in source.names for _, owner in list(source.asked[name])}
    finish(there)


# All at once.


def storm(there, agents, seconds, interval, each, changes, seed=SEED):
    fleet = there.fleet
    start(fleet, agents)
    since = time.monotonic()
    with there.watch() as watch:
        fleet.storm(seconds, seed, each=each, changes=changes)
        fleet.started()
        fleet.quiet()
    until = time.monotonic()
    waits = watch.waits(since, until)
    note(test=f"storm of {agents} agents, {len(there.source.names)} tests, {seconds} s",
         gap=round(there.source.gaps(since, until)[0][0], 1), spare=round(-waits[0][0], 1) if waits else None,
         machine_late=round(watch.pulse.lost(since, until), 1), moves=watch.moves())
    longest = sorted(waits, key=lambda wait: wait[2] - wait[3])[:3]
    print("".join(watch.story(*wait[1:]) for wait in longest))
    assert not waits or waits[0][0] <= 0, "".join(watch.story(*wait[1:]) for wait in waits[:5] if wait[0] > 0)
    note(test="the same", **finish(there))


def test_storm(world):
    """kill -9, pauses of up to a minute, ends and comers at random."""
    if FULL:
        storm(world(10000, interval=60), 8, 1200, 60, 6, 2)
    else:
        storm(world(300, interval=5), 3, 60, 5, 6, 2)


def test_storm_through_pgbouncer(world, postgres):
    with servers.pgbouncer(postgres) as bouncer:
        database = postgres.create().rsplit("/", 1)[1]
        there = world(100, interval=3, address=bouncer.address(database), database=database)
        storm(there, 3, 300 if FULL else 30, 3, 5, 2)


def test_clocks_that_are_hours_apart(world, program, tmp_path):
    """Only the database's clock decides; theirs are hours off, and jump."""
    there = world(60, interval=2)
    fleet, clocks = there.fleet, []
    for number, hours in enumerate((-5, 0, 7)):
        (tmp_path / f"clock{number}").mkdir()
        clocks.append(Clock(tmp_path / f"clock{number}", program))
        if clocks[-1].problem:
            pytest.skip(clocks[-1].problem)
        clocks[-1].turn(hours * 3600)
        fleet.start(f"a{number + 1}", environment=clocks[-1].environment)
    fleet.started()
    fleet.quiet()
    since = time.monotonic()
    for jump in range(60 if FULL else 6):
        clocks[jump % 3].turn((-9, 3, 11, -2, 0, 48)[jump % 6] * 3600)
        for name in there.source.names[jump % 10::10]:
            there.source.change(name)
        if jump % 3 == 1:
            fleet.kill("a1")
            fleet.start("a1")
            fleet.started()
        fleet.quiet()
    gap = longest(there, since, 2)
    when = there.sql("SELECT max(abs(extract(epoch FROM clock_timestamp()) - first_seen / 1000)) FROM changes")
    assert when[0][0] < 900, "a change is dated by an agent's clock"
    note(test="clocks hours apart", **finish(there), gap=gap)


@pytest.mark.parametrize("mood", ["cut", "deaf", "slow", "refused"])
def test_a_cable(world, postgres, mood):
    """One agent's connection to the database is cut, half dead, slow or refused for a while; the others go on with what it held."""
    proxy = Proxy(postgres.port)
    database = postgres.create().rsplit("/", 1)[1]

    def address(name):
        return f"postgresql://hunter@127.0.0.1:{proxy.port if name == 'a1' else postgres.port}/{database}"

    there = world(90, interval=2, address=address, database=database)
    fleet = there.fleet
    try:
        start(fleet, 3)
        wait_shares(there, 85, 85, 86)
        since = time.monotonic()
        proxy.turn(mood)
        for turn in range(9):
            for name in there.source.names[turn::9]:
                there.source.change(name)
            pause(4 if FULL else 3, "changes come while the cable is bad, for longer than a lease")
            if mood != "slow" and turn == 8:
                fleet.wait(lambda: fleet.members["a1"].get("/-/ready")[0] == 503, "it says that it is ready")
        if mood != "slow":
            wait_shares(there, 128, 128)
            fleet.settle()  # without it
        gap = longest(there, since, 2)
        proxy.turn("whole")
        wait_shares(there, 85, 85, 86)
        fleet.wait(lambda: fleet.members["a1"].get("/-/ready")[0] == 200, "it is not ready")
        fleet.quiet()
        note(test=f"cable {mood}", **finish(there), gap=gap)
    finally:
        fleet.close()
        proxy.stop()


def test_the_primary_is_killed(program, tmp_path):
    """Of three nodes; a commit that was answered is on the next primary."""
    with servers.patroni() as cluster:
        there = World(program, tmp_path, cluster, 1000 if FULL else 100, cluster.address(), "hunter", interval=5)
        fleet, source, over = there.fleet, there.source, threading.Event()

        def changes():
            turn = 0
            while not over.wait(0.5):
                source.change(source.names[turn * 7 % len(source.names)])
                turn += 1

        steady = threading.Thread(target=changes)
        try:
            start(fleet, 3)
            steady.start()
            for kill in range(20 if FULL else 2):
                node = cluster.primary()
                begin = time.monotonic()
                cluster.kill(node)
                cluster.wait(lambda: cluster.sql("CREATE TABLE IF NOT EXISTS writes(x int)") is not None)
                writes = time.monotonic() - begin

                def told_again(begin=begin):
                    after = {change for change, when in list(source.changes.items()) if when > begin}
                    return after & {(test, source.number(test, at)) for _, _, _, test, at in there.sink.told()}

                fleet.wait(told_again, "nothing is told after the primary was killed")
                told = time.monotonic() - begin
                cluster.start(node)
                cluster.wait_whole()
                note(test="primary killed", kill=kill + 1, node=node, writes_after=round(writes, 1), told_after=round(told, 1),
                     whole_after=round(time.monotonic() - begin, 1))
            over.set()
            steady.join()
            note(test="primary killed, all in all", **finish(there))
        finally:
            over.set()
            there.close()


def test_another_configuration_is_rolled_out(world):
    """Agent by agent; tests come, go and change their meaning. Each change is told once, no test is left out."""
    count = 1000 if FULL else 60
    there = world(count, interval=10 if FULL else 2)
    fleet, source = there.fleet, there.source
    old, new = source.names[: count * 9 // 10], source.names[count // 10:]
    both = sorted(set(old) & set(new))
    fleet.tests = old
    for name in ("a1", "a2", "a3"):
        fleet.start(name, tests=old)
    fleet.started()
    fleet.quiet()
    since = time.monotonic()
    with there.watch() as watch:
        for turn, name in enumerate(("a1", "a2", "a3")):
            for test in both[turn::6]:
                source.change(test)
            detection = "season: none, magnitude: 0.02"
            if name == "a2":  # one loads it, the others are started anew
                fleet.configure(name, new, detection=detection)
                fleet.members[name].process.send_signal(signal.SIGHUP)
            else:
                fleet.end(name)
                fleet.configure(name, new, detection=detection)
                fleet.start(name)
            fleet.started()
            fleet.tests = both
            fleet.quiet()
            for test in both[turn + 3::6]:
                source.change(test)
        fleet.tests = new
        fleet.quiet()
        for test in new[-count // 10:]:
            source.change(test)
    until = time.monotonic()
    waits = [wait for wait in watch.waits(since, until) if wait[1] in both]
    assert not waits or waits[0][0] <= 0, "".join(watch.story(*wait[1:]) for wait in waits[:5])
    twins = source.both(since, until, fleet.interval * 1.2)
    assert not twins or twins[0][0] <= TRUST + there.pulse.lost(*twins[0][2:]), twins[:5]
    fleet.wait(lambda: not any(source.asked_since(test, time.monotonic() - fleet.interval - 2) for test in set(old) - set(new)),
               "a test that no agent has any more is run")
    gap = max(gap[0] for gap in source.gaps(since, until) if gap[1] in both)
    note(test=f"another configuration of {count} tests", **finish(there), gap=round(gap, 1), run_by_two=len(twins),
         longest_by_two=round(twins[0][0], 1) if twins else 0)


def one_each(fleet, tests, of, seconds=6):
    """Each of these tests was run lately, by one agent, which is one of these."""
    processes, since = {fleet.members[name].process.pid for name in of}, time.monotonic() - seconds
    return all(len(by) == 1 and by <= processes for by in
               ({owner for when, owner in list(fleet.source.asked[test]) if when > since} for test in tests))


def test_tests_that_agents_have_differently(world):
    """While one of three has another configuration, the other two run its tests as most have them, and it runs those that only it has."""
    there = world(40, interval=2)
    fleet, source = there.fleet, there.source
    old, new, both = source.names[:35], source.names[5:], source.names[5:35]
    for name in ("a1", "a2", "a3"):
        fleet.start(name, tests=old)
    fleet.tests = old
    fleet.started()
    fleet.quiet()

    def load(name):
        fleet.configure(name, new, detection="season: none, magnitude: 0.02")
        fleet.members[name].process.send_signal(signal.SIGHUP)

    def differing():
        return [fleet.members[name].metric("hunter_fleet_differing_tests") for name in ("a1", "a2", "a3")]

    load("a1")
    fleet.wait(lambda: differing() == [30, 0, 0], "not told which configuration decides")
    fleet.wait(lambda: one_each(fleet, both, ("a2", "a3")) and one_each(fleet, old[:5], ("a2", "a3")) and one_each(fleet, new[-5:], ("a1",)),
               "not each test is run by one agent that has it")
    assert fleet.members["a1"].log.read_text().count("configuration differs from that of most agents") == 1
    for test in source.names:
        source.change(test)
    fleet.settle()
    load("a2")
    fleet.wait(lambda: differing() == [0, 0, 30], "the majority has changed")
    fleet.wait(lambda: one_each(fleet, both, ("a1", "a2")) and one_each(fleet, old[:5], ("a3",)) and one_each(fleet, new[-5:], ("a1", "a2")),
               "not each test is run by one agent that has it")
    load("a3")
    fleet.wait(lambda: differing() == [0, 0, 0] and not there.sql("SELECT 1 FROM singles"), "all have the same")
    fleet.tests = new
    fleet.wait(lambda: one_each(fleet, new, ("a1", "a2", "a3")), "not each test is run by one agent")
    for test in new:
        source.change(test)
    finish(there)
