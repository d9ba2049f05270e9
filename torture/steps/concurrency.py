"""Eight writers, readers and three live views on one store at the same time.

Every writer knows what it wrote, so the end is known: nothing lost, nothing else, and each view ends with the list
that `find` prints. Small and bulk changes are measured beside each other.
"""

import collections
import json
import random
import signal
import subprocess
import threading
import time

from harness.program import Run
from harness.runner import Lab, Outcome, Step
from harness.sandbox import Sandbox

FULL_SECONDS = 60
# Without a clock: so many changes of each small writer.
QUICK_CHANGES = 6
SMALL_WRITERS, BULK_WRITERS, READERS = 6, 2, 8
MANY_READERS = 16
BOOKS = ("book-0", "book-1", "book-2")
LOG_LIMIT_BYTES = 16 << 20
# The end of the changes for the views.
LAST_UID = "the-last-card"
READING = [["find", "anna", "--count"], ["find", "email:w1*"], ["export", "book-1"], ["log"], ["collections"],
           ["find", "--in", "bulk", "full_name:a*", "--count"], ["find", "--sort", "family_name", "-n", "20"]]


def card(uid: str, version: int) -> bytes:
    """Returns a version of a card."""
    return (f"BEGIN:VCARD\r\nVERSION:4.0\r\nUID:{uid}\r\nFN:Name {version}\r\nEMAIL:{uid}@x.example\r\nEND:VCARD\r\n").encode()


class ConcurrencyStep(Step):
    """8 writers, 8 or 16 readers and 3 live views for 60 s; the size of the write-ahead log"""

    name = "together"
    quick_points = 1
    jobs = 1

    def points(self) -> list[str]:
        return ["mixed", "many-readers"]

    def attempt(self, sandbox: Sandbox, point: str) -> Outcome:
        crowd = Crowd(self.lab, sandbox, MANY_READERS if point == "many-readers" else READERS)
        crowd.prepare()
        crowd.run()
        crowd.judge_items()
        crowd.judge_log()
        return Outcome(crowd.failures, dict(crowd.counts), crowd.figures(point))


