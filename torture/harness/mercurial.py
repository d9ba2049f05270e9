"""Repositories of Mercurial and of git: what the steps about `git clone hg::` share.

Apart from the sandbox of stores: larder runs here as a child of git, under the name git-remote-hg. A script of that
name, which git finds first, preloads the library of the fault into larder alone. What must hold is judged by git:
after a fault a repository is as before or complete, and the next run gives the ids of an undisturbed one.
"""

import dataclasses
import os
import pathlib
import re
import shutil
import signal
import subprocess

from harness.program import PATIENCE_SECONDS, Run
from harness.runner import Lab

HELPER = "git-remote-hg"
METADATA_REF = "refs/larder/hg/metadata"
OWN_REFS = "refs/larder/hg/"
# The script that stands for larder: it preloads a library only into the program.
WRAPPER = '#!/bin/sh\nLD_PRELOAD="$TORTURE_LIBRARY" exec "{program}" "$@"\n'
# Branches, merges and 40 changesets of three files each; the first bundle ends at changeset 9.
HISTORY = "+8:a @side +4:b @default *a+6 /b +5:c @other *a+3 @default *c+9"
FIRST_REVISION = 9
OTHER_HISTORY = "+20 @side +15 @default <1 +12"
# Ends of the bundles that leave a segment of metadata each, so that the next fetch merges them.
SEGMENT_REVISIONS = (9, 12, 15, 18, 21, 24, 27, 30)
# Bytes that cannot be compressed, so that a pack is written by several calls.
LARGE_FILE_BYTES = 3 << 20
# Words of Rust's debug output, which no message has.
DEBUG_OUTPUT = re.compile(r"panicked|RUST_BACKTRACE|\b(Os|Custom|Some|Err|Ok) ?[({]|\w+Error[({]|kind: ")
# The place that a copied repository has in place of its remote's.
PLACEHOLDER = "/PLACE-OF-THE-CASE"
# git's own name for a file in which a pack is made; `git gc` deletes it.
PACK_FILES = re.compile(r"pack-[0-9a-f]{40}\.(pack|idx|rev|bitmap|mtimes)$|multi-pack-index$")
# What a point has in its folder.
FOLDER_NAMES = ("project", "project.hg", "other", "clone", "image", "filler")
# Mercurial without settings of the user.
HG_ENVIRONMENT = {"PATH": os.environ.get("PATH", "/usr/bin:/bin"), "HGRCPATH": "", "HGPLAIN": "1", "LC_ALL": "C.UTF-8",
                  "HGUSER": "Anna Berg <anna@example.org>"}


@dataclasses.dataclass(frozen=True)
class MercurialVerb:
    """A command on a git repository whose history comes from Mercurial."""

    name: str
    # The words, with {case}: git and its arguments, or larder's arguments alone.
    command: str
    # The folder of the fixtures that it starts from; None: there is no git repository yet.
    start: str | None = None

    @property
    def creates(self) -> bool:
        """Returns whether the command makes the git repository."""
        return self.start is None


MERCURIAL_VERBS = [
    MercurialVerb("hg-clone", "git clone -q -n hg::{case}/project {case}/clone"),
    MercurialVerb("hg-clone-bundle", "git clone -q -n hg::{case}/project.hg {case}/clone"),
    MercurialVerb("hg-fetch", "git -C {case}/clone fetch -q", start="old"),
    MercurialVerb("hg-fetch-known-refs", "git -C {case}/clone fetch -q", start="behind"),
    MercurialVerb("hg-fetch-merge", "git -C {case}/clone fetch -q", start="segments"),
    MercurialVerb("hg-unbundle", "hg --repository {case}/clone unbundle {case}/project.hg", start="old"),
    MercurialVerb("hg-tags", "hg --repository {case}/clone tags", start="complete"),
    MercurialVerb("hg-rollback", "hg --repository {case}/clone rollback", start="complete"),
    MercurialVerb("hg-convert", "hg convert {case}/project {case}/clone"),
]


