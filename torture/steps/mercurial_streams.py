"""Ends or damages what a server of Mercurial or a bundle sends, at any byte.

Apart from the faults of the system: here the bytes come from somebody else, and no error of the system says that they
are wrong.
"""

import dataclasses
import os

from harness.mercurial import MercurialCase, MercurialVerb, RepositoryState, judge_refs, judge_words, run_command
from harness.mercurial_server import Damage, MercurialServer, Recording, ReplayServer
from harness.mercurial_step import MercurialStep
from harness.program import Run
from harness.runner import Lab, Outcome
from harness.sandbox import Sandbox

# Stands for ssh: runs the command here, and damages its output. Arguments: the host, the command.
SSH_SCRIPT = r'''#!/usr/bin/env python3
import os, subprocess, sys
kind, offset, bit = (os.environ.get("TORTURE_STREAM") or "none:0:0").split(":")
offset, bit, position = int(offset), int(bit), 0
server = subprocess.Popen(["sh", "-c", " ".join(sys.argv[2:])], stdout=subprocess.PIPE)
while part := os.read(server.stdout.fileno(), 65536):
    at = offset - position
    if kind == "count":
        with open(os.environ["TORTURE_COUNT"], "w") as file:
            file.write(str(position + len(part)))
    elif 0 <= at < len(part):
        if kind == "cut":
            os.write(1, part[:at])
            server.kill()
            sys.exit(255)
        if kind == "flip":
            part = part[:at] + bytes([part[at] ^ 1 << bit]) + part[at + 1:]
    position += len(part)
    try:
        while part:
            part = part[os.write(1, part):]
    except BrokenPipeError:
        server.kill()
        sys.exit(255)
sys.exit(server.wait())
'''
BUNDLE_TYPES = ("none-v2", "zstd-v2", "gzip-v2", "bzip2-v2", "none-v1", "gzip-v1", "bzip2-v1")
SERVERS = {"http": [], "http-none": ["--config", "server.compressionengines=none"]}
STARTS = {"clone": None, "fetch": "behind"}
# The bytes at the beginning and the end of a stream of which more points are tried: the middle is one large file.
EDGE_BYTES = 30_000
OFFSETS_PER_STREAM = 40
# No stream takes longer.
PATIENCE_SECONDS = 60


@dataclasses.dataclass(frozen=True)
class DamagedStream:
    """A stream of a source, and its size; over HTTP, the request whose answer it is."""

    source: str
    start: str
    size: int
    request: bytes | None = None

    @property
    def has_changes(self) -> bool:
        """Returns whether the stream has nothing but changes, each of which has a hash."""
        return self.source in BUNDLE_TYPES or b"cmd=getbundle" in (self.request or b"")


