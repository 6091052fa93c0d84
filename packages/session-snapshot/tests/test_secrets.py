"""A key is found in every form it may take, wherever it stands; and nothing else is."""

import base64
import json
from urllib.parse import quote, quote_plus

from hypothesis import given, settings
from hypothesis import strategies as st
from session_snapshot.secrets import find_key

KEYS = st.text(st.characters(codec="utf-8", min_codepoint=33), min_size=8, max_size=60)
AROUND = st.binary(max_size=9)


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
    ]
    packed = [base64.b64encode(whole), base64.urlsafe_b64encode(whole), whole.hex().encode()]
    for form in [*(before + one + after for one in told), *packed, whole.hex().upper().encode()]:
        assert find_key(form, key), form


@given(KEYS)
@settings(deadline=None, max_examples=50)
def test_in_text_as_in_bytes(key: str) -> None:
    assert find_key(f"a {key} b", key)
    assert find_key(f"\ud800 {key}", key)


def test_what_is_not_the_key() -> None:
    key = "sk-abcdefgh12345678"
    others = [key[:-1], key.upper(), key[::-1], base64.b64encode(key[:-4].encode()).decode(), ""]
    assert not any(find_key(other, key) for other in others)
