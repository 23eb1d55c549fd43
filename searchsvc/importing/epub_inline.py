"""Rules of the converter for what needs no knowledge of the chapter: lists, code, emphasis."""

import re
from typing import Any

from searchsvc.importing.epub_links import HEADING
from searchsvc.importing.epub_notes import DEFINITION
from searchsvc.importing.epub_placing import take_marks

TICKS = re.compile(r"`+")
_UP = str.maketrans("0123456789+-=()n", "⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻⁼⁽⁾ⁿ")
_DOWN = str.maketrans("0123456789+-=()", "₀₁₂₃₄₅₆₇₈₉₊₋₌₍₎")
_RAISED = re.compile(r"[0-9+\-=()n]{1,8}")


_OPEN, _CLOSE = "\x13", "\x14"
_SEAM = re.compile(f"(?<!\\*)(\\*{{1,2}}){_CLOSE}{_OPEN}\\1(?!\\*)")


class SimpleRules:
    """To be mixed into the converter."""

    def convert_code(self, el: Any, text: str, parent_tags: set[str]) -> str:
        """Convert code inside a line."""
        if "_noformat" in parent_tags or not text.strip() or "\n\n" in text or HEADING in text:
            return text
        text, notes = take_marks(text)
        if not text.strip():
            return text + notes
        head = " " if text[0] == " " else ""
        tail = " " if text[-1] == " " else ""
        return head + code_span(" ".join(text.split())) + notes + tail

    convert_kbd = convert_samp = convert_tt = convert_code

    def convert_li(self, el: Any, text: str, parent_tags: set[str]) -> str:
        """Convert an item of a list."""
        text = text.strip()
        if not text:
            return ""
        number = el.attrs.get("x-number")
        bullet = f"{number}. " if isinstance(number, int) else "- "
        lines = text.split("\n")
        rest = [" " * len(bullet) + line if line.strip() else "" for line in lines[1:]]
        return "\n" + "\n".join([bullet + lines[0], *rest]) + "\n"

    def convert_ul(self, el: Any, text: str, parent_tags: set[str]) -> str:
        """Convert a list."""
        if not text.strip():
            return ""
        if "_inline" in parent_tags:
            return " " + " ".join(text.split()) + " "
        text = text.strip("\n")
        return f"\n{text}\n" if "li" in parent_tags else f"\n\n{text}\n\n"

    convert_ol = convert_list = convert_menu = convert_dl = convert_ul

    def convert_dt(self, el: Any, text: str, parent_tags: set[str]) -> str:
        """Convert a term: an item, its definitions are the text of it."""
        text = " ".join(text.split())
        return f"\n- **{text}**\n" if text else ""

    def convert_dd(self, el: Any, text: str, parent_tags: set[str]) -> str:
        """Convert a definition."""
        lines = ["  " + line if line.strip() else "" for line in text.strip().split("\n")]
        return "\n\n" + "\n".join(lines) + "\n\n" if text.strip() else ""

    def convert_br(self, el: Any, text: str, parent_tags: set[str]) -> str:
        """Convert a line break."""
        return " " if parent_tags & {"_inline", "_noformat"} else "  \n"

    def convert_hr(self, el: Any, text: str, parent_tags: set[str]) -> str:
        """Convert a rule; not to dashes, which begin front matter."""
        after = el.find_next_sibling()
        are_notes = after is not None and (DEFINITION in after.attrs or after.find(attrs={DEFINITION: True}))
        return "" if are_notes else "\n\n***\n\n"

    def convert_xbreak(self, el: Any, text: str, parent_tags: set[str]) -> str:
        """Convert what stands for the end of a paragraph."""
        return " " if parent_tags & {"_inline", "_noformat"} else "\n\n"

    def convert_q(self, el: Any, text: str, parent_tags: set[str]) -> str:
        """Convert a short quotation."""
        return f"“{text}”"

    def convert_sup(self, el: Any, text: str, parent_tags: set[str]) -> str:
        """Convert to raised digits where there are some; the index reads them as plain ones."""
        return text.translate(_UP) if _RAISED.fullmatch(text) else text

    def convert_sub(self, el: Any, text: str, parent_tags: set[str]) -> str:
        """Convert to lowered digits where there are some."""
        return text.translate(_DOWN) if _RAISED.fullmatch(text) else text

    def convert_em(self, el: Any, text: str, parent_tags: set[str]) -> str:
        """Convert emphasis, once however often it is said."""
        return _wrapped(text, "*", parent_tags & {"em", "i", "cite", "dfn", "var", "_noformat"})

    convert_i = convert_cite = convert_dfn = convert_var = convert_em

    def convert_strong(self, el: Any, text: str, parent_tags: set[str]) -> str:
        """Convert strong emphasis."""
        return _wrapped(text, "**", parent_tags & {"strong", "b", "dt", "_noformat"})

    convert_b = convert_strong

    def convert_input(self, el: Any, text: str, parent_tags: set[str]) -> str:
        """Convert the box of a task; all others are left out."""
        box = "[x]" if "checked" in el.attrs else "[ ]"
        return box if str(el.next_sibling or "")[:1].isspace() else box + " "

    def convert_figure(self, el: Any, text: str, parent_tags: set[str]) -> str:
        """Convert a figure."""
        return f"\n\n{text.strip()}\n\n"

    convert_figcaption = convert_figure


def _wrapped(text: str, mark: str, is_moot: object) -> str:
    inner = text.strip()
    if is_moot or not inner or "\n\n" in text or HEADING in text:
        return text
    place = text.index(inner)
    return text[:place] + _OPEN + mark + inner + mark + _CLOSE + text[place + len(inner) :]


def code_span(text: str) -> str:
    """Return text as code inside a line."""
    ticks = "`" * (1 + max((len(run) for run in TICKS.findall(text)), default=0))
    return f"{ticks} {text} {ticks}" if "`" in text else f"{ticks}{text}{ticks}"


def join_emphasis(text: str) -> str:
    """Make emphasis that goes on in the next element one, as ``*a**b*`` would be read otherwise."""
    return _SEAM.sub("", text).replace(_OPEN, "").replace(_CLOSE, "")
