"""Random operations on a store beside a dictionary of bytes, which must always agree.

The model knows no SQL, no indexes and no files: items are bytes in a dictionary, an operation is the list of bytes
before and after it, and an undo compares three versions of each item, as the documentation says.
"""

import dataclasses
import json
import random
import sqlite3

from harness import oracle
from harness.runner import Outcome, Step
from harness.sandbox import Sandbox

OPERATIONS_IN_A_RUN = 100
COLLECTIONS = ("contacts", "friends", "work")
# How often the whole store is compared in all ways, and not only its items.
FULL_CHECK_INTERVAL = 25

Key = tuple[str, str]


@dataclasses.dataclass
class Operation:
    """A change that can be undone: the bytes of each item before and after it, None where there is no item."""

    changes: dict[Key, tuple[bytes | None, bytes | None]]
    undone: bool = False
    # The operation that this one undid.
    undoes: int | None = None
    is_purge: bool = False


@dataclasses.dataclass
class State:
    """What the store must hold."""

    items: dict[Key, bytes] = dataclasses.field(default_factory=dict)
    operations: dict[int, Operation] = dataclasses.field(default_factory=dict)
    purged: set[Key] = dataclasses.field(default_factory=set)

    def copy(self) -> "State":
        """Returns an independent copy."""
        operations = {number: dataclasses.replace(operation) for number, operation in self.operations.items()}
        return State(dict(self.items), operations, set(self.purged))


def same(one: bytes | None, other: bytes | None) -> bool:
    """Returns whether two versions are equal; a missing line end makes no difference."""
    return (one and one.rstrip(b"\r\n")) == (other and other.rstrip(b"\r\n"))


class ModelStep(Step):
    """random changes, undos, merges, purges, backups and restores beside a dictionary of bytes"""

    name = "model"
    quick_points = 4

    def points(self) -> list[str]:
        return [f"run:{number}" for number in range(200)]

    def attempt(self, sandbox: Sandbox, point: str) -> Outcome:
        walk = Walk(sandbox, self.lab.random(point))
        sandbox.clear()
        sandbox.out.mkdir(parents=True)
        for number in range(OPERATIONS_IN_A_RUN):
            walk.step()
            walk.compare()
            if number % FULL_CHECK_INTERVAL == FULL_CHECK_INTERVAL - 1:
                walk.compare_everything()
            if walk.failures:
                walk.failures = [f"operation {number}: {failure}" for failure in walk.failures]
                break
        return Outcome(walk.failures, walk.counts)


