"""How long a small change waits while another command writes: one `add` after another beside each long verb.

Apart from `concurrency`, because here each verb is alone with the small changes, on a store of any size
(`--items 1000000`), so that the verb which blocks them is known.
"""

import contextlib
import re
import sqlite3
import subprocess
import time
from pathlib import Path

from harness.runner import Lab, Outcome, Step
from harness.sandbox import Sandbox
from steps.concurrency import card, describe, percentile_99

# The longest that 99 of 100 small changes may wait.
LIMIT_SECONDS = 0.25

# The commands beside which small changes are made, in this order; `bulk` is the collection of all items. A restore
# is not here: it holds the lock.
VERBS = {
    "import of changes": "import --into bulk {folder}/bulk-1.vcf",
    "import of changes, large batches": "import --into bulk --batch 4000 {folder}/bulk-0.vcf",
    "check": "check",
    "backup": "backup {folder}/backup.db",
    "check --rebuild": "check --rebuild",
    "collections index": "collections index bulk --index email:exact",
    "collections remove": "collections remove bulk",
    "undo of a removal": "undo {operation}",
    "remove --query": "remove --in bulk --query email:a*",
    "purge": "purge -y small/purged",
}


def run_to_end(sandbox: Sandbox, *arguments: str) -> str:
    """Runs a command that takes as long as it needs, and returns its output. An error ends the step."""
    process = sandbox.program.start(list(arguments), sandbox.store, stdout=subprocess.PIPE)
    output = process.communicate()[0].decode()
    if process.returncode != 0:
        raise RuntimeError(f"{arguments[0]}: exit code {process.returncode}")
    return output


def wait_for_operation(verb: str, store: Path, process: subprocess.Popen) -> None:
    """Returns when the last operation of the store is one of this verb, or the process has ended."""
    while process.poll() is None:
        with contextlib.closing(sqlite3.connect(store / "data.db")) as connection:
            last = connection.execute("SELECT verb FROM operation ORDER BY id DESC LIMIT 1").fetchone()
        if last == (verb,):
            return
        time.sleep(0.01)


class WaitingStep(Step):
    """the time that a small change waits beside each long verb; --items sets the size of the store"""

    name = "waiting"
    quick_points = 0
    jobs = 1

    def __init__(self, lab: Lab):
        super().__init__(lab)
        self.has_store = False

    def points(self) -> list[str]:
        return list(VERBS)

    def attempt(self, sandbox: Sandbox, point: str) -> Outcome:
        if not self.has_store:
            self.make_store(sandbox)
        failures, times, operation = [], [], ""
        if point == "undo of a removal":
            # Two small changes after a removal of more than 64 MB prune it, unless its undo has begun.
            removal = run_to_end(sandbox, "collections", "remove", "bulk")
            operation = re.search(r"larder undo (\d+)", removal)[1]
        command = [word.format(folder=sandbox.root, operation=operation) for word in VERBS[point].split()]
        process = sandbox.program.start(command, sandbox.store, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        if operation:
            wait_for_operation("undo", sandbox.store, process)
        began = time.monotonic()
        while process.poll() is None or not times:
            added = time.monotonic()
            run = sandbox.larder("add", "-", "--into", "small", stdin=card(f"{point}-{len(times)}", 1))
            times.append(time.monotonic() - added)
            if run.code != 0:
                failures.append(f"add: exit code {run.code}: {run.error}")
        took = time.monotonic() - began
        error = process.communicate()[1].decode()
        if percentile_99(times) > LIMIT_SECONDS:
            failures.append(f"{point}: a small change waits longer than {LIMIT_SECONDS * 1000:.0f} ms: {describe(times)}")
        if process.returncode != 0:
            failures.append(f"{point}: exit code {process.returncode}: {error}")
        if point == "collections remove":
            run_to_end(sandbox, "import", "--into", "bulk", str(sandbox.root / "bulk-0.vcf"))
        return Outcome(failures, {}, [f"{point} ({took:.1f} s): {describe(times)}"])

    def make_store(self, sandbox: Sandbox) -> None:
        """Makes a store with all items."""
        sandbox.clear()
        sandbox.case.mkdir(parents=True)
        path = sandbox.root / "bulk-0.vcf"
        run_to_end(sandbox, "measure", "generate", "contacts", str(self.lab.items), "--seed", "9", "--output", str(path))
        (sandbox.root / "bulk-1.vcf").write_bytes(path.read_bytes().replace(b"END:VCARD", b"X-CHANGED:1\r\nEND:VCARD"))
        run_to_end(sandbox, "import", "--into", "bulk", str(path))
        found = int(run_to_end(sandbox, "find", "--in", "bulk", "--count"))
        if found != self.lab.items:
            raise RuntimeError(f"the store has {found} items instead of {self.lab.items}")
        sandbox.larder("add", "-", "--into", "small", stdin=card("purged", 1))
        self.has_store = True
