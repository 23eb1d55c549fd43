"""A block rule for markdown-it-py: formulas between lines of ``$$`` and comments between lines of ``%%``.

CommonMark knows neither; Obsidian, Pandoc and GitHub draw the one, Obsidian hides the other
(https://help.obsidian.md/syntax). What looks like a heading in them is none: a lone ``=`` in a formula,
the data that plugins keep at the end of a note. What is opened and never closed is text.
"""

from markdown_it.rules_block import StateBlock

_FORMULA = "$$"
_COMMENT = "%%"
_MARKS = (_FORMULA, _COMMENT)


def aside(state: StateBlock, start_line: int, end_line: int, silent: bool) -> bool:
    """Add a formula as one token, and a comment as the blocks in it between two tokens."""
    if not state.src.startswith(_MARKS, state.bMarks[start_line] + state.tShift[start_line]):
        return False
    mark = _line(state, start_line)[:2]
    last = None if state.is_code_block(start_line) else _closing_line(state, mark, start_line, end_line)
    if last is None or silent:
        return last is not None
    if mark == _FORMULA:
        state.push("formula", "", 0).map = [start_line, last + 1]
    else:
        state.push("comment_open", "", 1).map = [start_line, last + 1]
        outer_end, state.lineMax = state.lineMax, last
        state.md.block.tokenize(state, start_line + 1, last)
        state.lineMax = outer_end
        state.push("comment_close", "", -1)
    state.line = last + 1
    return True


def _closing_line(state: StateBlock, mark: str, start_line: int, end_line: int) -> int | None:
    """Return the line that ends with the mark which a line begins with; a formula holds no blank line.

    How far was looked in vain is remembered, so that many opening lines are not each looked from.
    """
    key = f"not closed: {mark}"
    if mark in _line(state, start_line)[len(mark) :] or start_line < state.env.get(key, -1):
        return None
    line = start_line + 1
    while line < end_line and state.sCount[line] >= state.blkIndent:
        text = _line(state, line)
        if text.endswith(mark) and text.count(mark) == 1:
            return line
        if mark == _FORMULA and not text:
            break
        line += 1
    state.env[key] = line
    return None


def _line(state: StateBlock, line: int) -> str:
    return state.src[state.bMarks[line] + state.tShift[line] : state.eMarks[line]].rstrip()
