"""What several dialects say alike: a bare string for one plain text, images by data URL, the system's texts first."""

import re
from collections.abc import Sequence

from msgspec import UnsetType

from llm_dialects.chunks import Json, TextBlock
from llm_dialects.requests import DEVELOPER, ImagePart, Message, Part


def split_system(messages: Sequence[Message]) -> tuple[tuple[str, ...], tuple[Message, ...]]:
    """Return the texts of the plain system messages that lead, and the messages after them."""
    leading, texts = 0, list[str]()
    while leading < len(messages) and _is_header(messages[leading]):
        texts += [part.text for part in messages[leading].content if isinstance(part, TextBlock)]
        leading += 1
    return tuple(texts), tuple(messages[leading:])


def only_text(parts: Sequence[Part]) -> str | None:
    """Return the text of a content that is nothing but one plain text, so that a string can say it; else ``None``."""
    if len(parts) == 1 and isinstance(parts[0], TextBlock) and not parts[0].extra:
        return parts[0].text
    return None


def image_at(url: str, extra: dict[str, Json]) -> ImagePart:
    """Return the image at ``url``, which may hold the image itself."""
    inline = DATA_URL.fullmatch(url)
    if inline:
        return ImagePart(media_type=inline["type"], data=inline["data"], extra=extra)
    return ImagePart(url=url, extra=extra)


def url_of(image: ImagePart) -> str:
    """Return the URL of an image; the inverse of ``image_at``."""
    return f"data:{image.media_type};base64,{image.data}" if isinstance(image.url, UnsetType) else image.url


def _is_header(message: Message) -> bool:
    if message.role != "system" or message.extra not in ({}, DEVELOPER):
        return False
    return bool(message.content) and all(isinstance(part, TextBlock) and not part.extra for part in message.content)


DATA_URL = re.compile(r"data:(?P<type>[^;,]+);base64,(?P<data>.*)", re.DOTALL)
