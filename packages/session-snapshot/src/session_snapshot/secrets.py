"""Whether a key shows in a text, in any of the forms it may take on its way."""

import base64
import json
from urllib.parse import quote, quote_plus

URL_SAFE = bytes.maketrans(b"+/", b"-_")


def find_key(content: str | bytes, key: str) -> bool:
    """Whether ``content`` holds ``key``: raw, JSON-escaped, URL- or form-encoded, base64 or hex (at any offset)."""
    data = content.encode("utf-8", "surrogatepass") if isinstance(content, str) else content
    return any(form in data for form in forms(key))


def forms(key: str) -> set[bytes]:
    """The byte strings that give a key away."""
    raw = key.encode()
    told = {json.dumps(key)[1:-1], json.dumps(key, ensure_ascii=False)[1:-1], quote(key, safe=""), quote_plus(key)}
    packed = {encoded(raw, shift) for shift in range(3)}
    urls = {packed_form.translate(URL_SAFE) for packed_form in packed}
    return {raw, raw.hex().encode(), raw.hex().upper().encode()} | {form.encode() for form in told} | packed | urls


def encoded(raw: bytes, shift: int) -> bytes:
    """The part of a base64 text that is the same whatever stands before (``shift`` bytes into a group) and after."""
    text = base64.b64encode(b"\0" * shift + raw)
    start = (0, 2, 3)[shift]
    end = (len(raw) + shift) * 8 // 6
    return text[start:end]
