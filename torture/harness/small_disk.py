"""File systems with an exact number of free bytes, in a mount namespace of the process.

Nothing of it is visible to other processes, and all of it ends with this one. The kernel gives a process that is
not root the same right within a user namespace, but no loop devices.
"""

import ctypes
import enum
import functools
import os
import pathlib
import shutil
import subprocess

CLONE_NEWNS, CLONE_NEWUSER = 0x00020000, 0x10000000
# Enough for every verb.
ROOM = 256 << 20
IMAGE_SIZE = 24 << 20


class FileSystem(enum.Enum):
    """The file systems that are filled up."""

    # Pages of 4 KiB, in memory.
    TMPFS = "tmpfs"
    # Blocks of 1 KiB, four of them in a page: a write through a map can fail within a page.
    EXT4 = "ext4-1k"


def missing(file_system: FileSystem) -> str | None:
    """Returns what this machine lacks to mount the file system, or None."""
    if file_system is FileSystem.EXT4 and (os.geteuid() or not shutil.which("mkfs.ext4")):
        return "loop devices need root, and mkfs.ext4"
    user = [] if os.geteuid() == 0 else ["--user", "--map-root-user"]
    try:
        trial = subprocess.run(["unshare", *user, "--mount", "mount", "-t", "tmpfs", "none", "/mnt"], capture_output=True)
    except OSError as error:
        return f"cannot mount: {error}"
    return None if trial.returncode == 0 else f"cannot mount: {trial.stderr.decode().strip()}"


@functools.cache
def enter_namespace() -> None:
    """Gives this process, which has one thread, its own mounts, once."""
    libc = ctypes.CDLL(None, use_errno=True)
    user, group, is_root = os.geteuid(), os.getegid(), os.geteuid() == 0
    if libc.unshare(CLONE_NEWNS if is_root else CLONE_NEWNS | CLONE_NEWUSER):
        raise OSError(ctypes.get_errno(), "unshare")
    if not is_root:
        pathlib.Path("/proc/self/setgroups").write_text("deny")
        pathlib.Path("/proc/self/uid_map").write_text(f"0 {user} 1")
        pathlib.Path("/proc/self/gid_map").write_text(f"0 {group} 1")
    mount("--make-rprivate", "/")


def mount(*arguments: str) -> None:
    """Runs mount, which must succeed."""
    subprocess.run(["mount", *arguments], check=True, capture_output=True)


class SmallDisk:
    """A mounted file system whose free space can be set; a context, at whose end it is removed."""

    def __init__(self, file_system: FileSystem, folder: pathlib.Path, image: pathlib.Path):
        self.file_system = file_system
        self.folder = folder
        self.image = image
        self.filler = folder / "filler"
        enter_namespace()
        folder.mkdir(parents=True, exist_ok=True)
        if file_system is FileSystem.TMPFS:
            mount("-t", "tmpfs", "-o", f"size={ROOM}", "none", str(folder))
        else:
            with open(image, "wb") as file:
                file.truncate(IMAGE_SIZE)
            subprocess.run(["mkfs.ext4", "-q", "-b", "1024", "-m", "0", str(image)], check=True, capture_output=True)
            mount("-o", "loop", str(image), str(folder))

    def __enter__(self) -> "SmallDisk":
        return self

    def __exit__(self, *_: object) -> None:
        self.unmount()

    def leave_free(self, size: int) -> None:
        """Leaves so many bytes free."""
        status = os.statvfs(self.folder)
        if self.file_system is FileSystem.TMPFS:
            used = (status.f_blocks - status.f_bfree) * status.f_frsize
            mount("-o", f"remount,size={used + size}", "none", str(self.folder))
        else:
            with open(self.filler, "wb") as file:
                os.posix_fallocate(file.fileno(), 0, max(1, status.f_bavail * status.f_frsize - size))

    def make_room(self) -> None:
        """Makes the disk large again."""
        if self.file_system is FileSystem.TMPFS:
            mount("-o", f"remount,size={ROOM}", "none", str(self.folder))
        else:
            self.filler.unlink(missing_ok=True)

    def unmount(self) -> None:
        """Removes the file system."""
        subprocess.run(["umount", "-l", str(self.folder)], check=True, capture_output=True)
        self.image.unlink(missing_ok=True)
