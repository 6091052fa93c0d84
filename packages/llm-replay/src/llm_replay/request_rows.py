"""``requests.golden.jsonl``: what the agent asked, one row per model call, each as the change against its parent.

A row holds the messages a call appended to its parent's (``append``), how many of the parent's stand before them
(``keep``, absent when all) and which fields of those changed (``rewritten``: the message's ``index``, the ``field`` as
a JSON pointer into it, the new ``value``, absent when the field is gone). System texts and tools are not in the rows
but in the pin of their class (``header``). Rows and requests turn into one another without loss.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import msgspec
from llm_dialects import Json, Message, Request, to_json
from msgspec import UNSET, Struct, UnsetType

from llm_replay.calls import Header, RecordedCall
from llm_replay.errors import FixtureError
from llm_replay.history import Print, kept
from llm_replay.lines import encode, encode_lines, read_objects
from llm_replay.messages import message_from_json

MEND = "restore the file from version control, or refresh the scenario"


class Rewrite(Struct, frozen=True):
    """A field of a kept message that is no longer what it was; ``value`` is unset where the field is gone."""

    index: int
    field: str
    value: Json | UnsetType = UNSET


class RequestRow(Struct, frozen=True):
    """One row. ``line`` is where it stands in its file, counted from 1."""

    call: int
    lane: int
    parent: int | None
    source: str
    header: str
    params: dict[str, Json]
    append: tuple[Json, ...]
    keep: int | None = None
    rewritten: tuple[Rewrite, ...] = ()
    line: int = 0


def requests_to_rows(calls: Sequence[RecordedCall], class_of: Callable[[Header], str]) -> tuple[RequestRow, ...]:
    """Return the rows of ``calls``, each of which has a request; a parent stands before its children."""
    prints = [Print(_asked(call)) for call in calls]
    return tuple(_row(call, calls, prints, class_of) for call in calls)


def rows_to_requests(rows: Sequence[RequestRow], headers: Mapping[str, Header], name: str) -> tuple[Request, ...]:
    """Return the requests that ``rows`` stand for; ``name`` is the rows' file, for messages.

    Raises:
        FixtureError: a row names a header class that ``headers`` has not, keeps more than its parent has, rewrites
            what is not there, or holds what is no message.
    """
    requests: list[Request] = []
    for row in rows:
        above = () if row.parent is None else requests[row.parent].messages
        header = headers.get(row.header)
        if header is None:
            raise FixtureError(f"nobody pins the header class {row.header!r}", name, row.line, MEND)
        messages = _messages(row, above, name)
        requests.append(Request(system=header.system, tools=header.tools, messages=messages, params=row.params))
    return tuple(requests)


def format_rows(rows: Sequence[RequestRow]) -> str:
    """Return the file's text."""
    return encode_lines([row_to_json(row) for row in rows])


def row_to_json(row: RequestRow) -> dict[str, Json]:
    """Return the JSON object of one row."""
    head = {"call": row.call, "lane": row.lane, "parent": row.parent, "source": row.source, "header": row.header}
    keep = {} if row.keep is None else {"keep": row.keep}
    rewritten = {"rewritten": [_rewrite_to_json(change) for change in row.rewritten]} if row.rewritten else {}
    return {**head, "params": row.params, **keep, "append": list(row.append), **rewritten}


def parse_rows(text: str, name: str) -> tuple[RequestRow, ...]:
    """Read the file's text.

    Raises:
        FixtureError: a line is no row, calls are not numbered from 0 in order, or a parent does not stand before.
    """
    rows: list[RequestRow] = []
    for line, value in read_objects(text, name, MEND):
        row = _read_row(value, name, line)
        if row.call != len(rows):
            raise FixtureError(f"call is {row.call} where {len(rows)} was due", name, line, MEND)
        if row.parent is not None and not 0 <= row.parent < row.call:
            raise FixtureError(f"parent {row.parent} does not stand before call {row.call}", name, line, MEND)
        rows.append(row)
    return tuple(rows)


# ── Writing ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def _asked(call: RecordedCall) -> Request:
    assert call.request is not None, "a call without a request has no row"
    return call.request


