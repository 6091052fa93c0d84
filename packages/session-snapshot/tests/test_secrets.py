"""A key is found in every form it may take, wherever it stands, whole or in part; and nothing else is."""

import base64
import json
import random
import string
from urllib.parse import quote, quote_plus

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from session_snapshot.recording.secrets import BLANK, blanked, find_key, lines_with

KEYS = st.text(st.characters(codec="utf-8", min_codepoint=33), min_size=8, max_size=60)
AROUND = st.binary(max_size=9)

# Of no account: made up here, in the shapes that providers give theirs.
RANDOM = random.Random(4)
LETTERS = string.ascii_letters + string.digits


def made(prefix: str, size: int, letters: str = LETTERS) -> str:
    return prefix + "".join(RANDOM.choice(letters) for _ in range(size))


PUBLIC = {
    "openai-old": "sk-",
    "openai-project": "sk-proj-",
    "anthropic": "sk-ant-api03-",
    "google": "AIza",
    "deepseek": "sk-",
    "groq": "gsk_",
    "no-prefix": "",
    "signs": "k-",
}
SHAPES = {
    "openai-old": made("sk-", 48),
    "openai-project": made("sk-proj-", 156, LETTERS + "-_"),
    "anthropic": made("sk-ant-api03-", 95, LETTERS + "-_"),
    "google": made("AIza", 35, LETTERS + "-_"),
    "deepseek": made("sk-", 32, "0123456789abcdef"),
    "groq": made("gsk_", 52),
    "no-prefix": made("", 40),
    "signs": made("k-", 40, LETTERS + '+/="'),
}
EACH = pytest.mark.parametrize("key", SHAPES.values(), ids=SHAPES)


@given(KEYS, AROUND, AROUND)
@settings(deadline=None, max_examples=150)
def test_every_form_at_every_offset(key: str, before: bytes, after: bytes) -> None:
    raw = key.encode()
    whole = before + raw + after
    told = [
        raw,
        json.dumps(key)[1:-1].encode(),
        json.dumps(key, ensure_ascii=False)[1:-1].encode(),
        quote(key, safe="").encode(),
        quote_plus(key).encode(),
        key.encode("utf-16-le"),
    ]
    packed = [base64.b64encode(whole), base64.urlsafe_b64encode(whole), whole.hex().encode()]
    for form in [*(before + one + after for one in told), *packed, whole.hex().upper().encode()]:
        assert find_key(form, key), form


@given(KEYS)
@settings(deadline=None, max_examples=50)
def test_in_text_as_in_bytes(key: str) -> None:
    assert find_key(f"a {key} b", key)
    assert find_key(f"\ud800 {key}", key)


FORMS = {
    "raw": str,
    "json": json.dumps,
    "json in json in json": lambda part: json.dumps(json.dumps(json.dumps(part))),
    "json with slashes": lambda part: json.dumps(part).replace("/", "\\/"),
    "url": lambda part: quote(part, safe=""),
    "url in lower case": lambda part: quote(part, safe="").lower() if part.islower() else quote(part, safe=""),
    "form": quote_plus,
    "hex": lambda part: part.encode().hex(),
    "base64": lambda part: base64.b64encode(part.encode()).decode(),
    "base64 behind one": lambda part: base64.b64encode(f":{part}".encode()).decode(),
    "base64 behind two": lambda part: base64.b64encode(f"u:{part}".encode()).decode(),
    "base64 for urls": lambda part: base64.urlsafe_b64encode(part.encode()).decode(),
}


@EACH
@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
def test_any_part_in_any_form(key: str, form) -> None:
    """Its first characters past the public ones, its last, and some from the middle."""
    body = key[-32:]
    for part in (key, key[:32], key[-16:], body[:16], body[5:21]):
        assert find_key(f"see {form(part)} there", key), part


@EACH
def test_base64_in_lines(key: str) -> None:
    for before in range(57):
        assert find_key(base64.encodebytes(b"x" * before + key.encode()), key)


