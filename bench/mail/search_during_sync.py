#!/usr/bin/env python3
"""Searches and labels while a first index is being made: CPU time of searches, wall time of labels, and what is found.

    search_during_sync.py LARDER MAILDIR [QUERY]

The same search is run while `larder sync` indexes the maildir, and again when it has ended. While it runs, a message gets a label by
another process, again and again. The exit code is 1 if a goal is missed: searches need at most twice the CPU time, a label at most
100 ms, and each search finds at least as much as the one before. Of few messages, the index is made before the first search.
"""

import json
import os
import resource
import subprocess
import sys
import tempfile
import time

# Single searches are shorter than the clock of the kernel is exact.
IDLE_SEARCHES = 100
MAX_CPU_RATIO = 2.0
MAX_LABEL_SECONDS = 0.1


def run(larder: str, *arguments: str) -> bytes:
    """Runs a command of larder and returns its output. Nothing is found before the first batch."""
    return subprocess.run([larder, *arguments], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL).stdout


def own_cpu() -> float:
    """Returns the CPU seconds of the children that have ended."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def search(larder: str, query: str) -> list[str]:
    """Returns the newest fifty messages that match."""
    found = run(larder, "find", "--kind", "message", "--format", "json", "-n", "50", query)
    return [json.loads(line)["id"] for line in found.splitlines()]


def count(larder: str, query: str) -> int:
    """Returns the number of messages that match."""
    return int(run(larder, "find", "--kind", "message", "--count", query).strip() or 0)


def main() -> int:
    larder, maildir = sys.argv[1:3]
    query = sys.argv[3] if len(sys.argv) > 3 else "report"
    with tempfile.TemporaryDirectory(dir=os.environ.get("TMPDIR")) as store:
        os.environ["LARDER_DIR"] = store
        run(larder, "sources", "add", maildir, "--into", "mail")
        sync = subprocess.Popen([larder, "--quiet", "sync"], stderr=subprocess.DEVNULL)
        counts, labels, searches, cpu = [], [], 0, 0.0
        while sync.poll() is None:
            began = own_cpu()
            found = search(larder, query)
            cpu, searches = cpu + own_cpu() - began, searches + 1
            if found:
                began_at = time.monotonic()
                subprocess.run([larder, "--quiet", "edit", found[0], "--label", f"+busy{searches}"], check=True,
                               stdout=subprocess.DEVNULL)
                labels.append(time.monotonic() - began_at)
                counts.append(count(larder, query))
        began = own_cpu()
        for _ in range(IDLE_SEARCHES):
            search(larder, query)
        idle = (own_cpu() - began) / IDLE_SEARCHES
    if not labels:
        print("left out: searches during a first index (it ended before anything was found)")
        return 0
    busy, longest = cpu / searches, max(labels)
    is_growing = counts == sorted(counts)
    print(f"a search while the index is made: {busy * 1000:.1f} ms CPU in the mean of {searches}, afterwards {idle * 1000:.1f} ms: "
          f"ratio {busy / idle:.2f} (goal {MAX_CPU_RATIO})")
    print(f"a label by another process: {len(labels)} times, median {sorted(labels)[len(labels) // 2] * 1000:.0f} ms, "
          f"at most {longest * 1000:.0f} ms (goal {MAX_LABEL_SECONDS * 1000:.0f})")
    print(f"found meanwhile: {counts[0]:,} to {counts[-1]:,}{'' if is_growing else ', not always more'}")
    return int(busy / idle > MAX_CPU_RATIO or longest > MAX_LABEL_SECONDS or not is_growing)


sys.exit(main())
