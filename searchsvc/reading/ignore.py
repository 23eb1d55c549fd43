"""Which files and folders of a root are left out.

Hidden names, the patterns of the configuration, and every .gitignore and .searchsvcignore on the way, from
the top of the Git repository that the root lies in, by Git's rules (https://git-scm.com/docs/gitignore): the
deepest file that has an opinion wins.
"""

import os
import re
import warnings
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path

from pathspec import GitIgnoreSpec, Pattern, RegexPattern

from searchsvc.config import Config

_NEVER_READ = frozenset((".git", ".obsidian", ".hg", ".svn", ".trash"))
_GIT_FILE, _OWN_FILE = ".gitignore", ".searchsvcignore"
_ANY_FOLDER = re.compile(r"\*\*/+\s*$")
_FINAL_SLASH = re.compile(r"(?<=[^!\s])/+\s*$")
_MAX_RULE_BYTES = 200_000
"""Of an ignore file so much is obeyed."""


class IgnoreRules:
    """The rules of one root; ignore files are read once, when their folder is first asked about."""

    def __init__(self, root: Path, config: Config) -> None:
        self._root = root
        self._include_hidden = config.include_hidden
        self._files = (_GIT_FILE, _OWN_FILE) if config.use_gitignore else (_OWN_FILE,)
        self._base = _Rules(config.ignore)
        self._known: dict[str, _Rules | None] = {}

    def skips(self, path: str, *, is_folder: bool) -> bool:
        """Tell whether an entry is left out, given that the folders above it are not.

        ``path`` is relative to the root, ``/``-separated.
        """
        name = path.rsplit("/", 1)[-1]
        if name.startswith(".") and (not self._include_hidden or name.casefold() in _NEVER_READ):
            return True
        path = path.rstrip("/")
        parts = path.split("/")
        for depth in range(len(parts) - 1, -1, -1):
            folder = "/".join(parts[:depth])
            rules = self._rules(folder)
            if rules is not None:
                verdict = rules.verdict(path[len(folder) + 1 if folder else 0 :], is_folder=is_folder)
                if verdict is not None:
                    return verdict
        for prefix, rules in self._above:
            verdict = rules.verdict(prefix + path, is_folder=is_folder)
            if verdict is not None:
                return verdict
        return bool(self._base.verdict(path, is_folder=is_folder))

    def hides(self, path: str) -> bool:
        """Tell whether a file is left out by its own name or by any folder above it."""
        parts = path.split("/")
        folders = ("/".join(parts[:depth]) for depth in range(1, len(parts)))
        return any(self.skips(folder, is_folder=True) for folder in folders) or self.skips(
            path, is_folder=False
        )

    @cached_property
    def _above(self) -> "list[tuple[str, _Rules]]":
        """Git's files above the root, the nearest first, each with the way from there to the root.

        One that leaves out the root itself does not count: somebody has asked for the root.
        """
        folders = [self._root, *self._root.parents] if _GIT_FILE in self._files else []
        top = next((n for n, folder in enumerate(folders) if os.path.exists(folder / ".git")), 0)
        found = []
        for folder in folders[1 : top + 1]:
            lines = self._lines(str(folder), _GIT_FILE)
            prefix = f"{self._root.relative_to(folder).as_posix()}/"
            if lines and not (rules := _Rules(lines)).leaves_out_any(prefix):
                found.append((prefix, rules))
        return found

    def _rules(self, folder: str) -> "_Rules | None":
        if folder not in self._known:
            lines = [line for name in self._files for line in self._lines(folder, name)]
            self._known[folder] = _Rules(lines) if lines else None
        return self._known[folder]

    def _lines(self, folder: str, name: str) -> list[str]:
        file = self._root / folder / name
        try:
            if not file.is_file():
                return []
            with file.open("rb") as stream:
                data = stream.read(_MAX_RULE_BYTES + 1)
        except OSError:
            return []
        if len(data) > _MAX_RULE_BYTES:
            data = data[: data.rfind(b"\n") + 1]
        return data.decode("utf-8-sig", errors="replace").replace("\r\n", "\n").split("\n")


class _Rules:
    """The patterns of one folder.

    To pathspec a slash at the end of a pattern means what lies in a folder. So ``notes/**/`` would take in
    the files right in ``notes``; and asked about a folder it gives the match a lower rank, so that ``*``
    would beat the ``!*/`` that follows it.
    """

    def __init__(self, lines: Sequence[str]) -> None:
        self._for_files = _compile([_ANY_FOLDER.sub("**/*/", line) for line in lines])
        self._for_folders = _compile([_FINAL_SLASH.sub("", line) for line in lines])

    def verdict(self, path: str, *, is_folder: bool) -> bool | None:
        """Tell whether a path is left out, by the last pattern that it matches; none when it matches none."""
        rules = self._for_folders if is_folder else self._for_files
        found = rules.check_file(path)
        if found.index is not None and not is_folder and _is_for_folders(rules.patterns[found.index]):
            return None
        return found.include

    def leaves_out_any(self, way: str) -> bool:
        """Tell whether one of the folders on a way, which ends in a slash, is left out."""
        ends = (match.start() for match in re.finditer("/", way))
        return any(self.verdict(way[:end], is_folder=True) for end in ends)


def _is_for_folders(pattern: Pattern) -> bool:
    return isinstance(pattern, RegexPattern) and str(pattern.pattern).rstrip().endswith("/")


def _compile(lines: Sequence[str]) -> GitIgnoreSpec:
    """Read patterns; a line that is none is passed over, as Git does."""
    with warnings.catch_warnings(action="ignore", category=FutureWarning):  # a bracket inside brackets
        try:
            return GitIgnoreSpec.from_lines(lines)
        except (ValueError, re.error):
            return _compile([line for line in lines if _is_pattern(line)])


def _is_pattern(line: str) -> bool:
    try:
        GitIgnoreSpec.from_lines([line])
    except (ValueError, re.error):
        return False
    return True
