#!/usr/bin/env python3
"""mkhistory.py BUNDLE COUNT: write a bundle of COUNT changesets that a fixed seed makes: named branches
that are closed and opened again, several heads, merges, copies, removals, flags, equal contents."""
import random, sys
from hgraw import RawRepo

out, count = sys.argv[1], int(sys.argv[2])
rng = random.Random(20)
r = RawRepo()
heads, branch_of = [], {}
for number in range(count):
    roll = rng.random()
    if not heads or roll < 0.01:
        parents = ()
    elif len(heads) > 1 and roll < 0.12:
        parents = tuple(rng.sample(heads, 2))
    elif roll < 0.2:
        parents = (rng.choice(list(branch_of)),)
    else:
        parents = (rng.choice(heads[-4:]),)
    branch = branch_of[parents[0]] if parents else b"default"
    if rng.random() < 0.06:
        branch = b"b%d" % rng.randrange(8)
    extra = {} if branch == b"default" else {b"branch": branch}
    if rng.random() < 0.05:
        extra[b"close"] = b"1"
    files = r.man[parents[0]][1] if parents else {}
    changes = {}
    for _ in range(rng.randrange(4)):
        path = b"d%d/s%d/f%d" % (rng.randrange(3), rng.randrange(4), rng.randrange(9))
        old = rng.choice(sorted(files)) if files else None
        kind = rng.random()
        if kind < 0.1 and path in files:
            changes[path] = None
        elif kind < 0.25 and old:
            changes[path] = dict(data=b"copied %d\n" % number, copy=old)
        elif kind < 0.35:
            changes[path] = (b"#!/bin/sh\n" * rng.randrange(3), rng.choice([b"x", b""]))
        else:
            lines = [b"line %d %d\n" % (i, rng.randrange(3)) for i in range(rng.randrange(1, 60))]
            changes[path] = b"".join(lines)
    node = r.commit(parents, changes, user=b"user %d <u@example.org>" % (number % 5),
                    date=b"%d 0" % (1000000000 + number), extra=extra, desc=b"change %d" % number)
    branch_of[node] = branch
    heads = [head for head in heads if head not in parents] + [node]
r.write(out)
