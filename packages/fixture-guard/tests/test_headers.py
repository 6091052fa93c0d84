"""Header pins."""

import pytest
from fixture_guard import readable_json


def other(clean, name="two", **edits):
    """A second scenario beside the clean one, without a pin; ``edits`` replace text in its ``scenario.toml``."""
    files = {path.replace("/one/", f"/{name}/"): text for path, text in clean.items() if "/one/" in path}
    files[f"s/{name}/header.system.md"] = files[f"s/{name}/header.tools.json"] = None
    files[f"s/{name}/scenario.toml"] = clean["s/one/scenario.toml"].replace("pin = true", edits.get("header", ""))
    files[f"s/{name}/requests.golden.jsonl"] = clean["s/one/requests.golden.jsonl"].replace(
        '"header":"default"', f'"header":"{edits.get("used", "default")}"'
    )
    return files


def test_a_class_is_pinned_once_and_used_often(check_guard, clean):
    check_guard(other(clean), [])


def test_a_class_in_use_needs_a_pin(check_guard, clean):
    check_guard(other(clean, used="plan"), ["two/requests.golden.jsonl:1 PIN"])
    unpinned = {
        "s/one/scenario.toml": clean["s/one/scenario.toml"].replace("pin = true", ""),
        "s/one/header.system.md": None,
        "s/one/header.tools.json": None,
    }
    check_guard(unpinned, ["one/requests.golden.jsonl:1 PIN"])


def test_a_class_in_use_needs_a_pin_even_where_no_requests_say_so(check_guard, clean):
    changes = other(clean, header='class = "plan"')
    changes["s/two/requests.golden.jsonl"] = None
    check_guard(changes, ["two/requests.golden.jsonl MISSING", "two/scenario.toml PIN"])


def test_a_class_has_one_pin_only(check_guard, clean):
    changes = other(clean, header="pin = true")
    changes["s/two/header.system.md"] = "Another.\n"
    changes["s/two/header.tools.json"] = clean["s/one/header.tools.json"]
    check_guard(changes, ["two/scenario.toml:5 PIN"])


@pytest.mark.parametrize(("system", "findings"), [(None, ["two/scenario.toml:5 PIN"]), ("Another.\n", [])])
def test_two_classes_pin_two_contents(check_guard, clean, system, findings):
    changes = other(clean, header='class = "plan"\npin = true', used="plan")
    changes["s/two/scenario.toml"] = changes["s/two/scenario.toml"].replace(
        'class = "plan"\npin', 'class = "plan"\npin'
    )
    changes["s/two/header.system.md"] = system or clean["s/one/header.system.md"]
    changes["s/two/header.tools.json"] = clean["s/one/header.tools.json"]
    line = "6" if findings else ""
    check_guard(changes, [finding.replace(":5", f":{line}") for finding in findings])


@pytest.mark.parametrize(
    ("tools", "system", "findings"),
    [
        ("{}\n", None, []),
        ('{"a": 1}\n', None, ["one/header.tools.json HEADER"]),
        ("[{}]\n", None, ["one/header.tools.json HEADER"]),
        ('[{"name": "bash"}]\n', None, ["one/header.tools.json HEADER"]),
        (readable_json([{"name": "bash"}]), None, []),
        (readable_json([{"type": "function", "function": {"name": "bash"}}]), None, []),
        (readable_json([]), "\n", ["one/header.system.md HEADER"]),
    ],
)
def test_a_pin_is_readable(check_guard, clean, tools, system, findings):
    changes = {"s/one/header.tools.json": tools, "s/one/header.system.md": system or clean["s/one/header.system.md"]}
    asks_nothing = clean["s/one/input.json"].replace("Use the bash tool to echo OK.", "Go on.")
    check_guard({**changes, "s/one/input.json": asks_nothing}, findings)
