"""Which files and folders of a root are left out.

Hidden names, the patterns of the configuration, and every .gitignore and .searchsvcignore on the way,
by Git's rules (https://git-scm.com/docs/gitignore): the deepest file that has an opinion wins.
"""

from pathlib import Path

from searchsvc.config import Config
from searchsvc.reading.git_patterns import Patterns

_NEVER_READ = frozenset((".git", ".obsidian", ".hg", ".svn", ".trash"))
_OWN_FILE = ".searchsvcignore"
_MAX_RULE_BYTES = 200_000
"""Of an ignore file so much is obeyed."""


class IgnoreRules:
    """The rules of one root; ignore files are read once, when their folder is first asked about."""

    def __init__(self, root: Path, config: Config) -> None:
        self._root = root
        self._include_hidden = config.include_hidden
        self._files = (".gitignore", _OWN_FILE) if config.use_gitignore else (_OWN_FILE,)
        self._base = Patterns(config.ignore)
        self._known: dict[str, Patterns | None] = {}

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
        return bool(self._base.verdict(path, is_folder=is_folder))

    def hides(self, path: str) -> bool:
        """Tell whether a file is left out by its own name or by any folder above it."""
        parts = path.split("/")
        folders = ("/".join(parts[:depth]) for depth in range(1, len(parts)))
        return any(self.skips(folder, is_folder=True) for folder in folders) or self.skips(
            path, is_folder=False
        )

    def _rules(self, folder: str) -> Patterns | None:
        if folder not in self._known:
            lines = [line for name in self._files for line in self._lines(folder, name)]
            self._known[folder] = Patterns(lines) if lines else None
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
