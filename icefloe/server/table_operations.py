"""What the server does with tables."""

from icefloe import errors
from icefloe.catalog import Identifier, TableDescription
from icefloe.commit import now_ms
from icefloe.rest import errors_codec as words, namespaces_codec, tables_codec as codec
from icefloe.rest.headers_codec import IF_NONE_MATCH, matches_tag
from icefloe.rest.metrics_codec import decode_report
from icefloe.rest.paths_codec import PURGE_REQUESTED, SNAPSHOTS
from icefloe.server.auth.protocols import Privilege
from icefloe.server.calls import NOTHING, TABLE, VIEW, Answer, Call
from icefloe.server.commits import Committing, creates
from icefloe.server.holds import DroppedTable, new_number
from icefloe.server.pages_codec import page_of
from icefloe.server.places import require_content, require_folder, require_new_place, require_paths, require_updates
from icefloe.server.warehouses import entity_tag
from icefloe.server.words import require_namespace
from icefloe.storage import absolute_location

_DROP_ATTEMPTS = 5


def list_tables(call: Call) -> Answer:
    """The tables in a namespace."""
    with call.watch.part("names"):
        names = call.visible(call.served.catalog.list_tables(call.namespace), TABLE)
    return Answer(namespaces_codec.encode_identifiers(page_of(names, call.query, call.settings.page_size)))


def create_table(call: Call) -> Answer:
    """A new table with fresh ids, or what it would be if it is only staged."""
    with call.watch.part("decode"):
        table = codec.decode_new_table(call.body)
    call.name = table.name
    if table.location is not None:
        require_new_place(call, call.identifier, table.location)
    require_paths(call, call.identifier, table.properties)
    properties = dict(table.properties)
    description = TableDescription(call.identifier, table.schema, table.location, table.spec, table.order, properties)
    metadata = call.served.new_metadata(description)
    # First, since it may fail: what cannot be answered is not created.
    with call.watch.part("access"):
        surplus = call.access.surplus(call, call.identifier, metadata)
    if table.is_staged:
        return Answer(codec.encode_loaded_table(codec.LoadedTable(metadata, None, surplus)))
    with call.watch.part("create"):
        state = call.warehouse.remember(call.served.create_table(call.identifier, metadata))
    return loaded_at(call, str(state.metadata_location), surplus=surplus)


def load_table(call: Call) -> Answer:
    """A table as it is now; nothing but its pointer is read for a client that has it already."""
    snapshots, location = _snapshots(call), pointer(call)
    return if_unchanged(call, location) or loaded_at(call, location, snapshots)


def if_unchanged(call: Call, location: str) -> Answer | None:
    """The answer to a client that has a table already as it is at a metadata location."""
    known = call.headers.get(IF_NONE_MATCH.lower())
    if known is None or not matches_tag(known, tag := entity_tag(location, _snapshots(call))):
        return None
    return Answer(tag=tag, is_unchanged=True)


def _snapshots(call: Call) -> str:
    snapshots = call.query.get(SNAPSHOTS, codec.ALL_SNAPSHOTS)
    if snapshots not in (codec.ALL_SNAPSHOTS, codec.REFERENCED_SNAPSHOTS):
        raise errors.InvalidInputError(
            f"{SNAPSHOTS} is {snapshots!r:.100}; it must be {codec.ALL_SNAPSHOTS} or {codec.REFERENCED_SNAPSHOTS}"
        )
    return snapshots


def pointer(call: Call) -> str:
    """The metadata location of the table that the path names, as it is during this call."""
    if call.location is not None:
        return call.location
    with call.watch.part("pointer"):
        location = call.served.table_location(call.identifier)
    if location is None:
        raise words.no_table(call.identifier)
    return location


def loaded_at(
    call: Call, location: str, snapshots: str = codec.ALL_SNAPSHOTS, surplus: codec.Surplus | None = None
) -> Answer:
    """The answer with the table at a metadata location."""
    with call.watch.part("metadata"):
        text = call.warehouse.table_text(location, snapshots)
    if surplus is None:
        with call.watch.part("access"):
            surplus = call.access.surplus(call, call.identifier, call.warehouse.state_at(location).metadata)
    return Answer(codec.join_loaded(text, location, surplus), entity_tag(location, snapshots))


def table_exists(call: Call) -> Answer:
    """Whether there is such a table."""
    pointer(call)
    return NOTHING


def commit_table(call: Call) -> Answer:
    """Updates of a table, under requirements."""
    with call.watch.part("decode"):
        commit = codec.decode_commit(call.body)
    if commit.identifier is not None and commit.identifier != call.identifier:
        raise errors.InvalidInputError(
            f"the path names the table {words.dotted(call.identifier)}, and the commit {words.dotted(commit.identifier)}"
        )
    check_commit(call, call.identifier, commit)
    try:
        state = committing(call).commit(call.identifier, commit)
    except errors.TableAlreadyExistsError:
        raise errors.CommitFailed(
            f"Requirement failed: table already exists: {words.dotted(call.identifier)}"
        ) from None
    return committed_at(call, str(state.metadata_location))


def committed_at(call: Call, location: str) -> Answer:
    """The answer to a commit, with the table at a metadata location."""
    with call.watch.part("metadata"):
        text = call.warehouse.table_text(location, codec.ALL_SNAPSHOTS)
    return Answer(codec.encode_committed(text, location), entity_tag(location, codec.ALL_SNAPSHOTS))


def committing(call: Call) -> Committing:
    """How commits to this warehouse are carried out."""
    return Committing(call.warehouse, call.settings.commit_attempts, call.watch)


