"""Whether a key shows in a text, in any of the forms it may take on its way."""

import base64
import json
from urllib.parse import quote


def find_key(content: str | bytes, key: str) -> bool:
    """Whether ``content`` holds ``key``: raw, base64 (at any offset), URL-encoded or JSON-escaped."""
    data = content.encode() if isinstance(content, str) else content
    return any(form in data for form in forms(key))


def forms(key: str) -> set[bytes]:
    """The byte strings that give a key away."""
    raw = key.encode()
    escaped = json.dumps(key)[1:-1].encode()
    return {raw, escaped, quote(key, safe="").encode()} | {encoded(raw, shift) for shift in range(3)}


def encoded(raw: bytes, shift: int) -> bytes:
    """The part of a base64 text that is the same whatever stands before (``shift`` bytes into a group) and after."""
    text = base64.b64encode(b"\0" * shift + raw)
    start = (0, 2, 3)[shift]
    end = (len(raw) + shift) // 3 * 4
    return text[start:end]
