"""Runs the program under test in a private environment.

Apart from the sandbox, because the model and the fixtures run the program without one.
"""

import dataclasses
import os
import pathlib
import signal
import subprocess
import tempfile
import time
import typing

# A command that takes longer hangs.
PATIENCE_SECONDS = 120
# The exit code of a Rust program that panicked.
PANIC_CODE = 101


@dataclasses.dataclass(frozen=True)
class Run:
    """The result of a command."""

    code: int
    out: bytes
    err: bytes

    @property
    def text(self) -> str:
        """Both outputs, for searches and messages."""
        return (self.out + self.err).decode("utf-8", "replace")

    @property
    def error(self) -> str:
        """The first line of the error message, or the first line of any output."""
        lines = self.text.splitlines()
        errors = [line for line in lines if line.startswith("error")]
        return (errors or lines or [""])[0]

    def crash(self, expected_signal: int = 0) -> str | None:
        """Returns how the program crashed or hung, or None if it ended in order."""
        if self.code == -PATIENCE_SECONDS:
            return f"hangs: no end after {PATIENCE_SECONDS} s"
        if self.code < 0 and self.code != -expected_signal:
            return f"ended by {signal.Signals(-self.code).name}"
        if self.code == PANIC_CODE or b"panicked at" in self.err:
            return f"panics: {self.error}"
        return None


class Program:
    """The program under test and the environment that its commands share."""

    def __init__(self, path: pathlib.Path, home: pathlib.Path):
        self.path = path
        self.environment = {
            "PATH": os.environ.get("PATH", "/usr/bin:/bin"),
            "HOME": str(home),
            "XDG_CONFIG_HOME": str(home / "config"),
            "XDG_STATE_HOME": str(home / "state"),
            "TMPDIR": str(home / "tmp"),
            "EDITOR": "true",
            "LC_ALL": "C.UTF-8",
            "TZ": "UTC",
        }
        for name in ("config", "state", "tmp"):
            (home / name).mkdir(parents=True, exist_ok=True)

    def start(self, arguments: list[str], store: pathlib.Path, extra: dict[str, str] | None = None,
              **options) -> subprocess.Popen:
        """Starts a command on a store; `extra` are further variables of its environment."""
        environment = {**self.environment, "LARDER_DIR": str(store), **(extra or {})}
        return subprocess.Popen([str(self.path), *arguments], env=environment, **options)

    def run(self, arguments: list[str], store: pathlib.Path, extra: dict[str, str] | None = None,
            stdin: bytes = b"", until: str = "") -> Run:
        """Runs a command to its end; one that goes on for ever gets Control-C when it prints `until`."""
        if until:
            return self.run_until(arguments, store, extra, until.encode())
        process = self.start(arguments, store, extra, stdin=subprocess.PIPE,
                             stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        try:
            out, err = process.communicate(stdin, timeout=PATIENCE_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            out, err = process.communicate()
            return Run(-PATIENCE_SECONDS, out, err)
        return Run(process.returncode, out, err)

    def run_until(self, arguments: list[str], store: pathlib.Path, extra: dict[str, str] | None, until: bytes) -> Run:
        """Runs a command until it prints a text, or ends before."""
        with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
            process = self.start(arguments, store, extra, stdin=subprocess.DEVNULL, stdout=out, stderr=err)
            deadline, is_interrupted = time.monotonic() + PATIENCE_SECONDS, False
            while process.poll() is None and time.monotonic() < deadline:
                if not is_interrupted and until in read_all(err):
                    process.send_signal(signal.SIGINT)
                    is_interrupted = True
                time.sleep(0.01)
            code = process.returncode
            if code is None:
                process.kill()
                process.wait()
                code = -PATIENCE_SECONDS
            return Run(code, read_all(out), read_all(err))


def read_all(file: typing.BinaryIO) -> bytes:
    """Reads a file from its beginning, and leaves the place of others in it as it is."""
    return os.pread(file.fileno(), os.fstat(file.fileno()).st_size, 0)
