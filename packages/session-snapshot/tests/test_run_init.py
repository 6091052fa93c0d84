"""``session-snapshot init``: a suite from a command line, its agent started at once; whole, or not there at all."""

import contextlib
import json
import os
import select
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import watchfiles
from fixture_guard import check, read_files, surroundings
from session_snapshot.suites import find_places, load

SUITE = "mine"
WRITTEN = [
    "agent.toml",
    "handshake/input.json",
    "handshake/provenance.toml",
    "handshake/scenario.toml",
    "handshake/session.jsonl",
    "handshake/stdout.golden.jsonl",
]
KEPT = ["agent.toml", "handshake/input.json", "handshake/scenario.toml", "handshake/session.jsonl"]
PYTHON = Path(sys.executable).name
SEARCHED = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
COMMAND = f"{PYTHON} agent.py plan.json"
INFO = {"name": "scripted", "version": "1"}
LOGINS = {"protocolVersion": 1, "agentInfo": INFO, "authMethods": [{"id": "api-key"}, {"id": "browser"}]}


@pytest.fixture
def project(suite):
    """A folder with an agent and no suite of it; the suite that is there is another one's."""
    shutil.copy(Path(__file__).with_name("scripted_agent.py"), suite.root / "agent.py")
    plan(suite)
    return suite


def plan(project, **moments):
    """What the agent does, as ``Suite.plan`` says it."""
    project.plan(**moments)
    shutil.move(project.folder / "plan.json", project.root / "plan.json")
    (project.folder / "plan.json").write_text("{}", encoding="utf-8")


def init(project, *arguments, name=SUITE, command=COMMAND, yes=True, **variables):
    """Run it; exit code and output."""
    given = [*(["--command", command] if command else []), *(["--yes"] if yes else [])]
    done = project.command("init", name, *given, *arguments, PATH=SEARCHED, **variables)
    assert "Traceback (most recent call last)" not in done.stderr.partition("--- the end of its stderr")[0], done.stderr
    assert leftovers(project) == []
    return done.returncode, done.stdout + done.stderr


def leftovers(project):
    """What a command must not leave: processes, staged files, folders of runs."""
    folders = [*(project.root / ".snapshot-staging").glob("init-*"), *(project.root / "tmp").glob("snaprun-*")]
    return [*project.survivors(), *map(str, folders)]


def check_made(project, *said, arguments=(), files=WRITTEN, **more):
    """A suite is made: all is said, all files are there, the guard is content, and it replays; its folder."""
    code, output = init(project, *arguments, **more)
    assert code == 0, output
    assert [part for part in said if part not in output] == [], output
    folder = project.snapshots / SUITE
    assert sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()) == files
    assert check(read_files(project.snapshots), surroundings(), under=SUITE) == ()
    replayed = project.command("replay", SUITE, PATH=SEARCHED)
    assert replayed.returncode == 0, replayed.stdout
    return folder


def check_refused(project, *said, arguments=(), code=2, **more):
    """Nothing is made: the error says all this, and everything is as it was."""
    before = project.tree()
    found, output = init(project, *arguments, **more)
    assert found == code, output
    assert [part for part in said if part not in output] == [], output
    assert project.tree() == before
    assert not (project.snapshots / SUITE).exists()
    return output


# ── what it makes ───────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_suite_from_a_command_line(project):
    folder = check_made(
        project,
        f"starting {PYTHON} {{{{agent}}}}/../../agent.py {{{{agent}}}}/../../plan.json\n",
        "  agent:       scripted 9.8.7\n",
        "  protocol:    ACP version 1\n",
        "  session id:  hex digits (32 characters)\n",
        "pinned in snapshots/mine/handshake/stdout.golden.jsonl: read it",
        "  session-snapshot init mine/first-turn --prompt",
        "  session-snapshot record mine/first-turn   records the model (needs OPENAI_API_KEY, here or in .env)",
        "  session-snapshot replay mine ",
    )
    agent = load(next(place for place in find_places(project.snapshots) if place.suite == SUITE)).agent
    assert agent.description == "scripted"
    assert (agent.model.dialect, agent.model.base_url_env, agent.model.key_env) == (
        "openai-chat",
        "OPENAI_BASE_URL",
        "OPENAI_API_KEY",
    )
    assert (agent.record.key_env, agent.record.upstream_url) == ("OPENAI_API_KEY", "https://api.openai.com/v1")
    assert agent.install.kind == "none"
    provenance = (folder / "handshake" / "provenance.toml").read_text(encoding="utf-8")
    assert 'made_by = "refresh"\nupstream = "none"' in provenance
    golden = (folder / "handshake" / "stdout.golden.jsonl").read_text(encoding="utf-8")
    assert golden == "".join(project.frames.splitlines(keepends=True)[:2])


