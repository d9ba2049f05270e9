"""The inputs, and the stores that verbs start from; made once for a run, by the program itself.

The standard store has a history of every kind: imports, an edit, a removal that was undone, a removed collection,
an item above 64 KB, a series with an exception. Two backups of it differ in size and history, so that a restore of
one after an interrupted restore of the other is not a restore of the same pages.

The maildirs are outside of the sandboxes: no command changes them, so all sandboxes share them.
"""

import contextlib
import pathlib
import re
import sqlite3
import subprocess
import zlib

from harness.program import Program
from harness.sandbox import Start, copy_store, split_words

# Texts of the item that the verb `purge` erases; they occur in no other item. Each is indexed in a way of its own.
SECRETS = [b"zqxjkvnam", b"wvyqxmail", b"qqzztitl", b"xkcdnote77", b"jjwwnick", b"431998877665", b"pphhoottoo"]

# A word of the message that `purge` erases; no other one has it.
MESSAGE_SECRET = b"zzqymailword"

# The size of a page of the store.
PAGE = 4096

# Generated items: contacts, contacts of other files, components of a calendar. A quick run has fewer, because it runs
# an unoptimised program.
SIZES, QUICK_SIZES = (200, 300, 120), (40, 60, 30)

STANDARD_HISTORY = [
    'import {inputs}/contacts.vcf',
    'import {inputs}/calendar.ics --into Calendar',
    'import {inputs}/known.vcf {inputs}/known.ics',
    'edit uid:secret --from {inputs}/secret-2.vcf',
    'remove --query email:a*',
    'undo 5',
    'import {inputs}/club.vcf --into spare',
    'collections remove spare',
    'backup {out}/older.db',
    'edit uid:bruno --from {inputs}/bruno-2.vcf',
    'import {inputs}/club.vcf --into club',
    'backup {out}/newer.db',
]


def card(uid: str, name: str, *lines: str) -> bytes:
    """Returns a vCard."""
    text = "\r\n".join(["BEGIN:VCARD", "VERSION:3.0", f"UID:{uid}", f"FN:{name}", f"N:{name};;;;", *lines, "END:VCARD", ""])
    return text.encode()


def secret_card(version: int, photo: int) -> bytes:
    """Returns a version of the item that is purged, with a photo of `photo` repetitions of a secret."""
    return card("secret", "Zqxjkvnam Person", "EMAIL:wvyqxmail@x.example", "TITLE:Qqzztitl", f"NOTE:xkcdnote77 v{version}",
                "NICKNAME:Jjwwnick", "TEL:+431998877665", "X-PHOTO:" + "pphhoottoo" * photo)


def event(uid: str, summary: str, *lines: str) -> bytes:
    """Returns a VEVENT."""
    text = "\r\n".join(["BEGIN:VEVENT", f"UID:{uid}", "DTSTAMP:20260101T000000Z", f"SUMMARY:{summary}", *lines, "END:VEVENT", ""])
    return text.encode()


def calendar(*components: bytes) -> bytes:
    """Returns a VCALENDAR."""
    head = b"BEGIN:VCALENDAR\r\nVERSION:2.0\r\nPRODID:-//torture//EN\r\n"
    return head + b"".join(components) + b"END:VCALENDAR\r\n"


SERIES = ("DTSTART:20260302T090000Z", "DURATION:PT15M", "RRULE:FREQ=DAILY;COUNT=30")
EXCEPTION = ("RECURRENCE-ID:20260304T090000Z", "DTSTART:20260304T100000Z", "DURATION:PT15M")

KNOWN_INPUTS = {
    "labels.dump": b"#notmuch-dump batch-tag:3 tags\n" + b"".join(
        b"+tax +year/%d -- id:message-%d@example.org\n" % (2000 + number % 20, number) for number in range(300)),
    "known.vcf": card("anna", "Anna Known", "EMAIL:anna@x.example", "TEL:+43 1 5550101")
    + card("anna-again", "Anna Known", "EMAIL:anna@x.example", "NOTE:the other card")
    + card("bruno", "Bruno Known", "EMAIL:bruno@x.example")
    + card("chloe", "Chloe Known", "EMAIL:chloe@x.example")
    + secret_card(1, 10_000),
    "known.ics": calendar(event("standup", "Standup", *SERIES), event("standup", "Standup, later", *EXCEPTION),
                          event("dinner", "Dinner", "DTSTART:20260306T190000Z", "DURATION:PT2H")),
    "secret-2.vcf": secret_card(2, 12_000),
    "anna-2.vcf": card("anna", "Anna Changed", "EMAIL:anna@y.example"),
    "bruno-2.vcf": card("bruno", "Bruno Changed", "EMAIL:bruno@y.example"),
    "notmuch.dump": b"#notmuch-dump batch-tag:3 config,tags\n#@ query.new tag%3anew\n+new -- id:a@x\n+old -- id:b@x\n",
    "new.vcf": card("new", "New Person", "EMAIL:new@x.example"),
    "broken.vcf": card("good", "Good Person") + b"BEGIN:VCARD\r\nthis is no card\r\n" + card("after", "After Person") + b"junk\r\n",
}


