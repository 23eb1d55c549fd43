"""All settings in one frozen object: defaults, then the config file, then the environment, then arguments.

The config file is YAML and belongs to the person, not to a vault: it is read from ``--config``,
``$SEARCHSVC_CONFIG`` or the user's config folder, never from a folder that is being searched.
Every setting ``x`` can also come from ``$SEARCHSVC_X``.
"""

import math
import os
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any

from searchsvc.errors import ConfigError

_ENVIRONMENT_PREFIX = "SEARCHSVC_"
_UNNAMEABLE = str.maketrans(":/\\", "---")
_LEAST = {
    "max_reply_tokens": 100, "max_file_bytes": 1_000, "rescan_seconds": 0.5, "fetch_seconds": 0.1,
    "request_seconds": 1, "query_seconds": 0.1,
}  # fmt: skip
"""Settings that make no sense below a value."""
_SECRET = frozenset({"api_key", "key", "token", "openai_api_key"})


@dataclass(frozen=True, slots=True)
class Root:
    """A folder of notes, with the name that agents see."""

    name: str
    """Short and unique; part of paths only where two roots hold the same path."""
    path: Path
    """Absolute, links resolved."""
    is_named: bool = False
    """Whether somebody chose the name; otherwise one given to the index before is kept."""


@dataclass(frozen=True, slots=True)
class Config:
    """Every setting, with its default."""

    roots: tuple[Root, ...] = ()
    """Folders to search. In the environment: paths joined by the system's path separator."""
    data_dir: Path | None = None
    """Where indexes live; none means the user's data folder."""
    model: str = "auto"
    """Embedding model as its provider names it; ``none`` for search by words only, ``auto`` for the one that
    the index uses, at first all-minilm-l6-v2-int8."""
    provider: str = "local"
    """What runs ``model``: local, sentence-transformers, ollama, lmstudio, openai, or an installed one."""
    base_url: str = ""
    """Address of the server that runs ``model``; empty for the provider's usual one."""
    dimensions: int = 0
    """Length to which the provider is asked to cut vectors; 0 for the model's own."""
    query_prefix: str | None = None
    """Put before every question; none for what is known of the model."""
    passage_prefix: str | None = None
    """Put before every passage; none for what is known of the model."""
    window_tokens: int = 0
    """Tokens of a passage that are embedded as one; 0 for what suits the model."""
    api_key_file: Path | None = None
    """File whose first line is the key of the server; else the key comes from the environment."""
    batch_texts: int = 0
    """Texts in one request to a server; 0 for what suits it."""
    concurrency: int = 0
    """Requests to a server under way at once; 0 for what suits it."""
    request_seconds: float = 120.0
    """How long one request may take while embedding, the loading of the model included."""
    query_seconds: float = 8.0
    """How long a server may take for a question; after that it is answered by words."""
    allow_downloads: bool = False
    """Whether a model that is not here may be fetched from its hub."""
    prices: Mapping[str, float] = field(default_factory=dict)
    """US dollars for a million tokens, by model; for the estimates of ``embed --dry-run``."""
    instant_model: str = "minilm-static-256"
    """Card name of the fast model that serves until ``model`` has embedded everything, or ``none``;
    not used when ``model`` is ``none``."""
    model_path: Path | None = None
    """Folder that holds the files of ``model`` when they are not installed."""
    ignore: tuple[str, ...] = ("node_modules/", "ATTACHMENTS/")
    """Patterns of files and folders left out, in .gitignore syntax."""
    use_gitignore: bool = True
    """Whether .gitignore files are obeyed; .searchsvcignore files always are."""
    include_hidden: bool = False
    """Whether names that begin with a dot are read (``.git`` and ``.obsidian`` never are)."""
    max_file_bytes: int = 2_000_000
    """Larger notes are reported, not read."""
    stemming: bool = True
    """Whether English word endings are folded in lexical search."""
    workers: int = 0
    """Processes that read notes and threads that embed; 0 means one a core."""
    max_reply_tokens: int = 20_000
    """The most tokens any reply may have, whatever a caller asks for."""
    rescan_seconds: float = 5.0
    """How often a running server looks for new and changed notes."""
    allow_paths: tuple[Path, ...] = ()
    """Folders beside the roots whose files may be read by name; they are not searched."""
    allow_domains: tuple[str, ...] = ()
    """Hosts that may be fetched from, and all names below them; ``all`` for any public one."""
    max_image_bytes: int = 5_000_000
    """Larger images are left as text, before and after they are scaled."""
    fetch_seconds: float = 20.0
    """How long fetching one address may take, redirects included."""
    allow_provider_arguments: bool = False
    """Whether callers of the reader's tools may name the server, key or model files of an embedding model;
    servers elsewhere than on this machine have to be among ``allow_domains`` as well."""
    include_imports: bool = False
    """Whether imported documents are a root beside the others; serving the toolset ``reader`` sets it."""
    documents_index: str = "index.json"
    """Name of the optional file that names and describes the documents of a folder."""
    images_index: str = "images/index.json"
    """Name of the optional file that gives images ids and captions, relative to the folder."""
    max_index_file_bytes: int = 5_000_000
    """Larger index files are reported, not read."""


