"""What must hold after a fault, judged without the program where that is possible.

Contents are read with Python's SQLite from a copy of the files, so that reading changes nothing and a mistake of
the program's own reader hides nothing. A failure is a sentence; an empty list means that all is well.
"""

import dataclasses
import hashlib
import json
import pathlib
import re
import shutil
import sqlite3
import tempfile

from harness.fixtures import SHARED_ID_SUBJECT
from harness.program import Run
from harness.sandbox import Sandbox
from harness.verbs import Effect, Verb

# An item: collection, UID, recurrence id.
Key = tuple[str, str, str]
# Lines that a change sets to the current time.
VOLATILE_LINES = re.compile(rb"(?m)^(DTSTAMP|LAST-MODIFIED|CREATED|REV)[:;].*\r?\n")
# A code of commands that change nothing because the change was made before: not found, usage, conflict.
UNCHANGED_CODES = (0, 1, 2, 3)
# STRICT tables.
NEEDED_SQLITE = (3, 37, 0)

ITEMS_SQL = """
SELECT collection.name, item.uid, item.recurrence_id, coalesce(source_bytes.bytes, blob.bytes),
    item.kind, calendar_context.calendar_version, calendar_context.zone_definitions
FROM item JOIN collection ON collection.id = item.collection
LEFT JOIN source_bytes ON source_bytes.item = item.id
LEFT JOIN blob ON blob.hash = source_bytes.blob_hash
LEFT JOIN calendar_context ON calendar_context.id = item.calendar_context
"""
COLLECTIONS_SQL = "SELECT name, type, index_config, properties FROM collection WHERE removed = 0"


@dataclasses.dataclass(frozen=True)
class Contents:
    """The items of a store, its collections with their properties, and the number of its last batch.

    The digest of an item is over its bytes, its kind, its calendar version and its time-zone definitions; a digest
    without context has neither version nor definitions.
    """

    items: dict[Key, bytes]
    digests: dict[Key, str]
    digests_without_context: dict[Key, str]
    collections: frozenset[tuple]
    last_seq: int
    history_rows: int

    def same_items(self, other: "Contents") -> bool:
        """Returns whether both have the same collections and items, except for the time of the change."""
        return self.digests == other.digests and self.collections == other.collections

    def changed(self, other: "Contents") -> set[Key]:
        """Returns the items that differ."""
        keys = self.digests.keys() | other.digests.keys()
        return {key for key in keys if self.digests.get(key) != other.digests.get(key)}


def read_contents(database: pathlib.Path) -> Contents | None:
    """Reads a database and its write-ahead log; None if there is no store in it."""
    if not database.exists():
        return None
    with tempfile.TemporaryDirectory(dir=database.parent.parent) as folder:
        copy = pathlib.Path(folder) / "data.db"
        shutil.copy(database, copy)
        log = database.with_name(database.name + "-wal")
        if log.exists():
            shutil.copy(log, copy.with_name("data.db-wal"))
        try:
            return read_copy(copy)
        except sqlite3.DatabaseError as error:
            if re.search("no such table|not a database|malformed", str(error)):
                return None
            raise


def read_copy(database: pathlib.Path) -> Contents | None:
    """Reads a database that may be changed."""
    connection = sqlite3.connect(database)
    connection.text_factory = lambda value: value.decode("utf-8", "replace")
    try:
        problems = connection.execute("PRAGMA quick_check(3)").fetchall()
        if problems != [("ok",)]:
            return None
        zones = {number: (tzid, content)
                 for number, tzid, content in connection.execute("SELECT id, tzid, bytes FROM zone_definition")}
        items, digests, bare = {}, {}, {}
        for name, uid, recurrence, content, kind, version, definitions in connection.execute(ITEMS_SQL):
            key, content = (name, uid, recurrence), bytes(content or b"")
            context = kind, version, [zones.get(int(number)) for number in (definitions or "").split()]
            items[key], digests[key] = content, digest(content, context)
            bare[key] = digest(content, (kind, None, []))
        collections = frozenset(connection.execute(COLLECTIONS_SQL))
        (last_seq,) = connection.execute("SELECT value FROM meta WHERE key = 'last_seq'").fetchone()
        (history,) = connection.execute("SELECT count(*) FROM item_history").fetchone()
    finally:
        connection.close()
    return Contents(items, digests, bare, collections, last_seq, history)


def digest(content: bytes, context: object) -> str:
    """A digest of an item's bytes, without the lines that have the time of a change, and of its context."""
    return hashlib.sha1(VOLATILE_LINES.sub(b"", content) + repr(context).encode()).hexdigest()


def announced_seq(notify_file: bytes) -> int:
    """Returns the number of the last batch that a notify file announces to other processes; 0 if it is empty.

    The file has the number, the epoch and a checksum. During a restore, number and epoch stand twice: for the store
    before it, and after it.
    """
    return min((int(word) for word in notify_file.split()[:-1][::2] if word.isdigit()), default=0)


