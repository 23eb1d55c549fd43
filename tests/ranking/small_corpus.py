"""A corpus of a few notes, for tests of ranking alone."""

from contextlib import contextmanager

from searchsvc.config import Config, Root
from searchsvc.indexing import make_tokenizer
from searchsvc.ranking.corpus import Corpus
from searchsvc.ranking.lexical import Terms
from searchsvc.vault import Vault
from tests.notes import write_notes

TOKENIZER = make_tokenizer(True)


class Small:
    """The corpus, with the address of each of its sections by ordinal."""

    def __init__(self, corpus, addresses):
        self.corpus = corpus
        self.addresses = addresses

    def ordinal(self, address):
        return self.addresses.index(address)

    def names(self, ordinals):
        return [self.addresses[int(ordinal)] for ordinal in ordinals]


@contextmanager
def small_corpus(folder, notes):
    vault = Vault(Root("notes", write_notes(folder / "notes", notes)), Config(data_dir=folder / "data"))
    vault.update()
    with vault.reader.pinned() as (frame, catalog):
        rows, paths = catalog.sections(frame.table["id"].tolist()), catalog.notes()
        sections = [rows[int(number)] for number in frame.table["id"]]
        yield Small(Corpus([frame]), [f"{paths[row.note].path}#{row.section.slug}" for row in sections])


def terms_of(question):
    line = tuple(term for term, _ in TOKENIZER.query_terms(question))
    return Terms(line, line, tuple(TOKENIZER.joined_terms(question)))
