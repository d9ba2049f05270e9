"""A server of Mercurial's HTTP protocol that repeats recorded answers, and damages one of them.

Apart from the fixtures: the answers are those of `hg serve`, recorded once, so that each point gets the same bytes. A
request that was not recorded gets an error, as damaged answers can make a client ask for anything.
"""

import dataclasses
import pathlib
import re
import signal
import socket
import subprocess
import threading

REFUSAL = b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
# The headers that tell requests apart: arguments, and what the client can read.
ARGUMENT = re.compile(rb"(?im)^(x-hg[a-z0-9-]*: .*?)\r$")


@dataclasses.dataclass(frozen=True)
class Damage:
    """A fault of a stream: it ends before a byte, or a bit of the byte is another one."""

    kind: str
    offset: int
    bit: int = 0

    def apply(self, data: bytes) -> bytes:
        """Returns the damaged stream."""
        if self.kind == "cut" or self.offset >= len(data):
            return data[:self.offset]
        return data[:self.offset] + bytes([data[self.offset] ^ 1 << self.bit]) + data[self.offset + 1:]


def read_request(connection: socket.socket) -> bytes:
    """Reads a request without a body."""
    request = b""
    while b"\r\n\r\n" not in request:
        part = connection.recv(65536)
        if not part:
            return b""
        request += part
    return request


def request_key(request: bytes) -> bytes:
    """Returns what tells requests apart."""
    return b"\n".join([request.split(b"\r\n")[0], *sorted(line.lower() for line in ARGUMENT.findall(request))])


class Recording:
    """Answers by request, in the order in which they were asked for."""

    def __init__(self) -> None:
        self.answers: dict[bytes, bytes] = {}

    def keys(self) -> list[bytes]:
        """Returns the requests."""
        return list(self.answers)


class ReplayServer:
    """A server on a free port of this machine; with the port of another one, it records that one's answers."""

    def __init__(self, recording: Recording, source_port: int | None = None, damaged: bytes | None = None,
                 damage: Damage | None = None):
        self.recording = recording
        self.source_port = source_port
        self.damaged = damaged
        self.damage = damage
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        self.thread = threading.Thread(target=self.serve, daemon=True)
        self.thread.start()

    def __enter__(self) -> "ReplayServer":
        return self

    def __exit__(self, *_: object) -> None:
        # A blocked accept ends only with a connection.
        listener, self.listener = self.listener, None
        socket.create_connection(("127.0.0.1", self.port)).close()
        self.thread.join()
        listener.close()

    def serve(self) -> None:
        """Answers until the end."""
        listener = self.listener
        while self.listener is not None:
            connection, _ = listener.accept()
            threading.Thread(target=self.answer, args=(connection,), daemon=True).start()

    def answer(self, connection: socket.socket) -> None:
        """Answers one request, and closes the connection."""
        with connection:
            try:
                request = read_request(connection)
                if request:
                    connection.sendall(self.find_answer(request))
            except OSError:
                # The client has ended.
                pass

    def find_answer(self, request: bytes) -> bytes:
        """Returns the answer to a request: recorded, damaged, or that of the other server."""
        key = request_key(request)
        if key not in self.recording.answers and self.source_port:
            self.recording.answers[key] = ask(self.source_port, request)
        answer = self.recording.answers.get(key, REFUSAL)
        return self.damage.apply(answer) if self.damage and key == self.damaged else answer


def ask(port: int, request: bytes) -> bytes:
    """Sends a request to a server, and returns all that it answers."""
    with socket.create_connection(("127.0.0.1", port)) as connection:
        connection.sendall(request.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n"))
        parts = []
        while part := connection.recv(65536):
            parts.append(part)
    # A client must not use the connection again, which is closed after each answer.
    return b"".join(parts).replace(b"\r\n", b"\r\nConnection: close\r\n", 1)


class MercurialServer:
    """`hg serve` on a free port of this machine."""

    def __init__(self, repository: pathlib.Path, variables: dict[str, str], *options: str):
        # It prints its URL when it is ready.
        command = ["hg", "-R", str(repository), "serve", "-a", "127.0.0.1", "-p", "0", "--print-url", *options]
        self.process = subprocess.Popen(command, env=variables, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                        stderr=subprocess.DEVNULL)
        self.port = 0

    def __enter__(self) -> "MercurialServer":
        url = self.process.stdout.readline().decode()
        found = re.search(r":(\d+)", url)
        if not found:
            raise RuntimeError(f"hg serve does not start: {url}")
        self.port = int(found[1])
        return self

    def __exit__(self, *_: object) -> None:
        self.process.send_signal(signal.SIGTERM)
        self.process.communicate()
