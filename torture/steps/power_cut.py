"""Cuts the power at each change that a day of work makes on the disk.

The work is recorded once: every change of a file with its bytes. A point is a moment of the record and a choice of
what reached the disk (harness/disk.py). The store that results must hold what was acknowledged before the cut.
"""

import dataclasses
import hashlib
import pathlib
import pickle
import random

from harness import oracle
from harness.disk import Change, Disk, Survival, append_acknowledgement, read_record
from harness.oracle import Contents, Expectation
from harness.preload import Preload
from harness.runner import Lab, Outcome, Step
from harness.sandbox import Sandbox
from harness.verbs import Effect, Verb
from steps.verb_points import run_verb

# The work that is recorded. The outputs stay: a file that was acknowledged must be whole after every later cut.
WORK = [
    Verb("import-new", "import {inputs}/known.vcf", Effect.STEPS, start="nothing"),
    Verb("import-calendar", "import {inputs}/calendar.ics --into Calendar --batch 40", Effect.STEPS),
    Verb("add-words", 'add "Lunch 6 March 2026 12:30 for 1h"', Effect.ADDITION),
    Verb("add", "add -", Effect.WHOLE, stdin="new.vcf"),
    Verb("edit", "edit uid:anna --from {inputs}/anna-2.vcf", Effect.WHOLE),
    Verb("remove", "remove uid:bruno uid:chloe", Effect.WHOLE),
    Verb("undo", "undo 6", Effect.STEPS),
    Verb("backup", "backup {out}/copy.db", output="copy.db"),
    Verb("import", "import {inputs}/contacts.vcf --batch 20", Effect.STEPS, batch=20),
    Verb("export", "export contacts -o {out}/book.vcf", output="book.vcf"),
    Verb("purge", "purge -y uid:new uid:secret", Effect.WHOLE),
    Verb("backup-again", "backup {out}/copy.db", output="copy.db"),
    Verb("collections-index", "collections index contacts --index email:exact"),
    Verb("collections-remove", "collections remove contacts", Effect.STEPS),
    Verb("undo-collection", "undo", Effect.STEPS),
    Verb("collections-rename", "collections rename contacts people", Effect.WHOLE),
    Verb("check-rebuild", "check --rebuild"),
    Verb("restore", "restore {out}/copy.db", Effect.WHOLE),
    Verb("add-task", 'add --kind task "Taxes due 2026-05-01"', Effect.ADDITION),
    Verb("merge", "merge uid:anna uid:anna-again", Effect.WHOLE),
    Verb("export-again", "export contacts -o {out}/book.vcf", output="book.vcf"),
    Verb("purge-again", "purge -y uid:chloe", Effect.WHOLE),
]
# What is left of the shared memory file after a cut.
SHARED_MEMORY = ("none", "junk", "kept")


@dataclasses.dataclass
class Moment:
    """The state between two commands: the store, and the digests of the outputs."""

    contents: Contents | None
    outputs: dict[str, str]


@dataclasses.dataclass
class Recording:
    """The recorded work: the folder in which it ran, all changes, and the state after each command."""

    root: str
    changes: list[Change]
    moments: list[Moment]


def digests(out: pathlib.Path) -> dict[str, str]:
    """Returns the digests of all outputs."""
    return {path.name: hashlib.sha1(path.read_bytes()).hexdigest() for path in sorted(out.iterdir())}


def record(lab: Lab) -> Recording:
    """Runs the work under the recorder."""
    sandbox = lab.sandbox("recorded")
    sandbox.case.mkdir(parents=True)
    record_file = sandbox.root / "record"
    record_file.touch()
    # The folder of outputs is older than the record.
    sandbox.out.mkdir()
    moments = [Moment(None, {})]
    for number, verb in enumerate(WORK):
        append_acknowledgement(record_file, f"begin {number}")
        run = run_verb(sandbox, verb, lab.preload.recording(sandbox.case, record_file))
        if run.code != 0:
            raise RuntimeError(f"{verb.name} under the recorder: exit code {run.code}: {run.text}")
        append_acknowledgement(record_file, f"end {number}")
        moments.append(Moment(oracle.read_contents(sandbox.store / "data.db"), digests(sandbox.out)))
    recording = Recording(str(sandbox.case), read_record(record_file), moments)
    verify(recording, sandbox)
    return recording


def verify(recording: Recording, sandbox: Sandbox) -> None:
    """Fails if a replay of the record does not give the files that the work left: a change was not recorded."""
    disk = new_disk(recording)
    for change in recording.changes:
        disk.replay(change)
    replayed = disk.current()
    found = {str(path): None if path.is_dir() else path.read_bytes() for path in sandbox.case.rglob("*")}
    for path in sorted((found.keys() | replayed.keys()) - {recording.root}):
        # Shared memory is written through a map.
        if not path.endswith("-shm") and found.get(path, b"no file") != replayed.get(path, b"no file"):
            raise RuntimeError(f"the recorder missed a change of {path}")


def new_disk(recording: Recording) -> Disk:
    """Returns the disk before the work."""
    disk = Disk(recording.root)
    disk.names[f"{recording.root}/out"] = disk.durable_names[f"{recording.root}/out"] = None
    return disk


