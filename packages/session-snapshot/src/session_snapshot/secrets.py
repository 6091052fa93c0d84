"""Whether a key shows in a text, in any of the forms it may take on its way."""

import base64
import json
from urllib.parse import quote, quote_plus

NESTED = 3
"""How often JSON text within JSON text is looked through."""

URL_SAFE = bytes.maketrans(b"+/", b"-_")


def find_key(content: str | bytes, key: str) -> bool:
    """Whether ``content`` holds ``key``: raw, JSON-escaped, URL- or form-encoded, base64 or hex (at any offset)."""
    data = content.encode("utf-8", "surrogatepass") if isinstance(content, str) else content
    return any(form in data for form in forms(key))


def forms(key: str) -> set[bytes]:
    """The byte strings that give a key away."""
    raw = key.encode()
    told = {*escaped(key, True), *escaped(key, False), quote(key, safe=""), quote_plus(key)}
    packed = {encoded(raw, shift) for shift in range(3)}
    urls = {packed_form.translate(URL_SAFE) for packed_form in packed}
    return {raw.hex().encode(), raw.hex().upper().encode()} | {form.encode() for form in told} | packed | urls


def escaped(key: str, ascii_only: bool) -> list[str]:
    """The key as JSON text holds it, and as JSON text holds that where it is itself a string (a tool's arguments)."""
    texts = [key]
    for _ in range(NESTED):
        texts.append(json.dumps(texts[-1], ensure_ascii=ascii_only)[1:-1])
    return texts


def encoded(raw: bytes, shift: int) -> bytes:
    """The part of a base64 text that is the same whatever stands before (``shift`` bytes into a group) and after."""
    text = base64.b64encode(b"\0" * shift + raw)
    start = (0, 2, 3)[shift]
    end = (len(raw) + shift) * 8 // 6
    return text[start:end]
