"""Which id a function call of Gemini's has, and which call a function's response answers.

Gemini may leave ids out, of calls and of responses. A call without one gets an id by its place among the calls, which
is not told when the call is written again. A response without one answers the first open call of its name; so does one
with an id that no call has (agents invent ids for calls that came without), as long as that call has none either.
"""


class CallIds:
    """The calls of one history, or of one answer, as they are read or written in order."""

    def __init__(self) -> None:
        self._count = 0
        self._names: dict[str, str] = {}  # id -> name of every call
        self._open: dict[str, str] = {}  # those of this turn that have no response
        self._unnamed: set[str] = set()  # ids by place: nothing tells whether the wire had them
        self._asked = False  # the last turn was the model's

    @property
    def next_id(self) -> str:
        """The id by place of the next call."""
        return f"function-call-{self._count}"

    def begin_turn(self, *, asks: bool) -> None:
        """Begin a content; ``asks`` says that it is the model's."""
        if asks and not self._asked:
            self._open = {}
        self._asked = asks

    def call(self, given: str | None, name: str) -> str:
        """Take in a call and return its id; ``given`` is the one it has on the wire."""
        call_id = self.next_id if given is None else given
        if call_id == self.next_id:
            self._unnamed.add(call_id)
        self._count += 1
        self._names[call_id] = self._open[call_id] = name
        return call_id

    def result(self, given: str | None, name: str) -> str:
        """Take in a response and return the id of the call it answers, "" where there is none."""
        call_id = self._answered(given, name)
        self._open.pop(call_id, None)
        return call_id

    def name_of(self, call_id: str) -> str:
        """Return the name of a call, "" where there is none."""
        return self._names.get(call_id, "")

    def told_by_place(self, call_id: str, name: str) -> bool:
        """Return whether a response needs no id on the wire, its call having none."""
        return not call_id or (call_id in self._unnamed and self._answered(None, name) == call_id)

    def _answered(self, given: str | None, name: str) -> str:
        if given is not None and given in self._names:
            return given
        fits = (i for i, n in self._open.items() if n == name and (given is None or i in self._unnamed))
        return next(fits, given or "")
