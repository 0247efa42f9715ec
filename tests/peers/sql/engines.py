"""Two engines that run the same statements: Java Iceberg on its Spark, and ours; each with a catalog `lake` of its own.

`Engines.run` gives what both answer, `Engines.states` what the tables of a namespace are afterwards. Statements run at the same time on
both, as each has a process (and a core) of its own. Names are the same on both sides, as each has its own database and folder.
"""

import re
import time
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import count
from pathlib import Path
from typing import Any, Generic, TypeVar

import icefloe
from icefloe.catalog import Catalog
from icefloe.spark.connect import connect
from icefloe.spark.session import Session
from icefloe.table import Table
from tests.peers.java import JavaPeer
from tests.peers.java_worker import collected
from tests.peers.sql.normal import Rows, rows_of
from tests.peers.sql.state import CATALOG as CATALOG, OTHER, State, entries, lend, state_of
from tests.peers.worker import arrow_of

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of a statement: its rows, or its error."""

    rows: Rows | None
    error: str | None
    seconds: float

    @property
    def failed(self) -> bool:
        """Whether the engine refused it."""
        return self.error is not None


@dataclass(frozen=True, slots=True)
class Both(Generic[T]):
    """The same thing from both engines."""

    ours: T
    java: T


class Engine(ABC):
    """One of the two, with a folder for its database and its tables."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._seen: dict[tuple[str, str], list[int]] = {}
        self._times: dict[int, int] = {}
        self._states: dict[str, State] = {}

    @staticmethod
    def database_in(folder: Path) -> Path:
        """The database of the catalog."""
        return folder / "catalog.db"

    @abstractmethod
    def begin(self, texts: Sequence[str]) -> None:
        """Let it start to run statements, one after the other; `end` gives what became of them."""

    @abstractmethod
    def end(self) -> list[Outcome]:
        """What became of the statements that were begun."""

    @abstractmethod
    def reset(self) -> None:
        """Settings, current catalog and cache as at the start."""

    def run(self, text: str) -> Outcome:
        """What becomes of one statement."""
        self.begin([text])
        [found] = self.end()
        return found

    def configure(self, settings: Mapping[str, str]) -> None:
        """Change settings of the session, until it is reset."""
        for key, value in settings.items():
            found = self.run(f"SET {key}={value}")
            assert found.error is None, found.error

    def entries(self, namespace: str) -> dict[str, State]:
        """The tables and views of a namespace without rows; a file that was read before is not read again."""
        found = {}
        for name, entry in sorted(entries(self.database_in(self.folder), namespace).items()):
            if entry.location not in self._states:
                seen = self._seen.setdefault((namespace, name), [])
                state = state_of(entry, seen)
                seen += [each for each in state.snapshot_ids if each not in seen]
                self._times |= dict(zip(state.snapshot_ids, state.times, strict=True))
                self._states[entry.location] = state
            found[name] = self._states[entry.location]
        return found

    def snapshot(self, namespace: str, table: str, place: int) -> tuple[int, int]:
        """The id and the time in milliseconds of the first, second... snapshot that a table was seen with."""
        found = self._seen[namespace, table][place - 1]
        return found, self._times[found]

    def plain(self, namespace: str, rows: Rows) -> Rows:
        """Rows without what is random: ids and times of snapshots as places, folders and UUIDs as a word."""
        places: dict[int, str] = {}
        for (space, table), seen in self._seen.items():
            if space == namespace:
                for place, each in enumerate(seen, 1):
                    places |= {each: f"{table}.s{place}", self._times[each]: f"{table}.ms{place}"}
        return rows.mapped(lambda value: _plain(value, places, str(self.folder)))


