#!/usr/bin/env python3
"""mkhostile.py FOLDER: write bundles with paths that no file may have: paths.hg (git refuses to check
them out), newline.hg, nul.hg and group.hg (in the name of a group of file revisions)."""
import os, sys
from hgraw import RawRepo, NULL, node

out = sys.argv[1]
PATHS = [b".git/config", b".GIT/hooks/post-checkout", b"sub/.git/config", b"../up", b"a/../../up", b"./dot", b"/etc/up"]
r = RawRepo()
root = r.commit((), {b"good": b"good\n"}, desc=b"good", date=b"1 0")
for number, path in enumerate(PATHS):
    change = {path: (b"#!/bin/sh\necho evil\n", b"x")}
    r.commit((root,), change, desc=b"hostile", date=b"%d 0" % (number + 2), extra={b"branch": b"h%d" % number})
r.write(os.path.join(out, "paths.hg"))


def one_line(name, path, text):
    r = RawRepo()
    digits = node(NULL, NULL, b"evil\n").hex().encode()
    r.commit((), {path: b"evil\n"}, manifest_text=text % digits, files=[], desc=b"hostile", date=b"1 0")
    r.write(os.path.join(out, name))


one_line("newline.hg", b"a\nb", b"a\nb\0%s\n")
one_line("nul.hg", b"a\0b", b"a\0b\0%s\n")
one_line("group.hg", b"a\nb\0/../c", b"good\0%s\n")