def _row(
    call: RecordedCall, calls: Sequence[RecordedCall], prints: Sequence[Print], class_of: Callable[[Header], str]
) -> RequestRow:
    request = _asked(call)
    above = [] if call.parent is None else [to_json(message) for message in _asked(calls[call.parent]).messages]
    messages = [to_json(message) for message in request.messages]
    keep = 0 if call.parent is None else kept(prints[call.parent], prints[call.index])
    changes = (change for at in range(keep) for change in _changes(at, "", above[at], messages[at]))
    return RequestRow(
        call=call.index,
        lane=call.lane,
        parent=call.parent,
        source=call.source,
        header=class_of(Header(request.system, request.tools)),
        params=request.params,
        append=tuple(messages[keep:]),
        keep=None if keep == len(above) else keep,
        rewritten=tuple(changes),
    )


def _changes(index: int, field: str, old: Json, new: Json) -> Iterator[Rewrite]:
    """Yield the smallest fields that turn ``old`` into ``new``."""
    if isinstance(old, dict) and isinstance(new, dict):
        for key in (key for key in old if key not in new):
            yield Rewrite(index, f"{field}/{_escape(key)}")
        for key, value in new.items():
            here = f"{field}/{_escape(key)}"
            yield from _changes(index, here, old[key], value) if key in old else [Rewrite(index, here, value)]
    elif isinstance(old, list) and isinstance(new, list) and len(old) == len(new):
        for at, (left, right) in enumerate(zip(old, new, strict=True)):
            yield from _changes(index, f"{field}/{at}", left, right)
    elif not _identical(old, new):
        yield Rewrite(index, field, new)


def _identical(old: Json, new: Json) -> bool:
    """Tell whether two values are the same to the letter: 1 is neither 1.0 nor true."""
    return encode(old) == encode(new)


def _rewrite_to_json(change: Rewrite) -> dict[str, Json]:
    place = {"index": change.index, "field": change.field}
    return place if change.value is UNSET else place | {"value": change.value}


# ── Reading ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def _read_row(value: dict[str, Json], name: str, line: int) -> RequestRow:
    try:
        raw = msgspec.convert(value, _Raw)
    except msgspec.ValidationError as error:
        raise FixtureError(f"not a request row: {error}", name, line, MEND) from None
    fields: dict[str, Any] = {field: getattr(raw, field) for field in raw.__struct_fields__}
    changes = tuple(Rewrite(change.index, change.field, change.value) for change in raw.rewritten)
    return RequestRow(**(fields | {"append": tuple(raw.append), "rewritten": changes, "line": line}))


class _RawRewrite(Struct, forbid_unknown_fields=True):
    index: int
    field: str
    value: Any = UNSET


class _Raw(Struct, forbid_unknown_fields=True):
    call: int
    lane: int
    parent: int | None
    source: str
    header: str
    params: dict[str, Any]
    append: list[dict[str, Any]]
    keep: int | None = None
    rewritten: list[_RawRewrite] = []


def _messages(row: RequestRow, above: Sequence[Message], name: str) -> tuple[Message, ...]:
    keep = len(above) if row.keep is None else row.keep
    if not 0 <= keep <= len(above):
        raise FixtureError(f"keeps {keep} messages of a parent that has {len(above)}", name, row.line, MEND)
    try:
        return (*_rewritten(row, above[:keep]), *(message_from_json(value) for value in row.append))
    except (msgspec.ValidationError, LookupError, TypeError, ValueError) as error:
        raise FixtureError(f"not a message, or not a change of one: {error}", name, row.line, MEND) from None


def _rewritten(row: RequestRow, messages: Sequence[Message]) -> Iterator[Message]:
    changes: dict[int, list[Rewrite]] = {}
    for change in row.rewritten:
        if not 0 <= change.index < len(messages):
            raise ValueError(f"message {change.index} is not among the kept ones")
        changes.setdefault(change.index, []).append(change)
    for index, message in enumerate(messages):
        if index in changes:
            value = to_json(message)
            for change in changes[index]:
                value = _changed(value, change.field.split("/")[1:], change.value)
            yield message_from_json(value)
        else:
            yield message


def _changed(value: Json, path: Sequence[str], new: Json | UnsetType) -> Json:
    """Return ``value`` with the member at ``path`` set to ``new`` or, if that is unset, taken away."""
    if not path:
        return new
    key: Any = int(path[0]) if isinstance(value, list) else path[0].replace("~1", "/").replace("~0", "~")
    copy = list(value) if isinstance(value, list) else dict(value)
    if len(path) == 1 and new is UNSET:
        del copy[key]
    elif len(path) == 1:
        copy[key] = new
    else:
        copy[key] = _changed(copy[key], path[1:], new)
    return copy


def _escape(key: str) -> str:
    return key.replace("~", "~0").replace("/", "~1")
