"""Start a function as Lambda does, from three folders: `python -I -S bootstrap.py TASK OPT RUNTIME HANDLER`.

The interpreter knows nothing but its standard library then; the three folders stand where /var/task, /opt and
/var/runtime stand in Lambda. What a function does not find in them is missing from its package.
"""

from __future__ import annotations

import runpy
import sys

if __name__ == "__main__":
    task, opt, runtime, handler = sys.argv[1:]
    sys.path[:0] = [task, f"{opt}/python", runtime]
    sys.argv[1:] = [handler]
    runpy.run_module("awslambdaric", run_name="__main__", alter_sys=True)
