"""Runs one command with a clock that is wrong by years; nothing of the history may be lost by it."""

import dataclasses

from harness import oracle
from harness.preload import Preload
from harness.runner import Lab, Outcome, Step
from harness.sandbox import Sandbox
from harness.verbs import VERBS, Verb, verbs_named
from steps.verb_points import run_verb

DAY = 86_400
YEAR = 365 * DAY
SHIFTS = {"+104d": 104 * DAY, "-104d": -104 * DAY, "+100y": 100 * YEAR, "-100y": -100 * YEAR}
# Beyond the calendar of the program: it may refuse, and must not crash.
FAR_SHIFTS = {"+8100y": 8100 * YEAR}
# Undoes the edit that the standard store has; its former version is what a wrong clock could lose.
FOLLOWING = (["add", "Dinner 2026-03-07 19:00"], ["undo", "9"], ["log", "uid:bruno"])


@dataclasses.dataclass
class Aftermath:
    """What is left of the history after a command and the commands that follow it."""

    crash: str | None
    code: int
    history_rows: list[int | None]
    codes: list[int]


class ClockStep(Step):
    """one command under a clock that is wrong by days, 100 years or 8,100 years"""

    name = "clock"

    def __init__(self, lab: Lab):
        super().__init__(lab)
        self.expected: dict[str, Aftermath] = {}

    def missing(self) -> str | None:
        return Preload.missing()

    def points(self) -> list[str]:
        sandbox = self.lab.sandbox("expect")
        points = []
        for verb in VERBS:
            if verb.start == "standard":
                self.expected[verb.name] = self.run(sandbox, verb, 0)
                points += [f"{verb.name}:{shift}" for shift in {**SHIFTS, **FAR_SHIFTS}]
        return points

    def run(self, sandbox: Sandbox, verb: Verb, seconds: int) -> Aftermath:
        """Runs a verb with a shifted clock, and the following commands with the right one."""
        sandbox.fill(self.lab.fixtures.start(verb.start))
        extra = self.lab.preload.shifted_clock(seconds) if seconds else {}
        run = run_verb(sandbox, verb, extra)
        rows, codes = [history_rows(sandbox)], []
        for command in FOLLOWING:
            codes.append(sandbox.larder(*command).code)
            rows.append(history_rows(sandbox))
        return Aftermath(run.crash(), run.code, rows, codes)

    def attempt(self, sandbox: Sandbox, point: str) -> Outcome:
        name, shift = point.split(":")
        (verb,) = verbs_named([name])
        found = self.run(sandbox, verb, {**SHIFTS, **FAR_SHIFTS}[shift])
        expected = self.expected[name]
        check = sandbox.larder("check")
        failures = [f"check: exit code {check.code}: {check.error}"] if check.code else []
        if found.crash:
            return Outcome(failures + [found.crash])
        if shift in FAR_SHIFTS and found.code != 0:
            return Outcome(failures)
        if found.code != expected.code:
            failures.append(f"exit code {found.code} instead of {expected.code}")
        if found.history_rows != expected.history_rows:
            failures.append(f"former versions: {found.history_rows} instead of {expected.history_rows}")
        if found.codes != expected.codes:
            failures.append(f"the following commands end with {found.codes} instead of {expected.codes}")
        return Outcome(failures)


def history_rows(sandbox: Sandbox) -> int | None:
    """Returns the number of former versions in the store."""
    contents = oracle.read_contents(sandbox.store / "data.db")
    return contents.history_rows if contents else None
