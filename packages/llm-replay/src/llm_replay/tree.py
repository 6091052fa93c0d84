"""The tree of a run's model calls: which call grew out of which, and which lane each belongs to.

A call's parent is the call whose messages it extends, or whose history it rewrote. A lane is a chain from an opening;
a second child of one call (a fork), a call that offers tools where its parent did not, and the other way round, open a
lane of their own under the parent.
"""

from collections.abc import Callable, Sequence

from llm_dialects import Chunks, Entry, Request, fold, to_json
from msgspec import Struct

from llm_replay.history import Print, agreement, extends, kept, spoken_block

Canon = Callable[[Request], Request]
"""Puts tokens in place of volatile values."""


class Lineage(Struct, frozen=True):
    """A call's place. ``keep`` is how many of the parent's messages stand at its front; ``None`` means all, or none."""

    lane: int
    parent: int | None = None
    keep: int | None = None


class Said(Struct, frozen=True):
    """One call of a run, as seen from outside: what was asked, what answered it and under which session key."""

    request: Request
    entry: Entry | None = None
    session_key: str | None = None


def lineage(calls: Sequence[Said | Request], canon: Canon = lambda request: request) -> tuple[Lineage, ...]:
    """Return the place of every call, given in the order of their arrival.

    Answers and session keys help where histories alone are ambiguous: they tell a repeated request from the opening of
    a twin conversation, and which of two twins goes on.
    """
    tree = _Tree()
    for call in calls:
        said = call if isinstance(call, Said) else Said(call)
        tree.add(_Node(said, Print(canon(said.request))))
    return tuple(tree.places)


class _Node(Struct, frozen=True):
    said: Said
    print: Print

    @property
    def failed(self) -> bool:
        """Whether the call may be asked again: it was not answered, as far as is known."""
        entry = self.said.entry
        if not isinstance(entry, Chunks):
            return True
        finish = fold(entry.chunks).finish
        return finish is None or finish.kind == "error"


class _Tree:
    def __init__(self) -> None:
        self.places: list[Lineage] = []
        self._nodes: list[_Node] = []
        self._heads: dict[int, int] = {}
        self._parents: set[int] = set()

    def add(self, node: _Node) -> None:
        """Find the parent of ``node`` and put it into a lane."""
        parent = self._grown_from(node)
        if parent is None:
            parent = self._rewritten_from(node)
        self.places.append(self._place(node, parent))
        self._heads[self.places[-1].lane] = len(self._nodes)
        if parent is not None:
            self._parents.add(parent)
        self._nodes.append(node)

    def _place(self, node: _Node, parent: int | None) -> Lineage:
        if parent is None:
            return Lineage(lane=len(self._heads))
        above = self._nodes[parent].print
        lane = self.places[parent].lane
        goes_on = self._heads[lane] == parent and above.same_tooling(node.print)
        keep = kept(above, node.print)
        whole = keep == len(above.roles)
        return Lineage(lane if goes_on else len(self._heads), parent, None if whole else keep)

    def _grown_from(self, node: _Node) -> int | None:
        """Return the call that ``node`` extends: untouched if there is one, else with messages rewritten in place."""
        found = [at for at, other in enumerate(self._nodes) if self._is_extended(at, other, node)]
        if not found:
            found = [at for at, other in enumerate(self._nodes) if _is_extended_with_changes(other, node)]
        return max(found, key=lambda at: self._closeness(at, node), default=None)

    def _is_extended(self, at: int, other: _Node, node: _Node) -> bool:
        length = len(other.print.roles)
        if length > len(node.print.roles) or other.print.loose != node.print.loose[:length]:
            return False
        if length == len(node.print.roles):
            return _is_repeat(other, node)
        # A request that goes on without an answer does so because there was none; once there was, it is another one.
        return node.print.roles[length] == "assistant" or at not in self._parents

    def _closeness(self, at: int, node: _Node) -> tuple[int, bool, bool, int, int, bool, int]:
        other = self._nodes[at]
        same_key = other.said.session_key == node.said.session_key
        agreed = agreement(other.print, 0, node.print, 0)
        like = (len(other.print.roles), same_key, other.print.same_kind(node.print), _heard(other, node), agreed)
        return (*like, at not in self._parents, at)

    def _rewritten_from(self, node: _Node) -> int | None:
        """Return the head of a lane whose conversation, beyond its opening, lives on in ``node``."""
        shared = {at: self._shared(self._nodes[at], node) for at in self._heads.values()}
        found = [at for at, count in shared.items() if count]
        return max(found, key=lambda at: (shared[at], at), default=None)

    def _shared(self, other: _Node, node: _Node) -> int:
        if not other.print.same_kind(node.print) or _other_key(other, node):
            return 0
        return len(set(other.print.exact[other.print.first_answer :]) & set(node.print.exact))


def _is_extended_with_changes(other: _Node, node: _Node) -> bool:
    length = len(other.print.roles)
    if length >= len(node.print.roles) or other.print.loose == node.print.loose[:length]:
        return False
    return other.print.same_kind(node.print) and extends(other.print, node.print)


def _is_repeat(other: _Node, node: _Node) -> bool:
    """Tell whether ``node`` asks again what ``other`` asked in vain, and is not the opening of a twin conversation."""
    return other.failed and other.print.same(node.print) and not _other_key(other, node)


def _other_key(other: _Node, node: _Node) -> bool:
    return (
        None not in (other.said.session_key, node.said.session_key) and other.said.session_key != node.said.session_key
    )


def _heard(other: _Node, node: _Node) -> int:
    """Return how many blocks of the answer to ``other`` come back in the message of ``node`` that should hold it."""
    length = len(other.said.request.messages)
    if other.said.entry is None or length >= len(node.said.request.messages):
        return 0
    answer = {spoken_block(to_json(block)) for block in fold(other.said.entry.chunks).blocks}
    return len(answer & {spoken_block(to_json(part)) for part in node.said.request.messages[length].content})
