"""The metadata of a view after the updates of a commit; the same shape as `metadata.apply`."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Never

from icefloe import errors, properties as props
from icefloe.metadata import updates as up, view as views
from icefloe.schema import Schema

_NOT_SET = -1
_INITIAL_SCHEMA_ID = 0


@dataclass(frozen=True, slots=True)
class _Applied:
    """A view in the middle of a commit, with what the commit added so far."""

    view: views.ViewMetadata
    last_schema_id: int | None = None
    last_version_id: int | None = None
    added_version_ids: frozenset[int] = frozenset()
    log_entry: views.ViewVersionLogEntry | None = None


def apply_view_all(
    base: views.ViewMetadata | None, updates: Sequence[up.ViewUpdate], now_ms: int
) -> views.ViewMetadata:
    """The view after all updates of a commit; without a base they create it."""
    nothing = views.ViewMetadata("", "", (), _NOT_SET, (), ())
    applied = _Applied(nothing if base is None else base)
    for update in updates:
        applied = _step(applied, update, now_ms)
    view = applied.view
    if view is base:
        return base
    _check_complete(view)
    if base is not None and not props.VIEW_DROP_DIALECT_ALLOWED.of(view.properties):
        _check_dialects_kept(base.version(), view.version())
    if applied.log_entry is not None:
        view = replace(view, version_log=(*view.version_log, applied.log_entry))
    return _trimmed(view, applied.added_version_ids)


def _step(applied: _Applied, update: up.ViewUpdate, now_ms: int) -> _Applied:
    view = applied.view
    match update:
        case up.AddSchemaUpdate(schema):
            changed, schema_id = _add_schema(view, schema)
            return replace(applied, view=changed, last_schema_id=schema_id)
        case up.AddViewVersionUpdate(version):
            return _add_version(applied, version)
        case up.SetCurrentViewVersionUpdate(version_id):
            return _set_current(applied, version_id, now_ms)
        case up.AssignUUIDUpdate(uuid):
            if view.view_uuid and view.view_uuid.lower() != uuid.lower():
                raise errors.IncompatibleChangeError(
                    f"the view's UUID is {view.view_uuid}; it cannot become {uuid}, since it never changes"
                )
            return applied if view.view_uuid else replace(applied, view=replace(view, view_uuid=uuid))
        case up.UpgradeFormatVersionUpdate(format_version):
            if format_version < view.format_version:
                raise errors.UnsupportedVersionError(
                    f"a v{view.format_version} view cannot go back to v{format_version}"
                )
            views.check_view_format_version(format_version)
            return applied
        case up.SetLocationUpdate(location):
            return applied if location == view.location else replace(applied, view=replace(view, location=location))
        case up.SetPropertiesUpdate(updates):
            return _with_properties(applied, {**view.properties, **updates})
        case up.RemovePropertiesUpdate(removals):
            return _with_properties(
                applied, {key: value for key, value in view.properties.items() if key not in removals}
            )
        case _:
            raise _foreign(update)


def _foreign(update: Never) -> errors.InvalidInputError:
    """For table updates from outside; the type checker proves that no view update ends here."""
    return errors.InvalidInputError(f"{type(update).__name__} is not a change of a view")


def _with_properties(applied: _Applied, properties: dict[str, str]) -> _Applied:
    if properties == applied.view.properties:
        return applied
    return replace(applied, view=replace(applied.view, properties=properties))


def _add_schema(view: views.ViewMetadata, schema: Schema) -> tuple[views.ViewMetadata, int]:
    for known in view.schemas:
        if known.same_columns(schema):
            return view, known.schema_id
    new_id = max((known.schema_id for known in view.schemas), default=_INITIAL_SCHEMA_ID - 1) + 1
    return replace(view, schemas=(*view.schemas, schema.with_id(new_id))), new_id


def _add_version(applied: _Applied, version: views.ViewVersion) -> _Applied:
    view = applied.view
    if version.schema_id == up.LAST_ADDED:
        if applied.last_schema_id is None:
            raise errors.InvalidInputError("the schema added last is requested, but this commit adds no schema")
        version = replace(version, schema_id=applied.last_schema_id)
    for known in view.versions:
        if known.behaves_like(version):
            return replace(applied, last_version_id=known.version_id)
    if version.schema_id not in {schema.schema_id for schema in view.schemas}:
        raise errors.NoSuchObjectError(
            f"view version {version.version_id} has the schema {version.schema_id}, which does not exist"
        )
    new_id = max((version.version_id, *(known.version_id + 1 for known in view.versions)))
    return replace(
        applied,
        view=replace(view, versions=(*view.versions, replace(version, version_id=new_id))),
        last_version_id=new_id,
        added_version_ids=applied.added_version_ids | {new_id},
    )


def _set_current(applied: _Applied, version_id: int, now_ms: int) -> _Applied:
    view = applied.view
    if version_id == up.LAST_ADDED:
        if applied.last_version_id is None:
            raise errors.InvalidInputError("the view version added last is requested, but this commit adds none")
        version_id = applied.last_version_id
    if version_id == view.current_version_id:
        return applied
    version = view.version(version_id)
    changed_ms = version.timestamp_ms if version_id in applied.added_version_ids else now_ms
    return replace(
        applied,
        view=replace(view, current_version_id=version_id),
        log_entry=views.ViewVersionLogEntry(version_id, changed_ms),
    )


def _check_complete(view: views.ViewMetadata) -> None:
    for what, is_present in (
        ("UUID", view.view_uuid),
        ("location", view.location),
        ("version", view.versions),
        ("current version", view.current_version_id != _NOT_SET),
    ):
        if not is_present:
            raise errors.InvalidMetadataError(f"after the updates the v{views.VIEW_FORMAT_VERSION} view has no {what}")


def _check_dialects_kept(before: views.ViewVersion, after: views.ViewVersion) -> None:
    if lost := sorted(set(before.dialects) - set(after.dialects)):
        raise errors.IncompatibleChangeError(
            f"the new view version has no query in {', '.join(lost)}, which the current one has;"
            f" set property {props.VIEW_DROP_DIALECT_ALLOWED.key!r} to true to allow that"
        )


def _trimmed(view: views.ViewMetadata, added: frozenset[int]) -> views.ViewMetadata:
    """The view with its newest versions only: as many as the property says, and never fewer than the commit added."""
    limit = max(props.VIEW_VERSION_HISTORY_SIZE.of(view.properties), len(added | {view.current_version_id}))
    if len(view.versions) <= limit:
        return view
    others = sorted(
        (version.version_id for version in view.versions if version.version_id != view.current_version_id), reverse=True
    )
    remaining = {view.current_version_id, *others[: limit - 1]}
    log = view.version_log
    for position in range(len(log) - 1, -1, -1):
        if log[position].version_id not in remaining:
            log = log[position + 1 :]
            break
    return replace(
        view, versions=tuple(version for version in view.versions if version.version_id in remaining), version_log=log
    )
