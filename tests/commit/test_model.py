"""Random sequences of operations against a model: a table that is a dict of files, with the rows deleted in each."""

import random
from dataclasses import dataclass, field
from itertools import pairwise

import pytest
from hypothesis import given, settings, strategies as st

from icefloe.commit import Planned
from icefloe.commit.vectors import load_vector
from icefloe.manifests import DataFile, FileContent, ManifestContent
from icefloe.metadata import Snapshot
from icefloe.table import Table
from icefloe.verification import silent
from icefloe.versions import ALL_VERSIONS, Feature, allows
from tests.commit.tables import BY_REGION, data_file, entries, handle, manifests, new_table

REGIONS = ("eu", "us", "jp")


@dataclass
class ModelFile:
    """A data file as the model knows it."""

    region: str
    rows: int
    deleted: frozenset[int] = frozenset()


@dataclass
class Model:
    """What the table should hold, and what each snapshot held."""

    files: dict[str, ModelFile] = field(default_factory=dict)
    history: dict[int, dict[str, ModelFile]] = field(default_factory=dict)
    row_ids: dict[str, int] = field(default_factory=dict)
    made: int = 0

    def new_file(self, rng: random.Random, region: str | None = None, rows: int | None = None) -> tuple[str, ModelFile]:
        """A file that was never there."""
        self.made += 1
        return f"memory://m/{self.made}", ModelFile(region or rng.choice(REGIONS), rows or rng.randint(1, 20))


def written(path: str, file: ModelFile) -> DataFile:
    """The file as it is given to a commit."""
    return data_file(path, file.rows, file.region)


