"""A private directory in which one point is tried: a store, a folder for outputs, and commands on both.

A worker has one sandbox and fills it again for each point. Everything that a fault may hit is below `case`, the
folder that the preloaded libraries watch; the program's home is beside it.
"""

import dataclasses
import pathlib
import shutil

from harness.program import Program, Run


@dataclasses.dataclass(frozen=True)
class Start:
    """What a point starts from: folders that are copied into the sandbox. None: there is no store yet."""

    store: pathlib.Path | None
    out: pathlib.Path


class Sandbox:
    """The private directory of one worker."""

    def __init__(self, root: pathlib.Path, program_path: pathlib.Path, inputs: pathlib.Path):
        self.root = root
        self.case = root / "case"
        self.store = self.case / "store"
        self.out = self.case / "out"
        self.inputs = inputs
        self.program = Program(program_path, root / "home")

    def fill(self, start: Start) -> None:
        """Makes the sandbox equal to a start."""
        self.clear()
        self.case.mkdir(parents=True, exist_ok=True)
        shutil.copytree(start.out, self.out)
        if start.store:
            copy_store(start.store, self.store)

    def clear(self) -> None:
        """Removes the store and the outputs; a file system that is mounted there stays."""
        shutil.rmtree(self.case, ignore_errors=True)

    def larder(self, *arguments: str, extra: dict[str, str] | None = None, stdin: bytes = b"", until: str = "") -> Run:
        """Runs a command on the store."""
        return self.program.run(list(arguments), self.store, extra, stdin, until)

    def expand(self, command: str) -> list[str]:
        """Splits a command of the table of verbs, and puts the folders of this sandbox in."""
        folders = {"inputs": self.inputs, "out": self.out, "store": self.store}
        return [word.format(**folders) for word in split_words(command)]

    def masked(self, text: str) -> str:
        """Returns a message without the paths of the sandbox, so that equal messages are equal."""
        return text.replace(str(self.case), "CASE").replace(str(self.root), "SANDBOX")


def split_words(command: str) -> list[str]:
    """Splits a command at spaces, except within double quotes."""
    parts = command.split('"')
    words = []
    for number, part in enumerate(parts):
        words += [part] if number % 2 else part.split()
    return words


def copy_store(source: pathlib.Path, target: pathlib.Path) -> None:
    """Copies a data directory with its mode."""
    shutil.copytree(source, target)
    target.chmod(0o700)