def load(
    arguments: Mapping[str, Any] | None = None,
    *,
    config_file: Path | None = None,
    environment: Mapping[str, str] = os.environ,
) -> Config:
    """Merge all sources of settings into one ``Config``.

    ``arguments`` holds settings by field name; values of ``None`` are ignored. Raises ``ConfigError``
    for an unknown setting, a value of the wrong type, or a root that is no folder.
    """
    config = Config()
    named = config_file or _path(environment.get(f"{_ENVIRONMENT_PREFIX}CONFIG"))
    chosen = named or default_config_file()
    if named or _exists(chosen):
        config = _merge(config, _read_file(chosen), f"config file {chosen}")
    config = _merge(config, _from_environment(environment), "environment")
    config = _merge(config, {k: v for k, v in (arguments or {}).items() if v is not None}, "arguments")
    if not config.roots:
        config = replace(config, roots=(make_root(Path.cwd()),))
    if config.include_imports:
        return with_imports(config)
    return replace(config, roots=distinct_roots(config.roots))


def with_imports(config: Config) -> Config:
    """Return the settings with the folder of imported documents, which is made, as one more root."""
    folder = imports_dir(config)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ConfigError(
            f"{folder}: the folder for imports cannot be made: {error.strerror}; choose another data_dir"
        ) from error
    return replace(config, roots=distinct_roots((*config.roots, make_root(folder))))


def imports_dir(config: Config) -> Path:
    """Return the folder that imported documents are put into, unless another is named."""
    return data_dir(config) / "imports"


def default_config_file() -> Path:
    """Return where the user's config file lies, whether or not it exists."""
    import platformdirs

    return Path(platformdirs.user_config_dir("searchsvc", appauthor=False)) / "config.yaml"


def data_dir(config: Config) -> Path:
    """Return the folder that holds all indexes."""
    if config.data_dir is not None:
        return config.data_dir
    import platformdirs

    return Path(platformdirs.user_data_dir("searchsvc", appauthor=False))


def make_root(path: Path, chosen: str | None = None) -> Root:
    """Return a root for a folder; its name defaults to the folder's own."""
    resolved = path.expanduser().resolve()
    if not resolved.is_dir():
        kind = "a file" if resolved.exists() else "nothing"
        raise ConfigError(f"{path}: found {kind}, expected a folder of Markdown files; check the path")
    if not os.access(resolved, os.R_OK | os.X_OK):
        raise ConfigError(f"{path}: the folder may not be read; check its permissions")
    if chosen and set(chosen) & set(":/\\"):
        raise ConfigError(f"root name {chosen!r} has one of : / \\ in it; choose another")
    name = chosen or resolved.name.translate(_UNNAMEABLE) or "root"
    return Root(name=name, path=resolved, is_named=bool(chosen))


def _exists(file: Path) -> bool:
    try:
        return file.is_file()
    except OSError:
        return False


def _path(text: str | None) -> Path | None:
    return Path(text).expanduser() if text else None


def distinct_roots(roots: tuple[Root, ...]) -> tuple[Root, ...]:
    """Drop roots given twice and make names unique by a number at the end."""
    kept: dict[Path, Root] = {}
    taken: set[str] = set()
    for root in roots:
        if root.path in kept:
            continue
        name, number = root.name, 2
        while name in taken:
            name, number = f"{root.name}-{number}", number + 1
        taken.add(name)
        kept[root.path] = replace(root, name=name)
    return tuple(kept.values())


