"""Changes single bits of a store at rest. Each is found, the item is named, and no command passes a wrong byte on.

The bit is changed with SQL where the field matters, so that the pages stay in order and only a checksum can find
it. The group `anywhere` changes a bit of the file itself.
"""

import dataclasses
import pathlib
import random
import re
import sqlite3

from harness import oracle
from harness.oracle import Contents
from harness.runner import Lab, Outcome, Step
from harness.sandbox import Sandbox

FLIPS_IN_A_GROUP = 170
# The fields of each group: table, column, key column.
FIELDS = {
    "item-bytes": [("source_bytes", "bytes", "rowid")],
    "former-bytes": [("item_history", "bytes", "rowid")],
    "blob": [("blob", "bytes", "rowid")],
    "context": [("calendar_context", "calendar_version", "rowid"), ("calendar_context", "zone_definitions", "rowid")],
    "zone": [("zone_definition", "tzid", "rowid"), ("zone_definition", "bytes", "rowid")],
    "meta": [("meta", "value", "key")],
    "derived-meta": [("meta", "value", "key")],
    "rows": [("item", "kind", "rowid"), ("item", "uid", "rowid"), ("item", "calendar_context", "rowid"),
             ("item_history", "kind", "rowid"), ("item_history", "since", "rowid"), ("item_history", "removed", "rowid"),
             ("collection", "type", "rowid"), ("collection", "properties", "rowid"), ("operation", "verb", "rowid"),
             ("operation", "store_age_ms", "rowid"), ("batch", "operation", "rowid")],
}
# Values of `meta` that say how indexes were filled. A program that finds another value, or a damaged one, fills the
# indexes again, so there is nothing to report.
DERIVED_KEYS = re.compile(rb"fingerprint:|zone_data_version")
# Groups whose damage `check --rebuild` cannot mend, because the original is nowhere else.
LOST_GROUPS = ("item-bytes", "former-bytes", "blob", "zone")
COLLECTIONS = ("contacts", "Calendar", "known", "club")
ID_LETTERS = "0123456789abcdefghjkmnpqrstvwxyz"


@dataclasses.dataclass(frozen=True)
class Damage:
    """What was damaged: the item to which the field belongs, if it belongs to one, and the operation that replaced it."""

    text: str
    # The beginning of its ID, as messages have it, and the name of its collection.
    item: tuple[str, str] | None = None
    operation: int | None = None


