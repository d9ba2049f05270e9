"""How long a small change waits while another command writes: one `add` after another beside each long verb.

Apart from `concurrency`, because here each verb is alone with the small changes, on a store of any size
(`--items 1000000`), so that the verb which blocks them is known.
"""

import re
import subprocess
import time

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
            removal = sandbox.larder("collections", "remove", "bulk")
            operation = re.search(r"larder undo (\d+)", removal.out.decode())[1]
        command = [word.format(folder=sandbox.root, operation=operation) for word in VERBS[point].split()]
        process = sandbox.program.start(command, sandbox.store, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
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
            sandbox.larder("import", "--into", "bulk", str(sandbox.root / "bulk-0.vcf"))
        return Outcome(failures, {}, [f"{point} ({took:.1f} s): {describe(times)}"])

    def make_store(self, sandbox: Sandbox) -> None:
        """Makes a store with all items."""
        sandbox.clear()
        sandbox.case.mkdir(parents=True)
        path = sandbox.root / "bulk-0.vcf"
        sandbox.larder("measure", "generate", "contacts", str(self.lab.items), "--seed", "9", "--output", str(path))
        (sandbox.root / "bulk-1.vcf").write_bytes(path.read_bytes().replace(b"END:VCARD", b"X-CHANGED:1\r\nEND:VCARD"))
        sandbox.larder("import", "--into", "bulk", str(path))
        sandbox.larder("add", "-", "--into", "small", stdin=card("purged", 1))
        self.has_store = True
