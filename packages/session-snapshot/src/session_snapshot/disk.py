"""What the system says when a file cannot be written, told with the place that is full or closed and what mends it."""

import errno
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from session_snapshot.errors import Refused

FULL = (errno.ENOSPC, errno.EDQUOT) if hasattr(errno, "EDQUOT") else (errno.ENOSPC,)
CLOSED = (errno.EACCES, errno.EPERM, errno.EROFS)


@contextmanager
def writing(place: Path, then: str, changed: str = "nothing was changed") -> Iterator[None]:
    """Write below ``place`` in the block; ``then`` is the command to give once what is wrong is mended.

    Raises:
        Refused: it cannot be; the file system that is full, or the folder that is closed, is named.
    """
    try:
        yield
    except OSError as error:
        raise explained(error, place, then, changed) from error


def explained(error: OSError, place: Path, then: str, changed: str = "nothing was changed") -> Refused:
    """An error of the system as a refusal."""
    where = Path(os.fsdecode(error.filename)) if isinstance(error.filename, (str, bytes)) else place
    what = f"{where} cannot be written: {error.strerror or error}"
    if error.errno in FULL:
        mount = mount_of(where)
        return Refused(f"{what}; {mount} is full ({free(mount)}); {changed}", f"make room on {mount}, then {then}")
    if error.errno in CLOSED:
        return Refused(f"{what}; {changed}", f"make {folder_of(where)} writable, then {then}")
    return Refused(f"{what}; {changed}", f"mend that, then {then}")


def folder_of(path: Path) -> Path:
    """The nearest folder that is there, of a path or above it."""
    return next(folder for folder in (path, *path.resolve().parents) if folder.is_dir())


def mount_of(path: Path) -> Path:
    """Where the file system begins that holds a path."""
    return next(folder for folder in (folder_of(path).resolve(), *path.resolve().parents) if is_mount(folder))


def is_mount(folder: Path) -> bool:
    """Whether a file system begins here; the last folder of all is where one does."""
    return folder.is_mount() or folder == folder.parent


def free(mount: Path) -> str:
    """How much room is left on a file system."""
    usage = shutil.disk_usage(mount)
    return f"{usage.free // 1024:,} of {usage.total // 1024:,} KiB free"
