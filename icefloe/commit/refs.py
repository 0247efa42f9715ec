"""Changes of branches and tags: created, moved, dropped, kept for longer or shorter; and of the snapshot `main` is at.

A ref is moved or dropped as it was when that was asked for: if another writer moved it in between, the change is refused,
since it would take the other's commit off the branch without anybody having seen it. How long a ref is kept may be set
wherever it is.
"""

from collections.abc import Callable
from dataclasses import asdict, dataclass, replace

from icefloe import errors, metadata as md
from icefloe.commit.append import Append
from icefloe.commit.change import Change, Prepared, Workbench
from icefloe.commit.producer import SnapshotChange, Target
from icefloe.metadata import requirements as req, updates as up


class RefChange(Change):
    """One change of a ref, as a function of the metadata; `names` are the refs that it is about.

    They must not move between asking and committing, unless the change is meant for them wherever they are.
    """

    def __init__(
        self, change: Callable[[md.TableMetadata], tuple[up.TableUpdate, ...]], *names: str, anywhere: bool = False
    ) -> None:
        self._change = change
        self._names = names
        self._anywhere = anywhere
        self._seen: dict[str, int | None] | None = None

    def prepare(self, metadata: md.TableMetadata, _: Workbench, /) -> Prepared:
        """The update, unless a ref is not where it was when this was first asked for."""
        heads = {name: _snapshot_id(metadata, name) for name in self._names}
        if self._seen is None or self._anywhere:
            self._seen = heads
        for name, seen in self._seen.items():
            if heads[name] != seen:
                raise errors.ValidationError(
                    f"{name!r} was moved by another commit, from snapshot {seen} to {heads[name]}; check it and try again"
                )
        updates = self._change(metadata)
        if not updates:
            return Prepared()
        return Prepared(updates, tuple(req.AssertRefSnapshotId(name, head) for name, head in heads.items()))


@dataclass(frozen=True, slots=True)
class Retention:
    """How long a ref and its snapshots are kept; None leaves that to the table's properties."""

    min_snapshots_to_keep: int | None = None
    max_snapshot_age_ms: int | None = None
    max_ref_age_ms: int | None = None

    def of(self, ref: md.SnapshotRef) -> md.SnapshotRef:
        """The ref with these rules; what is None in them stays as it is."""
        return replace(ref, **{name: value for name, value in asdict(self).items() if value is not None})


def create_ref(name: str, ref_type: md.SnapshotRefType, snapshot_id: int | None, retention: Retention) -> RefChange:
    """A new branch or tag, at the current snapshot if none is given."""
    _check_name(name)

    def change(metadata: md.TableMetadata) -> tuple[up.TableUpdate, ...]:
        if name in metadata.refs:
            raise errors.AlreadyExistsError(f"{metadata.refs[name].ref_type} {name!r} already exists")
        if name == md.MAIN_BRANCH and ref_type is md.SnapshotRefType.TAG:
            raise errors.InvalidInputError(f"{name!r} cannot be a tag; it is the main branch")
        at = metadata.current_snapshot_id if snapshot_id is None else snapshot_id
        if at is None:
            raise errors.NoSuchSnapshotError(f"{ref_type} {name!r} needs a snapshot, but the table has none yet")
        ref = retention.of(md.SnapshotRef(at, ref_type))
        metadata.snapshot(at)
        return (up.SetSnapshotRefUpdate(name, ref),)

    return RefChange(change, name)


def replace_ref(name: str, ref_type: md.SnapshotRefType, snapshot_id: int) -> RefChange:
    """A branch or tag at another snapshot; its retention stays."""

    def change(metadata: md.TableMetadata) -> tuple[up.TableUpdate, ...]:
        ref = _ref(metadata, name, ref_type)
        metadata.snapshot(snapshot_id)
        return () if ref.snapshot_id == snapshot_id else (_moved(name, ref, snapshot_id),)

    return RefChange(change, name)


def remove_ref(name: str, ref_type: md.SnapshotRefType) -> RefChange:
    """No such branch or tag any more; its snapshots stay until they expire."""

    def change(metadata: md.TableMetadata) -> tuple[up.TableUpdate, ...]:
        if name == md.MAIN_BRANCH:
            raise errors.InvalidInputError(f"branch {name!r} cannot be removed; every table must have it")
        _ref(metadata, name, ref_type)
        return (up.RemoveSnapshotRefUpdate(name),)

    return RefChange(change, name)


def rename_branch(name: str, new_name: str) -> RefChange:
    """The branch under another name."""
    _check_name(new_name)

    def change(metadata: md.TableMetadata) -> tuple[up.TableUpdate, ...]:
        if name == md.MAIN_BRANCH:
            raise errors.InvalidInputError(f"branch {name!r} cannot be renamed; every table must have it")
        ref = _ref(metadata, name, md.SnapshotRefType.BRANCH)
        if new_name in metadata.refs:
            raise errors.AlreadyExistsError(f"{metadata.refs[new_name].ref_type} {new_name!r} already exists")
        return (up.RemoveSnapshotRefUpdate(name), up.SetSnapshotRefUpdate(new_name, ref))

    return RefChange(change, name, new_name)


def set_retention(name: str, retention: Retention) -> RefChange:
    """The ref with these rules; what is None in them stays as it is."""

    def change(metadata: md.TableMetadata) -> tuple[up.TableUpdate, ...]:
        ref = metadata.refs.get(name)
        if ref is None:
            raise _missing(metadata, name)
        changed = retention.of(ref)
        return () if changed == ref else (up.SetSnapshotRefUpdate(name, changed),)

    return RefChange(change, name, anywhere=True)


