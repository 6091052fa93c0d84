"""The fixture, in tests of its own."""

import subprocess
import sys

import pytest

CALL = """
import json, urllib.error, urllib.request

def call(server):
    body = json.dumps({"model": "m", "messages": [{"role": "user", "content": "hi"}]}).encode()
    request = urllib.request.Request(server.base_url("openai-chat") + "/chat/completions", body)
    try:
        with urllib.request.urlopen(request, timeout=20) as answer:
            return json.load(answer)["choices"][0]["message"]["content"]
    except urllib.error.HTTPError as error:
        with error:
            return error.code
"""


def check(pytester, text, *lines, **outcomes):
    pytester.makepyfile(CALL + text)
    result = pytester.runpytest_inprocess("-p", "no:cacheprovider", "-p", "no:hypothesispytest")
    result.assert_outcomes(**outcomes)
    if lines:
        result.stdout.fnmatch_lines(lines)
    return result


def test_a_script_is_played(pytester):
    text = """
def test(llm_mock_server):
    server = llm_mock_server("rate_limit", {"kind": "say", "text": "{{who}}"}, values={"who": "me"})
    other = llm_mock_server("success", options={"successText": "other"}, repeat_last=True)
    assert [call(server), call(server), call(other), call(other)] == [429, "me", "other", "other"]
    assert [captured.label for captured in server.requests] == ["rate_limit", "say"]
    assert server.provider.remaining == 0
"""
    check(pytester, text, passed=1)


def test_what_is_left_of_a_script_fails_the_test(pytester):
    text = """
def test(llm_mock_server):
    assert call(llm_mock_server("success", "stall", "success")) == "mock response recovered"
"""
    left = "*2 answers of the script*: script: entries[[]1[]] (stall), script: entries[[]2[]] (success); answ*"
    check(pytester, text, left, "mend: *unconsumed_ok=True", passed=1, errors=1)


def test_one_answer_that_is_left_is_one_and_what_was_asked_is_told(pytester):
    text = """
def test(llm_mock_server):
    server = llm_mock_server("success", "rate_limit", "stall")
    assert [call(server), call(server)] == ["mock response recovered", 429]
"""
    left = "1 answer of the script was asked for by nobody: script: entries[[]2[]] (stall); answered were success, r*"
    check(pytester, text, left, passed=1, errors=1)


def test_a_call_beyond_the_script_fails_the_test(pytester):
    text = """
def test(llm_mock_server):
    server = llm_mock_server("success")
    assert [call(server), call(server)] == ["mock response recovered", 500]
"""
    told = (
        "the mock server refused a call (exhausted): script: model call 1 (POST /v1/chat/completions, model m, "
        "1 messages) has no entry, the script holds 1; its last user message is 'hi'"
    )
    check(pytester, text, told, "mend: add an entry to script, or say refused_ok=True", passed=1, errors=1)


@pytest.mark.parametrize(
    ("entry", "values", "why"),
    [
        ('{"kind": "say", "text": "{{who}}"}', "{}", "(unfilled): script: entries[[]0[]]: {{who}}: nothing is known*"),
        ('{"kind": "say", "toolCalls": [{"name": "{{who}}", "arguments": {}}]}', '{"who": ""}', "(invalid): script: *"),
    ],
)
def test_a_call_that_nothing_fills_fails_the_test(pytester, entry, values, why):
    text = f"""
def test(llm_mock_server):
    assert call(llm_mock_server({entry}, values={values}, unconsumed_ok=True)) == 500
"""
    told = f"the mock server refused a call {why}, asked by model call 0 (*; its last user message is 'hi'"
    check(pytester, text, told, "mend: *, or say refused_ok=True", passed=1, errors=1)


def test_calls_that_are_refused_can_be_allowed(pytester):
    text = """
def test(llm_mock_server):
    assert call(llm_mock_server(refused_ok=True)) == 500
"""
    check(pytester, text, passed=1)


def test_a_reset_forgets_what_was_refused(pytester):
    text = """
def test(llm_mock_server):
    server = llm_mock_server()
    assert call(server) == 500
    server.reset()
"""
    check(pytester, text, passed=1)


def test_what_is_left_can_be_allowed(pytester):
    text = """
def test(llm_mock_server):
    llm_mock_server("success", unconsumed_ok=True)
"""
    check(pytester, text, passed=1)


def test_a_test_that_failed_is_not_failed_again(pytester):
    text = """
def test(llm_mock_server):
    llm_mock_server("success")
    assert False
"""
    check(pytester, text, failed=1)


def test_the_entries_of_a_session_that_never_came_are_named(pytester):
    text = """
def test(llm_mock_server):
    llm_mock_server("success", {"kind": "say", "text": "x", "when": {"session": "a"}}, cursor={"header": "x-who"})
"""
    check(pytester, text, "*script: entries[[]0[]] (success), script: entries[[]1[]] (say)*", passed=1, errors=1)


def test_a_provider_that_is_down_at_first(pytester):
    text = """
import pytest

def test(llm_mock_server):
    server = llm_mock_server("connection_refused", "success")
    with pytest.raises(OSError, match="refused"):
        call(server)
    server.start_listening()
    assert call(server) == "mock response recovered"
"""
    check(pytester, text, passed=1)


def test_what_an_observer_raised_fails_the_test(pytester):
    text = """
def test(llm_mock_server):
    assert call(llm_mock_server("success", on_request=lambda captured: 1 / 0)) == "mock response recovered"
"""
    check(pytester, text, "the mock server caught ZeroDivisionError: *", passed=1, errors=1)


def test_a_server_is_closed_although_its_script_is_wrong(pytester):
    text = """
def test(llm_mock_server):
    llm_mock_server("success", unconsumed_ok=True)
    llm_mock_server("sucess")
"""
    check(pytester, text, "*nearest known is 'success'*", failed=1)


def test_pytest_alone_imports_nothing_of_the_server():
    code = "import sys, pytest_llm_mock_server; print([name for name in sys.modules if 'llm_' in name])"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert loaded.strip() == "['pytest_llm_mock_server']"


@pytest.mark.parametrize("number", range(3))
def test_the_fixture_is_there_without_being_asked_for(llm_mock_server, number):
    assert llm_mock_server(unconsumed_ok=True).requests == ()
