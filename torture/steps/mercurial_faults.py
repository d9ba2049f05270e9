"""Stops or disturbs clones and fetches of Mercurial repositories, and `larder hg`, at each of their I/O calls.

Apart from the steps for stores: what must hold is judged by git (harness/mercurial.py).
"""

import abc
import dataclasses
import errno
import re
import signal

from harness.mercurial import (MERCURIAL_VERBS, MercurialCase, MercurialVerb, RepositoryState, judge_message,
                               judge_refs, judge_words)
from harness.mercurial_step import MercurialStep
from harness.preload import ERRORS, OPEN_CALLS, READ_CALLS, WRITE_CALLS, Preload
from harness.program import Run
from harness.runner import Lab, Outcome
from harness.sandbox import Sandbox
from harness.small_disk import FileSystem, SmallDisk, missing

KIB = 1024
# Free space in KiB: none, parts of a pack, all of it and little or more for its index and the refs.
SIZES = (0, 4, 8, 16, 64, 512, 1000, 2048, 3000, 3100, 3120, 3140, 3160, 3200, 3400, 4200, 6600)
# A call that is interrupted is made again; a name cannot be given again by all programs.
INTERRUPTED = (errno.EINTR, r"interrupted system call")


@dataclasses.dataclass
class MercurialExpectation:
    """The state of the repository before a verb and after it, and the calls of larder by group."""

    verb: MercurialVerb
    before: RepositoryState | None
    after: RepositoryState
    calls: dict[str, int]


class MercurialCallStep(MercurialStep):
    """A step whose points are the I/O calls of verbs on repositories of Mercurial and git."""

    quick_points = 16
    # The calls that are points: names of groups, and letters of fault.c.
    calls: dict[str, str]

    def __init__(self, lab: Lab):
        super().__init__(lab)
        self.expectations: dict[str, MercurialExpectation] = {}

    def missing(self) -> str | None:
        return Preload.missing() or super().missing()

    def points(self) -> list[str]:
        case = self.undisturbed_case()
        for verb in MERCURIAL_VERBS:
            self.expectations[verb.name] = self.expect(case, verb)
        return [f"{name}:{variant}" for name, expectation in self.expectations.items()
                for variant in self.variants(expectation)]

    def expect(self, case: MercurialCase, verb: MercurialVerb) -> MercurialExpectation:
        """Runs a verb without a fault, once for each group of calls, and counts them."""
        counts, before, after = {}, None, None
        count = case.home / "calls"
        for group, letters in self.calls.items():
            case.fill(verb)
            before = case.state()
            count.unlink(missing_ok=True)
            run = case.run(verb, self.lab.preload.counting(case.case, letters, count))
            after = case.state()
            problems = case.judge_soundness() if run.code == 0 else [run.text]
            if problems or after is None:
                raise RuntimeError(f"{verb.name} without a fault: exit code {run.code}: {problems}")
            # git also asks for the refs of a server, so that the program may run twice.
            counts[group] = max(map(int, count.read_text().split()), default=0)
        return MercurialExpectation(verb, before, after, counts)

    @abc.abstractmethod
    def variants(self, expectation: MercurialExpectation) -> list[str]:
        """Lists the points of a verb."""

    def judge(self, case: MercurialCase, expectation: MercurialExpectation, ended: bool, is_one_by_one: bool = False) -> list[str]:
        """Judges the repository after a fault, then runs the verb again, and judges what git's cleaning leaves."""
        verb, now = expectation.verb, case.state()
        failures = judge_refs(expectation.before, expectation.after, now, ended, is_one_by_one)
        if now is not None:
            failures += case.judge_soundness()
        if failures:
            return failures
        return self.judge_repetition(case, expectation, now) + case.judge_leftovers()

    def judge_repetition(self, case: MercurialCase, expectation: MercurialExpectation, now: RepositoryState | None) -> list[str]:
        """Judges the next run: it completes the work, with the ids of an undisturbed one."""
        verb, after = expectation.verb, expectation.after
        is_clone = verb.creates and verb.command.startswith("git")
        is_changed = now is not None and now.metadata == after.metadata
        if is_changed and (verb.name == "hg-rollback" or verb.name == "hg-convert" and now.public_refs() == after.public_refs()):
            return []
        if is_clone and now is not None:
            run = case.git("fetch", "-q")
        else:
            run = case.run(verb)
        if run.code != 0:
            return [f"the next run: exit code {run.code}: {run.text.strip()}"]
        again = case.state()
        if again is None:
            return ["the next run leaves no repository"]
        failures = case.judge_soundness()
        if again.commits != after.commits:
            failures.append("the next run gives other commits")
        if is_clone and again.remote_refs() != after.remote_refs() or not is_clone and again.public_refs() != after.public_refs():
            failures.append("the next run gives other refs")
        return failures


