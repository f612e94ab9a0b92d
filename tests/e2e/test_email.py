"""Mail: with Debian's Exim (STARTTLS, TLS, a login), and with a server that fails as its script says.

What the server did not take is sent again with the same Message-ID; what it refuses for good is said.
"""
import base64
import email
import email.policy
import email.utils
import pathlib
import re
import shutil
import signal
import ssl

import pytest
import servers
from agent import config, csv_test, write_csv
from scripted_smtp import ScriptedSmtp

PASSWORD = "s3cret-canary word"


@pytest.fixture(scope="module")
def exim():
    with servers.exim() as server:
        yield server


@pytest.fixture(scope="module")
def tls(tmp_path_factory):
    """A server's context, with a certificate for localhost that nobody has signed."""
    folder = tmp_path_factory.mktemp("tls")
    servers.certificate(folder)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(folder / "server.crt", folder / "server.key")
    context.file = folder / "server.crt"
    return context


def receiver(url, to="ann@example.com", **more):
    lines = "".join(f"  {key}: {value}\n" for key, value in more.items())
    return f"email:\n  url: {url}\n  from: Perf <perf@example.com>\n  to: [{to}]\n{lines}"


def login(server, **more):
    return {"username": server.user, "password": server.password, "ca_file": server.certificate, "tls": "required", **more}


def one_change(tmp_path, section, name="db.read"):
    write_csv(tmp_path / "a.csv", [(30, 1.2)])
    return config(tmp_path, csv_test(tmp_path / "a.csv", name), section)


def parts(mail):
    """Its text and its HTML."""
    assert mail.get_content_type() == "multipart/alternative"
    text, html = mail.iter_parts()
    if html.get_content_type() == "multipart/related":  # with a picture
        html, picture = html.iter_parts()
        assert (picture.get_content_type(), picture.get_content_disposition()) == ("image/png", "inline")
    assert (text.get_content_type(), html.get_content_type()) == ("text/plain", "text/html")
    return text.get_content(), html.get_content()


# Debian's server.


@pytest.mark.parametrize("how", ["STARTTLS", "TLS"])
def test_a_mail_as_it_arrives(hunter, tmp_path, exim, how):
    (tmp_path / "password").write_text(exim.password + "\n")
    before = len(exim.raw("ann"))
    more = login(exim, password_file=tmp_path / "password", subject_prefix="'[perf]'", reply_to="team@example.com",
                 headers="{X-Team: perf}")
    del more["password"]
    if how == "TLS":
        del more["tls"]
    done = hunter("run", "--once", "--config", one_change(tmp_path, receiver(
        exim.smtp if how == "STARTTLS" else exim.smtps, "Ann Börk <ann@example.com>, bob@example.com", **more)))
    assert done.code == 0 and "msg=sent" in done.err and exim.password not in done.err
    mail = exim.mails("ann", before + 1)[-1]
    assert mail["To"] == "Ann Börk <ann@example.com>, bob@example.com"
    assert (mail["From"], mail["Reply-To"]) == ("Perf <perf@example.com>", "team@example.com")
    assert mail["Subject"] == "[perf] 1 regression in db.read"
    assert mail["Auto-Submitted"] == "auto-generated" and mail["List-Id"] == "hunter-c <hunter-c.example.com>"
    assert mail["X-Hunter-Event"] == "new" and mail["X-Team"] == "perf"
    assert mail["In-Reply-To"] is None and mail["References"] is None
    assert re.fullmatch(r"<[0-9a-f]{32}@example\.com>", mail["Message-ID"])
    assert abs(email.utils.parsedate_to_datetime(mail["Date"]).timestamp() - email.utils.parsedate_to_datetime(
        mail["Received"].split(";")[-1]).timestamp()) < 60
    assert mail.defects == [] and "with esmtpsa" in mail["Received"]
    text, html = parts(mail)
    assert "p99: +20% [19.7, 20.6]  99.84 → 120 ms  regression\n" in text.replace("\r", "")
    assert "+20% [19.7, 20.6]</strong>  99.84 → 120 ms  regression</div>" in html
    assert 'content="light dark"' in html and not re.search(r"<(img(?! src=\"cid:)|link|script|iframe)|url\(", html)
    assert exim.raw("ann")[-1].split(b"\n\n", 1)[0].isascii()
    assert all(len(line) <= 998 for line in exim.raw("ann")[-1].splitlines())