@dataclasses.dataclass
class RepositoryState:
    """The refs of a git repository, and the commits of all changesets."""

    refs: dict[str, str]
    commits: dict[str, str]

    def public_refs(self) -> dict[str, str]:
        """Returns the refs that people see."""
        return {name: commit for name, commit in self.refs.items() if not name.startswith(OWN_REFS)}

    def remote_refs(self) -> dict[str, str]:
        """Returns the branches of the remote, but not its HEAD, which only a clone sets."""
        return {name: commit for name, commit in self.refs.items()
                if name.startswith("refs/remotes/") and not name.endswith("/HEAD")}

    @property
    def metadata(self) -> str | None:
        """Returns the commit of the metadata."""
        return self.refs.get(METADATA_REF)


class MercurialFixtures:
    """The repositories that points start from."""

    def __init__(self, lab: Lab):
        self.folder = lab.scratch / "mercurial"
        self.bin = self.folder / "bin"
        self.program = self.folder / "program" / HELPER
        self.larder_path = lab.program
        self.nodes: list[str] = []

    @staticmethod
    def missing() -> str | None:
        """Returns what this machine lacks."""
        return None if shutil.which("hg") else "there is no Mercurial"

    def make(self) -> None:
        """Makes all repositories, unless an earlier step of this run did."""
        if not self.folder.exists():
            self.install()
            self.make_project()
            self.make_other()
            self.make_clones()
        self.nodes = self.hg("log", "-T", "{node}\n").split()

    def install(self) -> None:
        """Puts the program, and the script that stands for it, into folders of their own."""
        for folder in (self.bin, self.program.parent):
            folder.mkdir(parents=True)
        self.program.symlink_to(self.larder_path)
        wrapper = self.bin / HELPER
        wrapper.write_text(WRAPPER.format(program=self.program))
        wrapper.chmod(0o755)

    def hg(self, *arguments: str) -> str:
        """Runs Mercurial on the project."""
        run = subprocess.run(["hg", "-R", str(self.folder / "project"), *arguments], env=HG_ENVIRONMENT, check=True,
                             stdin=subprocess.DEVNULL, stdout=subprocess.PIPE)
        return run.stdout.decode()

    def make_project(self) -> None:
        """Makes a repository with branches, merges, copies, tags, bookmarks, flags and a large file; and its bundle."""
        project = self.folder / "project"
        project.mkdir()
        subprocess.run(["hg", "init"], cwd=project, env=HG_ENVIRONMENT, check=True)
        self.hg("debugbuilddag", "-n", "-m", "-o", HISTORY)
        self.hg("update", "-q", "default")
        self.hg("copy", "-q", str(project / "mf"), str(project / "copy"))
        noise = random_bytes(LARGE_FILE_BYTES)
        (project / "large").write_bytes(noise)
        (project / "run").write_bytes(b"#!/bin/sh\n")
        (project / "run").chmod(0o755)
        self.hg("commit", "-q", "-A", "-m", "a large file", "-d", "1000000000 0")
        self.hg("tag", "-r", "5", "-d", "1000000100 0", "first")
        self.hg("tag", "-r", "tip", "-d", "1000000200 0", "second")
        self.hg("bookmark", "-r", "12", "marked")
        # Without a working copy, so that copies of the repository are small.
        self.hg("update", "-q", "null")
        self.hg("bundle", "-q", "--all", "-t", "zstd-v2", str(self.folder / "project.hg"))

    def make_other(self) -> None:
        """Makes a repository with another history, and with branches of the same names."""
        other = str(self.folder / "other")
        for words in (["init", other], ["-R", other, "debugbuilddag", "-n", "-o", OTHER_HISTORY]):
            subprocess.run(["hg", *words], env=HG_ENVIRONMENT, check=True, stdin=subprocess.DEVNULL)

    def make_clones(self) -> None:
        """Makes the git repositories: an old one, one with as many segments of metadata as there can be, a whole one."""
        for revision in SEGMENT_REVISIONS:
            self.hg("bundle", "-q", "-r", str(revision), "--base", "null", "-t", "none-v2", str(self.folder / f"{revision}.hg"))
        home = self.folder / "home"
        home.mkdir()
        for name, revisions in (("old", [FIRST_REVISION]), ("segments", SEGMENT_REVISIONS), ("complete", [FIRST_REVISION])):
            clone = self.folder / name
            self.run(home, ["git", "clone", "-q", "-n", f"hg::{self.folder}/{revisions[0]}.hg", str(clone)])
            for revision in revisions[1:]:
                bundle = str(self.folder / f"{revision}.hg")
                self.run(home, [str(self.larder_path), "hg", "--repository", str(clone), "unbundle", bundle])
            config = clone / ".git/config"
            config.write_text(config.read_text().replace(f"{self.folder}/{revisions[0]}.hg", f"{PLACEHOLDER}/project"))
        complete = self.folder / "complete"
        self.run(home, ["git", "-C", str(complete), "fetch", "-q", f"hg::{self.folder}/project",
                        "+refs/heads/*:refs/remotes/origin/*"])

        self.make_behind(complete)

    def make_behind(self, complete: pathlib.Path) -> None:
        """Makes a repository that has all refs, with old commits, which git could take for those of a failed fetch."""
        behind = self.folder / "behind"
        shutil.copytree(self.folder / "segments", behind)
        prefix = "refs/remotes/origin/"
        run = subprocess.run(["git", "-C", str(complete), "for-each-ref", "--format=%(refname)", prefix], check=True,
                             stdout=subprocess.PIPE)
        names = [name.removeprefix(prefix) for name in run.stdout.decode().split() if not name.endswith("/HEAD")]
        old = subprocess.run(["git", "-C", str(behind), "rev-parse", "refs/remotes/origin/HEAD"], check=True, stdout=subprocess.PIPE)
        commit = old.stdout.decode().strip()
        changes = "".join(f"update {start}{name} {commit}\n" for name in names for start in (prefix, f"{OWN_REFS}refs/heads/"))
        subprocess.run(["git", "-C", str(behind), "update-ref", "--stdin"], input=changes.encode(), check=True)

    def run(self, home: pathlib.Path, command: list[str]) -> None:
        """Runs a command that must succeed."""
        run = run_command(command, environment(self.bin, home))
        if run.code != 0:
            raise RuntimeError(f"{' '.join(command)}: exit code {run.code}: {run.text}")


