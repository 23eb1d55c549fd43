"""Front matter -> the reply of md_frontmatter: typed values, one property a line."""

import json
from collections.abc import Sequence

from searchsvc.answering.lines import clip, one_line
from searchsvc.items import Reply
from searchsvc.reading.frontmatter import FrontMatter
from searchsvc.tokens import cost

_MORE_TOKENS = 25


def render_front_matter(location: str, front: FrontMatter, problems: Sequence[str], budget: int) -> Reply:
    """Write every property as ``key: JSON value``, which is YAML too; long ones are cut last."""
    name = clip(one_line(location), budget // 4)
    if not front.lines:
        head = f"{name} has no front matter"
    else:
        head = f"{name} · front matter L1-{front.lines} · {len(front.properties)} properties"
    lines = [head, *(f"! {clip(one_line(problem), 60)}" for problem in problems[:3])]
    room = budget - cost("\n".join(lines)) - _MORE_TOKENS
    shown: dict[str, object] = {}
    whole = cost("\n".join(lines)) + _MORE_TOKENS
    for key, value in front.properties.items():
        line = one_line(f"{key}: {json.dumps(value, ensure_ascii=False)}")
        whole += cost(line) + 1
        if cost(line) + 1 > room:
            continue
        room -= cost(line) + 1
        lines.append(line)
        shown[key] = value
    left, rest = len(front.properties) - len(shown), ""
    if left:
        rest = f"same call with max_tokens={whole}"
        lines.append(f"{left} properties more: {rest}, or its lines by get_documents")
    text = "\n".join(lines)
    row = {"path": location, "lines": [1, front.lines] if front.lines else [], "properties": shown}
    return Reply((text,), cost(text), (row,), tuple(problems), rest)
