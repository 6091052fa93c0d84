"""The one error of everybody who reads committed files: the files are wrong, here, and this mends it."""


class FixtureError(Exception):
    """A committed file is wrong.

    ``str()`` is ``path:line: what`` and, as the last line, ``mend: ...``: the command or the edit that mends it.
    """

    def __init__(self, what: str, path: str, line: int | None = None, mend: str | None = None) -> None:
        """Keep the parts. ``line`` counts from 1; ``None`` means the whole file."""
        where = path if line is None else f"{path}:{line}"
        super().__init__(f"{where}: {what}" + (f"\nmend: {mend}" if mend else ""))
        self.what = what
        self.path = path
        self.line = line
        self.mend = mend