def test_flags_say_what_is_unusual_and_what_the_agent_does_by_itself_is_declared(project):
    plan(
        project,
        initialize=[["http", "GET", "/models"], ["respond", {"protocolVersion": 1, "agentInfo": INFO}]],
        session_new=[["write", ".scripted/state.json", "x"], ["write", "log.txt", "y"], ["open"]],
    )
    folder = check_made(
        project,
        "  it asked:    its model's endpoint for GET /v1/models\n",
        "  it left:     .scripted, log.txt in its working directory (declared in [persistence])\n",
        arguments=("--dialect", "openai-responses", "--key-env", "MY_KEY", "--model-env", "MY_MODEL"),
    )
    text = (folder / "agent.toml").read_text(encoding="utf-8")
    lines = ('dialect = "openai-responses"', 'key_env = "MY_KEY"', 'name_env = "MY_MODEL"', 'state = [".scripted", "l')
    assert [line for line in lines if line not in text] == []


def test_an_agent_that_lies_in_its_suite_and_wants_a_login(project):
    """The folder is there, with all the agent is made of, and only lacks what makes it a suite."""
    plan(project, initialize=[["respond", LOGINS]], authenticate=[["respond", {}]])
    folder = project.snapshots / SUITE
    folder.mkdir()
    for name in ("agent.py", "plan.json"):
        shutil.move(project.root / name, folder / name)
    command = f"{PYTHON} snapshots/mine/agent.py snapshots/mine/plan.json"
    files = sorted([*WRITTEN, "agent.py", "plan.json"])
    said = "  logins:      api-key, browser\n"
    check_made(project, said, arguments=("--login", "api-key"), files=files, command=command)
    assert f'command = ["{PYTHON}", "{{{{agent}}}}/agent.py", ' in (folder / "agent.toml").read_text(encoding="utf-8")
    assert '{"op": "authenticate", "methodId": "api-key"}' in (folder / "handshake" / "input.json").read_text()
    assert init(project, "--prompt", "Hi.", name="mine/turn", command="", yes=False)[0] == 0
    steps = json.loads((folder / "turn" / "input.json").read_text(encoding="utf-8"))["steps"]
    assert [step["op"] for step in steps] == ["initialize", "authenticate", "newSession", "prompt"]


# ── agents that cannot be pinned ────────────────────────────────────────────────────────────────────────────────────

SPEAKS = "see that the command speaks ACP on stdin and stdout (many agents want a flag for it: --acp, --stdio, acp)"


