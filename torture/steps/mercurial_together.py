"""Runs two commands on one git repository at the same time, whose history comes from Mercurial."""

import shutil
import threading
import time

from harness.mercurial import MERCURIAL_VERBS, MercurialCase, MercurialVerb, judge_words
from harness.mercurial_step import MercurialStep
from harness.program import Run
from harness.runner import Lab, Outcome
from harness.sandbox import Sandbox

FETCH = "git -C {case}/clone fetch -q"
# The same branches of another history, from a second remote.
FETCH_OTHER = ("git -C {case}/clone -c remote.other.url=hg::{case}/other "
               "-c remote.other.fetch=+refs/heads/*:refs/remotes/other/* fetch -q other")
UNBUNDLE = "hg --repository {case}/clone unbundle {case}/project.hg"
# The pairs; the second command starts later, by a random time up to that of an undisturbed fetch.
PAIRS = {
    "two-fetches": (FETCH, FETCH),
    "two-remotes": (FETCH, FETCH_OTHER),
    "two-remotes-reversed": (FETCH_OTHER, FETCH),
    "fetch-and-unbundle": (FETCH, UNBUNDLE),
    "fetch-and-rollback": (FETCH, "hg --repository {case}/clone rollback"),
    "fetch-and-gc": (FETCH, "git -C {case}/clone gc -q"),
    "fetch-and-repack": (FETCH, "git -C {case}/clone repack -adq"),
    "fetch-and-prune": (FETCH, "git -C {case}/clone gc -q --prune=now"),
    "fetch-and-tags": (FETCH, "hg --repository {case}/clone tags"),
    "unbundle-and-rollback": (UNBUNDLE, "hg --repository {case}/clone rollback"),
}
STARTS = ("old", "segments")
# Words of git about a ref that another process is changing.
LOCK_WORDS = ("cannot lock ref", "Unable to create", "is at ", "incorrect old value")


class MercurialTogetherStep(MercurialStep):
    """two fetches, or a fetch beside larder hg or git gc, on one repository"""

    name = "hg-together"
    quick_points = 8
    full_points = 300

    def __init__(self, lab: Lab):
        super().__init__(lab)
        self.commits: dict[str, str] = {}
        self.refs: dict[str, str] = {}
        # With those of the second remote.
        self.all_refs: dict[str, str] = {}
        self.seconds = 0.0

    def points(self) -> list[str]:
        case = self.undisturbed_case()
        verb = next(verb for verb in MERCURIAL_VERBS if verb.name == "hg-fetch")
        self.fill(case, verb)
        began = time.monotonic()
        run = case.run(verb)
        self.seconds = time.monotonic() - began
        state = case.state()
        if run.code != 0 or state is None:
            raise RuntimeError(f"a fetch without a fault: {run.text}")
        self.commits, self.refs = state.commits, state.remote_refs()
        run = case.run(MercurialVerb("other", FETCH_OTHER, "old"))
        state = case.state()
        if run.code != 0 or state is None:
            raise RuntimeError(f"a fetch from a second remote without a fault: {run.text}")
        self.all_refs = state.remote_refs()
        return [f"{pair}:{start}:{turn}" for pair in PAIRS for start in STARTS for turn in range(20)]

    def fill(self, case: MercurialCase, verb: MercurialVerb) -> None:
        """Makes the folder of a point, with the second remote."""
        case.fill(verb)
        shutil.copytree(self.fixtures.folder / "other", case.case / "other")

    def attempt(self, sandbox: Sandbox, point: str) -> Outcome:
        pair, start, _ = point.split(":")
        case = self.case(sandbox)
        verbs = [MercurialVerb(pair, command, start) for command in PAIRS[pair]]
        self.fill(case, verbs[0])
        delay = self.lab.random(point).random() * self.seconds
        runs: list[Run] = [None, None]

        def run_one(number: int) -> None:
            time.sleep(number * delay)
            runs[number] = case.run(verbs[number])

        threads = [threading.Thread(target=run_one, args=(number,)) for number in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        failures = []
        for command, run in zip(PAIRS[pair], runs):
            failures += judge_words(run)
            # A rollback may find nothing to forget. git does not wait for its own locks.
            is_refused = run.code == 1 and "rollback" in command or any(word in run.text for word in LOCK_WORDS)
            if run.code != 0 and not is_refused:
                failures.append(f"{command}: exit code {run.code}: {run.text.strip()}")
        failures += case.judge_soundness()
        has_other = FETCH_OTHER in PAIRS[pair]
        refs = self.all_refs if has_other else self.refs
        state = case.state()
        is_done = all(run.code == 0 for run in runs)
        if has_other and is_done and (state is None or state.commits != self.commits or state.remote_refs() != refs):
            failures.append("the fetches gave other commits or refs")
        for command in [FETCH, FETCH_OTHER][:1 + has_other]:
            again = case.run(MercurialVerb(pair, command, start))
            if again.code != 0:
                failures.append(f"the next fetch: exit code {again.code}: {again.text.strip()}")
        state = case.state()
        if state is None or state.commits != self.commits or state.remote_refs() != refs:
            failures.append("the next fetch gives other commits or refs")
        failures += case.judge_soundness() + case.judge_leftovers()
        return Outcome(failures, {"commands that met a lock": sum(run.code != 0 for run in runs)})