def test_set_up_as_the_docs_say(hunter, tmp_path, exim):
    """The first example of docs/configure/receivers.md, with the server, the login and the certificate of this one; then a mail to try it."""
    before = len(exim.raw("perf-team"))
    docs = (pathlib.Path(__file__).parents[2] / "docs/configure/receivers.md").read_text()
    section = re.search(r"## email\n\n```yaml\n(.*?)```", docs, re.S)[1]
    (tmp_path / "mail").write_text(exim.password + "\n")
    (tmp_path / "mail").chmod(0o600)
    for old, new in (("smtp://mail.example.com:587 ", f"{exim.smtp} "), ("username: perf@example.com", f"username: {exim.user}"),
                     ("/run/secrets/mail", f"{tmp_path}/mail"), ("  from:", f"  ca_file: {exim.certificate}\n  tls: required\n  from:")):
        assert old in section
        section = section.replace(old, new)
    done = hunter("validate", "--receivers", "--config", one_change(tmp_path, section))
    assert done.code == 0 and "\nemail       email" in done.out and "  yes\n" in done.out, done.err
    mail = exim.mails("perf-team", before + 1)[-1]
    assert mail["X-Hunter-Event"] == "test" and mail["To"] == "perf-team@example.com, Ann <ann@example.com>"


def test_what_follows_is_in_the_thread(agents, tmp_path, exim):
    """A later change of the same message, and its recovery, refer to the first mail, also after a restart."""
    before = len(exim.raw("thread"))
    path = config(tmp_path, csv_test(tmp_path / "a.csv"), receiver(exim.smtp, "thread@example.com", **login(exim)))
    write_csv(tmp_path / "a.csv", [(30, 1.2)])
    agent = agents(path)
    exim.mails("thread", before + 1)
    agent.wait_log("msg=sent")
    assert agent.end() == 0
    write_csv(tmp_path / "new.csv", [(30, 1.2), (60, 1 / 1.2)], points=100)
    shutil.move(tmp_path / "new.csv", tmp_path / "a.csv")
    agents(path)
    first, *later = exim.mails("thread", before + 2)[before:]
    over = [mail for mail in later if mail["X-Hunter-Event"] == "recovered"]
    assert len(over) == 1 and over[0]["Message-ID"] != first["Message-ID"]
    assert over[0]["In-Reply-To"] == over[0]["References"] == first["Message-ID"]
    assert over[0]["Subject"].startswith("p99 of db.read is back to")


HOSTILE = ["naïve → Größe", "=?UTF-8?B?aGk=?=", "<b>x</b>&amp;", "." * 200, "名" * 60, "x" * 300]


@pytest.mark.parametrize("name", HOSTILE)
def test_names_from_outside(hunter, tmp_path, exim, name):
    before = len(exim.raw("names"))
    section = receiver(exim.smtp, "names@example.com", **login(exim))
    path = one_change(tmp_path, section, '"%s"' % name)
    assert hunter("run", "--once", "--config", path).code == 0
    mail = exim.mails("names", before + 1)[-1]
    assert mail.defects == [] and mail["Bcc"] is None
    shown = name if len(name) <= 200 else name[:199] + "…"
    text, html = parts(mail)
    assert f"\n  {shown}\n" in text.replace("\r", "")
    assert "<b>" not in html
    assert 10 < len(mail["Subject"]) < 100
    assert mail["Subject"].startswith(("1 regression in " + name)[:90])


