"""Kills each verb at each of its calls that change a file."""

import signal

from harness.oracle import Expectation
from harness.preload import WRITE_CALLS
from harness.runner import Outcome
from harness.sandbox import Sandbox
from steps.verb_points import VerbStep, run_verb


class KillStep(VerbStep):
    """kill -9 of every verb, before every call that changes a file"""

    name = "kill"
    calls = {"write": WRITE_CALLS}

    def variants(self, expectation: Expectation) -> list[str]:
        return [str(number) for number in range(expectation.calls["write"])]

    def attempt(self, sandbox: Sandbox, point: str) -> Outcome:
        name, number = point.split(":")
        expectation = self.expectations[name]
        sandbox.fill(self.lab.fixtures.start(expectation.verb.start))
        kill = self.lab.preload.signalling(sandbox.case, WRITE_CALLS, int(number), signal.SIGKILL)
        run = run_verb(sandbox, expectation.verb, kill)
        crash = run.crash(expected_signal=signal.SIGKILL)
        if crash:
            return Outcome([crash])
        outcome = self.judge(sandbox, expectation, ended=expectation.verb.has_ended(run))
        outcome.counts["killed"] = int(run.code == -signal.SIGKILL)
        return outcome
