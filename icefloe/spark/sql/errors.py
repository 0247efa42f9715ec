"""What users see of Spark's errors about plans of ours: names that only those plans have are taken out."""

import re

from pyspark.errors import AnalysisException

from icefloe.spark.inner_names import PREFIX

_PROPOSALS = re.compile(r" Did you mean one of the following\? \[(.*?)\]\.")
_PLAN = re.compile(r";?\n'?[A-Z]\w+ .*", re.DOTALL)
"""The plan that Spark appends to its message."""


def without_inner_names(error: Exception) -> None:
    """Change the text of an error of Spark's analysis: no name of ours is proposed, and no plan that has them is shown."""
    # PySpark keeps the text there; an error of Python's own has none.
    text = getattr(error, "_desc", None)
    if not isinstance(error, AnalysisException) or not isinstance(text, str) or PREFIX not in text:
        return
    message = _PLAN.split(text, maxsplit=1)[0]
    error._desc = _PROPOSALS.sub(_proposed, message)


def _proposed(match: re.Match[str]) -> str:
    names = [name for name in match[1].split(", ") if PREFIX not in name]
    return f" Did you mean one of the following? [{', '.join(names)}]." if names else ""
