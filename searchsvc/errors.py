"""Every error the package raises on purpose.

    SearchError                 catch this one to catch all
    ├── ConfigError             a setting, an argument or the config file is wrong
    ├── ReadingError            a note or folder cannot be read
    │   └── AccessDenied        the path lies outside the roots or is hidden by rule
    ├── NotFound                no note, section, tag or profile of that name
    ├── QueryError              a question that cannot be answered as asked
    ├── IndexFault              the index on disk is missing, locked or damaged
    └── EmbeddingError          a model cannot be loaded or returned unusable vectors

The text of an error says what was found, what was expected, and what to do next. It never holds
the content of a note, a secret, or an absolute path outside what the caller named.
"""


class SearchError(Exception):
    """Base of all errors of this package."""


class ConfigError(SearchError):
    """A setting, an argument or the config file is wrong."""


class ReadingError(SearchError):
    """A note or folder cannot be read."""


class AccessDenied(ReadingError):
    """The path lies outside the roots or is hidden by rule."""


class NotFound(SearchError):
    """No note, section, tag or profile of that name."""


class QueryError(SearchError):
    """A question that cannot be answered as asked."""


class IndexFault(SearchError):
    """The index on disk is missing, locked or damaged."""


class EmbeddingError(SearchError):
    """A model cannot be loaded or returned unusable vectors."""
