"""What a function's response holds, in Gemini's form: ``output`` or ``error``, and media beside it.

Google lets a response be any object. ``{"output": text}`` and ``{"error": text}`` are read as text; so is a list of
parts in their place. Any other object is kept as it came. Images go into ``parts``, where the model sees them.
"""

from collections.abc import Callable, Mapping, Sequence

from llm_dialects.chunks import Json, TextBlock
from llm_dialects.reading import objects
from llm_dialects.requests import ImagePart, OpaquePart, ToolResultPart

Content = TextBlock | ImagePart | OpaquePart
Reader = Callable[[Mapping[str, Json]], Content]
Writer = Callable[[Content], Json]


def read_response(value: Mapping[str, Json], path: str, read: Reader) -> tuple[tuple[Content, ...], bool]:
    """Return the content of a ``functionResponse``, and whether it tells an error.

    Raises:
        DialectError: naming the JSON path.
    """
    response = value.get("response")
    media = tuple(read(item) for item, _ in objects(value.get("parts"), f"{path}.parts"))
    word = _word(response)
    if response is None or word is None:
        return (*([] if response is None else [OpaquePart(value=response)]), *media), False
    said = response[word]
    parts = (TextBlock(text=said),) if isinstance(said, str) else tuple(read(item) for item in said)
    return (*parts, *media), word == "error"


def render_response(result: ToolResultPart, write: Writer) -> dict[str, Json]:
    """Return the members ``response`` and ``parts`` of a ``functionResponse``."""
    images = _trailing_images(result.content)
    said = result.content[: len(result.content) - images]
    media = {"parts": [write(part) for part in result.content[len(said) :]]} if images else {}
    return {"response": _render_said(said, "error" if result.is_error else "output", write)} | media


def _word(response: Json) -> str | None:
    """Return the one member of ``response`` if it is text or parts under a name that Google gives a meaning."""
    if not isinstance(response, dict) or len(response) != 1:
        return None
    word, said = next(iter(response.items()))
    parts = isinstance(said, list) and all(isinstance(item, dict) for item in said)
    return word if word in ("output", "error") and (parts or isinstance(said, str)) else None


def _render_said(said: Sequence[Content], word: str, write: Writer) -> Json:
    match said:
        case [TextBlock(text=text, extra=extra)] if not extra:
            return {word: text}
        case [OpaquePart(value=dict() as value)] if word == "output" and _word(value) is None:
            return value
    return {word: [write(part) for part in said]}


def _trailing_images(content: Sequence[Content]) -> int:
    count = 0
    for part in reversed(content):
        if not isinstance(part, ImagePart):
            break
        count += 1
    return count
