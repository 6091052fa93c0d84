"""The file tools. Files are UTF-8 text; line endings are kept as they are."""

from pathlib import Path

from msgspec import Struct

from acp_agent.toolbox import FileChange, ToolContext, ToolError, ToolOutcome, inside


class ReadArguments(Struct, frozen=True, forbid_unknown_fields=True):
    """``offset`` is the first line, from 1; ``limit`` the number of lines."""

    path: str
    offset: int = 1
    limit: int = 2000


class WriteArguments(Struct, frozen=True, forbid_unknown_fields=True):
    """The whole new content."""

    path: str
    content: str


class EditArguments(Struct, frozen=True, forbid_unknown_fields=True):
    """``old_text`` must stand exactly once in the file."""

    path: str
    old_text: str
    new_text: str


async def read_file(context: ToolContext, arguments: ReadArguments) -> ToolOutcome:
    """Return some lines of a file as they stand; say so where there are more."""
    if arguments.offset < 1 or arguments.limit < 1:
        raise ToolError("INVALID_ARGUMENTS", "offset and limit count from 1")
    text = read_text(inside(context, arguments.path, reading=True), arguments.path)
    return ToolOutcome(window(text.splitlines(keepends=True), arguments, context.config.output_limit_bytes))


async def write_file(context: ToolContext, arguments: WriteArguments) -> ToolOutcome:
    """Create or replace a file, with the folders above it."""
    target = inside(context, arguments.path)
    old = text_if_any(target)
    data = write_text(target, arguments.path, arguments.content)
    return ToolOutcome(
        f"wrote {data} bytes to {arguments.path}", change=FileChange(str(target), old, arguments.content)
    )


async def edit_file(context: ToolContext, arguments: EditArguments) -> ToolOutcome:
    """Replace the one place where the old text stands."""
    target = inside(context, arguments.path)
    old = read_text(target, arguments.path)
    found = old.count(arguments.old_text) if arguments.old_text else 0
    if found == 0:
        raise ToolError("NO_MATCH", f"old_text does not stand in {arguments.path}; read the file and copy it exactly")
    if found > 1:
        raise ToolError("NOT_UNIQUE", f"old_text stands {found} times in {arguments.path}; give more context")
    new = old.replace(arguments.old_text, arguments.new_text)
    write_text(target, arguments.path, new)
    return ToolOutcome(f"edited {arguments.path}", change=FileChange(str(target), old, new))


# ── Helpers ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def read_text(target: Path, name: str) -> str:
    """Return a file's text; every way this fails is a tool error the model can act on."""
    try:
        return target.read_bytes().decode("utf-8")
    except FileNotFoundError:
        raise ToolError("NOT_FOUND", f"no such file: {name}") from None
    except UnicodeDecodeError:
        raise ToolError("NOT_TEXT", f"{name} is not UTF-8 text") from None
    except OSError as error:
        if target.is_dir():
            raise ToolError("IS_DIRECTORY", f"{name} is a directory") from None
        raise ToolError("IO_ERROR", f"cannot read {name}: {error.strerror}") from None


def text_if_any(target: Path) -> str | None:
    """Return a file's text, or ``None`` where there is no file or no text in it."""
    try:
        return target.read_bytes().decode("utf-8")
    except (OSError, UnicodeDecodeError):
        return None


def write_text(target: Path, name: str, text: str) -> int:
    """Write a file and return its size in bytes."""
    data = text.encode("utf-8", "surrogatepass")
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        return target.write_bytes(data)
    except OSError as error:
        raise ToolError("IO_ERROR", f"cannot write {name}: {error.strerror}") from None


def window(lines: list[str], arguments: ReadArguments, limit: int) -> str:
    """Return the lines asked for, as many as ``limit`` bytes hold, and a word on what is left out."""
    if not lines:
        return "[empty file]"
    start = arguments.offset - 1
    asked = lines[start : start + arguments.limit]
    if not asked:
        return f"[the file has {len(lines)} lines]"
    shown = asked[: fitting(asked, limit)]
    if not shown:
        return f"{cut(asked[0], limit)}\n[the rest of line {start + 1} is left out]"
    end = start + len(shown)
    more = f"\n[lines {start + 1} to {end} of {len(lines)}; read on with offset {end + 1}]"
    return "".join(shown) + (more if end < len(lines) else "")


def fitting(lines: list[str], limit: int) -> int:
    """Return how many leading lines ``limit`` bytes hold."""
    size = 0
    for count, line in enumerate(lines):
        size += len(line.encode())
        if size > limit:
            return count
    return len(lines)


def cut(line: str, limit: int) -> str:
    """Return the beginning of ``line`` that ``limit`` bytes hold, no character torn."""
    return line.encode()[:limit].decode("utf-8", "ignore")
