"""The front desk: one object that agents, people and programs ask.

    service = Service(load({"roots": "notes"}))
    service.index()
    print(service.semantic_search("how are dependencies locked?").text)
"""

import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from searchsvc.answering.find import Landscape, render_find
from searchsvc.answering.pack import Detail, pack
from searchsvc.answering.text import Fragment
from searchsvc.config import Config
from searchsvc.embedding import load_embedder
from searchsvc.embedding.base import Embedder
from searchsvc.embedding.slot import ModelSlot
from searchsvc.errors import ConfigError, IndexFault, QueryError
from searchsvc.index.catalog import Catalog
from searchsvc.index.open import Frame
from searchsvc.indexing import IndexReport, Progress, make_tokenizer
from searchsvc.items import Answer, Mode, Ranking
from searchsvc.ranking.corpus import Corpus
from searchsvc.ranking.filters import Filters, allowed
from searchsvc.vault import Vault