def test_login_that_is_wrong(hunter, tmp_path, exim):
    """Said without the password, kept, and sent when it is right."""
    before = len(exim.raw("wrong"))
    path = one_change(tmp_path, receiver(exim.smtp, "wrong@example.com", **login(exim, password="wr0ng-canary")))
    done = hunter("run", "--once", "--config", path)
    assert done.code == 2 and "login refused: 535 Incorrect authentication data" in done.err and "wr0ng" not in done.err
    path.write_text(path.read_text().replace("wr0ng-canary", exim.password))
    assert hunter("run", "--once", "--config", path).code == 0
    assert len(exim.mails("wrong", before + 1)) == before + 1


def test_certificate_that_nobody_trusts(hunter, tmp_path, exim):
    for url in exim.smtp, exim.smtps:
        path = one_change(tmp_path, receiver(url, "trust@example.com", username=exim.user, password=exim.password, **(
            {"tls": "required"} if url == exim.smtp else {})))
        done = hunter("run", "--once", "--config", path)
        assert done.code == 3, done.err
        assert "ca_file sets the certificates to trust" in done.err
    assert exim.raw("trust") == []


def test_certificate_for_another_name(hunter, tmp_path, exim):
    section = receiver(exim.smtp.replace("localhost", "127.0.0.1"), "name@example.com", **login(exim))
    path = one_change(tmp_path, section)
    done = hunter("run", "--once", "--config", path)
    assert done.code == 3 and "server_name sets the name that the certificate must have" in done.err
    path.write_text(path.read_text().replace("email:\n", "email:\n  server_name: localhost\n"))
    assert hunter("run", "--once", "--config", path).code == 0
    assert len(exim.mails("name", 1)) == 1


def test_one_of_several_is_unknown(hunter, tmp_path, exim):
    before = len(exim.raw("known"))
    path = one_change(tmp_path, receiver(exim.smtp, "known@example.com, nobody@example.com", **login(exim)))
    done = hunter("run", "--once", "--config", path)
    assert done.code == 0 and "nobody@example.com was refused (550 no such user)" in done.err
    assert len(exim.mails("known", before + 1)) == before + 1


# A server that fails.

PASSING = {
    "421 at the beginning": ({"CONNECT": ["421 busy"]}, "connection refused: 421 busy"),
    "421 later": ({"RCPT": ["421 going down"]}, "recipients refused: 421 going down"),
    "451": ({"MAIL": ["451 try later"]}, "sender refused: 451 try later"),
    "450 for all": ({"RCPT": ["450 greylisted", "550 unknown"]}, "recipients refused: 450 greylisted"),
    "452 at the end": ({".": ["452 disk full"]}, "message refused: 452 disk full"),
    "closed": ({"CONNECT": ["close"]}, "will retry"),
    "reset": ({"EHLO": ["reset"]}, "will retry"),
    "reset before the message": ({"DATA": ["reset"]}, "will retry"),
    "no SMTP": ({"CONNECT": ["HTTP/1.1 400 what"]}, "will retry"),
    "nonsense": ({"MAIL": ["\x1b[31mwhat\x00"]}, "will retry"),
    "454 for TLS": ({"STARTTLS": ["454 no TLS now"]}, "TLS refused: 454 no TLS now"),
}


@pytest.mark.parametrize("case", PASSING)
def test_what_passes_is_sent_again(agents, tmp_path, tls, case):
    script, words = PASSING[case]
    with ScriptedSmtp(script, tls=tls) as server:
        more = {"tls": "required", "ca_file": tls.file, "server_name": "localhost"} if "STARTTLS" in script else {}
        agent = agents(one_change(tmp_path, receiver(server.url, "ann@example.com, bob@example.com", timeout="3s", **more)))
        assert "wait_ms=1000" in agent.wait_log(re.escape(words))
        agent.wait_log("msg=sent")
        assert agent.end() == 0
        assert [mail.recipients for mail in server.mails] == [["ann@example.com", "bob@example.com"]]
        assert not [line for line in agent.log if "\x1b" in line or "\x00" in line]