@pytest.mark.parametrize(
    ("moments", "said"),
    [
        (
            {"start": [["stderr", "no config file"], ["exit", 3]]},
            ["the agent exited (code 3)", "--- the end of its stderr\n  no config file\n", f"mend: {SPEAKS}"],
        ),
        (
            {"start": [["raw", "Welcome to my agent!\n"]]},
            ["stdout line 1 is not JSON: 'Welcome to my agent!'", "it wrote nothing to stderr", f"mend: {SPEAKS}"],
        ),
        (
            {"initialize": [["hang"]]},
            ["step 1 (initialize)", "0.4 s", "mend: if it is only slow: --seconds 1.2; else see that"],
        ),
        (
            {"session_new": [["hang"]]},
            ["  agent:       scripted", "step 2 (newSession)", "if it is only slow: --seconds 1.2; else see what"],
        ),
        (
            {"initialize": [["respond", LOGINS]], "session_new": [["refuse", -32000, "Authentication required"]]},
            ["makes no session without a login; it offers api-key, browser", "mend: --login api-key if a dummy key is"],
        ),
        (
            {"session_new": [["refuse", -32000, "Authentication required"]]},
            ["without a login; it offers no method", "mend: tell it of its key by --key-env, or by a file it reads"],
        ),
        (
            {"session_new": [["refuse", -32603, "Internal error"]]},
            ["newSession was answered by an error: ", "Internal error", "mend: correct the agent"],
        ),
        (
            {"session_new": [["call"], ["open"]]},
            ["the agent asked its model 1 time(s) before it was prompted", 'recording = "scripted"'],
        ),
        (
            {"session_new": [["open"], ["say", "<random>"]]},
            ["the agent, started again, is not the same:", "--- stdout: ", "mend: --keep, then say in snapshots/mine"],
        ),
        ({"eof": [["exit", 4]]}, ["the agent exited with code 4, declared is 0"]),
    ],
    ids=["dies", "garbage", "hangs", "hangs later", "login", "login unknown", "error", "asks", "unsteady", "exit code"],
)  # fmt: skip
def test_an_agent_that_cannot_be_pinned_leaves_nothing(project, moments, said):
    plan(project, **moments)
    output = check_refused(project, "nothing was written\nmend: ", *said, arguments=("--seconds", "0.4"))
    assert output.rstrip().splitlines()[-1].startswith("mend: ")


def test_a_suite_that_is_kept_is_mended_and_pinned_by_a_refresh(project):
    plan(project, start=[["stderr", "no config file"], ["exit", 3]])
    code, output = init(project, "--keep")
    assert code == 2
    assert "kept: snapshots/mine/agent.toml and snapshots/mine/handshake, without a golden; edit them, then\n" in output
    assert "  session-snapshot refresh mine/handshake --accept " in output
    folder = project.snapshots / SUITE
    assert sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()) == KEPT
    plan(project)
    assert project.command("refresh", "mine/handshake", "--accept").returncode == 0
    assert project.command("replay", SUITE).returncode == 0
    assert check(read_files(project.snapshots), surroundings(), under=SUITE) == ()


def test_what_the_guard_finds_is_not_written(project):
    """A path into somebody's home holds on no other machine."""
    home = "/home/somebody/plan.json" if os.name != "nt" else "C:/Users/somebody/plan.json"
    plan(project)
    check_refused(
        project,
        "the guard refuses the new suite",
        "PERSONAL_PATH",
        command=f"{COMMAND} --plan {home}",
    )


# ── refused before anything is started ──────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("arguments", "more", "said"),
    [
        ((), {"command": ""}, ["--command is missing: command that starts", "mend: give --command, or run it on a"]),
        ((), {"yes": False}, ["--dialect is missing", "mend: give --dialect (usual is openai-chat), or --yes for all"]),
        (("--dialect", "gemini"), {"yes": False}, ["--base-url-env is missing", "(usual is GOOGLE_GEMINI_BASE_URL)"]),
        ((), {"name": ""}, ["NAME is missing", "mend: give NAME"]),
        ((), {"name": "my suite"}, ["'my suite' cannot be a folder's name: ", "mend: write 'my-suite'"]),
        ((), {"name": "con"}, ["'con' cannot be a folder's name: CON is a device"]),
        ((), {"name": "scripted"}, ["'scripted' is there already (snapshots/scripted/agent.toml)", "scripted/NAME"]),
        (("--dialect", "gemni"), {}, ["unknown dialect 'gemni'", "mend: write 'gemini'"]),
        (("--key-env", "sk-0123456789abcdef"), {}, ["that is no variable's name", "mend: write the name, e.g. OPENAI"]),
        (("--model-env", "a b"), {}, ["that is no variable's name"]),
        ((), {"command": "scriptd-agent"}, ["the program 'scriptd-agent' was not found in the "]),
        (("--prompt", "x"), {}, ["--prompt: only for a scenario", "mend: session-snapshot init mine/SCENARIO"]),
        ((), {"CI": "1"}, ["this is CI", "mend: run it on your machine"]),
        ((), {"name": "scripted/more"}, ["--command: only for a suite", "mend: session-snapshot init scripted ..."]),
        (("--prompt", "x"), {"name": "scriptd/more", "command": ""}, ["no suite is called 'scriptd'", "are: scripted"]),
        (("--prompt", "x"), {"name": "scripted/turn", "command": ""}, ["scripted/turn is there already"]),
        (("--prompt", "x"), {"name": "scripted/a b", "command": ""}, ["'a b' cannot be a folder", "write 'a-b'"]),
        ((), {"name": "scripted/more", "command": ""}, ["--prompt is missing: what it says to the agent"]),
    ],
)  # fmt: skip
def test_what_cannot_be_made_is_refused_with_the_mend(project, arguments, more, said):
    plan(project, start=[["dump-environment", str(project.root / "started")]])
    output = check_refused(project, *said, arguments=arguments, **more)
    assert "0123456789abcdef" not in output, "what is no name may be a key"
    assert not (project.root / "started").exists()


