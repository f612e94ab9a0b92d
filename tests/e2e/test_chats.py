"""Microsoft Teams, Mattermost and Discord: each message once, within the limits, with nothing from outside as markup."""
import json
import re

import pytest
from agent import config, csv_test, write_csv
from fake_chats import Discord, Mattermost, Teams

KINDS = {"msteams": Teams, "mattermost": Mattermost, "discord": Discord}
HOSTILE = "p99 @everyone @here <@1> [x](https://evil.example) **b** www.evil.example #12"


@pytest.fixture(params=KINDS)
def chat(request):
    chat = KINDS[request.param]()
    chat.kind = request.param
    yield chat
    chat.stop()
    assert chat.violations == []


def section(chat, **options):
    return f"{chat.kind}: {json.dumps({'url': chat.webhook} | options)}"


def words(post):
    """All text of a post."""
    if isinstance(post, str):
        return post
    return "".join(words(v) for v in (post.values() if isinstance(post, dict) else post if isinstance(post, list) else []))


def test_a_change_is_told_once(agents, tmp_path, chat):
    write_csv(tmp_path / "a.csv", [(30, 1.2)])
    agent = agents(config(tmp_path, csv_test(tmp_path / "a.csv"), section(chat)))
    agent.wait_log("msg=sent")
    agent.pass_by()
    assert len(chat.posts) == 1
    text = words(chat.posts[0])
    assert "db.read" in text and "p99" in text and re.search(r"\+20%", text) and "c0029" in text
    agent.end()
    assert chat.SECRET not in "".join(agent.log + agent.out)


def test_names_are_no_markup(agents, tmp_path, chat):
    write_csv(tmp_path / "a.csv", [(30, 1.2)], name=HOSTILE)
    metrics = csv_test(tmp_path / "a.csv").replace("{p99:", f'{{{json.dumps(HOSTILE)}:')
    agents(config(tmp_path, metrics, section(chat))).wait_log("msg=sent")
    assert "everyone" in words(chat.posts[0])


def test_many_changes_are_counted(agents, tmp_path, chat):
    """300 tests at once: those that fit, and how many there are besides."""
    tests = ""
    write_csv(tmp_path / "a.csv", [(30, 1.2)])
    for i in range(300):
        tests += csv_test(tmp_path / "a.csv", f"test.{i:03d}.of.quite.a.long.name")
    path = config(tmp_path, tests, section(chat))
    path.write_text(path.read_text().replace("group_wait: 0s", "group_wait: 5s"))
    agents(path).wait_log("msg=sent")
    text = words(chat.posts[0])
    left = re.search(r"(\d+) more change points are left out", text)
    assert left and int(left[1]) + len(re.findall(r"\+20%", text)) == 300


def test_what_passes_is_tried_again(agents, tmp_path, chat):
    chat.answers = [(503, {}, "busy"), (429, {"Retry-After": "1"}, {"retry_after": 0.4})]
    write_csv(tmp_path / "a.csv", [(30, 1.2)])
    agents(config(tmp_path, csv_test(tmp_path / "a.csv"), section(chat))).wait_log("msg=sent")
    assert len(chat.posts) == 1


def test_a_lost_answer(agents, tmp_path, chat):
    """Nobody can be asked: it is sent again, after a while."""
    chat.answers = ["close"]
    write_csv(tmp_path / "a.csv", [(30, 1.2)])
    agent = agents(config(tmp_path, csv_test(tmp_path / "a.csv"), section(chat)))
    assert "wait_ms=60000" in agent.wait_log("delivery failed, will retry")
    assert len(chat.posts) == 1


def test_a_wrong_address_waits_for_the_configuration(agents, tmp_path, chat):
    write_csv(tmp_path / "a.csv", [(30, 1.2)])
    wrong = section(chat).replace(chat.SECRET, "wr-ong0123456789")
    agent = agents(config(tmp_path, csv_test(tmp_path / "a.csv"), wrong))
    line = agent.wait_log("level=error|error msg|configuration")
    assert "wr-ong" not in line and chat.posts == []


def named_in(post, names):
    return [name for name in names if re.search(rf"\bdb\.{name}\b", words(post))]


def test_what_joins_is_told_together(hunter, tmp_path, chat, hook, clock):
    """A chat without threads is told of what joins an incident together: when something twice as bad joins, or after group_interval; a webhook
    of each at once. Each is told once, whoever runs in between."""
    def run(**steps):
        for name, factor in steps.items():
            write_csv(tmp_path / f"{name}.csv", [(30, factor)])
            tests.append(csv_test(tmp_path / f"{name}.csv", f"db.{name}"))
        sections = f'{section(chat)}\nwebhook: {{url: "{hook.url}"}}'
        before = len(chat.posts), len(hook.taken)
        result = hunter("run", "--once", "--config", config(tmp_path, "".join(tests), sections, "  group_interval: 1h"), "--log-level", "debug",
                        env=clock.environment)
        assert result.code == 0, result.err
        names = [re.search(r"db\.(\w+):", test)[1] for test in tests]
        return ([named_in(post, names) for post in chat.posts[before[0]:]],
                [sorted(c["test"][3:] for c in json.loads(body)["changes"]) for _, body, _ in hook.taken[before[1]:]], result.err)

    tests = []
    assert run(first=1.2)[:2] == ([["first"]], [["first"]])
    chats, hooks, log = run(second=1.1)
    assert (chats, hooks) == ([], [["second"]])
    assert f'receiver={chat.kind} reason="some receivers get it together with others of its incident"' in log
    assert run()[:2] == ([], [])
    assert run(third=1.15)[:2] == ([], [["third"]])
    chats, hooks, _ = run(fourth=1.9)
    assert len(chats) == 1 and set(chats[0]) - {"first"} == {"second", "third", "fourth"}, "the first, as what they are more of"
    assert hooks == [["fourth"]]
    assert run(fifth=1.3)[:2] == ([], [["fifth"]])
    clock.turn(3599)
    assert run()[:2] == ([], [])
    clock.turn(3700)
    chats, hooks, _ = run()
    assert (len(chats), "fifth" in chats[0], hooks) == (1, True, [])
    assert run()[:2] == ([], [])
    changes = json.loads(hunter("changes", "--config", tmp_path / "hunter.yaml", "--output", "json").out)["changes"]
    assert len({c["incident"] for c in changes}) == 1 and len(changes) == 5