def message(uid: str, words: str, *lines: str, year: int = 2026) -> bytes:
    """Returns a mail message. No two have the same date, so that lists have one order."""
    seconds = zlib.crc32(f"{uid} {words}".encode()) % 86_400
    date = f"Date: 2 Mar {year} {seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02} +0000"
    head = [f"Message-ID: <{uid}@x.example>", "From: Anna <anna@x.example>", "To: Bruno <bruno@x.example>",
            f"Subject: note {uid}", date, *lines, ""]
    return "\n".join([*head, words, ""]).encode()


# The subject of two messages with one Message-ID and different texts.
SHARED_ID_SUBJECT = "note m7"
# The files of a maildir: a thread, copies in two folders that differ in a header, a message without Message-ID.
MAIL_FILES = {
    **{f"cur/{100 + number}.host:2,S": message(f"m{number}", f"walrus {number}", f"References: <m{number // 2}@x.example>")
       for number in range(12)},
    "new/200.host": message("new", "unread walrus"),
    "Lists/cur/201.host:2,": message("m3", "walrus 3", "List-Id: <walrus.x.example>"),
    "Lists/cur/202.host:2,F": b"Subject: nameless\n\nno message id\n",
    "Lists/cur/203.host:2,": message("m7", "another text"),
    "Archive/2025/cur/204.host:2,S": message("old", "seal", year=2025),
    # The message that `purge` erases, whose file is removed before.
    "cur/205.host:2,S": message("secret", MESSAGE_SECRET.decode(), year=2024),
}


def make_maildir(root: pathlib.Path) -> None:
    """Writes a maildir."""
    for name, content in MAIL_FILES.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)


def change_maildir(root: pathlib.Path) -> None:
    """Changes a maildir in each way that a synchronisation knows: new, renamed, moved, removed and edited files."""
    (root / "new/200.host").rename(root / "cur/200.host:2,RS")
    (root / "cur/104.host:2,S").rename(root / "Archive/2025/cur/104.host:2,S")
    # The message that joined two parts of a thread, and a copy whose values the message has.
    (root / "cur/102.host:2,S").unlink()
    (root / "cur/103.host:2,S").unlink()
    (root / "Lists/cur/202.host:2,F").unlink()
    (root / "cur/105.host:2,S").write_bytes(message("m5", "edited in place"))
    (root / "cur/205.host:2,S").unlink()
    (root / "Archive").rename(root / "Former")
    for number in range(8):
        (root / f"cur/{300 + number}.host:2,").write_bytes(message(f"late{number}", f"otter {number}"))


def mbox_message(uid: str, words: str, status: str) -> bytes:
    """Returns a message of an mbox file."""
    return b"From a Mon Mar  2 10:00:00 2026\n" + f"X-Mozilla-Status: {status}\n".encode() + message(uid, words) + b"\n"


def write_mbox(path: pathlib.Path, is_changed: bool) -> None:
    """Writes an mbox file; later, with another flag, without a message, and with new ones."""
    states = {2: "0005", 4: "0009"} if is_changed else {}
    messages = [mbox_message(f"box{number}", f"otter {number}", states.get(number, "0000"))
                for number in range(14 if is_changed else 8)]
    path.write_bytes(b"".join(messages))


def extend_history(root: pathlib.Path, numbers: range) -> None:
    """Adds commits to a repository, each with a file; the first call makes the repository."""
    commits = []
    for number in numbers:
        subject = f"walrus commit {number}\n"
        # Without its parent, git begins a branch anew.
        parent = "from refs/heads/main^0\n" if number == numbers[0] and number else ""
        commits.append(f"commit refs/heads/main\ncommitter Anna <anna@x.example> {1_772_000_000 + number * 60} +0000\n"
                       f"data {len(subject)}\n{subject}{parent}M 644 inline src/file{number}\ndata 2\nx\n\n")
    git = ["git", "-C", str(root)]
    if not root.exists():
        root.mkdir()
        subprocess.run([*git, "init", "-q", "--bare", "-b", "main"], check=True)
    subprocess.run([*git, "fast-import", "--quiet"], input="".join(commits).encode(), check=True)