def random_bytes(size: int) -> bytes:
    """Returns the same noise in each run."""
    import random
    return random.Random(size).randbytes(size)


def environment(bin_folder: pathlib.Path, home: pathlib.Path) -> dict[str, str]:
    """Returns the environment of git and larder."""
    (home / "tmp").mkdir(parents=True, exist_ok=True)
    return {"PATH": f"{bin_folder}:{os.environ.get('PATH', '/usr/bin:/bin')}", "HOME": str(home), "TMPDIR": str(home / "tmp"),
            "GIT_CONFIG_NOSYSTEM": "1", "GIT_TERMINAL_PROMPT": "0", "LC_ALL": "C.UTF-8", "TZ": "UTC", "HGRCPATH": "",
            "GIT_CONFIG_COUNT": "1", "GIT_CONFIG_KEY_0": "gc.auto", "GIT_CONFIG_VALUE_0": "0"}


def run_command(command: list[str], variables: dict[str, str], patience: float = PATIENCE_SECONDS) -> Run:
    """Runs a command in a process group of its own, which ends with it."""
    process = subprocess.Popen(command, env=variables, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                               stderr=subprocess.PIPE, start_new_session=True)
    try:
        out, err = process.communicate(timeout=patience)
        code = process.returncode
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        out, err = process.communicate()
        code = -PATIENCE_SECONDS
    return Run(code, out, err)