@dataclasses.dataclass
class Expectation:
    """A verb's start and its result without a fault."""

    verb: Verb
    before: Contents | None
    after: Contents | None
    output_before: object
    output_after: object
    # The mail that the index has after the verb, and when it is made afresh from the maildir.
    mail: list[str] = dataclasses.field(default_factory=list)
    mail_afresh: list[str] = dataclasses.field(default_factory=list)
    # I/O calls of the run, by group.
    calls: dict[str, int] = dataclasses.field(default_factory=dict)


def read_output(sandbox: Sandbox, verb: Verb) -> object:
    """Returns the output of a verb in a form that can be compared; None if there is none."""
    if not verb.output:
        return None
    path = sandbox.out / verb.output
    if not path.exists():
        return None
    if verb.output_is_store:
        contents = read_contents(path)
        return contents and (contents.digests, contents.collections)
    return hashlib.sha1(path.read_bytes()).hexdigest()


def has_no_store(sandbox: Sandbox, check: Run) -> bool:
    """Returns whether a check failed because no store was created yet."""
    return check.code == 1 and "no store" in check.text


def judge_contents(expectation: Expectation, now: Contents | None, ended: bool) -> list[str]:
    """Judges the items. `ended`: the command reported success."""
    verb, before, after = expectation.verb, expectation.before, expectation.after
    if now is None:
        return [] if before is None and not ended else ["the store cannot be read any more"]
    if ended:
        return judge_success(verb, before, after, now)
    if before is not None and now.same_items(before) or after is not None and now.same_items(after):
        return []
    if verb.effect is Effect.ADDITION and before is not None:
        lost, added = before.digests.keys() - now.digests.keys(), now.digests.keys() - before.digests.keys()
        return [] if not lost and len(added) <= 1 else [f"{len(lost)} items lost, {len(added)} added"]
    old = before.digests if before else {}
    new = after.digests if after else {}
    keys = old.keys() | new.keys() | now.digests.keys()
    foreign = [key for key in keys if now.digests.get(key) not in (old.get(key), new.get(key))]
    if foreign:
        return [f"{len(foreign)} items are neither as before nor as after: {foreign[:3]}"]
    done = sum(now.digests.get(key) != old.get(key) for key in keys)
    if verb.effect is not Effect.STEPS:
        return [f"{done} items changed of a batch that is whole or nothing"]
    if done % verb.batch:
        return [f"{done} items changed, which is no multiple of the batch ({verb.batch})"]
    return []


def judge_success(verb: Verb, before: Contents | None, after: Contents | None, now: Contents) -> list[str]:
    """Judges the items after a command that reported success."""
    if verb.effect is Effect.ADDITION:
        lost, added = before.digests.keys() - now.digests.keys(), now.digests.keys() - before.digests.keys()
        return [] if not lost and len(added) == 1 else ["reported success, but the item is not there"]
    return [] if now.same_items(after) else [f"reported success, but {len(now.changed(after))} items differ from the result"]


def judge_store(sandbox: Sandbox, expectation: Expectation, ended: bool) -> list[str]:
    """Judges the store after a command was stopped or failed: sound, nothing lost, nothing in between."""
    notify_file = sandbox.store / "data.notify"
    announced = announced_seq(notify_file.read_bytes() if notify_file.exists() else b"")
    check = check_store(sandbox)
    now = read_contents(sandbox.store / "data.db")
    if check.code != 0 and not is_damage_of_start(expectation.verb, check):
        # What was damaged before may still be.
        no_store = has_no_store(sandbox, check) or expectation.verb.start.startswith("damaged")
        if expectation.before is None and now is None and no_store and not ended:
            return []
        return [f"check: exit code {check.code}: {check.error}"]
    failures = judge_contents(expectation, now, ended)
    if now and expectation.verb.name not in ("restore", "restore-damaged") and now.last_seq < announced:
        failures.append(f"batch {announced} was announced, and the last one is {now.last_seq}")
    return failures


def is_damage_of_start(verb: Verb, check: Run) -> bool:
    """Returns whether a check names only the item that was damaged before the command."""
    return verb.start == "damaged-item" and check.code == 4 and check.text.count("does not match its checksum") == 1


def judge_output(sandbox: Sandbox, expectation: Expectation, ended: bool) -> list[str]:
    """Judges the file that a command writes: whole, or as before."""
    found = read_output(sandbox, expectation.verb)
    if found == expectation.output_after or (not ended and found == expectation.output_before):
        return []
    name = expectation.verb.output
    return [f"{name} is {'missing' if found is None else 'neither the old nor the new one'}"]


