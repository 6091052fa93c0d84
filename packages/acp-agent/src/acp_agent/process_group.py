"""A command and all it starts, ended as one: the only module that knows how operating systems differ in this."""

import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping
from typing import Any


def group_options() -> Mapping[str, Any]:
    """Return the options of ``subprocess`` that put a new process at the head of its own group."""
    if sys.platform == "win32":
        options = {"creationflags": subprocess.CREATE_NEW_PROCESS_GROUP | subprocess.CREATE_NO_WINDOW}
    else:
        options = {"start_new_session": True}
    return options


def kill_group(pid: int) -> None:
    """End the group headed by ``pid`` at once. It is no error if nothing of it lives any more.

    On Windows the tree below ``pid`` is found by its parents, so what outlives ``pid`` itself is out of reach.
    """
    if sys.platform == "win32":
        subprocess.run(["taskkill", "/F", "/T", "/PID", str(pid)], capture_output=True, check=False)
    else:
        with contextlib.suppress(ProcessLookupError, PermissionError):  # macOS says "permission" of a group of zombies
            os.killpg(pid, signal.SIGKILL)


def shell_command(command: str, which: Callable[[str], str | None]) -> list[str]:
    """Return the words that run ``command`` in a fresh shell which reads no start-up file.

    ``which`` finds a program (``shutil.which``). Windows has ``cmd`` where there is no bash.
    """
    bash = which("bash")
    if sys.platform == "win32" and (bash is None or "system32" in bash.lower()):  # the latter is WSL's, another system
        return ["cmd", "/d", "/c", command]
    return [bash or "bash", "--noprofile", "--norc", "-c", command]
