"""Outlines -> the replies of md_tree and index_md."""

from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import takewhile

from searchsvc.answering.lines import clip, one_line, page_span
from searchsvc.items import INTRO, FileIndex, IndexRow, Reply, Section, Tree, TreeRow
from searchsvc.reading.outline import Outline
from searchsvc.reading.sections import PREAMBLE
from searchsvc.tokens import cost

_CALL_TOKENS = 25
"""What the count of the rest and the call for it cost at most."""


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
        rows.append(
            TreeRow(
                id=f"{location}#{section.slug}",
                name=leaf if is_short else section.slug,
                title=section.title,
                level=section.level,
                line_start=section.line_start,
                line_end=section.read_end,
                cost=outline.read_cost(place),
                depth=section.slug.count("/") + 1,
                pages=_pages(sections, place),
            )
        )
    return Tree(
        location, outline.title, outline.lines, outline.cost, tuple(rows), outline.problems, is_whole=not top
    )


def _pages(sections: Sequence[Section], place: int) -> tuple[int, int] | None:
    """Return the pages of what the id of a section, given by its place, returns."""
    own = sections[place].pages
    if own is None:
        return None
    end = sections[place].read_end
    below = takewhile(lambda section: section.line_start <= end, sections[place:])
    return own[0], max(section.pages[1] for section in below if section.pages)


def render_tree(tree: Tree, max_depth: int, budget: int, *, cap: int = 20_000, start: int = -1) -> Reply:
    """Write an outline, a few tokens a heading; the deepest levels go first when the budget is short.

    From ``start`` on (0 is the first heading) all levels are shown page by page. ``cap`` is the most that any
    reply may hold.
    """
    wanted = [row for row in tree.rows if row.depth <= max_depth]
    if start >= 0:
        return _page(tree, wanted, start, budget)
    reply = _tree_reply(tree, wanted, "", budget)
    if reply.cost <= budget:
        return reply
    whole = reply.cost + 2 * _CALL_TOKENS
    rest = f"same call with max_tokens={whole}" if whole <= cap else 'same call with cursor="0"'
    deepest = max(row.depth for row in wanted)
    for depth in range(deepest - 1, 0, -1):
        rows = [row for row in wanted if row.depth <= depth]
        left = f'{len(wanted) - len(rows)} headings more below these: {rest}, or path="<path#name>"'
        reply = _tree_reply(tree, rows, left, budget, rest=rest)
        if reply.cost <= budget:
            return reply
    return _page(tree, wanted, 0, budget)


def _page(tree: Tree, rows: Sequence[TreeRow], start: int, budget: int) -> Reply:
    """Show headings from one on, at least one, and how to go on."""

    def reply(stop: int) -> Reply:
        rest = f'same call with cursor="{stop}"' if stop < len(rows) else ""
        left = f"{len(rows) - stop} headings more: {rest}" if rest else ""
        return _tree_reply(tree, rows[start:stop], left, budget, rest=rest)

    low, high = start + 1, len(rows) + 1
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if reply(middle).cost <= budget else (low, middle)
    return reply(min(low, len(rows)))


