"""Every spelling of a known folder, and nothing that only looks like one."""

import pytest
from normalizer import Context, normalize_text, slug

POSIX = Context(cwd=("/tmp/run/x1/work",), home=("/tmp/run/x1/home",), tmp=("/tmp/run/x1",), agent=("/opt/agents/x",))
MACOS = Context(cwd=("/private/var/folders/x1/work",), home=("/var/folders/x1/home",))
WINDOWS = Context(
    cwd=(r"C:\Users\Runner Admin\work", r"C:\Users\RUNNER~1\work"), home=(r"\\?\D:\sandbox\home",), tmp=("E:/t/1",)
)
SHORT = Context(tmp=("/tmp",), home=("/root",))

SPELLINGS = [
    # whole, in text, at the end of a sentence
    (POSIX, "/tmp/run/x1/work", "{{cwd}}"),
    (POSIX, "/tmp/run/x1/work/src/a.py:3", "{{cwd}}/src/a.py:3"),
    (POSIX, "List /tmp/run/x1/work.", "List {{cwd}}."),
    (POSIX, "in /tmp/run/x1/work. Then", "in {{cwd}}. Then"),
    (POSIX, "(/tmp/run/x1/work), '/tmp/run/x1/home'", "({{cwd}}), '{{home}}'"),
    (POSIX, "--dir=/tmp/run/x1/work -I/tmp/run/x1/home/include", "--dir={{cwd}} -I{{home}}/include"),
    (POSIX, "PATH=/tmp/run/x1/work:/tmp/run/x1/home", "PATH={{cwd}}:{{home}}"),
    (POSIX, "/tmp/run/x1/other", "{{tmp}}/other"),
    (POSIX, "/opt/agents/x/bin/agent", "{{agent}}/bin/agent"),
    (POSIX, r"half json \n/tmp/run/x1/work\n", r"half json \n{{cwd}}\n"),
    (POSIX, "/tmp/run/x1/work目录", "{{cwd}}目录"),
    # other folders
    (POSIX, "/tmp/run/x1/work-other", "{{tmp}}/work-other"),
    (POSIX, "/tmp/run/x1/work_2 /tmp/run/x1/work2", "{{tmp}}/work_2 {{tmp}}/work2"),
    (POSIX, "/tmp/run/x1/work.d/a", "{{tmp}}/work.d/a"),
    (POSIX, "/tmp/run/x1/work%20b", "{{tmp}}/work%20b"),
    (POSIX, "/opt/agents/xy", "/opt/agents/xy"),
    (
        SHORT,
        "/tmp/a /srv/tmp/a a/tmp x.tmp /tmpfs ~/tmp /root",
        "{{tmp}}/a /srv/tmp/a a/tmp x.tmp /tmpfs ~/tmp {{home}}",
    ),
    # URLs
    (POSIX, "file:///tmp/run/x1/work/a%20b", "file://{{cwd}}/a%20b"),
    (Context(cwd=("/tmp/a b/wörk",)), "file:///tmp/a%20b/w%C3%B6rk/x", "file://{{cwd}}/x"),
    (Context(cwd=("/tmp/a b/wörk",)), "file:///tmp/a%20b/w%c3%b6rk", "file://{{cwd}}"),
    (Context(cwd=("/tmp/a b/wörk",)), r'"/tmp/a b/w\u00f6rk', '"{{cwd}}'),
    (SHORT, "file:///tmp/a", "file://{{tmp}}/a"),
    # /private, either way round
    (MACOS, "/private/var/folders/x1/work/a", "{{cwd}}/a"),
    (MACOS, "/var/folders/x1/work/a", "{{cwd}}/a"),
    (MACOS, "/private/var/folders/x1/home", "{{home}}"),
    # Windows
    (WINDOWS, r"C:\Users\Runner Admin\work\src\a.py", "{{cwd}}/src/a.py"),
    (WINDOWS, r"c:\Users\RUNNER~1\work", "{{cwd}}"),
    (WINDOWS, "C:/Users/Runner Admin/work/src/a.py", "{{cwd}}/src/a.py"),
    (WINDOWS, r"C:\\Users\\Runner Admin\\work\\src\\a.py", "{{cwd}}/src/a.py"),
    (WINDOWS, r"half json C:\\Users\\RUNNER~1\\work\\a\nnext", r"half json {{cwd}}/a\nnext"),
    (WINDOWS, r"\\?\C:\Users\RUNNER~1\work\a", "{{cwd}}/a"),
    (WINDOWS, r"\\\\?\\C:\\Users\\RUNNER~1\\work\\a", "{{cwd}}/a"),
    (WINDOWS, r"D:\sandbox\home\.agent\state", "{{home}}/.agent/state"),
    (WINDOWS, "file:///C:/Users/Runner%20Admin/work/a", "file://{{cwd}}/a"),
    (WINDOWS, "file:///c%3A/Users/RUNNER~1/work", "file://{{cwd}}"),
    (WINDOWS, "/c/Users/Runner Admin/work/a", "{{cwd}}/a"),
    (WINDOWS, "/d/sandbox/home", "{{home}}"),
    (WINDOWS, r"e:\t\1\x\y", "{{tmp}}/x/y"),
    (WINDOWS, r'dir "E:\t\1\x y\z" \d+ a\b', r'dir "{{tmp}}/x y\z" \d+ a\b'),
    (WINDOWS, r"C:\Users\RUNNER~1\work2 x\y", r"C:\Users\RUNNER~1\work2 x\y"),
    (Context(cwd=(r"\\server\share\work",)), r"\\server\share\work\a //server/share/work", "{{cwd}}/a {{cwd}}"),
    # slugs
    (POSIX, "/tmp/run/x1/home/.a/projects/-tmp-run-x1-work/s", "{{home}}/.a/projects/-{{cwdSlug}}/s"),
    (POSIX, "sessions/--tmp-run-x1-work--/s", "sessions/--{{cwdSlug}}--/s"),
    (POSIX, "-tmp-run-x1-work-other", "-tmp-run-x1-work-other"),
    (WINDOWS, "C--Users-Runner-Admin-work", "{{cwdSlug}}"),
    # a root that would match everything is none
    (Context(cwd=("/",), home=("C:\\",), tmp=("",)), "/ C:\\ x", "/ C:\\ x"),
]


@pytest.mark.parametrize(("context", "before", "after"), SPELLINGS)
def test_spelling(context: Context, before: str, after: str) -> None:
    assert normalize_text(before, context) == after
    assert normalize_text(after, context, stored=True) == after


def test_a_path_as_a_folder_name() -> None:
    assert slug("/tmp/run/x1/work") == "-tmp-run-x1-work"
