"""What people see on a terminal: progress bars and ranked results."""

import json
import sys
import time
from typing import TYPE_CHECKING, Any

from searchsvc.answering.lines import pages_of, size_of
from searchsvc.answering.window import best_window
from searchsvc.items import Hit, Ranking

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

    from searchsvc.service import Service

_PATIENCE_SECONDS = 1.0
_LINE_SECONDS = 5.0
_SNIPPET_TOKENS = 60


class ProgressBar:
    """Shows nothing for quick work; then a bar with rate and ETA on a terminal, or JSON lines elsewhere."""

    def __init__(self) -> None:
        self._begin = self._last_line = time.monotonic()
        self._bar: Progress | None = None
        self._tasks: dict[str, TaskID] = {}
        self._starts: dict[str, tuple[float, int]] = {}

    def __call__(self, stage: str, done: int, total: int, failed: int = 0) -> None:
        """Take note of progress."""
        now = time.monotonic()
        begin, first = self._starts.setdefault(stage, (now, done))
        if now - self._begin < _PATIENCE_SECONDS:
            return
        rate = (done - first) / (now - begin) if now > begin else 0.0
        if sys.stderr.isatty():
            self._draw(stage, done, total, failed, rate)
        elif now - self._last_line > _LINE_SECONDS:
            self._last_line = now
            left = round((total - done) / rate) if rate else None
            line = {"stage": stage, "done": done, "total": total, "failed": failed}
            self._print_line({**line, "per_second": round(rate, 1), "seconds_left": left})

    def _print_line(self, line: dict[str, object]) -> None:
        print(json.dumps(line), file=sys.stderr, flush=True)  # noqa: T201

    def _draw(self, stage: str, done: int, total: int, failed: int, rate: float) -> None:
        if self._bar is None:
            from rich.console import Console
            from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

            self._bar = Progress(
                TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(),
                TextColumn("{task.fields[rate]:.0f}/s, left"), TimeRemainingColumn(),
                TextColumn("[red]{task.fields[failed]}[/red]"),
                console=Console(stderr=True), transient=True,
            )  # fmt: skip
            self._bar.start()
        task = self._tasks.get(stage)
        words: dict[str, Any] = {"rate": rate, "failed": f"{failed} failed" if failed else ""}
        if task is None or total != self._bar.tasks[task].total:
            task = self._tasks[stage] = self._bar.add_task(stage, total=total, **words)
        self._bar.update(task, completed=done, **words)

    def close(self) -> None:
        """Take the bar off the screen."""
        if self._bar is not None:
            self._bar.stop()


def print_ranking(service: "Service", ranking: Ranking, *, explain: bool) -> None:
    """Print hits with rank, address, heading path, lines and a snippet with matches marked."""
    from rich.console import Console
    from rich.markup import escape
    from rich.text import Text

    console = Console(highlight=False, soft_wrap=True)
    for notice in ranking.notices:
        console.print(f"[yellow]! {escape(notice)}[/yellow]")
    if not ranking.relevant or not ranking.hits:
        console.print("Nothing relevant." + (" Nearest, probably off topic:" if ranking.hits else ""))
    for rank, hit in enumerate(ranking.hits, 1):
        section = hit.section
        console.print(
            f"[bold]{rank:>2}[/bold] [cyan]{escape(hit.location)}[/cyan]:"
            f"{section.line_start}-{section.line_end}{pages_of(section)}  "
            f"[dim]{hit.score:.3f} · {size_of(hit)} · {escape(' · '.join(hit.why))}[/dim]"
        )
        path = " > ".join(section.heading_path)
        if path:
            console.print(Text(f"   {path}", style="bold"))
        for line in _snippet(service, hit, ranking.weights):
            console.print(line)
        if explain:
            _print_explanation(console, hit)


def _snippet(service: "Service", hit: Hit, weights: dict[str, float]) -> "list[object]":
    from rich.text import Text

    lines = [
        line
        for line in hit.text.split("\n")[hit.section.body_start - hit.section.line_start :]
        if line.strip()
    ]
    if not lines:
        return []
    window = best_window(lines, 1, weights, service.terms_of, _SNIPPET_TOKENS)
    out: list[object] = []
    for line in window.text.split("\n")[:4]:
        styled = Text(f"   {line.strip()}")
        words = sorted({word for word in line.split() if set(service.terms_of(word)) & set(weights)}, key=len)
        styled.highlight_words(words, style="bold yellow", case_sensitive=True)
        out.append(styled)
    return out


def _print_explanation(console: object, hit: Hit) -> None:
    channels = ", ".join(
        f"{name} #{score.rank} {score.score:.3f}" for name, score in hit.channels.items() if score.rank
    )
    terms = ", ".join(f"{term} {score:.3f}" for term, score in hit.terms.items())
    console.print(f"   [dim]channels: {channels}\n   terms: {terms}[/dim]")  # type: ignore[attr-defined]
