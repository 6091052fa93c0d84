r"""Known folders in every spelling: ``C:\Users\me``, ``c:/Users/me``, ``\\?\C:\...``, doubled backslashes,
percent-encoded file URLs, ``/c/Users/me``, ``/private/tmp/...``, and slugs (``-tmp-run-work``). The tail of a path
keeps its names; its backslashes become slashes, and nowhere else.
"""

import json
import re
from collections.abc import Iterable, Iterator
from urllib.parse import quote

from msgspec import Struct

from normalizer.spans import Span
from normalizer.tokens import Token


class Root(Struct, frozen=True):
    """One known folder, compiled: its token kind and how it is found."""

    kind: str
    path: re.Pattern[str]
    slug: re.Pattern[str] | None
    windows: bool
    length: int


def compile_roots(folders: Iterable[tuple[str, Iterable[str]]]) -> tuple[Root, ...]:
    """``(kind, spellings)`` as roots, longest first, so that a folder inside another is found before it."""
    roots = [root for kind, paths in folders for path in paths for root in _compile(kind, path)]
    return tuple(sorted(roots, key=lambda root: -root.length))


def path_spans(text: str, roots: Iterable[Root]) -> Iterator[Span]:
    """Where the known folders stand in a text, and the separators after them that are rewritten."""
    for root in roots:
        for match in root.path.finditer(text):
            yield Span(match.start(), match.end(), Token(root.kind))
            if root.windows:
                yield from _separators(text, match)
        if root.slug:
            for match in root.slug.finditer(text):
                yield Span(match.start(), match.end(), Token(root.kind + "Slug"))


def slug(path: str) -> str:
    """A path as a folder name: what is no letter or digit becomes ``-``."""
    return re.sub(r"[^0-9A-Za-z]", "-", path)


def _compile(kind: str, path: str) -> Iterator[Root]:
    windows = _WINDOWS.match(path)
    names = [name for name in re.split(r"[\\/]+" if windows else "/+", path[windows.end() if windows else 0 :]) if name]
    if names:
        pattern = _windows(windows["drive"], names) if windows else _posix(names)
        yield Root(kind, re.compile(pattern + _AFTER), _slug(path), bool(windows), len(path))


def _posix(names: list[str]) -> str:
    # /private is another spelling of the same folder. A short root such as /tmp may be the tail of an unrelated path.
    names = names[1:] if names[0] == "private" and len(names) > 1 else names
    before = "" if len(names) >= 3 else _BEFORE
    return before + "(?:/private)?" + "".join("/" + _name(name) for name in names)


def _windows(drive: str | None, names: list[str]) -> str:
    if drive is None:
        return r"(?<![0-9A-Za-z\\/])(?:\\+|//)" + _SEPARATOR.join(map(_name, names))
    either = f"[{drive.upper()}{drive.lower()}]"
    prefix = rf"(?:(?:\\+\?\\+|//\?/|(?<=file://)/)?{either}(?::|%3[Aa])|/{either})"
    return r"(?<![0-9A-Za-z])" + prefix + "".join(_SEPARATOR + _name(name) for name in names)


def _name(name: str) -> str:
    """One folder name: raw, percent-encoded in either case, or escaped as in JSON."""
    ways = {name, quote(name, safe=""), quote(name, safe="").lower(), quote(name), json.dumps(name)[1:-1]}
    found = [re.escape(way) for way in sorted(ways, key=lambda way: (-len(way), way))]
    return found[0] if len(found) == 1 else f"(?:{'|'.join(found)})"


def _slug(path: str) -> re.Pattern[str] | None:
    words = re.findall(r"[0-9A-Za-z]+", path)
    if len(words) < 2 or len("".join(words)) < 8:
        return None
    return re.compile(r"(?<![0-9A-Za-z])" + "[-_]+".join(words) + r"(?![0-9A-Za-z]|[-_][0-9A-Za-z])")


def _separators(text: str, match: re.Match[str]) -> Iterator[Span]:
    r"""The backslashes of a path's tail. In JSON text they are doubled; a single one is an escape there."""
    runs = re.findall(r"\\+", match.group())
    width = len(runs[-1]) if runs else 1
    tail = re.compile(rf"(?:(?:(?<!\\)\\{{{width}}}(?!\\)|/)[^{_NO_NAME}]*)+").match(text, match.end())
    if tail:
        for run in re.finditer(r"\\+", tail.group()):
            yield Span(match.end() + run.start(), match.end() + run.end(), after="/")


_WINDOWS = re.compile(r"(?:\\\\\?\\|//\?/)?(?:(?P<drive>[A-Za-z]):[\\/]|\\\\)")
_SEPARATOR = r"(?:\\+|/|%5[Cc]|%2[Ff])"
_NO_NAME = r"\s\"'`<>|?*:;,\\/()\[\]{}"
# Before a short root: not in the middle of a name or path, but after file://, an escape such as \n, a flag such as -I.
_BEFORE = r"(?:(?<=file://)|(?<=\\[nrt])|(?<=\s-[A-Z])|(?<![0-9A-Za-z_.~\-/\\%)]))"
# After any root: the name is over. A full stop ends a sentence unless a name goes on behind it.
_AFTER = r"(?![0-9A-Za-z_]|[-~+.@][0-9A-Za-z_]|%(?!2[Ff]|5[Cc]|22|27)[0-9A-Fa-f]{2})"
