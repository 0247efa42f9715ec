"""Load by `wrk` from Debian's packages: requests of a list in random order, and what it counted."""

import json
import os
import re
import subprocess
import uuid
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

_SCRIPT = """
local requests = {{}}
for line in io.lines("{requests}") do
  local method, path, body, tag = line:match("^(%S+)\\t(%S+)\\t([^\\t]*)\\t([^\\t]*)$")
  local headers = {{["Accept"] = "application/json"}}
  if body ~= "" then headers["Content-Type"] = "application/json" end
  if tag ~= "" then headers["If-None-Match"] = tag end
  requests[#requests + 1] = {{method, path, body, headers}}
end
local counter = 0
request = function()
  local chosen = requests[math.random(#requests)]
  counter = counter + 1
  local body = nil
  if chosen[3] ~= "" then body = string.gsub(chosen[3], "COUNTER", tostring(math.random(1, 1000000000)) .. counter) end
  return wrk.format(chosen[1], chosen[2], chosen[4], body)
end
local threads = {{}}
setup = function(thread) table.insert(threads, thread) end
init = function() math.randomseed(os.time()); statuses = "" end
local seen = {{}}
response = function(status)
  seen[status] = (seen[status] or 0) + 1
  local text = ""
  for code, count in pairs(seen) do text = text .. code .. "=" .. count .. " " end
  statuses = text
end
done = function(summary, latency)
  local codes = ""
  for _, thread in ipairs(threads) do codes = codes .. thread:get("statuses") end
  io.write(string.format("RESULT %d %d %f %s\\n", summary.requests, summary.duration, latency:percentile(99), codes))
end
"""


_WARMTH = 8


@dataclass(frozen=True, slots=True)
class Request:
    """One request of the list; `COUNTER` in a body is another number each time."""

    path: str
    method: str = "GET"
    body: str = ""
    etag: str = ""


@dataclass(frozen=True, slots=True)
class Load:
    """What was measured."""

    requests: int
    seconds: float
    p99_ms: float
    statuses: dict[str, int]
    cpu_seconds: float
    """CPU time of the server's processes."""

    @property
    def seconds_per_thousand(self) -> float:
        """Wall time of a thousand requests."""
        return 1000 * self.seconds / self.requests

    def __str__(self) -> str:
        cpu = 1000 * self.cpu_seconds / self.requests
        codes = ", ".join(f"{code}: {count}" for code, count in sorted(self.statuses.items()))
        return f"{self.requests / self.seconds:.0f}/s, p99 {self.p99_ms:.0f} ms, {cpu:.2f} s CPU a thousand ({codes})"


@dataclass(frozen=True, slots=True)
class Side:
    """Requests to a server, and where they are written for the load generator."""

    uri: str
    pid: int
    script: Path

    @classmethod
    def of(cls, uri: str, pid: int, requests: Iterable[Request], folder: Path) -> "Side":
        """A side with files of its own in the folder."""
        number = uuid.uuid4().hex
        listed, script = folder / f"{number}.tsv", folder / f"{number}.lua"
        lines = ("\t".join((each.method, each.path, each.body, each.etag)) for each in requests)
        listed.write_text("\n".join(lines) + "\n")
        script.write_text(_SCRIPT.format(requests=listed))
        return cls(uri, pid, script)


def run_in_turn(sides: Sequence[Side], seconds: int, turns: int, clients: int = 16) -> list[Load]:
    """The fastest of some turns of each side, which take turns, so that what else the machine does hits all alike.

    Before that they get warm: code that the JVM has not compiled yet is no measure.
    """
    for side in sides:
        _wrk(side.uri, side.script, max(seconds, _WARMTH), clients)
    loads = [[run_load(side, seconds, clients) for side in sides] for _ in range(turns)]
    return [min(of_side, key=lambda load: load.seconds_per_thousand) for of_side in zip(*loads, strict=True)]


def run_load(side: Side, seconds: int, clients: int) -> Load:
    """Load for some seconds."""
    uri = side.uri
    before = cpu_seconds(side.pid)
    output = _wrk(uri, side.script, seconds, clients)
    after = cpu_seconds(side.pid)
    match = re.search(r"RESULT (\d+) (\d+) ([\d.]+) (.*)", output)
    if match is None or int(match[1]) == 0:
        raise RuntimeError(f"{uri} answered nothing; wrk said: {output[-2000:]}")
    statuses: dict[str, int] = {}
    for code, count in re.findall(r"(\d+)=(\d+)", match[4]):
        statuses[code] = statuses.get(code, 0) + int(count)
    return Load(int(match[1]), int(match[2]) / 1e6, float(match[3]) / 1000, statuses, after - before)


def _wrk(uri: str, script: Path, seconds: int, clients: int) -> str:
    command = ["wrk", "-t", "1", "-c", str(clients), "-d", f"{seconds}s", "--timeout", "30s", "-s", str(script), uri]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def cpu_seconds(pid: int) -> float:
    """CPU time of a process and those that it started, so far."""
    total, waiting = 0.0, [pid]
    while waiting:
        process = waiting.pop()
        try:
            fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
            total += (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
            for task in Path(f"/proc/{process}/task").iterdir():
                waiting += map(int, (task / "children").read_text().split())
        except OSError:
            continue
    return total


def property_commit(counter_key: str) -> str:
    """The body of a commit that sets one property to another value each time."""
    update = {"action": "set-properties", "updates": {counter_key: "COUNTER"}}
    return json.dumps({"requirements": [], "updates": [update]})