def _read_file(path: Path) -> dict[str, Any]:
    import yaml

    try:
        data = yaml.safe_load(path.read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise ConfigError(f"no config file at {path}; check --config or SEARCHSVC_CONFIG") from error
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise ConfigError(f"config file {path} cannot be read: {error}") from error
    if data is None:
        return {}
    if not isinstance(data, dict):
        raise ConfigError(
            f"config file {path} holds a {type(data).__name__}, expected `setting: value` lines"
        )
    return data


def _from_environment(environment: Mapping[str, str]) -> dict[str, str]:
    names = {f"{_ENVIRONMENT_PREFIX}{setting.name.upper()}": setting.name for setting in fields(Config)}
    return {names[key]: value for key, value in environment.items() if key in names and value != ""}


def _merge(config: Config, values: Mapping[str, Any], source: str) -> Config:
    known = {setting.name for setting in fields(Config)}
    changes: dict[str, Any] = {}
    for name, value in values.items():
        if name in _SECRET:
            raise ConfigError(
                f"{source}: {name!r} is no setting: keys come from the environment (SEARCHSVC_API_KEY) or "
                "from a file named by api_key_file"
            )
        if name not in known:
            import difflib

            near = difflib.get_close_matches(str(name), known, n=1)
            hint = f"; did you mean {near[0]!r}?" if near else f"; known settings: {', '.join(sorted(known))}"
            raise ConfigError(f"{source}: unknown setting {name!r}{hint}")
        if value is None:
            continue
        try:
            changes[name] = _convert(name, value, getattr(Config(), name))
        except (TypeError, ValueError) as error:
            raise ConfigError(f"{source}: setting {name!r} is {value!r}: {error}") from error
    return replace(config, **changes)


def _convert(name: str, value: Any, default: Any) -> Any:
    """Bring a value from YAML, the environment or an argument to the type of its field."""
    if name == "roots":
        return _convert_roots(value)
    if name in ("data_dir", "model_path", "api_key_file"):
        return Path(value).expanduser().resolve()
    if name == "allow_paths":
        return _convert_paths(value)
    if name == "prices":
        return _convert_prices(value)
    if isinstance(default, bool):
        return _convert_bool(value)
    if isinstance(default, tuple):
        if not isinstance(value, str | list | tuple):
            raise ValueError("expected a list")
        items = value.split(",") if isinstance(value, str) else value
        return tuple(str(item).strip() for item in items)
    if isinstance(default, int | float):
        return _convert_number(value, default, _LEAST.get(name, 0))
    if not isinstance(value, str | Path):
        raise ValueError("expected text; put it in quotes")
    return str(value)


def _listed(value: Any) -> Any:
    """Return folders given as a list, as one path, or as text with the system's path separator."""
    if isinstance(value, Path):
        return [value]
    if isinstance(value, str):
        return [part for part in value.split(os.pathsep) if part]
    if not isinstance(value, list | tuple):
        raise ValueError("expected a list of folders")
    return value


def _convert_paths(value: Any) -> tuple[Path, ...]:
    value = _listed(value)
    return tuple(make_root(Path(item)).path for item in value)


def _convert_prices(value: Any) -> dict[str, float]:
    if isinstance(value, str):
        value = dict(part.rsplit("=", 1) for part in value.split(",") if part)
    if not isinstance(value, Mapping):
        raise ValueError("expected dollars by model, as in {text-embedding-3-small: 0.02}")
    return {str(model): float(_convert_number(price, 0.0, 0)) for model, price in value.items()}


def _convert_number(value: Any, default: float, least: float) -> float:
    number = float("nan") if isinstance(value, bool) else float(value)
    if not math.isfinite(number) or number < least or (isinstance(default, int) and number % 1):
        raise ValueError(
            f"expected {'a whole' if isinstance(default, int) else 'a'} number of at least {least}"
        )
    return type(default)(number)


def _convert_bool(value: Any) -> bool:
    text = str(value).strip().lower()
    if text in ("true", "1", "yes", "on"):
        return True
    if text in ("false", "0", "no", "off"):
        return False
    raise ValueError("expected true or false")


def _convert_roots(value: Any) -> tuple[Root, ...]:
    value = _listed(value)
    roots = []
    for item in value:
        if isinstance(item, Root):
            roots.append(item)
        elif isinstance(item, Mapping):
            if "path" not in item or set(item) - {"name", "path"}:
                raise ValueError("expected each root as a path or as {name, path}")
            roots.append(make_root(Path(str(item["path"])), item.get("name")))
        else:
            roots.append(make_root(Path(str(item))))
    return tuple(roots)
