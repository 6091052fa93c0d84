"""What can go wrong, divided by whose fault it is: the configuration's, the client's or the model's."""

from typing import Any


class ConfigError(Exception):
    """The configuration is wrong; its text is ``file:line: what`` and the act that mends it."""

    def __init__(self, what: str, path: str, line: int | None = None, mend: str = "") -> None:
        self.what, self.path, self.line, self.mend = what, path, line, mend
        where = f"{path}:{line}" if line else path
        super().__init__(f"{where}: {what}\nmend: {mend}")


class RpcError(Exception):
    """A request of the client that is answered with a JSON-RPC error."""

    def __init__(self, code: int, message: str, data: Any = None) -> None:
        self.code, self.message, self.data = code, message, data
        super().__init__(message)


class ModelError(Exception):
    """The model gave no answer, or only part of one.

    ``code`` is a word of ``llm_dialects``' error table; ``retry_after_ms`` is when the provider says to come again.
    """

    def __init__(self, code: str, message: str, status: int | None = None, retry_after_ms: int | None = None) -> None:
        self.code, self.message, self.status, self.retry_after_ms = code, message, status, retry_after_ms
        super().__init__(message)
