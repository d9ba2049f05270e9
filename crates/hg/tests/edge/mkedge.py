#!/usr/bin/env python3
"""Create small Mercurial repositories full of edge cases.  Usage: mkedge.py OUTDIR
Makes OUTDIR/{cli,raw,conflict,negdate,...}; every date/user is fixed so that node ids are reproducible.
"""
import os, struct, subprocess, sys
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from hgraw import RawRepo, NULL, node

out = os.path.abspath(sys.argv[1])
os.makedirs(out, exist_ok=True)
env = dict(os.environ, HGPLAIN="1", HGRCPATH="", HGENCODING="utf-8", LC_ALL="C.UTF-8", HGUSER="test", HGMERGE=":merge-other")
clock = [1_000_000_000]


class Server:
    """A command server, so that hundreds of commands cost one start of Python.

    https://wiki.mercurial-scm.org/CommandServer
    """

    def __init__(self):
        command = ["hg", "serve", "--cmdserver", "pipe"]
        pipes = dict(stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        self.hg = subprocess.Popen(command, env=env, cwd="/", **pipes)
        self.has_ended = False
        hello = self.read_block()
        assert hello[0] == b"o", hello

    def read_block(self):
        header = self.hg.stdout.read(5)
        if not header:
            # A command raised an exception.
            self.has_ended = True
            return b"r", struct.pack(">i", 255)
        channel, length = struct.unpack(">cI", header)
        return channel, self.hg.stdout.read(length)

    def run(self, command):
        args = b"\0".join(os.fsencode(arg) for arg in command)
        self.hg.stdin.write(b"runcommand\n" + struct.pack(">I", len(args)) + args)
        self.hg.stdin.flush()
        output = b""
        while True:
            channel, data = self.read_block()
            if channel == b"r":
                return struct.unpack(">i", data)[0], output
            assert channel in (b"o", b"e"), (channel, command)
            output += data


server = Server()


def run(command, ok=(0,)):
    global server
    code, output = server.run(command)
    if code not in ok:
        print("FAILED", code, command, output.decode(errors="replace"))
        sys.exit(1)
    if server.has_ended:
        server = Server()
    return output


def hg(repo, *a, ok=(0,)):
    return run(["-R", repo, "--cwd", repo, "--config", "ui.allowemptycommit=1", "--config", "phases.publish=0", *a], ok)


def ci(repo, msg, user="Test User <test@example.org>", date=None, *extra):
    if date is None:
        clock[0] += 1000
        date = "%d -7200" % clock[0]
    hg(repo, "commit", "-A", "-m", msg, "-u", user, "-d", date, *extra)
    return hg(repo, "log", "-r", ".", "-T", "{node}").decode()


def w(repo, path, data, mode=None):
    p = os.path.join(repo.encode(), path if isinstance(path, bytes) else path.encode())
    os.makedirs(os.path.dirname(p), exist_ok=True)
    if os.path.lexists(p):
        os.unlink(p)
    with open(p, "wb") as f:
        f.write(data if isinstance(data, bytes) else data.encode())
    if mode:
        os.chmod(p, mode)


def init(name):
    r = os.path.join(out, name)
    subprocess.run(["rm", "-rf", r])
    run(["init", r])
    return r


# ------------------------------------------------------------------ plain CLI
R = init("cli")
w(R, "a.txt", "hello\n")
w(R, "dir/b.txt", "b\n" * 50)
w(R, "bin/run.sh", "#!/bin/sh\n", 0o755)
os.symlink("a.txt", R + "/link")
w(R, "empty", "")
w(R, "foo.bar", "1\n")
w(R, "foo/bar", "2\n")
w(R, "foobar", "3\n")
w(R, "naïve/été.txt", "unicode name\n")
w(R, b"latin1-\xe9\xe8.txt", "latin1 name\n")
w(R, "sp ace/qu\"ote\\back'tick", "x\n")
w(R, ".gitattributes", "* text=auto\n")
w(R, ".gitmodules", "not really\n")
w(R, "README", "upper\n")
w(R, "readme", "lower\n")
ci(R, "initial: many kinds of names")
first = hg(R, "log", "-r", ".", "-T", "{node}").decode()
w(R, "a.txt", "hello\nworld\n"); ci(R, "modify")
os.chmod(R + "/a.txt", 0o755); ci(R, "exec bit on")
os.chmod(R + "/a.txt", 0o644); w(R, "a.txt", "hello\n"); ci(R, "exec bit off and content back to the first")
os.unlink(R + "/link"); w(R, "link", "now a file\n"); ci(R, "symlink becomes a file")
os.unlink(R + "/link"); os.symlink("dir/../a.txt", R + "/link"); ci(R, "file becomes a symlink")
hg(R, "rename", "dir/b.txt", "dir/c.txt"); ci(R, "pure rename")
hg(R, "copy", "dir/c.txt", "dir/d.txt"); w(R, "dir/d.txt", "b\n" * 50 + "more\n"); ci(R, "copy and edit")
hg(R, "rename", "empty", "empty2"); ci(R, "rename an empty file")
hg(R, "rename", "bin/run.sh", "run.sh"); os.chmod(R + "/run.sh", 0o644); ci(R, "rename dropping exec")
w(R, "ctrl", b"\x01\nfake metadata\n\x01\nbody\n"); ci(R, "content starting with \\x01\\n")
hg(R, "copy", "ctrl", "ctrl2"); ci(R, "copy of content starting with \\x01\\n")
w(R, "ctrl3", b"\x01\n"); w(R, "ctrl4", b"\x01"); w(R, "nul", b"\0\0\0\n\0"); w(R, "crlf", b"a\r\nb\r\n"); w(R, "nonl", b"no newline"); ci(R, "odd contents")
ci(R, "empty commit, same manifest")
ci(R, "empty commit, same manifest")     # same message, other date
hg(R, "rm", "foo/bar"); w(R, "a.txt", "x\n"); ci(R, "remove the only file of a directory")
w(R, "foo", "a file where a directory was\n"); ci(R, "dir becomes file")
os.unlink(R + "/foo"); w(R, "foo/bar", "2\n"); ci(R, "file becomes dir again; old content revived")
for n, u in enumerate(["foo", "foo <bar", "foo bar>", "<foo@bar>", "foo@bar", "Foo Bar <foo@bar>, Baz <b@z>", "\"Foo\" <a@b>",
                       "Foo  <a@b>", "Foo<a@b>", "Ünïcödé Ñame <ü@example.org>", "foo (comment) foo@bar", "<>", "x <>",
                       "a <b> c <d>", "foo <<a@b>>", "'quoted' name <q@q>", ". , ;", "foo\tbar <t@t>", "  lead <l@l>  "]):
    w(R, "authors", "%d\n" % n)
    ci(R, "author #%d" % n, u)
for n, d in enumerate(["0 0", "1 0", "1234567890 -20700", "1234567890 1234", "1234567890 -50400", "1234567890 43200", "1234567890 -34200",
                       "2147483647 0", "1234567890 1", "1234567890 -59", "1234567890 12600"]):
    w(R, "dates", "%d\n" % n)
    ci(R, "date " + d, date=d)
for n, m in enumerate(["trailing space   \n\n\n", "\n\nleading blank", "crlf\r\nline\r\n", "unicode ✓ é", "multi\n\nparagraph\n\n  indented\n", "tab\t", "#hash first", "a" * 5000]):
    w(R, "msgs", "%d\n" % n)
    ci(R, m)
# branches
hg(R, "branch", "stable"); w(R, "s", "1\n"); ci(R, "on stable")
hg(R, "branch", "feature/with-slash"); w(R, "s", "2\n"); ci(R, "on feature/with-slash")
hg(R, "commit", "--close-branch", "-m", "close feature", "-d", "1100000000 0", "-u", "closer")
hg(R, "update", "-q", "stable"); hg(R, "branch", "ünïcode-branch"); w(R, "s", "3\n"); ci(R, "on unicode branch")
hg(R, "update", "-q", "default"); w(R, "m1", "1\n"); ci(R, "default goes on")
hg(R, "merge", "stable"); ci(R, "merge stable into default")
hg(R, "update", "-q", "stable"); w(R, "s", "4\n"); ci(R, "stable head A")
hg(R, "update", "-q", "-r", ".^"); w(R, "s", "5\n"); ci(R, "stable head B (second head)")
hg(R, "update", "-q", "-r", ".^"); w(R, "s9", "5\n"); ci(R, "stable head C"); hg(R, "commit", "--close-branch", "-m", "close head C", "-d", "1100000001 0", "-u", "closer")
hg(R, "update", "-q", "feature/with-slash"); w(R, "reopen", "1\n"); ci(R, "reopen a closed branch")
# merges with copies and with both sides changed
hg(R, "update", "-q", "default"); base = hg(R, "log", "-r", ".", "-T", "{node}").decode()
hg(R, "rename", "dir/c.txt", "dir/renamed.txt"); ci(R, "rename on one side")
hg(R, "update", "-q", base); w(R, "dir/c.txt", "b\n" * 49 + "edited\n"); w(R, "newboth", "same\n"); ci(R, "edit on the other side")
o = hg(R, "log", "-r", ".", "-T", "{node}").decode()
hg(R, "update", "-q", "-r", "max(heads(branch(default)) - %s)" % o); w(R, "newboth", "same\n"); w(R, "conf", "one\n"); ci(R, "same new file on both sides")
x = hg(R, "log", "-r", ".", "-T", "{node}").decode()
hg(R, "merge", "-r", o, ok=(0, 1)); hg(R, "resolve", "-a", "-m"); w(R, "evil", "added in the merge itself\n"); ci(R, "merge of rename and edit, plus a file added in the merge")
hg(R, "update", "-q", o); w(R, "conf", "two\n"); ci(R, "conflicting add"); y = hg(R, "log", "-r", ".", "-T", "{node}").decode()
hg(R, "update", "-q", "-r", "max(heads(branch(default)) - %s)" % y); hg(R, "merge", "-r", y, ok=(0, 1)); w(R, "conf", "one\ntwo\n"); hg(R, "resolve", "-a", "-m"); ci(R, "merge with a conflict")
# criss-cross
a0 = hg(R, "log", "-r", ".", "-T", "{node}").decode()
w(R, "cc", "1\n"); ca = ci(R, "cc left"); hg(R, "update", "-q", a0); w(R, "cc2", "2\n"); cb = ci(R, "cc right")
hg(R, "merge", "-r", ca); c1 = ci(R, "cc merge 1"); hg(R, "update", "-q", ca); hg(R, "merge", "-r", cb); c2 = ci(R, "cc merge 2")
hg(R, "merge", "-r", c1); ci(R, "cc merge 3: no content change")
# a second root, then merged
hg(R, "update", "-q", "null"); w(R, "root2", "r\n"); ci(R, "second root"); r2 = hg(R, "log", "-r", ".", "-T", "{node}").decode()
hg(R, "update", "-q", "-r", "max(heads(branch(default)) - %s)" % r2); hg(R, "merge", "-r", r2); ci(R, "merge of an unrelated root")
# tags
for t, rr in [("v1.0", first), ("v 2 space", first), ("v3/slash", "."), ("ünï", first), ("v~bad^git", first), ("double..dot", first), ("v1.0.lock", first), ("moved", first)]:
    clock[0] += 10
    hg(R, "tag", "-r", rr, t, "-d", "%d 0" % clock[0], "-u", "tagger")
hg(R, "tag", "-f", "-r", "10", "moved", "-d", "1200000000 0", "-u", "tagger")
hg(R, "tag", "--remove", "v1.0", "-d", "1200000001 0", "-u", "tagger")
hg(R, "tag", "-r", "3", "v1.0", "-f", "-d", "1200000002 0", "-u", "tagger")
hg(R, "tag", "--remove", "double..dot", "-d", "1200000003 0", "-u", "tagger")
hg(R, "tag", "-l", "-r", "5", "localtag")
hg(R, "update", "-q", "stable"); hg(R, "tag", "-f", "-r", "20", "onstable", "-d", "1200000004 0", "-u", "tagger")
w(R, ".hgsub", "sub = ../sub\n"); w(R, ".hgsubstate", "0" * 40 + " sub\n") if False else os.unlink(R + "/.hgsub")
# bookmarks
hg(R, "bookmark", "-r", "tip", "@"); hg(R, "bookmark", "-r", "30", "feature/x"); hg(R, "bookmark", "-r", "12", "bøøk")
hg(R, "phase", "-p", "-r", "0:20")
w(R, "secret", "s\n"); ci(R, "secret changeset"); hg(R, "phase", "-f", "-s", "-r", ".")
hg(R, "update", "-q", "default"); w(R, "amend", "1\n"); ci(R, "to be amended")
w(R, "amend", "2\n"); hg(R, "--config", "experimental.evolution=createmarkers,allowunstable", "commit", "--amend", "-m", "amended", "-d", "1300000000 0")

# ------------------------------------------------------------------ raw bundle
r = RawRepo()
c0 = r.commit((), {b"a": b"1\n"}, user=b"Raw <r@r>", date=b"1000 0", desc=b"root")
c1 = r.commit((c0,), {b"a": b"2\n"}, extra={b"branch": b"stable", b"rebase_source": b"f" * 40}, date=b"2000 -3600", desc=b"branch + rebase_source")
c2 = r.commit((c1,), {b"a": b"3\n"}, extra={b"amend_source": b"e" * 40, b"close": b"1", b"branch": b"stable"}, date=b"3000 0", desc=b"close")
c3 = r.commit((c0,), {b"b": b"b\n"}, extra={b"zz\\odd": b"new\nline\0nul:colon", b"committer": b"Com Mitter <c@c> 4001 -7200"}, date=b"4000 0", desc=b"escaped extra + committer")
c4 = r.commit((c3,), {b"b": b"c\n"}, extra={b"committer": b"Com Mitter <c@c> 5001 +0530"}, date=b"5000 0", desc=b"hg-git committer with git tz")
c5 = r.commit((c4,), {b"b": b"d\n"}, extra={b"committer": b"Com Mitter <c@c>"}, date=b"6000 0", desc=b"committer without date")
c6 = r.commit((c5,), {b"b": b"e\n"}, user=b"latin1 \xe9\xe8 <l@l>", desc=b"latin1 \xe9 desc", date=b"7000 0")
c7 = r.commit((c6,), {b"b": b"f\n"}, desc=b"", date=b"8000 0")
c8 = r.commit((c7,), {b"b": b"g\n"}, desc=b"trailing newlines\n\n\n", date=b"9000 0")
c9 = r.commit((c8,), {b"b": b"h\n", b"c": b"c\n"}, files=[b"c", b"b"], desc=b"unsorted files", date=b"10000 0")
c10 = r.commit((c9,), {b"b": b"i\n"}, files=[b"b", b"c"], desc=b"files lists more than changed", date=b"11000 0")
c11 = r.commit((c10,), {b"b": b"j\n"}, files=[], desc=b"files lists nothing", date=b"12000 0")
# three changesets that give the same git commit (differ only in extra)
s1 = r.commit((c11,), {b"b": b"k\n"}, desc=b"same", date=b"13000 0")
s2 = r.commit((c11,), {b"b": {"data": b"k\n"}}, desc=b"same", date=b"13000 0", extra={b"branch": b"x1"})
s3 = r.commit((c11,), {b"b": {"data": b"k\n"}}, desc=b"same", date=b"13000 0", extra={b"branch": b"x2"})
# same content, other file node => other manifest, same tree
s4 = r.commit((c11,), {b"b": {"data": b"k\n", "parents": (NULL, NULL)}}, desc=b"same", date=b"13000 0")
m1 = r.commit((s1, s2), {}, desc=b"merge of twins", date=b"14000 0")
m2 = r.commit((s3, m1), {b"a": {"data": b"copied in merge\n", "copy": b"b"}}, desc=b"copy in a merge (parent only as p2)", date=b"15000 0")
m3 = r.commit((m2, s4), {b"b": {"data": b"both\n"}}, desc=b"merge, reversed parents in the group", date=b"16000 0", swap=True)
e0 = r.commit((m3,), {b"a": None, b"b": None, b"c": None}, desc=b"everything removed: empty manifest", date=b"17000 0")
e1 = r.commit((), {}, null_manifest=True, desc=b"root with the null manifest", date=b"18000 0", files=[])
e2 = r.commit((e1,), {}, null_manifest=True, desc=b"child with the null manifest", date=b"19000 0", files=[], extra={b"branch": b"null"})
f0 = r.commit((e0,), {b"meta": {"data": b"\x01\nfoo: bar\n\x01\ncontent\n", "raw": True}}, desc=b"file metadata that is not a copy", date=b"20000 0")
f1 = r.commit((f0,), {b"meta": {"data": b"\x01\ncopy: gone\ncopyrev: " + b"1" * 40 + b"\n\x01\ncontent2\n", "raw": True}}, desc=b"copy from a file that never was", date=b"21000 0")
f2 = r.commit((f1,), {b"meta": {"data": b"\x01\n\x01\n", "raw": True}}, desc=b"empty metadata and empty content", date=b"22000 0")
f3 = r.commit((f2,), {b"d//e": b"double slash\n", b"d/f": b"f\n"}, desc=b"double slash path", date=b"23000 0") if "--slash" in sys.argv else f2
f4 = r.commit((f3,), {b".git/config": b"evil\n"}, desc=b".git path", date=b"24000 0") if "--dotgit" in sys.argv else f3
g0 = r.commit((f4,), {b"x": (b"exec\n", b"x"), b"l": (b"target", b"l")}, desc=b"flags", date=b"25000 0")
g1 = r.commit((g0,), {b"x": {"node": r.man[g0][1][b"x"][0], "flag": b"l"}}, desc=b"exec becomes symlink, same node", date=b"26000 0")
g2 = r.commit((g1,), {b"x": {"node": r.man[g0][1][b"x"][0], "flag": b""}}, files=[], desc=b"flag change only", date=b"27000 0")
g3 = r.commit((g2,), {}, desc=b"nul \0 in desc\0", date=b"28000 0")
R = init("raw")
r.write(out + "/raw.hg")
hg(R, "unbundle", out + "/raw.hg")

# ------------------------------------------------- names that git refs refuse
def refs(name, branches=(), books=()):
    R = init(name)
    w(R, "a", "1\n"); ci(R, "root", date="1 0")
    for i, b in enumerate(branches):
        hg(R, "update", "-q", "0"); hg(R, "branch", "--", b); w(R, "a", "b%d\n" % i); ci(R, "branch %d" % i, date="%d 0" % (i + 2))
    for i, b in enumerate(books):
        hg(R, "update", "-q", "0"); w(R, "a", "k%d\n" % i); ci(R, "bookmark %d" % i, date="%d 0" % (i + 100)); hg(R, "bookmark", "-r", ".", "--", b)


refs("ref-space-bookmark", books=["with space", "ok"])
refs("ref-space-branch", branches=["with space", "ok"])
refs("ref-df", branches=["x", "x/y"], books=["b", "b/c"])
refs("ref-special", branches=["a~b", "a^b", "a..b", "a.lock", "-dash", "a@{b", "a?b", "a*b", "a[b", "a\\b", ".dot", "a/.b", "end.", "a//b", "/lead", "trail/", "tab\tin"], books=["k~b", "k..b", "k.lock", "k?b"])
refs("ref-case", branches=["Case", "case"], books=["K", "k"])
refs("ref-tipname", branches=["tip2", "tip2/tip"])

# ------------------------------------------------- things known to be hard: one repo each
def one(name, **kw):
    r = RawRepo()
    c = r.commit((), {b"a": b"1\n"}, desc=b"root", date=b"1 0")
    changes = kw.pop("changes", {b"a": b"2\n"})
    r.commit((c,), changes, **kw)
    R = init(name)
    r.write(out + "/%s.hg" % name)
    o = hg(R, "unbundle", out + "/%s.hg" % name, ok=(0, 1, 255))
    if b"added 2" not in o:
        print(name, "refused by hg:", o.decode(errors="replace").strip())


one("negdate", date=b"-86400 0", desc=b"before 1970")
one("floatdate", date=b"1234567890.0 -7200", desc=b"float timestamp as written by ancient converters")
one("floattz", date=b"1234567890 -7200.0", desc=b"float tz")
one("emptyuser", user=b"", date=b"2 0", desc=b"empty user")
one("cruser", user=b"a\rb <c\r@d>", date=b"2 0", desc=b"CR in user")
one("bigdate", date=b"99999999999 0", desc=b"year 5138")
one("nluser", cl_text=None, user=b"a <b@c>", raw_extra=b"branch:", desc=b"empty branch name in extra", date=b"1 0")
one("dotgit", changes={b".git/config": b"evil\n", b"sub/.GIT/x": b"evil\n"}, desc=b".git path", date=b"2 0")
one("dblslash", changes={b"d//e": b"double\n", b"d/f": b"f\n"}, desc=b"double slash", date=b"2 0")
one("extranoval", raw_extra=b"novalue", desc=b"extra without a colon", date=b"2 0")
one("abspath", changes={b"/abs": b"x\n"}, desc=b"absolute path", date=b"2 0")
one("dotdot", changes={b"../up": b"x\n"}, desc=b"dot dot", date=b"2 0")

print("ok")
