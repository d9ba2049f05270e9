"""The disk as it may be after a power cut, from a record of all changes (preload/recorder.c).

The model is strict. Bytes are durable once their file was synced, and a name (created, renamed, removed) once its
folder was synced. Of everything else, any part may be on the disk: nothing, all, the changes up to some moment with
the last write torn, or any subset of them with writes torn at sectors.
"""

import dataclasses
import enum
import pathlib
import random
import struct

HEADER = struct.Struct("<IcxxxQQQII")
MAGIC = 0x52524F54
SECTOR = 512


@dataclasses.dataclass(frozen=True)
class Change:
    """An entry of the record; `kind` is the letter of recorder.c, or A for an acknowledgement of the driver."""

    kind: str
    inode: int
    offset: int
    path: str
    second_path: str
    content: bytes


def read_record(path: pathlib.Path) -> list[Change]:
    """Reads a record."""
    data, at, changes = path.read_bytes(), 0, []
    while at < len(data):
        magic, kind, inode, offset, size, path_size, second_size = HEADER.unpack_from(data, at)
        if magic != MAGIC:
            raise ValueError(f"the record is damaged at byte {at}")
        at += HEADER.size
        first = data[at:at + path_size].decode()
        second = data[at + path_size:at + path_size + second_size].decode()
        at += path_size + second_size
        content = data[at:at + size] if kind == b"W" else b""
        at += len(content)
        changes.append(Change(kind.decode(), inode, offset, first, second, content))
    return changes


def append_acknowledgement(path: pathlib.Path, text: str) -> None:
    """Appends a mark of the driver to a record."""
    with open(path, "ab") as file:
        file.write(HEADER.pack(MAGIC, b"A", 0, 0, 0, len(text.encode()), 0) + text.encode())


class Survival(enum.Enum):
    """Which changes that were not synced are on the disk."""

    NOTHING = "nothing"
    ALL = "all"
    PREFIX = "prefix"
    SUBSET = "subset"


@dataclasses.dataclass(frozen=True)
class Write:
    """A change of a file's bytes; `content` None: the file is cut or extended to `offset`."""

    offset: int
    content: bytes | None


def apply(content: bytearray, write: Write) -> None:
    """Applies a write."""
    end = write.offset if write.content is None else write.offset + len(write.content)
    if write.content is None:
        del content[end:]
    if len(content) < end:
        content.extend(bytes(end - len(content)))
    if write.content is not None:
        content[write.offset:end] = write.content


class File:
    """A file: its durable bytes, and the writes since its last sync."""

    def __init__(self, content: bytes = b""):
        self.durable = bytearray(content)
        self.pending: list[Write] = []

    def sync(self) -> None:
        """Makes all writes durable."""
        for write in self.pending:
            apply(self.durable, write)
        self.pending = []

    def after_cut(self, survival: Survival, generator: random.Random) -> bytes:
        """Returns the bytes that the file may have."""
        content = bytearray(self.durable)
        for write in surviving_writes(self.pending, survival, generator):
            apply(content, write)
        return bytes(content)


def surviving_writes(pending: list[Write], survival: Survival, generator: random.Random) -> list[Write]:
    """Chooses the writes that reached the disk."""
    if survival is Survival.NOTHING:
        return []
    if survival is Survival.ALL:
        return pending
    if survival is Survival.PREFIX:
        number = generator.randint(0, len(pending))
        torn = pending[number:number + 1]
        torn = [Write(write.offset, write.content[:generator.randint(0, len(write.content))])
                for write in torn if write.content is not None]
        return pending[:number] + torn
    chance = generator.choice((0.1, 0.5, 0.9))
    survivors: list[Write] = []
    for write in pending:
        if write.content is not None and generator.random() < 0.15:
            survivors += [sector for sector in sectors(write) if generator.random() < 0.5]
        elif generator.random() < chance:
            survivors.append(write)
    return survivors


def sectors(write: Write) -> list[Write]:
    """Divides a write at the boundaries of sectors."""
    parts, at = [], 0
    while at < len(write.content):
        end = min(len(write.content), at + SECTOR - (write.offset + at) % SECTOR)
        parts.append(Write(write.offset + at, write.content[at:end]))
        at = end
    return parts


# A name on the disk: a file, or None for a folder.
Node = File | None


@dataclasses.dataclass(frozen=True)
class NameChange:
    """A change of names: these are removed, this one is set."""

    removed: tuple[str, ...]
    path: str | None = None
    node: Node = None

    def folders(self) -> set[str]:
        """Returns the folders whose sync makes the change durable."""
        paths = self.removed + ((self.path,) if self.path else ())
        return {path.rpartition("/")[0] for path in paths}

    def apply(self, names: dict[str, Node]) -> None:
        """Applies the change."""
        for path in self.removed:
            names.pop(path, None)
        if self.path:
            names[self.path] = self.node


class Disk:
    """All files below a folder, while a record is replayed."""

    def __init__(self, root: str):
        self.names: dict[str, Node] = {root: None}
        self.durable_names: dict[str, Node] = {root: None}
        self.pending_names: list[NameChange] = []
        self.inodes: dict[int, File] = {}

    def replay(self, change: Change) -> None:
        """Applies an entry of the record."""
        if change.kind == "O":
            self.inodes[change.inode] = File()
            self.rename(NameChange((), change.path, self.inodes[change.inode]))
        elif change.kind == "M":
            self.rename(NameChange((), change.path, None))
        elif change.kind == "W":
            self.inodes[change.inode].pending.append(Write(change.offset, change.content))
        elif change.kind == "T":
            self.inodes[change.inode].pending.append(Write(change.offset, None))
        elif change.kind == "S":
            self.inodes[change.inode].sync()
        elif change.kind == "F":
            self.sync_folder(change.path)
        elif change.kind == "R":
            self.rename(NameChange((change.path,), change.second_path, self.names[change.path]))
        elif change.kind == "K":
            self.rename(NameChange((), change.second_path, self.names[change.path]))
        elif change.kind == "U":
            self.rename(NameChange((change.path,)))

    def rename(self, change: NameChange) -> None:
        """Changes names for all processes; the disk follows when the folder is synced."""
        change.apply(self.names)
        self.pending_names.append(change)

    def sync_folder(self, folder: str) -> None:
        """Makes the changes of names in a folder durable."""
        rest = []
        for change in self.pending_names:
            if folder in change.folders():
                change.apply(self.durable_names)
            else:
                rest.append(change)
        self.pending_names = rest

    def current(self) -> dict[str, bytes | None]:
        """Returns the files as processes see them."""
        generator = random.Random(0)
        return {path: None if node is None else node.after_cut(Survival.ALL, generator)
                for path, node in self.names.items()}

    def after_cut(self, survival: Survival, generator: random.Random) -> dict[str, bytes | None]:
        """Returns the files that the disk may have; None for folders."""
        number = {Survival.NOTHING: 0, Survival.ALL: len(self.pending_names)}.get(survival)
        if number is None:
            number = generator.randint(0, len(self.pending_names))
        names = dict(self.durable_names)
        for change in self.pending_names[:number]:
            change.apply(names)
        contents: dict[int, bytes] = {}
        for node in names.values():
            if node is not None and id(node) not in contents:
                contents[id(node)] = node.after_cut(survival, generator)
        return {path: None if node is None else contents[id(node)] for path, node in names.items()}
