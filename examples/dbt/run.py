"""dbt-spark on tables of icefloe, by its session method: models in one process with the session that knows the catalog.

Run it with a folder for catalog, tables and dbt's own files: `python examples/dbt/run.py FOLDER`.
"""

import sys
from pathlib import Path

from dbt.cli.main import dbtRunner

import icefloe

PROJECT = Path(__file__).parent


def main(folder: Path) -> None:
    """Run the models twice, so that the incremental one merges, and then their tests."""
    catalog = icefloe.load_catalog("lake", type="sql", uri=f"sqlite:///{folder}/catalog.db", warehouse=folder / "lake")
    catalog.create_namespace_if_not_exists("shop")
    ice = icefloe.connect(catalog, drop_in=True)
    ice.spark.sql("USE lake")  # dbt's names have no catalog in them
    places = ["--project-dir", str(PROJECT), "--profiles-dir", str(PROJECT)]
    files = ["--target-path", str(folder / "target"), "--log-path", str(folder / "logs")]
    for command in ("run", "run", "test"):
        done = dbtRunner().invoke([command, *places, *files, "--no-send-anonymous-usage-stats"])
        if not done.success:
            sys.exit(f"dbt {command} failed: {done.exception or 'see above'}")
    for name in ("orders", "totals"):
        print(name, catalog.load_table(f"shop.{name}").scan().to_arrow().sort_by("region").to_pylist()[:2])
    ice.stop()


if __name__ == "__main__":
    main(Path(sys.argv[1]).absolute())
