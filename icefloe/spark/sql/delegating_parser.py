"""What a parser of ours leaves to Spark's: every call that it does not answer itself."""

from typing import Any

from icefloe.spark.gateway import Returned


class DelegatingParser:
    """Spark's parser as a Python object that Spark can call; subclasses answer some of its calls."""

    def __init__(self, sparks: Any) -> None:
        self._sparks = sparks
        self._returned = Returned()

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        method = getattr(self._sparks, name)
        return lambda *arguments: self._returned(method(*arguments))

    class Java:
        implements = ("org.apache.spark.sql.catalyst.parser.ParserInterface",)