class PowerCutStep(Step):
    """power cut at every change on the disk, in a model where only synced bytes and names are safe"""

    name = "power-cut"
    full_points = 10_000

    def __init__(self, lab: Lab):
        super().__init__(lab)
        self.recording: Recording
        self.disk: Disk | None = None
        self.replayed = 0

    def missing(self) -> str | None:
        return Preload.missing()

    def points(self) -> list[str]:
        self.recording = self.kept_recording()
        kinds = [f"{survival.value}:{number}" for survival in Survival for number in range(2)
                 if number == 0 or survival in (Survival.PREFIX, Survival.SUBSET)]
        return [f"{cut}:{kind}" for cut, change in enumerate(self.recording.changes) if change.kind != "A"
                for kind in kinds]

    def kept_recording(self) -> Recording:
        """Returns the recording of an earlier run with this program, so that its points mean the same, or makes one."""
        path = self.lab.results / f"power-cut.{self.lab.digest}.record"
        if path.exists():
            return pickle.loads(path.read_bytes())
        recording = record(self.lab)
        self.lab.results.mkdir(parents=True, exist_ok=True)
        for old in self.lab.results.glob("power-cut.*.record"):
            old.unlink()
        path.write_bytes(pickle.dumps(recording))
        return recording

    def disk_at(self, cut: int) -> Disk:
        """Returns the disk just before a change. Workers get points in order, so they replay each change once."""
        if self.disk is None or self.replayed > cut:
            self.disk, self.replayed = new_disk(self.recording), 0
        for change in self.recording.changes[self.replayed:cut]:
            self.disk.replay(change)
        self.replayed = cut
        return self.disk

    def attempt(self, sandbox: Sandbox, point: str) -> Outcome:
        cut, survival = int(point.split(":")[0]), Survival(point.split(":")[1])
        generator = self.lab.random(point)
        files = self.disk_at(cut).after_cut(survival, generator)
        sandbox.clear()
        lay_out(files, self.recording.root, sandbox.case, generator)
        past = self.recording.changes[:cut]
        begun, acknowledged = progress(past)
        announced = oracle.announced_seq(last_content(past, f"{self.recording.root}/store/data.notify"))
        failures = self.judge(sandbox, begun, acknowledged, announced)
        if not failures and generator.random() < 0.3:
            failures = goes_on(sandbox)
        return Outcome(failures, {survival.value + " survived": 1})

    def judge(self, sandbox: Sandbox, begun: int, acknowledged: int, announced: int) -> list[str]:
        """Judges a disk: `begun` commands were started and `acknowledged` of them had ended."""
        before, after = self.recording.moments[acknowledged], self.recording.moments[begun]
        verb = WORK[begun - 1] if begun else WORK[0]
        outputs = [name for name, digest in before.outputs.items()
                   if not is_whole(sandbox.out / name, {digest, after.outputs.get(name)})]
        failures = [f"during {verb.name}: the output {name} is lost or damaged" for name in outputs]
        check = oracle.check_store(sandbox)
        now = oracle.read_contents(sandbox.store / "data.db")
        if check.code != 0 and not (before.contents is None and now is None and oracle.has_no_store(sandbox, check)):
            return failures + [f"during {verb.name}: check: exit code {check.code}: {check.error}"]
        expectation = Expectation(verb, before.contents, after.contents, None, None)
        failures += [f"during {verb.name}: {failure}" for failure in oracle.judge_contents(expectation, now, ended=False)]
        if now and verb.name != "restore" and now.last_seq < announced:
            failures.append(f"during {verb.name}: batch {announced} was announced, and the last one is {now.last_seq}")
        return failures


def progress(past: list[Change]) -> tuple[int, int]:
    """Returns how many commands had begun, and how many of them had ended."""
    marks = [change.path.split()[0] for change in past if change.kind == "A"]
    return marks.count("begin"), marks.count("end")


def last_content(past: list[Change], path: str) -> bytes:
    """Returns what was last written to a file that is always written as a whole."""
    inodes = [change.inode for change in past if change.kind == "O" and change.path == path]
    contents = [change.content for change in past if change.kind == "W" and inodes and change.inode == inodes[-1]]
    return contents[-1] if contents else b""


def is_whole(path: pathlib.Path, allowed: set[str | None]) -> bool:
    """Returns whether a file has one of these digests."""
    return path.exists() and hashlib.sha1(path.read_bytes()).hexdigest() in allowed


def lay_out(files: dict[str, bytes | None], root: str, case: pathlib.Path, generator: random.Random) -> None:
    """Writes the files of a disk into a folder."""
    shared_memory = generator.choice(SHARED_MEMORY)
    for path, content in sorted(files.items()):
        target = case / path[len(root):].lstrip("/")
        if content is None:
            target.mkdir(mode=0o700, parents=True, exist_ok=True)
        elif target.parent.is_dir():
            # A file whose folder was lost is lost, too.
            if path.endswith("-shm"):
                if shared_memory == "none":
                    continue
                content = generator.randbytes(len(content)) if shared_memory == "junk" else content
            target.write_bytes(content)
            target.chmod(0o600)


def goes_on(sandbox: Sandbox) -> list[str]:
    """Writes to the store after the cut."""
    run = sandbox.larder("add", "Dinner 2026-03-07 19:00")
    return [] if run.code == 0 else [f"the next change fails: exit code {run.code}: {run.error}"]
