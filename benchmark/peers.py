"""Other engines over the same sections: what searchsvc is measured against.

Each function yields rows; an engine that is left out, since it is not installed or would not end, yields one
that says why.
"""

import multiprocessing
import os
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import closing
from dataclasses import dataclass
from typing import Any
from unittest.mock import patch

import numpy as np
from numpy.typing import NDArray

from benchmark.core import say
from benchmark.inside import RandomModel
from benchmark.timing import Timing, cpu_of, time_calls

TOP = 10
BM25 = "rank_bm25"
COMBINATION = "rank_bm25 + numpy, scores added"
MOST_FOR_BM25 = 200_000
_TOO_SLOW = f"more than {MOST_FOR_BM25:,} sections: it keeps a dict for each and loops over all in Python"
Floats = NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class Texts:
    """The same sections and questions, in the forms that engines take."""

    tokens: list[list[str]]
    """Terms of each section."""
    texts: list[str]
    """Plain text of each section."""
    questions: list[tuple[list[str], str]]
    """Terms of each question, and its words as written; stop words left out of both."""


def time_lexical_peers(data: Texts) -> Iterator[Timing]:
    """Time every lexical engine that is installed."""
    for name, engine in (
        (BM25, _rank_bm25),
        ("bm25s", _bm25s),
        ("tantivy", _tantivy),
        ("sqlite FTS5", _fts5),
    ):
        if name == BM25 and len(data.tokens) > MOST_FOR_BM25:
            yield _skipped(name, _TOO_SLOW)
        else:
            yield from _installed(name, lambda engine=engine: list(engine(data)))  # type: ignore[misc]


def time_vector_peers(count: int, queries: int) -> list[Timing]:
    """Time every vector engine that is installed, over random vectors."""
    return _apart(_vector_peers, count, queries)


def time_combination(data: Texts) -> Timing:
    """Time what a user would write: the scores of rank_bm25 and of ``M @ q``, each from 0 to 1, added."""
    if len(data.tokens) > MOST_FOR_BM25:
        return _skipped(COMBINATION, _TOO_SLOW)
    return _apart(_combination, data.tokens, [terms for terms, _ in data.questions])[0]


def _apart(call: Callable[..., list[Timing]], *arguments: Any) -> list[Timing]:
    """Run in a process of its own.

    For two reasons: linear algebra on one thread, since threads that wait for each other on a busy machine
    count as CPU time; and usearch, after whose import simsimd refuses int8.
    """
    one = dict.fromkeys(("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"), "1")
    context = multiprocessing.get_context("spawn")
    with patch.dict(os.environ, one), ProcessPoolExecutor(1, mp_context=context) as pool:
        return pool.submit(call, *arguments).result()


def _vector_peers(count: int, questions: int) -> list[Timing]:
    model = RandomModel(3)
    rows = model.vectors(count)
    queries = list(model.vectors(questions))
    timings = [time_calls("numpy float32 `M @ q`", lambda q: _best(rows @ q), queries)]
    timings += _installed("faiss", lambda: list(_faiss(rows, queries)))
    return timings + _installed("usearch", lambda: list(_usearch(rows, queries)))


def _combination(tokens: list[list[str]], questions: list[list[str]]) -> list[Timing]:
    def measured() -> list[Timing]:
        from rank_bm25 import BM25Okapi

        model = RandomModel(3)
        rows = model.vectors(len(tokens))
        engine, build = cpu_of(lambda: BM25Okapi(tokens))
        asked = list(zip(questions, model.vectors(len(questions)), strict=True))

        def ask(question: tuple[list[str], Floats]) -> Any:
            return _best(_scaled(engine.get_scores(question[0])) + _scaled(rows @ question[1]))

        return [time_calls(COMBINATION, ask, asked, build)]

    return _installed(COMBINATION, measured)


def _scaled(scores: NDArray[Any]) -> NDArray[Any]:
    return np.asarray((scores - scores.min()) / max(float(np.ptp(scores)), 1e-9))


def _installed(name: str, engine: Callable[[], list[Timing]]) -> list[Timing]:
    try:
        return engine()
    except (ImportError, sqlite3.OperationalError) as error:
        return [_skipped(name, str(error))]


def _skipped(name: str, reason: str) -> Timing:
    say(f"{name} is left out: {reason}")
    return Timing(name, skipped=reason)


