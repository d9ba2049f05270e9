"""The steps that stop or disturb each verb at each of its I/O calls: what they share.

Apart from the faults, because killing, failing calls and full disks differ only in the fault.
"""

import abc

from harness import oracle
from harness.oracle import Expectation
from harness.preload import Preload
from harness.program import Run
from harness.runner import Lab, Outcome, Step
from harness.sandbox import Sandbox
from harness.verbs import VERBS, Verb


def stdin_of(sandbox: Sandbox, verb: Verb) -> bytes:
    """Returns what the verb reads from standard input."""
    return (sandbox.inputs / verb.stdin).read_bytes() if verb.stdin else b""


def run_verb(sandbox: Sandbox, verb: Verb, extra: dict[str, str] | None = None) -> Run:
    """Runs a verb on the store of the sandbox."""
    return sandbox.larder(*sandbox.expand(verb.command), extra=extra, stdin=stdin_of(sandbox, verb), until=verb.until)


def expect(lab: Lab, sandbox: Sandbox, verb: Verb, calls: dict[str, str]) -> Expectation:
    """Runs a verb without a fault, once for each group of I/O calls, and counts them."""
    counts = {}
    for group, letters in calls.items():
        sandbox.fill(lab.fixtures.start(verb.start))
        before = oracle.read_contents(sandbox.store / "data.db")
        output_before = oracle.read_output(sandbox, verb)
        count = sandbox.root / "calls"
        count.unlink(missing_ok=True)
        run = run_verb(sandbox, verb, lab.preload.counting(sandbox.case, letters, count))
        if not verb.has_ended(run):
            raise RuntimeError(f"{verb.name} without a fault: exit code {run.code}: {run.text}")
        counts[group] = int(count.read_text())
    after = oracle.read_contents(sandbox.store / "data.db")
    expectation = Expectation(verb, before, after, output_before, oracle.read_output(sandbox, verb), calls=counts)
    if verb.indexes_mail:
        expectation.mail = oracle.read_mail(sandbox)
        expectation.mail_afresh = oracle.make_mail_afresh(sandbox)
    return expectation


class VerbStep(Step):
    """A step whose points are the I/O calls of all verbs."""

    # The calls that are points: names of groups, and letters of fault.c.
    calls: dict[str, str]

    def __init__(self, lab: Lab):
        super().__init__(lab)
        self.expectations: dict[str, Expectation] = {}

    def missing(self) -> str | None:
        return Preload.missing()

    def points(self) -> list[str]:
        sandbox = self.lab.sandbox("expect")
        for verb in VERBS:
            self.expectations[verb.name] = expect(self.lab, sandbox, verb, self.calls)
        return [f"{name}:{variant}" for name, expectation in self.expectations.items()
                for variant in self.variants(expectation)]

    @abc.abstractmethod
    def variants(self, expectation: Expectation) -> list[str]:
        """Lists the points of a verb."""

    def judge(self, sandbox: Sandbox, expectation: Expectation, ended: bool) -> Outcome:
        """Judges the store and the output after a fault, then runs the verb again."""
        failures = oracle.judge_store(sandbox, expectation, ended)
        if not failures:
            failures += oracle.judge_output(sandbox, expectation, ended)
            if expectation.verb.erased:
                failures += oracle.judge_erasure(sandbox, expectation, ended)
            failures += oracle.judge_repetition(sandbox, expectation, stdin_of(sandbox, expectation.verb))
            if expectation.verb.indexes_mail and not failures:
                failures += oracle.judge_mail(sandbox, expectation)
            if expectation.verb.erased and not failures:
                failures += oracle.judge_erasure(sandbox, expectation, ended=True)
        return Outcome(failures)