def _tree_reply(tree: Tree, rows: Sequence[TreeRow], left: str, budget: int, *, rest: str = "") -> Reply:
    name = clip(one_line(tree.location), budget // 4)
    notes = [f"! {clip(one_line(problem), budget // 8)}" for problem in tree.problems[:1]]
    body = [*notes, *(_tree_line(row, budget // 3) for row in rows), *([left] if left else [])]
    spent = cost("\n".join(body)) + cost(name) + 20
    is_whole = tree.is_whole and not left and len(rows) == len(tree.rows)
    saved = f", saves {max(0, 1 - spent / tree.cost):.0%}" if tree.cost and is_whole else ""
    text = "\n".join([f"{name} · {tree.lines} lines · {tree.cost} tok{saved}", *body])
    facts = tuple(
        {
            "id": r.id,
            "title": r.title,
            "level": r.level,
            "lines": [r.line_start, r.line_end],
            "tokens": r.cost,
            **({"pages": list(r.pages)} if r.pages else {}),
        }
        for r in rows
    )
    return Reply((text,), cost(text), facts, tuple(tree.problems), rest)


def _tree_line(row: TreeRow, limit: int) -> str:
    indent = "  " * (row.depth - 1)
    pages = f" {page_span(row.pages)}" if row.pages else ""
    return f"{indent}{clip(one_line(row.name), limit)} L{row.line_start}-{row.line_end}{pages} {row.cost}"


def make_file_index(
    location: str, outline: Outline, lines: Sequence[str], within: int | None = None
) -> FileIndex:
    """Return one row for each section of a file, with what its own lines hold.

    With ``within``, only for those that the id of one section returns, given by its place.
    """
    rows = []
    top = outline.sections[within] if within is not None else None
    for section, tokens in zip(outline.sections, outline.costs, strict=True):
        if top is not None and not top.line_start <= section.line_start <= top.read_end:
            continue
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


def render_index(files: Iterable[FileIndex], total: int, start: int, row: int, budget: int) -> Reply:
    """Write file indexes one after the other, from a row of a file on; at least one row, and how to go on."""
    parts, facts, spent, rest = list[str](), list[dict[str, object]](), 0, ""
    room = budget - _CALL_TOKENS
    for number, file in enumerate(files, start):
        first = row if number == start else 0
        text, rows = _file_table(file, first, room - spent, is_first=not parts)
        if parts and spent + cost(text) + 1 > room:
            rest = f'same call with cursor="{number}"'
            parts.append(f"{total - number} files more: {rest}")
            break
        parts.append(text)
        spent += cost(text) + 1
        facts.append({"path": file.location, "lines": file.lines, "chars": file.chars, "sections": rows})
        shown = first + len(rows)
        if shown < len(file.rows):
            rest = f'same call with cursor="{number}-{shown}"'
            more = f", {total - number - 1} files" if number + 1 < total else ""
            parts.append(f"{len(file.rows) - shown} sections{more} more: {rest}")
            break
    text = "\n".join(parts) or "no Markdown files here"
    return Reply((text,), cost(text), tuple(facts), (), rest)


def _file_table(
    file: FileIndex, first: int, budget: int, *, is_first: bool
) -> tuple[str, list[dict[str, object]]]:
    """Return a file's table from a row on, and the rows that it holds; only the first of a page is cut."""
    name = one_line(file.location)
    sign = "'" if '"' in name else '"'
    name = f"{sign}{clip(name, max(budget // 3, 10))}{sign}"
    head = [f'<file path={name} lines="{file.lines}" chars="{file.chars}">']
    head += [f"! {clip(one_line(problem), 30)}" for problem in file.problems[:1]] if budget > 200 else []
    if file.front_matter and not first and cost(file.front_matter) < budget / 3:
        head.append(file.front_matter)
    head.append("heading\tline_start\tn_images\tchar_count\ttokens")
    spent, lines, rows = cost("\n".join([*head, "</file>"])) + 2, list[str](), list[dict[str, object]]()
    for row in file.rows[first:]:
        numbers = "\t".join(map(str, ("", row.line_start, row.image_count, row.char_count, row.tokens)))
        left = budget - spent - cost(numbers) - 2
        heading = one_line(row.heading)
        line = f"{heading if cost(heading) <= left or rows else clip(heading, max(left, 3))}{numbers}"
        if is_first and rows and spent + cost(line) + 1 > budget:
            break
        spent += cost(line) + 1
        lines.append(line)
        rows.append(
            {"id": row.id, "heading": row.heading, "line_start": row.line_start, "n_images": row.image_count,
             "char_count": row.char_count, "tokens": row.tokens}
        )  # fmt: skip
    return "\n".join([*head, *lines, "</file>"]), rows
