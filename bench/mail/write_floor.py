#!/usr/bin/env python3
"""The least that SQLite needs to bring a database from one state to another.

    write_floor.py BEFORE.db AFTER.db [BATCHES]

Takes the rows that differ between two states of a store, and writes them into a copy of the first one:
deletions by key, insertions in the order of the keys, with a checkpoint behind it. Nothing is parsed,
looked up, compared or merged. Prints the CPU time of that, the bytes of the write-ahead log and of the
pages that the checkpoint copies, and the pages of the log by table: the cost of the tables and indexes
alone, which a program that computes the rows cannot be below.

With BATCHES, the rows are divided between so many transactions, with a checkpoint after each hundred;
a table with few rows, such as a page of a column, is written by each. Both states have to be without a
write-ahead log.
"""
import collections, os, resource, shutil, sqlite3, struct, sys, tempfile

FEW_ROWS = 64


def cpu_ms():
    used = resource.getrusage(resource.RUSAGE_SELF)
    return (used.ru_utime + used.ru_stime) * 1000


def tables(db):
    rows = db.execute("SELECT name FROM main.sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite_%'")
    for (name,) in rows.fetchall():
        columns = db.execute("SELECT name, pk FROM pragma_table_info(?)", (name,)).fetchall()
        key = [f'"{column}"' for column, place in sorted(columns, key=lambda one: one[1]) if place]
        yield name, [f'"{column}"' for column, _ in columns], key or ["rowid"]


def prepare(db, batches):
    """Puts the rows that differ into tables in memory. Returns the statements of a batch."""
    statements = []
    for name, columns, key in tables(db):
        same_key = " AND ".join(f"a.{column} = m.{column}" for column in key)
        after, before = (", ".join(f"{alias}.{column}" for column in columns) for alias in "am")
        keys = ", ".join(key)
        db.execute(
            f"CREATE TABLE d.put_{name} AS SELECT a.* FROM after.{name} a LEFT JOIN main.{name} m ON {same_key}"
            f" WHERE ({after}) IS NOT ({before}) ORDER BY {', '.join('a.' + column for column in key)}")
        db.execute(
            f"CREATE TABLE d.del_{name} AS SELECT {', '.join('m.' + column for column in key)} FROM main.{name} m"
            f" LEFT JOIN after.{name} a ON {same_key} WHERE a.{key[0]} IS NULL")
        for kind, head, tail in [
            ("del", f"DELETE FROM main.{name} WHERE ({keys}) IN (SELECT", ")"),
            ("put", f"INSERT OR REPLACE INTO main.{name} SELECT", ""),
        ]:
            count = db.execute(f"SELECT count(*) FROM d.{kind}_{name}").fetchone()[0]
            if not count:
                continue
            part = count if count <= FEW_ROWS else -(-count // batches)
            where = "" if count <= FEW_ROWS else f" WHERE rowid > :batch * {part} AND rowid <= (:batch + 1) * {part}"
            statements.append(f"{head} * FROM d.{kind}_{name}{where}{tail}")
    return statements


def log_pages(db, log):
    """Counts the frames and the different pages of a log by table or index."""
    owners = {page: name for name, page in db.execute("SELECT name, pageno FROM dbstat('main')")}
    frames, pages = collections.Counter(), collections.defaultdict(set)
    with open(log, "rb") as file:
        header = file.read(32)
        page_bytes, salt = struct.unpack(">I", header[8:12])[0], header[16:24]
        while len(frame := file.read(24 + page_bytes)) == 24 + page_bytes and frame[8:16] == salt:
            page = struct.unpack(">I", frame[:4])[0]
            owner = owners.get(page, "(free)")
            frames[owner] += 1
            pages[owner].add(page)
    return frames, pages, page_bytes


def main():
    before, after = sys.argv[1:3]
    batches = int(sys.argv[3]) if len(sys.argv) > 3 else 1
    with tempfile.TemporaryDirectory(dir=os.path.dirname(os.path.abspath(before))) as work:
        copy = os.path.join(work, "floor.db")
        shutil.copyfile(before, copy)
        db = sqlite3.connect(copy, isolation_level=None)
        for pragma in ("journal_mode = WAL", "wal_autocheckpoint = 0", "synchronous = NORMAL", "cache_size = -65536"):
            db.execute(f"PRAGMA {pragma}")
        db.execute("ATTACH ? AS after", (after,))
        db.execute("ATTACH ':memory:' AS d")
        statements = prepare(db, batches)
        db.execute("DETACH after")
        write_ms = checkpoint_ms = 0
        frames, pages = collections.Counter(), collections.Counter()
        for first in range(0, batches, 100):
            began = cpu_ms()
            for batch in range(first, min(first + 100, batches)):
                db.execute("BEGIN IMMEDIATE")
                for statement in statements:
                    db.execute(statement, {"batch": batch})
                db.execute("COMMIT")
            write_ms += cpu_ms() - began
            logged, distinct, page_bytes = log_pages(db, copy + "-wal")
            frames.update(logged)
            pages.update({owner: len(numbers) for owner, numbers in distinct.items()})
            began = cpu_ms()
            db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
            checkpoint_ms += cpu_ms() - began
        count, copied = frames.total(), pages.total()
        megabytes = (count * (page_bytes + 24) + copied * page_bytes) / 1e6
        print(f"CPU {write_ms:.0f} ms, checkpoints {checkpoint_ms:.0f} ms, of a batch {(write_ms + checkpoint_ms) / batches:.3f} ms; "
              f"{count} pages in the log, {copied} copied: {megabytes:.1f} MB")
        for owner, number in frames.most_common(12):
            print(f"{number:7} {pages[owner]:7} {owner}")
        db.close()


main()
