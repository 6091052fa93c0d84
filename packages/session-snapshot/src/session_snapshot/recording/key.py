"""The key a recording is made with: from the environment, else from ``.env``. Only record mode reads that file."""

from collections.abc import Iterator, Mapping
from pathlib import Path

from msgspec import Struct

from session_snapshot.errors import Refused
from session_snapshot.suites import Loaded
from session_snapshot.told import DUMMY_KEY
from session_snapshot.urls import is_local

DOTENV = ".env"
SHORTEST_KEY = 8
"""A shorter key cannot be searched for in what was written without finding it by chance."""


class Key(Struct, frozen=True):
    """``value`` is what a provider is shown; ``secret`` is what must show nowhere, ``""`` where that is no key."""

    value: str
    secret: str


STAND_IN = Key(DUMMY_KEY, "")
"""What a model server on this machine is shown where no key is set."""


def key_of(loaded: Loaded, environment: Mapping[str, str], cwd: Path, url: str) -> Key:
    """The key of a suite, for a provider at ``url`` (``""``: a script stands in for it).

    Raises:
        Refused: ``agent.toml`` has no ``[record]``, or its key variable is set nowhere, or holds what is no key.
    """
    record = loaded.agent.record
    if record is None:
        raise Refused(f"suite {loaded.place.suite!r} says nothing about recording", "add [record] to its agent.toml")
    value = environment.get(record.key_env, "") or from_dotenv(record.key_env, cwd)
    if value:
        refuse_no_key(value, record.key_env, loaded.scenario.recording)
        return Key(value, value)
    if url and is_local(url):
        return STAND_IN
    raise missing_key(loaded, record.key_env, cwd)


def missing_key(loaded: Loaded, variable: str, cwd: Path) -> Refused:
    """The refusal of a recording without a key: the variable, and where it was looked for."""
    looked = ", ".join(str(path) for path in candidates(cwd))
    any_value = " (a script answers: any value of 8 letters or more)" if loaded.scenario.recording == "scripted" else ""
    return Refused(
        f"recording suite {loaded.place.suite!r} needs a key: {variable} is not set, and in no {DOTENV} ({looked})",
        f"{variable}=... nox -s snapshot_record -- {loaded.place.full_name}{any_value}",
    )


def refuse_no_key(key: str, variable: str, recording: str) -> None:
    """Refuse what cannot be a key: it could not be sent, or not be searched for in what was written.

    Raises:
        Refused: it is too short, or holds a space, a line end or a letter that no HTTP header carries.
    """
    mend = "set the real one" if recording == "live" else "a scripted recording takes any value of 8 letters or more"
    if len(key) < SHORTEST_KEY:
        raise Refused(f"{variable} has {len(key)} characters, which is no key", mend)
    if not (key.isascii() and key.isprintable()) or " " in key:
        raise Refused(f"{variable} holds a space, a line end or a letter beyond ASCII, which no key does", mend)


# ── .env ────────────────────────────────────────────────────────────────────────────────────────────────────────────


def from_dotenv(variable: str, cwd: Path) -> str:
    """The variable's value in the nearest ``.env`` that sets it, ``""`` where none does.

    Raises:
        Refused: a ``.env`` that cannot be read.
    """
    values = (values_of(path).get(variable) for path in candidates(cwd) if path.is_file())
    return next((value for value in values if value), "")


def values_of(path: Path) -> Mapping[str, str | None]:
    """What a ``.env`` sets.

    Raises:
        Refused: it cannot be read.
    """
    import dotenv

    try:
        return dotenv.dotenv_values(path, encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
        raise Refused(f"{path} cannot be read: {reason}", "mend the file, or set the variable itself") from None


def candidates(cwd: Path) -> Iterator[Path]:
    """Where a ``.env`` may lie: here, and above up to the root of the checkout; elsewhere only here."""
    here = cwd.resolve()
    folders = [here, *here.parents]
    roots = [number for number, folder in enumerate(folders) if (folder / ".git").exists()]
    return (folder / DOTENV for folder in folders[: roots[0] + 1 if roots else 1])
