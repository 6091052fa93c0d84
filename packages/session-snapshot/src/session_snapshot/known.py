"""What the harness knows about a run's volatile values, for the normaliser: places, ports, the date, the agent's
version."""

import datetime
from collections.abc import Sequence
from pathlib import Path

from normalizer import (
    Context,
    Document,
    Kind,
    Ledger,
    Ordering,
    OrderRule,
    canon_value,
    identity_kind,
    render_date,
    slug,
)
from normalizer.times import DATES
from normalizer.walk import fields

from session_snapshot.agent import Agent, declared_of
from session_snapshot.frames import Frame
from session_snapshot.sandbox import Sandbox, spellings


def context_of(agent: Agent, box: Sandbox, install: Path, ports: Sequence[int], version: str | None) -> Context:
    """Everything that is replaced because it is known."""
    today = datetime.datetime.now(datetime.UTC).date()
    return Context(
        cwd=spellings(box.cwd),
        home=spellings(box.home),
        tmp=spellings(box.tmp),
        agent=spellings(install),
        ports=tuple(ports),
        dates=(today - datetime.timedelta(days=1), today) if just_past_midnight() else (today,),
        agent_version=version,
        declared=tuple(declared_of(rule) for rule in agent.normalize),
    )


def fixed_tokens(box: Sandbox, install: Path) -> dict[str, str]:
    """What the tokens that have no number stand for in this run: places, their slugs, dates."""
    folders = {"cwd": str(box.cwd), "home": str(box.home), "tmp": str(box.tmp), "agent": str(install)}
    slugs = {f"{name}Slug": slug(path) for name, path in folders.items()}
    today = datetime.datetime.now(datetime.UTC).date()
    return folders | slugs | {kind: render_date(kind, today) for kind, _, _ in DATES}


def just_past_midnight() -> bool:
    """Whether a run that ends now may have begun yesterday (agents run in UTC)."""
    now = datetime.datetime.now(datetime.UTC)
    return now.hour == 0 and now.minute < 10


def ordering_of(agent: Agent) -> Ordering:
    """The suite's ``[[ordering]]``."""
    rules = tuple(OrderRule(rule.kind, rule.rule, rule.reason) for rule in agent.ordering if rule.rule)
    return Ordering(rules, any(rule.expand for rule in agent.ordering))


class RunIds:
    """The ids of a run as they come to light, for binding and for expanding tokens while it goes on."""

    def __init__(self, context: Context, frames: Sequence[Frame]) -> None:
        """``frames`` is the run's live list: whatever is in it when asked is learned first."""
        self.context = context
        self.frames = frames
        self.ledger = Ledger()
        self.order: dict[str, dict[str, None]] = {}
        self._learned = 0

    def canon(self, value: object) -> object:
        """A request's JSON with unnumbered tokens."""
        self.learn_frames()
        self.learn(value, "requests")
        return canon_value(value, self.ledger, self.context)

    def seen(self, kind: str) -> list[str]:
        """The live ids of a kind in order of first sight."""
        self.learn_frames()
        return list(self.order.get(kind, {}))

    def learn_frames(self) -> None:
        """Learn what came since the last look."""
        for frame in self.frames[self._learned :]:
            self.learn(frame.value, "stdout")
        self._learned = len(self.frames)

    def learn(self, value: object, kind: Kind) -> None:
        """Learn the ids in one value."""
        for field in fields(Document("", kind, [value])):
            found = identity_kind(field)
            if found:
                self.order.setdefault(found, {}).setdefault(str(field.value))
                self.ledger.learn(found, field.value)