MASKED = {
    "openai": lambda key: (
        f"Incorrect API key provided: {key[:8]}{'*' * 40}{key[-4:]}. You can find your API key at ..."
    ),
    "openai, old": lambda key: f"{key[:5]}****{key[-4:]}",
    "deepseek": lambda key: f"Your api key: ****{key[-4:]} is invalid",
    "dashboard": lambda key: f"{key[:3]}...{key[-4:]}",
    "ellipsis": lambda key: f"{key[:10]}…{key[-6:]}",
    "escaped ellipsis": lambda key: json.dumps(f"{key[:10]}…{key[-6:]}"),
    "bullets": lambda key: f"{key[:6]}••••••{key[-4:]}",
    "beginning": lambda key: f"{key[:18]}...",
}


@EACH
@pytest.mark.parametrize("mask", MASKED.values(), ids=MASKED)
def test_the_masked_form_that_providers_print(key: str, mask) -> None:
    assert find_key(mask(key), key)
    assert BLANK in blanked(mask(key), key)


@pytest.mark.parametrize("shape", SHAPES)
def test_what_is_not_the_key(shape: str) -> None:
    key, public = SHAPES[shape], PUBLIC[shape]
    other = made(public, len(key) - len(public))
    for text in (
        "",
        other,
        key.swapcase() if not key.islower() else other,
        key[::-1],
        key[: len(public) + 3],
        public,
        key[-11:],
        f"{other[:8]}****{other[-4:]}",
        f"{public}...",
        f"{key[: len(public) + 3]}...",
        "**bold** and **strong** ... and so on …",
        base64.b64encode(b"sk-ant-api03-").decode(),
        "".join(LETTERS) * 3,
    ):
        assert not find_key(text, key), text


@pytest.mark.parametrize(
    "key", ["any-value-will-do", "kkkkkkkkkkkkkkkkkkkkkkkk", "sk-12345678", "00000000000000000000"]
)
def test_words_and_rulers_that_look_like_a_part_of_a_key_that_is_none(key: str) -> None:
    for text in ("any-value will do", "kkkkkkkkkkkk", "12345678", "sk-...", "000000000000", "x...do", "sk-1234567"):
        assert not find_key(text, key), text
    assert find_key(f"({key})", key)


@given(st.sampled_from(sorted(SHAPES)), st.sampled_from(sorted(FORMS)), st.text(max_size=20), st.integers(0, 20))
@settings(deadline=None, max_examples=100)
def test_what_is_blanked_shows_nothing_and_keeps_the_rest(shape: str, form: str, around: str, cut: int) -> None:
    key = SHAPES[shape]
    text = f"{around} {FORMS[form](key[cut:])} {around}"
    told = blanked(text, key)
    assert not find_key(told, key)
    assert key[-6:] not in told
    assert told.startswith(f"{around} ") and told.endswith(f" {around}")
    assert blanked(told, key) == told


def test_what_cannot_be_blanked_is_withheld(monkeypatch: pytest.MonkeyPatch) -> None:
    key = SHAPES["no-prefix"]
    monkeypatch.setattr("session_snapshot.recording.secrets.BLANK", key)
    assert blanked(f"it is {key}", key) == "(withheld: the key shows in it)"


@EACH
def test_of_a_whole_key_nothing_is_left(key: str) -> None:
    assert blanked(f"key {key}, {key[:20]}, {key[:6]}***{key[-4:]}", key).startswith(f"key {BLANK}, ")


def test_lines() -> None:
    key = SHAPES["openai-project"]
    assert lines_with(f"one\ntwo {key}\nthree\n{json.dumps(key)} {key}\n", key) == [2, 4, 4]
    assert lines_with("one\n", key) == lines_with("one", "") == []


def test_without_a_key_nothing_shows_and_nothing_is_blanked() -> None:
    assert not find_key("anything", "")
    assert blanked("anything", "") == "anything"


def test_a_long_ruler_is_searched_in_no_time() -> None:
    """Blocks of a key that would be found at every place."""
    key = "0" * 30 + SHAPES["no-prefix"]
    assert not find_key(b"0" * 3_000_000, key)
    assert find_key(b"0" * 3_000_000 + key.encode(), key)
