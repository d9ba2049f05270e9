"""Fills one page of the database with zeros: everything that other pages hold comes out again.

A page of derived data is made again by `check --rebuild`, and nothing is missing then. From a store with a lost
page of items, `salvage` gets all others.
"""

import pathlib
import sqlite3

from harness import oracle
from harness.oracle import Contents
from harness.runner import Lab, Outcome, Step
from harness.sandbox import Sandbox, Start, copy_store

PAGE = 4096
# Pages of a large store that are tried; all pages of the standard store are.
LARGE_SAMPLE, LARGE_CONTACTS = 300, 20_000
# The part of the items that must come out of a large store. One page of the standard store has a greater part.
NEEDED_PART = {"large": 0.995, "standard": 0.9}
# A rebuild that mended a damaged page reports the damage with 4; the check after it decides.
MENDED_CODES = (0, 4)


class ZeroedPageStep(Step):
    """each page of a store, and pages of a store of 10,000 pages, filled with zeros"""

    name = "pages"

    def __init__(self, lab: Lab):
        super().__init__(lab)
        self.contents: dict[str, Contents | None] = {}
        self.large = lab.scratch / "large"

    def missing(self) -> str | None:
        try:
            sqlite3.connect(":memory:").execute("SELECT count(*) FROM dbstat")
        except sqlite3.OperationalError:
            return "Python's SQLite has no table dbstat"
        return None

    def points(self) -> list[str]:
        points = self.pages_of("standard", self.lab.fixtures.standard)
        if not self.lab.quick:
            self.make_large_store()
            pages = self.pages_of("large", self.large)
            points += self.lab.random("large pages").sample(pages, min(LARGE_SAMPLE, len(pages)))
        return points

    def make_large_store(self) -> None:
        """Makes a store of some 10,000 pages."""
        book = self.lab.scratch / "large.vcf"
        fixtures = self.lab.fixtures
        for command in (f"measure generate contacts {LARGE_CONTACTS} --seed 8 --output {book}", f"import {book}"):
            fixtures.run(command, self.large)

    def pages_of(self, store: str, folder: pathlib.Path) -> list[str]:
        """Lists the pages of a store by their tables: `item/standard:17`."""
        copy = self.lab.scratch / f"{store}-pages"
        copy_store(folder, copy)
        connection = sqlite3.connect(copy / "data.db")
        indexes = {name for (name,) in connection.execute("SELECT name FROM sqlite_schema WHERE type = 'index'")}
        pages = connection.execute("SELECT name, pageno FROM dbstat ORDER BY pageno").fetchall()
        connection.close()
        self.contents[store] = oracle.read_contents(copy / "data.db")
        derived = {name for name, _ in pages if name.startswith("idx_") or name in indexes}
        return [f"{name}{' (derived)' if name in derived else ''}/{store}:{page}" for name, page in pages]

    def attempt(self, sandbox: Sandbox, point: str) -> Outcome:
        group, page = point.split(":")
        owner, store = group.rsplit("/", 1)
        folder = self.large if store == "large" else self.lab.fixtures.standard
        sandbox.fill(Start(folder, self.lab.fixtures.out))
        with open(sandbox.store / "data.db", "r+b") as file:
            file.seek((int(page) - 1) * PAGE)
            file.write(bytes(PAGE))
        contents = self.contents[store]
        failures = self.judge_salvage(sandbox, contents, 1.0 if owner.endswith("(derived)") else NEEDED_PART[store])
        if owner.endswith("(derived)"):
            failures += judge_rebuild(sandbox, contents)
        return Outcome(failures)

    def judge_salvage(self, sandbox: Sandbox, contents: Contents, needed: float) -> list[str]:
        """Judges how many items come out, and that the result is a sound store."""
        file = sandbox.out / "salvaged.db"
        run = sandbox.larder("salvage", str(file))
        salvaged = oracle.read_contents(file)
        if run.crash() or salvaged is None:
            return [f"salvage: {run.crash() or f'exit code {run.code}: {run.error}'}"]
        found = sum(salvaged.items.get(key) == content for key, content in contents.items.items())
        # An item whose page of calendar contexts was lost has its bytes, but no time-zone definitions: this must be said.
        whole = sum(salvaged.digests.get(key) == digest for key, digest in contents.digests.items())
        failures = []
        if found < needed * len(contents.digests):
            failures.append(f"salvage got {found} of {len(contents.digests)} items: {run.error}")
        if whole < len(contents.digests) and run.code == 0:
            failures.append(f"salvage got {whole} of {len(contents.digests)} items whole, and ends with 0")
        foreign = set(salvaged.items.values()) - set(contents.items.values())
        if foreign:
            failures.append(f"salvage gives {len(foreign)} items other bytes")
        other = ["--data-dir", str(sandbox.case / "other")]
        restore, check = sandbox.larder(*other, "restore", str(file)), sandbox.larder(*other, "check")
        if restore.code != 0 or check.code != 0:
            failures.append(f"the salvaged store cannot be restored: {restore.error}; {check.error}")
        return failures


def judge_rebuild(sandbox: Sandbox, contents: Contents) -> list[str]:
    """Judges that a rebuild mends a page of derived data."""
    rebuild = sandbox.larder("check", "--rebuild")
    if rebuild.code not in MENDED_CODES:
        return [f"check --rebuild: exit code {rebuild.code}: {rebuild.error}"]
    check = sandbox.larder("check")
    now = oracle.read_contents(sandbox.store / "data.db")
    if check.code != 0 or not (now and now.same_items(contents)):
        return [f"after check --rebuild: check: exit code {check.code}: {check.error}"]
    return []
