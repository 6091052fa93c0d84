"""Hollow goldens: recordings that faithfully pin a run which did not do what it was written to show.

Each check reads a ``Story`` (what was asked, what happened, what its author expects), so that it can be tried on logs
of any layout. A finding is silenced by saying in ``[expect]`` that this is what shall happen, never by a list of
exceptions.
"""

import json
import re
from collections.abc import Iterable, Iterator
from pathlib import PurePosixPath

from msgspec import Struct

from fixture_guard.checks.headers import classes_used, tools_by_class
from fixture_guard.evidence import Call, Evidence, Result, read_evidence, request_results
from fixture_guard.finding import Finding
from fixture_guard.layout import Scenario, Tree
from fixture_guard.prompts import answer_demanded, lines_demanded, tools_demanded, tools_forbidden
from fixture_guard.settings import Expect
from fixture_guard.shapes import table, text


class Story(Struct, frozen=True, kw_only=True):
    """One scenario as the hollow checks see it.

    ``script`` is the path of what holds the prompts; ``tools`` are the names on offer, ``None`` where they are unknown;
    ``oracle`` is true where a person wrote down the final tree; ``failed`` are the tools an editor was shown as failed.
    """

    path: str
    script: str
    prompts: tuple[str, ...]
    evidence: Evidence
    expect: Expect = Expect()
    tools: frozenset[str] | None = None
    oracle: bool = False
    failed: tuple[tuple[str, int], ...] = ()


def check_exit_codes(story: Story) -> Iterator[Finding]:
    """A command failed, and ``exit_codes`` does not say so."""
    for result in story.evidence.results:
        for code in exit_codes(result.text):
            if code not in {*story.expect.exit_codes, 0}:
                what = f"a tool's result ends in exit code {code}, and nobody expects it"
                mend = f"record a run that works, or write exit_codes = [0, {code}] into [expect] of scenario.toml"
                yield Finding(result.path, result.line, "EXIT_CODE", what, mend)
    if not story.expect.error_codes and not any(story.expect.exit_codes):
        for path, line in story.failed:
            what = "the editor was shown a failed tool call, and nobody expects it"
            yield Finding(
                path, line, "EXIT_CODE", what, "record a run that works, or write exit_codes = [0, 1] into [expect]"
            )


def check_unknown_tools(story: Story) -> Iterator[Finding]:
    """The model called a tool the agent does not have, and ``error_codes`` does not say so."""
    for result in story.evidence.results:
        unknown = result.code == UNKNOWN_TOOL or (result.is_error and UNKNOWN_WORDS.search(result.text))
        if unknown and UNKNOWN_TOOL not in (story.expect.error_codes or ()):
            what = "a tool that the agent does not have was called, and nobody expects it"
            mend = f'offer the tool, or write error_codes = ["{UNKNOWN_TOOL}"] into [expect] of scenario.toml'
            yield Finding(result.path, result.line, "UNKNOWN_TOOL", what, mend)


def check_uncalled_tools(story: Story) -> Iterator[Finding]:
    """The prompt tells the model to call a tool, and no session of the scenario calls it."""
    called = {call.name for call in story.evidence.calls}
    for prompt in story.prompts:
        for tool in tools_demanded(prompt, story.tools):
            if tool not in called and tool not in story.expect.tools_not_called:
                what = f"a prompt names the tool {tool}, and no model call of the recording calls it"
                mend = f'record a run that does, or write tools_not_called = ["{tool}"] into [expect] of scenario.toml'
                yield Finding(story.script, None, "UNCALLED_TOOL", what, mend)


def check_forbidden_tools(story: Story) -> Iterator[Finding]:
    """A prompt forbids a tool, and the model calls it all the same."""
    forbidden = {tool for prompt in story.prompts for tool in tools_forbidden(prompt, story.tools)}
    # Two prompts may say different things of one tool; which of them a call belongs to is not told apart here.
    forbidden -= {tool for prompt in story.prompts for tool in tools_demanded(prompt, story.tools)}
    if len(story.prompts) > 1:
        forbidden.discard("*")
    for call in story.evidence.calls:
        if call.direct and forbidden & {call.name, "*"} and call.name not in (story.expect.tools_called or ()):
            what = f"a prompt forbids the tool {call.name}, and it is called here"
            mend = f"record a run that obeys, or name {call.name} among tools_called in [expect] of scenario.toml"
            yield Finding(call.path, call.line, "FORBIDDEN_TOOL", what, mend)


def check_answers(story: Story) -> Iterator[Finding]:
    """A prompt wants an exact reply that the model never gives, and ``answer_contains`` states no other."""
    for prompt in () if story.expect.answer_contains else story.prompts:
        answer = answer_demanded(prompt)
        if answer and story.evidence.said and not any(answer in text for text in story.evidence.said):
            what = f"a prompt wants the reply {answer}, and the model never says it"
            mend = "record a run that does, or say in [expect] answer_contains what the answer holds"
            yield Finding(story.script, None, "ANSWER", what, mend)


