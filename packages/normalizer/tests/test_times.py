"""Moments by shape, the run's own dates in every rendering, durations where text labels them."""

from datetime import date, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st
from normalizer import Context, normalize_text, render_date
from normalizer.times import DATES

DAY = Context(dates=(date(2026, 3, 5),))


def check_text(before: str, after: str, context: Context = DAY) -> None:
    assert normalize_text(before, context) == after


@pytest.mark.parametrize(
    "moment",
    [
        "2025-01-02T03:04:05Z",
        "2025-01-02T03:04:05.123456+00:00",
        "2025-01-02 03:04:05,123",
        "2025-01-02 03:04",
        "2025-01-02T03-04-05-123Z",
        "2025-01-02T03-04",
        "20250102T030405Z",
        "20250102_030405",
        "Thu, 02 Jan 2025 03:04:05 GMT",
        "Thu Jan  2 03:04:05 2025",
        "Thu Jan 02 2025 03:04:05 GMT+0000 (Coordinated Universal Time)",
        "3/5/2026, 7:15:14 PM",
        "March 5, 2026 at 19:15",
    ],
)
def test_a_full_timestamp_goes_by_shape(moment: str) -> None:
    check_text(f"at {moment}, then", "at {{eventTime}}, then")
    check_text(f"x_{moment}.log", "x_{{eventTime}}.log")


@pytest.mark.parametrize("text", ["v2025-01-02T3", "2025-01-02", "1.2.3-20250102", "20250102030405", "12:30", "+1 2 3"])
def test_what_is_no_full_timestamp_stays(text: str) -> None:
    check_text(text, text)


@pytest.mark.parametrize(
    ("text", "token"),
    [
        ("2026-03-05", "{{date}}"),
        ("20260305", "{{dateCompact}}"),
        ("2026/03/05", "{{dateSlash}}"),
        ("3/5/2026", "{{dateSlash}}"),
        ("05/03/2026", "{{dateSlash}}"),
        ("5.3.2026", "{{dateDots}}"),
        ("March 5, 2026", "{{dateWords}}"),
        ("Mar 05 2026", "{{dateWords}}"),
        ("5 March 2026", "{{dateWords}}"),
        ("March 5th, 2026", "{{dateWords}}"),
        ("Thursday, March 5, 2026", "{{dateDayWords}}"),
        ("Thu Mar 05 2026", "{{dateDayWords}}"),
        ("Thu, 05 Mar 2026", "{{dateDayWords}}"),
    ],
)
def test_a_date_goes_only_if_it_is_the_runs(text: str, token: str) -> None:
    check_text(f"Today's date: {text}.", f"Today's date: {token}.")
    check_text(text, text, Context(dates=(date(2026, 3, 6),)))
    check_text(text, text, Context())


@given(st.dates(date(2001, 1, 1), date(2099, 12, 31)))
def test_a_rendered_date_is_read_as_its_own_token(day: date) -> None:
    context = Context(dates=(day, day + timedelta(days=1)))
    for kind, _, _ in DATES:
        check_text(f"<{render_date(kind, day)}>", f"<{{{{{kind}}}}}>", context)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("Wall time: 0.512 seconds", "Wall time: {{durationMs}} seconds"),
        ("took 12ms", "took {{durationMs}}ms"),
        ("Duration: 1.5 s", "Duration: {{durationMs}} s"),
        ("3 passed in 0.03s", "3 passed in {{durationMs}}s"),
        ("timeout 30s, waits 5 minutes, in 3 seconds", "timeout 30s, waits 5 minutes, in 3 seconds"),
    ],
)
def test_a_duration_goes_where_text_says_it_was_measured(before: str, after: str) -> None:
    check_text(before, after)