class Walk:
    """A sequence of random operations, in the store and in the model."""

    def __init__(self, sandbox: Sandbox, generator: random.Random):
        self.sandbox = sandbox
        self.random = generator
        self.state = State()
        self.backup: State | None = None
        self.failures: list[str] = []
        self.counts: dict[str, int] = {}
        # The last operation, for messages, and numbers that make bytes and UIDs unique.
        self.last = ""
        self.versions = self.uids = 0

    def step(self) -> None:
        """Makes one random operation."""
        choices = [(self.add, 18), (self.edit, 20), (self.remove, 10), (self.import_file, 14), (self.merge, 5),
                   (self.undo, 23), (self.purge, 3), (self.remove_collection, 2), (self.make_backup, 3), (self.restore, 2)]
        if len(self.state.items) < 5:
            choices = choices[:1]
        (action,) = self.random.choices([action for action, _ in choices], [weight for _, weight in choices])
        self.counts[action.__name__] = self.counts.get(action.__name__, 0) + 1
        action()

    def larder(self, *arguments: str, stdin: bytes = b"", codes: tuple[int, ...] = (0,)) -> int:
        """Runs a command that must end with one of these codes; returns the code."""
        self.last = " ".join(arguments)
        run = self.sandbox.larder(*arguments, stdin=stdin)
        if run.crash() or run.code not in codes:
            self.failures.append(f"{self.last}: {run.crash() or f'exit code {run.code}: {run.error}'}")
        return run.code

    def record(self, changes: dict[Key, tuple[bytes | None, bytes | None]], **details) -> int:
        """Applies changes to the model, and keeps the operation under the number that the store gave it."""
        for key, (_, after) in changes.items():
            if after is None:
                self.state.items.pop(key, None)
            else:
                self.state.items[key] = after
        number = self.last_operation()
        self.state.operations[number] = Operation(changes, **details)
        return number

    def last_operation(self) -> int:
        """Returns the number of the store's last operation."""
        connection = sqlite3.connect(f"file:{self.sandbox.store}/data.db?mode=ro", uri=True)
        try:
            return connection.execute("SELECT coalesce(max(id), 0) FROM operation").fetchone()[0]
        finally:
            connection.close()

    def card(self, uid: str) -> bytes:
        """Returns a new version of a card: odd bytes, long lines, large photos, other line ends."""
        self.versions += 1
        number = self.versions
        body = self.random.choice([
            f"NOTE:{number}", f"EMAIL:e{number}@x.example\r\nTEL:+43 1 {number}", "NOTE:" + "ü" * self.random.randrange(60) + str(number),
            f"PHOTO;ENCODING=b:{'QUJD' * self.random.choice([10, 30_000])}{number % 10}", f"X-ODD;CHARSET=x:\xff{number}",
            f"BDAY:1980-01-{number % 28 + 1:02}\r\nNOTE:{number}"])
        version, line_end = self.random.choice(["3.0", "4.0"]), self.random.choice(["\r\n", "\r\n", "\n"])
        text = f"BEGIN:VCARD\r\nVERSION:{version}\r\nUID:{uid}\r\nFN:Name {number}\r\n{body}\r\nEND:VCARD\r\n"
        return text.replace("\r\n", line_end).encode("latin1" if self.random.random() < 0.1 else "utf-8", "replace")

    def new_uid(self) -> str:
        """Returns a UID that no item had."""
        self.uids += 1
        return f"u{self.uids}"

    def keys(self, collection: str | None = None) -> list[Key]:
        """Returns the items, or those of a collection."""
        return sorted(key for key in self.state.items if collection in (None, key[0]))

    def add(self) -> None:
        """Adds a card."""
        key = (self.random.choice(COLLECTIONS), self.new_uid())
        content = self.card(key[1])
        if self.larder("add", "-", "--into", key[0], stdin=content) == 0:
            self.record({key: (None, content)})

    def edit(self) -> None:
        """Replaces the text of a card."""
        key = self.random.choice(self.keys())
        content = self.card(key[1])
        if self.larder("edit", "/".join(key), "--from", "-", stdin=content) == 0:
            self.record({key: (self.state.items[key], content)})

    def remove(self) -> None:
        """Removes some cards."""
        keys = self.random.sample(self.keys(), self.random.randrange(1, 4))
        if self.larder("remove", *("/".join(key) for key in keys)) == 0:
            self.record({key: (self.state.items[key], None) for key in keys})

    def import_file(self) -> None:
        """Imports new cards, new versions, and versions that the store has."""
        collection = self.random.choice(COLLECTIONS)
        known = self.keys(collection)
        uids = [key[1] for key in self.random.sample(known, min(3, len(known)))]
        contents = {uid: self.card(uid) if self.random.random() < 0.7 else self.state.items[collection, uid] for uid in uids}
        contents |= {uid: self.card(uid) for uid in (self.new_uid() for _ in range(self.random.randrange(6)))}
        path = self.sandbox.root / "import.vcf"
        path.write_bytes(b"".join(content.rstrip(b"\r\n") + b"\r\n" for content in contents.values()))
        if not contents:
            return
        batch = ["--batch", "2"] if self.random.random() < 0.5 else []
        if self.larder("import", "--into", collection, *batch, str(path)) == 0:
            old = self.state.items
            changes = {(collection, uid): (old.get((collection, uid)), content) for uid, content in contents.items()
                       if not same(old.get((collection, uid)), content)}
            if changes:
                self.record(changes)

    def merge(self) -> None:
        """Merges cards; the store says what the merged card is, and the model that no other item changed."""
        keys = self.keys(self.random.choice(COLLECTIONS))
        if len(keys) < 3:
            return
        keys = self.random.sample(keys, self.random.randrange(2, 4))
        if self.larder("merge", *("/".join(key) for key in keys), codes=(0, 3)) == 0:
            merged = self.stored()[keys[0]]
            changes = {key: (self.state.items[key], None) for key in keys[1:]}
            self.record({keys[0]: (self.state.items[keys[0]], merged), **changes})

    def undo(self) -> None:
        """Undoes one of the last operations; the model says whether that is possible."""
        numbers = sorted(self.state.operations)[-self.random.choice([3, 10, 40]):]
        if not numbers:
            return
        number = self.random.choice(numbers)
        operation = self.state.operations[number]
        if any(key in self.state.purged for key in operation.changes):
            self.undo_of_purged(number, operation)
            return
        changes = {}
        conflict = operation.undone or operation.is_purge
        for key, (before, after) in operation.changes.items():
            now = self.state.items.get(key)
            if same(before, after) or same(before, now):
                continue
            conflict = conflict or not same(after, now)
            changes[key] = (now, before)
        code = self.larder("undo", str(number), codes=(1, 2, 3) if conflict else (0,))
        if code == 0 and not conflict:
            self.record_undo(number, changes)

    def record_undo(self, number: int, changes: dict[Key, tuple[bytes | None, bytes | None]]) -> None:
        """Records that an operation was undone, and that the one which it had undone is in force again."""
        operation = self.state.operations[number]
        self.record(changes, undoes=number)
        operation.undone = True
        if operation.undoes in self.state.operations:
            self.state.operations[operation.undoes].undone = False

    def undo_of_purged(self, number: int, operation: Operation) -> None:
        """Undoes an operation on purged items: it may change its other items, and must not bring a purged one back."""
        code = self.larder("undo", str(number), codes=(0, 1, 2, 3))
        stored = self.stored()
        keys = stored.keys() | self.state.items.keys()
        changed = {key: (self.state.items.get(key), stored.get(key)) for key in keys
                   if not same(self.state.items.get(key), stored.get(key))}
        back = [key for key in changed if key in self.state.purged and changed[key][0] is None]
        if back:
            self.failures.append(f"{self.last}: the purged items {back} came back")
        if not changed.keys() <= operation.changes.keys():
            self.failures.append(f"{self.last}: changed other items")
        if code == 0 and self.last_operation() not in self.state.operations:
            self.record_undo(number, changed)

    def purge(self) -> None:
        """Purges a card: no file of the store has its name afterwards, unless another item has it."""
        key = self.random.choice(self.keys())
        content = self.state.items[key]
        if self.larder("purge", "-y", "/".join(key)) != 0:
            return
        self.record({key: (content, None)}, is_purge=True)
        self.state.purged.add(key)
        name = next(line.strip() for line in content.split(b"\n") if line.startswith(b"FN:"))
        if name in self.kept_bytes():
            return
        for path in sorted(self.sandbox.store.iterdir()):
            found = path.read_bytes()
            if name + b"\r\n" in found or name + b"\n" in found:
                self.failures.append(f"{self.last}: {path.name} still has {name.decode()}")

    def kept_bytes(self) -> bytes:
        """Returns all items and former versions in the store, which may share a line with a purged item."""
        connection = sqlite3.connect(f"file:{self.sandbox.store}/data.db?mode=ro", uri=True)
        try:
            tables = "SELECT bytes FROM source_bytes UNION ALL SELECT bytes FROM item_history UNION ALL SELECT bytes FROM blob"
            return b"\n".join(content for (content,) in connection.execute(tables) if content)
        finally:
            connection.close()

    def remove_collection(self) -> None:
        """Removes a collection, if there is one of this name."""
        collection = self.random.choice(COLLECTIONS)
        if self.larder("collections", "remove", collection, codes=(0, 1)) == 0:
            self.record({key: (self.state.items[key], None) for key in self.keys(collection)})

    def make_backup(self) -> None:
        """Makes a backup."""
        if self.larder("backup", str(self.sandbox.out / "backup.db")) == 0:
            self.backup = self.state.copy()

    def restore(self) -> None:
        """Restores the last backup, and removes the copy of the store before it, which has purged items."""
        if not self.backup:
            return
        if self.larder("restore", str(self.sandbox.out / "backup.db")) == 0:
            self.state = self.backup.copy()
            for path in self.sandbox.store.glob("data.db.before-*"):
                path.unlink()

    def stored(self) -> dict[Key, bytes]:
        """Returns the items of the store."""
        contents = oracle.read_contents(self.sandbox.store / "data.db")
        return {key[:2]: content for key, content in contents.items.items()} if contents else {}

    def compare(self) -> None:
        """Compares the items with the model."""
        stored = self.stored()
        keys = stored.keys() | self.state.items.keys()
        different = [key for key in sorted(keys) if not same(stored.get(key), self.state.items.get(key))]
        if different:
            self.failures.append(f"{self.last}: {len(different)} items differ from the model: {different[:3]}")

    def compare_everything(self) -> None:
        """Compares also the check, the exports and the list."""
        self.larder("check")
        for collection in {key[0] for key in self.state.items}:
            out = self.sandbox.larder("export", collection).out
            missing = [key for key in self.keys(collection) if self.state.items[key].rstrip(b"\r\n") not in out]
            if missing:
                self.failures.append(f"export {collection} lacks {missing[:3]}")
        lines = self.sandbox.larder("find", "--format", "json").out.splitlines()
        listed = sorted((item["collection"], item["uid"]) for item in map(json.loads, lines))
        if listed != self.keys():
            self.failures.append(f"find lists {len(listed)} items, and there are {len(self.state.items)}")