def check_commit(call: Call, identifier: Identifier, commit: codec.TableCommit) -> None:
    """Fail if the caller may not commit this."""
    if creates(commit):
        call.check(Privilege.CREATE, identifier[:-1])
    else:
        call.check(Privilege.WRITE, identifier, TABLE)
    require_updates(call, identifier, commit.updates)


def commit_transaction(call: Call) -> Answer:
    """Updates of several tables, all or none."""
    with call.watch.part("decode"):
        commits = codec.decode_transaction(call.body)
    named: list[tuple[Identifier, codec.TableCommit]] = []
    for position, commit in enumerate(commits):
        if commit.identifier is None or len(commit.identifier) < 2:
            raise errors.InvalidInputError(f"the table change {position} names no table")
        check_commit(call, commit.identifier, commit)
        named.append((commit.identifier, commit))
    if len({identifier for identifier, _ in named}) != len(named):
        raise errors.InvalidInputError("a table comes twice in one transaction; put its updates together")
    with call.watch.part("commit"):
        if len(named) == 1:
            committing(call).commit(*named[0])
        elif named:
            committing(call).commit_all(named)
    return NOTHING


def drop_table(call: Call) -> Answer:
    """A table goes, with its files if that is asked for."""
    is_purged = call.query.get(PURGE_REQUESTED, "false").lower() == "true"
    _drop(call, is_purged, is_held=call.holds is not None and call.holds.is_on)
    return NOTHING


def unregister_table(call: Call) -> Answer:
    """A table goes, and its files stay; what it was comes back."""
    # Whoever cannot read the table cannot give it to another catalog either.
    call.check(Privilege.READ, call.identifier, TABLE)
    call.warehouse.state_at(pointer(call))
    return committed_at(call, _drop(call, is_purged=False))


def _drop(call: Call, is_purged: bool, is_held: bool = False) -> str:
    """Drop a table at the state that is told: every commit before is in it, and every later one fails."""
    if call.holds is not None:
        call.notes["protection"] = call.holds.check_unprotected(call.identifier, TABLE)
    for _ in range(_DROP_ATTEMPTS):
        location = call.replay_location = pointer(call)
        if is_held:
            _hold(call, location, is_purged)
        is_deleted = is_purged and not is_held
        delete_files = call.served.purge_files(call.warehouse.state_at(location)) if is_deleted else _no_files
        with call.watch.part("drop"):
            is_dropped = call.served.drop_table(call.identifier, location)
        if is_dropped:
            call.authorizer.dropped(call.target(call.identifier, TABLE))
            delete_files()
            return location
    raise errors.CommitFailed(
        f"table {words.dotted(call.identifier)} is changing too fast to be dropped; nothing was changed"
    )


def _hold(call: Call, location: str, is_purged: bool) -> None:
    """Let the table be had back for some time; its files go after that, if they are to go."""
    holds = call.holds
    assert holds is not None, "only what has holds is held"
    if is_purged:
        call.served.check_purgeable(call.warehouse.state_at(location))
    table = DroppedTable(new_number(), call.identifier, location, call.principal.name, is_purged, now_ms())
    call.notes["dropped"] = lambda connection, _: holds.record(connection, table)


def register_table(call: Call) -> Answer:
    """A name for a table that exists as a metadata file."""
    registration = codec.decode_registration(call.body)
    call.name = registration.name
    call.check(Privilege.MANAGE, call.namespace)
    require_namespace(call.served, call.namespace)
    location = absolute_location(registration.metadata_location)
    require_folder(call, call.namespace, location)
    require_content(call, call.identifier, call.served.read_table(location))
    table = call.served.catalog.register_table(call.identifier, registration.metadata_location, registration.overwrite)
    return loaded_at(call, str(table.metadata_location))


def rename_table(call: Call) -> Answer:
    """Another name for a table."""
    rename = codec.decode_rename(call.body)
    check_rename(call, rename, TABLE)
    if call.served.table_location(rename.source) is None:
        raise words.no_table(rename.source)
    require_namespace(call.served, rename.destination[:-1])
    follow(call, rename, TABLE)
    try:
        call.served.catalog.rename_table(rename.source, rename.destination)
    except errors.AlreadyExistsError:
        raise taken_by(call, rename) from None
    call.authorizer.renamed(call.target(rename.source, TABLE), call.target(rename.destination, TABLE))
    return NOTHING


def check_rename(call: Call, rename: codec.Rename, noun: str) -> None:
    """Fail if the caller may not rename this."""
    if len(rename.source) < 2 or len(rename.destination) < 2:
        raise errors.InvalidInputError("a rename has a name without a namespace")
    # The namespace that it goes to may give the caller more privileges: it must have them already.
    call.check(Privilege.WRITE, rename.source, noun)
    call.check(Privilege.DROP, rename.source, noun)
    call.check(Privilege.CREATE, rename.destination[:-1])


def follow(call: Call, rename: codec.Rename, noun: str) -> None:
    """Let protection follow a rename."""
    if call.holds is not None:
        call.notes["protection"] = call.holds.moved(rename.source, rename.destination, noun)


def taken_by(call: Call, rename: codec.Rename) -> errors.AlreadyExistsError:
    """The error of a rename to a name that is in use."""
    holder = VIEW if call.served.view_location(rename.destination) is not None else TABLE
    return words.rename_taken(rename.source, rename.destination, holder)


def report_metrics(call: Call) -> Answer:
    """A report of a scan or commit, which goes where those of the catalog go."""
    received = decode_report(call.body)
    call.served.catalog.reporter.report(received.report)
    return NOTHING


def _no_files() -> None:
    """They stay."""
