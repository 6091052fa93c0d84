"""``session-snapshot init``."""

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click

from session_snapshot.commands.choosing import SNAPSHOTS, finish_interrupted
from session_snapshot.errors import Refused

SECONDS = 20.0


@click.command()
@click.argument("name", required=False, default="")
@SNAPSHOTS
@click.option("--command", help="The command line that starts the agent, e.g. 'my-agent --acp'.")
@click.option("--dialect", help="The dialect in which it speaks to its model.")
@click.option("--base-url-env", help="The variable that tells it where its model is.")
@click.option("--key-env", help="The variable that holds its key (its name; the key itself is never asked for).")
@click.option("--model-env", default="", help="The variable that tells it the model's name, if there is one.")
@click.option("--login", default="", help="The login method to choose before a session is made.")
@click.option("--yes", is_flag=True, help="Take what is usual for all that no flag says.")
@click.option("--keep", is_flag=True, help="Write the suite even if its agent cannot be started yet.")
@click.option(
    "--seconds", type=click.FloatRange(0, min_open=True), default=SECONDS, show_default=True,
    help="How long each step of the handshake may take.",
)  # fmt: skip
@click.option("--prompt", help="With SUITE/SCENARIO: what the new scenario says to the agent.")
@click.option("--answer", help="With SUITE/SCENARIO: a script answers this, and no model is asked.")
def init(name: str, snapshots: Path, seconds: float, yes: bool, keep: bool, **told: Any) -> None:
    """Make a new suite NAME from the command line of an agent, or a new scenario SUITE/SCENARIO in one.

    A suite: asks on a terminal for what no flag says; then starts the agent, shows what it says of itself, and pins
    that as the scenario `handshake`. A scenario: writes one that sends a prompt, ready to be recorded.
    """
    finish_interrupted(snapshots)
    asks = sys.stdin.isatty() and sys.stdout.isatty() and not yes
    suite, slash, scenario = name.replace("\\", "/").rstrip("/").partition("/")
    if slash:
        make_scenario(snapshots, suite, scenario, told, asks)
        return
    refuse_given(told, ("prompt", "answer"), "only for a scenario", f"session-snapshot init {name or 'SUITE'}/SCENARIO")
    make_suite(suite, snapshots, seconds, keep, told, asks, yes)


def make_suite(
    name: str, snapshots: Path, seconds: float, keep: bool, told: Mapping[str, Any], asks: bool, yes: bool
) -> None:
    """Ask, then make it."""
    from session_snapshot.init.answers import QUESTIONS, Answers, check_suite, check_variable
    from session_snapshot.init.make import init_suite

    suite = answered("NAME", "name of the suite", name, "", asks, lambda text: check_suite(text, snapshots))
    so_far: dict[str, str] = {}
    checked: dict[str, Any] = {}
    for key, question in QUESTIONS.items():
        given, usual = told[key] or "", question.usual(so_far)
        checked[key] = answered(
            question.flag, question.words, given or (usual if yes else ""), usual, asks,
            lambda text, check=question.check: check(text, snapshots / suite),
        )  # fmt: skip
        so_far[key] = str(checked[key])
    if told["model_env"]:
        check_variable(told["model_env"], snapshots)
    answers = Answers(suite, model_env=told["model_env"], login=told["login"], **checked)
    init_suite(answers, snapshots, seconds, lambda why: keep or (asks and wants_kept(why)), click.echo)


def wants_kept(why: str) -> bool:
    """Ask whether to keep a suite whose handshake cannot be pinned."""
    click.echo(why, err=True)
    return click.confirm("write agent.toml and the handshake all the same, to edit them?", err=True)


def make_scenario(snapshots: Path, suite: str, name: str, told: Mapping[str, Any], asks: bool) -> None:
    """Ask for the prompt, then write it."""
    from session_snapshot.init.scenario import init_scenario, place_for

    suites = ("command", "dialect", "base_url_env", "key_env", "model_env", "login")
    refuse_given(told, suites, "only for a suite", f"session-snapshot init {suite} ...")
    place = place_for(snapshots, suite, name)
    prompt = answered("--prompt", "what it says to the agent", told["prompt"] or "", "", asks, not_empty)
    for line in init_scenario(place, snapshots, prompt, told["answer"]):
        click.echo(line)


def answered(flag: str, words: str, given: str, usual: str, asks: bool, check: Any) -> Any:
    """What a flag says or a person answers, checked; on a terminal a wrong answer is asked for again.

    Raises:
        Refused: the flag is wrong, or is missing and nobody can be asked.
    """
    if given:
        return check(given)
    if not asks:
        usually = f" (usual is {usual}), or --yes for all that is usual" if usual else ""
        raise Refused(f"{flag} is missing: {words}", f"give {flag}{usually}, or run it on a terminal, which asks")
    while True:
        text = click.prompt(words, default=usual or None)
        try:
            return check(text.strip())
        except Refused as error:
            click.echo(f"  {str(error).replace(chr(10), chr(10) + '  ')}", err=True)


def not_empty(text: str) -> str:
    """A text that says something.

    Raises:
        Refused: it does not.
    """
    if not text.strip():
        raise Refused("an empty prompt says nothing", 'write what to say, e.g. "Say PONG."')
    return text


def refuse_given(told: Mapping[str, Any], names: tuple[str, ...], why: str, mend: str) -> None:
    """Refuse flags that mean nothing here.

    Raises:
        Refused: one is given.
    """
    given = [f"--{name.replace('_', '-')}" for name in names if told.get(name)]
    if given:
        raise Refused(f"{' and '.join(given)}: {why}", mend)
