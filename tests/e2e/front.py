"""A faulty front before a receiver's server: the first request gets the fault, all later ones get through.

`fault` is the name of a method; a request is what the client sends, whatever it is for. With `tls`, the front has a certificate
that nobody knows, and is never got past.
"""
import http.client
import socketserver
import ssl
import struct
import threading
import time
import urllib.parse
from socket import SO_LINGER, SOL_SOCKET
from waiting import LONGEST



class Connection(socketserver.StreamRequestHandler):
    """One request; then the connection ends."""
    timeout = LONGEST

    def handle(self):
        try:
            line = self.rfile.readline().decode()
            if not line:
                return
            self.method, self.path, _ = line.split(" ", 2)
            self.fields = http.client.parse_headers(self.rfile)
            self.body = self.rfile.read(int(self.fields.get("Content-Length", 0)))
            getattr(self, self.server.next_fault(self.method))()
        except OSError:
            pass  # the client has gone: most faults end so

    def send(self, status, headers, body):
        lines = [f"HTTP/1.1 {status} {http.client.responses.get(status, 'Unknown')}", f"Content-Length: {len(body)}",
                 "Connection: close", *(f"{k}: {v}" for k, v in headers.items())]
        self.wfile.write(("\r\n".join(lines) + "\r\n\r\n").encode() + body)

    def carry_out(self):
        """The server's answer."""
        address = urllib.parse.urlsplit(self.server.backend)
        backend = http.client.HTTPConnection(address.hostname, address.port, timeout=LONGEST)
        fields = {k: v for k, v in self.fields.items() if k.lower() not in ("host", "connection", "accept-encoding")}
        backend.request(self.method, self.path, self.body, fields)
        answer = backend.getresponse()
        kept = {k: v for k, v in answer.getheaders() if k.lower() not in ("content-length", "connection", "transfer-encoding")}
        body = answer.read()
        backend.close()
        return answer.status, kept, body

    def reset(self):
        self.connection.setsockopt(SOL_SOCKET, SO_LINGER, struct.pack("ii", 1, 0))
        self.connection.close()

    # The faults.

    def nothing(self):
        self.send(*self.carry_out())

    def limited(self):
        self.send(429, {"Retry-After": "2", "Content-Type": "application/json"}, b'{"message": "slow down"}')

    def busy(self):
        self.send(503, {"Content-Type": "text/html"}, b"<html>no server is available</html>")

    def broken(self):
        self.send(500, {"Content-Type": "application/json"}, b'{"message": "Internal Server Error"}')

    def denied(self):
        self.send(401, {"Content-Type": "application/json"}, b'{"message": "Unauthorized"}')

    def silent(self):
        self.server.released.wait(LONGEST)

    def unheard(self):
        """A reset before anything was done."""
        self.reset()

    def lost(self):
        """A reset after all was done."""
        self.carry_out()
        self.reset()

    def alien(self):
        self.wfile.write(b"SSH-2.0-OpenSSH_9.2\r\n")

    def page(self):
        """A login page, or a proxy's."""
        self.send(200, {"Content-Type": "text/html"}, b"<!DOCTYPE html><html><body>Please sign in</body></html>")

    def redirect(self):
        self.send(307, {"Location": self.server.elsewhere + self.path}, b"")


class Front(socketserver.ThreadingTCPServer):
    allow_reuse_address = daemon_threads = True
    request_queue_size = 64

    def __init__(self, backend, fault, elsewhere="", certificate=None):
        self.backend, self.fault, self.elsewhere = backend, fault, elsewhere
        self.always = fault in ("redirect",)
        self.times, self.released = [], threading.Event()  # time.monotonic() of each request
        self.tls = None
        if certificate:
            self.tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            self.tls.load_cert_chain(*certificate)
        super().__init__(("127.0.0.1", 0), Connection)
        self.url = f"{'https' if self.tls else 'http'}://127.0.0.1:{self.server_address[1]}"
        threading.Thread(target=self.serve_forever, args=(0.02,), daemon=True).start()

    def get_request(self):
        connection, address = super().get_request()
        if self.tls:
            connection = self.tls.wrap_socket(connection, server_side=True, do_handshake_on_connect=False)
        return connection, address

    def next_fault(self, method):
        """An answer is lost of what writes: reading changes nothing."""
        self.times.append(time.monotonic())
        fault = self.fault
        if fault == "lost" and method == "GET":
            return "nothing"
        if not self.always:
            self.fault = "nothing"
        return fault

    def handle_error(self, request, client_address):
        """What a client does is what the tests look at."""

    def stop(self):
        self.released.set()
        self.shutdown()
        self.server_close()