def _best(scores: NDArray[Any]) -> NDArray[np.int64]:
    count = min(TOP, len(scores))
    best = np.argpartition(scores, len(scores) - count)[-count:]
    return np.asarray(best[np.argsort(-scores[best])])


def _rank_bm25(data: Texts) -> Iterator[Timing]:
    from rank_bm25 import BM25Okapi

    engine, build = cpu_of(lambda: BM25Okapi(data.tokens))
    yield time_calls(
        "rank_bm25, same tokens", lambda q: _best(engine.get_scores(q[0])), data.questions, build
    )


def _bm25s(data: Texts) -> Iterator[Timing]:
    import bm25s

    engine = bm25s.BM25()
    _, build = cpu_of(lambda: engine.index(data.tokens, show_progress=False))
    known = engine.vocab_dict

    def ask(question: tuple[list[str], str]) -> Any:
        terms = [term for term in question[0] if term in known]
        return engine.retrieve([terms], k=TOP, show_progress=False) if terms else None

    yield time_calls("bm25s, same tokens", ask, data.questions, build)


def _tantivy(data: Texts) -> Iterator[Timing]:
    import tantivy

    builder = tantivy.SchemaBuilder()
    builder.add_text_field("text", stored=True, tokenizer_name="en_stem")
    schema = builder.build()
    index = tantivy.Index(schema)
    searcher, build = cpu_of(lambda: _tantivy_searcher(index, data.texts))

    def ask(question: tuple[list[str], str]) -> Any:
        query, _ = index.parse_query_lenient(question[1], ["text"])
        return searcher.search(query, TOP)

    yield time_calls("tantivy, its English tokeniser", ask, data.questions, build)

    def ask_with_texts(question: tuple[list[str], str]) -> Any:
        return [searcher.doc(address)["text"] for _, address in ask(question).hits]

    yield time_calls("tantivy, its tokeniser, with texts of hits", ask_with_texts, data.questions)

    builder = tantivy.SchemaBuilder()
    builder.add_text_field("text", stored=False, tokenizer_name="whitespace")
    plain = builder.build()
    same, build = cpu_of(lambda: _tantivy_searcher(tantivy.Index(plain), map(" ".join, data.tokens)))

    def ask_same(question: tuple[list[str], str]) -> Any:
        terms = (tantivy.Query.term_query(plain, "text", term) for term in question[0])
        query = tantivy.Query.boolean_query([(tantivy.Occur.Should, term) for term in terms])
        return same.search(query, TOP)

    yield time_calls("tantivy, same tokens", ask_same, data.questions, build)


def _tantivy_searcher(index: Any, texts: Any) -> Any:
    import tantivy

    writer = index.writer(heap_size=256_000_000, num_threads=1)
    for text in texts:
        writer.add_document(tantivy.Document(text=text))
    writer.commit()
    writer.wait_merging_threads()
    index.reload()
    return index.searcher()


def _fts5(data: Texts) -> Iterator[Timing]:
    with closing(sqlite3.connect(":memory:")) as connection:
        connection.execute("CREATE VIRTUAL TABLE sections USING fts5(text, content='')")
        rows = ((" ".join(tokens),) for tokens in data.tokens)
        insert = "INSERT INTO sections(text) VALUES (?)"
        _, build = cpu_of(lambda: connection.executemany(insert, rows))

        def ask(question: tuple[list[str], str]) -> Any:
            words = " OR ".join('"' + term.replace('"', "") + '"' for term in question[0])
            query = "SELECT rowid FROM sections WHERE sections MATCH ? ORDER BY rank LIMIT ?"
            return connection.execute(query, (words, TOP)).fetchall()

        yield time_calls("sqlite FTS5, same tokens", ask, data.questions, build)


def _faiss(rows: Floats, queries: Sequence[Floats]) -> Iterator[Timing]:
    import faiss

    index = faiss.IndexFlatIP(rows.shape[1])
    _, build = cpu_of(lambda: index.add(rows))
    yield time_calls("faiss IndexFlatIP", lambda q: index.search(q[None, :], TOP), queries, build)


def _usearch(rows: Floats, queries: Sequence[Floats]) -> Iterator[Timing]:
    from usearch import index

    def ask(query: Floats) -> Any:
        return index.search(rows, query, TOP, "ip", exact=True, threads=1)

    yield time_calls("usearch exact", ask, queries)
