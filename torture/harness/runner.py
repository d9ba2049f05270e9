"""Tries the points of a step on all processors, and keeps the result of each, so that a run can be resumed.

A point is a text that names one try, such as `edit:17`; a step lists all of its points in an order that depends on
nothing but the program. Results are lines of JSON in the folder of results; the first line says which program and
seed they belong to. A step whose points all have a result is done.
"""

import abc
import collections
import dataclasses
import functools
import hashlib
import json
import multiprocessing
import pathlib
import random
import time
import traceback

from harness.fixtures import Fixtures
from harness.preload import Preload
from harness.sandbox import Sandbox

# The folder of these tests.
SOURCES = pathlib.Path(__file__).resolve().parent.parent


@dataclasses.dataclass
class Outcome:
    """The result of a point."""

    failures: list[str] = dataclasses.field(default_factory=list)
    # What the table sums up, for example how many of the kills hit a transaction.
    counts: dict[str, int] = dataclasses.field(default_factory=dict)
    # Measured values, printed as they are.
    figures: list[str] = dataclasses.field(default_factory=list)


@dataclasses.dataclass
class Lab:
    """What all steps of a run share."""

    program: pathlib.Path
    scratch: pathlib.Path
    results: pathlib.Path
    seed: int
    jobs: int
    fixtures: Fixtures
    preload: Preload
    quick: bool
    # The number of items of the steps that measure.
    items: int

    def sandbox(self, name: str) -> Sandbox:
        """Returns a private directory."""
        return Sandbox(self.scratch / name, self.program, self.fixtures.inputs)

    def random(self, *parts: object) -> random.Random:
        """Returns a random generator that depends on the seed and on these values only."""
        return random.Random(repr((self.seed, *parts)))

    @functools.cached_property
    def digest(self) -> str:
        """Identifies the program and the tests: results of others are worth nothing."""
        files = [self.program, *sorted(SOURCES.rglob("*.py")), *sorted(SOURCES.rglob("*.[ch]"))]
        return hashlib.sha256(b"".join(path.read_bytes() for path in files)).hexdigest()[:16]


class Step(abc.ABC):
    """One way to attack a store. The first line of its documentation is its title."""

    name: str
    # Points that `make test` tries, and `make torture`; None: all of them.
    quick_points: int | None = 50
    full_points: int | None = None
    # Points that run at a time; None: one for each processor.
    jobs: int | None = None

    def __init__(self, lab: Lab):
        self.lab = lab

    @classmethod
    def title(cls) -> str:
        """Returns the first line of the documentation."""
        return (cls.__doc__ or "").splitlines()[0]

    def missing(self) -> str | None:
        """Returns what this machine lacks for the step, or None."""
        return None

    @abc.abstractmethod
    def points(self) -> list[str]:
        """Lists all points. Runs once, before the workers start, and may prepare what they share."""

    @abc.abstractmethod
    def attempt(self, sandbox: Sandbox, point: str) -> Outcome:
        """Tries a point."""


@dataclasses.dataclass
class Summary:
    """The result of a step."""

    step: str
    tried: int = 0
    available: int = 0
    failed: int = 0
    seconds: float = 0.0
    left_out: str | None = None
    counts: collections.Counter = dataclasses.field(default_factory=collections.Counter)
    figures: list[str] = dataclasses.field(default_factory=list)
    failures: list[tuple[str, str]] = dataclasses.field(default_factory=list)


class Journal:
    """The results of a step, on disk."""

    def __init__(self, path: pathlib.Path, header: dict):
        self.path = path
        self.results: dict[str, dict] = {}
        lines = path.read_text().splitlines() if path.exists() else []
        if lines and json.loads(lines[0]) == header:
            for line in lines[1:]:
                # The last line of a run that was killed may be incomplete.
                try:
                    entry = json.loads(line)
                except json.JSONDecodeError:
                    continue
                self.results[entry["point"]] = entry
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("".join(json.dumps(entry) + "\n" for entry in [header, *self.results.values()]))

    def add(self, point: str, outcome: Outcome, seconds: float) -> None:
        """Keeps a result."""
        entry = {"point": point, "seconds": round(seconds, 3), **dataclasses.asdict(outcome)}
        self.results[point] = entry
        with open(self.path, "a", encoding="utf-8") as file:
            file.write(json.dumps(entry) + "\n")


