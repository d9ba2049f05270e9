"""The table of verbs: every command of the program, what it starts from, and what it may leave when it is stopped.

A row is all that a step knows of a verb. A new command of the program gets a row here, and every step tries it.
"""

import dataclasses
import enum

from harness.fixtures import MESSAGE_SECRET, SECRETS
from harness.program import Run


class Effect(enum.Enum):
    """What a verb does to the items of a store."""

    NOTHING = "no item changes"
    WHOLE = "all items change in one batch: the contents are as before or as after"
    STEPS = "items change batch by batch: each item is as before or as after"
    ADDITION = "one item with a random UID is added, or none"


@dataclasses.dataclass(frozen=True)
class Verb:
    """A command and its effect."""

    name: str
    # The words, with {inputs}, {out} and {store}; double quotes group words.
    command: str
    effect: Effect = Effect.NOTHING
    start: str = "standard"
    # An input that the command reads from standard input.
    stdin: str | None = None
    # The exit code of a run without a fault.
    code: int = 0
    # A text that a run without a fault prints, if its exit code is also one of failures.
    says: str = ""
    # With Effect.STEPS: the number of items in each batch but the last; 1 if batches differ in size.
    batch: int = 1
    # The command goes on for ever, and gets Control-C when it prints this.
    until: str = ""
    # The file that the command writes, below {out}; a backup is compared by its contents.
    output: str | None = None
    output_is_store: bool = False
    # Texts that are in no file of the store after the command.
    erased: tuple[bytes, ...] = ()
    # The command changes the index of mail.
    indexes_mail: bool = False

    def has_ended(self, run: Run) -> bool:
        """Returns whether a run reported that it did everything."""
        return run.code == self.code and self.says in run.text

    @property
    def changes_store(self) -> bool:
        """Returns whether the command changes items, indexes or settings of the store."""
        return self.effect is not Effect.NOTHING or self.name in ("check-rebuild", "collections-create",
                                                                  "collections-index", "collections-rename",
                                                                  "sources-add", "sources-remove", "sources-rename")


def read(name: str, command: str) -> Verb:
    """A command that reads."""
    return Verb(name, command)


