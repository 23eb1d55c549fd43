"""What the markup of program text says besides the text: its language, and numbers of lines."""

import re
from itertools import islice
from typing import Any

_LANGUAGE = re.compile(r"[A-Za-z][\w+#.-]{0,20}")
_PREFIX = re.compile(r"(?:language-|lang-|brush:\s?|highlight-source-|highlight-)")
_MARKERS = frozenset(("sourcecode", "src", "highlight", "programlisting", "code", "listing", "prettyprint"))
"""Classes beside which the language stands as a class of its own."""
_NO_LANGUAGES = _MARKERS | frozenset(
    """default none text notranslate nohighlight numbersource numberlines linenums screen literal-block
    literalblock doctest calibre hljs block example wrap nowrap small source""".split()
)
_LINE_NUMBERS = frozenset("linenos lineno linenodiv line-number line-numbers lnt ln gutter".split())
_UP = 3


def code_language(node: Any) -> str:
    """Return the language of a block of code by its classes, those of the code in it, or of what wraps it."""
    inner = node.find("code")
    around = islice(node.parents, _UP)
    for element in (node, inner, *around):
        if element is None:
            continue
        if told := _of_element(element):
            return told
    return ""


def _of_element(element: Any) -> str:
    names = classes_of(element)
    told = [element.get("data-code-language"), element.get("data-lang"), *map(_of_class, names)]
    if element.name in ("pre", "code") and {name.lower() for name in names} & _MARKERS:
        told += names
    for name in map(str, filter(None, told)):
        if _LANGUAGE.fullmatch(name) and name.lower() not in _NO_LANGUAGES:
            return name.lower()
    return ""


def _of_class(name: str) -> str:
    found = _PREFIX.match(name)
    return name[found.end() :] if found else ""


def is_line_number(node: Any) -> bool:
    """Tell whether an element in code holds numbers of lines, which are no part of it."""
    return any(name.lower() in _LINE_NUMBERS for name in classes_of(node)) and _is_number(node)


def _is_number(node: Any) -> bool:
    return str(node.get_text()).replace("\n", "").strip().isdigit()


def classes_of(node: Any) -> list[str]:
    """Return the classes of an element."""
    classes = node.get("class") or []
    return [str(name) for name in classes] if isinstance(classes, list) else str(classes).split()
