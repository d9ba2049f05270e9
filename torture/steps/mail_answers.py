"""Searches and threads of mail beside mu 1.8: the same messages, or a difference with a named rule.

Apart from the test `mail_against_mu` of the workspace, whose messages and queries were written for single rules: here
the messages are those of the generator of the benchmarks and of the corpora, and the queries are made of their words.
"""

import collections
import dataclasses
import email
import email.message
import email.utils
import json
import os
import pathlib
import random
import re
import shutil
import subprocess
import sys
from collections.abc import Iterable

from harness.runner import Outcome, Step
from harness.sandbox import Sandbox

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
CORPORA = pathlib.Path(os.environ.get("LARDER_CORPORA", ROOT.parent / "shared" / "corpora")) / "mail"

# The generator makes about four threads of ten messages.
GENERATED_MESSAGES = 14_000
MIN_THREADS = 5_000
# One of these many messages is removed, so that some replies are orphans.
REMOVED_INTERVAL = 20
QUERIES = 250
# The most differences that a failure lists.
SHOWN = 20
# The rules may excuse this part of all answers; a program that finds nothing breaks it.
MAX_EXCUSED = 0.15
# mu must have indexed this part of the messages.
MIN_KNOWN = 0.95

FLAGS = "draft flagged passed replied seen trashed new signed encrypted attach unread list".split()
# A word that stands beside one of these marks is a part of a joined word.
JOINTS = "-_'.@:"

# Differences of single messages, as docs/from-mu.md has them. A message to which none applies is in both answers or in none.
RULES = {
    "html": "the text of HTML is indexed; mu 1.8 indexes plain text only",
    "embedded": "a free word is searched in attached texts, forwarded messages and reports, too",
    "files": "the files of one message have their flags and folders together",
    "other-text": "a text whose Message-ID another one has, or without one, has a name of its own",
    "date": "a message without a Date that can be read has the time of its file or of its delivery",
    "joined": "a joined word is found by its parts, and an address is split at each mark",
    "nul": "mu stops at a byte 0",
    "letters": "accents and forms of letters are folded in all words, and ß is ss",
    "openpgp": "OpenPGP and S/MIME set flags by what the message has, not by the types of multiparts only",
    "list": "the name of a mailing list is also read from Mailing-List and X-Mailing-List",
    "unindexed": "mu leaves out a file whose header begins with an empty line or is damaged in another way",
    "precedence": "Precedence: junk is a low priority",
    "charset": "the character set of a text that is not in the declared one is guessed",
    "damage": "the parts of a damaged multipart, or of one in an attached message, are found by other rules",
}


