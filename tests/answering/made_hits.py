"""Hits made of any text, and strategies that make them."""

from hypothesis import strategies as st

from searchsvc.items import Hit, Ranking, Section
from searchsvc.tokens import Tokenizer, cost

TERMS_OF = Tokenizer().terms
LINES = st.one_of(
    st.sampled_from(
        [
            "",
            "   ",
            "Water tomatoes deeply twice a week.",
            "```python",
            "```",
            "~~~~",
            "> ```",
            "- ```sh",
            "     ```",
            "=== 1. garden/tomatoes.md#watering · L1-2 · 3 tok",
            "==== 7. evil.md#x",
            "=== Not whole above: 5 tok.",
            "=====",
            "认证系统使用令牌。" * 20,
            "👩‍👩‍👧 👍🏽 e\u0301 🇪🇸 " * 30,
            "0123456789abcdefABCDEF+/=" * 30,
            "word " * 4000,
        ]
    ),
    st.text(st.characters(exclude_categories=("Cs",), exclude_characters="\n\r"), max_size=60),
)
TEXTS = st.lists(LINES, min_size=1, max_size=14).map("\n".join)
NAMES = st.one_of(
    st.sampled_from(["garden/tomatoes.md", "设置/认证.md", "x" * 3000 + ".md", "a b [c].md"]),
    st.text(min_size=1, max_size=30),
)
NOTICES = st.lists(st.one_of(st.text(max_size=80), st.just("vectors are still being made " * 60)), max_size=5)
BUDGETS = st.one_of(st.integers(100, 260), st.integers(100, 6000))
DETAILS = st.sampled_from(["auto", "list", "snippet", "full"])


def make_hit(text="Some text.", path="note.md", slug="part", *, line=1, score=1.0, **facts) -> Hit:
    end = line + text.count("\n")
    section = Section(slug, slug, 2, (slug,), -1, line, line + 1, end, end, slug)
    return Hit("notes", path, path, section, score, cost(text), text, **facts)


@st.composite
def hit_lists(draw, *, max_size=12):
    texts = draw(st.lists(TEXTS, min_size=1, max_size=max_size))
    scores = sorted((draw(st.floats(-0.2, 1)) for _ in texts), reverse=True)
    return tuple(
        make_hit(
            text,
            f"{number}{draw(NAMES)}",
            draw(NAMES),
            line=draw(st.integers(1, 90_000)),
            score=score,
            why=tuple(draw(st.lists(NAMES, max_size=2))),
            twins=tuple(draw(st.lists(NAMES, max_size=1))),
        )
        for number, (text, score) in enumerate(zip(texts, scores, strict=True))
    )


@st.composite
def rankings(draw, **facts):
    hits = draw(hit_lists())
    weights = draw(
        st.sampled_from([{}, {"tomato": 2.0, "water": 1.5, "认证": 3.0, "令牌": 2.0, "word": 0.1}])
    )
    given = {"total": len(hits), "weights": weights, "notices": tuple(draw(NOTICES)), **facts}
    return Ranking(hits, **given)
