"""The long tests that are not in this folder: property tests and fuzz targets of the workspace, with more cases.

`make test` runs each of them with fewer cases, so none is part of `--quick`.
"""

import os
import pathlib
import shutil
import subprocess

from harness.runner import Outcome, Step
from harness.sandbox import Sandbox

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
OUTPUT_LINES = 20


class CommandStep(Step):
    """A step that is one command."""

    quick_points = 0
    jobs = 1
    command: list[str]
    environment: dict[str, str] = {}

    def points(self) -> list[str]:
        return [" ".join(self.command)]

    def attempt(self, sandbox: Sandbox, point: str) -> Outcome:
        run = subprocess.run(self.command, cwd=ROOT, env={**os.environ, **self.environment}, text=True,
                             stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        last = run.stdout.splitlines()[-OUTPUT_LINES:]
        return Outcome(["\n".join([f"exit code {run.returncode}", *last])] if run.returncode else [])


class ImportStep(CommandStep):
    """1,000 imports of contacts and of calendars, killed at random moments of a write"""

    name = "imports"
    command = ["cargo", "test", "--quiet", "-p", "larder", "--test", "runner", "--", "crash_recovery::"]
    environment = {"LARDER_KILL_POINTS": "1000"}


class ViewStep(CommandStep):
    """4,000 random histories of live views: the changes add up to the answer"""

    name = "views"
    command = ["cargo", "test", "--quiet", "-p", "larder-query", "--test", "runner", "events_add_up_to_the_answer"]
    environment = {"LARDER_TEST_CASES": "4000"}


class FuzzStep(CommandStep):
    """each fuzz target for ten minutes"""

    name = "fuzz"
    command = ["fuzz/run.sh", "all", "600"]

    def missing(self) -> str | None:
        return None if shutil.which("c++") else "there is no C++ compiler"
