"""The command line of ``llm-mock-server`` as values: flags in, a script and settings out. The only IO is reading the
script's file.
"""

import argparse
import inspect
import json
import re
import secrets
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NoReturn

from llm_dialects import DIALECTS, EntryError, Json
from llm_dialects.words import nearest

from llm_mock_server.behaviours import RANDOM
from llm_mock_server.dice import weights_from_json
from llm_mock_server.journal import KEEP, KEEP_BYTES
from llm_mock_server.options import FIELDS, MAX_DELAY_MS, Options, options_from_json
from llm_mock_server.script import MAX_SEED, Script, read_json, script_from_json
from llm_mock_server.server import LISTED_MODEL, MAX_BODY

LISTEN_DELAY_MS = 750
"""How long connections are refused, unless told otherwise."""


class Parser(argparse.ArgumentParser):
    """Says what is wrong in a line, and how to mend it, rather than how everything is used."""

    def error(self, message: str) -> NoReturn:
        """End the process with status 2."""
        self.exit(2, f"{self.prog}: {message}\nmend: correct the flag; {self.prog} --help lists them\n")

    def parse(self, argv: Sequence[str] | None) -> argparse.Namespace:
        """Read the flags; of an unknown one name the nearest known."""
        options, unknown = self.parse_known_args(argv)
        if unknown:
            near = nearest(unknown[0].partition("=")[0], self._option_string_actions)
            self.error(f"there is no {unknown[0]}" + (f", the nearest is {near}" if near else ""))
        return options


def parse(argv: Sequence[str] | None) -> argparse.Namespace:
    """Read the command line."""
    parser = Parser(prog="llm-mock-server", usage=USAGE, description=ABOUT, epilog=EPILOG, allow_abbrev=False)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    add_script_flags(parser.add_argument_group("what is said (one of the first two)"))
    add_place_flags(parser.add_argument_group("where"))
    add_bound_flags(parser.add_argument_group("bounds"))
    add_option_flags(parser.add_argument_group("what the behaviours say, and how fast"))
    options = parser.parse(argv)
    if (options.sequence is None) == (options.script is None):
        parser.error("say what to say: either --sequence or --script")
    return options


def script_of(options: argparse.Namespace) -> Script:
    """Return the script that the flags ask for. What a flag says, it says in place of the script's file.

    Raises:
        EntryError: something in it cannot be meant.
        OSError: the file cannot be read.
    """
    flags = settings_of(options)
    if options.script is None:
        value, where = {"entries": names_of(options.sequence)}, "--sequence"
    else:
        value, where = read_json(options.script.read_bytes(), str(options.script)), str(options.script)
    script = script_from_json(overlaid(value, flags) if isinstance(value, dict) else value, where)
    chance = any(entry.label == RANDOM for entry in script.entries)
    if not chance and (decided := {"seed", "weights"} & flags.keys()):
        flag = "--seed" if "seed" in decided else "--random-weights"
        raise EntryError(f"{flag}: nothing in {where} is {RANDOM!r}\nmend: leave it out, or add {RANDOM!r}")
    return script


def seed_of(script: Script) -> int | None:
    """Return the seed of a script that leaves anything to chance."""
    return script.seed if any(entry.label == RANDOM for entry in script.entries) else None


# ── Helpers ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def settings_of(options: argparse.Namespace) -> dict[str, Json]:
    """Return what the flags say, as the members of a script."""
    said: dict[str, Json] = {"options": behaviour_options(options)}
    if options.repeat_last:
        said["repeatLast"] = True
    if options.seed is not None:
        said["seed"] = options.seed
    if options.random_weights is not None:
        said["weights"] = weights_of(options.random_weights)
    return said


def behaviour_options(options: argparse.Namespace) -> dict[str, Json]:
    """Return the options of behaviours that flags set, each checked under the name of its flag."""
    said: dict[str, Json] = {}
    for key, field in FIELDS.items():
        value, flag = getattr(options, field), flag_of(field)
        if value is not None:
            said[key] = read_calls(value) if field == "tool_calls" else value
            check_option(key, said[key], flag)
    return said


def check_option(key: str, value: Json, flag: str) -> None:
    """Refuse a value that an option cannot have."""
    try:
        options_from_json({key: value}, "flag")
    except EntryError as error:
        raise EntryError(re.sub(rf"^flag(\.{key})?", flag, str(error))) from None


def read_calls(text: str) -> Json:
    """Read the value of ``--tool-calls``."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise EntryError(f"--tool-calls: not JSON: {error}") from None


def names_of(sequence: str) -> list[Json]:
    """Return the names in a list with commas."""
    return [name.strip() for name in sequence.split(",")]


def non_empty(text: str) -> str:
    """Return a flag's value; an empty one would be a key that nobody can show."""
    if not text:
        raise argparse.ArgumentTypeError("must not be empty; leave the flag out to let every key in")
    return text


def weights_of(text: str) -> Json:
    """Read ``NAME=NUMBER,...``."""
    weights: dict[str, Json] = {}
    for pair in text.split(","):
        name, _, number = pair.strip().partition("=")
        if name in weights:
            raise EntryError(f"--random-weights: {name!r} is weighed twice\nmend: keep one of the two")
        try:
            weights[name] = float(number)
        except ValueError:
            raise EntryError(f"--random-weights: {pair!r} is not NAME=NUMBER\nmend: write success=3,stall=1") from None
    weights_from_json(weights, "--random-weights")
    return weights


