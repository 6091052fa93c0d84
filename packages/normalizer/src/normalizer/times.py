"""Moments, dates and durations in text. Full timestamps go by their shape; a bare date only if it is the run's own."""

import re
from collections.abc import Iterable, Iterator
from datetime import date

from normalizer.spans import Span
from normalizer.tokens import Token


def moment_spans(text: str) -> Iterator[Span]:
    """Full timestamps: ISO 8601, as in file names, RFC 5322, ``ctime``, JavaScript's ``Date``."""
    for pattern in _MOMENTS:
        for match in pattern.finditer(text):
            yield Span(match.start(), match.end(), Token("eventTime"))


def weekday_spans(text: str, dates: Iterable[tuple[str, re.Pattern[str]]]) -> Iterator[Span]:
    """Weekdays that stand right beside a full timestamp or one of the run's dates: ``2026-11-30 10:00 (Monday)``.

    Tomorrow they are others. A weekday anywhere else is somebody's word and stays.
    """
    for span in (*moment_spans(text), *date_spans(text, dates)):
        found = _WEEKDAY_AFTER.match(text, span.end) or _WEEKDAY_BEFORE.search(
            text, max(span.start - 16, 0), span.start
        )
        if found:
            yield Span(found.start(1), found.end(1), Token("weekday"))


def duration_spans(text: str) -> Iterator[Span]:
    """Durations that text labels as measured: ``Wall time: 0.51 seconds``, ``took 12ms``, ``1 passed in 0.03s``."""
    for pattern in _DURATIONS:
        for match in pattern.finditer(text):
            yield Span(match.start(1), match.end(1), Token("durationMs"))


def compile_dates(dates: Iterable[date]) -> tuple[tuple[str, re.Pattern[str]], ...]:
    """``(token kind, pattern)`` for every rendering of these dates."""
    return tuple((kind, re.compile(_whole(form(day)))) for kind, form, _ in DATES for day in dict.fromkeys(dates))


def date_spans(text: str, dates: Iterable[tuple[str, re.Pattern[str]]]) -> Iterator[Span]:
    """Where the run's dates stand; with a time of day behind it, a date is a moment."""
    for kind, pattern in dates:
        for match in pattern.finditer(text):
            clock = _CLOCK.match(text, match.end())
            yield Span(match.start(), (clock or match).end(), Token("eventTime" if clock else kind))


def render_date(kind: str, day: date) -> str:
    """The text a date token stands for on ``day``; where a kind has several renderings, the usual one."""
    return next(usual(day) for name, _, usual in DATES if name == kind)


def _whole(pattern: str) -> str:
    return f"(?<![0-9A-Za-z])(?:{pattern})(?![0-9A-Za-z])"


def _month(day: date) -> str:
    name = _MONTHS[day.month - 1]
    return f"(?:{name}|{name[:4]}\\.?|{name[:3]}\\.?)"


def _dash(day: date) -> str:
    return day.isoformat()


def _compact(day: date) -> str:
    return f"{day:%Y%m%d}"


def _numeric(mark: str, day: date) -> str:
    year, month, number = day.year, f"0?{day.month}", f"0?{day.day}"
    return mark.join((str(year), month, number)) + "|(?:" + f"{month}{mark}{number}|{number}{mark}{month}){mark}{year}"


def _slash(day: date) -> str:
    return _numeric("/", day)


def _dots(day: date) -> str:
    return _numeric(r"\.", day)


def _words(day: date) -> str:
    number, month = rf"0?{day.day}(?:st|nd|rd|th)?", _month(day)
    return rf"(?:{month} {number},? {day.year}|{number}\.?[ -]{month},?[ -]{day.year})"


def _day_words(day: date) -> str:
    name = _DAYS[day.weekday()]
    return rf"(?:{name}|{name[:3]}),? (?:the )?{_words(day)}"


def _usual_slash(day: date) -> str:
    return f"{day:%Y/%m/%d}"


def _usual_dots(day: date) -> str:
    return f"{day:%d.%m.%Y}"


def _usual_words(day: date) -> str:
    return f"{_MONTHS[day.month - 1]} {day.day}, {day.year}"


def _usual_day_words(day: date) -> str:
    return f"{_DAYS[day.weekday()]}, {_usual_words(day)}"


_DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
_MONTHS = tuple(
    "January February March April May June July August September October November December".split()  # noqa: SIM905
)
_WEEKDAY = "|".join(f"{name}|{name[:3]}" for name in _DAYS)
_WEEKDAY_AFTER = re.compile(rf",? \(?({_WEEKDAY})(?![0-9A-Za-z])")
_WEEKDAY_BEFORE = re.compile(rf"(?<![0-9A-Za-z])({_WEEKDAY}),? \(?$")
_DAY = f"(?:{'|'.join(name[:3] for name in _DAYS)})"
_MONTH = f"(?:{'|'.join(name[:3] for name in _MONTHS)})"
_TIME = r"[0-2]\d:[0-5]\d(?::[0-6]\d(?:[.,]\d{1,9})?)?"
_ZONE = r"(?: ?(?:Z|UTC|GMT)(?:[+-]\d{4})?(?: \([A-Za-z ]+\))?| ?[+-]\d\d:?\d\d)?"
_CLOCK = re.compile(
    rf",?(?: at)? \d{{1,2}}:[0-5]\d(?::[0-6]\d(?:\.\d+)?)?(?:\s?[AaPp]\.?[Mm]\.?)?{_ZONE}(?![0-9A-Za-z])"
)
_MOMENTS = tuple(
    re.compile(_whole(pattern))
    for pattern in (
        rf"\d{{4}}-[01]\d-[0-3]\d[T_ ]{_TIME}{_ZONE}",
        r"\d{4}-[01]\d-[0-3]\d[T_][0-2]\d-[0-5]\d(?:-[0-6]\d(?:[.-]\d{3,6})?)?Z?",
        r"\d{4}[01]\d[0-3]\d[T_-][0-2]\d[0-5]\d[0-6]\d(?:\.\d{1,9})?Z?",
        rf"{_DAY}, \d{{1,2}} {_MONTH} \d{{4}} {_TIME}{_ZONE}",
        rf"{_DAY} {_MONTH} [ 0-3]?\d (?:\d{{4}} )?{_TIME}{_ZONE}(?: \d{{4}})?",
    )
)
_UNIT = r"(?:ms|milliseconds?|µs|us|ns|s|secs?|seconds?|m|mins?|minutes?)"
_DURATIONS = (
    re.compile(
        rf"(?i)\b(?:wall time|elapsed(?: time)?|duration|total time|took)(?: *[:=] *| )(\d+(?:\.\d+)?) ?{_UNIT}\b"
    ),
    re.compile(rf"\b(?:in|after) (\d+\.\d+) ?{_UNIT}\b"),
)

# Token kind, the pattern of its renderings on a day, the rendering that replay writes. Renderings that fall together on
# some days (11/11, May) share a kind, or the token would depend on the day.
DATES = (
    ("date", _dash, _dash),
    ("dateDayWords", _day_words, _usual_day_words),
    ("dateWords", _words, _usual_words),
    ("dateSlash", _slash, _usual_slash),
    ("dateDots", _dots, _usual_dots),
    ("dateCompact", _compact, _compact),
)
