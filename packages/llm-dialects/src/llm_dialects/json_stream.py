"""A JSON array sent piece by piece: how Google streams where nobody asks for server-sent events."""

import re

from llm_dialects.dialect import DialectError

END = b"]"
"""What follows the last item."""


def encode_item(data: bytes, *, first: bool) -> bytes:
    """Return the bytes of the array's next item, which is the JSON text ``data``."""
    return (b"[" if first else b",\n") + data


class ArrayDecoder:
    """Reads an array of objects in pieces cut anywhere. A bare object is read too: it is all there is."""

    def __init__(self) -> None:
        self.over = False
        """Whether the array was ended."""
        self._pieces: list[bytes] = []  # of the object that has no end yet
        self._depth = 0  # of the object that is being read
        self._in_string = False
        self._escaped = False  # the next byte belongs to an escape already begun
        self._items = 0

    def feed(self, data: bytes) -> list[bytes]:
        """Return the texts of the objects that ``data`` completes; what follows the array is not read.

        Raises:
            DialectError: something that is no object.
        """
        items: list[bytes] = []
        begun, at = 0, int(self._escaped and bool(data))
        self._escaped = self._escaped and not data
        while not self.over and (token := self._pattern().search(data, at)):
            at = token.end()
            if not self._depth:
                begun = token.start()
            if self._take(token[0]):
                items.append(b"".join([*self._pieces, data[begun:at]]))
                self._pieces = []
        if self._depth:
            self._pieces.append(data[begun:])
        return items

    def _pattern(self) -> re.Pattern[bytes]:
        if self._in_string:
            return IN_STRING
        return IN_OBJECT if self._depth else BETWEEN

    def _take(self, token: bytes) -> bool:
        """Take in a token; return whether it ends an object."""
        if self._in_string:
            self._in_string = token != b'"'
            self._escaped = token == b"\\"
        elif token == b'"' and self._depth:
            self._in_string = True
        elif token == b"{" or (token == b"[" and self._depth):
            self._items += not self._depth
            self._depth += 1
        elif self._depth:
            self._depth -= 1
            return not self._depth
        elif token == b"]":
            self.over = True
        elif token not in (b"[", b","):
            raise DialectError(f"event {self._items + 1}: must be an object, begins with {token.decode('latin-1')!r}")
        return False


BETWEEN = re.compile(rb"\S")
IN_OBJECT = re.compile(rb'["{}\[\]]')
IN_STRING = re.compile(rb'\\.?|"', re.DOTALL)