class Writer:
    """Does random operations on table and model."""

    def __init__(self, version: int, seed: int) -> None:
        self.rng = random.Random(seed)
        self.version = version
        self.table, self.committer = new_table(version, BY_REGION, {"commit.manifest.min-count-to-merge": "3"})
        self.model = Model()
        self.last_number = 0
        self.operations = ["append", "merge_append", "delete_region", "overwrite_region", "replace", "delete_files"]
        self.operations += ["rewrite", "rewrite_manifests", "rollback", "two_writers", "transaction"]
        if allows(version, Feature.DELETION_VECTORS):
            self.operations += ["delete_rows", "delete_rows", "update_rows", "concurrent_deletes"]

    @property
    def planned(self) -> Planned:
        return Planned.on(self.table.metadata)

    def step(self) -> None:
        before = self.table.metadata
        made = getattr(self, self.rng.choice(self.operations))()
        if self.table.metadata.current_snapshot_id is not None:
            self.model.history[self.table.metadata.current_snapshot_id] = dict(self.model.files)
        assert isinstance(made, Snapshot) or made is None
        assert self.table.metadata.next_row_id >= before.next_row_id
        self.check()

    def _some(self, most: int = 3) -> list[str]:
        return self.rng.sample(sorted(self.model.files), min(len(self.model.files), self.rng.randint(1, most)))

    def _add(self, count: int, region: str | None = None) -> list[DataFile]:
        found = [self.model.new_file(self.rng, region) for _ in range(count)]
        self.model.files.update(found)
        return [written(*each) for each in found]

    # -- operations

    def append(self) -> object:
        return self.table.update_snapshot().fast_append(self._add(self.rng.randint(1, 4)))

    def merge_append(self) -> object:
        return self.table.update_snapshot().merge_append(self._add(self.rng.randint(1, 4)))

    def _without(self, region: str) -> None:
        self.model.files = {path: each for path, each in self.model.files.items() if each.region != region}

    def delete_region(self) -> object:
        region = self.rng.choice(REGIONS)
        self._without(region)
        return self.table.update_snapshot().delete(f"region = '{region}'")

    def overwrite_region(self) -> object:
        region = self.rng.choice(REGIONS)
        self._without(region)
        add = self._add(1, region)
        up = self.table.update_snapshot()
        return up.overwrite(self.planned, row_filter=f"region = '{region}'", add=add)

    def replace(self) -> object:
        region = self.rng.choice(REGIONS)
        self._without(region)
        return self.table.update_snapshot().replace_partitions(self._add(2, region), self.planned)

    def delete_files(self) -> object:
        if not self.model.files:
            return None
        paths = self._some()
        for path in paths:
            del self.model.files[path]
        return self.table.update_snapshot().delete_files(paths, self.planned)

    def rewrite(self) -> object:
        region = self.rng.choice(REGIONS)
        old = [path for path, each in self.model.files.items() if each.region == region]
        live = sum(self.model.files[path].rows - len(self.model.files[path].deleted) for path in old)
        if not old or not live:
            return None
        for path in old:
            del self.model.files[path]
        path, file = self.model.new_file(self.rng, region, live)
        self.model.files[path] = file
        up = self.table.update_snapshot()
        return up.rewrite_files(self.planned, remove=old, add=[written(path, file)])

    def rewrite_manifests(self) -> object:
        content = self.rng.choice(list(ManifestContent))
        return self.table.update_snapshot().rewrite_manifests(content)

    def rollback(self) -> object:
        current = self.table.metadata.current_snapshot_id
        if current is None:
            return None
        known = [each.snapshot_id for each in self.table.metadata.ancestors(current)]
        target = self.rng.choice([each for each in known if each in self.model.history][:4])
        self.table.manage_snapshots().rollback_to_snapshot(target).commit()
        self.model.files = dict(self.model.history[target])
        return None

    def _choose_rows(self, count: int = 3) -> dict[str, list[int]]:
        chosen = {}
        for path in self._some(count) if self.model.files else []:
            file = self.model.files[path]
            left = sorted(set(range(file.rows)) - file.deleted)
            if left:
                chosen[path] = self.rng.sample(left, self.rng.randint(1, len(left)))
        return chosen

    def _deleted(self, rows: dict[str, list[int]]) -> None:
        for path, positions in rows.items():
            file = self.model.files[path]
            self.model.files[path] = ModelFile(file.region, file.rows, file.deleted | frozenset(positions))

    def delete_rows(self) -> object:
        rows = self._choose_rows()
        if not rows:
            return None
        self._deleted(rows)
        return self.table.update_snapshot().row_delta(self.planned, vectors=rows)

    def update_rows(self) -> object:
        rows = self._choose_rows()
        if not rows:
            return None
        self._deleted(rows)
        add = self._add(1)
        return self.table.update_snapshot().row_delta(self.planned, vectors=rows, add=add)

    def concurrent_deletes(self) -> object:
        """Two writers delete different rows of the same files, and both succeed."""
        rows = {path: each for path, each in self._choose_rows(2).items() if len(each) > 1}
        if not rows:
            return None
        other, planned = handle(self.committer), self.planned
        self._deleted(rows)
        other.update_snapshot().row_delta(planned, vectors={path: each[:1] for path, each in rows.items()})
        return self.table.update_snapshot().row_delta(planned, vectors={path: each[1:] for path, each in rows.items()})

    def two_writers(self) -> object:
        """One handle is behind and does not know it."""
        other = handle(self.committer)
        other.update_snapshot().fast_append(self._add(1))
        return self.merge_append()

    def transaction(self) -> object:
        """An append and the removal of a part of it, in one commit."""
        path, file = self.model.new_file(self.rng)
        with self.table.transaction() as tx:
            tx.update_snapshot().fast_append([*self._add(1), written(path, file)])
            tx.update_snapshot().delete_files([path], Planned.on(tx.table_metadata))
        return None

    # -- what must hold

    def check(self) -> None:
        table, files = self.table, self.model.files
        found = entries(table)
        data = {each.data_file.file_path: each for each in found if each.data_file.content is FileContent.DATA}
        assert sorted(
            each.data_file.file_path for each in found if each.data_file.content is FileContent.DATA
        ) == sorted(files)
        vectors = [each.data_file for each in found if each.data_file.is_deletion_vector]
        assert len({each.referenced_data_file for each in vectors}) == len(vectors)
        deleted = {
            str(each.referenced_data_file): frozenset(load_vector(table.storage, each).positions().tolist())
            for each in vectors
        }
        assert deleted == {path: each.deleted for path, each in files.items() if each.deleted}
        self.check_summary(table, len(vectors))
        self.check_numbers(table)
        if allows(self.version, Feature.ROW_LINEAGE):
            self.check_row_ids({path: each.data_file.first_row_id for path, each in data.items()})

    def check_summary(self, table: Table, vectors: int) -> None:
        snapshot = table.current_snapshot()
        if snapshot is None:
            return
        assert snapshot.summary is not None
        files = self.model.files.values()
        wanted = {
            "total-data-files": len(files),
            "total-records": sum(each.rows for each in files),
            "total-delete-files": vectors,
            "total-position-deletes": sum(len(each.deleted) for each in files),
            "total-equality-deletes": 0,
        }
        assert {key: int(snapshot.summary[key]) for key in wanted} == wanted
        live = [each for each in manifests(table) if each.content is ManifestContent.DATA]
        assert sum((each.added_files_count or 0) + (each.existing_files_count or 0) for each in live) == len(files)

    def check_numbers(self, table: Table) -> None:
        numbers = [each.sequence_number for each in table.snapshots()]
        if allows(self.version, Feature.SEQUENCE_NUMBERS):
            assert numbers == sorted(set(numbers))
            for manifest in manifests(table):
                assert (
                    0 < manifest.min_sequence_number <= manifest.sequence_number <= table.metadata.last_sequence_number
                )
        else:
            assert set(numbers) <= {0}
        assert len({each.snapshot_id for each in table.snapshots()}) == len(table.snapshots())

    def check_row_ids(self, starts: dict[str, int | None]) -> None:
        ranges = []
        for path, start in starts.items():
            assert start is not None
            # A row keeps its id as long as its file lives, whatever happens to the manifests.
            assert self.model.row_ids.setdefault(path, start) == start
            ranges.append((start, start + self.model.files[path].rows))
        ranges.sort()
        for (_, end), (start, _) in pairwise(ranges):
            assert end <= start
        assert all(end <= self.table.metadata.next_row_id for _, end in ranges)


@pytest.mark.parametrize("version", ALL_VERSIONS)
@settings(max_examples=8)
@given(seed=st.integers(0, 2**32), steps=st.integers(4, 14))
def test_the_table_is_what_the_model_says_after_every_operation(version: int, seed: int, steps: int) -> None:
    writer = Writer(version, seed)
    for _ in range(steps):
        writer.step()
    # The data files of the model exist in manifests only, and so does their place.
    report = writer.table.verify(level="metadata", locations=["memory://m"], progress=silent)
    assert report.clean, str(report)
