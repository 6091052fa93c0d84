"""What may be taken in without the rest: goldens that are taken in by half must still mean one thing; pure.

A token's number says that two values are one and the same. Where an inserted row renumbers the tokens of later rows,
the row and the numbers belong together: either alone would make one token mean two things.
"""

from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet

from llm_replay import FixtureError, Header, derive_calls, parse_log, parse_rows, rows_to_requests
from llm_replay.files import REQUESTS

from session_snapshot.changes.drift import Change, renamed_in, tokens_in
from session_snapshot.rows import is_model_row, read_rows


def needed(changes: Sequence[Change], unchanged: Iterable[object], accepted: AbstractSet[int]) -> set[int]:
    """The places in ``changes`` that must be accepted with ``accepted``, those left out.

    ``unchanged`` are the leaves that the old and the new files share.
    """
    taken = set(accepted)
    renames = consistent(changes, unchanged)
    while more := conflicting(changes, renames, taken):
        taken |= more
    return taken - accepted


def consistent(changes: Sequence[Change], unchanged: Iterable[object]) -> dict[str, str]:
    """The tokens that are called otherwise now wherever they stand, with the new token."""
    stable = {token for leaf in unchanged for token in tokens_in(leaf)}
    found: dict[str, set[str]] = {}
    for change in changes:
        for old, new in renamed_in(change.hunk):
            found.setdefault(old, set()).add(new)
    return {old: min(new) for old, new in found.items() if len(new) == 1 and old not in stable}


def conflicting(changes: Sequence[Change], renames: Mapping[str, str], taken: AbstractSet[int]) -> set[int]:
    """The changes not taken whose old or new token the taken ones bring along."""
    brought = {token for at in taken if is_content(changes[at]) for token in tokens_in(changes[at].hunk.actual)}
    return {
        at
        for at, change in enumerate(changes)
        if at not in taken
        for old, new in renamed_in(change.hunk)
        if renames.get(old) == new and brought & {old, new}
    }


def is_content(change: Change) -> bool:
    """Whether taking a change in brings anything that was not there before."""
    return change.hunk.how in ("changed", "added")


def breach_of(old: Mapping[str, str], new: Mapping[str, str], headers: Mapping[str, Header]) -> tuple[str, str]:
    """The first file of a scenario that could not be replayed, and why; two empty texts where all can.

    ``old`` and ``new`` are the machine-written files by name, ``headers`` the pinned ones by class.
    """
    for name in sorted(new.keys() - old.keys()) + sorted(new.keys() & old.keys()):
        try:
            if name == REQUESTS:
                rows_to_requests(parse_rows(new[name], name), headers, name)
            elif name.startswith("session") and not says_the_same(old.get(name, ""), new[name], name):
                return name, "it does not say what the model said"
        except FixtureError as error:
            return name, error.what
    return "", ""


def says_the_same(old: str, new: str, name: str) -> bool:
    """Whether two logs have the same model rows, byte for byte, and the same answers in all."""
    before = derive_calls(parse_log(old, name)) if old else ()
    after = derive_calls(parse_log(new, name))
    return model_rows(old) == model_rows(new) and [call.chunks for call in before] == [call.chunks for call in after]


def model_rows(text: str) -> list[str]:
    """The rows of a log that are the model's words."""
    return [row.text for row in read_rows(text) if is_model_row(row.value)]
