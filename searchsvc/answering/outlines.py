"""Outlines -> the replies of md_tree and index_md."""

from collections import Counter
from collections.abc import Iterable, Sequence

from searchsvc.answering.lines import clip, one_line
from searchsvc.answering.passage import as_call
from searchsvc.items import FileIndex, IndexRow, Reply, Tree, TreeRow
from searchsvc.reading.outline import Outline
from searchsvc.reading.sections import INTRO, PREAMBLE
from searchsvc.tokens import cost

_CALL_TOKENS = 60
"""What the call for the rest costs at most."""
_MAX_LINE = 60
"""Tokens of one heading in an outline."""


def make_tree(location: str, outline: Outline, within: int | None = None) -> Tree:
    """Return the headings of a note; with ``within``, only those of one section, given by its place."""
    sections = outline.sections
    leaves = Counter(section.slug.rpartition("/")[2] for section in sections)
    taken = {section.slug for section in sections}
    title = next((place for place, section in enumerate(sections) if section.slug == INTRO), -1)
    top = sections[within].slug if within is not None and within != title else ""
    rows = []
    for place, section in enumerate(sections):
        if top and section.slug != top and not section.slug.startswith(f"{top}/"):
            continue
        leaf = section.slug.rpartition("/")[2]
        is_short = leaves[leaf] == 1 and (leaf == section.slug or leaf not in taken)
        alone = place == title
        rows.append(
            TreeRow(
                id=f"{location}#{section.slug}",
                name=leaf if is_short else section.slug,
                title=section.title,
                level=section.level,
                line_start=section.line_start,
                line_end=section.line_end if alone else section.subtree_end,
                cost=outline.costs[place] if alone else outline.subtree_cost(place),
                depth=section.slug.count("/") + 1,
            )
        )
    return Tree(location, outline.title, outline.lines, outline.cost, tuple(rows), outline.problems)


def render_tree(tree: Tree, max_depth: int, budget: int) -> Reply:
    """Write an outline, a few tokens a heading; the deepest levels go first when the budget is short."""
    deepest = max((row.depth for row in tree.rows), default=1)
    for depth in range(min(max_depth, deepest), 0, -1):
        rows = [row for row in tree.rows if row.depth <= depth]
        reply = _tree_reply(tree, rows, depth < min(max_depth, deepest), budget)
        if reply.cost <= budget:
            return reply
    low, high = 0, len(rows)
    while high - low > 1:
        middle = (low + high) // 2
        is_fitting = _tree_reply(tree, rows[:middle], True, budget).cost <= budget
        low, high = (middle, high) if is_fitting else (low, middle)
    return _tree_reply(tree, rows[:low], True, budget)


def _tree_reply(tree: Tree, rows: Sequence[TreeRow], is_cut: bool, budget: int) -> Reply:
    name = clip(one_line(tree.location), budget // 4)
    lines = [_tree_line(row) for row in rows]
    left = len(tree.rows) - len(rows)
    whole = sum(cost(_tree_line(row)) for row in tree.rows) + 2 * _CALL_TOKENS if is_cut else 0
    rest = as_call("md_tree", path=name, max_tokens=whole) if is_cut else ""
    notes = [f"! {clip(one_line(problem), 40)}" for problem in tree.problems[:3]]
    body = [*notes, *lines, *([f'{left} headings more: {rest}, or path="<path#name>"'] if is_cut else [])]
    spent = cost("\n".join(body)) + cost(name) + 30
    saved = f", saves {max(0, 1 - spent / tree.cost):.0%}" if tree.cost else ""
    head = f"{name} · {tree.lines} lines · {tree.cost} tok{saved}"
    text = "\n".join([head, *body])
    facts = tuple(
        {
            "id": r.id,
            "title": r.title,
            "level": r.level,
            "lines": [r.line_start, r.line_end],
            "tokens": r.cost,
        }
        for r in rows
    )
    return Reply((text,), cost(text), facts, tuple(tree.problems), rest)


def _tree_line(row: TreeRow) -> str:
    indent = "  " * (row.depth - 1)
    return f"{indent}{clip(one_line(row.name), _MAX_LINE)} L{row.line_start}-{row.line_end} {row.cost}"


def make_file_index(location: str, outline: Outline, lines: Sequence[str]) -> FileIndex:
    """Return one row for each section of a file, with what its own lines hold."""
    rows = []
    for section, tokens in zip(outline.sections, outline.costs, strict=True):
        own = range(section.line_start, section.line_end + 1)
        if section.slug == PREAMBLE and section.line_end < outline.body_start:
            continue
        rows.append(
            IndexRow(
                heading=f"{'#' * section.level} {section.title}".strip(),
                line_start=section.line_start,
                image_count=sum(image.line in own for image in outline.images),
                char_count=sum(len(lines[number - 1]) + 1 for number in own),
                tokens=tokens,
                id=f"{location}#{section.slug}",
            )
        )
    front = "\n".join(lines[: outline.body_start - 1])
    return FileIndex(
        location, outline.lines, outline.characters + outline.lines, front, tuple(rows), outline.problems
    )


def render_index(files: Iterable[FileIndex], total: int, start: int, uri: str, budget: int) -> Reply:
    """Write file indexes one after the other, as many as fit; a long one is cut."""
    parts, facts, spent, shown, rest = list[str](), list[dict[str, object]](), 0, start, ""
    room = budget - _CALL_TOKENS
    for file in files:
        text, rows = _file_table(file, room - spent if not parts else 10**9)
        if parts and spent + cost(text) + 1 > room:
            break
        parts.append(text)
        spent += cost(text) + 1
        shown += 1
        facts.append({"path": file.location, "lines": file.lines, "chars": file.chars, "sections": rows})
        if len(rows) < len(file.rows):
            break
    if shown < total:
        rest = as_call("index_md", uri=uri, cursor=str(shown))
        parts.append(clip(f"{total - shown} files more: {rest}", _CALL_TOKENS))
    text = "\n".join(parts) or "no Markdown files here"
    return Reply((text,), cost(text), tuple(facts), (), rest)


def _file_table(file: FileIndex, budget: int) -> tuple[str, list[dict[str, object]]]:
    """Return a file's table within a budget, and the rows that it holds."""
    name = clip(one_line(file.location).replace('"', "'"), max(budget // 4, 10))
    head = [f'<file path="{name}" lines="{file.lines}" chars="{file.chars}">']
    head += [f"! {clip(one_line(problem), 30)}" for problem in file.problems[:2]]
    if file.front_matter and cost(file.front_matter) < budget / 3:
        head.append(file.front_matter)
    head.append("heading\tline_start\tn_images\tchar_count\ttokens")
    spent, lines, rows = cost("\n".join(head)) + _CALL_TOKENS, list[str](), list[dict[str, object]]()
    for row in file.rows:
        line = "\t".join(
            (clip(one_line(row.heading), _MAX_LINE), str(row.line_start), str(row.image_count),
             str(row.char_count), str(row.tokens))
        )  # fmt: skip
        spent += cost(line) + 1
        if spent > budget:
            break
        lines.append(line)
        rows.append(
            {"id": row.id, "heading": row.heading, "line_start": row.line_start, "n_images": row.image_count,
             "char_count": row.char_count, "tokens": row.tokens}
        )  # fmt: skip
    left = len(file.rows) - len(rows)
    more = [f"{left} sections more: larger max_tokens, or md_tree"] if left else []
    return "\n".join([*head, *lines, *more, "</file>"]), rows
