"""Ignore files leave out what Git would leave out."""

import random
import shutil
import subprocess
from pathlib import Path

import pytest

from searchsvc.config import Config
from searchsvc.reading.git_patterns import Patterns
from searchsvc.reading.walk import FileEntry, walk

FILES = (
    *(
        "a.md",
        "b.md",
        "build/a.md",
        "build/x/a.md",
        "src/build/a.md",
        "src/a.md",
        "src/x/y/a.md",
        "src/x/b.md",
    ),
    *("doc s/a.md", "docs/a.md", "docs/api/a.md", "x/y/z/a.md", "x/foo.md", "foo.md", "foobar.md", "Foo.md"),
    *("[z]/a.md", "#c.md", "!d.md", "sub/!d.md", "x/a b.md", "trail .md", "src/x/y/foo.md"),
)
LINES = (
    *(
        "*",
        "*.md",
        "!*.md",
        "*/",
        "!*/",
        "/*",
        "!/src",
        "!/src/",
        "src/",
        "/src",
        "build/",
        "build",
        "!build",
    ),
    *("!/src/build/", "**/build", "**/build/", "build/**", "!build/x/", "src/**", "!src/x/", "!src/x/**"),
    *("src/*", "!src/x", "x/**/a.md", "**/a.md", "a.md", "/a.md", "!a.md", "!/a.md", "foo*", "!foobar.md"),
    *("foo?.md", "[a-b].md", "[!a].md", "[^ab].md", "[]a].md", "[b-a].md", "[[:alpha:]].md", "[a-", "a[.md"),
    *("doc\\ s", "doc s/", "\\#c.md", "\\!d.md", "#c.md", "trail\\ .md", "trail .md", "a.md   ", "a.md\\ "),
    *(
        "*.MD",
        "docs/api",
        "/docs/api/",
        "docs/*",
        "!docs/api/",
        "**",
        "/**",
        "**/",
        "!**/",
        "x/**",
        "!x/foo.md",
    ),
    *("x/*/", "*/y", "y/", "!y/", "", "  ", "/", "//", "src//a.md", "./a.md", "**/x/**", "**/x/b.md", "\\"),
    *("src/**/b.md", "[z]/", "\\[z\\]/", "*/a.md", "/*/a.md", "?.md", "*o*", "***", "src/***/a.md", "a**.md"),
    *("*a*b*", "*o*a*", "s*c/*a*d", "**/**/a.md", "**/x/**/a.md", "**/*/**/a.md", "x\\/foo.md"),
)


@pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")
@pytest.mark.parametrize("seed", range(40))
def test_what_is_walked_is_what_git_would_add(tmp_path: Path, seed: int) -> None:
    chance = random.Random(seed)
    for name in chance.sample(FILES, 14):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("x")
    for folder in ("", "src", "x"):
        if (tmp_path / folder).is_dir() and (not folder or chance.random() < 0.5):
            lines = chance.choices(LINES, k=chance.randint(1, 4))
            (tmp_path / folder / ".gitignore").write_text("\n".join(lines) + "\n")
    git = ["git", "-C", str(tmp_path), "-c", "core.excludesFile=", "-c", "core.ignoreCase=false"]
    subprocess.run([*git, "init", "-q"], check=True, capture_output=True)
    listed = subprocess.run([*git, "ls-files", "-zo", "--exclude-standard"], check=True, capture_output=True)
    expected = sorted(name for name in listed.stdout.decode().split("\0") if name.endswith(".md"))
    found = [entry.path for entry in walk(tmp_path, Config(ignore=())) if isinstance(entry, FileEntry)]
    assert sorted(found) == expected


@pytest.mark.parametrize(
    "line", ["*a" * 50 + "b", "**/a/" * 12 + "b", "**/*a*/" * 12 + "b", "[a-z]*" * 60 + "Q"]
)
def test_a_line_full_of_stars_is_decided_at_once(line: str) -> None:
    rules = Patterns([line])
    assert rules.verdict("a" * 250, is_folder=False) is None
    assert rules.verdict("a/" * 120 + "a", is_folder=False) is None
