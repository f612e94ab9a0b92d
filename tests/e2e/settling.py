"""A server of a fake that tells when it has taken all that clients which are gone have sent."""
import http.server
import socket
import threading

from waiting import LONGEST


class SettlingServer(http.server.ThreadingHTTPServer):
    """Each connection has a thread: what a killed client sent last may be taken after what its successor sends first."""

    allow_reuse_address = daemon_threads = True

    def __init__(self, address, handler):
        self.moved, self.open, self.accepted = threading.Condition(), 0, set()
        super().__init__(address, handler)

    def process_request(self, request, client_address):
        with self.moved:
            self.open += 1
            self.accepted.add(client_address)
            self.moved.notify_all()
        super().process_request(request, client_address)

    def process_request_thread(self, request, client_address):
        try:
            super().process_request_thread(request, client_address)
        finally:
            with self.moved:
                self.open -= 1
                self.moved.notify_all()

    def handle_error(self, *_):
        pass  # a client that was killed

    def settle(self):
        """When no client is left. Connections are accepted in their order, so one of ours comes after all of theirs."""
        with socket.create_connection(self.server_address) as last:
            with self.moved:
                assert self.moved.wait_for(lambda: last.getsockname() in self.accepted, LONGEST)
        with self.moved:
            assert self.moved.wait_for(lambda: self.open == 0, LONGEST), self.open