def read_mail(sandbox: Sandbox) -> list[str]:
    """Returns what the index of mail has of each message and file: values, flags, folders, threads; nothing without index."""
    lines = []
    for command in ("--format json", "--threads --format json", "--files", "maildir:/Lists --files", "flag:seen --files"):
        run = sandbox.larder("find", "--kind", "message", "-n", "1000", *command.split())
        if run.code not in UNCHANGED_CODES and "no mail is indexed" not in run.text:
            raise RuntimeError(f"find {command}: exit code {run.code}: {run.text}")
        found = run.out.decode().splitlines()
        lines += sorted(without_order(found) if "json" in command else found)
    commits = sandbox.larder("find", "--kind", "commit", "-n", "1000", "--format", "json")
    if commits.code not in UNCHANGED_CODES and "no commits are indexed" not in commits.text:
        raise RuntimeError(f"find commits: exit code {commits.code}: {commits.text}")
    return lines + sorted(commits.out.decode().splitlines())


def without_order(lines: list[str]) -> list[str]:
    """Returns messages in JSON without what depends on the order in which their files were read.

    The number of a thread is that of a row: the messages of the thread take its place. Of two texts with one Message-ID
    the first one has it, and the ID that is made of it.
    """
    messages = [json.loads(line) for line in lines]
    for message in messages:
        if message["subject"] == SHARED_ID_SUBJECT:
            message["id"] = message["message_id"] = message["files"]
    threads: dict[str, list[str]] = {}
    for message in messages:
        threads.setdefault(message["thread_id"], []).append(str(message["id"]))
    return [json.dumps({**message, "thread_id": sorted(threads[message["thread_id"]])}) for message in messages]


def make_mail_afresh(sandbox: Sandbox) -> list[str]:
    """Deletes the index of mail, makes it again, and returns what it has.

    The rules run on new messages before, because they do not run on those of an index that is made again.
    """
    sandbox.larder("sync")
    for path in [*sandbox.store.glob("index.*"), *sandbox.store.glob("commits.*")]:
        path.unlink()
    sandbox.larder("sync")
    return read_mail(sandbox)


def judge_mail(sandbox: Sandbox, expectation: Expectation) -> list[str]:
    """Judges the index of mail after the verb was run again."""
    if expectation.verb.name == "sources-remove":
        # A removal that was stopped leaves the messages to the next synchronisation.
        sandbox.larder("sync")
    failures = compare_mail(read_mail(sandbox), expectation.mail, "one that was not disturbed")
    # Without --full, a file that was edited in place is not noticed.
    sandbox.larder("sync", "--full")
    failures += compare_mail(read_mail(sandbox), expectation.mail_afresh, "one made afresh")
    check = sandbox.larder("check")
    return failures + ([] if check.code == 0 else [f"check of the mail: exit code {check.code}: {check.error}"])


def compare_mail(found: list[str], expected: list[str], which: str) -> list[str]:
    """Compares an index of mail with another one."""
    different = sorted(set(found) ^ set(expected))
    shown = [line[:300] for line in different[:2]]
    return [] if found == expected else [f"the index of mail differs from {which} in {len(different)} lines: {shown}"]


def check_store(sandbox: Sandbox) -> Run:
    """Runs a check. If it says that a purge was interrupted, finishes the purge, and checks again."""
    check = sandbox.larder("check")
    if check.code != 0 and "purge was interrupted" in check.text:
        finish = sandbox.larder("purge")
        return finish if finish.code != 0 else sandbox.larder("check")
    return check


def judge_erasure(sandbox: Sandbox, expectation: Expectation, ended: bool) -> list[str]:
    """Judges the files after a purge, which a check has finished if it was interrupted."""
    now = read_contents(sandbox.store / "data.db")
    left = find_erased(sandbox.store, expectation.verb)
    # The items of an unfinished purge are deleted before the command begins.
    may_be_there = not ended and expectation.verb.start != "unfinished-purge"
    if not left or now is None or may_be_there and expectation.before and now.same_items(expectation.before):
        return []
    return [f"{left[0]}, and {'purge succeeded' if ended else 'check does not mention an interrupted purge'}"]


def find_erased(store: pathlib.Path, verb: Verb) -> list[str]:
    """Returns which files of the store have which texts that the verb erases."""
    found = []
    for path in sorted(store.iterdir()):
        content = path.read_bytes().lower()
        found += [f"{path.name} still has {secret.decode()}" for secret in verb.erased if secret in content]
    return found


def judge_repetition(sandbox: Sandbox, expectation: Expectation, stdin: bytes) -> list[str]:
    """Runs the command again, without a fault: it must end with the result of one that was not disturbed."""
    verb = expectation.verb
    before = read_contents(sandbox.store / "data.db")
    run = sandbox.larder(*sandbox.expand(verb.command), stdin=stdin, until=verb.until)
    is_done = before is not None and expectation.after is not None and before.same_items(expectation.after)
    allowed = (*UNCHANGED_CODES, verb.code) if is_done else (verb.code,)
    if run.code not in allowed:
        return [f"again: exit code {run.code}: {run.error}"]
    if verb.effect is Effect.ADDITION:
        return []
    now = read_contents(sandbox.store / "data.db")
    if now is None or expectation.after is not None and not now.same_items(expectation.after):
        return ["again: the result differs from one that was not disturbed"]
    return judge_output(sandbox, expectation, ended=True)
