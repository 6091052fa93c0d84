"""The text of a failure: each surface once, stderr's end, and how to go on."""

from session_snapshot.report import STDERR_LINES, Failure, Report, format_failures, format_report

FAILURE = Failure("stdout", "stdout.golden.jsonl:2: 1 difference", "one\ntwo")


def test_green() -> None:
    assert Report("session/a", [], {}).green
    assert not Report("session/a", [FAILURE], {}).green


def test_the_whole_text() -> None:
    report = Report("session/a", [FAILURE, Failure("session", "x")], {}, "boom\n", ["late"])
    assert format_report(report, ".snapshot-actual/session/a") == (
        "session/a: 2 failures\n\n"
        "--- stdout: stdout.golden.jsonl:2: 1 difference\n  one\n  two\n\n"
        "--- session: x\n\n"
        "note: late\n\n"
        "--- the agent's stderr (its end)\n  boom\n\n"
        "actual files: .snapshot-actual/session/a\n"
        "run again:    nox -s snapshot -- session/a\n"
        "review:       nox -s snapshot_review -- session/a   (one difference after the other, at a terminal)\n"
        "mend:         nox -s snapshot_refresh -- session/a   (shows the change; --accept writes it)"
    )


def test_one_failure_another_suite_a_long_stderr() -> None:
    text = format_report(Report("other/a", [FAILURE], {}, "\n".join(map(str, range(100)))), "")
    assert text.startswith("other/a: 1 failure\n")
    assert "nox -s snapshot_agents -- other/a" in text and "actual files" not in text
    assert f"  {100 - STDERR_LINES}\n" in text and f"  {99 - STDERR_LINES}\n" not in text


def test_what_no_golden_holds_is_not_mended_by_a_refresh() -> None:
    text = format_report(Report("session/a", [FAILURE, Failure("wire", "tools: x")], {}), "")
    assert "run again" in text and "snapshot_refresh" not in text


def test_what_an_agent_says_drives_no_terminal() -> None:
    report = Report("s/a", [Failure("stdout", "title", "a\x1b[2J\x9b31m\u202eb")], {}, "err\x07\n")
    text = format_failures(report)
    assert "a\\u001b[2J\\u009b31m\\u202eb" in text and "err\\u0007" in text
    assert not [letter for letter in text if letter in "\x1b\x9b\x07\u202e"]
