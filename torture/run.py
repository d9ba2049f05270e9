#!/usr/bin/env python3
"""Attacks the store and tells what it lost: torture/run.py [STEP...].

Without STEP, runs all steps. Results are kept in target/torture; a step that has all its results is not run again
unless --again is given, and a step that was interrupted goes on where it ended. README.md describes the steps.
"""

import argparse
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

if sys.version_info < (3, 10):
    sys.exit("error: torture/run.py needs Python 3.10 or newer")
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
# The source tree stays as it is.
sys.dont_write_bytecode = True

from harness.fixtures import Fixtures
from harness.mercurial import MERCURIAL_VERBS
from harness.preload import Preload
from harness.report import print_table
from harness.runner import Lab, Step, Summary, run_step
from harness.verbs import VERBS
from steps.bit_flip import BitFlipStep
from steps.cargo_tests import FuzzStep, ImportStep, ViewStep
from steps.clock import ClockStep
from steps.concurrency import ConcurrencyStep
from steps.full_disk import FullDiskStep, FullExt4Step
from steps.io_error import IoErrorStep
from steps.kill import KillStep
from steps.log_file import LogFileStep
from steps.mail_answers import MailAnswersStep
from steps.mercurial_faults import MercurialDiskStep, MercurialErrorStep, MercurialKillStep
from steps.mercurial_streams import MercurialStreamStep
from steps.mercurial_together import MercurialTogetherStep
from steps.model import ModelStep
from steps.power_cut import PowerCutStep
from steps.restore import RestoreStep
from steps.waiting import WaitingStep
from steps.zeroed_page import ZeroedPageStep

ROOT = pathlib.Path(__file__).resolve().parent.parent
STEPS: list[type[Step]] = [
    PowerCutStep, KillStep, RestoreStep, IoErrorStep, FullDiskStep, FullExt4Step, BitFlipStep, ZeroedPageStep,
    LogFileStep, ClockStep, ModelStep, ConcurrencyStep, MercurialKillStep, MercurialErrorStep, MercurialDiskStep,
    MercurialTogetherStep, MercurialStreamStep, WaitingStep, MailAnswersStep, ImportStep, ViewStep, FuzzStep,
]


def parse_arguments() -> argparse.Namespace:
    """Reads the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0], epilog="\n".join(
        ["steps:"] + [f"  {step.name:<14} {step.title()}" for step in STEPS]),
        formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("step", nargs="*", help="the steps to run [default: all]")
    parser.add_argument("--quick", action="store_true", help="try about 50 points of each step, as `make test` does")
    parser.add_argument("--points", type=int, metavar="N", help="try N points of each step; 0 for all")
    parser.add_argument("--point", action="append", default=[], metavar="NAME", help="try only this point (repeatable)")
    parser.add_argument("--verb", action="append", default=[], metavar="NAME",
                        help="try only points of this verb (repeatable)")
    parser.add_argument("--again", action="store_true", help="forget the results of earlier runs of these steps")
    parser.add_argument("--keep", action="store_true", help="keep the directories of the run, and print where they are")
    parser.add_argument("--seed", type=int, default=1, help="the seed of everything random [default: 1]")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="points at a time [default: processors]")
    parser.add_argument("--items", type=int, help="items of the steps that measure [default: 10000; quick: 1000]")
    parser.add_argument("--larder", type=pathlib.Path, metavar="FILE", help="the program to attack [default: build it]")
    arguments = parser.parse_args()
    unknown = set(arguments.step) - {step.name for step in STEPS}
    if unknown:
        parser.error(f"no such step: {', '.join(sorted(unknown))}; there are {', '.join(step.name for step in STEPS)}")
    unknown = set(arguments.verb) - {verb.name for verb in [*VERBS, *MERCURIAL_VERBS]}
    if unknown:
        parser.error(f"no such verb: {', '.join(sorted(unknown))}; harness/verbs.py and harness/mercurial.py list them")
    return arguments


def build(release: bool) -> pathlib.Path:
    """Builds the program; returns its path."""
    command = ["cargo", "build", "--quiet", "--package", "larder"] + ["--release"] * release
    subprocess.run(command, cwd=ROOT, check=True)
    target = pathlib.Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
    return target / ("release" if release else "debug") / "larder"


def scratch_parent() -> str | None:
    """Returns a file system in memory if there is one: killed processes lose nothing on it, and syncs are free."""
    memory = pathlib.Path("/dev/shm")
    return str(memory) if memory.is_dir() and shutil.disk_usage(memory).free > 1 << 30 else None


def run_steps(arguments: argparse.Namespace, scratch: pathlib.Path) -> list[Summary]:
    """Runs the chosen steps."""
    program = arguments.larder or build(release=not arguments.quick)
    # A copy, so that a build during the run changes nothing.
    copy = scratch / "larder"
    shutil.copy(program, copy)
    results = pathlib.Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target")) / "torture"
    lab = Lab(copy, scratch, results, arguments.seed, arguments.jobs, Fixtures(scratch / "fixtures", copy, arguments.quick),
              Preload(scratch / "preload"), arguments.quick, arguments.items or (1000 if arguments.quick else 10_000))
    lab.fixtures.make()
    if not Preload.missing():
        lab.preload.build()
    summaries = []
    for step_type in STEPS:
        is_chosen = step_type.name in arguments.step if arguments.step else not arguments.quick or step_type.quick_points
        if not is_chosen:
            continue
        number = step_type.quick_points if arguments.quick else step_type.full_points
        if arguments.points is not None:
            number = arguments.points or None
        print(f"{step_type.name}: {step_type.title()}", flush=True)
        summaries.append(run_step(step_type(lab), number, arguments.again or arguments.quick, arguments.point,
                                  arguments.verb))
    return summaries


def report_left_out(summaries: list[Summary]) -> None:
    """Appends what was left out to the list of `make test`."""
    path = os.environ.get("LARDER_LEFT_OUT")
    lines = [f"left out: torture {summary.step}: {summary.left_out}\n" for summary in summaries if summary.left_out]
    if path and lines:
        with open(path, "a", encoding="utf-8") as file:
            file.writelines(lines)


def main() -> int:
    """Runs the steps and prints the table."""
    arguments = parse_arguments()
    scratch = pathlib.Path(tempfile.mkdtemp(prefix="larder-torture-", dir=scratch_parent()))
    try:
        summaries = run_steps(arguments, scratch)
        print_table(summaries)
        report_left_out(summaries)
        needs_all = os.environ.get("LARDER_REQUIRE_ALL") == "1"
        return int(any(summary.failed or needs_all and summary.left_out for summary in summaries))
    finally:
        if arguments.keep:
            print(f"kept: {scratch}")
        else:
            shutil.rmtree(scratch, ignore_errors=True)


if __name__ == "__main__":
    sys.exit(main())
