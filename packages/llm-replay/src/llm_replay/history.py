"""A request, reduced to what can be compared, and how one request grew out of another.

Each message has three prints. The *exact* one is all of it but what a provider signs anew each time. The *loose* one
leaves out what the agent received from the model (answers, call ids): agents send that back rewritten. The *spoken* one
leaves in of it what survives most rewriting: texts, names and arguments. Token numbers (``{{sessionId:3}}``) are in
none: they are assigned when a run is over, and a live request has none yet.
"""

import re
from collections.abc import Iterator, Sequence
from functools import cached_property, lru_cache
from itertools import groupby

import msgspec
from llm_dialects import Json, Message, Request, map_strings, strip_volatile, to_json
from msgspec import structs

from llm_replay.lines import canonical, decode


class MessagePrint:
    """The prints of one message."""

    def __init__(self, message: Message) -> None:
        """Reduce ``message``."""
        (unsigned,) = strip_volatile(Request(system=(), tools=(), messages=(message,), params={})).messages
        self.json: Json = map_strings(to_json(unsigned), unnumbered)
        self.exact = canonical(self.json)
        self.loose = _loose(self.json)
        self.spoken = _spoken(self.json)

    @cached_property
    def words(self) -> frozenset[str]:
        """The words in it, if it was the agent that wrote it and not the model."""
        if self.json["role"] == "assistant":
            return frozenset()
        return frozenset(word for text in _texts(self.json["content"]) for word in WORD.findall(text))


class Print:
    """The comparable form of one request. ``headed`` tells whether its system texts and tools are known at all."""

    def __init__(self, request: Request, *, headed: bool = True) -> None:
        """Reduce ``request``, whose volatile values are tokens already."""
        self._prints = prints = [message_print(message) for message in request.messages]
        self.headed = headed
        self.tooled = bool(request.tools)
        self.messages: list[Json] = [message.json for message in prints]
        bare = structs.replace(request, messages=())
        self.json: dict[str, Json] = map_strings(to_json(strip_volatile(bare)), unnumbered)
        self.roles = tuple(message.role for message in request.messages)
        self.exact = tuple(message.exact for message in prints)
        self.loose = _in_any_order([message.loose for message in prints], self.roles)
        self.spoken = tuple(message.spoken for message in prints)

    @cached_property
    def header(self) -> tuple[str, str, str]:
        """System texts, tools, and everything else that is not a message."""
        return canonical(self.json["system"]), canonical(self.json["tools"]), canonical(self.json["params"])

    @cached_property
    def first_answer(self) -> int:
        """The index of the first assistant message; the number of messages where there is none."""
        return self.roles.index("assistant") if "assistant" in self.roles else len(self.roles)

    def words(self, start: int) -> frozenset[str]:
        """Return the words of the messages from ``start`` on that the agent, not the model, wrote."""
        return frozenset().union(*(message.words for message in self._prints[start:]))

    def same_header(self, other: "Print") -> bool:
        """Tell whether system texts, tools and params are equal, as far as both are known."""
        return not self.header_differences(other)

    def header_differences(self, other: "Print") -> int:
        """Return how many of system texts, tools and params are known and not equal."""
        known = 0 if self.headed and other.headed else 2
        return sum(one != another for one, another in zip(self.header[known:], other.header[known:], strict=True))

    def same_kind(self, other: "Print") -> bool:
        """Tell whether system texts and tools are equal, as far as both are known."""
        return not (self.headed and other.headed) or self.header[:2] == other.header[:2]

    def same_tooling(self, other: "Print") -> bool:
        """Tell whether both offer tools or neither does, as far as both are known."""
        return not (self.headed and other.headed) or self.tooled is other.tooled

    def same(self, other: "Print") -> bool:
        """Tell whether the requests are equal in every word."""
        return self.exact == other.exact and self.same_header(other)


def message_print(message: Message) -> MessagePrint:
    """Return the prints of ``message``; a history comes with every request again, so they are remembered."""
    try:
        return _remembered(msgspec.json.encode(message))
    except UnicodeEncodeError:
        return MessagePrint(message)


@lru_cache(maxsize=4096)
def _remembered(encoded: bytes) -> MessagePrint:
    return MessagePrint(msgspec.json.decode(encoded, type=Message))


