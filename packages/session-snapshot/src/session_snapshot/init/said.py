"""What a person who makes a suite is told: what the agent says of itself, what went wrong with it, what comes next.
Pure."""

from collections.abc import Iterator, Sequence

from session_snapshot.errors import AgentError
from session_snapshot.init.answers import HANDSHAKE, Answers
from session_snapshot.protocols import AgentProtocol
from session_snapshot.run import Capture

STDERR_LINES = 15
WIDTH = 12
MOST_FILES = 6


def introduction(capture: Capture, protocol: AgentProtocol) -> list[str]:
    """What the agent says of itself, and what else it did by itself, in aligned lines."""
    pairs = [*protocol.introduction([frame.value for frame in capture.frames]), *besides(capture)]
    return [f"  {heading + ':':<{WIDTH}} {line}" for heading, line in pairs]


def besides(capture: Capture) -> Iterator[tuple[str, str]]:
    """What the agent did beyond answering."""
    asked = dict.fromkeys(f"{request.method} {request.path}" for request in capture.requests)
    if asked:
        yield "it asked", f"its model's endpoint for {', '.join(asked)}"
    if left := left_behind(capture):
        more = f", and {len(left) - MOST_FILES} more" if len(left) > MOST_FILES else ""
        yield "it left", f"{', '.join(left[:MOST_FILES])}{more} in its working directory (declared in [persistence])"


def left_behind(capture: Capture) -> list[str]:
    """What an agent left in its working directory: the names at the top."""
    changed = {name for name, content in capture.after.items() if capture.before.get(name) != content}
    return sorted({name.partition("/")[0] for name in changed})


def wrong(capture: Capture, protocol: AgentProtocol, seconds: float) -> AgentError | None:
    """What keeps a handshake from being pinned, or ``None``."""
    methods = protocol.wanted_login([frame.value for frame in capture.frames])
    if methods is not None:
        told = f"it offers {', '.join(methods)}" if methods else "it offers no method"
        return told_with(capture, [f"the agent makes no session without a login; {told}"], login_mend(methods))
    if capture.faults:
        return told_with(capture, [fault.what for fault in capture.faults], fault_mend(capture, seconds))
    if capture.calls:
        what = f"the agent asked its model {len(capture.calls)} time(s) before it was prompted, and nobody answers here"
        return told_with(capture, [what], ASKS)
    return None


def fault_mend(capture: Capture, seconds: float) -> str:
    """What to do about the first fault of a run."""
    mend = capture.faults[0].mend or "see its stderr above"
    slow = f"if it is only slow: --seconds {seconds * 3:g}"
    if "step_seconds" in mend:
        return f"{slow}; else {'see what it waits for' if capture.frames else SPEAKS}"
    return mend if capture.frames else SPEAKS


def told_with(capture: Capture, faults: Sequence[str], mend: str) -> AgentError:
    """An error that shows the end of the agent's stderr."""
    lines = capture.stderr.strip().splitlines()[-STDERR_LINES:]
    shown = ["--- the end of its stderr", *(f"  {line}" for line in lines)] if lines else ["it wrote nothing to stderr"]
    return AgentError("\n".join([*faults, *shown]), mend)


def login_mend(methods: Sequence[str]) -> str:
    """What to do about an agent that wants a login."""
    by_method = f"--login {methods[0]} if a dummy key is enough for it; else " if methods else ""
    return f"{by_method}{FILES}"


def next_commands(suite: str, answers: Answers) -> list[str]:
    """What to do with a suite that was just made."""
    return [
        "next:",
        f'  session-snapshot init {suite}/first-turn --prompt "..."   writes a scenario',
        f"  session-snapshot record {suite}/first-turn   records the model (needs {answers.key_env}, here or in .env)",
        f"  session-snapshot replay {suite}   replays all of it, without a key and without a network",
    ]


def kept_commands(suite: str, folder: str) -> list[str]:
    """What to do with a suite in ``folder`` whose handshake is not pinned."""
    return [
        f"kept: {folder}/agent.toml and {folder}/{HANDSHAKE}, without a golden; edit them, then",
        f"  session-snapshot refresh {suite}/{HANDSHAKE} --accept   starts it again and pins what it says",
    ]


SPEAKS = (
    "see that the command speaks ACP on stdin and stdout (many agents want a flag for it: --acp, --stdio, acp), "
    "and prints nothing else to stdout"
)
FILES = (
    "tell it of its key by --key-env, or by a file it reads ([[model.files]] in agent.toml: --keep writes one to edit)"
)
ASKS = (
    '--keep, then say recording = "scripted" in handshake/scenario.toml, write upstream.json beside it, and record it'
)
