"""numpydoc's validation of what is public: every name, and the methods of every class."""

import inspect

import pytest

import pursuit

validation = pytest.importorskip("numpydoc.validate", reason="numpydoc is in the docs extra")

# Not asked for: a See Also section (SA01) and an extended summary (ES01) where there is nothing to
# say; a result without a name (RT02: results have names here); an infinitive in the summary (SS05:
# a value is named by a noun); a capital letter where a sentence begins with a parameter, a symbol
# or a formula (SS02, PR08, RT04).
LEFT_OUT = {"SA01", "ES01", "RT02", "SS05", "SS02", "PR08", "RT04"}
# A method is explained by its class; examples and what is inherited may stand there.
OF_METHODS = LEFT_OUT | {"EX01"}
# The vocabulary (kernels, losses, ...) has many small functions that one line says all about.
OF_VOCABULARY = OF_METHODS | {"PR01", "RT01"}


def own_methods(path):
    """The public methods of a class that the library itself documents."""
    cls = resolved(path)
    for name, member in inspect.getmembers(cls, callable):
        ours = str(getattr(member, "__module__", "")).startswith("pursuit")
        if ours and not name.startswith("_") and not name.endswith("_request"):
            yield f"{path}.{name}"


def resolved(path):
    found = pursuit
    for name in path.split(".")[1:]:
        found = getattr(found, name)
    return found


def top_level():
    paths = [f"pursuit.{name}" for name in pursuit.__all__]
    return [path for path in paths if not inspect.ismodule(resolved(path))]


def vocabulary():
    for name in pursuit.__all__:
        if inspect.ismodule(module := getattr(pursuit, name)):
            paths = [f"pursuit.{name}.{member}" for member in module.__all__]
            yield from (path for path in paths if callable(resolved(path)))


def faults(paths, left_out):
    """What numpydoc finds: path, code and text."""
    return [
        (path, code, text)
        for path in paths
        for code, text in validation.validate(path)["errors"]
        if code not in left_out
    ]


def test_public_classes_and_functions():
    assert len(top_level()) > 40
    errors = [path for path in top_level() if inspect.isclass(resolved(path))]
    exceptions = [path for path in errors if issubclass(resolved(path), Exception)]
    others = [path for path in top_level() if path not in exceptions]
    assert faults(others, LEFT_OUT) + faults(exceptions, LEFT_OUT | {"EX01"}) == []


def test_their_methods():
    classes = [path for path in top_level() if inspect.isclass(resolved(path))]
    methods = [method for path in classes for method in own_methods(path)]
    assert "pursuit.SparseKernelPCA.transform" in methods
    assert faults(methods, OF_METHODS) == []


def test_the_vocabulary():
    paths = list(vocabulary())
    classes = [path for path in paths if inspect.isclass(resolved(path))]
    assert "pursuit.kernels.RBF" in classes
    methods = [method for path in classes for method in own_methods(path)]
    assert faults(paths + methods, OF_VOCABULARY) == []