VERBS = [
    # Imports
    Verb("import-new", "import {inputs}/contacts.vcf", Effect.STEPS, start="nothing"),
    Verb("import", "import {inputs}/more.vcf --batch 20", Effect.STEPS, batch=20),
    Verb("import-changes", "import {inputs}/changed.vcf --batch 50", Effect.STEPS, batch=50),
    # Overrides stay in the batch of their series, which may therefore be larger.
    Verb("import-calendar", "import {inputs}/more.ics --into Calendar --batch 20", Effect.STEPS),
    Verb("import-rejects", "import {inputs}/broken.vcf --rejects {out}/rejects.vcf", Effect.STEPS, code=3,
         output="rejects.vcf"),
    # Single changes
    Verb("add", "add -", Effect.WHOLE, stdin="new.vcf"),
    Verb("add-words", 'add "Lunch with Anna 6 March 2026 12:30 for 1h"', Effect.ADDITION),
    Verb("edit", "edit uid:anna --from {inputs}/anna-2.vcf", Effect.WHOLE),
    Verb("edit-event", "edit uid:dinner --location Vienna", Effect.WHOLE),
    Verb("edit-occurrence", 'edit uid:standup --scope this --occurrence "2026-03-06 09:00" --location Hall', Effect.WHOLE),
    Verb("remove", "remove uid:anna uid:bruno", Effect.WHOLE),
    Verb("remove-query", "remove --query email:a*", Effect.WHOLE),
    Verb("remove-occurrence", 'remove uid:standup --scope this --occurrence "2026-03-06 09:00"', Effect.WHOLE),
    Verb("merge", "merge uid:anna uid:anna-again", Effect.WHOLE),
    Verb("undo", "undo 6", Effect.STEPS),
    Verb("undo-import", "undo 2", Effect.STEPS),
    Verb("undo-collection", "undo 8", Effect.STEPS),
    # Labels of messages, which wait for the messages
    Verb("labels-import", "labels import {inputs}/labels.dump", Effect.WHOLE),
    # Collections
    Verb("adopt", "adopt notmuch --from {inputs}/notmuch.dump", Effect.STEPS),
    Verb("searches-add", 'searches add friends --kind contact "anna or bruno"', Effect.WHOLE),
    Verb("collections-create", "collections create work --type calendar"),
    Verb("collections-index", "collections index contacts --index email:exact"),
    Verb("collections-rename", "collections rename contacts people", Effect.WHOLE),
    Verb("collections-remove", "collections remove contacts", Effect.STEPS),
    # Mail
    Verb("sources-add", "sources add {inputs}/mail --into mail"),
    Verb("sources-remove", "sources remove mail", start="mail-changed", indexes_mail=True),
    # The name is in the index of mail, too.
    Verb("sources-rename", "collections rename mail post", Effect.WHOLE, start="mail-changed", indexes_mail=True),
    Verb("sync-new", "sync --tune-batch 8", start="mail-registered", indexes_mail=True),
    # A rule labels the new messages in one batch.
    Verb("sync", "sync --tune-batch 4", Effect.WHOLE, start="mail-changed", indexes_mail=True),
    Verb("sync-full", "sync --full", Effect.WHOLE, start="mail-changed", indexes_mail=True),
    Verb("sync-unsynced", "sync --tune-synchronous off --tune-batch 4", Effect.WHOLE, start="mail-changed", indexes_mail=True),
    Verb("sync-watch", "sync --watch", Effect.WHOLE, start="mail-changed", code=130, until="Control-C ends", indexes_mail=True),
    # An mbox file and a repository, whose commits have a store of their own
    Verb("sync-sources-new", "sync --tune-batch 4", start="sources-registered", indexes_mail=True),
    Verb("sync-sources", "sync --tune-batch 4", start="sources-changed", indexes_mail=True),
    Verb("check-full", "check --full", start="mail-changed", indexes_mail=True),
    Verb("check-rebuild-mail", "check --rebuild", start="mail-changed", indexes_mail=True),
    Verb("edit-labels", "edit mid:m0@x.example mid:m5@x.example --label +work -tax", Effect.WHOLE, start="mail-changed",
         indexes_mail=True),
    # The store as a whole
    Verb("purge", "purge -y uid:secret", Effect.WHOLE, erased=tuple(SECRETS)),
    Verb("purge-message", "purge -y mid:secret@x.example", start="mail-changed", erased=(MESSAGE_SECRET,), indexes_mail=True),
    Verb("purge-unfinished", "purge", Effect.WHOLE, start="unfinished-purge", erased=tuple(SECRETS)),
    Verb("check", "check"),
    Verb("check-rebuild", "check --rebuild"),
    # Repairs in place are tried by check-rebuild; this one replaces the file, and names the damage with 4.
    Verb("rebuild-damaged", "check --rebuild", start="damaged-index", code=4, says="copied into a new file"),
    Verb("salvage", "salvage {out}/saved.db", output="saved.db", output_is_store=True),
    Verb("salvage-damaged", "salvage {out}/saved.db", start="damaged-item", code=4, says="missing: item",
         output="saved.db", output_is_store=True),
    Verb("backup", "backup {out}/store.db", output="store.db", output_is_store=True),
    Verb("backup-again", "backup {out}/older.db", output="older.db", output_is_store=True),
    Verb("restore", "restore {out}/older.db", Effect.WHOLE),
    Verb("restore-damaged", "restore {out}/older.db", Effect.WHOLE, start="damaged"),
    # Outputs
    Verb("export", "export contacts -o {out}/book.vcf", output="book.vcf"),
    Verb("export-calendar", "export Calendar -o {out}/calendar.ics", output="calendar.ics"),
    Verb("generate", "measure generate contacts 200 --output {out}/generated.vcf", output="generated.vcf"),
    # Reads
    read("export-pipe", "export contacts"),
    read("labels-export", "labels export"),
    read("find", "find anna"),
    read("find-duplicates", "find --duplicates"),
    read("agenda", "agenda 2026-03"),
    read("show", "show uid:anna uid:standup"),
    read("log", "log"),
    read("log-item", "log uid:bruno"),
    read("collections", "collections"),
    read("watch", "watch --changes 0 anna"),
]


def verbs_named(names: list[str]) -> list[Verb]:
    """Returns the verbs with these names, or all of them if there are no names."""
    unknown = set(names) - {verb.name for verb in VERBS}
    if unknown:
        raise SystemExit(f"error: unknown verb: {', '.join(sorted(unknown))}; known: {', '.join(v.name for v in VERBS)}")
    return [verb for verb in VERBS if not names or verb.name in names]
