"""The answers of Python to a Java file index (icefloe/spark/jvm/scan_index.java), which asks once for each query.

A question says how the session's reader is set and has the query's filters as JSON; an answer has all files, with their
constants, their deleted rows and their keys, as bytes. So neither of them makes further calls.
"""

import json
import logging
import struct
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from itertools import count

from py4j.java_gateway import JavaObject

from icefloe.planning import FileScanTask
from icefloe.schema import JSON
from icefloe.spark import optimizer
from icefloe.spark.catalyst import SentExpression, tree
from icefloe.spark.directories import hadoop_location, unsafe_row
from icefloe.spark.file_index import MOST_BYTES_KEPT, Facts, FileLister
from icefloe.spark.predicates import table_filter
from icefloe.spark.spark_sessions import ReadSettings

logger = logging.getLogger("icefloe.spark")

_LENGTH = struct.Struct(">i")
_NUMBERS = struct.Struct(">qq")


class AskedFiles:
    """What the Java index calls: a function of two arguments."""

    def __init__(self, lister: FileLister, check: Callable[[ReadSettings], None], *, is_lasting: bool) -> None:
        """`check` raises if Spark would misread the files; `is_lasting` is whether it need not be asked again for an answer
        that is known."""
        self._lister = lister
        self._check = check
        self._is_lasting = is_lasting
        self._unsent: dict[int, tuple[bytes, Iterator[bytes]]] = {}
        """The next piece of long answers, and those after it, by number."""
        self._numbers = count(1)

    def apply(self, question: str, filters: JavaObject | None) -> bytes | str | JavaObject | None:
        """The files for the filters of a query; without any, the locations of all, or the next piece of a long answer."""
        try:
            if filters is not None:
                return self._answer(json.loads(question), filters)
            return self._rest(int(question)) if question else "\0".join(self._lister.locations())
        except Exception:
            logger.exception("planning of %s failed", self._lister.files.label)
            raise

    class Java:
        """What py4j makes of it."""

        implements = ("java.util.function.BiFunction",)

    def _answer(self, question: JSON, filters: JavaObject) -> bytes | str | JavaObject | None:
        self._check(ReadSettings(*question["settings"]))
        if "about" in question:
            return self._answer_rule(str(question["about"]), filters)
        sent = (
            SentExpression(nodes, partial(_expression, filters, 1, index))
            for index, nodes in enumerate(question["data"])
        )
        pushed = table_filter(sent, self._lister.files.columns, for_files_only=True)
        constant = [
            _expression(filters, 0, index)
            for index, nodes in enumerate(question["constant"])
            if not nodes or not self._lister.is_always_true(tree(SentExpression(nodes, lambda: filters)))
        ]
        return self._listed(self._lister.groups(pushed, constant), is_lasting=self._is_lasting and not constant)

    def _listed(self, groups: Mapping[Facts, Sequence[FileScanTask]], *, is_lasting: bool) -> bytes:
        """Whether the answer may be kept, the number of what follows or 0, what plans show, and the files, or the first of them."""
        pieces = _in_pieces(self._listing(groups))
        first, second = next(pieces), next(pieces, None)
        number = 0
        if second is not None:
            number = next(self._numbers)
            self._unsent[number] = second, pieces
        is_kept = is_lasting and second is None
        return bytes((is_kept,)) + _LENGTH.pack(number) + _sized(self._lister.shown().encode()) + first

    def _rest(self, number: int) -> bytes:
        """The next piece of an answer; there is one where the index expects more files."""
        piece, others = self._unsent.pop(number)
        following = next(others, None)
        if following is not None:
            self._unsent[number] = following, others
        return piece

    def _answer_rule(self, about: str, request: JavaObject) -> bytes | str | JavaObject | None:
        """What a rule of icefloe/spark/jvm/optimizer.java asks; None if it has to do without."""
        files = self._lister.files
        if about == "text":
            return optimizer.text(self._lister.gateway.spark, str(request.asked()))
        if about == "limit" and files.first is not None:
            return self._listed(self._lister.grouped(files.first(request.limit())), is_lasting=False)
        if about == "aggregates":
            return optimizer.aggregates(files, request)
        if about == "groups":
            return optimizer.groups(files, request)
        if about == "statistics":
            return optimizer.statistics(files, request)
        if about == "narrowing":
            return optimizer.narrowing(files, request)
        return optimizer.locations_of_keys(files, request) if about == "keys" else None

    def _listing(self, groups: Mapping[Facts, Sequence[FileScanTask]]) -> Iterator[bytes]:
        """Rows of constants, each with its files: location, size, number of rows, deleted rows, and key."""
        files = self._lister.files
        tasks = [task for members in groups.values() for task in members]
        deleted = iter([b""] * len(tasks) if files.deleted is None else files.deleted(tasks))
        data_types = [constant.data_type for constant in files.constants]
        yield _LENGTH.pack(len(data_types)) + _LENGTH.pack(len(groups))
        for facts, members in groups.items():
            yield _sized(unsafe_row(data_types, facts)) + _LENGTH.pack(len(members))
            for task in members:
                location = hadoop_location(task.file.file_path).encode()
                numbers = _NUMBERS.pack(task.file.file_size_in_bytes, task.file.record_count)
                yield _sized(location) + numbers + _sized(next(deleted))
                yield _sized(b"" if files.key is None else files.key(task))


def _in_pieces(parts: Iterator[bytes]) -> Iterator[bytes]:
    """The parts, put together to pieces that py4j can carry: it fails beyond 256 MiB."""
    piece = bytearray()
    for part in parts:
        piece += part
        if len(piece) >= MOST_BYTES_KEPT:
            yield bytes(piece)
            piece.clear()
    if piece:
        yield bytes(piece)


def _sized(content: bytes) -> bytes:
    return _LENGTH.pack(len(content)) + content


def _expression(filters: JavaObject, kind: int, index: int) -> JavaObject:
    """One of the query's filters on constants (kind 0) or on data (kind 1)."""
    return filters[kind].apply(index)
