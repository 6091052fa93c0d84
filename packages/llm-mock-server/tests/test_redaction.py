"""What is secret in a request, and that it is not shown."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from llm_mock_server import HttpRequest
from llm_mock_server.redaction import blanked, is_secret, key_of_header, redact_headers, redact_query, redact_url

SECRETS = """
authorization proxy-authorization x-api-key x-goog-api-key api-key cookie openai-organization set-cookie x-auth-token
x-access-token x-amz-security-token x-authorization authentication anthropic-api-key x-openai-key apikey
x-portkey-api-key helicone-auth cf-aig-authorization ocp-apim-subscription-key x-goog-iam-authorization-token
x-session-token x-password x-secret key KEY access_token token sig secret client_secret X-Goog-Signature
X-Amz-Signature password passwd X-Amz-Credential
"""

OPEN = "host user-agent content-type accept anthropic-version x-session x-team alt pageSize model design x-request-id"


@pytest.mark.parametrize("name", SECRETS.split())
def test_a_secret_is_told_by_its_name(name):
    assert is_secret(name)
    assert redact_headers(((name.lower(), "SEKRET"),)) == ((name.lower(), "***"),)
    assert redact_query(f"a=1&{name}=SEKRET&b=2") == f"a=1&{name}=***&b=2"


@pytest.mark.parametrize("name", OPEN.split())
def test_what_is_none_is_shown(name):
    assert not is_secret(name)
    assert redact_headers(((name, "shown"),)) == ((name, "shown"),)
    assert redact_query(f"{name}=shown") == f"{name}=shown"


@pytest.mark.parametrize(
    ("query", "shown"),
    [
        ("", ""),
        ("key", "key"),
        ("k%65y=S", "k%65y=***"),
        ("a=1;token=S;b", "a=1;token=***;b"),
        ("key=S=T&alt=sse", "key=***&alt=sse"),
        ("key=S&key=T", "key=***&key=***"),
    ],
)
def test_queries(query, shown):
    assert redact_query(query) == shown


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("/v1/models?key=S", "/v1/models?key=***"),
        ("http://user:S@h/p?a=b", "http://***@h/p?a=b"),
        ("//user:S@h/p", "//***@h/p"),
        ("/a@b", "/a@b"),
    ],
)
def test_urls(url, shown):
    assert redact_url(url) == shown


def test_urls_in_headers_hold_secrets_too():
    headers = (("host", "user:S@h:1"), ("referer", "http://u:S@h/?a=1&token=S"), ("x", "a?"))
    assert redact_headers(headers) == (("host", "***@h:1"), ("referer", "http://***@h/?a=1&token=***"), ("x", "a?"))


def test_a_text_loses_the_secrets_of_its_request():
    headers = (
        ("authorization", "Bearer sk-secret"),
        ("x-team", "sk-open"),
        ("x-api-key", "any"),
        ("cookie", "sid=c00kie; b=2"),
    )
    text = "no Bearer sk-secret, no sk-secret, no aa%20b%20c, no 'aa b c'; any sk-open, c00kie, Bearer sid"
    assert blanked(text, headers, "key=aa%20b%20c") == "no ***, no ***, no ***, no '***'; any sk-open, ***, Bearer sid"


def test_a_request_does_not_print_its_secrets():
    made = HttpRequest("POST", "/x", "key=S1", (("authorization", "S2"), ("x", "y")), b"body", "gemini", {}, 0)
    assert "S1" not in repr(made)
    assert "S2" not in repr(made)
    assert "('x', 'y')" in repr(made)


def test_a_secret_tells_callers_apart_unseen():
    alice, bob = key_of_header("authorization", "Bearer alice"), key_of_header("authorization", "Bearer bob")
    assert alice != bob
    assert alice == key_of_header("authorization", "Bearer alice") == key_of_header("authorization", alice)
    assert alice.startswith("authorization#")
    assert key_of_header("x-session", "alice") == "alice"


@given(st.text(min_size=201), st.text(min_size=201))
def test_a_long_key_is_cut_and_still_its_own(one, other):
    keys = [key_of_header("x-session", value) for value in (one, other)]
    assert max(map(len, keys)) < 220
    assert (keys[0] == keys[1]) == (one == other)
