"""Several processes for one command: this process starts them on its machine, watches them and ends with them.

A worker that dies is named, the others get the time to say their piece, and they end if this process is killed.

Lightning Fabric's launcher kills the rest within seconds and without a word. torchrun works too, but would be worse in
place of this one (tried with two processes): after a `PrenError` it prints 33 lines of its own and ends with 1, not 2;
for a killed worker it prints 41 lines where we print one; Ctrl-C ends in a traceback and 1, not 130, after 7 s, not 3.
It starts no faster.
"""

from __future__ import annotations

import logging
import os
import signal
import socket
import subprocess
import sys
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, NoReturn

import typer

from pren.cli.options import EXPERT
from pren.cli.output import complain
from pren.foundation.children import end_with_parent, ended_by
from pren.foundation.errors import PrenError

if TYPE_CHECKING:
    from lightning_fabric import Fabric

WATCHED = "PREN_LAUNCHER_PIPE"  # the end of a pipe that closes when the launcher ends
LOCAL_RANK = "LOCAL_RANK"  # as torchrun, Fabric and we number the processes of a machine
RESUME = "Every finished round is kept: go on with --resume, with any number of processes."
PATIENCE = 20.0  # seconds that the others have to end by themselves after one has failed


@dataclass(frozen=True)
class Processes:
    """How many processes there are to be, and where."""

    devices: Annotated[
        int, typer.Option(min=1, help="Processes on this machine, each on a device of its own.", rich_help_panel=EXPERT)
    ] = 1
    nodes: Annotated[
        int, typer.Option(min=1, help="Machines; start the same command on each of them.", rich_help_panel=EXPERT)
    ] = 1
    node_rank: Annotated[
        int, typer.Option(min=0, help="Which of the machines this is, from 0.", rich_help_panel=EXPERT)
    ] = 0
    main_address: Annotated[
        str | None, typer.Option(metavar="HOST:PORT", help="Where the others find machine 0.", rich_help_panel=EXPERT)
    ] = None

    def __post_init__(self) -> None:
        if self.nodes > 1 and self.main_address is None:
            raise PrenError(
                "option-missing", "With --nodes, say where the first one can be reached: --main-address HOST:PORT."
            )
        if self.nodes == 1 and self.main_address is not None:
            raise PrenError("option-conflict", "--main-address is for several machines: say how many with --nodes.")
        if not 0 <= self.node_rank < self.nodes:
            raise PrenError(
                "option-value", f"--node-rank counts from 0: with {self.nodes} nodes it is at most {self.nodes - 1}."
            )


def speaks_for_its_machine() -> bool:
    """Whether this process is the one that prints what all of them have to say."""
    return os.environ.get(LOCAL_RANK, "0") == "0"


def leave(code: int) -> NoReturn:
    """End this process, with nothing to wait for if it is one of several.

    When another one is gone, also because it was done first, what connected them cannot be taken down in order: torch
    may abort (SIGABRT) over it.
    """
    if LOCAL_RANK not in os.environ:
        sys.exit(code)
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


def launch(processes: Processes, accelerator: str, advice: str = RESUME) -> Fabric:
    """Take this process's place among them, alone if there is but one; or start them, and end with them.

    If one is killed, the `advice` says how to go on.

    Raises:
        typer.Exit: In the process that has started the others, when they have ended.
    """
    devices, nodes = processes.devices, processes.nodes
    if "TORCHELASTIC_RUN_ID" in os.environ:  # torchrun has started this one
        devices = int(os.environ["LOCAL_WORLD_SIZE"])
        nodes = int(os.environ["WORLD_SIZE"]) // devices
    elif devices * nodes > 1:
        if WATCHED not in os.environ:
            raise typer.Exit(_run_workers(processes, advice))
        end_with_parent(int(os.environ[WATCHED]))
    from pren.training.processes import join_processes, single_process

    if devices * nodes == 1:
        return single_process(accelerator)
    logging.getLogger("lightning_fabric").setLevel(logging.WARNING)  # it would tell of every process that joins
    return join_processes(accelerator, devices, nodes)


def _run_workers(processes: Processes, advice: str) -> int:
    """Run this very command in several processes; the exit code is 0 if all have succeeded."""
    host, port = _address(processes)
    read_end, write_end = os.pipe()  # the system closes the end that stays here when this process ends
    environment = {
        **os.environ,
        "MASTER_ADDR": host,
        "MASTER_PORT": str(port),
        "NODE_RANK": str(processes.node_rank),
        "PYTHONSAFEPATH": "1",  # a file named torch.py in the working folder is not torch
        WATCHED: str(read_end),
    }
    command = [sys.executable, "-m", "pren.cli", *sys.argv[1:]]
    # In sessions of their own, so that Ctrl-C reaches them once: through us.
    workers = [
        subprocess.Popen(
            command, env={**environment, LOCAL_RANK: str(rank)}, pass_fds=[read_end], start_new_session=True
        )
        for rank in range(processes.devices)
    ]
    os.close(read_end)
    try:
        while None in (codes := [worker.poll() for worker in workers]) and not any(codes):
            time.sleep(0.05)
        interrupted = False
    except KeyboardInterrupt:
        interrupted = True
        for worker in workers:
            worker.send_signal(signal.SIGINT)
    by_us = _end(workers)
    os.close(write_end)
    codes = [worker.returncode for worker in workers]
    if interrupted or 130 in codes:
        return 130
    for rank, worker in enumerate(workers):
        if worker.returncode < 0 and rank not in by_us:
            number, total = processes.node_rank * len(workers) + rank, len(workers) * processes.nodes
            complain(
                "process-ended",
                f"Process {number} of {total} (pid {worker.pid} on {socket.gethostname()}) was ended by "
                f"{ended_by(worker.returncode)}, and so the run ends. {advice}",
            )
    return 0 if not any(codes) else 1 if 1 in codes else 2


def _address(processes: Processes) -> tuple[str, int]:
    if processes.main_address is None:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            return "127.0.0.1", int(free.getsockname()[1])
    host, colon, port = processes.main_address.rpartition(":")
    if not colon or not host or not port.isdecimal() or not 0 < int(port) < 65536:
        raise PrenError(
            "option-value", f"--main-address takes HOST:PORT, such as node0:29500, not {processes.main_address!r}."
        )
    return host.strip("[]"), int(port)


def _end(workers: list[subprocess.Popen[bytes]]) -> set[int]:
    """Give everybody the time to end, then make them; return which had to be made."""
    deadline = time.monotonic() + PATIENCE
    while any(worker.poll() is None for worker in workers) and time.monotonic() < deadline:
        time.sleep(0.05)
    late = {rank for rank, worker in enumerate(workers) if worker.poll() is None}
    for rank in late:
        workers[rank].kill()
        workers[rank].wait()
    return late
