"""May this tool call go ahead? Decided from values; whoever asks the client stands elsewhere. Pure."""

from collections.abc import Collection, Mapping

from msgspec import Struct

from acp_agent.acp import PERMISSION_OPTIONS, Outcome
from acp_agent.tool_bash import BashArguments
from acp_agent.tools import ToolUse


class Allowed(Struct, frozen=True):
    """Go ahead."""


class Refused(Struct, frozen=True):
    """Do not, and tell the model why."""

    code: str
    text: str


class Ask(Struct, frozen=True):
    """The client decides about an act of this ``kind``."""

    kind: str
    reason: str


Verdict = Allowed | Refused | Ask


def judge(use: ToolUse, mode: str, ask: Collection[str], remembered: Mapping[str, str]) -> Verdict:
    """Judge a tool call by the session's mode, the configuration and what the user decided "always" before."""
    if isinstance(use.arguments, BashArguments) and use.arguments.escalate:
        return judge_escalation(use.arguments, ask, remembered)
    kind = use.spec.ask
    if kind is None:
        return Allowed()
    if mode == "read-only":
        return Refused("READ_ONLY", f"the session is read-only; {use.spec.name} is refused")
    if kind not in ask:
        return Allowed()
    return recall(Ask(kind, f"{use.spec.name} needs the user's leave"), remembered)


def judge_escalation(arguments: BashArguments, ask: Collection[str], remembered: Mapping[str, str]) -> Verdict:
    """A command that says it reaches further than the session may; only a user lets it."""
    if not arguments.justification.strip():
        return Refused("INVALID_ARGUMENTS", "escalate needs a justification")
    if "escalate" not in ask:
        return Refused("ESCALATION_DISABLED", "escalation is switched off in this agent's configuration")
    return recall(Ask("escalate", arguments.justification), remembered)


def settle(outcome: str) -> Allowed | Refused:
    """Turn what the user chose, a kind of ACP's permission options, into a verdict."""
    if outcome.startswith("allow"):
        return Allowed()
    return Refused("PERMISSION_DENIED", "the user did not allow this; do not try it again another way")


def chosen(outcome: Outcome) -> str:
    """Return the kind of the option chosen; ``cancelled`` also where the client chose one that was not offered."""
    if outcome.outcome == "cancelled":
        return "cancelled"
    return next((kind for option_id, _, kind in PERMISSION_OPTIONS if option_id == outcome.option_id), "cancelled")


def recall(ask: Ask, remembered: Mapping[str, str]) -> Verdict:
    """Return the earlier "always" for this kind of act, else the question."""
    return settle(remembered[ask.kind]) if ask.kind in remembered else ask
