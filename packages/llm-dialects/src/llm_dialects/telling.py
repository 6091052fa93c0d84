"""How an answer or a failure was told on the wire, where the words for it are not enough.

``{"headers"?: {}, "end"?: "complete" | "cut" | "reset" | "silence", "dialect"?, "status"?, "body"? | "bodyBase64"?}``

A rate limit says when to come again, a stream stops without a finish and yet properly, a proxy answers with a page of
HTML, an event is no JSON: what an entry means stays what its other members say, in every dialect; ``wire`` is how its
provider put it. Headers and the end hold in any dialect, status and body in ``dialect`` alone.
"""

import base64
import re
from collections.abc import Mapping
from typing import Any, Literal, get_args

from msgspec import UNSET, Struct, UnsetType

from llm_dialects.chunks import Json
from llm_dialects.dialects import DIALECTS
from llm_dialects.words import nearest


class EntryError(ValueError):
    """A script entry is wrong; the message begins with the place of the fault."""


End = Literal["complete", "cut", "reset", "silence"]
"""How a response ends: as HTTP wants it, by the connection's end in the middle, by its reset, or not at all."""


class Wire(Struct, frozen=True, kw_only=True):
    """What of a response is not as its dialect would tell it; what is ``UNSET`` (or no header) is.

    ``headers`` are laid over the dialect's own, names in lower case; one that is "" is not sent. ``body`` is all of it,
    without any coding, and ``status`` goes with it. Both are of ``dialect``, and told in no other.
    """

    headers: tuple[tuple[str, str], ...] = ()
    end: End | UnsetType = UNSET
    dialect: str | UnsetType = UNSET
    status: int | UnsetType = UNSET
    body: bytes | UnsetType = UNSET


def wire_from_json(value: Json, where: str) -> Wire:
    """Read the member ``wire`` of an entry.

    Raises:
        EntryError: an unknown key, or a member that no response could have.
    """
    if not isinstance(value, dict) or not value:
        raise EntryError(f"{where}: must be an object that says something")
    for key in value:
        if key not in KEYS:
            raise EntryError(f"{where}: unknown key {key!r}; known are {', '.join(KEYS)}")
    if "dialect" not in value and value.keys() & {"status", "body", "bodyBase64"}:
        raise EntryError(f"{where}: a status or a body is of one dialect: the key 'dialect' is missing")
    return Wire(
        headers=_headers(value.get("headers", {}), f"{where}.headers"),
        end=_word(value, "end", get_args(End), where),
        dialect=_word(value, "dialect", tuple(DIALECTS), where),
        status=_status(value, where),
        body=_body(value, where),
    )


def wire_to_json(wire: Wire) -> dict[str, Json]:
    """Return the JSON object of ``wire``; the inverse of ``wire_from_json``."""
    members: dict[str, Json] = {"dialect": wire.dialect, "status": wire.status}
    if wire.headers:
        members["headers"] = dict(wire.headers)
    if isinstance(wire.body, bytes):
        members |= _body_to_json(wire.body)
    return {key: value for key, value in (members | {"end": wire.end}).items() if value is not UNSET}


def _body_to_json(body: bytes) -> dict[str, Json]:
    try:
        return {"body": body.decode()}
    except UnicodeDecodeError:
        return {"bodyBase64": base64.b64encode(body).decode()}


def _headers(value: Json, where: str) -> tuple[tuple[str, str], ...]:
    if not isinstance(value, dict):
        raise EntryError(f"{where}: must be an object")
    for name, text in value.items():
        if not HEADER_NAME.fullmatch(name) or name in FRAMING:
            raise EntryError(f"{where}: {name!r} is no header that can be given, in lower case")
        if not isinstance(text, str) or not HEADER_VALUE.fullmatch(text):
            raise EntryError(f"{where}.{name}: must be printable ASCII")
    return tuple(value.items())


def _word(value: Mapping[str, Json], key: str, known: tuple[str, ...], where: str) -> Any:
    if key not in value:
        return UNSET
    word = value[key]
    if word not in known:
        near = nearest(word, known) if isinstance(word, str) else ""
        mend = f"\nmend: write {near!r}" if near else ""
        raise EntryError(f"{where}.{key}: {word!r} is none of {', '.join(known)}{mend}")
    return word


def _status(value: Mapping[str, Json], where: str) -> int | UnsetType:
    status = value.get("status", UNSET)
    if status is not UNSET and (type(status) is not int or not 200 <= status <= 599):
        raise EntryError(f"{where}.status: must be an HTTP status, 200 to 599")
    return status


def _body(value: Mapping[str, Json], where: str) -> bytes | UnsetType:
    if "body" in value and "bodyBase64" in value:
        raise EntryError(f"{where}: has two bodies")
    for key, read in (("body", str.encode), ("bodyBase64", _from_base64)):
        if key in value:
            try:
                return read(value[key])
            except (TypeError, ValueError):
                raise EntryError(f"{where}.{key}: must be {BODIES[key]}") from None
    return UNSET


def _from_base64(text: str) -> bytes:
    return base64.b64decode(text, validate=True)


HEADER_NAME = re.compile(r"[a-z0-9!#$%&'*+.^_`|~-]+")
HEADER_VALUE = re.compile(r"[\x21-\x7e](?:[\x20-\x7e]*[\x21-\x7e])?|")

FRAMING = frozenset({"content-length", "transfer-encoding", "content-encoding", "connection", "keep-alive", "upgrade"})
"""Headers that follow from what is sent."""

BODIES = {"body": "text", "bodyBase64": "base64"}
KEYS = ("dialect", "status", "headers", "body", "bodyBase64", "end")
