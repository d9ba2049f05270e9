"""Copies `data.db` alone after each verb, and deletes or replaces its write-ahead log beneath the store.

SQLite opens a database without its log, or with another one, as if nothing had happened. The program has to say that
batches are missing: a writer refuses the store, a reader warns, since reading always works. A connection of Python's
SQLite reads while the verb runs, so that the log keeps its batches. In the points `watched`, that reader and a live
view stay, and the older log is copied over the newer one beneath them: the index of the log, which all processes share,
then has batches that the log has no longer.
"""

import json
import pathlib
import shutil
import signal
import sqlite3
import subprocess

from harness import oracle
from harness.program import Run
from harness.runner import Outcome, Step
from harness.sandbox import Sandbox
from harness.verbs import VERBS, Verb, verbs_named
from steps.verb_points import run_verb

# A batch that is in the log whatever the verb does.
FIRST_CHANGE = ["add", "Dinner 2026-03-07 19:00"]
# Each command, and whether it must fail.
COMMANDS = ((["find", "anna"], False), (["check"], True), (["add", "Breakfast 2026-03-08 8:00"], True))
FAULTS = ("deleted", "foreign", "stale")
# The time that a view has to end after Ctrl-C.
VIEW_PATIENCE_SECONDS = 30
# The words of the messages that name a log which is not the store's.
NAMED = ("write-ahead log", "damaged", "replaced")


class LogFileStep(Step):
    """data.db copied alone after any verb; a write-ahead log that was deleted, or is foreign or stale"""

    name = "log-file"

    def points(self) -> list[str]:
        sandbox = self.lab.sandbox("foreign")
        sandbox.fill(self.lab.fixtures.start("nothing"))
        sandbox.larder("import", str(sandbox.inputs / "more.vcf"))
        with Reader(sandbox.store / "data.db"):
            sandbox.larder("add", "Another life 2026-03-09 9:00")
            shutil.copy(log_of(sandbox.store), self.lab.scratch / "foreign-wal")
        verbs = [verb.name for verb in VERBS if verb.start == "standard"]
        return [f"{name}:{fault}" for name in verbs for fault in ("alone", *FAULTS, "watched")]

    def attempt(self, sandbox: Sandbox, point: str) -> Outcome:
        name, fault = point.split(":")
        (verb,) = verbs_named([name])
        sandbox.fill(self.lab.fixtures.start(verb.start))
        if fault == "alone":
            run_verb(sandbox, verb)
            return Outcome(judge_alone(sandbox))
        if fault == "watched":
            return attempt_watched(sandbox, verb)
        stale = sandbox.root / "stale-wal"
        with Reader(sandbox.store / "data.db"):
            sandbox.larder(*FIRST_CHANGE)
            shutil.copy(log_of(sandbox.store), stale)
            run = run_verb(sandbox, verb)
            if run.crash():
                return Outcome([f"with a reader: {run.crash()}"])
            # As after `kill -9`: the last connection that is closed would write the log into the database.
            copy = sandbox.root / "copy"
            shutil.rmtree(copy, ignore_errors=True)
            shutil.copytree(sandbox.store, copy, ignore=shutil.ignore_patterns("*-shm"))
        shutil.rmtree(sandbox.store)
        shutil.move(copy, sandbox.store)
        sandbox.store.chmod(0o700)
        before = oracle.read_contents(sandbox.store / "data.db")
        if fault == "deleted":
            log_of(sandbox.store).unlink(missing_ok=True)
        else:
            shutil.copy(stale if fault == "stale" else self.lab.scratch / "foreign-wal", log_of(sandbox.store))
        after = oracle.read_contents(sandbox.store / "data.db")
        is_harmless = after is not None and after.same_items(before) and after.last_seq == before.last_seq
        return Outcome(judge_commands(sandbox, is_harmless), {"harmless" if is_harmless else "named": 1})


class Reader:
    """A read transaction of another program."""

    def __init__(self, database: pathlib.Path):
        self.connection = sqlite3.connect(database, isolation_level=None)

    def __enter__(self) -> "Reader":
        self.connection.execute("BEGIN")
        self.connection.execute("SELECT count(*) FROM item").fetchone()
        return self

    def __exit__(self, *_exception: object) -> None:
        self.connection.close()


