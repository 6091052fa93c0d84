"""Header pins: each class of system prompt and tools is readable in exactly one place."""

import json
from collections import defaultdict
from collections.abc import Iterator, Mapping
from typing import Any

from fixture_guard.checks.files import calls_model
from fixture_guard.finding import Finding
from fixture_guard.layout import Scenario, Suite, Tree
from fixture_guard.settings import line_of_key
from fixture_guard.shapes import read_json, table, text


def check_pins(tree: Tree) -> Iterator[Finding]:
    """A header class in use without a pin, with two, or two classes pinned to the same content."""
    for suite in tree.suites:
        yield from unpinned(suite)
        yield from pinned_twice(suite)
        yield from equal_pins(suite)


def unpinned(suite: Suite) -> Iterator[Finding]:
    """A class that model calls use and no scenario pins, reported at its first use."""
    reported = {scenario.settings.header.class_ for scenario in suite.scenarios if scenario.settings.header.pin}
    for scenario in suite.scenarios:
        for name, (file, line) in classes_used(scenario).items():
            if name not in reported:
                reported.add(name)
                what = f"no scenario of {suite.path} pins the header class {name!r}"
                mend = f'set [header] class = "{name}", pin = true in one scenario, then: {scenario.refresh()}'
                yield Finding(scenario.at(file), line, "PIN", what, mend)


def pinned_twice(suite: Suite) -> Iterator[Finding]:
    """A second pin of a class."""
    pins: dict[str, Scenario] = {}
    for scenario in suite.scenarios:
        header = scenario.settings.header
        if header.pin and (first := pins.setdefault(header.class_, scenario)) is not scenario:
            what = f"the header class {header.class_!r} is pinned by {first.path} already"
            mend = "take pin = true and the header.* files out of one of the two"
            yield pin_finding(scenario, what, mend)


def equal_pins(suite: Suite) -> Iterator[Finding]:
    """Two classes whose pinned content is byte for byte the same: they are one class."""
    seen: dict[tuple[bytes, bytes], Scenario] = {}
    for scenario in suite.scenarios:
        content = (scenario.files.get("header.system.md", b""), scenario.files.get("header.tools.json", b""))
        if not scenario.settings.header.pin or not any(content):
            continue
        first = seen.setdefault(content, scenario)
        if first.settings.header.class_ != scenario.settings.header.class_:
            what = f"pins the same content as {first.path}, so the two header classes are one"
            yield pin_finding(scenario, what, f'use class = "{first.settings.header.class_}" in both, and one pin')


def pin_finding(scenario: Scenario, what: str, mend: str) -> Finding:
    """Return a finding at the ``pin`` of a scenario."""
    line = line_of_key(scenario.text("scenario.toml"), "pin")
    return Finding(scenario.at("scenario.toml"), line, "PIN", what, mend)


def check_header_files(tree: Tree) -> Iterator[Finding]:
    """A pin that cannot be read: tools that are no list of named tools, or nothing pinned at all."""
    for scenario in tree.scenarios:
        raw = scenario.files.get("header.tools.json")
        if raw is None:
            continue
        tools = tools_of(raw)
        if tools is None:
            what = "not a JSON list of tools, each with a name"
            yield Finding(scenario.at("header.tools.json"), None, "HEADER", what, scenario.refresh())
        elif raw.decode(errors="replace") != readable_json(json.loads(raw)):
            what = "not the canonical form (two spaces of indent, as-is characters, one final newline)"
            yield Finding(scenario.at("header.tools.json"), None, "HEADER", what, scenario.refresh())
        elif not tools and not scenario.text("header.system.md").strip():
            what = "the pin holds neither a system prompt nor a tool, so it pins nothing"
            yield Finding(scenario.at("header.system.md"), None, "HEADER", what, "set pin = false, or record anew")


def readable_json(value: Any) -> str:
    """Return the canonical text of a JSON file that people read: indented by two, keys as they came, final newline."""
    return json.dumps(value, indent=2, ensure_ascii=False) + "\n"


def classes_used(scenario: Scenario) -> Mapping[str, tuple[str, int | None]]:
    """Return the header classes of the scenario's model calls, with the file and line of the first use of each."""
    used: dict[str, tuple[str, int | None]] = {}
    for row in scenario.requests:
        if name := text(table(row.value).get("header")):
            used.setdefault(name, ("requests.golden.jsonl", row.line))
    if not used and calls_model(scenario):
        used[scenario.settings.header.class_] = ("scenario.toml", None)
    return used


def tools_by_class(suite: Suite) -> dict[str, frozenset[str]]:
    """Return the names of the tools each pinned header class offers; a class whose pin is unreadable is left out."""
    found: dict[str, set[str]] = defaultdict(set)
    for scenario in suite.scenarios:
        tools = tools_of(scenario.files.get("header.tools.json", b""))
        if scenario.settings.header.pin and tools is not None:
            found[scenario.settings.header.class_] |= set(tools)
    return {name: frozenset(tools) for name, tools in found.items()}


def tools_of(raw: bytes) -> list[str] | None:
    """Return the tool names of a ``header.tools.json`` (neutral form, or a provider's ``function`` form)."""
    try:
        return [str(tool["name"] if "name" in tool else tool["function"]["name"]) for tool in read_json(raw)]
    except (ValueError, KeyError, TypeError):
        return None
