"""Advice of the service, which names tools of an agent -> the commands and options of a terminal.

Only the end of a line of ours is worded anew, never a line that is quoted from a note.
"""

import json
import re
import shlex
from collections.abc import Callable, Sequence

Roots = Sequence[str]
_Word = Callable[[re.Match[str], Roots], str]

_LAST_LINES = 3
"""Of a reply without marks: advice stands in one of these, and has no lines but ours above it."""
_MARK = re.compile(r"(?:.*\(lines without )?(={3,})(?: |$)")
_WORDS = "`searchsvc find WORDS` looks for notes"


def error_on_terminal(text: str, roots: Roots = ()) -> str:
    """Return an error with its advice in commands; ``roots`` are those that the commands need."""
    return _reworded(text, (*_ERRORS, *_ENDS), roots)


def reply_on_terminal(text: str, roots: Roots = ()) -> str:
    """Return the text of a reply with its advice in commands; ``roots`` as for ``error_on_terminal``."""
    lines = text.split("\n")
    found = _MARK.match(lines[0])
    if found is None:
        start = max(len(lines) - _LAST_LINES, 1)
        return "\n".join([*lines[:start], *(_reworded(line, _ENDS, roots) for line in lines[start:])])
    mark, is_notes, said = found[1], False, list[str]()
    for line in lines:
        is_notes = is_notes or line == f"{mark} Notes:"
        if is_notes:
            line = error_on_terminal(line, roots)
        elif line.startswith(f"{mark} "):
            line = _reworded(line, _ENDS, roots)
        said.append(line)
    return "\n".join(said)


def _reworded(line: str, table: Sequence[tuple[re.Pattern[str], _Word]], roots: Roots) -> str:
    for pattern, word in table:
        if found := pattern.search(line):
            return line[: found.start()] + word(found, roots) + line[found.end() :]
    return line


def _command(name: str, *arguments: str, roots: Roots = ()) -> str:
    chosen = [part for root in roots for part in ("--root", root)]
    return f"`{shlex.join(['searchsvc', name, *arguments, *chosen])}`"


def _options(said: str) -> str:
    """Return arguments of a call as options: ``cursor="5"`` as ``--cursor 5``."""
    said = re.sub(r'cursor="([\w-]+)"', r"--cursor \1", said)
    said = re.sub(r"max_tokens=(\d+)", r"--budget \1", said)
    said = re.sub(r"depth=(\d+)", r"--depth \1", said)
    said = said.replace('path="<path#name>"', "PATH#NAME for PATH")
    return said.replace("get_documents", "`searchsvc read PATH:FIRST-LAST`")


def _same(found: re.Match[str], roots: Roots) -> str:
    return f"{found[1]}the same command with {_options(found[2])}"


def _read(found: re.Match[str], roots: Roots) -> str:
    """Return the call for the rest of a selection as a command."""
    try:
        selection = [_as_selection(item) for item in json.loads(found[2])]
    except ValueError:
        return found[0]  # cut, since the budget was too small for it
    flags = ["--no-code"] if "include_code=false" in found[3] else []
    flags += ["--images", "FOLDER"] if "include_images=true" in found[3] else []
    return found[1] + _command("read", *selection, *flags, roots=roots)


def _as_selection(item: object) -> str:
    if isinstance(item, dict):
        first, last = item["lines"]
        return f"{item['doc']}:{first}-{last}"
    return str(item)


def _read_address(found: re.Match[str], roots: Roots) -> str:
    try:
        address, (first, last) = json.loads(found[2]), json.loads(found[3])
    except ValueError:
        return found[0]
    return f"{found[1]}{_command('read', f'{address}:{first}-{last}')} with the same options"


def _no_heading(found: re.Match[str], roots: Roots) -> str:
    path = json.loads(found[1])
    tree, whole = _command("tree", path, roots=roots), _command("read", path, roots=roots)
    return f"heading is missing; {tree} lists the headings, {whole} reads the whole note"


def _unquoted(text: str) -> str:
    """Return what ``repr`` made of a text, near enough for a command to be copied."""
    return text[1:-1].replace("\\'", "'").replace("\\\\", "\\")


def _always(text: str) -> _Word:
    return lambda found, roots: found.expand(text)


_STRING = r"""('(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*")"""