class BitFlipStep(Step):
    """one bit changed in item bytes, former versions, blobs, contexts, zones, meta, or anywhere in the file"""

    name = "bit-flips"

    def __init__(self, lab: Lab):
        super().__init__(lab)
        self.outputs: dict[str, bytes] = {}
        self.undone: dict[int, Contents | None] = {}
        self.contents: Contents | None = None

    def points(self) -> list[str]:
        sandbox = self.lab.sandbox("expect")
        sandbox.fill(self.lab.fixtures.start("standard"))
        self.outputs = {name: sandbox.larder(*command).out for name, command in readers().items()}
        self.contents = oracle.read_contents(sandbox.store / "data.db")
        for operation in range(1, 12):
            sandbox.fill(self.lab.fixtures.start("standard"))
            if sandbox.larder("undo", str(operation)).code == 0:
                self.undone[operation] = oracle.read_contents(sandbox.store / "data.db")
        return [f"{group}:{number}" for group in (*FIELDS, "anywhere") for number in range(FLIPS_IN_A_GROUP)]

    def attempt(self, sandbox: Sandbox, point: str) -> Outcome:
        group = point.split(":")[0]
        sandbox.fill(self.lab.fixtures.start("standard"))
        generator = self.lab.random(point)
        if group == "anywhere":
            flip_anywhere(sandbox.store / "data.db", generator)
            failures = self.judge_outputs(sandbox, ["export"]) + self.judge_soundness(sandbox)
            return Outcome(failures + self.judge_salvage(sandbox) + self.judge_mended(sandbox))
        damage = flip_field(sandbox.store / "data.db", group, generator)
        if group == "derived-meta":
            return Outcome(self.judge_outputs(sandbox, [""]) + self.judge_soundness(sandbox))
        # Lists are printed from stored fields and rows, which only the check verifies.
        names = ["export"] if group == "rows" else ["export", "list", "words", "agenda"]
        failures = self.judge_check(sandbox, damage) + self.judge_outputs(sandbox, names)
        failures += self.judge_copies(sandbox) + self.judge_salvage(sandbox) + self.judge_undo(sandbox, damage)
        if group in LOST_GROUPS:
            failures += judge_rebuild(sandbox)
        return Outcome([f"{damage.text}: {failure}" for failure in failures])

    def judge_check(self, sandbox: Sandbox, damage: Damage) -> list[str]:
        """Judges that the check finds the damage and names the item."""
        check = sandbox.larder("check")
        if check.crash() or check.code == 0:
            return [check.crash() or "check says that the store is sound"]
        if damage.item and not all(name in check.text for name in damage.item):
            return [f"check does not name the item ({' in '.join(damage.item)}): {check.error}"]
        return []

    def judge_outputs(self, sandbox: Sandbox, prefixes: list[str]) -> list[str]:
        """Judges that no command that ends with 0 prints another byte."""
        failures = []
        for name, command in readers().items():
            if not name.startswith(tuple(prefixes)):
                continue
            run = sandbox.larder(*command)
            wrong = run.code == 0 and run.out != self.outputs[name]
            failures += [run.crash() or f"{name} ends with 0 and a wrong byte"] * bool(run.crash() or wrong)
        return failures

    def judge_soundness(self, sandbox: Sandbox) -> list[str]:
        """Judges that a store which the check calls sound gives the right answers."""
        check = sandbox.larder("check")
        if check.crash() or check.code != 0:
            return [check.crash()] if check.crash() else []
        runs = {name: sandbox.larder(*command) for name, command in readers().items()}
        return [f"check says that the store is sound, and {name} differs"
                for name, run in runs.items() if run.code != 0 or run.out != self.outputs[name]]

    def judge_salvage(self, sandbox: Sandbox) -> list[str]:
        """Judges that what is saved is all, or that the command says that something is missing."""
        target = sandbox.out / "salvaged.db"
        run = sandbox.larder("salvage", str(target))
        if run.crash() or run.code not in (0, 4):
            return [f"salvage: {run.crash() or run.error}"]
        return ["salvage ends with 0 and loses something"] if run.code == 0 and not self.is_whole(target) else []

    def judge_mended(self, sandbox: Sandbox) -> list[str]:
        """Judges that a store which the check calls sound after a rebuild has everything."""
        rebuild = sandbox.larder("check", "--rebuild")
        if rebuild.crash():
            return [f"check --rebuild: {rebuild.crash()}"]
        is_sound = sandbox.larder("check").code == 0
        is_wrong = is_sound and not self.is_whole(sandbox.store / "data.db")
        return ["check --rebuild loses something, and the store is called sound"] if is_wrong else []

    def is_whole(self, database: pathlib.Path) -> bool:
        """Returns whether a store has all items and former versions."""
        now = oracle.read_contents(database)
        return bool(now and now.same_items(self.contents) and now.history_rows == self.contents.history_rows)

    def judge_copies(self, sandbox: Sandbox) -> list[str]:
        """Judges that neither a backup nor a restore passes the damage on."""
        failures = []
        target = sandbox.out / "older.db"
        old = target.read_bytes()
        damaged = sandbox.out / "damaged.db"
        damaged.write_bytes((sandbox.store / "data.db").read_bytes())
        backup = sandbox.larder("backup", str(target))
        if backup.code == 0:
            failures.append("backup says that it verified the copy")
        elif target.read_bytes() != old:
            failures.append("backup failed, and replaced the last one")
        restore = sandbox.larder("--data-dir", str(sandbox.case / "other"), "restore", str(damaged))
        if restore.code == 0:
            failures.append("restore accepts the damaged file")
        return failures

    def judge_undo(self, sandbox: Sandbox, damage: Damage) -> list[str]:
        """Judges that an undo gives the former version or an error."""
        if damage.operation not in self.undone:
            return []
        run = sandbox.larder("undo", str(damage.operation))
        now = oracle.read_contents(sandbox.store / "data.db")
        expected = self.undone[damage.operation]
        return ["undo ends with 0 and a wrong byte"] if run.code == 0 and not (now and now.same_items(expected)) else []