class Message:
    """A message with what the rules need to know of it."""

    def __init__(self, values: dict):
        self.id = values["id"]
        self.subject = values["subject"] or ""
        fields = [values[name] for name in ("from", "to", "cc", "bcc", "reply_to")]
        self.addresses = [one["address"] for field in fields for one in field if one["address"]]
        self.folder = values["folders"][0]
        self.year = int(values["date"][:4]) if values["date"] else 1970
        self.size = values["size"]
        self.files = values["files"]
        self.has_own_name = values["message_id"].endswith("@larder")
        self.content = pathlib.Path(self.files[0]).read_bytes()
        self.header = self.content.partition(b"\n\n")[0].decode("latin-1")

    def words_of_body(self) -> list[str]:
        """Returns the Latin words behind the header."""
        return re.findall(r"[A-Za-z]{2,14}", self.content.partition(b"\n\n")[2].decode("latin-1"))

    def rules(self, query: str) -> set[str]:
        """Returns the rules by which the message may differ in an answer."""
        parsed = email.message_from_bytes(self.content)
        parts = list(parsed.walk())
        terms = set(re.findall(r'[^\s()"]+', query)) - {"and", "or", "not"}
        fields = {term.partition(":")[0] if ":" in term else "" for term in terms}
        types = {part.get_content_type() for part in parts}
        is_encrypted = b"-----BEGIN PGP" in self.content or "application/pkcs7-mime" in types
        is_junk = (parsed.get("Precedence") or "").strip().lower() == "junk"
        found = {
            "files": len(self.files) > 1,
            "other-text": self.has_own_name,
            "date": "date" in fields and not is_date(parsed.get("Date")),
            "openpgp": "flag" in fields and is_encrypted,
            "list": "flag" in fields and bool(parsed.get("Mailing-List") or parsed.get("X-Mailing-List")),
            "precedence": "prio" in fields and is_junk,
        }
        if fields & {"", "body"}:
            is_attached = any(part.get_content_disposition() == "attachment" or part.get_filename() for part in parts)
            found["html"] = "text/html" in types
            found["embedded"] = is_attached or any(re.match("message/|text/(?!plain|html)", kind) for kind in types)
            found["damage"] = any(part.defects for part in parts)
        if fields & {"", "body", "subject", "from", "to"}:
            text = "\n".join([self.subject, *self.addresses, self.header, readable_text(parts)])
            values = [term.rpartition(":")[2] for term in terms if not re.match("flag|prio|date|size|maildir", term)]
            words = "|".join(re.findall(r"[A-Za-z]{2,}", " ".join(values)))
            found["joined"] = bool(re.search(rf"(?i)\w[{JOINTS}]+({words})|({words})\w*[{JOINTS}]+\w", text))
            found["nul"] = b"\0" in self.content
            found["letters"] = any(ord(character) > 127 for character in text)
            found["charset"] = not self.header.isascii() or not all(has_declared_charset(part) for part in parts)
        return {rule for rule, holds in found.items() if holds}


def is_date(value: object) -> bool:
    """Returns whether both programs read a Date alike: in the form of RFC 5322, of a day that exists."""
    try:
        return email.utils.parsedate_to_datetime(str(value)).year > 1970
    except (TypeError, ValueError):
        return False


def has_declared_charset(part: email.message.Message) -> bool:
    """Returns whether a text is in its character set."""
    if part.get_content_maintype() != "text":
        return True
    try:
        (part.get_payload(decode=True) or b"").decode(part.get_content_charset() or "ascii")
    except (LookupError, UnicodeDecodeError):
        return False
    return True


def readable_text(parts: list[email.message.Message]) -> str:
    """Returns the decoded plain texts."""
    texts = [part.get_payload(decode=True) or b"" for part in parts if part.get_content_type() == "text/plain"]
    return "\n".join(text.decode("utf-8", "replace") for text in texts)


class Mailbox:
    """A maildir that both programs have indexed."""

    def __init__(self, sandbox: Sandbox, maildir: pathlib.Path):
        self.sandbox = sandbox
        self.muhome = sandbox.root / "mu"
        shutil.rmtree(self.muhome, ignore_errors=True)
        self.mu("init", "--quiet", f"--maildir={maildir}")
        self.mu("index", "--quiet")
        sandbox.larder("sources", "add", str(maildir), "--into", "mail")
        sandbox.larder("sync")
        self.messages = {one["id"]: Message(one) for one in self.search("")}
        self.ids = {file: one.id for one in self.messages.values() for file in one.files}
        self.known_to_mu = self.find_with_mu("")

    def mu(self, command: str, *arguments: str, stdin: bytes = b"") -> bytes:
        """Runs mu and returns its output."""
        command_line = ["mu", command, f"--muhome={self.muhome}", *arguments]
        return subprocess.run(command_line, input=stdin, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL).stdout

    def search(self, query: str, *options: str) -> list[dict]:
        """Returns the messages that larder finds."""
        run = self.sandbox.larder("find", "--kind", "message", "--format", "json", "-n", "1000000", *options, "--", query)
        if run.code not in (0, 1):
            raise RuntimeError(f"{query}: exit code {run.code}: {run.error}")
        return [json.loads(line) for line in run.out.splitlines()]

    def find_with_mu(self, query: str) -> set[str]:
        """Returns the ids of the messages whose files mu finds."""
        found = self.mu("find", "--fields", "l", "--", query).decode("utf-8", "replace").splitlines()
        return {self.ids.get(path, path) for path in found}

    def compare(self, query: str, tally: collections.Counter) -> tuple[list[str], set[str]]:
        """Returns the differences of a query that have no rule, and the rules of the others. Counts the messages of both answers,
        and those that differ."""
        failures, rules = [], set()
        expected, found = self.find_with_mu(query), {one["id"] for one in self.search(query)}
        tally.update(answers=len(expected | found), differing=len(expected ^ found))
        for differing in expected ^ found:
            message = self.messages.get(differing)
            found_rules = message.rules(query) if message else set()
            if differing not in self.known_to_mu:
                found_rules.add("unindexed")
            rules |= found_rules
            if not found_rules:
                finder = "mu" if differing in expected else "larder"
                failures.append(f"{query}: only {finder} finds {message.files[0] if message else differing}")
        return failures, rules


