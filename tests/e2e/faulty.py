"""A server on loopback that answers as broken servers, proxies and networks do.

A request is for the fault whose word stands in it ("fault_reset" anywhere in the path or the body: a query, a target), and
every other request is answered well, so that good and bad tests run side by side; while the server is `well`, all are, and
while it has a `mood`, all are for that fault. What was asked is kept in `requests`, and `times_of(fault)` tells when. No fault
goes on for longer than its client stays, nor than LONGEST seconds.
"""
import collections
import datetime
import email.utils
import gzip
import http.client
import re
import socket
import socketserver
import struct
import threading
import time
import zlib

from waiting import LONGEST, pause

GIGABYTE = 1 << 30
WORD = re.compile(rb"fault_([a-z_]+)")


def http_head(status, length=None, headers=()):
    lines = [f"HTTP/1.1 {status} {http.client.responses.get(status, 'Unknown')}", "Content-Type: application/json", *headers]
    if length is not None:
        lines.append(f"Content-Length: {length}")
    return ("\r\n".join(lines) + "\r\n\r\n").encode()


def http_answer(status, body, headers=()):
    return http_head(status, len(body), headers) + body


def bomb():
    """Some MB of gzip that are a GB of blanks: a block that may follow itself, as it begins and ends at a full flush."""
    packer = zlib.compressobj(9, zlib.DEFLATED, -15)
    block = packer.compress(b" " * (1 << 20)) + packer.flush(zlib.Z_FULL_FLUSH)
    return b"\x1f\x8b\x08\0\0\0\0\0\0\xff" + block * (GIGABYTE >> 20)


def zstd(data):
    """A frame of one block that is stored as it is."""
    assert len(data) < 1 << 17
    return b"\x28\xb5\x2f\xfd\xa0" + struct.pack("<I", len(data)) + struct.pack("<I", len(data) << 3 | 1)[:3] + data


