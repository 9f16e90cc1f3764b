"""Options as fields, and how the commands answer."""

from dataclasses import dataclass, fields

import pytest

from pursuit.cli.options import UsageFault, argument, option, require_folder, show


@dataclass
class Command:
    """A command of three options."""

    data: str = argument("A file.", exists=True)
    size: int = option("A size.", "--size", "-s", default=3, min=1)
    drop: list[str] = option("Columns.", default=[])


def test_fields_carry_what_the_command_line_needs():
    data, size, drop = fields(Command)
    assert data.metadata == {"kind": "Argument", "names": (), "help": "A file.", "exists": True}
    assert size.metadata["names"] == ("--size", "-s") and size.metadata["min"] == 1
    assert size.metadata["kind"] == drop.metadata["kind"] == "Option"
    first, second = Command("a"), Command("b")
    assert (first.size, first.drop) == (3, [])
    assert first.drop is not second.drop
    with pytest.raises(TypeError):
        Command()


def test_a_place_that_cannot_be_written_to_is_refused(tmp_path):
    require_folder(tmp_path / "model.pursuit")
    with pytest.raises(UsageFault, match="--output: .* is a folder"):
        require_folder(tmp_path)
    with pytest.raises(UsageFault, match="--output: the folder .* does not exist"):
        require_folder(tmp_path / "nowhere" / "model.pursuit")


def test_a_table_shows_its_cells_as_they_are(capsys):
    show(["", "[bold]model"], [("vectors", 12), ("error", "3.4 %")])
    lines = [line.split() for line in capsys.readouterr().out.splitlines() if line.strip()]
    assert lines[0] == ["[bold]model"]
    assert lines[2:] == [["vectors", "12"], ["error", "3.4", "%"]]
