#!/usr/bin/env python3
"""Copies a maildir N times into one: a large maildir in a fraction of the time that generating it takes.

    multiply_maildir.py MAILDIR COPY N

Each copy has its own Message-IDs, in the fields of threads, too, and dates that are seven hours after those of the copy before: no message
is a copy of another, and each thread exists N times. The words of the texts are the same in each copy.
"""

import os
import re
import sys
from email.utils import format_datetime, parsedate_to_datetime
from datetime import timedelta

HOURS_BETWEEN_COPIES = 7
ID_FIELDS = re.compile(rb"^(message-id|references|in-reply-to):(?:[^\n]|\n[ \t])*", re.IGNORECASE | re.MULTILINE)
ID = re.compile(rb"<([^<>@\s]+)@")
DATE = re.compile(rb"^date:[ \t]*([^\r\n]*)", re.IGNORECASE | re.MULTILINE)


def parse_date(head: bytes):
    """Returns the match of the Date field and its time; None if there is none that can be read."""
    field = DATE.search(head)
    try:
        return (field, parsedate_to_datetime(field[1].decode("ascii"))) if field else None
    except (ValueError, TypeError, OverflowError):
        return None


def copy_message(path: str, targets: list[str]) -> None:
    """Writes the copies of one message."""
    with open(path, "rb") as file:
        message = file.read()
    modified = os.stat(path).st_mtime
    end = re.search(rb"\r?\n\r?\n", message)
    head, rest = (message[: end.start()], message[end.start() :]) if end else (message, b"")
    for number, target in enumerate(targets):
        shift = timedelta(hours=HOURS_BETWEEN_COPIES * number)
        text = head
        if number:
            mark = b"<\\1.%d@" % number
            text = ID_FIELDS.sub(lambda field: ID.sub(mark, field[0]), text)
            if date := parse_date(text):
                field, time = date
                text = text[: field.start(1)] + format_datetime(time + shift).encode() + text[field.end(1) :]
        with open(target, "wb") as copy:
            copy.write(text + rest)
        os.utime(target, (modified, modified + shift.total_seconds()))


def main() -> int:
    source, copy, number = sys.argv[1], sys.argv[2], int(sys.argv[3])
    for folder, _, names in os.walk(source):
        to = os.path.join(copy, os.path.relpath(folder, source))
        os.makedirs(to, exist_ok=True)
        for name in names:
            base, colon, flags = name.partition(":")
            copy_message(os.path.join(folder, name), [os.path.join(to, f"{base}.{at}{colon}{flags}") for at in range(number)])
    return 0


if __name__ == "__main__":
    sys.exit(main())