CONFIGURED = {
    "535": (dict(script={"AUTH": ["535 no"]}, login="PLAIN"), "login refused: 535 no"),
    "530": (dict(script={"MAIL": ["530 authenticate first"]}), "sender refused: 530 authenticate first"),
    "sender": (dict(script={"MAIL": ["550 not yours"]}), "sender refused: 550 not yours"),
    "everybody": (dict(script={"RCPT": ["550 unknown", "551 moved"]}), "recipients refused: 551 moved"),
    "554 at the beginning": (dict(script={"CONNECT": ["554 blocked"]}), "connection refused: 554 blocked"),
    "is not a login": (dict(login="MOON"), "offers no supported login method"),
}


@pytest.mark.parametrize("case", CONFIGURED)
def test_what_the_configuration_must_change_is_said_and_kept(hunter, tmp_path, case):
    arguments, words = CONFIGURED[case]
    with ScriptedSmtp(**arguments) as server:
        more = {"username": "ann", "password": PASSWORD} if "login" in words else {}
        path = one_change(tmp_path, receiver(server.url, "ann@example.com, bob@example.com", **more))
        done = hunter("run", "--once", "--config", path)
        assert done.code == 2 and words in done.err and PASSWORD not in done.err
        assert server.mails == []
        server.login = "PLAIN" if more else None
        assert hunter("run", "--once", "--config", path).code == 0
        assert len(server.mails) == 1


def test_a_message_that_is_refused_is_given_up(hunter, tmp_path):
    with ScriptedSmtp({".": ["554 looks like spam"]}) as server:
        path = one_change(tmp_path, receiver(server.url))
        done = hunter("run", "--once", "--config", path)
        assert "delivery given up" in done.err and "message refused: 554 looks like spam" in done.err
        hunter("run", "--once", "--config", path)
        assert server.mails == [] and len(server.received) == 1


def test_some_are_put_off(agents, tmp_path):
    """Those who were taken get it once, the others as soon as they are taken: the same mail."""
    script = {"RCPT": [None, "450 later", "550 unknown", "450 still later", None]}
    with ScriptedSmtp(script) as server:
        agent = agents(one_change(tmp_path, receiver(server.url, "ann@example.com, bob@example.com, eve@example.com")))
        agent.wait_log(r"eve@example.com was refused \(550 unknown\)")
        agent.wait_log("recipients refused: 450 still later")
        agent.wait_log("msg=sent")
        agent.pass_by()
        assert agent.end() == 0
        assert [mail.recipients for mail in server.mails] == [["ann@example.com"], ["bob@example.com"]]
        first, second = server.parsed()
        assert first["Message-ID"] == second["Message-ID"] and first["To"] == second["To"]


def test_put_off_and_then_refused(hunter, tmp_path):
    with ScriptedSmtp({"RCPT": [None, "450 later", "550 unknown after all"]}) as server:
        path = one_change(tmp_path, receiver(server.url, "ann@example.com, bob@example.com"))
        done = hunter("run", "--once", "--config", path)
        assert done.code == 0 and "bob@example.com was refused (550 unknown after all)" in done.err
        assert [mail.recipients for mail in server.mails] == [["ann@example.com"]]


@pytest.mark.parametrize("script", [{"half": ["reset"]}, {".": ["reset"]}, {".": ["close"]}, {".": ["hang"]}],
                         ids=["reset in the middle", "reset at the end", "closed at the end", "no answer"])
def test_what_may_have_arrived_is_sent_again_as_the_same_mail(hunter, tmp_path, script):
    """There is nobody to ask: a minute later, and with the same Message-ID."""
    with ScriptedSmtp(script) as server:
        path = one_change(tmp_path, receiver(server.url, timeout="2s"))
        done = hunter("run", "--once", "--config", path)
        assert done.code == 3 and "wait_ms=60000" in done.err
        assert hunter("run", "--once", "--config", path).code == 0
        sent = [email.message_from_bytes(m.data, policy=email.policy.default) for m in server.received]
        assert len(server.mails) == 1 and len({mail["Message-ID"] for mail in sent}) == 1
        assert len({(mail["Date"], mail["Subject"]) for mail in sent}) == 1


