"""Runs each verb on a disk with a certain number of free bytes, reads while it is full, and goes on when there is room."""

import re

from harness import oracle
from harness.oracle import Expectation
from harness.preload import WRITE_CALLS
from harness.program import Run
from harness.runner import Lab, Outcome
from harness.sandbox import Sandbox
from harness.small_disk import FileSystem, SmallDisk, missing
from harness.verbs import Verb
from steps.io_error import judge_commit, judge_message
from steps.verb_points import VerbStep, run_verb

KIB = 1024
# Free space in KiB: none, one page, just too little for the shared memory file (32), and more and more of the work.
SIZES = (0, 4, 12, 24, 31, 32, 40, 64, 100, 160, 256, 400, 640, 1000, 1600, 2500, 4000, 6400)
# A backup would have the bytes that an unfinished purge has yet to overwrite, so it is refused until the purge is finished.
UNFINISHED_PURGE = "a purge is not finished"
# Commands that read; each must work on a disk without a free byte.
READERS = {
    "find": "find --count",
    "show": "show uid:anna",
    "agenda": "agenda 2026-03",
    "log": "log",
    "export": "export contacts",
    "backup": "backup {elsewhere}/copy.db",
}


class FullDiskStep(VerbStep):
    """every verb on disks with 0 to 6,400 KiB free, and reading while they are full"""

    name = "full-disk"
    calls = {"write": WRITE_CALLS}
    file_system = FileSystem.TMPFS

    def __init__(self, lab: Lab):
        super().__init__(lab)
        self.readings: dict[str, Run] = {}

    def missing(self) -> str | None:
        return super().missing() or missing(self.file_system)

    def points(self) -> list[str]:
        points = super().points()
        sandbox = self.lab.sandbox("expect")
        sandbox.fill(self.lab.fixtures.start("standard"))
        self.readings = {name: self.read(sandbox, command) for name, command in READERS.items()}
        return points

    def variants(self, expectation: Expectation) -> list[str]:
        return [str(size) for size in SIZES]

    def attempt(self, sandbox: Sandbox, point: str) -> Outcome:
        name, size = point.split(":")
        with SmallDisk(self.file_system, sandbox.case, sandbox.root / "image") as disk:
            sandbox.fill(self.lab.fixtures.start(self.expectations[name].verb.start))
            return self.attempt_on(disk, sandbox, self.expectations[name], int(size) * KIB)

    def attempt_on(self, disk: SmallDisk, sandbox: Sandbox, expectation: Expectation, free: int) -> Outcome:
        """Tries a verb with so many bytes free."""
        verb = expectation.verb
        disk.leave_free(free)
        run = run_verb(sandbox, verb)
        if run.crash():
            return Outcome([run.crash()])
        ended = verb.has_ended(run)
        failures = [] if ended else judge_message(run, "no space") + judge_disk(run, sandbox)
        failures += self.judge_reading(sandbox, verb)
        disk.make_room()
        contents = oracle.read_contents(sandbox.store / "data.db")
        outcome = self.judge(sandbox, expectation, ended)
        outcome.failures += failures + ([] if ended else judge_commit(expectation, contents, run))
        if verb.erased:
            # The purge is finished by now.
            run = self.read(sandbox, READERS["backup"])
            outcome.failures += [f"backup after the purge: {run.error}"] * (run.code != 0)
        outcome.counts["commands that had no room"] = int(not ended)
        return outcome

    def read(self, sandbox: Sandbox, command: str) -> Run:
        """Runs a command that reads."""
        elsewhere = sandbox.root / "elsewhere"
        elsewhere.mkdir(exist_ok=True)
        return sandbox.larder(*(word.format(elsewhere=elsewhere) for word in command.split()))

    def judge_reading(self, sandbox: Sandbox, verb: Verb) -> list[str]:
        """Judges the reading of a store that is as before; any other must still be readable."""
        if verb.start != "standard":
            return []
        failures = []
        for name, command in READERS.items():
            run = self.read(sandbox, command)
            if name == "backup" and verb.erased and UNFINISHED_PURGE in run.error:
                continue
            # The verb may have removed what is read.
            if run.crash() or run.code not in (0, 1) or (not verb.changes_store and run.code != 0):
                failures.append(f"{name} on the full disk: {run.crash() or f'exit code {run.code}: {run.error}'}")
            elif not verb.changes_store and name != "backup" and run.out != self.readings[name].out:
                failures.append(f"{name} on the full disk gives another answer")
        return failures


class FullExt4Step(FullDiskStep):
    """the same on ext4 with blocks of 1 KiB"""

    name = "full-ext4"
    # A container may have no loop devices.
    quick_points = 0
    file_system = FileSystem.EXT4


def judge_disk(run: Run, sandbox: Sandbox) -> list[str]:
    """Judges that the message names the disk that is full."""
    named = re.findall(r"disk that holds (\S+)", run.text)
    return [f"the message names another disk: {path}" for path in named if not path.startswith(str(sandbox.case))]
