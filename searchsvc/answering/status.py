"""The state of the service -> a few lines."""

from searchsvc.status_items import RootStatus, Status
from searchsvc.tokens import cost

_MAX_PROBLEMS = 20


def render_status(status: Status, budget: int = 4_000) -> str:
    """Return everything worth knowing, within ``budget`` tokens."""
    lines = [line for root in status.roots for line in _root_lines(root)]
    for profile in status.profiles:
        state = profile.state
        if state == "ready":
            state = (
                f"{profile.embedded} of {profile.wanted} sections embedded, {profile.dimension} dimensions"
            )
            if profile.failed:
                state += f", {profile.failed} failed (`searchsvc embed --failures`)"
        lines.append(f"model {profile.model}: {state}")
    if not status.profiles:
        lines.append("model: none, search is by words only")
    is_loading = any(profile.state == "loading" for profile in status.profiles)
    lines.append(f"now: {status.activity or ('loading a model' if is_loading else 'nothing to do')}")
    lines += [f"advice: {advice}" for advice in status.advice]
    while cost("\n".join(lines)) > budget and len(lines) > 1:
        lines.pop()
    return "\n".join(lines)


def _root_lines(root: RootStatus) -> list[str]:
    if not root.indexed:
        return [f"root {root.name}: no index of this version yet"]
    lines = [
        f"root {root.name}: {root.notes} notes, {root.sections} sections, {root.links} links "
        f"({root.unresolved_links} lead nowhere), generation {root.generation}, "
        f"{root.index_bytes / 1e6:.1f} MB"
    ]
    lines += [
        f"  {'skipped' if problem.skipped else 'note'} {problem.path}: {problem.reason}"
        for problem in root.problems[:_MAX_PROBLEMS]
    ]
    if len(root.problems) > _MAX_PROBLEMS:
        lines.append(f"  and {len(root.problems) - _MAX_PROBLEMS} more problems")
    return lines
