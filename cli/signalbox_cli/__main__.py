"""Find and run the command that was typed, and turn any error into one line and an exit code.
0 is success, 1 is an error or a failure found, 2 is a mistyped command, 130 is Ctrl-C.
"""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Sequence

from signalbox_cli.parser import build_parser

_MISTYPED, _INTERRUPTED = 2, 130
# Otherwise pydantic reads the metadata of every installed distribution at each start.
os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "__all__")


def main(typed: Sequence[str] | None = None) -> int:
    words = list(sys.argv[1:] if typed is None else typed)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            # A terminal that can't show a character gets a question mark, not a traceback.
            stream.reconfigure(errors="replace")
    try:
        return _run(words)
    except KeyboardInterrupt:
        return _INTERRUPTED
    except BrokenPipeError:
        return _reader_gone()


def _run(words: list[str]) -> int:
    try:
        args = build_parser().parse_args(words)
        run = args.command.load().run
        if getattr(args, "watch", None):
            from signalbox_cli.watch import watch

            watch(run, args)
        code: int = run(args)
        sys.stdout.flush()
        return code
    except BrokenPipeError:
        raise
    except Exception as error:
        return _report(error, words)


def _report(error: Exception, words: list[str]) -> int:
    if isinstance(error, ModuleNotFoundError) and not (error.name or "").startswith("signalbox"):
        extra = "laptop" if words[0] in ("up", "demo") else "cli"
        print(f"signalbox: {words[0]} needs {error.name}: pip install 'signalbox[{extra}]'", file=sys.stderr)
        return 1
    from signalbox_cli.explain import as_value, explain, is_mistyped

    if "--debug" in words or os.environ.get("SIGNALBOX_DEBUG", "0") not in ("", "0"):
        import traceback

        traceback.print_exc()
    from signalbox_cli.terminal import print_json, say

    say(f"signalbox: {explain(error)}")
    if "--json" in words:  # a mistyped command has no parsed options to check
        print_json({"error": as_value(error)})
    return _MISTYPED if is_mistyped(error) else 1


def _reader_gone() -> int:
    """Exit quietly when the reader closed the pipe, as `head` does: the interpreter's last flush must not fail, too."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return 1


if __name__ == "__main__":
    sys.exit(main())
