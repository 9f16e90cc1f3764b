"""Published tables and questions of speed, one file each.

``python -m benchmarks.papers NAME`` and ``python -m benchmarks.speed NAME`` run one of them,
``--list`` names them. Run from the root of the repository, with ``pursuit[plot]`` installed;
the data come from the folder that ``PURSUIT_DATA`` names, else from OpenML.

A benchmark is a module with a docstring, which becomes the text of its report, and a function
``run(report)``, which fills the report: tables, figures, and the bounds that must hold.
"""
