"""What the documents say is what the code does."""

import re
import tomllib
from dataclasses import fields
from pathlib import Path

from click import Group
from click.testing import CliRunner

import searchsvc
from searchsvc.cli import main
from searchsvc.config import Config
from searchsvc.embedding import _BUILT_IN
from searchsvc.serving.toolsets import TOOLSETS

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]


def text_of(page: Path) -> str:
    return page.read_text(encoding="utf-8")


README = text_of(ROOT / "README.md")


def test_the_newest_version_of_the_changelog_is_the_version_of_the_package():
    changelog = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    assert re.search(r"^## (\S+)", changelog, re.MULTILINE).group(1) == searchsvc.__version__


def test_the_readme_names_every_tool_and_every_command():
    for tool in (tool for tools in TOOLSETS.values() for tool in tools):
        assert f"`{tool.called}`" in README
    for command in main.commands:
        assert f"searchsvc {command}" in README


def test_every_provider_has_a_page_with_the_lines_that_make_it_work():
    for provider in _BUILT_IN:
        page = (ROOT / "docs" / "providers" / f"{provider}.md").read_text(encoding="utf-8")
        assert page.startswith(f"# {provider}\n")
        assert re.search(r"^\$ .*searchsvc (embed|index) ", page, re.MULTILINE)


def test_every_page_that_is_linked_to_exists():
    links = [
        (page, target)
        for page in PAGES
        for target in re.findall(r"\]\(([^)#:]+)\)", re.sub(r"```.*?```", "", text_of(page), flags=re.DOTALL))
    ]
    assert len(links) > 5
    assert [(page.name, target) for page, target in links if not (page.parent / target).exists()] == []


def test_every_option_of_a_command_in_the_documents_exists():
    lines = [
        found
        for page in PAGES
        for found in re.findall(r"^\$ (?:[A-Z_]+=\S+ )*searchsvc (\w+) (.*)$", text_of(page), re.MULTILINE)
    ]
    assert len(lines) > 20
    for command, options in lines:
        has_more = isinstance(main.commands[command], Group) and not options.startswith("-")
        words = [command, *options.split()[:has_more]]
        known = CliRunner().invoke(main, [*words, "--help"]).output
        for option in re.findall(r"(?<!\S)--[a-z-]+", options.split("#")[0]):
            assert option in known, (command, option)


def test_the_settings_in_the_readme_are_those_of_the_code_with_their_defaults():
    rows = re.findall(r"^\| `(\w+)` \| ([^|]*) \|", README.split("## Settings")[1], re.MULTILINE)
    known = {field.name: field.default for field in fields(Config)}
    assert len(rows) >= 6
    for name, default in rows:
        assert name in known
        if default.strip().startswith("`"):
            said = re.findall(r"`([^`]+)`", default)
            default = known[name]
            assert said == (list(default) if isinstance(default, tuple) else [str(default)])


def test_the_public_names_can_be_imported_and_are_documented():
    for name in searchsvc.__all__:
        value = getattr(searchsvc, name)
        assert isinstance(value, str) or value.__doc__


def test_ci_runs_the_test_command_of_the_readme():
    assert "python -m pytest" in README
    assert "python -m pytest" in (ROOT / "Makefile").read_text()
    assert "make check" in (ROOT / ".ci" / "run").read_text()


def test_every_dependency_is_imported_somewhere():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    names = {
        "pystemmer": "Stemmer", "pyyaml": "yaml", "markdown-it-py": "markdown_it", "pillow": "PIL",
        "huggingface-hub": "huggingface_hub",
    }  # fmt: skip
    source = "\n".join(file.read_text(encoding="utf-8") for file in (ROOT / "searchsvc").rglob("*.py"))
    for requirement in project["dependencies"]:
        name = re.split(r"[<>=\[]", requirement)[0].lower()
        assert re.search(rf"^\s*(?:from|import) {names.get(name, name)}\b", source, re.MULTILINE), name
