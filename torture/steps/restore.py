"""Stops a restore at each of its calls that change a file, and then restores another backup.

Apart from the kills of verbs, because what matters here is the second restore: it must not be disturbed by anything
that the first one left.
"""

import signal

from harness import oracle
from harness.oracle import Contents
from harness.preload import WRITE_CALLS, Preload
from harness.runner import Lab, Outcome, Step
from harness.sandbox import Sandbox
from harness.verbs import Verb
from steps.verb_points import expect

# The backup whose restore is stopped, and the backup that is restored next.
PAIRS = [("older", "newer"), ("newer", "older")]
# A Ctrl-C at every fourth call: it differs from a kill only in the handler of the program.
INTERRUPT_STRIDE = 4
INTERRUPTED_CODE = 130


class RestoreStep(Step):
    """kill -9 or Ctrl-C of a restore at every call that changes a file, then a restore of another backup"""

    name = "restore"

    def __init__(self, lab: Lab):
        super().__init__(lab)
        self.backups: dict[str, Contents | None] = {}

    def missing(self) -> str | None:
        return Preload.missing()

    def points(self) -> list[str]:
        sandbox = self.lab.sandbox("expect")
        points = []
        for first, second in PAIRS:
            verb = Verb("restore", f"restore {{out}}/{first}.db")
            expectation = expect(self.lab, sandbox, verb, {"write": WRITE_CALLS})
            self.backups[first] = expectation.after
            calls = range(expectation.calls["write"])
            points += [f"KILL:{first}:{second}:{number}" for number in calls]
            points += [f"INT:{first}:{second}:{number}" for number in calls[::INTERRUPT_STRIDE]]
        return points

    def attempt(self, sandbox: Sandbox, point: str) -> Outcome:
        name, first, second, number = point.split(":")
        sandbox.fill(self.lab.fixtures.start("standard"))
        before = oracle.read_contents(sandbox.store / "data.db")
        stop = signal.Signals[f"SIG{name}"]
        extra = self.lab.preload.signalling(sandbox.case, WRITE_CALLS, int(number), stop)
        run = sandbox.larder("restore", str(sandbox.out / f"{first}.db"), extra=extra)
        if stop is signal.SIGINT and run.code not in (0, INTERRUPTED_CODE):
            return Outcome([f"exit code {run.code} after Ctrl-C: {run.error}"])
        failures = self.judge(sandbox, [before, self.backups[first]], "the interrupted restore")
        again = sandbox.larder("restore", str(sandbox.out / f"{second}.db"))
        if again.code != 0:
            failures.append(f"the next restore: exit code {again.code}: {again.error}")
        failures += self.judge(sandbox, [self.backups[second]], "the next restore")
        return Outcome(failures, {f"SIG{name}": 1})

    def judge(self, sandbox: Sandbox, allowed: list[Contents | None], after: str) -> list[str]:
        """Judges the store: sound, with one of these contents, and with its copies sound, too."""
        check = sandbox.larder("check")
        if check.code != 0:
            return [f"after {after}: check: exit code {check.code}: {check.error}"]
        now = oracle.read_contents(sandbox.store / "data.db")
        if now is None or not any(contents and now.same_items(contents) for contents in allowed):
            return [f"after {after}: the store has other items"]
        copies = [path for path in sandbox.store.glob("data.db.before-*") if ".partial" not in path.name]
        unreadable = [path.name for path in copies if oracle.read_contents(path) is None]
        return [f"after {after}: {name} cannot be read" for name in unreadable]
