"""Compiled classes that are kept beside the bytecode of this package, so that Spark's compiler runs once for each version of Spark.

A file belongs to a text, a Java and the jars of a Spark, each by size and time: classes that were compiled against others might
call methods that these lack. Where Python writes no bytecode, or cannot, nothing is kept, and each JVM compiles for itself.
"""

import hashlib
import io
import os
import sys
import zipfile
import zlib
from collections.abc import Mapping
from contextlib import suppress
from importlib.util import cache_from_source
from pathlib import Path
from typing import NamedTuple
from uuid import uuid4

_VERSIONS_KEPT = 4
"""Files of one text: of that many versions of it, of Spark or of Java."""


class Kept(NamedTuple):
    """Where the classes of a text are kept; they need not be there."""

    name: str
    source: str
    platform: str

    def load(self) -> dict[str, bytes] | None:
        """The classes by name; None if they have to be compiled."""
        try:
            with zipfile.ZipFile(self._file) as archive:
                return {_class_name(member): archive.read(member) for member in archive.namelist()}
        except (OSError, ValueError, EOFError, zipfile.BadZipFile, zlib.error):
            return None

    def store(self, classes: Mapping[str, bytes]) -> None:
        """Keep classes that were compiled and do what they should."""
        if sys.dont_write_bytecode:
            return
        # Another process may do the same, or may have no right to.
        with suppress(OSError):
            folder = self._file.parent
            folder.mkdir(parents=True, exist_ok=True)
            temporary = self._file.with_suffix(f".{uuid4().hex}")
            try:
                temporary.write_bytes(packed(classes))
                temporary.replace(self._file)
            finally:
                temporary.unlink(missing_ok=True)
            others = sorted(folder.glob(f"{self.name}-*.jar"), key=lambda each: each.stat().st_mtime, reverse=True)
            for old in others[_VERSIONS_KEPT:]:
                old.unlink()

    @property
    def _file(self) -> Path:
        version = hashlib.sha256(f"{self.platform}\0{self.source}".encode()).hexdigest()[:16]
        return Path(cache_from_source(__file__)).with_name(f"{self.name}-{version}.jar")


def platform(java: str, class_path: str) -> str | None:
    """What classes are compiled against, as a text; None if its jars cannot be told from others.

    Args:
        java: the version of Java.
        class_path: files and folders as Java has them.
    """
    told = hashlib.sha256(f"{java}\0{class_path}".encode())
    jars = [entry for entry in class_path.split(os.pathsep) if entry.endswith(".jar")]
    try:
        for jar in jars:
            status = os.stat(jar)
            told.update(f"\0{status.st_size} {status.st_mtime_ns}".encode())
    except OSError:
        # That Java runs on another machine.
        return None
    return told.hexdigest() if jars else None


def packed(classes: Mapping[str, bytes]) -> bytes:
    """Classes as a jar, always of the same bytes: Spark refuses another file of a name."""
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w") as archive:
        for class_name, code in sorted(classes.items()):
            archive.writestr(zipfile.ZipInfo(class_name.replace(".", "/") + ".class"), code)
    return content.getvalue()


def _class_name(member: str) -> str:
    return member.removesuffix(".class").replace("/", ".")