class OurEngine(Engine):
    """Our Spark, in this process."""

    name = "icefloe"

    def __init__(self, folder: Path, java_folder: Path, spark: Any) -> None:
        super().__init__(folder)
        self.catalog = _open(folder)
        self.other = _open(java_folder)
        self.ice: Session = connect({CATALOG: self.catalog, OTHER: self.other}, spark=spark)
        self._baseline = dict(spark.conf.getAll)
        self._texts: list[str] = []

    def begin(self, texts: Sequence[str]) -> None:
        """Note them; `end` runs them, so that Java, which was told before, runs at the same time."""
        self._texts = list(texts)

    def end(self) -> list[Outcome]:
        """Run them."""
        return [self._run(each) for each in self._texts]

    def _run(self, text: str) -> Outcome:
        start = time.monotonic()
        try:
            rows = rows_of(collected(self.ice.sql(text)))
        except Exception as error:  # noqa: BLE001 - any failure of a statement is an outcome
            return Outcome(None, f"{type(error).__name__}: {error}", time.monotonic() - start)
        return Outcome(rows, None, time.monotonic() - start)

    def reset(self) -> None:
        """As the other process does."""
        spark = self.ice.spark
        spark.catalog.clearCache()
        spark.catalog.setCurrentCatalog("spark_catalog")
        now = dict(spark.conf.getAll)
        for key in now.keys() - self._baseline.keys():
            spark.conf.unset(key)
        for key, value in self._baseline.items():
            if now.get(key) != value:
                spark.conf.set(key, value)

    def close(self) -> None:
        """Close both catalogs."""
        self.catalog.close()
        self.other.close()


class JavaEngine(Engine):
    """Java Iceberg, in another process."""

    name = "Java Iceberg"

    def __init__(self, folder: Path, peer: JavaPeer) -> None:
        super().__init__(folder)
        self.peer = peer
        self._baseline = peer.settings

    def begin(self, texts: Sequence[str]) -> None:
        """Send them."""
        self.peer.tell({"each": list(texts)})

    def end(self) -> list[Outcome]:
        """Wait for the answers."""
        return [
            Outcome(None if "error" in each else rows_of(arrow_of(each)), each.get("error"), each["seconds"])
            for each in self.peer.hear()["each"]
        ]

    def reset(self) -> None:
        """In the other process."""
        self.peer.tell({"reset": self._baseline})
        found = self.peer.hear()
        assert "error" not in found, found


class Folders:
    """The folders of both engines below one, and how Java is started to know them."""

    def __init__(self, folder: Path) -> None:
        self.ours, self.java = folder / "ours", folder / "java"
        self.ours.mkdir()
        self.java.mkdir()

    @property
    def java_settings(self) -> dict[str, str]:
        """The settings with which Java opens both catalogs."""
        return {
            **_java_catalog(CATALOG, self.java),
            **_java_catalog(OTHER, self.ours),
            "spark.sql.shuffle.partitions": "2",
            "spark.default.parallelism": "2",
            # Tables have a few rows, so compiling a plan takes longer than running it.
            "spark.sql.codegen.wholeStage": "false",
            "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
        }


