"""The command line that ``benchmarks.papers`` and ``benchmarks.speed`` share."""

import argparse
import importlib
import pkgutil
from pathlib import Path

from benchmarks.report import Report

RESULTS = Path(__file__).parent / "results"


def main(package):
    """Run the benchmark named on the command line; return 1 if one of its bounds is missed."""
    names = [m.name for m in pkgutil.iter_modules(package.__path__) if m.name != "__main__"]
    parser = argparse.ArgumentParser(
        prog=f"python -m {package.__name__}", description=package.__doc__
    )
    parser.add_argument("name", nargs="?", choices=names, help="the benchmark to run")
    parser.add_argument("--list", action="store_true", help="name the benchmarks and leave")
    parser.add_argument(
        "--output", type=Path, default=RESULTS, help="folder of the report (default: %(default)s)"
    )
    arguments = parser.parse_args()
    if arguments.list:
        for name in names:
            print(f"{name:16} {load(package, name).__doc__.splitlines()[0]}")
        return 0
    if arguments.name is None:
        parser.error("give the name of a benchmark, or --list")
    module = load(package, arguments.name)
    report = Report(module.__doc__, command=f"python -m {package.__name__} {arguments.name}")
    module.run(report)
    report.write(arguments.output, arguments.name)
    return 0 if report.passed else 1


def load(package, name):
    """Import one benchmark of the package."""
    return importlib.import_module(f"{package.__name__}.{name}")