def unnumbered(text: str) -> str:
    """Return ``text`` with the numbers taken off its tokens; an escaped brace is not the start of one."""
    return NUMBERED.sub(lambda token: token[0] if token["kind"] is None else f"{{{{{token['kind']}}}}}", text)


def kept(parent: Print, child: Print) -> int:
    """Return how many of ``parent``'s messages stand at the front of ``child``.

    Where a message further up was rewritten, it counts as standing there if an untouched one follows it and half of
    all are: agents renew a date, or prune an old result, in a history that is otherwise the same.
    """
    front = common_front(parent.loose, child.loose)
    untouched, best = front, front
    for at in range(front, min(len(parent.roles), len(child.roles))):
        if parent.roles[at] != child.roles[at]:
            break
        if parent.exact[at] == child.exact[at]:
            untouched += 1
            if untouched * 2 >= at + 1:
                best = at + 1
    return best


def extends(parent: Print, child: Print) -> bool:
    """Tell whether all of ``parent`` stands at the front of ``child``."""
    return len(child.roles) >= len(parent.roles) and kept(parent, child) == len(parent.roles)


def continues(parent: Print, child: Print) -> bool:
    """Tell whether ``child`` is ``parent``, unchanged, with an answer to it and perhaps more."""
    length = len(parent.roles)
    return child.roles[length : length + 1] == ("assistant",) and parent.loose == child.loose[:length]


def common_front(one: Sequence[str], other: Sequence[str]) -> int:
    """Return how many elements at the front are equal."""
    length = min(len(one), len(other))
    if one[:length] == other[:length]:
        return length
    pairs = zip(one, other, strict=False)
    return next(at for at, (left, right) in enumerate(pairs) if left != right)


def agreement(one: Print, start: int, other: Print, begin: int, length: int | None = None) -> int:
    """Return how much of ``one`` from ``start`` is said in ``other`` from ``begin``, message by message.

    A message that is equal word for word counts 2, one that agrees in what was spoken 1.
    """
    end, stop = (None, None) if length is None else (start + length, begin + length)
    exact = zip(one.exact[start:end], other.exact[begin:stop], strict=False)
    spoken = zip(one.spoken[start:end], other.spoken[begin:stop], strict=False)
    return sum(left == right for left, right in exact) + sum(left == right for left, right in spoken)


def spoken_block(block: Json) -> str:
    """Return what a block says, without the ids and signatures that agents rewrite; arguments are compared as JSON."""
    said = {key: block[key] for key in ("type", "text", "name") if key in block}
    return canonical(said | {"arguments": _parsed(block.get("arguments", ""))})


def _texts(value: Json) -> Iterator[str]:
    """Yield every string in ``value`` but for names of members."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, (dict, list)):
        for inner in value.values() if isinstance(value, dict) else value:
            yield from _texts(inner)


def _loose(message: Json) -> str:
    """Return a message without what the model said in it, and without the ids it gave."""
    if message["role"] == "assistant":
        return "assistant"
    parts = [{key: value for key, value in part.items() if key != "callId"} for part in message["content"]]
    return canonical({**message, "content": parts})


def _spoken(message: Json) -> str:
    if message["role"] != "assistant":
        return _loose(message)
    return canonical([spoken_block(part) for part in message["content"] if part["type"] != "reasoning"])


def _parsed(arguments: str) -> Json:
    try:
        return decode(arguments)
    except ValueError:
        return arguments


def _in_any_order(loose: Sequence[str], roles: Sequence[str]) -> tuple[str, ...]:
    """Return the prints with those of consecutive tool results sorted: calls that ran side by side end in any order."""
    result: list[str] = []
    for is_tool, run in groupby(zip(loose, roles, strict=True), lambda pair: pair[1] == "tool"):
        prints = [text for text, _ in run]
        result += sorted(prints) if is_tool else prints
    return tuple(result)


# An escaped brace, or a token with a number; only the second has a kind.
NUMBERED = re.compile(r"\{\{\{\{|\{\{(?P<kind>[A-Za-z][A-Za-z0-9_-]*):\d+\}\}")
WORD = re.compile(r"\w+")
