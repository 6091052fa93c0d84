"""From names and flags to a pytest command line; pure."""

from collections.abc import Sequence

from msgspec import Struct

from session_snapshot.suites import Place

SLOWEST = 5

OWN_RULES = ("-o", "addopts=", "-o", "faulthandler_timeout=0")
"""What a project says of its own tests (coverage, markers, a time after which the process is shot) is not meant for
replays: those have their deadlines."""


class ReplayFlags(Struct, frozen=True):
    """The flags of ``session-snapshot replay``."""

    repeat: int = 1
    shuffle: int | None = None
    load: bool = False
    workers: str = ""
    dialect: str = ""


def pytest_arguments(places: Sequence[Place], named: bool, flags: ReplayFlags) -> list[str]:
    """The arguments for pytest.

    Names alone run in this process (starting workers costs seconds); everything else runs on all cores, each scenario a
    work item of its own.
    """
    paths = [str(place.folder / "scenario.toml") for place in places]
    workers = flags.workers or ("" if named and flags == ReplayFlags(dialect=flags.dialect) else "auto")
    parallel = ["-n", workers, "--dist", "load", "--maxschedchunk", "1"] if workers else ["-p", "no:xdist"]
    return [
        "-p", "no:cacheprovider", *OWN_RULES, "--assert=plain", "-q", "-ra", f"--durations={SLOWEST}",
        *parallel,
        f"--snapshot-repeat={flags.repeat}",
        *([f"--snapshot-shuffle={flags.shuffle}"] if flags.shuffle is not None else []),
        *([f"--snapshot-dialect={flags.dialect}"] if flags.dialect else []),
        *(["--snapshot-load"] if flags.load else []),
        *paths,
    ]  # fmt: skip
