"""A private PostgreSQL server from the system's packages, thrown away after use."""

from __future__ import annotations

import os
import pwd
import re
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TypedDict

import psycopg
import pytest
import sqlalchemy

HOST, ROLE, DATABASE = "127.0.0.1", "tuner", "postgres"
# Characters that a URL must quote, so that both spellings can be looked for in a message.
PASSWORD = "s3cret/p@ss:word"
PORTS_TO_TRY, SECONDS_TO_START, SECONDS_TO_STOP = 3, 60.0, 30.0
# Nothing of it outlives the test: durability would only cost time.
SETTINGS = {
    "fsync": "off",
    "full_page_writes": "off",
    "synchronous_commit": "off",
    "shared_buffers": "16MB",
    "max_connections": "50",
    "listen_addresses": HOST,
    "unix_socket_directories": "",
}


class Account(TypedDict, total=False):
    """Arguments of `subprocess.Popen` that choose whom a process runs as."""

    user: int
    group: int
    extra_groups: list[int]


@dataclass(frozen=True)
class Server:
    """A running server; `stop` may be called before the end of its context."""

    process: subprocess.Popen[bytes]
    port: int

    @property
    def url(self) -> str:
        """The SQLAlchemy URL, password included."""
        url = sqlalchemy.URL.create("postgresql+psycopg", ROLE, PASSWORD, HOST, self.port, DATABASE)
        return url.render_as_string(hide_password=False)

    def stop(self) -> None:
        """Fast shutdown, then the ruder ways if it does not end."""
        for number in (signal.SIGINT, signal.SIGQUIT, signal.SIGKILL):
            if self.process.poll() is None:
                self.process.send_signal(number)
                try:
                    self.process.wait(SECONDS_TO_STOP)
                except subprocess.TimeoutExpired:
                    continue


@contextmanager
def postgres() -> Iterator[Server]:
    """Start a server with an empty database; skip the test if none is installed."""
    programs = programs_folder()
    if programs is None:
        pytest.skip("PostgreSQL is not installed (Debian: apt-get install postgresql)")
    account = unprivileged()
    folder = Path(tempfile.mkdtemp(prefix="scaml-postgres-"))
    try:
        if account:
            os.chown(folder, account["user"], account["group"])
        initialize(programs / "initdb", folder, account)
        server = start(programs / "postgres", folder, account)
        try:
            yield server
        finally:
            server.stop()
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def programs_folder() -> Path | None:
    """Where `initdb` and `postgres` are: on the PATH, where pg_config says, or Debian's newest."""
    folders = []
    if found := shutil.which("initdb"):
        folders.append(Path(found).resolve().parent)
    if config := shutil.which("pg_config"):
        answer = subprocess.run([config, "--bindir"], capture_output=True, text=True, check=False)
        folders.append(Path(answer.stdout.strip()))
    folders += sorted(Path("/usr/lib/postgresql").glob("*/bin"), key=version, reverse=True)
    names = ("initdb", "postgres")
    return next((f for f in folders if all(shutil.which(name, path=f) for name in names)), None)


def version(folder: Path) -> tuple[int, ...]:
    """Of `/usr/lib/postgresql/17/bin` (17,)."""
    return tuple(int(number) for number in re.findall(r"\d+", folder.parent.name))


def unprivileged() -> Account:
    """PostgreSQL refuses to run as root; anybody else runs it as himself."""
    if os.geteuid() != 0:
        return {}
    for name in ("postgres", "nobody"):
        try:
            entry = pwd.getpwnam(name)
        except KeyError:
            continue
        return {"user": entry.pw_uid, "group": entry.pw_gid, "extra_groups": []}
    pytest.skip("PostgreSQL does not run as root, and there is no user postgres or nobody")


def environment() -> dict[str, str]:
    """Ours without the variables that PostgreSQL's programs read."""
    kept = {key: value for key, value in os.environ.items() if not key.startswith(("PG", "LC_"))}
    return {**kept, "LC_ALL": "C"}


def initialize(program: Path, folder: Path, account: Account) -> None:
    """Create the data folder, with password authentication for everybody."""
    secret = folder / "password"
    secret.write_text(PASSWORD)
    command = [str(program), "--no-sync", "--encoding=UTF8", "--locale=C", "--auth=scram-sha-256"]
    command += [f"--username={ROLE}", f"--pwfile={secret}", f"--pgdata={folder / 'data'}"]
    done = subprocess.run(
        command,
        capture_output=True,
        text=True,
        check=False,
        cwd=folder,
        env=environment(),
        **account,
    )
    if done.returncode:
        raise RuntimeError(f"initdb ended with {done.returncode}:\n{done.stdout}{done.stderr}")


def start(program: Path, folder: Path, account: Account) -> Server:
    """Run the server until it answers; on another port if somebody took the first one."""
    log = folder / "log"
    for _ in range(PORTS_TO_TRY):
        port = free_port()
        options = [f"--{name}={value}" for name, value in {**SETTINGS, "port": str(port)}.items()]
        with log.open("ab") as output:
            process = subprocess.Popen(
                [program, "-D", folder / "data", *options],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                cwd=folder,
                env=environment(),
                **account,
            )
        server = Server(process, port)
        if answers(server):
            return server
        server.stop()
    raise RuntimeError(f"PostgreSQL did not start:\n{log.read_text(errors='replace')}")


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind((HOST, 0))
        return int(listener.getsockname()[1])


def answers(server: Server) -> bool:
    """Wait for a first answer; False if the server ended or took too long."""
    deadline = time.monotonic() + SECONDS_TO_START
    while server.process.poll() is None and time.monotonic() < deadline:
        try:
            psycopg.connect(
                host=HOST,
                port=server.port,
                user=ROLE,
                password=PASSWORD,
                dbname=DATABASE,
                connect_timeout=10,
            ).close()
        except psycopg.OperationalError:
            time.sleep(0.05)
        else:
            return True
    return False
