"""Ready files: written by whoever answers, before the silence; one that cannot be is told before the head."""

import pytest
from llm_dialects import Stall
from llm_mock_server import HttpRequest, ScriptedProvider, Unanswerable


def call(**body):
    body = {"model": "m", "messages": []} | body
    return HttpRequest("POST", "/v1/chat/completions", "", (), b"", "openai-chat", body, 0)


def hang(name):
    return {"kind": "hang", "readyFile": name}


def test_a_hang_writes_its_ready_file_and_then_says_so(tmp_path, monkeypatch):
    fallen = []

    def fall(silent):
        fallen.append((silent.ready_file, (tmp_path / "ready").exists()))

    monkeypatch.chdir(tmp_path)
    provider = ScriptedProvider([hang("{{file}}")], on_hang=fall)
    provider.values["file"] = "ready"
    for action in provider(call(stream=True)):
        assert (tmp_path / "ready").exists() is isinstance(action, Stall)
    assert fallen == [("ready", True)]


def test_a_ready_file_is_named_from_a_folder_or_left_to_others(tmp_path):
    (tmp_path / "old").write_text("kept")
    for root, name in ((tmp_path, "new"), (tmp_path, "old"), (None, "none"), ("", str(tmp_path / "whole"))):
        assert Stall() in tuple(ScriptedProvider([hang(name)], ready_root=root)(call()))
    assert {path.name: path.read_text() for path in tmp_path.iterdir()} == {"new": "", "old": "kept", "whole": ""}


@pytest.mark.parametrize(("name", "why"), [("no/ready", "is not there"), ("folder", "is a folder")])
def test_a_ready_file_that_cannot_be_is_told_before_the_head_and_takes_nothing(tmp_path, name, why):
    (tmp_path / "folder").mkdir()
    provider = ScriptedProvider([hang(name), "success"], where="s.json", ready_root=tmp_path)
    with pytest.raises(Unanswerable) as caught:
        provider(call(stream=True))
    failure = caught.value.failure
    assert (failure.code, failure.status) == ("MOCK_READY_FILE", 500)
    what, mend = failure.message.splitlines()
    assert what.startswith(f"s.json: entries[0].readyFile: '{name}' cannot be written: ")
    assert what.endswith(why)
    assert mend.startswith("mend: make the folder")
    assert (provider.served, provider.remaining) == (0, 2)