def check_line_counts(story: Story) -> Iterator[Finding]:
    """A prompt says how many lines a file will have, and the last look at it shows another number.

    A look is a command that is ``cat FILE`` and nothing else, for a file the prompt names. Where a person wrote down
    the final tree, that decides.
    """
    for prompt in () if story.oracle else story.prompts:
        wanted = lines_demanded(prompt)
        look = last_look(prompt, story.evidence) if wanted is not None else None
        if look and wanted != (shown := len(look[1].text.rstrip("\n").split("\n"))):
            what = f"a prompt says {look[0]} will have {wanted} line(s), and the last look at it shows {shown}"
            mend = "record a run that does it, or set [workspace] final = true and write workspace.expected/"
            yield Finding(look[1].path, look[1].line, "LINE_COUNT", what, mend)


def check_expected_names(story: Story) -> Iterator[Finding]:
    """``tools_not_called`` names a tool nobody offers, so it can never be broken."""
    for tool in story.expect.tools_not_called:
        if story.tools is not None and tool not in story.tools:
            near = ", ".join(sorted(story.tools)) or "none"
            what = f"tools_not_called names {tool}, which the pinned header does not offer"
            mend = f"name one of the tools on offer ({near}), or take it out"
            yield Finding(f"{story.path}/scenario.toml", None, "EXPECT", what, mend)


def last_look(prompt: str, evidence: Evidence) -> tuple[str, Result] | None:
    """Return the file and the result of the last ``cat FILE`` of a file the prompt names."""
    results = {result.call_id: result for result in evidence.results}
    looks = ((shown_file(call), results.get(call.id)) for call in evidence.calls)
    found = [(file, result) for file, result in looks if file and file in prompt and result and not result.is_error]
    return found[-1] if found else None


def shown_file(call: Call) -> str:
    """Return the name of the file a call shows whole by ``cat FILE``; ``""`` for any other call."""
    try:
        arguments = json.loads(call.arguments)
    except ValueError:
        return ""
    match = CAT.fullmatch(text(table(arguments).get("command")))
    return PurePosixPath(match[1]).name if match else ""


def exit_codes(text: str) -> Iterable[int]:
    """Return the exit codes a tool's result reports, in the words of the agents seen so far."""
    return [int(next(filter(None, match))) for match in EXIT_CODE.findall(text)]


def stories(tree: Tree) -> Iterator[Story]:
    """Return the story of every scenario whose logs are all there to tell it."""
    for suite in tree.suites:
        offers = tools_by_class(suite)
        for scenario in suite.scenarios:
            if scenario.is_told:
                yield read_story(scenario, offers)


def read_story(scenario: Scenario, offers: dict[str, frozenset[str]]) -> Story:
    """Return one scenario's story, with the tools that its header classes offer."""
    classes = tuple(classes_used(scenario)) or (scenario.settings.header.class_,)
    known = [offers[name] for name in classes if name in offers]
    evidence = read_evidence((scenario.at(log.name), log.log) for log in scenario.logs)
    foreign = any(event.type == "llm/call" for log in scenario.logs for event in log.log.events)
    if foreign:
        rows = ((row.line, row.value) for row in scenario.requests)
        results = tuple(request_results(scenario.at("requests.golden.jsonl"), rows))
        evidence = Evidence(evidence.calls, results, evidence.said)
    return Story(
        path=scenario.path,
        script=scenario.at("input.json"),
        prompts=scenario.prompts,
        evidence=evidence,
        expect=scenario.settings.expect,
        tools=frozenset().union(*known) if known else None,
        oracle=scenario.settings.workspace.final,
        failed=tuple(failed_tools(scenario)) if foreign else (),
    )


def failed_tools(scenario: Scenario) -> Iterator[tuple[str, int]]:
    """Return where an editor was shown a tool call with status ``failed``."""
    for row in scenario.frames:
        update = table(table(table(row.value).get("params")).get("update"))
        if update.get("status") == "failed":
            yield scenario.at("stdout.golden.jsonl"), row.line


UNKNOWN_TOOL = "UNKNOWN_TOOL"
UNKNOWN_WORDS = re.compile(r"UNKNOWN_TOOL|\bunknown tool\b|\bno such tool\b|\btool \S+ not found\b", re.IGNORECASE)
EXIT_CODE = re.compile(
    r"\[exit code: (-?\d+)\]|\bexit(?:ed)?(?: with)?(?: code| status)[:=]? (-?\d+)\b|\"exit_?code\": ?(-?\d+)",
    re.IGNORECASE,
)
CAT = re.compile(r"\s*cat (?:-- )?[\"']?([^\s\"'|;&<>$`*?-][^\s\"'|;&<>$`*?]*)[\"']?\s*")