def fast_forward(name: str, to: str) -> RefChange:
    """The branch at the head of another ref, which must have come from it; a branch that does not exist is made."""

    def change(metadata: md.TableMetadata) -> tuple[up.TableUpdate, ...]:
        if to not in metadata.refs:
            raise _missing(metadata, to)
        target = metadata.refs[to].snapshot_id
        if name not in metadata.refs:
            return (up.SetSnapshotRefUpdate(name, md.SnapshotRef(target, md.SnapshotRefType.BRANCH)),)
        ref = _ref(metadata, name, md.SnapshotRefType.BRANCH)
        if ref.snapshot_id == target:
            return ()
        if not metadata.is_ancestor(ref.snapshot_id, of=target):
            raise errors.ValidationError(
                f"branch {name!r} cannot be fast-forwarded to {to!r}: its snapshot {ref.snapshot_id} is not an ancestor of {target}"
            )
        return (_moved(name, ref, target),)

    return RefChange(change, name, to)


def set_current_snapshot(snapshot_id: int) -> RefChange:
    """`main` at any snapshot of the table."""

    def change(metadata: md.TableMetadata) -> tuple[up.TableUpdate, ...]:
        metadata.snapshot(snapshot_id)
        return _main_at(metadata, snapshot_id)

    return RefChange(change, md.MAIN_BRANCH)


def rollback_to_snapshot(snapshot_id: int) -> RefChange:
    """`main` at one of its own earlier snapshots."""

    def change(metadata: md.TableMetadata) -> tuple[up.TableUpdate, ...]:
        metadata.snapshot(snapshot_id)
        current = metadata.current_snapshot_id
        if current is None or not metadata.is_ancestor(snapshot_id, of=current):
            raise errors.ValidationError(
                f"cannot roll back to snapshot {snapshot_id}: it is not an ancestor of the current snapshot {current}"
            )
        return _main_at(metadata, snapshot_id)

    return RefChange(change, md.MAIN_BRANCH)


def rollback_to_timestamp(timestamp_ms: int) -> RefChange:
    """`main` at the newest of its own snapshots from before that time."""

    def change(metadata: md.TableMetadata) -> tuple[up.TableUpdate, ...]:
        current = metadata.current_snapshot_id
        ancestors = () if current is None else tuple(metadata.ancestors(current))
        older = [each for each in ancestors if each.timestamp_ms < timestamp_ms]
        if not older:
            raise errors.NoSuchSnapshotError(
                f"cannot roll back: no snapshot of {md.MAIN_BRANCH!r} is older than {timestamp_ms} ms"
            )
        return _main_at(metadata, max(older, key=lambda each: each.timestamp_ms).snapshot_id)

    return RefChange(change, md.MAIN_BRANCH)


def _main_at(metadata: md.TableMetadata, snapshot_id: int) -> tuple[up.TableUpdate, ...]:
    if metadata.current_snapshot_id == snapshot_id:
        return ()
    ref = metadata.refs.get(md.MAIN_BRANCH, md.SnapshotRef(snapshot_id, md.SnapshotRefType.BRANCH))
    return (_moved(md.MAIN_BRANCH, ref, snapshot_id),)


def _moved(name: str, ref: md.SnapshotRef, snapshot_id: int) -> up.SetSnapshotRefUpdate:
    return up.SetSnapshotRefUpdate(name, replace(ref, snapshot_id=snapshot_id))


def _ref(metadata: md.TableMetadata, name: str, ref_type: md.SnapshotRefType) -> md.SnapshotRef:
    ref = metadata.refs.get(name)
    if ref is None:
        raise _missing(metadata, name)
    if ref.ref_type is not ref_type:
        raise errors.InvalidInputError(f"{name!r} is a {ref.ref_type}, not a {ref_type}")
    return ref


def _missing(metadata: md.TableMetadata, name: str) -> errors.NoSuchSnapshotError:
    known = ", ".join(sorted(metadata.refs)) or "none"
    return errors.NoSuchSnapshotError(f"no branch or tag named {name!r}; there are: {known}")


def _snapshot_id(metadata: md.TableMetadata, name: str) -> int | None:
    ref = metadata.refs.get(name)
    return None if ref is None else ref.snapshot_id


def _check_name(name: object) -> None:
    if not isinstance(name, str) or not name.strip():
        raise errors.InvalidInputError(f"{name!r} cannot be the name of a branch or tag; it must be a non-empty string")


class CreateBranch(Change):
    """Creates a branch, at the current snapshot if none is given; in a table without snapshots, at an empty one of its own,
    as Java does.
    """

    def __init__(self, name: str, snapshot_id: int | None, retention: Retention) -> None:
        self._name = name
        self._at = snapshot_id
        self._retention = retention
        self._ref = create_ref(name, md.SnapshotRefType.BRANCH, snapshot_id, retention)
        self._first: SnapshotChange | None = None
        self._begins = False

    @property
    def snapshot_ids(self) -> tuple[int, ...]:
        """The snapshot that it begins with, if that is its own."""
        return self._first.snapshot_ids if self._first is not None and self._begins else ()

    def prepare(self, metadata: md.TableMetadata, bench: Workbench, /) -> Prepared:
        """The ref, and the snapshot that it is at if the table has none."""
        self._begins = self._at is None and metadata.current_snapshot_id is None and self._name not in metadata.refs
        if not self._begins:
            return self._ref.prepare(metadata, bench)
        if self._first is None:
            self._first = SnapshotChange(Append(metadata, ()), Target(self._name))
        prepared = self._first.prepare(metadata, bench)
        updates = (
            replace(update, ref=self._retention.of(update.ref))
            if isinstance(update, up.SetSnapshotRefUpdate)
            else update
            for update in prepared.updates
        )
        return replace(prepared, updates=tuple(updates))
