"""No key, personal path, fixed port or private host. Keys here are put together so that none stands in a file."""

import base64
import json
from urllib.parse import quote

import pytest
from fixture_guard import Surroundings
from fixture_guard.checks.secrets import SHAPES, base64_inside, spellings
from hypothesis import given, settings
from hypothesis import strategies as st

SEED = "s/one/workspace/notes.txt"
LETTERS = "a8Fk2mQ9xLr7Tz4Wb6Yc3Nd5Vh1Jg0Pe8Su2Ki7Mo4"

KEYS = {
    "an Anthropic key": "sk-" + "ant-api03-" + LETTERS,
    "an OpenRouter key": "sk-" + "or-v1-" + "0123456789abcdef" * 4,
    "an OpenAI key": "sk-" + "proj-" + LETTERS,
    "a Google API key": "AI" + "za" + LETTERS[:35],
    "a Google OAuth token": "ya" + "29." + LETTERS,
    "an xAI key": "xai" + "-" + LETTERS,
    "a Groq key": "gsk" + "_" + LETTERS,
    "a Hugging Face token": "hf" + "_" + LETTERS[:34],
    "a Perplexity key": "pplx" + "-" + LETTERS,
    "an AWS access key id": "AK" + "IA" + "Q2W3E4R5T6Y7U8I9",
    "a GitHub token": "gh" + "p_" + LETTERS[:36],
    "a GitLab token": "glpat" + "-" + LETTERS[:20],
    "a Slack token": "xo" + "xb-" + "1234567890-" + LETTERS[:12],
    "an npm token": "npm" + "_" + LETTERS[:36],
    "a package index token": "py" + "pi-" + LETTERS + LETTERS[:20],
    "a Stripe key": "sk" + "_live_" + LETTERS[:24],
    "a JSON Web Token": "ey" + "JhbGciOiJIUzI1." + "ey" + "JzdWIiOiIxMjM0." + LETTERS,
    "a private key": "-----BEGIN " + "RSA PRIVATE KEY-----",
    "credentials in a URL": "https://" + "bob:" + "hunter2hunter2" + "@git.test/x",
}


def test_every_shape_has_a_key_here():
    assert set(KEYS) == set(SHAPES)


@pytest.mark.parametrize("kind", KEYS)
def test_a_known_key_is_found_by_its_shape(check_guard, kind):
    check_guard({SEED: f"line one\nkey: {KEYS[kind]} .\n"}, ["one/workspace/notes.txt:2 SECRET_SHAPE"])


def test_a_finding_does_not_repeat_the_key(build):
    from fixture_guard import check, render

    key = KEYS["an OpenAI key"]
    found = check(build({SEED: key}), Surroundings(environment={"OPENAI_API_KEY": key}))
    assert len(found) == 2
    assert LETTERS[:8] not in render(found, "json")


@pytest.mark.parametrize(
    "text", ["sk-" + "ant-EXAMPLE-" + LETTERS, "ask-anthropic-" + LETTERS, "sk-short", "https://user@host.test/"]
)
def test_what_only_resembles_a_key_is_none(check_guard, text):
    check_guard({SEED: text}, [])


SECRET = 'pa"ss/w+rd~Ü'


@pytest.mark.parametrize(
    "spell",
    [
        str,
        lambda key: base64.b64encode(key.encode()).decode(),
        lambda key: base64.b64encode(b"user:" + key.encode()).decode(),
        lambda key: base64.b64encode(b"me:" + key.encode() + b"!").decode(),
        lambda key: base64.urlsafe_b64encode(b"u:" + key.encode()).decode(),
        lambda key: quote(key, safe=""),
        lambda key: json.dumps({"k": key}),
        lambda key: json.dumps(json.dumps({"k": key})),
    ],
)
def test_the_value_of_a_key_variable_is_found_in_any_spelling(check_guard, spell):
    around = Surroundings(environment={"ACME_API_KEY": SECRET, "PATH": "/bin"})
    check_guard({SEED: f"\n{spell(SECRET)}\n"}, ["one/workspace/notes.txt:2 SECRET_VALUE"], around)
    check_guard({SEED: f"\n{spell('another value')}\n"}, [], around)


