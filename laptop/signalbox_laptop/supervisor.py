"""Run a laptop's stack as one process: start the parts in order, serve, and stop them in reverse.

`python -m signalbox_laptop.supervisor attached|detached OPTIONS` prints lines of JSON to its parent,
`signalbox_laptop.up`: each step, and then that it is ready or what was refused. However it ends, all that it started
ends first.
"""

from __future__ import annotations

import json
import logging
import os
import shutil
import signal
import socket
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import asdict
from typing import Any, NoReturn

from signalbox_laptop.errors import DatabaseUnfit, LaptopError, PortTaken, ResourceFailed, StackRunning
from signalbox_laptop.home import Home, StackState
from signalbox_laptop.interrupts import Interrupts
from signalbox_laptop.moto.process import MotoProcess
from signalbox_laptop.orphan_cleanup import remove_orphans
from signalbox_laptop.postgres.embedded import EmbeddedPostgres
from signalbox_laptop.processes import ProcessRecord
from signalbox_laptop.up import LET_GO, StackOptions

_log = logging.getLogger(__name__)


def main() -> None:
    mode, options = sys.argv[1], StackOptions.from_json(sys.argv[2])
    if mode == "detached" and os.fork():
        os._exit(0)  # the child has no parent that must wait for its end
    # The log is the error output; INFO of the libraries would fill it.
    logging.basicConfig(level=logging.WARNING, format="%(asctime)s %(levelname)s %(name)s %(message)s")
    stop = threading.Event()
    threading.Thread(target=_stop_with_input, args=(stop,), daemon=True).start()
    try:
        _supervise(options, stop, Interrupts())
    except KeyboardInterrupt:
        pass  # asked to stop; by now all has stopped
    except LaptopError as refusal:
        _log.error("stack.refused %s", refusal)
        _refuse(str(refusal), type(refusal).__name__)
    except Exception as error:
        _log.exception("stack.failed")
        _refuse(f"{type(error).__name__}: {error} (log: {Home(options.home).stack_log})", "LaptopError")


def _supervise(options: StackOptions, stop: threading.Event, interrupts: Interrupts) -> None:
    home = Home(options.home)
    home.make()
    began = time.monotonic()
    with ExitStack() as parts:
        if not parts.enter_context(home.locked()):
            raise StackRunning(_running(home))
        home.clear_logs()
        remove_orphans(home)
        home.write_supervisor(ProcessRecord.of(os.getpid()))
        parts.callback(home.forget)
        moto = MotoProcess(home.folder)
        state = _start(options, moto, stop, parts, interrupts)
        home.write_state(state)
        _say(report=f"ready at {state.endpoint} after {time.monotonic() - began:.1f} s")
        _say(ready=asdict(state))
        while not stop.wait(1):
            # PostgreSQL may end while the stack runs, so that people can try a database that is down; `status` says so.
            if not moto.runs:
                raise LaptopError("the stand-in for AWS ended unexpectedly, and everything deployed with it")


def _start(
    options: StackOptions, moto: MotoProcess, stop: threading.Event, parts: ExitStack, interrupts: Interrupts
) -> StackState:
    """Start the parts. Each registers with `parts` how it stops before it begins: half a stack stops as a whole one
    does."""
    _refuse_busy_port(options.port)
    home = Home(options.home)
    if options.fresh:
        shutil.rmtree(home.database, ignore_errors=True)
    kept = home.database.exists()
    if kept:
        _say(report="using the last database; --fresh starts with an empty one")
    _say(report="starting PostgreSQL and the stand-in for AWS")
    postgres = EmbeddedPostgres(home.folder, durable=options.durable)
    parts.callback(moto.stop)
    parts.callback(postgres.stop)
    with ThreadPoolExecutor() as pool:
        with interrupts.held():  # the pool waits at its end for the threads that it knows of
            database, endpoint = pool.submit(postgres.start), pool.submit(moto.start)
        # Imports take as long as the two starts, and do not depend on them.
        from signalbox_laptop.assembly import Endpoints, assemble

        with _named_as_kept(kept=kept):
            grounds = Endpoints(home.folder, database.result(), endpoint.result())
    with _named_as_kept(kept=kept):
        return assemble(options, grounds, stop, parts, lambda text: _say(report=text))


@contextmanager
def _named_as_kept(*, kept: bool) -> Iterator[None]:
    """Say of a database that does not fit that it is the last stack's, and how to start with an empty one."""
    try:
        yield
    except (DatabaseUnfit, ResourceFailed) as error:
        if not kept:
            raise
        raise DatabaseUnfit(
            f"{error}; this is the last stack's database: `signalbox up --fresh` starts with an empty one"
        ) from None


def _refuse_busy_port(port: int) -> None:
    """Refuse a busy port before anything is started, since the endpoint itself comes late."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError as error:
            raise PortTaken(
                f"port {port} is taken by another program ({error.strerror}): name another with --port, "
                "or 0 for any that is free"
            ) from None


def _running(home: Home) -> str:
    state = home.read_state()
    where = f"at {state.endpoint} (process {state.pid})" if state else "and is still starting"
    return f"a stack is running in {home.folder} {where}: `signalbox down` stops it, --home names another folder"


def _refuse(why: str, kind: str) -> NoReturn:
    """Report why, and exit. All else has stopped by now; the parent waits for this process to end."""
    _say(refused=why, kind=kind, pid=os.getpid())
    sys.exit(1)


def _say(**message: Any) -> None:
    with suppress(BrokenPipeError):  # the parent has gone; the end of our input says so, too
        print(json.dumps(message), flush=True)


def _stop_with_input(stop: threading.Event) -> None:
    if sys.stdin.readline() != LET_GO:
        os.kill(os.getpid(), signal.SIGTERM)


if __name__ == "__main__":
    main()
