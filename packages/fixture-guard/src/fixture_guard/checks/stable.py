"""The fixed point: a golden is normalised, so normalising it again changes nothing."""

from collections.abc import Iterator
from typing import Any, Literal

from normalizer import Context, Document, normalize

from fixture_guard.finding import Finding
from fixture_guard.layout import Scenario, Tree, read_rows


def check_fixed_point(tree: Tree) -> Iterator[Finding]:
    """A volatile value that normalisation would still take away."""
    for scenario in tree.scenarios:
        before = stored_documents(scenario)
        after = normalize(before, Context(), stored=True)
        for left, right in zip(before, after, strict=True):
            line = first_difference(scenario, left, right)
            if line is not None:
                what = "normalising this line again would change it: it still holds a volatile value"
                yield Finding(scenario.at(left.name), line, "UNSTABLE", what, scenario.refresh())


def stored_documents(scenario: Scenario) -> list[Document]:
    """Return the machine-written texts of a scenario as the normaliser takes them."""
    kinds: dict[str, Kind] = dict.fromkeys((log.name for log in scenario.logs), "session")
    documents = []
    for name, kind in (kinds | KINDS).items():
        if name in scenario.files:
            documents.append(Document(name=name, kind=kind, values=stored_values(scenario, name)))
    return documents


def stored_values(scenario: Scenario, name: str) -> list[Any]:
    """Return a file's lines as values, or its one text (with LF: a carriage return is another check's finding)."""
    if name.endswith(".jsonl"):
        return [row.value for row in read_rows(scenario.files[name])]
    return [scenario.text(name).replace("\r\n", "\n")]


def first_difference(scenario: Scenario, before: Document, after: Document) -> int | None:
    """Return the line of the first value, or of the first line of text, that changed."""
    left, right = before.values, after.values
    lines = [row.line for row in read_rows(scenario.files[before.name])]
    if before.kind == "text":
        left, right = left[0].split("\n"), right[0].split("\n")
        lines = list(range(1, len(left) + 1))
    changed = (line for line, one, other in zip(lines, left, right, strict=False) if one != other)
    return next(changed, None if left == right else 1)


Kind = Literal["stdout", "session", "requests", "text"]
KINDS: dict[str, Kind] = {
    "stdout.golden.jsonl": "stdout",
    "requests.golden.jsonl": "requests",
    "header.system.md": "text",
}
