"""Run benchmarks: `python -m bench <name>... [--size small|medium|full]`, `python -m bench --list`.

`all` stands for those that need nothing but what is installed, `java` for those against Java Iceberg.
"""

import argparse
import importlib
import inspect
import pkgutil
from functools import partial

import bench
from bench.report import no_total, report

NOT_BENCHMARKS = {"__main__", "engines", "page", "report", "rest_load"}
AGAINST_JAVA = {
    "compaction",
    "java_metadata",
    "java_optimizer",
    "java_rows",
    "java_scan",
    "java_statistics",
    "maintenance",
    "rest",
    "streaming",
    "tpcds",
    "tpch",
}


def names() -> list[str]:
    """Every benchmark, by module name."""
    return sorted(found.name for found in pkgutil.iter_modules(bench.__path__) if found.name not in NOT_BENCHMARKS)


def main() -> None:
    """Parse the arguments and run what they name."""
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="name", help="a benchmark, `all` or `java`")
    parser.add_argument("--size", choices=("small", "medium", "full"), default="medium")
    parser.add_argument("--cases", help="only these, as in 1-20,23 or filter,group; what was measured of others stays")
    parser.add_argument("--tables", help="a folder in which the tables of a workload are made once and kept")
    parser.add_argument("--list", action="store_true", help="name the benchmarks and stop")
    arguments = parser.parse_args()
    if arguments.list:
        print("\n".join(names()))
        return
    groups = {"all": [each for each in names() if each not in AGAINST_JAVA], "java": sorted(AGAINST_JAVA)}
    wanted = [name for given in arguments.names for name in groups.get(given, [given])]
    unknown = sorted(set(wanted) - set(names()))
    if unknown or not wanted:
        parser.error(
            f"{'unknown benchmark ' + ', '.join(unknown) if unknown else 'no benchmark named'}; there are: {', '.join(names())}"
        )
    for name in wanted:
        module = importlib.import_module(f"bench.{name}")
        told = {key: value for key in ("cases", "tables") if (value := getattr(arguments, key)) is not None}
        if missing := [key for key in told if key not in inspect.signature(module.run).parameters]:
            parser.error(f"{name} has no --{missing[0]}")
        total = partial(module.total, arguments.size) if hasattr(module, "total") else no_total
        report(name, arguments.size, module.run(arguments.size, **told), total, goes_on="cases" in told)


if __name__ == "__main__":
    main()
