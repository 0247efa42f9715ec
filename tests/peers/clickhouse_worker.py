"""Runs in the Python of the ClickHouse peer: chdb, which answers SQL texts, one JSON object a line.

It knows nothing of icefloe. Tables must be below the folder that it runs in.
"""

import base64
import json
import sys
from typing import Any


def answer(chdb: Any, request: dict[str, Any], sessions: list[Any]) -> dict[str, str]:
    """The rows of a statement, as an Arrow stream in base64; texts are bytes, as they may be no UTF-8."""
    if "run" in request:
        if not sessions:
            sessions.append(chdb.session.Session())
        sessions[0].query(request["run"])
        return {}
    text = f"{request['sql']} SETTINGS output_format_arrow_string_as_string = 0"
    for key, value in request["conf"].items():
        text += f", {key} = {value}"
    found = chdb.query(text, "ArrowStream")
    return {"arrow": base64.b64encode(bytes(found.bytes())).decode()}


def main() -> None:
    """Answer until the input ends."""
    import chdb.session

    def say(what: dict[str, Any]) -> None:
        sys.stdout.write(json.dumps(what) + "\n")
        sys.stdout.flush()

    json.loads(sys.stdin.readline())
    say({"version": str(chdb.query("SELECT version()", "TSV")).strip()})
    sessions: list[Any] = []
    for line in sys.stdin:
        try:
            say(answer(chdb, json.loads(line), sessions))
        except Exception as error:  # noqa: BLE001 - any failure of a statement is an answer
            say({"error": f"{type(error).__name__}: {error}"})


if __name__ == "__main__":
    main()
