"""The README's table of behaviours, made from the code: ``python -m llm_mock_server.behaviours_table`` prints it."""

import sys
from collections.abc import Iterator

from llm_mock_server.behaviours import BEHAVIOURS
from llm_mock_server.situation import Behaviour

BEGIN = "<!-- behaviours: python -m llm_mock_server.behaviours_table -->"
"""What stands before the table in the README."""

END = "<!-- end of behaviours -->"
"""What stands after it."""


def behaviours_table() -> str:
    """Return the table in Markdown: for each behaviour what a stream and a message get, and where that differs."""
    rows = [
        f"| `{row.name}` | {row.summary} | {row.whole} | {'; '.join(differences(row))} |" for row in BEHAVIOURS.values()
    ]
    return "\n".join(["| behaviour | streamed | whole | but |", "|---|---|---|---|", *rows, ""])


def differences(row: Behaviour) -> Iterator[str]:
    """Yield what is different in which dialect."""
    return (f"{dialect}: {told}" for dialect, told in row.differs.items())


if __name__ == "__main__":
    sys.stdout.buffer.write(behaviours_table().encode())