def test_half_a_suite_is_not_written_over(project):
    """What a kill between two renames would leave."""
    (project.snapshots / SUITE / "handshake").mkdir(parents=True)
    code, output = init(project)
    assert code == 2
    assert "snapshots/mine/handshake is there already, without an agent.toml\nmend: remove that folder" in output


def test_snapshots_that_cannot_be_written(project):
    (project.root / "file").write_text("", encoding="utf-8")
    code, output = init(project, "--snapshots", "file")
    assert code == 2 and "file/mine cannot be written" in output.replace("\\", "/") and "mend: " in output


# ── a scenario ──────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_scenario_is_recorded_and_replayed(project):
    check_made(project)
    code, output = init(project, "--prompt", 'Say "PONG".', "--answer", "PONG", name="mine/pong", command="", yes=False)
    assert code == 0
    assert "snapshots/mine/pong/upstream.json written\n" in output
    assert "next: session-snapshot record mine/pong   (needs OPENAI_API_KEY, here or in .env: any word of 8" in output
    recorded = project.command("record", "mine/pong", OPENAI_API_KEY="any-word-of-8", PATH=SEARCHED)
    assert recorded.returncode == 0, recorded.stdout + recorded.stderr
    assert project.command("replay", "mine", PATH=SEARCHED).returncode == 0
    assert (project.snapshots / SUITE / "pong" / "header.system.md").is_file(), "the first scenario pins the header"
    assert check(read_files(project.snapshots), surroundings(), under=SUITE) == ()
    init(project, "--prompt", "x" * 200, name="mine/other", command="", yes=False)
    text = (project.snapshots / SUITE / "other" / "scenario.toml").read_text(encoding="utf-8")
    assert "[header]" not in text and 'recording = "live"' in text
    assert f'description = "{"x" * 97}..."' in text


# ── interrupted, and on a terminal ──────────────────────────────────────────────────────────────────────────────────

PATIENCE = 60
CTRL_C = "\x03"


@pytest.mark.skipif(sys.platform == "win32", reason="posix only: signals and process groups")
@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGKILL, -9)])
def test_an_interrupt_leaves_no_suite(project, number, code):
    marks = project.root / "marks"
    marks.mkdir()
    plan(project, initialize=[["mark", str(marks)], ["hang"]], eof=[["hang"]])
    process = subprocess.Popen(
        [sys.executable, "-m", "session_snapshot", "init", SUITE, "--command", COMMAND, "--yes"],
        cwd=project.root,
        env=project.environment(PATH=SEARCHED),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        start_new_session=True,
    )
    end = time.monotonic() + PATIENCE
    while not any(path.name.isdigit() for path in marks.iterdir()):
        assert time.monotonic() < end, process.communicate()[0]
        next(watchfiles.watch(marks, rust_timeout=200, yield_on_timeout=True, raise_interrupt=False))
    process.send_signal(number)
    assert process.wait(PATIENCE) == code
    process.communicate()
    assert not (project.snapshots / SUITE / "agent.toml").exists()
    plan(project)
    assert init(project)[0] == 0, "the next command finds nothing in its way"


