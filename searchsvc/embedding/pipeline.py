"""Passages -> batches under way at once -> outcomes in the order of the passages.

Texts are pulled in groups, and a group is sorted by length: a server pads the texts of a batch to the
longest. While the outcomes of one group are taken, the next is being embedded and others wait, so
that a server always has work, also while the taker writes to disk.
"""

import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from queue import SimpleQueue
from weakref import WeakValueDictionary

from searchsvc.embedding.base import Outcome, Partial, Passage
from searchsvc.embedding.endpoint import Stopped
from searchsvc.embedding.pieces import count_tokens
from searchsvc.embedding.recovery import Verdict
from searchsvc.embedding.vectors import stack

GROUPS = 4
"""Groups of texts between the passages and the taker: one being taken, one under way, two waiting."""
PASSAGES_A_TEXT = 4
"""Passages pulled for one new text, where most are blank or were seen before."""
KEPT_TEXTS = 2048
KEPT_CHARACTERS = 200
"""So many texts of at most so many characters are kept with their vectors: headings come again."""
MAX_REASONS = 3
"""Different reasons told of one passage."""


@dataclass(frozen=True, slots=True)
class Load:
    """How much is asked of a server at once."""

    texts: int
    """In one request."""
    tokens: int
    """In one request, at a guess."""
    concurrency: int
    """Requests under way at once."""

    @property
    def group(self) -> int:
        """Texts that are sorted by length together.

        All of them are needed before the first passage is whole, so this is what a crash costs.
        """
        return self.concurrency * self.texts


@dataclass(eq=False)
class _Slot:
    """One text, shared by all windows that are equal."""

    text: str
    done: "Future[Verdict]" = field(default_factory=Future)


class _Run:
    """The threads of one run, and what they have to do."""

    def __init__(
        self, embed: Callable[[Sequence[str]], list[Verdict]], threads: int, stop: threading.Event
    ) -> None:
        self._embed, self._stop, self._threads = embed, stop, threads
        self._batches: SimpleQueue[list[_Slot] | None] = SimpleQueue()
        self._started = 0
        self._failure: BaseException | None = None

    def add(self, batch: list[_Slot]) -> None:
        self._batches.put(batch)
        if self._started < self._threads:
            self._started += 1
            # Daemons: a request that still waits for its answer must not hold up the end of the process.
            threading.Thread(target=self._work, name="searchsvc-embed", daemon=True).start()

    def _work(self) -> None:
        while (batch := self._batches.get()) is not None:
            self._embed_batch(batch)

    def _embed_batch(self, batch: list[_Slot]) -> None:
        try:
            if self._stop.is_set():
                raise Stopped
            verdicts = self._embed([slot.text for slot in batch])
        except BaseException as error:  # it is raised where the first of these texts is waited for
            if not isinstance(error, Stopped):
                self._failure = self._failure or error
            # After a fault that no retry mends, what has not begun would only run into it again.
            self._stop.set()
            for slot in batch:
                slot.done.set_exception(error)
        else:
            for slot, verdict in zip(batch, verdicts, strict=True):
                slot.done.set_result(verdict)

    def wait_for(self, slot: _Slot) -> Verdict:
        """Return what became of a text; raise what kept it from being embedded."""
        try:
            return slot.done.result()
        except Stopped:
            if self._failure is None:
                raise
            raise self._failure from None

    def end(self) -> None:
        """Let nothing new begin; requests under way end by themselves."""
        self._stop.set()
        for _ in range(self._started):
            self._batches.put(None)


def embed_in_order(
    passages: Iterable[Passage],
    windows: Callable[[Passage], list[str]],
    embed: Callable[[Sequence[str]], list[Verdict]],
    load: Load,
    dimension: int,
    stop: threading.Event,
) -> Iterator[Outcome]:
    """Yield the outcome of each passage, in order.

    ``windows`` says which texts are embedded for a passage, ``embed`` gives the verdicts of a batch. At
    most ``GROUPS`` groups of new texts are held, and a few times as many passages. An
    error of ``embed`` is raised in place of the first passage that lacks a vector for it. When the taker
    stops, ``stop`` is set and nothing more begins.
    """
    run = _Run(embed, load.concurrency, stop)
    try:
        ahead = _Ahead(passages, windows, load, run)
        while ahead.fill():
            verdicts = [run.wait_for(slot) for slot in ahead.take_first()]
            yield _outcome(verdicts, dimension)
    finally:
        run.end()


