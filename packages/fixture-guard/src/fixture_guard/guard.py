"""The guard: all checks over a tree of committed files."""

from collections.abc import Callable, Iterable, Iterator, Mapping

from msgspec import Struct

from fixture_guard.checks import files, headers, hollow, places, provenance, replay, secrets, stable, texts
from fixture_guard.checks.allowed import without_allowed
from fixture_guard.checks.hollow import Story, stories
from fixture_guard.finding import Finding, finding_key
from fixture_guard.layout import Tree, read_tree
from fixture_guard.surroundings import Surroundings


class Check(Struct, frozen=True):
    """One line of the table: the code its findings carry, what it finds, and the function."""

    code: str
    finds: str
    run: Callable[[Tree], Iterable[Finding]]


def check(
    files: Mapping[str, bytes], surroundings: Surroundings | None = None, *, under: str = ""
) -> tuple[Finding, ...]:
    """Return what is wrong with the committed ``files``, in the order of their paths; nothing is well.

    ``files`` holds whole suites by POSIX path relative to the folder of suites (``session/bash-spill/input.json``).
    ``under`` keeps only the findings at or below that path: a scenario is judged with its suite, and named alone.
    """
    tree = read_tree(files, surroundings)
    found = without_allowed(tree, (finding for check in CHECKS for finding in check.run(tree)))
    return tuple(sorted({finding for finding in found if is_under(finding.path, under)}, key=finding_key))


def is_under(path: str, folder: str) -> bool:
    """Whether ``path`` is ``folder`` or below it; everything is below ``""``."""
    return folder in ("", path) or path.startswith(f"{folder}/")


def checks_table() -> str:
    """Return the table of checks as Markdown, as the README holds it."""
    rows = (f"| `{check.code}` | {check.finds} |\n" for check in CHECKS)
    return "| code | finds |\n|---|---|\n" + "".join(rows)


def unreadable(tree: Tree) -> Iterable[Finding]:
    """Return what could not be parsed."""
    return tree.problems


def of_stories(run: Callable[[Story], Iterator[Finding]]) -> Callable[[Tree], Iterator[Finding]]:
    """Return a check of stories as a check of trees."""
    return lambda tree: (finding for story in stories(tree) for finding in run(story))


CHECKS: tuple[Check, ...] = (
    Check("UNREADABLE", "a file that cannot be parsed, or a table without a key it needs", unreadable),
    Check("MISSING", "a file every scenario needs is not there", files.check_missing),
    Check("SIDECAR", "a sidecar declared and not there, or there and not declared", files.check_sidecars),
    Check("ORPHAN", "a file that no part of the harness reads", files.check_orphans),
    Check("LEGACY", "a file under a name of an earlier layout", files.check_legacy),
    Check("NUMBERING", "a child log out of the row `session.1.jsonl`, `session.2.jsonl`, ...", files.check_numbering),
    Check("NAME", "a path Windows cannot hold or cannot tell from another", files.check_names),
    Check("ENCODING", "bytes that are not UTF-8, or a byte-order mark", texts.check_encoding),
    Check("NEWLINE", "a carriage return, or no newline at the end", texts.check_newlines),
    Check("JSON", "a JSON file that is not JSON, or gives a key twice", texts.check_json),
    Check("CANONICAL", "a JSON line that is not the one canonical spelling of its value", texts.check_canonical),
    Check("UNSTABLE", "a golden that normalising again would change", stable.check_fixed_point),
    Check("SECRET_SHAPE", "a text of a known key's shape", secrets.check_key_shapes),
    Check("SECRET_VALUE", "the value of a key variable of this machine, in any encoding", secrets.check_key_values),
    Check("SECRET_ENTROPY", "a random-looking value under a key's name", secrets.check_entropy),
    Check("PERSONAL_PATH", "a path into somebody's home", places.check_personal_paths),
    Check("PORT", "a fixed local port", places.check_ports),
    Check("HOST", "a private host, or this machine's own name", places.check_hosts),
    Check("PIN", "a header class in use with no pin or two, or two classes with equal pins", headers.check_pins),
    Check("HEADER", "a header pin that is unreadable, not canonical or empty", headers.check_header_files),
    Check("UNPLAYABLE", "logs, override and requests that make no recording together", replay.check_playable),
    Check("OVERRIDE", "an override entry that changes nothing", replay.check_overrides),
    Check("EXPECT", "an `[expect]` that asserts nothing", files.check_expect),
    Check("EXPECT", "a `tools_not_called` that nobody could call", of_stories(hollow.check_expected_names)),
    Check("EXIT_CODE", "a non-zero exit code that nobody expects", of_stories(hollow.check_exit_codes)),
    Check(
        "UNKNOWN_TOOL", "a call of a tool the agent lacks, that nobody expects", of_stories(hollow.check_unknown_tools)
    ),
    Check("UNCALLED_TOOL", "a tool a prompt names and nobody calls", of_stories(hollow.check_uncalled_tools)),
    Check("FORBIDDEN_TOOL", "a tool a prompt forbids and the model calls", of_stories(hollow.check_forbidden_tools)),
    Check("ANSWER", "an exact reply a prompt wants and the model never gives", of_stories(hollow.check_answers)),
    Check(
        "LINE_COUNT",
        "a file shown with another number of lines than the prompt says",
        of_stories(hollow.check_line_counts),
    ),
    Check("PROVENANCE", "provenance that does not agree with `recording`", provenance.check_agreement),
    Check("PROVENANCE_DIGEST", "a machine-written file changed by hand", provenance.check_digest),
    Check("PROVENANCE_LOCK", "a recording made by another version than the locked one", provenance.check_lock),
)
"""Every check, in the order a reader would ask. ``ALLOW`` (an entry that allows nothing) comes from what they find."""
