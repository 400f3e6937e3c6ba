"""A client for HTTP/1.1 that can stop in the middle of a request."""
import re, socket

from .programs import Failure

VERSION = "Upload-Draft-Interop-Version: 8\r\n"


class Connection:
    def __init__(self, port):
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=60)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.data = b""

    def send(self, method, target, fields="", content=b""):
        self.socket.sendall(f"{method} {target} HTTP/1.1\r\nHost: localhost\r\n{fields}\r\n".encode() + content)

    def head(self, expected=None):
        """Reads one head, which may be that of an interim response."""
        while b"\r\n\r\n" not in self.data:
            received = self.socket.recv(65536)
            if not received:
                raise Failure(f"the server closed a connection after {self.data!r}")
            self.data += received
        head, self.data = self.data.split(b"\r\n\r\n", 1)
        status = int(head.split()[1])
        if expected and status != expected:
            raise Failure(f"expected {expected}, got {head.decode()}")
        return status, head.decode()

    def response(self, expected=None):
        """Reads the head of the final response."""
        while True:
            status, head = self.head()
            if status >= 200:
                if expected and status != expected:
                    raise Failure(f"expected {expected}, got {head}")
                return head

    def await_end(self):
        try:
            while self.socket.recv(65536):
                pass
        except ConnectionResetError:
            pass
        self.socket.close()


def field(head, name):
    found = re.search(rf"(?im)^{name}: (\S+)", head)
    if not found:
        raise Failure(f"no {name} in {head}")
    return found.group(1)


def begin_upload(port, name):
    """Creates an upload without content and returns its target."""
    connection = Connection(port)
    connection.send("PUT", f"/files/{name}", f"{VERSION}Upload-Complete: ?0\r\nContent-Length: 0\r\n")
    head = connection.response(201)
    connection.socket.close()
    return field(head, "Location")
