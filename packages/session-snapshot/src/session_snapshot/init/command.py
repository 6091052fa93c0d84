"""The command line of an agent as a person types it: split, found, and written so that it holds on other machines."""

import difflib
import os
import shlex
import shutil
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from msgspec import Struct

from session_snapshot.errors import Refused
from session_snapshot.told import BIN

AGENT = "{{agent}}"


class Command(Struct, frozen=True):
    """A command's ``parts`` as ``agent.toml`` has them, how the agent gets onto a machine (``[install] kind``), and
    which parts were made relative to the suite's folder."""

    parts: tuple[str, ...]
    install: str
    relative: tuple[str, ...] = ()


def read_command(text: str, suite: Path) -> Command:
    """A command line for the suite that will lie in ``suite``; files are looked for here, programs on the PATH.

    Raises:
        Refused: it cannot be split, or its program is nowhere.
    """
    parts = split_command(text, windows=os.name == "nt")
    if not parts:
        raise Refused("the command is empty", 'give the program and its arguments, e.g. --command "my-agent --acp"')
    kept = tuple(portable(part, suite, is_program=at == 0) for at, part in enumerate(parts))
    kind = install_kind(kept, suite)
    if is_path(parts[0]):
        refuse_no_file(parts[0])
    else:
        refuse_not_found(parts[0], folders_of(kind, suite))
    return Command(kept, kind, tuple(part for part in kept if part.startswith(f"{AGENT}/")))


# ── splitting ───────────────────────────────────────────────────────────────────────────────────────────────────────


def split_command(text: str, windows: bool) -> list[str]:
    """The parts of a command line, by the rules of the system's own shell.

    Raises:
        Refused: a quote is not closed.
    """
    try:
        return list(windows_parts(text)) if windows else shlex.split(text)
    except ValueError as error:
        raise Refused(f"the command cannot be split: {error}", "close the quote, or leave it out") from None


def windows_parts(text: str) -> Iterator[str]:
    """The parts as a Windows program gets them: a backslash is a letter, but before a double quote.

    The rules of the C runtime: of backslashes before a quote two stand for one, and an odd last one makes the quote a
    letter; two quotes inside quotes are one. Single quotes are letters.

    Raises:
        ValueError: a quote is not closed.
    """
    part: list[str] = []
    begun = quoted = False
    at = 0
    while at < len(text):
        slashes = len(text[at:]) - len(text[at:].lstrip("\\"))
        at += slashes
        letter = text[at : at + 1]
        part.append("\\" * (slashes // 2 if letter == '"' else slashes))
        begun = begun or slashes > 0
        if letter == '"' and not slashes % 2 and quoted and text[at + 1 : at + 2] == '"':
            part.append('"')
            at += 1
        elif letter == '"' and not slashes % 2:
            begun, quoted = True, not quoted
        elif letter.isspace() and not quoted:
            if begun:
                yield "".join(part)
            part, begun = [], False
        elif letter:
            part.append(letter)
            begun = True
        at += 1
    if quoted:
        raise ValueError("No closing quotation")
    if begun:
        yield "".join(part)


# ── finding ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def refuse_no_file(program: str) -> None:
    """Refuse a program named by its place where no program is.

    Raises:
        Refused: with where was looked for it.
    """
    file = Path(program).expanduser()
    if not file.is_file():
        what = "is a folder" if file.is_dir() else "is not there"
        raise Refused(f"the program {program!r} {what} (looked for in {Path.cwd()})", "name a file that is")
    if not os.access(file, os.X_OK):
        mend = f'chmod +x it, or name its interpreter: --command "python {program}"'
        raise Refused(f"the file {program!r} is not executable", mend)


def refuse_not_found(program: str, folders: Sequence[str]) -> None:
    """Refuse a program that is nowhere on the PATH.

    Raises:
        Refused: with where was looked for it, and the nearest ones there are.
    """
    if shutil.which(program, path=os.pathsep.join(folders)) is None:
        raise Refused(
            f"the program {program!r} was not found in the {len(folders)} folders of the PATH: {abridged(folders)}",
            nearest_program(program, folders, Path(program).is_file()),
        )


def is_path(program: str) -> bool:
    """Whether a program is named by its place, and not looked for on the PATH."""
    return any(separator in program for separator in (os.sep, os.altsep) if separator)


def folders_of(kind: str, suite: Path) -> list[str]:
    """Where the agent's program will be looked for: its own environment or the suite's folder, then the PATH."""
    root = suite.resolve()
    environments = root.parent.parent / ".agents"
    own = {"uv": environments / root.name / BIN, "workspace": Path(sys.prefix) / BIN}.get(kind, root)
    return [str(own), *filter(None, os.environ.get("PATH", os.defpath).split(os.pathsep))]


def nearest_program(program: str, folders: Sequence[str], is_here: bool) -> str:
    """What to write instead of a program that is not there."""
    if is_here:
        return f'a file of this folder is named by its place: --command "./{program} ..."'
    known = {Path(name).stem if os.name == "nt" else name for folder in folders for name in names_in(folder)}
    close = difflib.get_close_matches(program, sorted(known), 3, 0.7)
    return f"write {' or '.join(close)}" if close else "install it, or name its file, e.g. ./my-agent"


def names_in(folder: str) -> list[str]:
    """The names in a folder of the PATH; such a folder need not be there."""
    try:
        return os.listdir(folder)  # noqa: PTH208 - thousands of names, and nothing else of the files
    except OSError:
        return []


def abridged(folders: Sequence[str], most: int = 6) -> str:
    """The first folders of a list."""
    return os.pathsep.join(folders[:most]) + (f"{os.pathsep}..." if len(folders) > most else "")


# ── what holds on other machines ────────────────────────────────────────────────────────────────────────────────────


def portable(part: str, suite: Path, is_program: bool) -> str:
    """A part that names a file of this folder, relative to the suite: the agent runs elsewhere. Any other as it is."""
    file = Path(part).expanduser()
    names_file = file.is_file() if is_path(part) or not is_program else False
    if not names_file or not file.resolve().is_relative_to(Path.cwd().resolve()):
        return str(file) if part.startswith("~") else part
    # The path itself, and not what it may link to: a script of an environment knows by its own name where it is.
    return f"{AGENT}/{Path(os.path.relpath(Path.cwd().resolve() / file, suite.resolve())).as_posix()}"


def install_kind(parts: Sequence[str], suite: Path) -> str:
    """The ``[install] kind`` that makes a command's program be found."""
    if (suite / "uv.lock").is_file():
        return "uv"
    if any(part.startswith(AGENT) for part in parts):
        return "none"
    return "workspace" if shutil.which(parts[0], path=str(Path(sys.prefix) / BIN)) is not None else "none"
