"""The log: whole lines, no gap in seq, and what a crash leaves is mended."""

import json

import pytest
from acp_agent.session_log import BrokenLog, create_log, read_events, reopen_log


def test_events_are_on_disk_when_append_returns(tmp_path):
    log = create_log(tmp_path, "s1", "/w", lambda: 7)
    log.append("turn/start", turn=1)
    log.append("turn/end", turn=1)
    lines = [json.loads(line) for line in (tmp_path / "s1" / "session.jsonl").read_text().splitlines()]
    log.close()
    assert lines == [
        {"type": "session", "format": "session-snapshot", "version": 1, "id": "s1", "createdAt": 7, "cwd": "/w"},
        {"type": "turn/start", "seq": 0, "time": 7, "data": {"turn": 1}},
        {"type": "turn/end", "seq": 1, "time": 7, "data": {"turn": 1}},
    ]


def test_a_reopened_log_goes_on_where_it_ended(tmp_path):
    log = create_log(tmp_path, "s1", "/w", lambda: 0)
    log.append("a")
    log.close()
    with log.path.open("ab") as file:
        file.write(b'{"type":"torn","se')
    again, events = reopen_log(tmp_path, "s1", lambda: 0)
    again.append("b")
    again.close()
    assert [event.type for event in events] == ["a"]
    assert [(event.type, event.seq) for event in read_events(log.path.read_bytes(), "x")] == [("a", 0), ("b", 1)]


BROKEN = [
    (b"", "x:1: no header line"),
    (b"{}\nnonsense\n", "x:2: "),
    (b'{}\n{"type":"a","seq":1,"time":0,"data":{}}\n', "x:2: seq 1 where 0 was due"),
    (b'{}\n{"type":"a","seq":0,"time":0}\n', "x:2: "),
]


@pytest.mark.parametrize(("raw", "message"), BROKEN)
def test_a_log_that_cannot_be_continued_says_where(raw, message):
    with pytest.raises(BrokenLog) as caught:
        read_events(raw, "x")
    assert str(caught.value).startswith(message)


def test_a_full_disk_leaves_the_log_whole(tmp_path):
    class FullDisk:
        """Writes half a line, then has no room."""

        def __init__(self, file):
            self.file, self.written = file, False

        def write(self, data):
            if self.written:
                raise OSError(28, "No space left on device")
            self.written = True
            return self.file.write(bytes(data[: len(data) // 2]))

        def __getattr__(self, name):
            return getattr(self.file, name)

    log = create_log(tmp_path, "s1", "/w", lambda: 0)
    log.append("a")
    real, log._file = log._file, FullDisk(log._file)
    with pytest.raises(OSError, match="No space"):
        log.append("lost")
    log._file = real
    log.append("b")
    log.close()
    assert [(event.type, event.seq) for event in read_events(log.path.read_bytes(), "x")] == [("a", 0), ("b", 1)]
