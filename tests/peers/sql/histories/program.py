"""Writes a history as a small program that runs alone: plain `spark.sql` on icefloe, and what Java says as a comment."""

from tests.peers.sql.histories.generating import History
from tests.peers.sql.histories.parts import render
from tests.peers.sql.histories.running import Difference

HEAD = '''"""{title}"""
import re, tempfile
import icefloe
from pyspark.sql import SparkSession

folder = tempfile.mkdtemp()
spark = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false").config("spark.log.level", "OFF").config("spark.sql.session.timeZone", "UTC").config("spark.sql.shuffle.partitions", "2").getOrCreate()
catalog = icefloe.load_catalog("lake", type="sql", uri=f"sqlite:///{{folder}}/c.db", warehouse=f"file://{{folder}}/wh")
ice = icefloe.connect(catalog, spark=spark)
ice.sql("CREATE NAMESPACE lake.n")

def snapshot(match):
    found = [each for each in ice.load_table("n.t").snapshots()]
    each = found[(int(match[2]) - 1) % len(found)]
    return str(each.snapshot_id) if match[1] == "snapshot" else f"timestamp_millis({{each.timestamp_ms}})"

def run(text):
    text = re.sub("«(snapshot|time) ([0-9]+)»", snapshot, text)
    try:
        print("OK ", text, "->", ice.sql(text).collect())
    except Exception as error:
        print("ERR", text, "->", type(error).__name__, str(error)[:500])

'''


def program(history: History, found: Difference) -> str:
    """The text of the program."""
    lines = [
        HEAD.format(
            title=f"Seed {history.seed}: {found.what} differ, {found.kind}: {found.statement[:60]}".replace('"', "'")
        )
    ]
    lines += [f"spark.conf.set({key!r}, {value!r})" for key, value in history.settings]
    lines += [f"run({_named(render(each.part))!r})" for each in history.statements]
    lines.append('run("SELECT * FROM lake.n.t")')
    lines += _comment("ours", found.ours) + _comment("Java", found.java)
    return "\n".join(lines) + "\n"


def _named(text: str) -> str:
    text = text.replace("«t»", "lake.n.t").replace("«u»", "lake.n.u").replace("«v»", "v")
    return text.replace("«catalog»", "lake").replace("«name»", "n.t")


def _comment(who: str, said: str) -> list[str]:
    return [f"# {who}: {said[:1200]}".replace("\n", "\n# ")]