def term(generator: random.Random, messages: list[Message]) -> str:
    """Returns a term that finds at least one of the messages, as a rule."""
    while True:
        message = generator.choice(messages)
        subject = re.findall(r"[A-Za-z]{3,14}", message.subject)
        words = message.words_of_body()
        choices = [f"flag:{generator.choice(FLAGS)}", f"prio:{generator.choice(['low', 'normal', 'high'])}",
                   f"date:{message.year}..{message.year + generator.randrange(3)}",
                   f"size:{message.size}..{message.size * generator.randrange(1, 4)}", f'maildir:"{message.folder}"']
        choices += [f"from:{address}" for address in message.addresses[:1]]
        choices += [f"to:{address}" for address in message.addresses[1:2]]
        if subject:
            choices += [f"subject:{generator.choice(subject)}", f"subject:{generator.choice(subject)[:3]}*"]
        if words:
            choices += [f"body:{generator.choice(words)}", generator.choice(words)]
        chosen = generator.choice(choices)
        chosen = chosen if chosen.startswith("maildir:") else chosen.lower()
        # Operators are terms to neither program, and mu takes an address with other marks apart.
        if chosen not in ("and", "or", "xor", "not") and re.fullmatch(r'[\w:.@*"/-]+', chosen, re.ASCII):
            return chosen


def query(generator: random.Random, messages: list[Message]) -> str:
    """Returns a query of one to three terms."""
    first, second, third = (term(generator, messages) for _ in range(3))
    return generator.choice([first, first, f"{first} and {second}", f"{first} or {second}", f"{first} and not {second}",
                             f"({first} or {second}) and {third}"])


@dataclasses.dataclass(frozen=True)
class ThreadRow:
    """A row of a list of threads. Texts of one Message-ID are equal: which is the duplicate depends on the order of indexing."""

    message_id: str
    level: int
    is_orphan: bool
    is_duplicate: bool


def thread_rows_of_mu(output: str) -> dict[str, ThreadRow]:
    """Returns the row of each file, in their order."""
    rows = {}
    for line in output.splitlines():
        meta = line.partition(" :meta ")[2]
        level = re.search(r":level (\d+)", meta)
        path, message_id = (re.search(rf':{key} "((?:[^"\\]|\\.)*)"', line) for key in ("path", "message-id"))
        if level and path and message_id:
            rows[path[1]] = ThreadRow(message_id[1], int(level[1]), ":orphan t" in meta, ":duplicate t" in meta)
    return rows


def tree(rows: Iterable[ThreadRow]) -> dict[str, tuple[str | None, int, bool]]:
    """Returns the parent, level and orphanhood of each message, by its first row."""
    above: list[str] = []
    found: dict[str, tuple[str | None, int, bool]] = {}
    for row in rows:
        del above[row.level:]
        found.setdefault(row.message_id, (above[-1] if above else None, row.level, row.is_orphan))
        above.append(row.message_id)
    return found