@pytest.mark.skipif(sys.platform == "win32", reason="posix only: pseudo-terminals")
def test_on_a_terminal_it_asks_and_checks_each_answer_at_once(project):
    said = converse(
        project,
        ["init"],
        [
            ("name of the suite: ", "my suite"),
            ("mend: write 'my-suite'", None),
            ("name of the suite: ", "scripted"),
            ("is there already", None),
            ("name of the suite: ", SUITE),
            ("command that starts the agent: ", "./agnt.py"),
            ("is not there", None),
            ("command that starts the agent: ", COMMAND),
            ("dialect it speaks (openai-chat, openai-responses, anthropic-messages, gemini) [openai-chat]: ", "gemni"),
            ("mend: write 'gemini'", None),
            ("[openai-chat]: ", "gemini"),
            ("variable that tells it the base URL [GOOGLE_GEMINI_BASE_URL]: ", ""),
            ("variable that holds its key [GEMINI_API_KEY]: ", "sk-0123"),
            ("that is no variable's name", None),
            ("variable that holds its key [GEMINI_API_KEY]: ", "MY_KEY"),
            ("pinned in snapshots/mine/handshake/stdout.golden.jsonl", None),
        ],
    )
    assert "session-snapshot replay mine" in said
    text = (project.snapshots / SUITE / "agent.toml").read_text(encoding="utf-8")
    assert 'dialect = "gemini"' in text and 'key_env = "MY_KEY"' in text


@pytest.mark.skipif(sys.platform == "win32", reason="posix only: pseudo-terminals")
@pytest.mark.parametrize(("answer", "files"), [("y", KEPT), ("n", [])])
def test_on_a_terminal_it_asks_whether_to_keep_what_does_not_work(project, answer, files):
    plan(project, start=[["exit", 3]])
    flags = ["--dialect", "openai-chat", "--base-url-env", "URL", "--key-env", "KEY"]
    converse(
        project,
        ["init", SUITE, "--command", COMMAND, *flags],
        [("the agent exited (code 3)", None), ("to edit them? [y/N]: ", answer), ("mend: ", None)],
        code=2,
    )
    folder = project.snapshots / SUITE
    assert sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()) == files


@pytest.mark.skipif(sys.platform == "win32", reason="posix only: pseudo-terminals")
def test_ctrl_c_at_a_question_leaves_nothing(project):
    before = project.tree()
    converse(project, ["init", SUITE], [("command that starts the agent: ", CTRL_C)], code=130)
    assert project.tree() == before and leftovers(project) == []


def converse(project, arguments, turns, code=0):
    """Run a command on a terminal of its own: for each turn wait for a text behind the last one, then answer a line."""
    import pty

    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-m", "session_snapshot", *arguments],
        cwd=project.root,
        env=project.environment(PATH=SEARCHED, TERM="dumb"),
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        start_new_session=True,
        preexec_fn=own_terminal,
    )
    os.close(theirs)
    said, at = "", 0
    try:
        for text, answer in turns:
            while (found := said.find(text, at)) < 0:
                piece = hear(ours)
                assert piece, f"{text!r} was never said after {said[at:]!r}"
                said += piece
            at = found + len(text)
            if answer == CTRL_C:
                interrupt(ours, process)
            elif answer is not None:
                os.write(ours, answer.encode() + b"\n")
        while piece := hear(ours):
            said += piece
        assert process.wait(PATIENCE) == code, said
        return said
    finally:
        process.kill()
        process.wait()
        os.close(ours)


def interrupt(terminal, process):
    """Type Ctrl-C until it is heard: one that comes just before the process reads, waits for the next."""
    end = time.monotonic() + PATIENCE
    while process.poll() is None and time.monotonic() < end:
        os.write(terminal, CTRL_C.encode())
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(0.5)


def own_terminal():
    """In the child: the terminal is its own, so that Ctrl-C on it is heard."""
    import fcntl
    import termios

    signal.signal(signal.SIGINT, signal.default_int_handler)
    fcntl.ioctl(0, termios.TIOCSCTTY, 0)


def hear(terminal):
    """What comes next on a terminal; ``""`` at its end."""
    if not select.select([terminal], [], [], PATIENCE)[0]:
        return ""
    try:
        return os.read(terminal, 65536).decode(errors="replace").replace("\r\n", "\n")
    except OSError:  # how Linux tells that nobody is there any more
        return ""