@pytest.mark.parametrize("where", ["CONNECT", "EHLO", "MAIL", "RCPT", "DATA"])
def test_a_server_that_hangs(hunter, tmp_path, where):
    with ScriptedSmtp({where: ["hang"]}) as server:
        path = one_change(tmp_path, receiver(server.url, timeout="1s"))
        done = hunter("run", "--once", "--config", path)
        assert done.code == 0 and "wait_ms=1000" in done.err and ("within 1s" in done.err)
        assert len(server.mails) == 1


def test_a_server_that_says_no_farewell(hunter, tmp_path):
    with ScriptedSmtp({"QUIT": ["hang"]}) as server:
        done = hunter("run", "--once", "--config", one_change(tmp_path, receiver(server.url)))
        assert done.code == 0 and "retry" not in done.err
        assert len(server.mails) == 1


def test_a_server_that_hangs_delays_nobody(agents, tmp_path):
    """While it hangs at the end of a message, others are told, and the agent answers."""
    with ScriptedSmtp({".": ["hang"]}) as slow, ScriptedSmtp() as quick:
        section = "receivers:\n" + "".join(
            f"  {name}:\n" + "".join("    " + line + "\n" for line in receiver(server.url).splitlines())
            for name, server in (("slow", slow), ("quick", quick)))
        agent = agents(one_change(tmp_path, section))
        slow.wait(lambda: slow.received)
        quick.wait(lambda: quick.mails)
        agent.wait_log("msg=sent receiver=quick")
        agent.pass_by()
        assert agent.get("/-/healthy")[0] == 200
        assert not [line for line in agent.log if "receiver=slow" in line]
        assert agent.end(signal.SIGKILL) == -signal.SIGKILL


@pytest.mark.parametrize("event", ["new", "recovered"])
@pytest.mark.parametrize("where", ["CONNECT", "EHLO", "MAIL", "RCPT", "DATA", ".", "QUIT"])
def test_killed_before_an_answer(agents, tmp_path, where, event):
    """Wherever the agent dies, the mail arrives after the restart; once, unless the server had it: then it is the same mail."""
    with ScriptedSmtp() as server:
        path = one_change(tmp_path, receiver(server.url))
        if event == "recovered":
            agent = agents(path)
            agent.wait_log("msg=sent")
            assert agent.end() == 0
            write_csv(tmp_path / "new.csv", [(30, 1.2), (60, 1 / 1.2)], points=100)
            shutil.move(tmp_path / "new.csv", tmp_path / "a.csv")
        server.script = {where: ["hang"]}
        agent = agents(path)
        server.wait(lambda: "hangs" in server.seen)
        assert agent.end(signal.SIGKILL) == -signal.SIGKILL
        again = agents(path)
        again.wait_log("msg=sent")
        again.pass_by(1)
        assert again.end() == 0
        sent = [email.message_from_bytes(m.data, policy=email.policy.default) for m in server.received]
        told = [mail for mail in sent if mail["X-Hunter-Event"] == event]
        assert len(told) == (2 if where in (".", "QUIT") else 1) and len({mail["Message-ID"] for mail in told}) == 1
        if event == "recovered":
            assert told[0]["In-Reply-To"] == sent[0]["Message-ID"]


def test_login_by_a_token(hunter, tmp_path):
    (tmp_path / "token").write_text("t0ken-canary\n")
    with ScriptedSmtp(login="XOAUTH2") as server:
        path = one_change(tmp_path, receiver(server.url, bearer_token_file=tmp_path / "token"))
        done = hunter("run", "--once", "--config", path)
        assert done.code == 0, done.err
        said = server.seen[server.seen.index("AUTH XOAUTH2") + 1]
        assert base64.b64decode(said) == b"user=perf@example.com\x01auth=Bearer t0ken-canary\x01\x01"
        assert "t0ken" not in done.err and len(server.mails) == 1