class Fixtures:
    """The folders of inputs and stores."""

    def __init__(self, root: pathlib.Path, program_path: pathlib.Path, quick: bool):
        self.root = root
        self.sizes = QUICK_SIZES if quick else SIZES
        self.inputs = root / "inputs"
        self.out = root / "out"
        self.standard = root / "standard"
        self.damaged = root / "damaged"
        self.damaged_index = root / "damaged-index"
        self.damaged_item = root / "damaged-item"
        self.unfinished_purge = root / "unfinished-purge"
        self.mail_registered = root / "mail-registered"
        self.mail_changed = root / "mail-changed"
        self.sources_registered = root / "sources-registered"
        self.sources_changed = root / "sources-changed"
        self.program = Program(program_path, root / "home")

    def make(self) -> None:
        """Makes all inputs and stores."""
        self.inputs.mkdir(parents=True)
        self.out.mkdir()
        self.make_inputs()
        for command in STANDARD_HISTORY:
            self.run(command, self.standard)
        copy_store(self.standard, self.damaged)
        with open(self.damaged / "data.db", "r+b") as file:
            file.write(b"\xff" * PAGE * 3)
        copy_store(self.standard, self.damaged_index)
        with contextlib.closing(sqlite3.connect(self.damaged_index / "data.db")) as connection:
            (page,) = connection.execute("SELECT rootpage FROM sqlite_schema WHERE name = 'idx_block'").fetchone()
        with open(self.damaged_index / "data.db", "r+b") as file:
            file.seek((page - 1) * PAGE)
            file.write(bytes(PAGE))
        self.make_damaged_item()
        self.make_unfinished_purge()
        self.make_mail()

    def make_mail(self) -> None:
        """Makes stores with a registered maildir: not indexed yet, and indexed before the maildir changed."""
        for store, name in [(self.mail_registered, "mail"), (self.mail_changed, "changing-mail")]:
            make_maildir(self.inputs / name)
            copy_store(self.standard, store)
            self.run(f"sources add {{inputs}}/{name} --into mail", store)
            self.run('searches add sea "otter or unread" --label +sea', store)
        self.run("sync", self.mail_changed)
        # A label of a message that changes, and of one whose file is removed.
        self.run("edit mid:m5@x.example mid:m3@x.example --label +tax", self.mail_changed)
        change_maildir(self.inputs / "changing-mail")
        self.make_sources()

    def make_sources(self) -> None:
        """Makes stores with an mbox file and a repository: not indexed yet, and indexed before both changed."""
        for store, name in [(self.sources_registered, "fixed"), (self.sources_changed, "changing")]:
            write_mbox(self.inputs / f"{name}.mbox", is_changed=False)
            extend_history(self.inputs / f"{name}-code", range(12))
            copy_store(self.standard, store)
            self.run(f"sources add {{inputs}}/{name}.mbox --into box", store)
            self.run(f"sources add {{inputs}}/{name}-code --into code", store)
        self.run("sync", self.sources_changed)
        self.run("edit mid:box2@x.example mid:box4@x.example --label +tax", self.sources_changed)
        write_mbox(self.inputs / "changing.mbox", is_changed=True)
        extend_history(self.inputs / "changing-code", range(12, 20))

    def make_damaged_item(self) -> None:
        """Makes a store in which a letter of an item has changed."""
        copy_store(self.standard, self.damaged_item)
        data = self.damaged_item / "data.db"
        content = data.read_bytes()
        damaged = content.replace(b"FN:Chloe", b"FN:Chloa")
        if damaged == content:
            raise RuntimeError("no item of the standard store has the text FN:Chloe")
        data.write_bytes(damaged)

    def make_unfinished_purge(self) -> None:
        """Makes a store with a purge that a reader of old pages kept from its end."""
        copy_store(self.standard, self.unfinished_purge)
        with contextlib.closing(sqlite3.connect(self.unfinished_purge / "data.db")) as reader:
            reader.execute("BEGIN")
            reader.execute("SELECT count(*) FROM item").fetchone()
            run = self.program.run(["purge", "-y", "uid:secret"], self.unfinished_purge)
            if run.code == 0:
                raise RuntimeError("a purge ends beside a reader of old pages")

    def make_inputs(self) -> None:
        """Writes the generated and the known inputs."""
        generate = "measure generate"
        contacts, more, components = self.sizes
        for name, number, seed in [("contacts", contacts, 5), ("more", more, 6), ("club", more, 7)]:
            self.run(f"{generate} contacts {number} --seed {seed} --output {{inputs}}/{name}.vcf", self.standard)
        for name, seed in [("calendar", 5), ("more", 6)]:
            self.run(f"{generate} calendar {components} --seed {seed} --output {{inputs}}/{name}.ics", self.standard)
        contacts = (self.inputs / "contacts.vcf").read_bytes()
        changed = re.sub(rb"(?m)^END:VCARD", b"X-CHANGED:yes\r\nEND:VCARD", contacts)
        (self.inputs / "changed.vcf").write_bytes(changed)
        for name, content in KNOWN_INPUTS.items():
            (self.inputs / name).write_bytes(content)

    def run(self, command: str, store: pathlib.Path) -> None:
        """Runs a command that must succeed."""
        words = [word.format(inputs=self.inputs, out=self.out, store=store) for word in split_words(command)]
        run = self.program.run(words, store)
        if run.code != 0:
            raise RuntimeError(f"larder {' '.join(words)}: exit code {run.code}\n{run.text}")

    def start(self, name: str) -> Start:
        """Returns a start by its name in the table of verbs."""
        stores = {"standard": self.standard, "damaged": self.damaged, "damaged-index": self.damaged_index,
                  "damaged-item": self.damaged_item, "unfinished-purge": self.unfinished_purge,
                  "mail-registered": self.mail_registered, "mail-changed": self.mail_changed,
                  "sources-registered": self.sources_registered, "sources-changed": self.sources_changed, "nothing": None}
        return Start(stores[name], self.out)
