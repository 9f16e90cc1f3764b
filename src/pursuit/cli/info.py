"""The command ``pursuit info``: what a model file holds."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from pursuit.cli.options import EXISTING, argument, json_option, rounding, show

__all__ = ["Info"]

# So many kinds of vectors are told one by one.
MOST_KINDS = 12

WATCHED = {
    "validation_loss_path_": "held-out loss",
    "leave_one_out_loss_path_": "leave-one-out loss",
    "bound_path_": "bound",
}


@dataclass
class Info:
    """Say what a model file holds."""

    EXAMPLES: ClassVar[tuple[str, ...]] = (
        "pursuit info churn.pursuit",
        "pursuit info churn.pursuit --json",
    )

    model: Path = argument("A model file.", **EXISTING)
    json: bool = json_option()

    def run(self) -> None:
        """Read the header, the columns, what the vectors are and the path of losses."""
        from pursuit.model_file import describe

        about = describe(self.model)
        fitted, model = about["fitted"], self._load(about)
        if self.json:
            print(json.dumps(self._facts(about, model)))
            return
        rows = {
            "class": about["class"],
            "written by": f"pursuit {about['version']}",
            "bytes on disk": f"{about['bytes']:,}",
            **({"loss": repr(model.loss_)} if hasattr(model, "loss_") else {}),
            **_components(model),
            "vectors": f"{fitted['n_components_']} of at most {about['params']['n_components']}",
            "features": fitted["n_features_in_"],
            **dict(rounding(about["rounded"])),
        }
        if hasattr(model, "relative_error_"):
            rows["relative error"] = f"{model.relative_error_:.3g}"
        show(["", str(self.model)], [*rows.items(), *self._layout(about)])
        if hasattr(model, "train_loss_path_"):
            show(*self._path(model))

    def _facts(self, about: dict[str, Any], model: Any) -> dict[str, Any]:
        """Return what the tables say, for programs."""
        layout = self._stored_layout(about)
        told: dict[str, Any] = {
            "class": about["class"],
            "version": about["version"],
            "bytes": about["bytes"],
            "loss": repr(model.loss_) if hasattr(model, "loss_") else None,
            "vectors": about["fitted"]["n_components_"],
            "features": about["fitted"]["n_features_in_"],
            "rounded": about["rounded"],
            **_components(model),
        }
        if layout is not None:
            columns = {column.name: column.kind for column in layout.columns}
            told |= {"target": layout.target, "task": layout.task, "columns": columns}
            told["left_out"] = list(layout.left_out)
        if hasattr(model, "train_loss_path_"):
            told["paths"] = {name: path.tolist() for name, path in _paths(model).items()}
        return told

    def _load(self, about: dict[str, Any]) -> Any:
        """Return the model, with nothing behind the functions that its user wrote."""
        from pursuit import load

        return load(self.model, table=False, functions=dict.fromkeys(about["functions"], len))

    def _stored_layout(self, about: dict[str, Any]) -> Any:
        """Return what the columns are, if the file tells of them."""
        from pursuit.model_file import load_attachments
        from pursuit.table.preparation import stored_layout

        if "layout.json" not in about["attachments"]:
            return None
        return stored_layout(self.model, load_attachments(self.model))

    def _layout(self, about: dict[str, Any]) -> list[tuple[str, Any]]:
        """Return the target and the columns, if the file tells of them."""
        layout = self._stored_layout(about)
        if layout is None:
            return []
        rows = [("target", f"{layout.target} ({layout.task})")]
        for column in layout.columns:
            written = f" ({column.format})" if column.format else ""
            rows.append((f"column {column.name}", column.kind + written))
        return rows + [(f"column {name}", "left out") for name in layout.left_out]

    def _path(self, model: Any) -> tuple[list[str], list[tuple[Any, ...]]]:
        """Return the losses after 1, 2, 5, 10, ... vectors."""
        columns = _paths(model)
        last = len(model.train_loss_path_)
        steps = [n for n in (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000) if n < last] + [last]
        rows = [(n, *(f"{path[n - 1]:.4g}" for path in columns.values())) for n in steps if n]
        return ["vectors", *columns], rows


def _paths(model: Any) -> dict[str, Any]:
    """Return the losses after 1, 2, ... vectors, by what they were measured on."""
    from pursuit.base.cross_validation import chosen_place

    columns = {"training loss": model.train_loss_path_}
    if hasattr(model, "cv_loss_path_"):
        best = chosen_place(model.gammas_, model.gamma_)
        columns["cross-validated loss"] = model.cv_loss_path_[best].mean(axis=0)
    for name, title in WATCHED.items():
        if hasattr(model, name):
            columns[title] = getattr(model, name)
    return columns


def _components(model: Any) -> dict[str, str]:
    """Return what the vectors of a model are: its kernel, or how many there are of each kind."""
    if model.kernel_ is not None:
        return {"kernel": repr(model.kernel_)}
    counts = Counter(model.component_names_).most_common()
    told = [f"{count} of {name}" for name, count in counts[:MOST_KINDS]]
    if len(counts) > MOST_KINDS:
        rest = sum(count for _, count in counts[MOST_KINDS:])
        told.append(f"{rest} of {len(counts) - MOST_KINDS} other kinds")
    return {"kernels": "\n".join(told)}
