"""The branch that maintenance works on: an existing one, `main` by default."""

from icefloe import errors, metadata as md


def branch_head(metadata: md.TableMetadata, branch: str | None = None) -> md.Snapshot | None:
    """Return the head of a branch; None if the table is empty. Raises an error for a missing branch or a tag."""
    name = md.MAIN_BRANCH if branch is None else branch
    ref = metadata.refs.get(name)
    if ref is None and name != md.MAIN_BRANCH:
        known = ", ".join(sorted(key for key, each in metadata.refs.items() if each.is_branch)) or "none"
        raise errors.NoSuchSnapshotError(f"no branch {name!r}; existing branches and tags are {known}")
    if ref is not None and not ref.is_branch:
        raise errors.InvalidInputError(f"{name!r} is a tag; maintenance works on branches")
    return None if ref is None else metadata.snapshot(ref.snapshot_id)
