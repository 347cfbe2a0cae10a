"""Start Lambda's own runtime client in a function's process, with the search path that the function has in AWS.

Through its editable install, the laptop's interpreter also finds this repository's folders. A function must not find
there what its layers lack, or it would work here and fail on AWS.
"""

from __future__ import annotations

import runpy
import site
import sys


def without_editable_installs(path: list[str], installed: list[str]) -> list[str]:
    """Return all folders up to where packages are installed, and after that only those places: the others were added by
    .pth files."""
    first = min((path.index(folder) for folder in installed if folder in path), default=len(path))
    return [*path[:first], *(folder for folder in path[first:] if folder in installed)]


if __name__ == "__main__":
    sys.path[:] = without_editable_installs(sys.path, site.getsitepackages())
    runpy.run_module("awslambdaric", run_name="__main__", alter_sys=True)