def overlaid(script: dict[str, Json], flags: dict[str, Json]) -> dict[str, Json]:
    """Return a script with what flags say over it, and with a seed of its own where nobody says one."""
    said = {"seed": secrets.randbelow(MAX_SEED + 1)} | script | flags
    if isinstance(script.get("options", {}), dict):
        said["options"] = script.get("options", {}) | flags["options"]
    else:
        said["options"] = script["options"]
    return said


# ── The flags ───────────────────────────────────────────────────────────────────────────────────────────────────────

Group = argparse._ArgumentGroup  # argparse has no public name for what add_argument_group returns


def add_script_flags(group: Group) -> None:
    """What is said."""
    group.add_argument("--sequence", metavar="NAME,...", help="behaviours, one for each model call in order of arrival")
    group.add_argument("--script", type=Path, metavar="FILE", help='a script: {"entries": [...]}')
    group.add_argument("--repeat-last", action="store_true", help="say the last one again for every further call")
    group.add_argument(
        "--seed", type=between(0, MAX_SEED), metavar="N", help="what random is decided by; drawn if not given"
    )
    group.add_argument("--random-weights", metavar="NAME=N,...", help="how often random draws which behaviour")


def add_place_flags(group: Group) -> None:
    """Where it is said."""
    port = between(0, 65535)
    group.add_argument("--host", default="127.0.0.1", help="address to listen on (default: %(default)s)")
    group.add_argument("--allow-remote", action="store_true", help="let the host be one that other machines can reach")
    group.add_argument("--port", type=port, default=0, metavar="N", help="default: the system chooses")
    group.add_argument("--control-port", type=port, metavar="N", help="open the control API there; 0: any port")
    group.add_argument("--dialect", choices=sorted(DIALECTS), default="openai-chat", help="whose base URL is baseURL")
    group.add_argument(
        "--model", metavar="NAME", default=LISTED_MODEL, help=f"what /models lists (default: {LISTED_MODEL})"
    )
    group.add_argument(
        "--api-key", type=non_empty, metavar="KEY", help="the only key that is let in; without it every key is"
    )
    group.add_argument(
        "--listen-delay-ms",
        type=between(0, MAX_DELAY_MS),
        default=LISTEN_DELAY_MS,
        metavar="MS",
        help="how long connection_refused refuses (default: %(default)s)",
    )


def add_bound_flags(group: Group) -> None:
    """What it may cost."""
    for flag, default, what in BOUNDS:
        group.add_argument(flag, type=between(0, 2**53), default=default, metavar="N", help=f"{what}: %(default)s)")


def add_option_flags(group: Group) -> None:
    """The options of behaviours, told as their documentation tells them."""
    told = attributes_of(Options)
    for field in FIELDS.values():
        default = getattr(Options(), field)
        number = isinstance(default, int)
        metavar = "N" if number else "JSON" if field in JSON_FIELDS else "TEXT"
        text = told.get(field, "") + (f" (default: {default})" if default else "")
        group.add_argument(flag_of(field), type=int if number else str, metavar=metavar, help=text.replace("%", "%%"))


def flag_of(field: str) -> str:
    """Return the flag of an option."""
    return "--" + field.replace("_", "-")


def attributes_of(documented: type) -> dict[str, str]:
    """Return what a class's docstring says of each of its attributes."""
    told: dict[str, str] = {}
    section = (inspect.getdoc(documented) or "").partition("Attributes:\n")[2].partition("\n\n")[0]
    for name, text in re.findall(r"^    (\w+): ((?:.|\n {8})+)", section, re.MULTILINE):
        told[name] = " ".join(text.split()).replace("``", "").rstrip(".")
    return told


def between(low: int, high: int) -> Callable[[str], int]:
    """Return a reader of whole numbers for argparse."""

    def read(text: str) -> int:
        if not re.fullmatch(r"-?[0-9]{1,30}", text) or not low <= int(text) <= high:
            raise argparse.ArgumentTypeError(f"{text[:40]!r} is no whole number from {low} to {high}")
        return int(text)

    return read


USAGE = "llm-mock-server (--sequence NAME,... | --script FILE) [FLAG ...]"

ABOUT = "A model provider in a box, on this machine: it answers and fails as it is told to."

EPILOG = """\
Events are JSON Lines on stdout: `ready` with the base URLs (before it `unavailable` where connections are refused at
first), then `request` and `result` for each request. SIGINT ends it with exit status 130, SIGTERM with 143, the end of
whoever reads its stdout with 0; what cannot be meant, or a port that cannot be had, with 2.
"""

JSON_FIELDS = ("tool_calls", "tool_arguments")

# flag, default, what it bounds
BOUNDS: Sequence[tuple[str, int, str]] = (
    ("--max-body", MAX_BODY, "bytes of a request body; more is answered with 413 (default"),
    ("--journal-limit", KEEP, "requests that the control API can still show (default"),
    ("--journal-bytes", KEEP_BYTES, "bytes of them (default"),
)
