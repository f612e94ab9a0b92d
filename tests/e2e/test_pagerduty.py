"""Changes as incidents of PagerDuty: triggered once, acknowledged, resolved, and open again."""
import pytest
from fake_pagerduty import FakePagerDuty
from test_run import agents, config, csv_test, write_csv  # noqa: F401 (agents is a fixture)

KEY = "c4n4ry00c4n4ry00c4n4ry00c4n4ry00"


@pytest.fixture
def pagerduty():
    with FakePagerDuty(KEY) as fake:
        yield fake
        assert fake.violations == []


def section(fake, key=KEY):
    return f'pagerduty: {{routing_key: {key}, url: "{fake.url}"}}'


def test_an_incident_for_a_message(hunter, tmp_path, pagerduty):
    for name, factor in (("a", 1.2), ("b", 1.5)):
        write_csv(tmp_path / f"{name}.csv", [(30, factor)])
    tests = "".join(csv_test(tmp_path / f"{n}.csv", f"db.{n}", '    runbook: "https://x.test/{test}"') for n in "ab")
    path = config(tmp_path, tests, section(pagerduty))
    result = hunter("run", "--once", "--config", path)
    assert result.code == 0, result.err
    assert list(pagerduty.incidents.values()) == ["triggered"]
    event, = pagerduty.events
    assert event["payload"]["component"] == "db.b" and event["payload"]["class"] == "performance regression"
    assert event["payload"]["custom_details"]["size"].startswith("+50")
    assert "db.a" in event["payload"]["custom_details"]["changes"]
    assert {link["href"] for link in event["links"]} == {"https://x.test/db.a", "https://x.test/db.b"}
    assert KEY not in (tmp_path / "state.db").read_bytes().decode("latin-1") and KEY not in result.err + result.out


def test_too_fast(agents, tmp_path, pagerduty):
    """429: the event follows when PagerDuty has said so."""
    write_csv(tmp_path / "a.csv", [(30, 1.2)])
    pagerduty.answers = [(429, '{"status":"throttle exceeded","message":"Requests for this service are arriving too quickly."}',
                          {"Retry-After": "1"})]
    agent = agents(config(tmp_path, csv_test(tmp_path / "a.csv"), section(pagerduty)))
    agent.wait_log("delivery failed, will retry")
    pagerduty.wait(lambda: pagerduty.incidents)


def test_a_wrong_routing_key_is_said_and_kept(hunter, tmp_path, pagerduty):
    write_csv(tmp_path / "a.csv", [(30, 1.2)])
    path = config(tmp_path, csv_test(tmp_path / "a.csv"), section(pagerduty, "wr0ng000" * 4))
    result = hunter("run", "--once", "--config", path)
    assert result.code == 2 and "Invalid routing key" in result.err and "wr0ng000" not in result.err
    config(tmp_path, csv_test(tmp_path / "a.csv"), section(pagerduty))
    assert hunter("run", "--once", "--config", path).code == 0
    assert list(pagerduty.incidents.values()) == ["triggered"]
