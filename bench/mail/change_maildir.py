#!/usr/bin/env python3
"""Change ~1 % of a maildir the way a mail synchroniser and a mail client do.

    change_maildir.py --maildir M --add INC --frac 0.01 --seed 5

 * every message of the maildir tree INC is delivered into M/<folder>/new|cur
 * frac of the messages in cur/ get a flag change (rename inside cur/)
 * frac/5 are moved to another folder, frac/10 are deleted
 * half of new/ is moved to cur/ with flag S
Prints a JSON summary.  Deterministic for a given tree and seed.
"""
import argparse, json, os, random, shutil
p = argparse.ArgumentParser()
p.add_argument("--maildir", required=True)
p.add_argument("--add")
p.add_argument("--frac", type=float, default=0.01)
p.add_argument("--seed", type=int, default=5)
a = p.parse_args()
r = random.Random(a.seed)
cur, new = [], []
for d, ds, fs in os.walk(a.maildir):
    ds.sort()
    b = os.path.basename(d)
    if b in ("cur", "new"):
        (cur if b == "cur" else new).extend(os.path.join(d, f) for f in sorted(fs))
n = len(cur) + len(new)
k = max(1, int(n * a.frac))
s = {"before": n, "flagged": 0, "moved": 0, "deleted": 0, "new_to_cur": 0, "added": 0}
pick = r.sample(cur, k + k // 5 + k // 10)
for f in pick[:k]:
    base, _, fl = f.rpartition(":2,")
    x = r.choice("FRS")
    fl = "".join(sorted(set(fl) ^ {x}))
    os.rename(f, base + ":2," + fl)
    s["flagged"] += 1
arch = os.path.join(a.maildir, "Archive", "2020", "cur")
for x in ("cur", "new", "tmp"):
    os.makedirs(os.path.join(os.path.dirname(arch), x), exist_ok=True)
for f in pick[k:k + k // 5]:
    if os.path.dirname(f) != arch:
        os.rename(f, os.path.join(arch, os.path.basename(f)))
        s["moved"] += 1
for f in pick[k + k // 5:]:
    os.unlink(f)
    s["deleted"] += 1
for f in r.sample(new, min(len(new) // 2, k)):
    os.rename(f, os.path.join(os.path.dirname(os.path.dirname(f)), "cur", os.path.basename(f) + ":2,S"))
    s["new_to_cur"] += 1
if a.add:
    for d, ds, fs in os.walk(a.add):
        for f in sorted(fs):
            dst = os.path.join(a.maildir, os.path.relpath(d, a.add))
            os.makedirs(dst, exist_ok=True)
            for x in ("cur", "new", "tmp"):
                os.makedirs(os.path.join(os.path.dirname(dst), x), exist_ok=True)
            shutil.copy2(os.path.join(d, f), os.path.join(dst, f))
            s["added"] += 1
print(json.dumps(s))