class MercurialStreamStep(MercurialStep):
    """servers of Mercurial that end in mid-stream, over HTTP and ssh, truncated and bit-flipped bundles"""

    name = "hg-streams"
    quick_points = 24
    full_points = 1200

    def __init__(self, lab: Lab):
        super().__init__(lab)
        self.recordings: dict[tuple[str, str], Recording] = {}
        self.streams: list[DamagedStream] = []
        self.before: dict[str, RepositoryState | None] = {}
        self.after: dict[str, RepositoryState] = {}
        # After bundles, which have no bookmarks.
        self.after_bundles: dict[tuple[str, str], RepositoryState] = {}

    def points(self) -> list[str]:
        case = self.undisturbed_case()
        ssh = self.fixtures.bin / "ssh-stand-in"
        ssh.write_text(SSH_SCRIPT)
        ssh.chmod(0o755)
        for start in STARTS:
            self.record_state(case, start)
            for name, options in SERVERS.items():
                self.record_server(case, name, start, options)
            self.record_ssh(case, start)
            for name in BUNDLE_TYPES:
                self.record_bundle(case, name, start)
        return [point for number, stream in enumerate(self.streams) for point in self.variants(number, stream)]

    def record_state(self, case: MercurialCase, start: str) -> None:
        """Reads the states before and after an undisturbed run."""
        case.fill(self.verb(start))
        self.before[start] = case.state()
        self.after[start] = self.state_after(case, start, f"hg::{case.case}/project")

    def state_after(self, case: MercurialCase, start: str, url: str) -> RepositoryState:
        """Returns the state after an undisturbed run."""
        run = self.run(case, start, url)
        state = case.state()
        if run.code != 0 or state is None:
            raise RuntimeError(f"{start} from {url}: exit code {run.code}: {run.text}")
        return state

    def record_server(self, case: MercurialCase, name: str, start: str, options: list[str]) -> None:
        """Records the answers of a server."""
        recording = self.recordings[name, start] = Recording()
        case.fill(self.verb(start))
        with MercurialServer(self.fixtures.folder / "project", case.environment, *options) as server, \
                ReplayServer(recording, server.port) as replay:
            run = self.run(case, start, f"hg::http://127.0.0.1:{replay.port}/")
        if run.code != 0:
            raise RuntimeError(f"{start} from a server: exit code {run.code}: {run.text}")
        self.streams += [DamagedStream(name, start, len(recording.answers[key]), key) for key in recording.keys()]

    def record_ssh(self, case: MercurialCase, start: str) -> None:
        """Counts the bytes of a server behind ssh."""
        case.fill(self.verb(start))
        count = case.home / "stream-bytes"
        run = self.run(case, start, f"hg::ssh://example.org/{case.case}/project",
                       {"TORTURE_STREAM": "count:0:0", "TORTURE_COUNT": str(count)})
        if run.code != 0:
            raise RuntimeError(f"{start} from a server behind ssh: exit code {run.code}: {run.text}")
        self.streams.append(DamagedStream("ssh", start, int(count.read_text())))

    def record_bundle(self, case: MercurialCase, name: str, start: str) -> None:
        """Makes a bundle, and reads the state after it."""
        path = self.fixtures.folder / f"{name}.hg"
        if not path.exists():
            self.fixtures.hg("bundle", "-q", "--all", "-t", name, str(path))
        self.streams.append(DamagedStream(name, start, path.stat().st_size))
        case.fill(self.verb(start))
        self.after_bundles[name, start] = self.state_after(case, start, f"hg::{path}")

    def variants(self, number: int, stream: DamagedStream) -> list[str]:
        """Lists the points of a stream."""
        generator = self.lab.random("offsets", stream.source, stream.start, stream.request)
        edge = min(EDGE_BYTES, stream.size)
        ranges = [(0, edge), (stream.size - edge, stream.size), (0, stream.size)]
        offsets = {generator.randrange(*ranges[turn % 3]) for turn in range(min(stream.size, OFFSETS_PER_STREAM))}
        return [f"{stream.source}:{stream.start}:{number}:{kind}:{offset}"
                for offset in sorted(offsets) for kind in ("cut", "flip")]

    def verb(self, start: str) -> MercurialVerb:
        """Returns a verb with the start."""
        return MercurialVerb(start, "", STARTS[start])

    def run(self, case: MercurialCase, start: str, url: str, variables: dict[str, str] | None = None) -> Run:
        """Clones or fetches from a URL."""
        target = ["clone", "-q", "-n", url, str(case.clone)] if start == "clone" else \
            ["-C", str(case.clone), "fetch", "-q", url, "+refs/heads/*:refs/remotes/origin/*"]
        variables = {**case.environment, "TORTURE_LIBRARY": "", "GIT_SSH_COMMAND": str(self.fixtures.bin / "ssh-stand-in"),
                     **(variables or {})}
        return run_command(["git", *target], variables, PATIENCE_SECONDS)

    def attempt(self, sandbox: Sandbox, point: str) -> Outcome:
        source, start, number, kind, offset = point.split(":")
        stream = self.streams[int(number)]
        damage = Damage(kind, int(offset), self.lab.random(point).randrange(8))
        case = self.case(sandbox)
        case.fill(self.verb(start))
        run = self.run_damaged(case, stream, damage)
        failures = judge_words(run)
        if run.code != 0 and not run.text.strip():
            failures.append(f"exit code {run.code} without a message")
        now = case.state()
        if now is not None:
            failures += case.judge_soundness()
        after = self.after_bundles.get((stream.source, start), self.after[start])
        # A bit of a ref's name or of the list of heads has no hash; a command that ends early has said so.
        if run.code == 0 and kind == "flip" and not stream.has_changes:
            failures += self.judge_commits(start, now)
        else:
            failures += judge_refs(self.before[start], after, now, run.code == 0)
        if start == "fetch" and not failures:
            again = self.run(case, start, f"hg::{case.case}/project")
            state = case.state()
            if again.code != 0 or state is None or state.commits != self.after[start].commits:
                failures.append(f"the next run: exit code {again.code}, or other commits: {again.text.strip()}")
        return Outcome(failures, {"commands that succeeded": int(run.code == 0)})

    def run_damaged(self, case: MercurialCase, stream: DamagedStream, damage: Damage) -> Run:
        """Clones or fetches with a damaged stream."""
        if stream.source in SERVERS:
            recording = self.recordings[stream.source, stream.start]
            with ReplayServer(recording, None, stream.request, damage) as server:
                return self.run(case, stream.start, f"hg::http://127.0.0.1:{server.port}/")
        if stream.source == "ssh":
            variables = {"TORTURE_STREAM": f"{damage.kind}:{damage.offset}:{damage.bit}"}
            return self.run(case, stream.start, f"hg::ssh://example.org/{case.case}/project", variables)
        damaged = case.case / "damaged.hg"
        damaged.write_bytes(damage.apply((self.fixtures.folder / f"{stream.source}.hg").read_bytes()))
        run = self.run(case, stream.start, f"hg::{damaged}")
        os.unlink(damaged)
        return run

    def judge_commits(self, start: str, now: RepositoryState | None) -> list[str]:
        """Judges a success with damaged names: all commits are right, though some may be missing."""
        if now is None:
            return ["there is no repository"]
        expected = self.after[start].commits
        wrong = [node for node, commit in now.commits.items() if commit not in (expected[node], "0" * 40)]
        wrong += [name for name, commit in now.remote_refs().items() if commit not in expected.values()]
        return [f"wrong commits: {wrong[:3]}"] if wrong else []