class _Ahead:
    """The passages that were pulled and not yet yielded."""

    def __init__(
        self, passages: Iterable[Passage], windows: Callable[[Passage], list[str]], load: Load, run: _Run
    ) -> None:
        self._passages, self._windows, self._load, self._run = iter(passages), windows, load, run
        self._held: deque[tuple[list[_Slot], int]] = deque()
        self._slots: WeakValueDictionary[str, _Slot] = WeakValueDictionary()
        self._kept: deque[_Slot] = deque(maxlen=KEPT_TEXTS)
        self._rest: list[_Slot] = []
        self._texts, self._is_over = 0, False

    def fill(self) -> bool:
        """Pull groups while there is room; return whether any passage is held."""
        room = (GROUPS - 1) * self._load.group
        while not self._is_over and self._texts <= room and len(self._held) <= PASSAGES_A_TEXT * room:
            self._pull_group()
        return bool(self._held)

    def take_first(self) -> list[_Slot]:
        """Return the texts of the passage whose turn it is, all of them under way."""
        slots, fresh = self._held.popleft()
        self._texts -= fresh
        if any(slot in self._rest for slot in slots):
            self._begin(self._rest)
            self._rest = []
        return slots

    def _pull_group(self) -> None:
        """Pull passages with a group of new texts; what fills no batch waits for the next group."""
        fresh, pulled = self._rest, 0
        while len(fresh) < self._load.group and pulled < PASSAGES_A_TEXT * self._load.group:
            passage = next(self._passages, None)
            if passage is None:
                self._is_over = True
                break
            before = len(fresh)
            slots = [self._slot(text, fresh) for text in self._windows(passage)]
            self._held.append((slots, len(fresh) - before))
            self._texts += len(fresh) - before
            pulled += 1
        full = len(fresh) if self._is_over else len(fresh) - len(fresh) % self._load.texts
        self._begin(fresh[:full])
        self._rest = fresh[full:]

    def _begin(self, slots: list[_Slot]) -> None:
        for batch in _batches(slots, self._load):
            self._run.add(batch)

    def _slot(self, text: str, fresh: list[_Slot]) -> _Slot:
        slot = self._slots.get(text)
        if slot is None:
            slot = self._slots[text] = _Slot(text)
            fresh.append(slot)
            if len(text) <= KEPT_CHARACTERS:
                self._kept.append(slot)
        return slot


def _batches(slots: list[_Slot], load: Load) -> Iterator[list[_Slot]]:
    """Share texts out into batches of about equal length, the longest first."""
    batch: list[_Slot] = []
    total = 0
    sized = sorted(((count_tokens(slot.text), slot) for slot in slots), key=lambda pair: -pair[0])
    for tokens, slot in sized:
        if batch and (len(batch) == load.texts or total + tokens > load.tokens):
            yield batch
            batch, total = [], 0
        batch.append(slot)
        total += tokens
    if batch:
        yield batch


def _outcome(verdicts: list[Verdict], dimension: int) -> Outcome:
    rows = stack([verdict.row for verdict in verdicts if verdict.row is not None], dimension)
    reasons = list(dict.fromkeys(verdict.reason for verdict in verdicts if verdict.reason))
    if not reasons:
        return rows
    refused = len(verdicts) - len(rows)
    head = f"{refused} of {len(verdicts)} windows have no vector: " if refused else ""
    more = f" (and {len(reasons) - MAX_REASONS} other reasons)" if len(reasons) > MAX_REASONS else ""
    return Partial(rows, f"{head}{'; '.join(reasons[:MAX_REASONS])}{more}")
