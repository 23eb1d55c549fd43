"""An index as it is found on disk -> one that this version can write to, and what was done for that."""

from collections.abc import Mapping, Sequence

from searchsvc.errors import IndexFault
from searchsvc.index.anchors import open_anchors
from searchsvc.index.arrays import is_complete
from searchsvc.index.catalog import ACTIVE, FORMAT_VERSION, Catalog
from searchsvc.index.faults import Damage
from searchsvc.index.layout import Layout
from searchsvc.index.segments import open_segment
from searchsvc.index.vectors import open_part

_Parts = Mapping[str, Sequence[str]]


def bring_up(layout: Layout, catalog: Catalog, settings: dict[str, str], *, repair: bool) -> str:
    """Empty an index that is new, damaged, or of another version or settings; return a remark, or ''.

    To be called in a transaction. Vectors are kept where they can be used. Without ``repair`` an index
    that would have to be emptied raises ``IndexFault``.
    """
    plan = _plan(layout, catalog, settings)
    remark = ""
    if plan is not None:
        if not repair:
            raise IndexFault("the index has to be made anew first; run `searchsvc index`")
        remark, parts = plan
        active = catalog.meta().get(ACTIVE, "")
        catalog.empty({**settings, ACTIVE: active})
        for identity, names in parts.items():
            catalog.set_vector_parts(identity, names)
    dropped = _drop_damaged_vectors(layout, catalog)
    return remark or dropped


def _plan(layout: Layout, catalog: Catalog, settings: Mapping[str, str]) -> tuple[str, _Parts] | None:
    """Return why the index must be emptied, and the vectors that stay; none when it is fine."""
    damaged = "index was damaged and is rebuilt, vectors are kept"
    meta = catalog.meta()
    found = meta.get("format", "")
    if not meta:
        return damaged if layout.segments.is_dir() else "", _parts_on_disk(layout)
    if found != str(FORMAT_VERSION):
        remark = f"index of format {found} is rebuilt as format {FORMAT_VERSION}, vectors are kept"
        return remark, _parts_on_disk(layout)
    if any(meta.get(key) != value for key, value in settings.items()):
        changed = "search by words has other rules or settings now; the index is rebuilt, vectors are kept"
        return changed, catalog.vector_parts()
    if _is_damaged(layout, catalog, meta):
        return damaged, catalog.vector_parts()
    return None


def _is_damaged(layout: Layout, catalog: Catalog, meta: Mapping[str, str]) -> bool:
    """Tell whether an array file that the catalog names is missing or cut short."""
    try:
        for name, deleted in catalog.segments():
            open_segment(layout.segments, name, deleted)
        if "anchors" in meta:
            open_anchors(layout.segments / meta["anchors"])
    except Damage:
        return True
    return False


def _parts_on_disk(layout: Layout) -> _Parts:
    """Return the vector files of every profile, for a catalog that has lost count of them."""
    if not layout.vectors.is_dir():
        return {}
    return {
        profile.name: sorted(part.name for part in profile.iterdir() if is_complete(part))
        for profile in layout.vectors.iterdir()
        if profile.is_dir()
    }


def _drop_damaged_vectors(layout: Layout, catalog: Catalog) -> str:
    remark = ""
    for identity, names in catalog.vector_parts().items():
        sound = [name for name in names if _can_open(layout, identity, name)]
        if len(sound) < len(names):
            catalog.set_vector_parts(identity, sound)
            if catalog.generation():
                catalog.advance()
            remark = "some vectors were damaged and are made again"
    return remark


def _can_open(layout: Layout, identity: str, name: str) -> bool:
    try:
        open_part(layout.profile(identity), name)
    except Damage:
        return False
    return True