_ENDS: tuple[tuple[re.Pattern[str], _Word], ...] = tuple(
    (re.compile(pattern), word)
    for pattern, word in (
        (r"^((?:=+ )?(?:missing: )?\d+ (?:[\w()]+ )*more[^:\"]*: )same call with (.*)$", _same),
        (r"^(=+ Not shown: \d+ passages?, \d+ tok\. Next: )same call with (.*)$", _same),
        (r"^(=+ Not shown: \d+ passages?, \d+ tok\. Next: )get_documents\(select=(\[.*\])(.*)\)$", _read),
        (
            r"^(=+ Not shown: \d+ passages?, \d+ tok\. Next: )get_documents with this path and lines "
            r"\[(\d+), (\d+)\]$",
            _always(r"\1`searchsvc read` with this path and :\2-\3 behind it"),
        ),
        (
            r"^(=+ Not shown: \d+ passages?, \d+ tok\. Next: )read_md_with_images\(uri=(\".*\"), "
            r"line_range=(\[\d+, \d+\])\)$",
            _read_address,
        ),
        (
            r"^((?:=+ )?Not whole above: \d+ tok\. To read one: )"
            r"path=\"<its id>\", detail=\"full\", max_tokens=(\d+)\.$",
            _always(r"\1the same command with --path ID --detail full --budget \2."),
        ),
        (
            r"^Read one: semantic_search\(query, path=\"<its id>\", detail=\"full\", "
            r"max_tokens=<twice its tokens>\)\.( Others: semantic_search\(query, detail=\"list\"\)\.)?$",
            lambda found, roots: (
                f"Read one: {_command('read', 'ID', roots=roots)}."
                + (f" Others: {_command('search', 'QUERY', roots=roots)}." if found[1] else "")
            ),
        ),
        (
            r"^Refine: add a word, or semantic_search with path=<folder> or tags=\[<tag>\]\.$",
            lambda found, roots: (
                "Refine: add a word or --path FOLDER, or search with --tag: "
                f"{_command('search', 'QUERY', '--tag', 'TAG', roots=roots)}."
            ),
        ),
    )
)
"""Ends of lines in replies."""

_ERRORS: tuple[tuple[re.Pattern[str], _Word], ...] = tuple(
    (re.compile(pattern), word)
    for pattern, word in (
        (r"list_documents(?:\(\))? shows (?:what there is|the folders there are)$", _always(_WORDS)),
        (
            rf"list_documents\(root={_STRING}\) lists (?:them|its notes)$",
            lambda found, roots: _command("find", "WORDS", "--path", _unquoted(found[1]), roots=roots)
            + " looks in it",
        ),
        (
            rf"md_tree\(path={_STRING}\) outlines it$",
            lambda found, roots: f"{_command('tree', _unquoted(found[1]), roots=roots)} outlines it",
        ),
        (
            rf"md_tree\(path\) with path={_STRING} lists all of them$",
            lambda found, roots: f"{_command('tree', _unquoted(found[1]), roots=roots)} lists all of them",
        ),
        (r"^heading is missing; md_tree\(path=(\".*\")\) lists the headings, get_documents\(.*", _no_heading),
        (r"give an id as node_id, or find the note by its content with md_find$", _always(_WORDS)),
        (r"needs node_id, the id of a note, for example (.*); find others with md_find$",
         _always(rf"needs NODE, a note's id, for example \1; {_WORDS}")),
        (r"^(query 'search_type' needs) node_id, a type; ", _always(r"\1 NODE, a type; ")),
        (r"^node_id is (?=.*, expected two notes as )", _always("NODE is ")),
        (r"; give one of these ids as node_id: ", _always("; give one of these ids: ")),
        (r"; give the id of one of its (\d+) notes as node_id: ", _always(r"; give one of its \1 notes: ")),
        (r", or leave path out$", _always(", or leave --path out")),
        (r"^select\[\d+\]\.lines is reversed: \[(\d+), (\d+)\]; give \[\d+, \d+\]$",
         _always(r"lines \1-\2 are reversed; give \2-\1")),
        (r"^select\[\d+\]\.lines is \[(\d+), (\d+)\]; lines are counted from 1$",
         _always(r"lines \1-\2: lines are counted from 1")),
        (r"repeat the call that gave it with the same arguments, or leave cursor out to begin anew$",
         _always("repeat the command that gave it, with the same options, or leave --cursor out")),
        (r"start with --allow-path$", _always("add --allow-path FOLDER")),
    )
)  # fmt: skip
"""Ends of errors, and of what notes in replies say of errors."""