class MercurialCase:
    """One point: the folder with a repository of Mercurial and one of git, and commands on both."""

    def __init__(self, fixtures: MercurialFixtures, root: pathlib.Path, case: pathlib.Path):
        self.fixtures = fixtures
        self.case = case
        self.clone = case / "clone"
        self.home = root / "home"
        self.environment = environment(fixtures.bin, self.home)

    def fill(self, verb: MercurialVerb) -> None:
        """Makes the folder what a verb starts from."""
        shutil.rmtree(self.case, ignore_errors=True)
        self.case.mkdir(parents=True, exist_ok=True)
        shutil.copytree(self.fixtures.folder / "project", self.case / "project")
        shutil.copy(self.fixtures.folder / "project.hg", self.case)
        if verb.start:
            shutil.copytree(self.fixtures.folder / verb.start, self.clone)
            config = self.clone / ".git/config"
            config.write_text(config.read_text().replace(PLACEHOLDER, str(self.case)))

    def run(self, verb: MercurialVerb, fault: dict[str, str] | None = None) -> Run:
        """Runs a verb; the fault is in larder, and in no program that starts it or that it starts."""
        words = [word.format(case=self.case) for word in verb.command.split()]
        variables = {**self.environment, **(fault or {})}
        if words[0] == "git":
            variables["TORTURE_LIBRARY"] = variables.pop("LD_PRELOAD", "")
            return run_command(words, variables)
        return run_command([str(self.fixtures.larder_path), *words], variables)

    def git(self, *arguments: str) -> Run:
        """Runs git on the clone."""
        return run_command(["git", "-C", str(self.clone), *arguments], self.environment)

    def state(self) -> RepositoryState | None:
        """Reads the git repository; None if there is none."""
        # A folder without HEAD is the start of a repository, which the next run completes.
        if not any((self.clone / name).exists() for name in ("HEAD", ".git/HEAD")):
            return None
        run = self.git("for-each-ref", "--format=%(refname) %(objectname)")
        refs = dict(line.split() for line in run.out.decode().splitlines())
        run = run_command([str(self.fixtures.larder_path), "hg", "--repository", str(self.clone), "hg2git", *self.fixtures.nodes],
                          self.environment)
        commits = run.out.decode().split()
        if len(commits) != len(self.fixtures.nodes):
            commits = []
        return RepositoryState(refs, dict(zip(self.fixtures.nodes, commits)))

    def judge_soundness(self) -> list[str]:
        """Judges the objects: git finds none missing or damaged."""
        run = self.git("fsck", "--full", "--strict", "--no-dangling", "--no-progress")
        lines = [line for line in run.text.splitlines() if not line.startswith("notice: ")]
        return [f"git fsck: exit code {run.code}: {lines[:2]}"] if run.code or lines else []

    def judge_leftovers(self) -> list[str]:
        """Judges what is left when git has cleaned up: complete packs, and nothing in the folder for temporary files."""
        run = self.git("gc", "-q", "--prune=now")
        if run.code != 0:
            return [f"git gc: exit code {run.code}: {run.error}"]
        folder = pathlib.Path(self.git("rev-parse", "--path-format=absolute", "--git-path", "objects/pack").out.decode().strip())
        names = {path.name for path in folder.iterdir()}
        left = {name for name in names if not PACK_FILES.search(name)}
        left |= {name for name in names if name.endswith(".pack") and f"{name[:-5]}.idx" not in names}
        left |= {path.name for path in (self.clone / ".git").glob("fast_import_crash*")}
        left |= {path.name for path in (self.home / "tmp").iterdir()}
        left |= {path.name for path in self.case.iterdir() if path.name not in FOLDER_NAMES}
        return [f"left behind: {', '.join(sorted(left))}"] if left else []


def judge_message(run: Run, words: str, place: str) -> list[str]:
    """Judges the message of a command that failed: it names the cause and the place, in words for people."""
    failures = judge_words(run)
    if run.code == 0:
        return failures
    if not re.search(words, run.text, re.IGNORECASE):
        failures.append(f"the message does not name the cause ({words}): {run.text.strip()}")
    elif place not in run.text:
        failures.append(f"the message does not name the place: {run.text.strip()}")
    return failures


def judge_words(run: Run) -> list[str]:
    """Judges that a command ended in order and printed nothing that is for programmers."""
    crash = run.crash(expected_signal=signal.SIGKILL)
    if crash:
        return [crash]
    found = DEBUG_OUTPUT.search(run.text)
    return [f"the message has debug output: {run.text.strip()}"] if found else []


def judge_refs(before: RepositoryState | None, after: RepositoryState, now: RepositoryState | None, ended: bool,
               is_one_by_one: bool = False) -> list[str]:
    """Judges the refs after a fault: as before or as after a whole run, and as after if the command succeeded.

    `is_one_by_one`: git failed while it changed its refs, so that each of them is as before or as after.
    """
    if now is None:
        return ["there is no repository"] if ended or before else []
    failures = []
    old, new, found = before.public_refs() if before else {}, after.public_refs(), now.public_refs()
    is_allowed = found == new or not ended and found == old
    if is_one_by_one:
        is_allowed = all(found.get(name) in (old.get(name), new.get(name)) for name in found.keys() | old.keys() | new.keys())
    if not is_allowed:
        names = sorted(name for name in found.keys() | new.keys() if new.get(name) != found.get(name))
        failures.append(f"the refs are neither those before nor those after: {names[:3]}")
    if now.metadata not in [None if before is None else before.metadata, after.metadata]:
        failures.append("the metadata is neither that before nor that after")
    return failures
