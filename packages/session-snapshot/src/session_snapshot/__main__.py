"""The command line. Nothing here decides; a command is one line in ``COMMANDS`` and one module, read when it is asked
for.

Exit codes: 0 as asked, 1 something is not as committed, 2 refused or wrong usage, 130 interrupted.
"""

from importlib import import_module
from typing import Any

import click

from session_snapshot.errors import AgentError, FixtureError, Refused
from session_snapshot.interrupts import INTERRUPTED, hear, hear_nothing
from session_snapshot.visible import visible

COMMANDS = ("init", "replay", "record", "refresh", "review", "view", "schema")
"""Each is the attribute of its name in the module of its name in ``session_snapshot.commands``."""


class Commands(click.Group):
    """Turns our own errors into a message and exit code 2, never a traceback."""

    def list_commands(self, _ctx: click.Context) -> list[str]:
        """The commands, in the order one meets them."""
        return list(COMMANDS)

    def get_command(self, _ctx: click.Context, name: str) -> click.Command | None:
        """Read a command's module."""
        if name not in COMMANDS:
            return None
        command: click.Command = getattr(import_module(f"session_snapshot.commands.{name}"), name)
        return command

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command."""
        try:
            try:
                return super().invoke(ctx)
            finally:
                leave_nothing()
        except (Refused, FixtureError, AgentError) as error:
            click.echo(visible(f"session-snapshot: {error}"), err=True)
            ctx.exit(2)
        except (KeyboardInterrupt, click.Abort):  # the latter is Ctrl-C at a question
            click.echo("session-snapshot: interrupted", err=True)
            ctx.exit(INTERRUPTED)


@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="session-snapshot")
def main() -> None:
    """Record-once, replay-forever snapshot tests for AI agents."""
    hear()


def leave_nothing() -> None:
    """The end of a command: what a Ctrl-C kept from being swept goes, and none is heard any more."""
    hear_nothing()
    from session_snapshot.runroot import sweep_own

    sweep_own()


if __name__ == "__main__":
    main()
