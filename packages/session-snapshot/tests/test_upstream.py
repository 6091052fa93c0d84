"""``upstream.json``: what is wrong in it is named with its line and the nearest right word."""

import asyncio
from pathlib import Path

import msgspec
import pytest
from llm_dialects import Request, Throw
from llm_mock_server import HttpRequest
from session_snapshot.calls import LiveCall
from session_snapshot.errors import FixtureError, Refused
from session_snapshot.recording.key import refuse_no_key
from session_snapshot.recording.record import record_all
from session_snapshot.recording.upstream import EXHAUSTED, UNFILLED, Upstream, scripted, upstream_of
from session_snapshot.suites import load, place_of

SESSION = Path(__file__).parents[3] / "snapshots" / "session"
WHERE = "snapshots/x/y/upstream.json"


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("", ":1: not JSON"),
        ('{\n  "entries": [\n    {"kind": "sya"}\n  ]\n}', ":3: entries[0].kind: 'sya' is none of"),
        ('{\n  "entries": [\n    {"kind": "say", "txt": "x"}\n  ]\n}', ":3: entries[0]: unknown key 'txt'"),
        ('{"entrys": []}', ": must be an object of one key"),
        ('{"entries": [{"kind": "say", "text": 7}]}', ": entries[0].text: must be a string"),
        ("[]", ": must be an object of one key"),
    ],
)
def test_a_wrong_script_is_named_with_its_line(text: str, told: str) -> None:
    with pytest.raises(FixtureError) as caught:
        scripted(text, WHERE)

    assert f"{WHERE}{told}" in str(caught.value)
    assert str(caught.value).splitlines()[-1].startswith("mend: ")


@pytest.mark.parametrize(("word", "nearest"), [("sya", "say"), ("thrwo", "throw"), ("hagn", "hang")])
def test_a_misspelt_kind_names_the_nearest(word: str, nearest: str) -> None:
    with pytest.raises(FixtureError, match=f"mend: write '{nearest}'"):
        scripted(f'{{"entries": [{{"kind": "{word}"}}]}}', WHERE)


def test_entries_nobody_asked_for_are_refused() -> None:
    provider = scripted('{"entries": [{"kind": "say", "text": "a"}, {"kind": "say", "text": "b"}]}', WHERE)
    body = {"model": "m", "messages": []}
    provider(HttpRequest("POST", "/v1/chat/completions", "", (), b"", "openai-chat", body, 0))

    with pytest.raises(FixtureError, match="1 of 2 entries were never asked for: the run made 1 model call"):
        Upstream("http://127.0.0.1:1", provider, WHERE).refuse_leftovers()


@pytest.mark.parametrize("key", ["short", "sk-01234 56789", "sk-0123456789\n", "schlüssel-0123456789"])
def test_what_cannot_be_a_key_is_refused_by_name(key: str) -> None:
    with pytest.raises(Refused, match="THE_KEY"):
        refuse_no_key(key, "THE_KEY", "scripted")


def test_a_changed_tree_without_an_oracle_is_refused_before_anything_runs(tmp_path: Path) -> None:
    suite = tmp_path / "snapshots" / "session"
    scenario = suite / "workspace-edit"
    scenario.mkdir(parents=True)
    for name in ("agent.toml", "workspace-edit/scenario.toml", "workspace-edit/input.json"):
        (suite / name).write_bytes((SESSION / name).read_bytes())

    with pytest.raises(Refused, match=r"has no workspace\.expected/"):
        record_all(
            [place_of(scenario / "scenario.toml")], suite.parent, {"OPENAI_API_KEY": "sk-0123456789"}, True, print
        )
    assert sorted(path.name for path in scenario.iterdir()) == ["input.json", "scenario.toml"]


def test_a_call_beyond_the_script_is_the_scripts_fault() -> None:
    provider = scripted('{"entries": []}', WHERE)
    call = LiveCall(0, Request((), (), (), {}), b"", None, Throw(chunks=(), message="m", code=EXHAUSTED))

    with pytest.raises(FixtureError, match="model call 0 has no entry: the script holds 0"):
        Upstream("http://127.0.0.1:1", provider, WHERE).refuse_exhausted([call])


def test_what_an_entry_wants_from_the_request_and_does_not_find_is_the_scripts_fault() -> None:
    provider = scripted('{"entries": [{"kind": "say", "text": "{{fromRequest:id}}"}]}', WHERE)
    message = f"{WHERE}: entries[0]: {{{{fromRequest:id}}}}: nothing in the request's messages matches\nmend: m"
    call = LiveCall(0, Request((), (), (), {}), b"", None, Throw(chunks=(), message=message, code=UNFILLED))

    with pytest.raises(FixtureError) as caught:
        Upstream("http://127.0.0.1:1", provider, WHERE).refuse_exhausted([call])
    assert f"{WHERE}: model call 0: entries[0]: {{{{fromRequest:id}}}}: nothing" in str(caught.value)


def test_braces_that_are_no_placeholder_of_the_request_are_text() -> None:
    provider = scripted('{"entries": [{"kind": "say", "text": "{{name}} {{{{"}]}', WHERE)
    body = {"model": "m", "messages": []}
    _, said = provider(HttpRequest("POST", "/v1/chat/completions", "", (), b"", "openai-chat", body, 0))
    assert b'"content":"{{name}} {{{{"' in said.data


def test_a_missing_script_is_to_be_written(tmp_path: Path) -> None:
    suite = tmp_path / "snapshots" / "session"
    for name in ("agent.toml", "text-turn/scenario.toml", "text-turn/input.json"):
        (suite / name).parent.mkdir(parents=True, exist_ok=True)
        (suite / name).write_bytes((SESSION / name).read_bytes())
    place = place_of(suite / "text-turn" / "scenario.toml")

    with pytest.raises(FixtureError, match=r"upstream\.json: .* is missing\nmend: write it"):
        record_all([place], suite.parent, {"OPENAI_API_KEY": "sk-0123456789"}, True, print)


def test_a_url_that_is_given_is_asked_instead_of_the_suites() -> None:
    loaded = load(place_of(SESSION / "text-turn" / "scenario.toml"))
    live = msgspec.structs.replace(loaded, scenario=msgspec.structs.replace(loaded.scenario, recording="live"))

    async def url_of(given: str | None) -> str:
        async with upstream_of(live, "sk-0123456789", given) as upstream:
            return upstream.url

    assert asyncio.run(url_of(None)) == "https://api.openai.com/v1"
    assert asyncio.run(url_of("http://127.0.0.1:9/v1")) == "http://127.0.0.1:9/v1"