class View:
    """A live view of the program, which has the store open until it is ended."""

    def __init__(self, sandbox: Sandbox):
        self.process = sandbox.program.start(["watch", "--format", "json", "anna"], sandbox.store,
                                             stdout=subprocess.PIPE, stderr=subprocess.PIPE)

    def __enter__(self) -> "View":
        # The list is complete when the view has read the store.
        for line in self.process.stdout:
            if json.loads(line)["change"] == "complete":
                break
        return self

    def __exit__(self, *_exception: object) -> None:
        self.end()

    def end(self) -> Run:
        """Ends the view, if it has not ended itself."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGINT)
        try:
            out, err = self.process.communicate(timeout=VIEW_PATIENCE_SECONDS)
        except subprocess.TimeoutExpired:
            self.process.kill()
            out, err = self.process.communicate()
        return Run(self.process.returncode, out, err)


def attempt_watched(sandbox: Sandbox, verb: Verb) -> Outcome:
    """Copies an older log over the log of a store that a reader and a view have open."""
    stale = sandbox.root / "stale-wal"
    with View(sandbox) as view, Reader(sandbox.store / "data.db"):
        sandbox.larder(*FIRST_CHANGE)
        shutil.copy(log_of(sandbox.store), stale)
        truths = {read_lines(sandbox)}
        run = run_verb(sandbox, verb)
        if run.crash():
            return Outcome([f"with a view: {run.crash()}"])
        truths.add(read_lines(sandbox))
        is_harmless = log_of(sandbox.store).read_bytes() == stale.read_bytes()
        shutil.copy(stale, log_of(sandbox.store))
        failures = judge_commands(sandbox, is_harmless, truths)
        ended = view.end()
    if ended.crash():
        failures.append(f"the view {ended.crash()}")
    return Outcome(failures, {"harmless" if is_harmless else "named": 1})


def read_lines(sandbox: Sandbox) -> frozenset[bytes]:
    """Returns the lines of the answer of the command that reads."""
    (command, _) = COMMANDS[0]
    return frozenset(sandbox.larder(*command).out.splitlines())


def log_of(store: pathlib.Path) -> pathlib.Path:
    """Returns the path of the write-ahead log."""
    return store / "data.db-wal"


def judge_alone(sandbox: Sandbox) -> list[str]:
    """Judges a copy of the database without its log."""
    database = sandbox.store / "data.db"
    whole = oracle.read_contents(database)
    folder = sandbox.root / "alone"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    shutil.copy(database, folder / "data.db")
    alone = oracle.read_copy(folder / "data.db")
    if alone is None:
        return ["the copy is damaged"]
    if not alone.same_items(whole) or alone.last_seq != whole.last_seq:
        return [f"the copy has batch {alone.last_seq}, the store {whole.last_seq}"]
    return []


def judge_commands(sandbox: Sandbox, is_harmless: bool, truths: set[frozenset[bytes]] | None = None) -> list[str]:
    """Judges what commands say of a store whose log was deleted or replaced.

    `truths`: the lines of the right answers. Part of an answer is no wrong line, but must come with an error or a warning.
    """
    failures = []
    for command, must_fail in COMMANDS:
        run = sandbox.larder(*command)
        if run.crash():
            failures.append(f"{command[0]}: {run.crash()}")
        elif is_harmless and run.code not in (0, 1):
            failures.append(f"{command[0]} refuses a store that lost nothing: {run.error}")
        elif not is_harmless and not any(words in run.text for words in NAMED):
            failures.append(f"{command[0]} does not name the log: exit code {run.code}: {run.error}")
        elif not is_harmless and must_fail and run.code == 0:
            failures.append(f"{command[0]} succeeds")
        if truths and command == COMMANDS[0][0]:
            wrong = set(run.out.splitlines()) - set().union(*truths)
            failures += [f"{command[0]} prints a line that no state had: {line!r}" for line in sorted(wrong)[:1]]
    return failures
