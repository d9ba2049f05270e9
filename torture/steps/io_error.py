"""Lets each I/O call of each verb fail, once or for good."""

import re

from harness import oracle
from harness.oracle import Expectation
from harness.preload import ERRORS, READ_CALLS, SPACE_CALLS
from harness.program import Run
from harness.runner import Outcome
from harness.sandbox import Sandbox
from harness.verbs import Effect
from steps.verb_points import VerbStep, run_verb

# A command that could not finish must say why: the store, or another file or disk.
FAILURE_CODES = (4, 5)
# The verbs that may end with a part of the result, and the code that they end with then.
SALVAGE_VERBS = ("salvage", "salvage-damaged")
PARTIAL_CODE = 4


class IoErrorStep(VerbStep):
    """EIO, ENOSPC or EDQUOT from every I/O call of every verb, once and for good"""

    name = "io-errors"
    calls = {"write": SPACE_CALLS, "read": READ_CALLS}

    def variants(self, expectation: Expectation) -> list[str]:
        # The errors take turns, so that each call is tried twice and not six times. Only EIO comes from reads.
        names, extents = list(ERRORS), ("once", "for-good")
        writes = [f"write:{number}:{names[(number + shift) % 3]}:{extent}"
                  for number in range(expectation.calls["write"]) for shift, extent in enumerate(extents)]
        reads = [f"read:{number}:EIO:{extents[number % 2]}" for number in range(expectation.calls["read"])]
        return writes + reads

    def attempt(self, sandbox: Sandbox, point: str) -> Outcome:
        name, group, number, error, extent = point.split(":")
        expectation = self.expectations[name]
        sandbox.fill(self.lab.fixtures.start(expectation.verb.start))
        code, words = ERRORS[error]
        if expectation.verb.start.startswith("damaged"):
            # A store that was damaged before may be named as that, whatever fails then.
            words += "|is damaged"
        fault = self.lab.preload.failing(sandbox.case, self.calls[group], int(number), code, extent == "once")
        run = run_verb(sandbox, expectation.verb, fault)
        crash = run.crash()
        if crash:
            return Outcome([crash])
        is_partial = is_partial_salvage(expectation, run, ERRORS[error][1])
        ended = expectation.verb.has_ended(run) and not is_partial
        failures = [] if ended else judge_message(run, words)
        contents = oracle.read_contents(sandbox.store / "data.db")
        if is_partial:
            failures += take_partial_output(sandbox, expectation, run)
        outcome = self.judge(sandbox, expectation, ended)
        outcome.failures += failures + ([] if ended else judge_commit(expectation, contents, run))
        outcome.counts["commands that succeeded nevertheless"] = int(ended)
        return outcome


def is_partial_salvage(expectation: Expectation, run: Run, words: str) -> bool:
    """Returns whether a salvage could not read all of a store, and its error names the failing disk as the cause."""
    is_salvage = expectation.verb.name in SALVAGE_VERBS
    is_partial = run.code == PARTIAL_CODE and "cannot read all of the store" in run.error
    return is_salvage and is_partial and bool(re.search(words, run.error, re.IGNORECASE))


def take_partial_output(sandbox: Sandbox, expectation: Expectation, run: Run) -> list[str]:
    """Judges the file of a salvage that names a failing disk: a store, with no item that the whole one does not have.

    Removes the file, because a salvage replaces none, and the verb is run again.
    """
    path = sandbox.out / expectation.verb.output
    contents = oracle.read_contents(path)
    path.unlink(missing_ok=True)
    if contents is None:
        return [f"{path.name} is no store"]
    whole, _ = expectation.output_after
    expected = set(whole.values())
    # An item may be the whole one without its time-zone definitions, if the salvage says so.
    without_context = {expectation.before.digests_without_context.get(key) for key in whole}
    others = [value for value in contents.digests.values() if value not in expected]
    bare = [value for value in others if value in without_context]
    failures = []
    if len(others) > len(bare):
        failures.append(f"{path.name} has {len(others) - len(bare)} items that the whole one does not have")
    named = count_lost_contexts(run.text)
    if len(bare) > named:
        failures.append(f"{path.name} has {len(bare)} items without their time-zone definitions, and {named:.0f} are named")
    return failures


def count_lost_contexts(text: str) -> float:
    """Returns the number of items of which a salvage says that their time-zone definitions are missing."""
    if re.search("missing: an unknown number of time-zone definitions of items", text):
        return float("inf")
    return sum(int(count) for count in re.findall(r"missing: the time-zone definitions of (\d+) items?\b", text))


def judge_message(run: Run, words: str) -> list[str]:
    """Judges the exit code and the message of a command that failed."""
    if run.code not in FAILURE_CODES:
        return [f"exit code {run.code}: {run.error}"]
    if not re.search(words, run.text, re.IGNORECASE):
        return [f"the message does not name the cause ({words}): {run.error}"]
    return []


def judge_commit(expectation: Expectation, now: oracle.Contents | None, run: Run) -> list[str]:
    """Judges a failure: a change that was committed must not be reported as one that was not made."""
    before, after = expectation.before, expectation.after
    if now is None or after is None:
        return []
    # A damaged store has no readable contents to compare.
    if expectation.verb.effect is Effect.NOTHING if before is None else before.same_items(after):
        return []
    if expectation.verb.effect is Effect.ADDITION:
        is_done = before is not None and len(now.items) > len(before.items)
    else:
        is_done = now.same_items(after)
    message = "\n".join(line for line in run.text.splitlines() if not line.startswith("hint:"))
    if is_done and not re.search("committed|was made|were imported|purge", message):
        return [f"committed, but reported as failed: {run.error}"]
    return []