class Engines:
    """Both, which run the same; Java was started with the settings of the folders."""

    def __init__(self, folders: Folders, peer: JavaPeer, spark: Any) -> None:
        self.java = JavaEngine(folders.java, peer)
        self.ours = OurEngine(folders.ours, folders.java, spark)
        self._numbers = count(1)

    def new_namespace(self) -> str:
        """Make an empty namespace on both sides; a table `t` in it is `lake.<namespace>.t` on both."""
        name = f"n{next(self._numbers)}"
        made = self.run(f"CREATE NAMESPACE {CATALOG}.{name}")
        for outcome in (made.ours, made.java):
            assert outcome.error is None, outcome.error
        return name

    def configure(self, settings: Mapping[str, str]) -> None:
        """Change settings of both sessions, until they are reset."""
        self.ours.configure(settings)
        self.java.configure(settings)

    def reset(self) -> None:
        """Both sessions as at the start."""
        self.ours.reset()
        self.java.reset()

    def run(self, text: str, for_java: str | None = None) -> Both[Outcome]:
        """What becomes of a statement on both; Java's may be another text, where it must name other ids."""
        self.java.begin([text if for_java is None else for_java])
        ours = self.ours.run(text)
        [java] = self.java.end()
        return Both(ours, java)

    def states(
        self, namespace: str, known: Mapping[str, Both[State | None]] | None = None
    ) -> dict[str, Both[State | None]]:
        """The tables and views of a namespace with their rows, None where an engine has none of the name.

        Those that did not change since `known`, which an earlier call gave, are not read again.
        """
        before = known or {}
        ours, java = self.ours.entries(namespace), self.java.entries(namespace)
        names = sorted({*ours, *java})
        changed = [name for name in names if _changed(before.get(name), ours.get(name), java.get(name))]
        queries = [f"SELECT * FROM {CATALOG}.{namespace}.{quoted(name)}" for name in changed]
        self.java.begin([query for query, name in zip(queries, changed, strict=True) if name in java])
        self.ours.begin([query for query, name in zip(queries, changed, strict=True) if name in ours])
        read_ours = dict(zip([name for name in changed if name in ours], self.ours.end(), strict=True))
        read_java = dict(zip([name for name in changed if name in java], self.java.end(), strict=True))
        found: dict[str, Both[State | None]] = {}
        for name in names:
            if name in changed:
                found[name] = Both(_with_rows(ours, read_ours, name), _with_rows(java, read_java, name))
            else:
                found[name] = before[name]
        return found

    def tables(self, namespace: str, name: str) -> Both[Table]:
        """The handles of a table of both, for plain Python."""
        return Both(self.ours.catalog.load_table((namespace, name)), self.ours.other.load_table((namespace, name)))

    def crossed(self, namespace: str, name: str, travel: str = "") -> Both[Outcome]:
        """What our Spark reads from Java's table, and what Java reads from ours."""
        lend(self.ours.database_in(self.ours.folder), namespace, name)
        self.java.begin([f"SELECT * FROM {OTHER}.{namespace}.{quoted(name)}{travel}"])
        ours = self.ours.run(f"SELECT * FROM {OTHER}.{namespace}.{quoted(name)}{travel}")
        [java] = self.java.end()
        return Both(ours, java)

    def read(self, namespace: str, name: str, travel: str = "") -> Both[Outcome]:
        """What each reads from its own table."""
        return self.run(f"SELECT * FROM {CATALOG}.{namespace}.{quoted(name)}{travel}")

    def close(self) -> None:
        """Close our catalogs."""
        self.ours.close()


def quoted(name: str) -> str:
    """A part of a name as SQL takes any text."""
    return "`" + name.replace("`", "``") + "`"


def _open(folder: Path) -> Catalog:
    uri = f"sqlite:///{Engine.database_in(folder)}"
    return icefloe.load_catalog(CATALOG, type="sql", uri=uri, warehouse=(folder / "warehouse").as_uri())


def _java_catalog(name: str, folder: Path) -> dict[str, str]:
    prefix = f"spark.sql.catalog.{name}"
    return {
        prefix: "org.apache.iceberg.spark.SparkCatalog",
        f"{prefix}.type": "jdbc",
        f"{prefix}.uri": f"jdbc:sqlite:{Engine.database_in(folder)}",
        f"{prefix}.warehouse": (folder / "warehouse").as_uri(),
        f"{prefix}.cache-enabled": "false",
        f"{prefix}.jdbc.schema-version": "V1",
    }


def _changed(before: Both[Any] | None, ours: State | None, java: State | None) -> bool:
    if before is None:
        return True
    return any(
        (None if old is None else old.location) != (None if new is None else new.location)
        for old, new in ((before.ours, ours), (before.java, java))
    )


def _with_rows(states: Mapping[str, State], read: Mapping[str, Outcome], name: str) -> State | None:
    if name not in states:
        return None
    found = read[name]
    rows = found.error if found.rows is None else found.rows.in_any_order()
    return replace(states[name], rows=rows)


UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")


def _plain(value: Any, places: Mapping[int, str], folder: str) -> Any:
    if isinstance(value, bool):
        return value
    if isinstance(value, int):
        return places.get(value, value)
    if isinstance(value, tuple):
        return tuple(_plain(each, places, folder) for each in value)
    if isinstance(value, str):
        if value.isdigit() and int(value) in places:
            return places[int(value)]
        return UUID.sub("<uuid>", value.replace(folder, "<folder>"))
    return value
