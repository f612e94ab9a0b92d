"""A mail server on loopback that answers well, except where its script says otherwise.

    with ScriptedSmtp({"RCPT": ["451 later"]}) as server:
        server.url        # smtp://127.0.0.1:PORT

A script maps a command ("CONNECT", "EHLO", "STARTTLS", "AUTH", "MAIL", "RCPT", "DATA", ".", "QUIT") to answers, used up one after
another; None is a good one. In place of an answer: "hang" (until the client leaves), "close", "reset". "." is the end of a
message, "half" a point in its middle. `mails` are the messages that were taken, `seen` all commands.
"""
import collections
import email
import email.policy
import socket
import socketserver
import struct
import threading

from waiting import LONGEST


Mail = collections.namedtuple("Mail", "sender recipients data")

GOOD = {"CONNECT": "220 here", "STARTTLS": "220 go on", "AUTH": "235 welcome", "DATA": "354 go on", "QUIT": "221 bye"}


class Over(Exception):
    """The connection has ended."""


class Dialogue(socketserver.StreamRequestHandler):
    def setup(self):
        self.request.settimeout(LONGEST)
        super().setup()
        self.tls = False

    def handle(self):
        try:
            self.answer("CONNECT")
            while line := self.rfile.readline():
                self.obey(line.decode("utf-8", "replace").rstrip("\r\n"))
        except (Over, OSError):
            pass

    def finish(self):
        try:
            super().finish()
        except OSError:
            pass

    def answer(self, command, good=None):
        """Says what the script says; returns whether that was good."""
        said = self.server.next_answer(command)
        if said == "hang":
            self.server.note("hangs")
            while self.request.recv(4096):
                pass
            raise Over
        if said == "reset":
            self.request.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            self.request.close()
            raise Over
        if said == "close":
            raise Over
        said = said or good or GOOD.get(command, "250 well")
        self.wfile.write(said.encode() + b"\r\n")
        if said.startswith("421"):
            raise Over
        return said[0] in "23"

    def obey(self, line):
        verb = line.split(" ")[0].upper()
        self.server.note(line)
        if verb == "EHLO":
            offers = ["STARTTLS"] if self.server.tls and not self.tls else []
            offers += ["AUTH " + self.server.login] if self.server.login else []
            self.answer("EHLO", "\r\n".join(["250-here", *("250-" + offer for offer in offers), "250 SIZE 10000000"]))
        elif verb == "STARTTLS" and self.answer("STARTTLS"):
            self.request = self.server.tls.wrap_socket(self.request, server_side=True)
            self.rfile, self.wfile = self.request.makefile("rb"), self.request.makefile("wb", 0)
            self.tls = True
        elif verb == "AUTH":
            self.wfile.write(b"334 \r\n")
            self.server.note(self.rfile.readline().decode())
            self.answer("AUTH")
        elif verb == "MAIL" and self.answer("MAIL"):
            self.sender, self.recipients = line[10:].split(" ")[0].strip("<>"), []
        elif verb == "RCPT" and self.answer("RCPT"):
            self.recipients.append(line[8:].strip("<>"))
        elif verb == "DATA" and self.answer("DATA"):
            self.take()
        elif verb == "QUIT":
            self.answer("QUIT")
            raise Over

    def take(self):
        lines = []
        if self.server.has("half"):
            self.rfile.readline()
            self.answer("half")
        while (line := self.rfile.readline()) != b".\r\n":
            if not line:
                raise Over
            assert line.endswith(b"\r\n") and len(line) <= 1000, line
            lines.append(line[1:] if line.startswith(b".") else line)
        mail = Mail(self.sender, self.recipients, b"".join(lines))
        with self.server.changed:
            self.server.received.append(mail)
            self.server.changed.notify_all()
        if self.answer("."):
            with self.server.changed:
                self.server.mails.append(mail)
                self.server.changed.notify_all()


class ScriptedSmtp(socketserver.ThreadingTCPServer):
    allow_reuse_address = daemon_threads = True

    def __init__(self, script=None, tls=None, login=None):
        self.script = {command: list(answers) for command, answers in (script or {}).items()}
        self.tls, self.login = tls, login  # an SSLContext; the mechanisms it offers
        self.mails, self.received, self.seen = [], [], []
        self.changed = threading.Condition()
        super().__init__(("127.0.0.1", 0), Dialogue)
        self.url = f"smtp://127.0.0.1:{self.server_address[1]}"
        threading.Thread(target=self.serve_forever, args=(0.02,), daemon=True).start()

    def has(self, command):
        with self.changed:
            return bool(self.script.get(command))

    def next_answer(self, command):
        with self.changed:
            answers = self.script.get(command)
            return answers.pop(0) if answers else None

    def note(self, line):
        with self.changed:
            self.seen.append(line)
            self.changed.notify_all()

    def wait(self, condition):
        with self.changed:
            assert self.changed.wait_for(condition, LONGEST), (self.seen, self.received)

    def parsed(self):
        return [email.message_from_bytes(mail.data, policy=email.policy.default) for mail in self.mails]

    def __exit__(self, *_):
        self.shutdown()
        self.server_close()
