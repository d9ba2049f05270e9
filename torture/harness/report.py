"""Prints the results of steps as one table."""

import collections
import re

from harness.runner import Summary

# Groups of points that are listed for a kind of failure.
SHOWN_GROUPS = 12

COLUMNS = ("step", "tried", "of", "failed", "seconds", "left out")


def print_table(summaries: list[Summary]) -> None:
    """Prints a row for each step, then the counts, figures and failures."""
    rows = [COLUMNS] + [row(summary) for summary in summaries]
    widths = [max(len(line[column]) for line in rows) for column in range(len(COLUMNS))]
    print()
    for line in rows:
        cells = [text.ljust(width) if column in (0, 5) else text.rjust(width)
                 for column, (text, width) in enumerate(zip(line, widths))]
        print("  ".join(cells).rstrip())
    for summary in summaries:
        for name, number in sorted(summary.counts.items()):
            print(f"{summary.step}: {number:,} {name}")
        for figure in summary.figures:
            print(f"{summary.step}: {figure}")
    for summary in summaries:
        print_failures(summary)


def row(summary: Summary) -> tuple[str, ...]:
    """The cells of a step."""
    if summary.left_out:
        return (summary.step, "0", "", "0", "", summary.left_out)
    return (summary.step, f"{summary.tried:,}", f"{summary.available:,}", f"{summary.failed:,}", f"{summary.seconds:.0f}", "")


def print_failures(summary: Summary) -> None:
    """Prints the kinds of failures of a step, each with a point that shows it."""
    kinds: dict[str, list[str]] = collections.defaultdict(list)
    for point, failure in summary.failures:
        kinds[mask(failure)].append(point)
    for kind, points in sorted(kinds.items(), key=lambda entry: -len(entry[1])):
        groups = sorted({point.split(":")[0] for point in points})
        print(f"{len(points):,} x {kind}")
        print(f"      {', '.join(groups[:SHOWN_GROUPS])}{', ...' if len(groups) > SHOWN_GROUPS else ''}")
        print(f"      torture/run.py {summary.step} --point {points[0]} --keep")


def mask(failure: str) -> str:
    """Returns a failure without the parts that differ between points, so that it names a kind."""
    text = failure.strip().splitlines()[-1]
    text = re.sub(r"\b[0-9a-z]{8} in \S+", "ID in COLLECTION", text)
    return re.sub("[0-9]+", "N", text)