def choose(points: list[str], number: int | None, generator: random.Random) -> list[str]:
    """Chooses points evenly from their groups, which are the texts before the first colon; keeps the order."""
    if number is None or number >= len(points):
        return points
    groups: dict[str, list[int]] = collections.defaultdict(list)
    for index, point in enumerate(points):
        groups[point.split(":")[0]].append(index)
    for group in groups.values():
        generator.shuffle(group)
    chosen: list[int] = []
    while len(chosen) < number:
        for name in generator.sample(sorted(groups), len(groups)):
            if groups[name] and len(chosen) < number:
                chosen.append(groups[name].pop())
    return [points[index] for index in sorted(chosen)]


# Failures that are printed while a step runs; the table lists the kinds of all of them.
SHOWN_FAILURES = 10

# The step of the worker processes, which they inherit when they are forked, and the sandbox of this one.
worker_step: Step
worker_sandbox: Sandbox | None = None


def attempt_in_worker(point: str) -> tuple[str, Outcome, float]:
    """Tries a point in a worker process."""
    global worker_sandbox
    if worker_sandbox is None:
        worker_sandbox = worker_step.lab.sandbox(f"worker-{multiprocessing.current_process().pid}")
    began = time.monotonic()
    try:
        outcome = worker_step.attempt(worker_sandbox, point)
    except Exception:  # A mistake of the step is a failure of the point, and the others go on.
        outcome = Outcome(["the step failed: " + traceback.format_exc(limit=-4)])
    outcome.failures = [worker_sandbox.masked(failure) for failure in outcome.failures]
    return point, outcome, time.monotonic() - began


def run_step(step: Step, number: int | None, again: bool, only: list[str], groups: list[str]) -> Summary:
    """Tries the points of a step that have no result yet: `number` of them, or only these, or those of some groups."""
    global worker_step, worker_sandbox
    summary = Summary(step.name, left_out=step.missing())
    if summary.left_out:
        return summary
    began = time.monotonic()
    try:
        points = step.points()
    except Exception as error:  # The other steps run nevertheless.
        summary.failed, summary.failures = 1, [("preparation", f"{error}")]
        return summary
    if groups:
        points = [point for point in points if point.split(":")[0] in groups]
    chosen = only or choose(points, number, step.lab.random(step.name))
    header = {"step": step.name, "digest": step.lab.digest, "seed": step.lab.seed, "items": step.lab.items}
    kind = ".points" if only else ".quick" if step.lab.quick else ""
    path = step.lab.results / f"{step.name}{kind}.jsonl"
    if again or only:
        path.unlink(missing_ok=True)
    journal = Journal(path, header)
    earlier = sum(journal.results[point]["seconds"] for point in chosen if point in journal.results)
    rest = [point for point in chosen if point not in journal.results]
    worker_step, worker_sandbox = step, None
    jobs, shown = step.jobs or step.lab.jobs, 0
    with multiprocessing.get_context("fork").Pool(jobs) as pool:
        for point, outcome, seconds in pool.imap_unordered(attempt_in_worker, rest):
            journal.add(point, outcome, seconds)
            for failure in outcome.failures[:max(0, SHOWN_FAILURES - shown)]:
                print(f"FAILED {step.name} {point}: {failure}", flush=True)
            shown += len(outcome.failures)
    summary.tried, summary.available = len(chosen), len(points)
    summary.seconds = time.monotonic() - began + earlier / jobs
    for point in chosen:
        entry = journal.results[point]
        summary.failed += bool(entry["failures"])
        summary.failures += [(point, failure) for failure in entry["failures"]]
        summary.counts.update(entry["counts"])
        summary.figures += entry["figures"]
    return summary
