"""What an agent is told: its command, its environment, the files it finds in its home, and where it is installed."""

import os
import shutil
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import assert_never

from llm_mock_server import MockServer
from msgspec import Struct

from session_snapshot.agent import ConfigFile, render
from session_snapshot.errors import AgentError
from session_snapshot.sandbox import Sandbox, environment
from session_snapshot.suites import Loaded

BIN = "Scripts" if os.name == "nt" else "bin"
"""Where an environment of Python has its programs."""

DUMMY_KEY = "sk-dummy-0000000000000000"
"""The key every agent gets: no provider knows it."""


class Extra(Struct, frozen=True):
    """What one way of running adds: ``arguments`` at the end of the command, and ``variables``.

    ``account`` is a file that the agent writes then, and that is collected.
    """

    arguments: tuple[str, ...] = ()
    variables: dict[str, str] = {}
    account: Path | None = None


class Told(Struct, frozen=True):
    """All that an agent is booted with: the parts of its command, and what their placeholders stand for."""

    loaded: Loaded
    parts: tuple[str, ...]
    values: dict[str, str]
    environment: dict[str, str]

    def command(self) -> tuple[str, ...]:
        """The command to run.

        Raises:
            FixtureError: an unknown placeholder.
            AgentError: the program cannot be run.
        """
        command = render_all(self.parts, self.values)
        refuse_missing_program(self.loaded, command[0], self.environment["PATH"])
        return command


def tell(loaded: Loaded, box: Sandbox, server: MockServer, extra: Extra) -> Told:
    """Render the environment, and the agent's config files into the sandboxed home."""
    agent, model = loaded.agent, loaded.agent.model
    values = places(loaded, box) | {"origin": server.url, "key": DUMMY_KEY}
    if model is not None:
        values["baseUrl"] = server.base_url(model.dialect)
        write_files(model.files, box, values)
    declared = agent.env | loaded.scenario.env
    variables = {name: render(text, values, "agent.toml") for name, text in declared.items()}
    return Told(
        loaded,
        (*agent.command, *extra.arguments),
        values,
        environment(box, program_folders(loaded), model_variables(loaded, values) | variables | extra.variables),
    )


def render_all(parts: Iterable[str], values: Mapping[str, str]) -> tuple[str, ...]:
    """Fill the placeholders of strings of ``agent.toml``."""
    return tuple(render(part, values, "agent.toml") for part in parts)


def places(loaded: Loaded, box: Sandbox) -> dict[str, str]:
    """The placeholders that stand for folders."""
    install = install_root(loaded)
    return {"cwd": str(box.cwd), "home": str(box.home), "tmp": str(box.tmp), "agent": str(install)}


def model_variables(loaded: Loaded, values: Mapping[str, str]) -> dict[str, str]:
    """The variables that tell the agent where its model is."""
    model = loaded.agent.model
    if model is None:
        return {}
    pairs = ((model.base_url_env, values["baseUrl"]), (model.key_env, DUMMY_KEY), (model.name_env, model.name))
    return {name: value for name, value in pairs if name}


def write_files(files: list[ConfigFile], box: Sandbox, values: Mapping[str, str]) -> None:
    """Render config files into the sandboxed home."""
    for file in files:
        path = box.home / file.path
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(render(file.text, values, "agent.toml"), encoding="utf-8", newline="")


def install_root(loaded: Loaded) -> Path:
    """Where the agent is installed: its own environment, the suite's folder, or the environment of this process."""
    match loaded.agent.install.kind:
        case "uv":
            return agents_home(loaded) / loaded.place.suite
        case "none":
            return loaded.place.suite_folder.resolve()
        case "workspace":
            return Path(sys.prefix)
        case kind:
            assert_never(kind)


def agents_home(loaded: Loaded) -> Path:
    """The folder of the environments of third-party agents, beside ``snapshots/``."""
    return loaded.place.suite_folder.resolve().parent.parent / ".agents"


def program_folders(loaded: Loaded) -> list[Path]:
    """Where the agent's programs are."""
    root = install_root(loaded)
    return [root if loaded.agent.install.kind == "none" else root / BIN]


def refuse_missing_program(loaded: Loaded, program: str, path: str) -> None:
    """Refuse a command whose program cannot be run, before anything is booted.

    Raises:
        AgentError: it is not there, is a folder, or is not executable.
    """
    if shutil.which(program, path=path) is not None:
        return
    if Path(program).is_dir():
        raise AgentError(f"the agent's program {program!r} is a folder", "name the program in it, in agent.toml")
    if Path(program).is_file():
        raise AgentError(
            f"the agent's program {program!r} is not executable",
            f'chmod +x it, or name its interpreter first: command = ["python", "{program}"]',
        )
    raise AgentError(f"the agent's program {program!r} was not found", WHERE_FROM[loaded.agent.install.kind])


WHERE_FROM = {
    "uv": "nox -s snapshot_agents (it installs the suite's own lock)",
    "workspace": "make the program part of this environment or put it on the PATH, or correct command in agent.toml",
    "none": 'put it on the PATH, or name a file of the suite: command = ["node", "{{agent}}/agent.mjs"]',
}
"""How an agent's program comes to be there, by how it is installed."""
