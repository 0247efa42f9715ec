"""Run benchmarks: `python -m bench <name>... [--size small|medium|full]`, `python -m bench --list`.

`all` stands for those that need nothing but what is installed, `java` for those against Java Iceberg.
"""

import argparse
import importlib
import pkgutil

import bench
from bench.report import report

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
        report(name, arguments.size, module.run(arguments.size))


if __name__ == "__main__":
    main()
