"""Other indexes than those that are served, opened by where they lie on disk."""

import threading
from collections import OrderedDict
from dataclasses import replace
from pathlib import Path

from searchsvc.config import make_root
from searchsvc.embedding import list_cards
from searchsvc.errors import AccessDenied, ConfigError, NotFound
from searchsvc.index.layout import Layout, root_layout
from searchsvc.index.open import Reader as IndexReader
from searchsvc.models import known_of
from searchsvc.reader import Reader
from searchsvc.service import Service
from searchsvc.tokens import settings_of

_MAX_OPEN = 4
_SERVERS = ("ollama", "lmstudio", "openai")
"""Providers that load nothing here; which addresses they may be asked at is checked elsewhere."""


class Elsewhere:
    """Readers of indexes by ``db_path``; safe to use from several threads."""

    def __init__(self, home: Reader) -> None:
        self._home = home
        self._lock = threading.Lock()
        self._open: OrderedDict[Path, Reader] = OrderedDict()

    def reader(self, db_path: str) -> Reader:
        """Return the reader of an index: its folder, or the file in it; the served one for no path.

        The index and the folder it was made of must lie in roots or allowed folders. Raises
        ``AccessDenied`` where they do not, ``NotFound`` where there is no index of this version.
        """
        if not db_path.strip():
            return self._home
        folder = self._folder(db_path)
        if any(vault.layout.folder.resolve() == folder for vault in self._home.service.vaults):
            return self._home
        with self._lock:
            if folder not in self._open:
                self._open[folder] = self._opened(folder)
            self._open.move_to_end(folder)
            while len(self._open) > _MAX_OPEN:
                self._open.popitem(last=False)
            found = self._open[folder]
        self._check_models(found.service)
        return found

    def _folder(self, db_path: str) -> Path:
        try:
            path = Path(db_path).expanduser().resolve()
            folder = path if path.is_dir() else path.parent
            is_index = Layout(folder).catalog.is_file() and path in (folder, Layout(folder).catalog)
        except (OSError, ValueError, RuntimeError) as error:  # the last for links in a ring, unknown users
            raise NotFound("db_path is no path") from error
        served = (vault.layout.folder.resolve() for vault in self._home.service.vaults)
        if not self._is_allowed(folder) and folder not in served:
            raise AccessDenied(
                "db_path lies outside the roots and allowed folders; leave it out for the index that is "
                "served, or start with --allow-path"
            )
        if not is_index:
            name = Layout(folder).catalog.name
            raise NotFound(
                f"no index at db_path; expected the folder that holds {name}, or that file; leave it out for "
                "the index that is served"
            )
        return folder

    def _opened(self, folder: Path) -> Reader:
        found = IndexReader(Layout(folder), settings_of(stemming=self._home.service.config.stemming))
        made_of = found.folder if found.exists else ""
        if not made_of:
            raise NotFound(
                "the index at db_path is damaged or was made by another version; index its folder again"
            )
        if not self._is_allowed(Path(made_of)):
            raise AccessDenied("the notes of the index at db_path lie outside the roots and allowed folders")
        try:
            root = make_root(Path(made_of))
        except ConfigError as error:
            raise NotFound("the notes of the index at db_path are gone; index them where they are") from error
        if root_layout(folder.parent, root.path).folder != folder:
            raise NotFound("the index at db_path was renamed; give it back the name it was made with")
        config = replace(self._home.service.config, roots=(root,), data_dir=folder.parent)
        return Reader(Service(config, patient=False))

    def _check_models(self, service: Service) -> None:
        """Raise ``AccessDenied`` for a profile that would load files or code that the settings do not name.

        Whoever wrote an index into an allowed folder has chosen what its profiles say.
        """
        home = self._home.service.models
        known = [known_of(choice) for choice in home.choices()] + [dict(card.choice) for card in home.cards()]
        shipped = {card.id for card in list_cards()}
        for card in service.models.cards():
            provider, name = card.choice.get("provider", "local"), card.choice.get("model", card.name)
            is_plain = provider in _SERVERS or (provider == "local" and name in shipped)
            if not is_plain and dict(card.choice) not in known:
                raise AccessDenied(
                    f"profile {card.identity} of the index at db_path runs a model of {str(provider)[:80]!r} "
                    "that the settings do not name; set it as model, or drop the profile"
                )

    def _is_allowed(self, path: Path) -> bool:
        real = path.resolve()
        return any(real.is_relative_to(root.path) for root in self._home.service.documents.library.roots)