class MercurialKillStep(MercurialCallStep):
    """kill -9 of git clone hg::, git fetch and larder hg before their calls that change a file, alone or with git"""

    name = "hg-kill"
    calls = {"write": WRITE_CALLS}

    def variants(self, expectation: MercurialExpectation) -> list[str]:
        # A clone of git that is killed itself leaves a repository that only git can judge.
        victims = ("larder",) if "git clone" in expectation.verb.command else ("larder", "all")
        return [f"{number}:{victim}" for number in range(expectation.calls["write"]) for victim in victims]

    def attempt(self, sandbox: Sandbox, point: str) -> Outcome:
        name, number, victim = point.split(":")
        expectation, case = self.expectations[name], self.case(sandbox)
        case.fill(expectation.verb)
        fault = self.lab.preload.signalling(case.case, WRITE_CALLS, int(number), signal.SIGKILL, victim == "all")
        run = case.run(expectation.verb, fault)
        failures = judge_words(run) + self.judge(case, expectation, ended=run.code == 0)
        return Outcome(failures, {"killed": int(run.code != 0)})


class MercurialErrorStep(MercurialCallStep):
    """EIO, ENOSPC, EDQUOT or EINTR from the I/O calls of git clone hg::, git fetch and larder hg"""

    name = "hg-errors"
    calls = {"write": WRITE_CALLS, "read": READ_CALLS, "open": OPEN_CALLS}

    def variants(self, expectation: MercurialExpectation) -> list[str]:
        names = list(ERRORS)
        variants = []
        for number in range(expectation.calls["write"]):
            variants += [f"write:{number}:{names[number % 3]}:once", f"write:{number}:{names[(number + 1) % 3]}:for-good",
                         f"write:{number}:EINTR:once"]
        for group in ("read", "open"):
            for number in range(expectation.calls[group]):
                variants += [f"{group}:{number}:EIO:{('once', 'for-good')[number % 2]}", f"{group}:{number}:EINTR:once"]
        return variants

    def attempt(self, sandbox: Sandbox, point: str) -> Outcome:
        name, group, number, error, extent = point.split(":")
        expectation, case = self.expectations[name], self.case(sandbox)
        case.fill(expectation.verb)
        code, words = INTERRUPTED if error == "EINTR" else ERRORS[error]
        fault = self.lab.preload.failing(case.case, self.calls[group], int(number), code, extent == "once")
        run = case.run(expectation.verb, fault)
        failures = judge_message(run, words, str(case.case)) + self.judge(case, expectation, ended=run.code == 0)
        if extent == "for-good":
            # The mark of a pack stays if no call deletes it any more; the next conversion does.
            failures = [failure for failure in failures if not re.fullmatch(r"left behind: \S+\.keep", failure)]
        return Outcome(failures, {"commands that succeeded nevertheless": int(run.code == 0)})


class MercurialDiskStep(MercurialCallStep):
    """git clone hg::, git fetch and larder hg on disks with 0 to 6,600 KiB free"""

    name = "hg-full-disk"
    quick_points = 10
    calls = {"write": WRITE_CALLS}

    def missing(self) -> str | None:
        return super().missing() or missing(FileSystem.TMPFS)

    def variants(self, expectation: MercurialExpectation) -> list[str]:
        return [str(size) for size in SIZES]

    def attempt(self, sandbox: Sandbox, point: str) -> Outcome:
        name, size = point.split(":")
        with SmallDisk(FileSystem.TMPFS, sandbox.case, sandbox.root / "image") as disk:
            case = self.case(sandbox)
            case.fill(self.expectations[name].verb)
            disk.leave_free(int(size) * KIB)
            run = case.run(self.expectations[name].verb)
            disk.make_room()
            is_of_git = is_failure_of_git(run)
            failures = judge_words(run) if is_of_git else judge_message(run, "no space", str(case.case))
            failures += self.judge(case, self.expectations[name], run.code == 0, is_of_git)
            return Outcome(failures, {"commands that had no room": int(run.code != 0)})


def is_failure_of_git(run: Run) -> bool:
    """Returns whether git itself failed, which reports a full disk in its own words, and changes refs one by one."""
    words = r"(unable|could not|couldn't|cannot|failed)( to)? (write|create|mkdir|lock|update|append|copy)"
    return run.code != 0 and bool(re.search(words, run.text, re.IGNORECASE))
