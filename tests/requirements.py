"""What searchsvc promises, by id. Every promise is proved by a test marked ``@pytest.mark.proves(id)``."""

REQUIREMENTS = {
    # Finding
    "R-sections": "The unit of search is a section: a heading with its own text, at its lines in the file.",
    "R-ids": "Every hit has an id, path#slug, that is stable while the note's headings are.",
    "R-bm25": "With one plain field, scores by words are those of BM25 in its non-negative form.",
    "R-vectors-exact": "The best sections by meaning are those of an exact search, despite int8 scanning.",
    "R-links": "Links are resolved again whenever notes come, go, move or change, and their text counts for "
    "what they lead to.",
    "R-filters": "Filters by path, tag, property and date are exact and applied before ranking.",
    "R-filter-unknown": "A filter that matches nothing that exists is an error naming what is near.",
    "R-languages": "Any script is searched: accents and case are folded, Chinese is found by parts.",
    "R-deterministic": "The same question on the same index gives the same reply, whatever its history.",
    "R-explain": "When asked, a hit says what each channel and each term gave it.",
    # Replies
    "R-budget": "A reply, markers included, never costs more than its token budget.",
    "R-rest": "What did not fit a reply is reached by its cursor, without gaps or repetitions.",
    "R-verbatim": "Text of notes is returned verbatim.",
    "R-honest-nothing": "A reply says so when nothing answers the question.",
    "R-notices": "A reply says when it was made with less than everything, for example without vectors.",
    "R-reading-rest": "The call that a reading reply advises returns exactly what was cut.",
    "R-reading-once": "Of overlapping selections each line is returned once, and that is said.",
    "R-tree-ids": "Every id that an outline or a list shows is accepted by every tool.",
    # Freshness
    "R-freshness": "A reply never shows text that is no longer in the file; changed notes are read again.",
    "R-incremental": "Indexing again reads only what has changed; without changes it commits nothing.",
    "R-no-embedding-twice": "A text with the same context is embedded once, whatever is renamed or moved.",
    "R-as-from-nothing": "After any history of changes the index equals one made from nothing.",
    # Making vectors
    "R-no-text-stops": "A text that a model does not take is noted, and everything else is embedded.",
    "R-portable": "Vectors travel in one file and are matched by the hash of their text.",
    "R-portable-hostile": "A file of vectors from anyone is taken whole and sound, or refused.",
    "R-profiles": "Vectors of several models lie side by side, are switched at once, and are never mixed.",
    "R-address": "No address of a server is taken from an index or a file of vectors.",
    "R-doctor": "A check-up changes nothing, names each fault with its fix, and shows no secret.",
    "R-provider": "A provider that another package brings works as our own do.",
    "R-no-guess": "A vector is stored only for the text it was made of, whatever a server answers.",
    "R-secrets": "Keys come from the environment or a file, and are in no log, error or index.",
    # Safety of notes
    "R-read-only": "Nothing is ever written into a root.",
    "R-jail": "Nothing outside the roots is read, whatever links and paths say.",
    "R-offline": "No connection to another machine is made unless its host was allowed.",
    "R-fetch": "Only allowed hosts are fetched from, checked at every redirect and at the address.",
    "R-pictures": "Images are what their bytes say, within limits; a bad one is a note, not a failure.",
    "R-bad-file": "A file that cannot be read or understood is reported and stops nothing.",
    "R-ignored": "Hidden and ignored files are neither indexed nor shown.",
    # Safety of the index
    "R-crash-safe": "kill -9 at any moment loses nothing acknowledged and leaves the last generation whole.",
    "R-interrupt": "Ctrl-C keeps what was committed, and the next run goes on from there.",
    "R-readers-consistent": "Readers see one whole generation each, while others write, merge and sweep.",
    "R-one-writer": "One process writes at a time; a second waits, then says what it waits for.",
    "R-full-disk": "A full disk costs nothing that was there, and the error says to free space.",
    "R-faults-advise": "Every error of the index says what was found and what to do.",
    "R-self-healing": "A damaged index is rebuilt by the next run, with a remark, and keeps its vectors.",
    "R-versions": "An index of another version or other settings is rebuilt with a remark, never misread.",
    "R-compaction": "Merging segments changes nothing that is found; dead sections never appear.",
    # Serving
    "R-serving-tools": "An agent sees few tools with exact schemas.",
    "R-serving-arguments": "Unknown arguments are refused by name, with the nearest valid one.",
    "R-serving-wire": "Nothing but protocol is written to standard output.",
    "R-end-to-end": "A server started on a folder answers questions about it without further set-up.",
    # Documents
    "R-literal": "Text is found wherever it stands, in any case and composition, and nowhere else.",
    "R-none-picked": "Of several documents that fit, none is picked silently.",
    "R-callers-key": "What a caller names as a server gets no key but the caller's.",
    "R-foreign-index": "An index from elsewhere chooses no files or code to load.",
    "R-import": "A document is imported once, whole or not at all, and keeps its ids.",
    # Structure
    "R-light": "Importing the package and asking for help load no arrays, models or protocol.",
    "R-rooms": "Each room imports only what the table of rooms allows.",
    "R-readable": "Files and functions stay short, and public names are hinted and documented.",
}
