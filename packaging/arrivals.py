#!/usr/bin/env python3
"""Notifies hunter-c of data written to Graphite or Prometheus, so that the tests that read them run at once.

    arrivals.py carbon --listen 127.0.0.1:2103 --agent http://127.0.0.1:9469
    arrivals.py remote-write --listen 127.0.0.1:9471 --agent http://127.0.0.1:9469 --token-file /etc/hunter-c/token

carbon: an additional destination of a relay that sends lines (carbon-relay with DESTINATION_PROTOCOL = line, carbon-c-relay, statsd);
each path is announced. remote-write: an additional remote_write of Prometheus; write_relabel_configs select the names:

    remote_write:
      - url: http://127.0.0.1:9471/
        write_relabel_configs: [{source_labels: [__name__], regex: "bench_.*", action: keep}]

Names are collected for --wait seconds and sent once, then again after --again seconds at the earliest. While the agent does not answer
up to a million are kept. Needs only Python's standard library. An example: adapt it freely.
"""
import argparse
import gzip
import http.server
import json
import socketserver
import sys
import threading
import time
import urllib.error
import urllib.request

MOST_KEPT, MOST_BYTES, MOST_BODY = 1_000_000, 8 << 20, 64 << 20


class Notifier:
    """Collects names and posts them to the agent."""

    def __init__(self, options, kind):
        self.options, self.kind = options, kind
        self.names, self.sent, self.wanted = {}, {}, threading.Condition()
        threading.Thread(target=self.run, daemon=True).start()

    def add(self, names):
        now = time.monotonic()
        with self.wanted:
            for name in names:
                if len(self.names) < MOST_KEPT and now - self.sent.get(name, -1e9) >= self.options.again:
                    self.names[name] = None
            if self.names:
                self.wanted.notify()

    def run(self):
        while True:
            with self.wanted:
                self.wanted.wait_for(lambda: self.names)
            time.sleep(self.options.wait)
            with self.wanted:
                batch, size = [], 0
                for name in self.names:
                    size += len(name) + 1
                    if size > MOST_BYTES:
                        break
                    batch.append(name)
            if not self.post("\n".join(batch)):
                time.sleep(2)
                continue
            now = time.monotonic()
            with self.wanted:
                if len(self.sent) > MOST_KEPT:
                    self.sent.clear()
                for name in batch:
                    del self.names[name]
                    if self.options.again > 0:
                        self.sent[name] = now

    def post(self, text):
        """False: retry. True: the agent has accepted it, or has rejected it for good."""
        headers = {"Content-Type": "text/plain", "Content-Encoding": "gzip"}
        if self.options.token_file:
            with open(self.options.token_file) as file:
                headers["Authorization"] = "Bearer " + file.read().strip()
        request = urllib.request.Request(f"{self.options.agent}/api/v1/arrived?kind={self.kind}", gzip.compress(text.encode(), 1), headers)
        try:
            with urllib.request.urlopen(request, timeout=60) as answer:
                counts = json.load(answer)
                if self.options.verbose:
                    print(f"{counts['names']} names, {counts['count']} tests", file=sys.stderr, flush=True)
            return True
        except urllib.error.HTTPError as error:
            print(f"{self.options.agent}: {error.code} {error.read(300).decode(errors='replace').strip()}", file=sys.stderr, flush=True)
            return error.code == 400
        except OSError as error:
            print(f"{self.options.agent}: {error}", file=sys.stderr, flush=True)
            return False


def carbon(options):
    """Lines of carbon's protocol: "path value time"."""
    notifier = Notifier(options, "graphite")

    class Relay(socketserver.StreamRequestHandler):
        def handle(self):
            for line in self.rfile:
                path = line.split(b" ", 1)[0].strip()
                if path and len(path) < 8192:
                    notifier.add([path.decode(errors="replace")])

    socketserver.ThreadingTCPServer.allow_reuse_address = True
    return socketserver.ThreadingTCPServer(options.listen, Relay)


def varint(data, at):
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 127) << shift
        if byte < 128:
            return value, at
        shift += 7


def unsnap(data):
    """Snappy's block format."""
    size, at = varint(data, 0)
    if size > MOST_BODY:
        raise ValueError("too large")
    out = bytearray()
    while at < len(data):
        tag = data[at]
        at += 1
        if tag & 3 == 0:
            length = tag >> 2
            if length >= 60:
                extra = length - 59
                length = int.from_bytes(data[at:at + extra], "little")
                at += extra
            out += data[at:at + length + 1]
            at += length + 1
            continue
        if tag & 3 == 1:
            length, offset = (tag >> 2 & 7) + 4, (tag >> 5) << 8 | data[at]
            at += 1
        else:
            width = 2 if tag & 3 == 2 else 4
            length, offset = (tag >> 2) + 1, int.from_bytes(data[at:at + width], "little")
            at += width
        if not 0 < offset <= len(out) or len(out) > size:
            raise ValueError("broken")
        for _ in range(length):
            out.append(out[-offset])
    return bytes(out)


def fields(data):
    """(number, content) of each length-delimited field of a protobuf message; others are skipped."""
    at = 0
    while at < len(data):
        key, at = varint(data, at)
        if key & 7 == 2:
            length, at = varint(data, at)
            yield key >> 3, data[at:at + length]
            at += length
        elif key & 7 == 0:
            _, at = varint(data, at)
        else:
            at += 8 if key & 7 == 1 else 4


def series(request):
    """The series of a WriteRequest as selectors: {__name__="up",job="a"}."""
    for number, content in fields(request):
        if number != 1:
            continue
        labels = []
        for inner, label in fields(content):
            if inner == 1:
                pair = dict(fields(label))
                value = pair.get(2, b"").decode(errors="replace").replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
                labels.append(f'{pair[1].decode(errors="replace")}="{value}"')
        yield "{" + ",".join(labels) + "}"


def remote_write(options):
    """Prometheus' remote write, version 1."""
    notifier = Notifier(options, "prometheus")

    class Receiver(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self):
            body, status = self.rfile.read(min(int(self.headers.get("Content-Length", 0)), MOST_BODY)), 204
            try:
                notifier.add(list(series(unsnap(body))))
            except (ValueError, IndexError, KeyError):
                status = 400  # Prometheus does not send it again
            self.send_response(status)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *_):
            pass

    return http.server.ThreadingHTTPServer(options.listen, Receiver)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", choices=["carbon", "remote-write"])
    parser.add_argument("--listen", required=True, metavar="HOST:PORT")
    parser.add_argument("--agent", required=True, metavar="URL")
    parser.add_argument("--token-file", metavar="FILE")
    parser.add_argument("--wait", type=float, default=0.2, metavar="SECONDS")
    parser.add_argument("--again", type=float, default=0, metavar="SECONDS")
    parser.add_argument("--verbose", action="store_true")
    options = parser.parse_args()
    host, _, port = options.listen.rpartition(":")
    options.listen, options.agent = (host, int(port)), options.agent.rstrip("/")
    server = (carbon if options.what == "carbon" else remote_write)(options)
    server.daemon_threads = True
    print(f"listening on {server.server_address[0]}:{server.server_address[1]}", file=sys.stderr, flush=True)
    server.serve_forever()


if __name__ == "__main__":
    main()
