"""The file by which a hang tells the world that it has fallen silent."""

from os import PathLike
from pathlib import Path

from llm_dialects import Hang, ProviderError

from llm_mock_server.answer import Unanswerable

Root = str | PathLike[str]
"""A folder that ready files are named from."""


def refuse_unwritable(hang: Hang, root: Root, where: str) -> None:
    """Refuse a ready file that cannot be made, as long as that can be said to the client; ``where`` is the entry.

    Raises:
        Unanswerable: its folder is not there, or what it names is one.
    """
    if not isinstance(hang.ready_file, str):
        return
    path = Path(root, hang.ready_file)
    fault = f"the folder {str(path.parent)!r} is not there" if not path.parent.is_dir() else ""
    fault = f"{str(path)!r} is a folder" if path.is_dir() else fault
    if fault:
        message = f"{where}.readyFile: {hang.ready_file!r} cannot be written: {fault}"
        mend = "make the folder before the call, or name a file in one that is there"
        raise Unanswerable(ProviderError("MOCK_READY_FILE", f"{message}\nmend: {mend}", 500))


def write_ready(hang: Hang, root: Root) -> None:
    """Make the ready file of ``hang``, if it has one; what it holds is left.

    Raises:
        OSError: it cannot be made.
    """
    if isinstance(hang.ready_file, str):
        Path(root, hang.ready_file).touch()