class MailAnswersStep(Step):
    """searches and threads of 14,000 generated messages and of the corpora beside mu 1.8"""

    name = "answers"
    quick_points = 0
    jobs = 1

    def missing(self) -> str | None:
        if not shutil.which("mu"):
            return "mu is not installed"
        version = subprocess.run(["mu", "--version"], stdout=subprocess.PIPE).stdout
        return None if b"version 1.8" in version else "mu is not of version 1.8"

    def points(self) -> list[str]:
        return ["generated", "threads"] + ["corpora"] * CORPORA.is_dir()

    def attempt(self, sandbox: Sandbox, point: str) -> Outcome:
        sandbox.clear()
        sandbox.case.mkdir(parents=True)
        maildir = sandbox.root / "maildir"
        shutil.rmtree(maildir, ignore_errors=True)
        if point == "corpora":
            copy_corpora(maildir)
        else:
            generator = [sys.executable, str(ROOT / "bench/mail/generate_maildir.py"), "--out", str(maildir)]
            generator += ["--n", str(GENERATED_MESSAGES), "--seed", str(self.lab.seed)]
            subprocess.run(generator, check=True, stdout=subprocess.DEVNULL)
            files = sorted(path for path in maildir.rglob("*") if path.is_file())
            for path in files[::REMOVED_INTERVAL]:
                path.unlink()
        mailbox = Mailbox(sandbox, maildir)
        return compare_threads(mailbox) if point == "threads" else self.compare_queries(mailbox, point)

    def compare_queries(self, mailbox: Mailbox, point: str) -> Outcome:
        """Compares the answers to queries."""
        generator = self.lab.random("answers", point)
        messages = [mailbox.messages[key] for key in sorted(mailbox.messages)]
        failures, rules, differing, tally = [], set(), 0, collections.Counter()
        for _ in range(QUERIES):
            unexplained, used = mailbox.compare(query(generator, messages), tally)
            failures += unexplained
            rules |= used
            differing += bool(unexplained or used)
        excused = tally["differing"] / max(tally["answers"], 1)
        if excused > MAX_EXCUSED or len(mailbox.known_to_mu) < MIN_KNOWN * len(messages):
            failures.insert(0, "the answers differ too often, or mu did not index the messages")
        figure = (f"{point}: {QUERIES} queries over {len(messages):,} messages; {differing} answers, and {excused:.1%} of the "
                  f"messages in them, differ by the rules {', '.join(sorted(rules))}")
        return Outcome(failures[:SHOWN], {}, [figure])


def copy_corpora(maildir: pathlib.Path) -> None:
    """Makes a maildir of the single messages of the corpora."""
    (maildir / "cur").mkdir(parents=True)
    files = sorted(path for path in CORPORA.rglob("*") if path.is_file() and path.name != "README.md")
    for number, path in enumerate(path for path in files if "perceval" not in path.parts):
        shutil.copyfile(path, maildir / "cur" / f"{number}.corpora:2,S")


def compare_threads(mailbox: Mailbox) -> Outcome:
    """Compares the parent and the level of each message in the list of all threads."""
    find = '(find :query "" :threads t :sortfield :date :descending t :maxnum 1000000)\n(quit)\n'
    rows_of_mu = thread_rows_of_mu(mailbox.mu("server", stdin=find.encode()).decode("utf-8", "replace"))
    listed = mailbox.search("", "--threads")
    rows = [ThreadRow(rows_of_mu[one["files"][0]].message_id, *(one["thread"][key] for key in ("level", "orphan", "duplicate")))
            for one in listed]
    expected, found = tree(rows_of_mu.values()), tree(rows)
    failures = [f"{one}: mu {expected.get(one)}, larder {found.get(one)}"
                for one in expected.keys() | found.keys() if found.get(one) != expected.get(one)]
    threads = len({one["thread_id"] for one in listed})
    orphans, duplicates = (sum(getattr(row, name) for row in rows) for name in ("is_orphan", "is_duplicate"))
    if threads < MIN_THREADS or not orphans or not duplicates:
        failures.append("too few threads, orphans or duplicates")
    return Outcome(failures[:SHOWN], {}, [f"{threads:,} threads with {len(rows):,} messages, of them {orphans:,} orphans and "
                                          f"{duplicates:,} duplicates; {len(failures)} differ"])