def readers() -> dict[str, list[str]]:
    """The commands whose outputs are compared."""
    exports = {f"export {name}": ["export", name] for name in COLLECTIONS}
    return {**exports, "list": ["find", "--format", "json"], "words": ["find", "anna"], "log": ["log"],
            "agenda": ["agenda", "2026-03"]}


def judge_rebuild(sandbox: Sandbox) -> list[str]:
    """Judges that a rebuild does not make the damage look whole."""
    sandbox.larder("check", "--rebuild")
    return ["after check --rebuild the damage looks whole"] if sandbox.larder("check").code == 0 else []


def flip_bit(content: bytes, generator: random.Random) -> bytes:
    """Returns the bytes with another value of one bit."""
    changed = bytearray(content)
    changed[generator.randrange(len(changed))] ^= 1 << generator.randrange(8)
    return bytes(changed)


def flip_anywhere(database: pathlib.Path, generator: random.Random) -> None:
    """Changes a bit of the file."""
    database.write_bytes(flip_bit(database.read_bytes(), generator))


def flip_field(database: pathlib.Path, group: str, generator: random.Random) -> Damage:
    """Changes a bit of a field of a group."""
    connection = sqlite3.connect(database)
    connection.text_factory = bytes
    try:
        while True:
            table, column, key_column = generator.choice(FIELDS[group])
            sql = f"SELECT {key_column}, {column}, typeof({column}) FROM {table} WHERE length({column}) > 0 ORDER BY 1"
            key, value, kind = generator.choice(connection.execute(sql).fetchall())
            if table == "meta" and bool(DERIVED_KEYS.match(key)) != (group == "derived-meta"):
                continue
            is_number = isinstance(value, int)
            changed = value ^ 1 << generator.randrange(16) if is_number else flip_bit(value, generator)
            # Texts come as bytes, because a changed one may be no UTF-8.
            key_literal = "?" if key_column == "rowid" else "CAST(? AS TEXT)"
            try:
                connection.execute(f"UPDATE {table} SET {column} = CAST(? AS {kind.decode()}) "
                                   f"WHERE {key_column} = {key_literal}", (changed, key))
            except sqlite3.IntegrityError:
                # Another row has this value; a disk does not make that likely either.
                continue
            connection.commit()
            return Damage(f"{table}.{column} of {key!r}", *owner(connection, table, key))
    finally:
        connection.close()


def owner(connection: sqlite3.Connection, table: str, key: object) -> tuple[tuple[str, str] | None, int | None]:
    """Returns the item that a row belongs to, and the operation that replaced the version."""
    sql = {
        "source_bytes": "SELECT c.name, i.handle, NULL FROM item i JOIN collection c ON c.id = i.collection WHERE i.id = ?1",
        "item_history": "SELECT c.name, h.handle, b.operation FROM item_history h JOIN collection c ON c.id = h.collection "
                        "JOIN batch b ON b.seq = h.seq WHERE h.id = ?1",
        "blob": "SELECT c.name, i.handle, NULL FROM blob b JOIN source_bytes s ON s.blob_hash = b.hash "
                "JOIN item i ON i.id = s.item JOIN collection c ON c.id = i.collection WHERE b.rowid = ?1 "
                "UNION ALL SELECT c.name, h.handle, NULL FROM blob b JOIN item_history h ON h.blob_hash = b.hash "
                "JOIN collection c ON c.id = h.collection WHERE b.rowid = ?1 LIMIT 1",
    }.get(table)
    if not sql:
        return None, None
    collection, handle, operation = connection.execute(sql, (key,)).fetchone()
    return (short_id(handle), collection.decode()), operation


def short_id(handle: bytes) -> str:
    """Returns the letters of a handle that messages have: five bits each, from the left."""
    bits = int.from_bytes(handle, "big") << 1
    return "".join(ID_LETTERS[bits >> 5 * (12 - place) & 31] for place in range(8))