@pytest.mark.parametrize(
    ("name", "value"),
    [("EDITOR", "some-editor"), ("API_KEY", "short"), ("API_KEY", "dummy-key"), ("KEYBOARD", "us-layout")],
)
def test_a_variable_without_a_secret_is_not_looked_for(check_guard, name, value):
    check_guard({SEED: f"some-editor short dummy-key us-layout {name}\n"}, [], Surroundings(environment={name: value}))


@given(before=st.binary(max_size=5), secret=st.binary(min_size=8, max_size=40), after=st.binary(max_size=5))
@settings(deadline=None, max_examples=60)
def test_base64_around_a_secret_always_holds_its_inner_part(before, secret, after):
    whole = base64.b64encode(before + secret + after).decode()
    inner = base64_inside(secret, len(before) % 3)
    assert inner in whole
    assert len(inner) >= len(secret) * 8 // 6 - 2


@given(st.text(min_size=8, max_size=30))
@settings(deadline=None, max_examples=60)
def test_spellings_are_distinct_and_begin_with_the_raw_one(value):
    found = spellings(value)
    assert next(iter(found.items())) == ("raw", value)
    assert len(set(found.values())) == len(found)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ('{"api_key": "' + LETTERS + '"}', True),
        (r'"{\"access_token\":\"' + LETTERS + r'\"}"', True),
        ("Authorization: Bearer " + LETTERS, True),
        ("client_secret = '" + LETTERS[:20] + "'", True),
        ('{"signature": "' + LETTERS + '"}', False),
        ('{"api_key": "{{key}}"}', False),
        ('{"api_key": "dummy-key-for-replay"}', False),
        ("token: aaaaaaaaaaaaaaaaaaaaaaaa", False),
        ("input_tokens: 1234", False),
        ("sha256 = " + "0123456789abcdef" * 4, False),
    ],
)
def test_a_random_value_under_the_name_of_a_key_is_found(check_guard, text, found):
    check_guard({SEED: text}, ["one/workspace/notes.txt:1 SECRET_ENTROPY"] if found else [])


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("/home/" + "kathrin/src", "PERSONAL_PATH"),
        ("/Users/" + "kathrin/src", "PERSONAL_PATH"),
        (r"C:\Users" + r"\kathrin\src", "PERSONAL_PATH"),
        (r"C:\\Users" + r"\\kathrin", "PERSONAL_PATH"),
        ("file:///home/" + "kathrin/x", "PERSONAL_PATH"),
        ("cd /root/" + ".cache", "PERSONAL_PATH"),
        ("/var/folders/" + "zz/abc123/T", "PERSONAL_PATH"),
        ("/home/user/project", ""),
        ("{{home}}/home/kathrin", ""),
        ("https://site.test/home/kathrin", ""),
        ("/homes/kathrin", ""),
        ("http://127.0.0.1:43117/menu.html", "PORT"),
        ("listening on localhost:8080", "PORT"),
        ("[::1]:5000", "PORT"),
        ("http://127.0.0.1:{{port}}/", ""),
        ("127.0.0.1:0", ""),
        ("HTTP_PROXY=http://127.0.0.1:9", ""),
        ("http://192.168.1.17/x", "HOST"),
        ("10.0.0.5:80", "HOST"),
        ("https://wiki.intranet/x", "HOST"),
        ("version 1.10.0.0.5", ""),
        ("import os.local", ""),
        ("8.8.8.8", ""),
    ],
)
def test_nothing_of_the_machine_it_was_made_on(check_guard, text, code):
    check_guard({SEED: f"\n{text}\n"}, [f"one/workspace/notes.txt:2 {code}"] if code else [])


@pytest.mark.parametrize(
    ("text", "code"),
    [("/srv/people/kathrin/x", "PERSONAL_PATH"), ("ran on build-box-17", "HOST"), ("/srv/people/kathrinx", "")],
)
def test_the_home_and_the_name_of_this_machine_are_looked_for(check_guard, text, code):
    around = Surroundings(home="/srv/people/kathrin", hostname="build-box-17")
    check_guard({SEED: text}, [f"one/workspace/notes.txt:1 {code}"] if code else [], around)
