"""The public names are imported when they are used, and are the ones that type checkers see."""

import ast
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

import pursuit

TREE = ast.parse(Path(pursuit.__file__).read_text(encoding="utf-8"))


def loaded_by(code):
    """The modules that a fresh interpreter has loaded after some code."""
    found = subprocess.run(
        [sys.executable, "-c", f"{code}\nimport sys; print(*sys.modules, file=sys.stderr)"],
        capture_output=True,
        text=True,
        check=True,
    )
    return found.stdout, set(found.stderr.split())


def test_importing_the_package_imports_nothing_else():
    _, modules = loaded_by("import pursuit; dir(pursuit)")
    assert modules.isdisjoint({"numpy", "scipy", "sklearn", "matplotlib", "importlib.metadata"})
    assert {name for name in modules if name.startswith("pursuit")} == {"pursuit"}


def test_the_version_of_the_command_imports_no_command():
    code = "from pursuit.cli import main; assert main(['--version']) == 0"
    said, modules = loaded_by(code)
    assert said == f"pursuit {pursuit.__version__}\n"
    assert modules.isdisjoint({"numpy", "sklearn", "typer", "rich", "pursuit.cli.app"})


def test_the_help_of_the_command_imports_no_estimator():
    code = "from pursuit.cli import main; assert main(['--help']) == 0"
    said, modules = loaded_by(code)
    assert "compress" in said
    assert modules.isdisjoint({"numpy", "sklearn", "polars", "skops"})


def test_one_estimator_brings_neither_pictures_nor_other_methods():
    _, modules = loaded_by("from pursuit import KernelMatchingPursuitClassifier")
    assert modules.isdisjoint({"matplotlib", "polars", "skops", "typer"})
    families = ("svm", "density", "neighbors", "moving_vectors", "convex_network", "displays")
    assert modules.isdisjoint({f"pursuit.{name}" for name in families})


def test_type_checkers_see_the_same_names_from_the_same_modules():
    (block,) = (
        node
        for node in TREE.body
        if isinstance(node, ast.If) and getattr(node.test, "id", "") == "TYPE_CHECKING"
    )
    seen = {
        alias.name: node.module
        for node in block.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
    assert sorted(seen) == pursuit.__all__ == sorted(pursuit.__all__)
    for name, home in seen.items():
        if home == "pursuit":
            assert getattr(pursuit, name) is import_module(f"pursuit.{name}")
        else:
            assert getattr(pursuit, name) is getattr(import_module(home), name)


def test_names_are_listed_before_and_after_their_use():
    assert {*pursuit.__all__, "__version__"} <= set(dir(pursuit))
    star = {}
    exec("from pursuit import *", star)
    assert {name: star[name] for name in pursuit.__all__} == {
        name: vars(pursuit)[name] for name in pursuit.__all__
    }


def test_submodules_and_unknown_names():
    assert pursuit.__getattr__("datasets") is import_module("pursuit.datasets")
    for name in ("KernelMatchingPursuit", "_app", "kernels_"):
        with pytest.raises(AttributeError, match=f"'pursuit' has no attribute '{name}'"):
            getattr(pursuit, name)
    with pytest.raises(ImportError):
        exec("from pursuit import nothing")
