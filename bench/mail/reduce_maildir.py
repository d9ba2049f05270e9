#!/usr/bin/env python3
"""Copies a maildir without what mu 1.8 does not index: header fields that it has no field for, and HTML.

    reduce_maildir.py MAILDIR COPY

Larder indexes all header fields and the text of HTML. Its first index of the copy costs what the same content costs as mu's.
"""

import os
import re
import sys

# The fields that mu reads, and those that describe parts.
KEPT = re.compile(
    rb"(from|to|cc|bcc|subject|date|message-id|references|in-reply-to|list-id|x-label|x-keywords|keywords|importance|priority"
    rb"|x-priority|precedence|mime-version|content-[a-z-]+)\s*:",
    re.IGNORECASE,
)
HTML = re.compile(rb"^content-type:\s*text/html", re.IGNORECASE | re.MULTILINE)


def reduce_message(message: bytes) -> bytes:
    """Returns a message without other header fields, whose HTML is of a type that is not read."""
    head, gap, body = message.partition(b"\n\n")
    if b"\r\n\r\n" in head:
        head, gap, body = message.partition(b"\r\n\r\n")
    kept, is_kept = [], True
    for line in head.split(b"\n"):
        if not line.startswith((b" ", b"\t")):
            is_kept = bool(KEPT.match(line)) or b":" not in line
        if is_kept:
            kept.append(line)
    return HTML.sub(b"Content-Type: application/x-html", b"\n".join(kept) + gap + body)


def main() -> int:
    source, copy = sys.argv[1:3]
    for folder, _, names in os.walk(source):
        to = os.path.join(copy, os.path.relpath(folder, source))
        os.makedirs(to, exist_ok=True)
        for name in names:
            with open(os.path.join(folder, name), "rb") as file:
                message = file.read()
            with open(os.path.join(to, name), "wb") as file:
                file.write(reduce_message(message))
    return 0


if __name__ == "__main__":
    sys.exit(main())
