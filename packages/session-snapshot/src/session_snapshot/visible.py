"""Text of an agent, made fit to be shown: what would hide or reorder text, or drive a terminal, is spelled out."""

import re

HIDDEN = re.compile(
    "[\0-\x08\x0b-\x1f\x7f-\x9f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff\ud800-\udfff\ufff9-\ufffb]"
)
"""What is not seen, what makes other text be seen in another order, and what no UTF-8 can hold."""


def visible(text: str) -> str:
    """``text`` with hidden characters spelled out; tabs and line ends stay."""
    return HIDDEN.sub(lambda found: f"\\u{ord(found[0]):04x}", text)
