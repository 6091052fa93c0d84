"""``scenario.toml``: what one scenario is, and what its author says it must show.

The schema is closed. ``[expect]`` is the author's intent as data, checked in every mode and never rewritten.
"""

from typing import Literal

from msgspec import Struct, field

from session_snapshot.errors import FixtureError
from session_snapshot.strict import line_of, parse_toml

Recording = Literal["live", "scripted", "authored"]
Platform = Literal["linux", "darwin", "win32"]
StopReason = Literal["end_turn", "max_tokens", "max_turn_requests", "refusal", "cancelled"]


class Closed(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """A table that holds no other keys."""


class Header(Closed, frozen=True):
    """Which header class the scenario's model calls belong to, and whether this scenario pins its readable content."""

    class_: str = field(default="default", name="class")
    pin: bool = False


class Workspace(Closed, frozen=True):
    """``final``: the tree after the run must equal ``workspace.expected/``, else the tree before it.

    ``parent``: where the run's cwd lies, in the sandbox itself or inside the sandboxed home.
    """

    final: bool = False
    parent: Literal["sandbox", "home"] = "sandbox"


class Limits(Closed, frozen=True):
    """Deadlines in seconds and the longest frame in bytes; passing one is the agent's failure, never a hang.

    ``stop_seconds``: how long the agent may take to go after the end of its stdin. ``settle_seconds``: how long replay
    waits for frames that belong to a step. ``quiet_seconds``: recording only, a step ends when nothing came for so
    long.
    """

    step_seconds: float = 60.0
    run_seconds: float = 180.0
    stop_seconds: float = 10.0
    settle_seconds: float = 2.0
    quiet_seconds: float = 1.0
    frame_bytes: int = 16 * 1024 * 1024


class Expect(Closed, frozen=True):
    """What the run must show, whatever the goldens say. An absent key asserts nothing.

    ``tools_called`` in order, as read from the model's chunks; ``exit_codes`` those allowed; ``answer_contains`` each
    in the agent's text; ``stop_reason`` of the last prompt; ``error_codes`` exactly those, in order.
    """

    tools_called: list[str] | None = None
    tools_not_called: list[str] = []
    exit_codes: list[int] = field(default_factory=lambda: [0])
    stop_reason: StopReason | None = None
    error_codes: list[str] | None = None
    answer_contains: list[str] = []
    model_calls: int | None = None
    compactions: int = 0


class Scenario(Closed, frozen=True):
    """What one scenario is: ``scenario.toml``.

    ``recording``: a real model answered (live), a script did (scripted), or a person wrote it (authored).
    ``overridden``: there is a ``replay.override.json``. ``platforms``: where it runs, everywhere if empty.
    ``seam``: the model is replayed over HTTP (wire) or inside a Python agent (adapter). ``env``: added to the agent's.
    """

    description: str
    recording: Recording
    overridden: bool = False
    platforms: list[Platform] = []
    seam: Literal["wire", "adapter"] = "wire"
    header: Header = Header()
    env: dict[str, str] = {}
    workspace: Workspace = Workspace()
    limits: Limits = Limits()
    expect: Expect = Expect()


def parse_scenario(text: str, path: str) -> Scenario:
    """Read ``scenario.toml``.

    Raises:
        FixtureError: unknown key (nearest named), missing or wrong value, an ``[expect]`` that asserts nothing.
    """
    scenario = parse_toml(text, path, Scenario)
    if not asserts_something(scenario.expect):
        raise FixtureError(
            "[expect] asserts nothing, so a hollow golden would pass",
            path,
            line_of(text, "expect"),
            "name at least one of tools_called, answer_contains, stop_reason, error_codes, model_calls",
        )
    return scenario


def asserts_something(expect: Expect) -> bool:
    """Whether an ``[expect]`` can fail for a run that did nothing it was written to show."""
    return any(
        (
            expect.tools_called,
            expect.answer_contains,
            expect.stop_reason,
            expect.error_codes,
            expect.model_calls is not None,
            expect.compactions,
        )
    )
