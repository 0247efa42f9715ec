"""A program that asks Apache Sedona's predicates of a table of ours, with Sedona's own jar; run by test_sedona.

What it prints is a JSON object: for each predicate the rows, those without the table's help, and how many files were read.
"""

import json
import os
import random
import struct
import sys
from typing import Any

import pyarrow as pa
from pyspark.sql import SparkSession

from icefloe.spark.connect import connect
from tests.spark.reading import new_catalog

TILES = 12
SHAPES_PER_TILE = 40
BOX = "ST_PolygonFromEnvelope(30.25D, -1D, 41.5D, 60D)"
INSIDE = "ST_GeomFromText('POLYGON ((31 1, 41 1, 41 9, 36 4, 31 9, 31 1))')"
TOUCHED = "ST_GeomFromText('POINT (33 3)')"
PREDICATES = {
    **{
        f"{name}(column, box)": f"{name}({{column}}, {BOX})"
        for name in ("ST_Intersects", "ST_Within", "ST_CoveredBy", "ST_Crosses", "ST_Touches", "ST_Overlaps")
    },
    **{
        f"{name}(shape, column)": f"{name}({INSIDE}, {{column}})"
        for name in ("ST_Contains", "ST_Covers", "ST_Intersects")
    },
    "ST_Equals(column, point)": f"ST_Equals({{column}}, {TOUCHED})",
    "ST_Contains(column, point)": f"ST_Contains({{column}}, {TOUCHED})",
    "and another test": f"ST_Intersects({{column}}, {BOX}) AND id % 2 = 0",
    "either": f"ST_Intersects({{column}}, {TOUCHED}) OR ST_Within({{column}}, ST_PolygonFromEnvelope(70D, 0D, 75D, 60D))",
    "not pruned: ST_Disjoint": f"ST_Disjoint({{column}}, {BOX})",
    "not pruned: NOT ST_Intersects": f"NOT ST_Intersects({{column}}, {BOX})",
    "not pruned: ST_DWithin": f"ST_DWithin({{column}}, {TOUCHED}, 15D)",
}


def point(x: float, y: float) -> bytes:
    return struct.pack("<BIdd", 1, 1, x, y)


def line(*corners: tuple[float, float]) -> bytes:
    return struct.pack("<BII", 1, 2, len(corners)) + b"".join(struct.pack("<dd", *corner) for corner in corners)


def square(x: float, y: float, side: float) -> bytes:
    corners = [(x, y), (x + side, y), (x + side, y + side), (x, y + side), (x, y)]
    return struct.pack("<BIII", 1, 3, 1, 5) + b"".join(struct.pack("<dd", *corner) for corner in corners)


def shapes(tile: int, chance: random.Random) -> list[bytes | None]:
    """Shapes between ten times the number of the tile and eight more."""
    made: list[bytes | None] = [None, point(10 * tile + 3, 3), line((10 * tile, 0), (10 * tile + 8, 8))]
    while len(made) < SHAPES_PER_TILE:
        x, y = 10 * tile + chance.randrange(7), chance.randrange(9)
        made.append(chance.choice((point(x, y), line((x, y), (x + 1, y)), square(x, y, 1))))
    return made


def session(jars: str) -> SparkSession:
    os.environ["PYSPARK_PYTHON"] = sys.executable
    return (
        SparkSession.builder.master("local[2]")
        .config("spark.ui.enabled", "false")
        .config("spark.jars", jars)
        .config("spark.sql.extensions", "org.apache.sedona.sql.SedonaSqlExtensions")
        .config("spark.serializer", "org.apache.spark.serializer.KryoSerializer")
        .config("spark.kryo.registrator", "org.apache.sedona.core.serde.SedonaKryoRegistrator")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.log.level", "ERROR")
        .getOrCreate()
    )


def main(folder: str, jars: str) -> None:
    spark = session(jars)
    ice = connect(new_catalog(folder), spark=spark)
    table = ice.catalog.create_table("db.t", "id bigint, g geometry", properties={"format-version": "3"})
    chance = random.Random(7)
    for tile in range(TILES):
        ids = range(SHAPES_PER_TILE * tile, SHAPES_PER_TILE * (tile + 1))
        table.append(pa.table({"id": ids, "g": shapes(tile, chance)}))
    # The same rows where nothing can be ruled out.
    rows = [(row["id"], row["g"]) for row in table.scan().to_arrow().to_pylist()]
    spark.createDataFrame(rows, "id bigint, g binary").createOrReplaceTempView("plain")
    answers: dict[str, Any] = {}
    for name, predicate in PREDICATES.items():
        where = predicate.format(column="ST_GeomFromWKB(g)")
        found = sorted(row.id for row in ice.sql(f"SELECT id FROM db.t WHERE {where}").collect())
        files = ice.reports[-1].counts.result_data_files
        expected = sorted(row.id for row in spark.sql(f"SELECT id FROM plain WHERE {where}").collect())
        answers[name] = {"found": found, "expected": expected, "files": files}
    sys.stdout.write(f"answers:{json.dumps(answers)}\n")
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
