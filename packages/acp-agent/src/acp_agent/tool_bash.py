"""The bash tool: one command, one fresh shell, an environment that holds what the configuration allows."""

import shutil
from collections.abc import Iterable, Mapping
from pathlib import Path

from msgspec import Struct

from acp_agent.commands import Finished, run_command
from acp_agent.process_group import shell_command
from acp_agent.toolbox import ToolContext, ToolError, ToolOutcome


class BashArguments(Struct, frozen=True, forbid_unknown_fields=True):
    """``escalate`` asks the user for leave, with ``justification`` as the reason shown."""

    command: str
    escalate: bool = False
    justification: str = ""


async def bash(context: ToolContext, arguments: BashArguments) -> ToolOutcome:
    """Run the command; its output, then ``[exit code: N]`` where that is not 0."""
    words = shell_command(arguments.command, shutil.which)
    seconds = context.config.bash_timeout_seconds
    try:
        finished = await run_command(words, context.cwd, context.environment, seconds)
    except (OSError, ValueError) as error:  # ValueError: a NUL in the command
        raise ToolError("NOT_STARTED", f"cannot start the command: {error}") from None
    output = shorten(finished, context)
    if finished.exit_code is None:
        return ToolOutcome(with_note(output, f"[timed out after {seconds:g} s]"), "TIMEOUT")
    if finished.exit_code != 0:
        return ToolOutcome(with_note(output, f"[exit code: {finished.exit_code}]"))
    return ToolOutcome(output or "[no output]")


def allowed_environment(environment: Mapping[str, str], names: Iterable[str]) -> dict[str, str]:
    """Return the variables a command may see; names compare without case, as Windows has them."""
    allowed = {name.upper() for name in names}
    return {name: value for name, value in environment.items() if name.upper() in allowed}


# ── Helpers ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def with_note(output: str, note: str) -> str:
    """Put ``note`` on a line of its own after the output."""
    return output + ("\n" if output and not output.endswith("\n") else "") + note


def shorten(finished: Finished, context: ToolContext) -> str:
    """Return the output, or its two ends with a word on where all of it is."""
    data, limit = finished.output, context.config.output_limit_bytes
    if len(data) <= limit:
        return data.decode("utf-8", "replace")
    path = spill(data, context.spill)
    head, tail = data[: limit // 2].decode("utf-8", "replace"), data[-(limit // 2) :].decode("utf-8", "replace")
    total = len(data) + finished.dropped
    left_out = total - 2 * (limit // 2)
    return f"{head}\n[{left_out} of {total} bytes left out; read them in {path}]\n{tail}"


def spill(data: bytes, folder: Path) -> Path:
    """Keep a long output in the session's folder and return where."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"bash-{sum(1 for _ in folder.iterdir()) + 1}.txt"
    path.write_bytes(data)
    return path
