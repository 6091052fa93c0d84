"""The first moments of the command ``llm-mock-server``: what ends it has its exit status before the rest is loaded."""

import os
import signal
from types import FrameType

__all__ = ["main"]


def main() -> int:
    """Run the command; return its exit status."""
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, end)
    from llm_mock_server.__main__ import main

    return main()


def end(number: int, _: FrameType | None) -> None:
    """End the process: nothing has been begun."""
    os._exit(128 + number)
