"""Builds the libraries that are preloaded into the program, and makes the environments that control them."""

import enum
import errno
import pathlib
import shutil
import signal
import subprocess

SOURCES = pathlib.Path(__file__).resolve().parent.parent / "preload"
# Groups of I/O calls, as the letters of fault.c: those that change a file, also with the maps that fail on a full
# disk, and those that read.
WRITE_CALLS = "wstorulm"
SPACE_CALLS = WRITE_CALLS + "p"
READ_CALLS = "R"
# Opening files that are there.
OPEN_CALLS = "e"


class Library(enum.Enum):
    """The sources in `preload`."""

    FAULT = "fault"
    RECORDER = "recorder"
    CLOCK = "clock"


class Preload:
    """The built libraries."""

    def __init__(self, folder: pathlib.Path):
        self.folder = folder

    @staticmethod
    def missing() -> str | None:
        """Returns why the libraries cannot be built here."""
        return None if shutil.which("cc") else "there is no C compiler"

    def build(self) -> None:
        """Compiles all libraries."""
        self.folder.mkdir(parents=True, exist_ok=True)
        for library in Library:
            source = SOURCES / f"{library.value}.c"
            subprocess.run(["cc", "-O2", "-Wall", "-Wextra", "-shared", "-fPIC", "-o", str(self.path(library)), str(source),
                            "-ldl", "-lpthread"], check=True)

    def path(self, library: Library) -> pathlib.Path:
        """Returns where a library is."""
        return self.folder / f"{library.value}.so"

    def counting(self, root: pathlib.Path, calls: str, count: pathlib.Path) -> dict[str, str]:
        """Counts I/O calls below `root`; the number is appended to `count`."""
        return {"LD_PRELOAD": str(self.path(Library.FAULT)), "TORTURE_ROOT": str(root), "TORTURE_CALLS": calls,
                "TORTURE_COUNT": str(count)}

    def failing(self, root: pathlib.Path, calls: str, at: int, error: int, once: bool) -> dict[str, str]:
        """Makes the I/O call number `at` below `root` fail, once or with all later ones."""
        environment = {"LD_PRELOAD": str(self.path(Library.FAULT)), "TORTURE_ROOT": str(root), "TORTURE_CALLS": calls,
                       "TORTURE_AT": str(at), "TORTURE_ERRNO": str(error)}
        return {**environment, "TORTURE_ONCE": "1"} if once else environment

    def signalling(self, root: pathlib.Path, calls: str, at: int, number: signal.Signals,
                   is_for_group: bool = False) -> dict[str, str]:
        """Sends the process, or its group, a signal before the I/O call number `at` below `root`."""
        environment = {"LD_PRELOAD": str(self.path(Library.FAULT)), "TORTURE_ROOT": str(root), "TORTURE_CALLS": calls,
                       "TORTURE_AT": str(at), "TORTURE_SIGNAL": str(int(number))}
        return {**environment, "TORTURE_GROUP": "1"} if is_for_group else environment

    def recording(self, root: pathlib.Path, record: pathlib.Path) -> dict[str, str]:
        """Records all changes below `root`."""
        return {"LD_PRELOAD": str(self.path(Library.RECORDER)), "TORTURE_ROOT": str(root), "TORTURE_RECORD": str(record)}

    def shifted_clock(self, seconds: int) -> dict[str, str]:
        """Shifts the clock."""
        return {"LD_PRELOAD": str(self.path(Library.CLOCK)), "TORTURE_CLOCK": str(seconds)}


# The errors that are injected, with the words that a message about them may use.
ERRORS = {
    "EIO": (errno.EIO, r"i/o error|input/output error|the disk failed to"),
    "ENOSPC": (errno.ENOSPC, r"no space"),
    "EDQUOT": (errno.EDQUOT, r"quota"),
}
