"""What goes over the wire as structured content: the same facts as the text, for programs."""

from mcp.server.mcpserver import Image
from mcp.types import CallToolResult, ImageContent, TextContent
from pydantic import BaseModel

from searchsvc.items import Answer, Hit, Reply
from searchsvc.status_items import ProfileStatus, RootStatus, Status


class WireAnswer(BaseModel):
    """A search reply."""

    relevant: bool
    total: int
    hits: list[dict[str, object]]
    """Of each: id, root, path, heading, lines (first and last), tokens, score, how it is shown, why."""
    cursor: str = ""
    notices: list[str] = []


class WireReply(BaseModel):
    """What a reading tool answers."""

    rows: list[dict[str, object]]
    notes: list[str] = []
    rest: str = ""


class WireStatus(BaseModel):
    """The state of the service."""

    roots: list[dict[str, object]]
    profiles: list[dict[str, object]]
    activity: str
    advice: list[str]


def answer_to_wire(answer: Answer) -> WireAnswer:
    """Translate an answer."""
    return WireAnswer(
        relevant=answer.ranking.relevant and bool(answer.shown),
        total=answer.ranking.total,
        hits=[_hit(hit, shape) for hit, shape in answer.shown],
        cursor=answer.cursor,
        notices=list(answer.ranking.notices),
    )


def answer_reply(answer: Answer) -> CallToolResult:
    """Return an answer as text, and the same facts as structured content."""
    return CallToolResult(
        content=[TextContent(type="text", text=answer.text)],
        structured_content=answer_to_wire(answer).model_dump(mode="json", exclude_defaults=True),
    )


def reply_to_wire(reply: Reply) -> CallToolResult:
    """Translate the reply of a reading tool: blocks as they come, the same facts as structured content."""
    content: list[TextContent | ImageContent] = [
        TextContent(type="text", text=block)
        if isinstance(block, str)
        else Image(data=block.data, format=block.media_type.rpartition("/")[2]).to_image_content()
        for block in reply.blocks
    ]
    facts = WireReply(rows=list(reply.rows), notes=list(reply.notes), rest=reply.rest)
    return CallToolResult(
        content=[*content], structured_content=facts.model_dump(mode="json", exclude_defaults=True)
    )


def status_to_wire(status: Status) -> WireStatus:
    """Translate a status."""
    return WireStatus(
        roots=[_root(root) for root in status.roots],
        profiles=[_profile(profile) for profile in status.profiles],
        activity=status.activity,
        advice=list(status.advice),
    )


def _hit(hit: Hit, shape: str) -> dict[str, object]:
    facts: dict[str, object] = {
        "id": hit.id,
        "root": hit.root,
        "path": hit.path,
        "heading": " > ".join(hit.section.heading_path),
        "lines": [hit.section.line_start, hit.section.line_end],
        "tokens": hit.cost,
        "score": hit.score,
        "shown": shape,
        "why": list(hit.why),
    }
    if hit.cost_below:
        facts["tokens_below"] = hit.cost_below
    if hit.section.pages:
        facts["pages"] = list(hit.section.pages)
    if hit.channels:
        facts["channels"] = {name: [score.rank, score.score] for name, score in hit.channels.items()}
    if hit.terms:
        facts["terms"] = hit.terms
    return facts


def _root(root: RootStatus) -> dict[str, object]:
    return {
        "name": root.name,
        "indexed": root.indexed,
        "notes": root.notes,
        "sections": root.sections,
        "generation": root.generation,
        "problems": [[problem.path, problem.reason] for problem in root.problems[:50]],
    }


def _profile(profile: ProfileStatus) -> dict[str, object]:
    return {
        "model": profile.model,
        "provider": profile.provider,
        "dimension": profile.dimension,
        "state": profile.state,
        "embedded": profile.embedded,
        "wanted": profile.wanted,
    }