class View:
    """A live view of a query, as a list that its changes add up to."""

    def __init__(self, sandbox: Sandbox, *arguments: str):
        self.arguments = arguments
        self.items: dict[str, str] = {}
        self.problems: list[str] = []
        self.is_waiting_for_end = False
        self.has_last = threading.Event()
        self.process = sandbox.program.start(["watch", "--format", "json", *arguments], sandbox.store,
                                             stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.thread = threading.Thread(target=self.follow)
        self.thread.start()

    def follow(self) -> None:
        """Reads changes until the view ends."""
        for line in self.process.stdout:
            entry = json.loads(line)
            change, item = entry["change"], entry.get("id")
            if change == "removed":
                self.items.pop(item, None)
            elif change in ("added", "modified"):
                if (item in self.items) != (change == "modified"):
                    self.problems.append(f"{item} was {change} and is {'' if item in self.items else 'not '}in the list")
                self.items[item] = entry.get("full_name", [""])[0]
            elif change == "reset":
                self.items.clear()
            if entry.get("uid") == LAST_UID:
                self.is_waiting_for_end = True
            if change == "complete" and self.is_waiting_for_end:
                self.has_last.set()

    def end(self) -> None:
        """Waits for the last card, and ends the view."""
        if not self.has_last.wait(timeout=60):
            self.problems.append("does not get the last change")
        self.process.send_signal(signal.SIGINT)
        self.process.communicate()
        self.thread.join()


class Crowd:
    """All processes of a run, and what they must leave."""

    def __init__(self, lab: Lab, sandbox: Sandbox, readers: int):
        self.lab = lab
        self.sandbox = sandbox
        self.readers = readers
        self.failures: list[str] = []
        self.counts: collections.Counter = collections.Counter()
        self.seconds: dict[str, list[float]] = collections.defaultdict(list)
        self.expected: dict[tuple[str, str], int] = {}
        self.log_size = 0
        self.deadline = 0.0
        self.writers_left = SMALL_WRITERS
        self.lock = threading.Lock()

    def larder(self, kind: str, *arguments: str, stdin: bytes = b"", codes: tuple[int, ...] = (0,)) -> Run:
        """Runs a command, measures it, and looks at the log."""
        began = time.monotonic()
        run = self.sandbox.larder(*arguments, stdin=stdin)
        took = time.monotonic() - began
        log = self.sandbox.store / "data.db-wal"
        try:
            size = log.stat().st_size
        except FileNotFoundError:
            size = 0
        with self.lock:
            self.seconds[kind].append(took)
            self.log_size = max(self.log_size, size)
            if run.crash() or run.code not in codes:
                self.failures.append(f"{kind}: {run.crash() or f'exit code {run.code}: {run.error}'}")
        return run

    def prepare(self) -> None:
        """Makes the store."""
        self.sandbox.clear()
        self.sandbox.case.mkdir(parents=True)
        folder = self.sandbox.root
        self.sandbox.larder("measure", "generate", "contacts", str(self.lab.items), "--seed", "9",
                            "--output", str(folder / "bulk-0.vcf"))
        bulk = (folder / "bulk-0.vcf").read_bytes()
        (folder / "bulk-1.vcf").write_bytes(bulk.replace(b"END:VCARD", b"X-CHANGED:1\r\nEND:VCARD"))
        self.larder("prepare", "import", "--into", "bulk", str(folder / "bulk-0.vcf"))
        for book in BOOKS:
            self.larder("prepare", "add", "-", "--into", book, stdin=card(f"first-{book}", 0))
            self.expected[book, f"first-{book}"] = 0

    def run(self) -> None:
        """Runs all processes to their end."""
        views = [View(self.sandbox, "--in", BOOKS[0]), View(self.sandbox, "email:w*", "or", f"email:{LAST_UID}*"),
                 View(self.sandbox)]
        self.deadline = time.monotonic() + FULL_SECONDS
        targets = [(self.write_small, SMALL_WRITERS), (self.write_bulk, BULK_WRITERS), (self.read, self.readers)]
        threads = [threading.Thread(target=self.guard, args=(target, number)) for target, count in targets for number in range(count)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.larder("add", "add", "-", "--into", BOOKS[0], stdin=card(LAST_UID, 0))
        self.expected[BOOKS[0], LAST_UID] = 0
        for view in views:
            view.end()
        self.judge_views(views)

    def guard(self, target, number: int) -> None:
        """Runs a thread; its exception is a failure."""
        try:
            target(number)
        except Exception as error:
            self.failures.append(f"{target.__name__}: {error!r}")
        finally:
            with self.lock:
                self.writers_left -= target == self.write_small

    def goes_on(self, changes: int) -> bool:
        """Returns whether a writer makes another change."""
        return changes < QUICK_CHANGES if self.lab.quick else time.monotonic() < self.deadline

    def write_small(self, number: int) -> None:
        """Adds, edits, removes, undoes, and imports small files, in its own part of a book."""
        generator, book, changes = self.lab.random("writer", number), BOOKS[number % len(BOOKS)], 0
        own: dict[str, int] = {}
        while self.goes_on(changes):
            changes += 1
            self.change(generator, book, own, f"w{number}-{changes}", changes)
        with self.lock:
            self.expected.update({(book, uid): version for uid, version in own.items()})

    def change(self, generator: random.Random, book: str, own: dict[str, int], uid: str, version: int) -> None:
        """Makes one small change."""
        choice = generator.random()
        known = generator.choice(sorted(own)) if own else uid
        if choice < 0.45 or len(own) < 3:
            if self.larder("add", "add", "-", "--into", book, stdin=card(uid, version)).code == 0:
                own[uid] = version
        elif choice < 0.7:
            if self.larder("edit", "edit", f"{book}/{known}", "--from", "-", stdin=card(known, version)).code == 0:
                own[known] = version
        elif choice < 0.85:
            self.remove(generator, book, own, known)
        else:
            uids = [f"{uid}-{part}" for part in range(20)]
            path = self.sandbox.root / f"{uid}.vcf"
            path.write_bytes(b"".join(card(uid, version) for uid in uids))
            if self.larder("import of 20", "import", "--into", book, str(path)).code == 0:
                own.update({uid: version for uid in uids})

    def remove(self, generator: random.Random, book: str, own: dict[str, int], uid: str) -> None:
        """Removes a card, and undoes half of the removals."""
        run = self.larder("remove", "remove", f"{book}/{uid}", "--format", "json")
        if run.code != 0:
            return
        version = own.pop(uid)
        if generator.random() < 0.5:
            operation = json.loads(run.out)["operation"]
            if self.larder("undo", "undo", str(operation)).code == 0:
                own[uid] = version

    def write_bulk(self, number: int) -> None:
        """Imports a large book over and over, with every card changed."""
        for turn in range(1_000_000):
            if not self.writers_left or not (self.lab.quick or self.goes_on(0)):
                break
            path = self.sandbox.root / f"bulk-{(turn + number + 1) % 2}.vcf"
            self.larder(f"import of {self.lab.items:,}", "import", "--into", "bulk", str(path))

    def read(self, number: int) -> None:
        """Reads as long as there are writers."""
        generator = self.lab.random("reader", number)
        while self.writers_left:
            command = generator.choice(READING)
            run = self.larder(f"read ({command[0]})", *command, codes=(0, 1))
            if command[0] == "export" and run.out.count(b"BEGIN:VCARD") != run.out.count(b"END:VCARD"):
                self.failures.append("an export is torn")
            self.counts["reads"] += 1

    def listed(self) -> list[dict]:
        """Returns all items, as `find` lists them."""
        return [json.loads(line) for line in self.sandbox.larder("find", "--format", "json").out.splitlines()]

    def judge_items(self) -> None:
        """Compares the items with what the writers wrote."""
        found = {(item["collection"], item["uid"]): item["full_name"][0] for item in self.listed() if item["collection"] != "bulk"}
        expected = {key: f"Name {version}" for key, version in self.expected.items()}
        lost = [key for key in expected if found.get(key) != expected[key]]
        extra = [key for key in found if key not in expected]
        if lost or extra:
            self.failures.append(f"{len(lost)} items lost or old, {len(extra)} too many: {(lost + extra)[:3]}")
        check = self.sandbox.larder("check")
        if check.code != 0:
            self.failures.append(f"check: exit code {check.code}: {check.error}")

    def judge_views(self, views: list[View]) -> None:
        """Compares each view with the answer to its query."""
        items = self.listed()
        queries = [lambda item: item["collection"] == BOOKS[0],
                   lambda item: any(address.startswith(("w", LAST_UID)) for address in item.get("email", [])),
                   lambda item: True]
        for view, matches in zip(views, queries):
            expected = {item["id"]: item.get("full_name", [""])[0] for item in items if matches(item)}
            if view.items != expected:
                view.problems.append(f"ends with {len(view.items)} items instead of {len(expected)}, or with old names")
            self.failures += [f"watch {' '.join(view.arguments)}: {problem}" for problem in view.problems[:3]]

    def judge_log(self) -> None:
        """Compares the size of the write-ahead log with its limit."""
        if self.log_size > LOG_LIMIT_BYTES:
            self.failures.append(f"the write-ahead log had {self.log_size / 1e6:.0f} MB; the limit is {LOG_LIMIT_BYTES >> 20} MiB")

    def figures(self, point: str) -> list[str]:
        """The times of each kind of command, and the size of the log."""
        lines = [f"{point}: write-ahead log: at most {self.log_size / 1e6:.1f} MB"]
        return lines + [f"{point}: {kind}: {describe(times)}" for kind, times in sorted(self.seconds.items()) if kind != "prepare"]


def describe(times: list[float]) -> str:
    """Returns the number of measurements, the median, the 99th percentile and the maximum."""
    ordered = sorted(times)
    median, last = ordered[len(ordered) // 2], percentile_99(times)
    return f"{len(ordered):,} times, p50 {median * 1000:.0f} ms, p99 {last * 1000:.0f} ms, at most {ordered[-1] * 1000:.0f} ms"


def percentile_99(times: list[float]) -> float:
    """Returns the 99th percentile of measurements."""
    return sorted(times)[min(len(times) - 1, len(times) * 99 // 100)]
