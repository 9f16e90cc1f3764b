"""The command line that ``benchmarks.papers`` and ``benchmarks.speed`` share."""

import argparse
import importlib
import pkgutil
import subprocess
import sys
from pathlib import Path

from benchmarks.report import Report

RESULTS = Path(__file__).parent / "results"


def main(package, several=None, after=None):
    """Run the benchmark named on the command line; return 1 if one of its bounds is missed.

    ``several`` are further names, with what each runs; ``after`` is told the name, the report and
    the folder of each run. A benchmark with options of its own has a function
    ``add_options(parser)``, and its ``run`` takes the parsed arguments too. The report has the
    benchmark's name, or what it calls ``REPORT``.
    """
    several = several or {}
    names = names_of(package)
    parser = argparse.ArgumentParser(
        prog=f"python -m {package.__name__}", description=package.__doc__
    )
    parser.add_argument("name", nargs="?", choices=[*names, *several], help="the benchmark to run")
    parser.add_argument("--list", action="store_true", help="name the benchmarks and leave")
    parser.add_argument(
        "--output", type=Path, default=RESULTS, help="folder of the report (default: %(default)s)"
    )
    named = next((load(package, word) for word in sys.argv[1:] if word in names), None)
    if hasattr(named, "add_options"):
        named.add_options(parser)
    arguments = parser.parse_args()
    if arguments.list:
        for name in names:
            print(f"{name:16} {load(package, name).__doc__.splitlines()[0]}")
        return 0
    if arguments.name is None:
        parser.error("give the name of a benchmark, or --list")
    if arguments.name in several:
        return several[arguments.name](arguments.output)
    module = load(package, arguments.name)
    report = Report(module.__doc__, command=f"python -m {package.__name__} {arguments.name}")
    if hasattr(module, "add_options"):
        module.run(report, arguments)
    else:
        module.run(report)
    report.write(arguments.output, getattr(module, "REPORT", arguments.name))
    if after is not None:
        after(arguments.name, report, arguments.output)
    return 0 if report.passed else 1


def names_of(package):
    """The benchmarks of a package."""
    return [m.name for m in pkgutil.iter_modules(package.__path__) if m.name != "__main__"]


def load(package, name):
    """Import one benchmark of the package."""
    return importlib.import_module(f"{package.__name__}.{name}")


def run_each(package, names, output):
    """Run benchmarks one after the other, each in its own process; return those that failed."""
    failed = []
    for name in names:
        print(f"==== {name}", flush=True)
        command = [sys.executable, "-m", package.__name__, name, "--output", str(output)]
        if subprocess.run(command).returncode not in (0, 1):
            failed.append(name)
    return failed