# TLS.


def test_a_server_without_tls_gets_nothing(hunter, tmp_path):
    """Neither the password nor the mail; `tls: none` allows it."""
    with ScriptedSmtp(login="PLAIN") as server:
        section = receiver(server.url, username="hunter", password=f"'{PASSWORD}'", tls="required")
        path = one_change(tmp_path, section)
        done = hunter("run", "--once", "--config", path)
        assert done.code == 2 and "the server does not offer STARTTLS" in done.err
        assert {line.split(" ")[0] for line in server.seen} <= {"EHLO", "QUIT"}
        path.write_text(path.read_text().replace("tls: required", "tls: none"))
        assert hunter("run", "--once", "--config", path).code == 0
        assert len(server.mails) == 1


def test_answers_before_tls_do_not_count(hunter, tmp_path, tls):
    """What somebody has put into the connection before the handshake is not taken for the server's."""
    with ScriptedSmtp({"STARTTLS": ["220 go on\r\n250 well\r\n250 well"]}, tls=tls) as server:
        path = one_change(tmp_path, receiver(server.url, tls="required", ca_file=tls.file, server_name="localhost", timeout="2s"))
        hunter("run", "--once", "--config", path)
        assert all(mail.sender == "perf@example.com" for mail in server.mails) and len(server.mails) <= 1


# The configuration.

WRONG = {
    "url: http://mail.example": "url: it must begin with smtp:// or smtps://",
    "url: mail.example:25": "url: it must begin with smtp:// or smtps://",
    "url: smtps://mail.example, tls: none": "tls: none contradicts smtps://",
    "from: perf": 'from: "perf" is not an address',
    "from: 'Perf <perf@exam ple>'": "is not an address",
    "to: [ann]": 'to: "ann" is not an address',
    'to: ["a@b.c>\\r\\nRCPT TO:<eve@b.c"]': "is not an address",
    "to: []": '"to" is missing',
    "reply_to: x": 'reply_to: "x" is not an address',
    "tls: maybe": "tls",
    "headers: {bcc: eve@example.com}": "headers: Bcc cannot be set here",
    "subject_prefix: '01234567890123456789012345678901234567890'": "subject_prefix: it is longer than 40 characters",
}


@pytest.mark.parametrize("case", WRONG)
def test_what_is_wrong_is_said_with_its_key(hunter, tmp_path, case):
    good = {"url": "smtp://mail.example", "from": "perf@example.com", "to": "[ann@example.com]"}
    said = dict(pair.split(": ", 1) for pair in re.split(r", (?=\w+: )", case))
    section = "email: {" + ", ".join(f"{key}: {value}" for key, value in (good | said).items()) + "}"
    write_csv(tmp_path / "a.csv", [])
    done = hunter("validate", "--config", config(tmp_path, csv_test(tmp_path / "a.csv"), section))
    assert done.code == 2 and WRONG[case] in done.out + done.err


def test_a_password_in_the_clear_is_warned_of(hunter, tmp_path):
    section = receiver("smtp://mail.example", tls="none", username="ann", password=f"'{PASSWORD}'")
    done = hunter("validate", "--config", one_change(tmp_path, section))
    assert "tls: none sends the password to another host without TLS" in done.out + done.err
    done = hunter("validate", "--config", one_change(tmp_path, section.replace("mail.example", "localhost")))
    assert "without TLS" not in done.out + done.err


def test_tls_where_none_was_expected(hunter, tmp_path, exim):
    path = one_change(tmp_path, receiver(exim.smtps.replace("smtps:", "smtp:"), timeout="1s"))
    assert "(is it smtps:// ?)" in hunter("run", "--once", "--config", path).err
    path = one_change(tmp_path, receiver(exim.smtp.replace("smtp:", "smtps:"), timeout="5s"))
    assert "(the server does not speak TLS at once: is it smtp:// ?)" in hunter("run", "--once", "--config", path).err