class Connection(socketserver.BaseRequestHandler):
    """Requests of one connection, one after another."""

    def setup(self):
        self.request.settimeout(LONGEST)
        self.pending = b""

    def handle(self):
        with self.server.room:
            try:
                while self.serve_one():
                    pass
            except OSError:
                pass  # the client has gone: most faults end so

    def receive(self):
        """A whole request as bytes; b"" at the end."""
        data = self.pending
        while b"\r\n\r\n" not in data:
            more = self.request.recv(65536)
            if not more:
                return b""
            data += more
        head, body = data.split(b"\r\n\r\n", 1)
        length = re.search(rb"(?i)\r\ncontent-length: (\d+)", head)
        length = int(length[1]) if length else 0
        while len(body) < length:
            body += self.request.recv(65536)
        self.pending = body[length:]
        return head + b"\r\n\r\n" + body[:length]

    def serve_one(self):
        request = self.receive()
        if not request:
            return False
        self.accepts = re.search(rb"(?i)\r\naccept-encoding: ([^\r]*)", request)
        word = WORD.search(request)
        fault = self.server.mood or (word[1].decode() if word else None)
        count = self.server.note(fault, request)
        self.asked, good = request, self.server.good(request)
        if not fault or self.server.well:
            self.request.sendall(http_answer(200, good))
            return True
        return getattr(self, fault)(good, count)

    # Each fault: (the good body, how many times it was asked before) -> whether the connection goes on.

    def cut_body(self, good, _):
        self.request.sendall(http_head(200, len(good)) + good[:-30])

    def cut_chunk(self, good, _):
        self.request.sendall(http_head(200, headers=["Transfer-Encoding: chunked"]) + b"%x\r\n" % len(good) + good[:-30])

    def cut_unannounced(self, good, _):
        self.request.sendall(http_head(200, headers=["Connection: close"]) + good[:-30])

    def half_close(self, good, _):
        """No more will come, but the connection stays open in the other direction."""
        self.request.sendall(http_head(200, len(good)) + good[:-30])
        self.request.shutdown(socket.SHUT_WR)
        self.request.recv(1)

    def drip(self, good, _):
        self.request.sendall(http_head(200, len(good)))
        for i in range(len(good)):
            self.request.sendall(good[i:i + 1])
            pause(0.02, "it drips")

    def silence(self, *_):
        self.request.recv(1)

    def reset(self, *_):
        """A reset instead of an answer."""
        self.request.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.request.close()

    def reset_within(self, good, _):
        self.request.sendall(http_head(200, len(good)) + good[:-30])
        self.reset()

    def huge(self, good, _):
        """A GB that is not announced and begins well."""
        self.request.sendall(http_head(200, headers=["Connection: close"]) + good[:-2])
        blanks = b" " * (1 << 20)
        for _ in range(GIGABYTE >> 20):
            self.request.sendall(blanks)

    def huge_announced(self, good, _):
        self.request.sendall(http_head(200, GIGABYTE) + good)

    def bomb(self, *_):
        data = self.server.bomb()
        self.request.sendall(http_head(200, len(data), ["Content-Encoding: gzip"]) + data)

    def packed(self, good, _):
        """No fault: gzip."""
        self.request.sendall(http_answer(200, gzip.compress(good), ["Content-Encoding: gzip"]))
        return True

    def packed_by_zstd(self, good, _):
        """No fault, if it is asked for: libcurl may lack it."""
        asked = self.accepts and b"zstd" in self.accepts[1]
        self.request.sendall(http_answer(200, zstd(good), ["Content-Encoding: zstd"]) if asked else http_answer(200, good))
        return True

    def bad_gzip(self, good, _):
        self.request.sendall(http_answer(200, b"\x1f\x8b\x08" + good, ["Content-Encoding: gzip"]))
        return True

    def page(self, *_):
        body = b"<!DOCTYPE html><html><body><form>Please sign in, <b>canary</b></form></body></html>"
        self.request.sendall(http_answer(200, body).replace(b"application/json", b"text/html"))
        return True

    def overflow(self, good, _):
        """The third value is beyond a double."""
        self.request.sendall(http_answer(200, self.server.kind.with_value(good, b"1e9999")))
        return True

    def stamp(self, good, _):
        self.request.sendall(http_answer(200, self.server.kind.with_stamp(good, b"1e9999")))
        return True

    def latin(self, good, _):
        self.request.sendall(http_answer(200, good.replace(b"matrix", b"m\xe4trix")))
        return True

    def nul(self, good, _):
        self.request.sendall(http_answer(200, good.replace(b"good", b"g\0\0d")))
        return True

    def deep(self, good, _):
        self.request.sendall(http_answer(200, b"[" * 100000 + b"]" * 100000))
        return True

    def deep_within(self, good, _):
        """In place of a known part: arrays that are never closed."""
        self.request.sendall(http_answer(200, good[:-2] + b',{"more":' * 50000))
        return True

    def empty(self, *_):
        self.request.sendall(http_answer(200, b""))
        return True

    def no_content(self, *_):
        self.request.sendall(http_answer(204, b""))
        return True

    def alien(self, *_):
        self.request.sendall(b"SSH-2.0-OpenSSH_9.2\r\n")

    def long_head(self, *_):
        self.request.sendall(b"HTTP/1.1 200 OK\r\n" + b"X-More: %s\r\n" % (b"x" * 1000) * 5000 + b"\r\n")

    def always(self, *_):
        self.request.sendall(http_answer(500, b"the disk is full\nand more"))
        return True

    def then_good(self, good, count, status=500, headers=()):
        self.request.sendall(http_answer(200, good) if count else http_answer(status, b"not now", headers))
        return True

    def busy(self, good, count):
        return self.then_good(good, count, 503)

    def limit(self, good, count):
        return self.then_good(good, count, 429)

    def limit_zero(self, good, count):
        return self.then_good(good, count, 429, ["Retry-After: 0"])

    def limit_one(self, good, count):
        return self.then_good(good, count, 429, ["Retry-After: 1"])

    def limit_date(self, good, count):
        now = datetime.datetime.now(datetime.timezone.utc)
        stamps = [email.utils.format_datetime(now + datetime.timedelta(seconds=s), usegmt=True) for s in (0, 1)]
        return self.then_good(good, count, 429, [f"Date: {stamps[0]}", f"Retry-After: {stamps[1]}"])

    def limit_past(self, good, count):
        return self.then_good(good, count, 429, ["Retry-After: Fri, 31 Dec 1999 23:59:59 GMT"])

    def limit_rubbish(self, good, count):
        return self.then_good(good, count, 429, ["Retry-After: soon, I hope; -1"])

    def limit_hour(self, good, count):
        return self.then_good(good, count, 429, ["Retry-After: 3600"])

    def limit_ever(self, *_):
        self.request.sendall(http_answer(429, b"slow down", ["Retry-After: 0"]))
        return True

    def lacking(self, good, _):
        """Part of the data, and it says so."""
        self.request.sendall(http_answer(200, self.server.kind.lacking(good)))
        return True

    def nothing(self, *_):
        """No series, as of a server that has lost its data; the status is 200 all the same."""
        self.request.sendall(http_answer(200, self.server.kind.nothing))
        return True

    def late(self, *_):
        """Only the first half of the points, as of a replica that is behind."""
        self.request.sendall(http_answer(200, self.server.kind.good(self.asked, 2)))
        return True

    def redirect(self, *_):
        """To another origin, which would answer well."""
        self.request.sendall(http_answer(302, b"", [f"Location: {self.server.elsewhere}/login?fault_page"]))
        return True

    def loop(self, *_):
        """To where it came from. It asks for the same still, if the server is well again by then."""
        path = self.asked.split(b" ", 2)[1].decode()
        if "fault_loop" not in path:
            path += ("&" if "?" in path else "?") + "fault_loop"
        self.request.sendall(http_answer(302, b"", [f"Location: {path}"]))
        return True


class Server(socketserver.ThreadingTCPServer):
    """`kind` says what a good answer is (good(request) -> bytes) and how to break a point of it."""
    allow_reuse_address = daemon_threads = True
    request_queue_size = 256

    def __init__(self, kind, elsewhere=None, tls=None):
        self.tls = tls  # a server's SSLContext
        self.kind, self.elsewhere, self.good, self.well = kind, elsewhere, kind.good, False
        self.mood = None
        self.requests, self.times = [], collections.defaultdict(list)
        self.room, self.lock, self.bytes = threading.BoundedSemaphore(200), threading.Lock(), None
        super().__init__(("127.0.0.1", 0), Connection)
        self.url = f"{'https' if tls else 'http'}://127.0.0.1:{self.server_address[1]}"
        threading.Thread(target=self.serve_forever, args=(0.02,), daemon=True).start()

    def get_request(self):
        connection, address = super().get_request()
        if self.tls:
            connection = self.tls.wrap_socket(connection, server_side=True, do_handshake_on_connect=False)
        return connection, address

    def note(self, fault, request):
        """Keeps the request; returns how many there were before of this fault."""
        with self.lock:
            self.requests.append(request)
            self.times[fault].append(time.monotonic())
            return len(self.times[fault]) - 1

    def times_of(self, fault):
        with self.lock:
            return list(self.times[fault])

    def bomb(self):
        with self.lock:
            self.bytes = self.bytes or bomb()
            return self.bytes

    def handle_error(self, request, client_address):
        """What a client does is what the tests look at; a fault of this file shows as a test that fails."""

    def __exit__(self, *_):
        self.shutdown()
        self.server_close()
