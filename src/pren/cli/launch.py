"""Start several processes for one command, watch them, and end with their exit code.

If a worker dies, its number is printed and the others get time to print their errors. They end if this process is
killed.

Lightning Fabric's launcher kills the others within seconds, before they print anything. torchrun works too, but prints
33 lines after a `PrenError` and 41 for a killed worker, and ends with other exit codes (tried with two processes).
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

from pren.cli.options import expert_option
from pren.cli.output import complain
from pren.foundation.children import end_with_parent, ended_by
from pren.foundation.errors import PrenError

if TYPE_CHECKING:
    from pren.training.processes import Fabric

WATCHED = "PREN_LAUNCHER_PIPE"  # a pipe that closes when the launcher ends
LOCAL_RANK = "LOCAL_RANK"  # as torchrun, Fabric and we number the processes of a machine
RESUME = "Finished rounds are kept: go on with --resume, with any number of processes."
PATIENCE = 20.0  # seconds for the others to end by themselves after one has failed


@dataclass(frozen=True)
class Processes:
    """How many processes to start, and where."""

    devices: Annotated[int, expert_option(min=1, help="Processes on this machine, one per device.")] = 1
    nodes: Annotated[int, expert_option(min=1, help="How many machines. Start the same command on each.")] = 1
    node_rank: Annotated[int, expert_option(min=0, help="The number of this machine, from 0.")] = 0
    main_address: Annotated[str | None, expert_option(metavar="HOST:PORT", help="The address of machine 0.")] = None

    def __post_init__(self) -> None:
        if self.nodes > 1 and self.main_address is None:
            raise PrenError("option-missing", "--nodes needs the address of machine 0: add --main-address HOST:PORT.")
        if self.nodes == 1 and self.main_address is not None:
            raise PrenError("option-conflict", "--main-address is for several machines: add --nodes.")
        if not 0 <= self.node_rank < self.nodes:
            raise PrenError("option-value", f"--node-rank is at most {self.nodes - 1} with {self.nodes} nodes.")


def speaks_for_its_machine() -> bool:
    """Whether this process prints the errors that all processes of the machine have."""
    return os.environ.get(LOCAL_RANK, "0") == "0"


def leave(code: int) -> NoReturn:
    """End this process; at once if it is one of several.

    When another process has ended first, torch may abort (SIGABRT) as it closes the connection.
    """
    if LOCAL_RANK not in os.environ:
        sys.exit(code)
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


def launch(processes: Processes, accelerator: str, advice: str = RESUME) -> Fabric:
    """Join the other processes; or start them, wait for them, and exit.

    `advice` is printed if one is killed: how to continue.

    Raises:
        typer.Exit: In the process that started the others, when they have ended.
    """
    devices, nodes = processes.devices, processes.nodes
    if "TORCHELASTIC_RUN_ID" in os.environ:  # started by torchrun
        devices = int(os.environ["LOCAL_WORLD_SIZE"])
        nodes = int(os.environ["WORLD_SIZE"]) // devices
    elif devices * nodes > 1:
        if WATCHED not in os.environ:
            raise typer.Exit(_run_workers(processes, advice))
        end_with_parent(int(os.environ[WATCHED]))
    from pren.training.processes import join_processes, single_process

    if devices * nodes == 1:
        return single_process(accelerator)
    logging.getLogger("lightning_fabric").setLevel(logging.WARNING)  # else it logs every process that joins
    return join_processes(accelerator, devices, nodes)


def _run_workers(processes: Processes, advice: str) -> int:
    """Run this command in several processes; the exit code is 0 if all succeed."""
    host, port = _address(processes)
    read_end, write_end = os.pipe()  # the system closes write_end when this process ends
    environment = {
        **os.environ,
        "MASTER_ADDR": host,
        "MASTER_PORT": str(port),
        "NODE_RANK": str(processes.node_rank),
        "PYTHONSAFEPATH": "1",  # never import a torch.py of the working folder
        WATCHED: str(read_end),
    }
    command = [sys.executable, "-m", "pren.cli", *sys.argv[1:]]
    # Own sessions, so that Ctrl-C reaches them once: from here.
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
    killed = _end(workers)
    os.close(write_end)
    codes = [worker.returncode for worker in workers]
    if interrupted or 130 in codes:
        return 130
    for rank, worker in enumerate(workers):
        if worker.returncode < 0 and rank not in killed:
            number, total = processes.node_rank * len(workers) + rank, len(workers) * processes.nodes
            complain(
                "process-ended",
                f"Process {number} of {total} (pid {worker.pid} on {socket.gethostname()}) was ended by "
                f"{ended_by(worker.returncode)}, so the run ends. {advice}",
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
            "option-value", f"--main-address is HOST:PORT, such as node0:29500, not {processes.main_address!r}."
        )
    return host.strip("[]"), int(port)


def _end(workers: list[subprocess.Popen[bytes]]) -> set[int]:
    """Wait for all to end, then kill the others; returns the killed ones."""
    deadline = time.monotonic() + PATIENCE
    while any(worker.poll() is None for worker in workers) and time.monotonic() < deadline:
        time.sleep(0.05)
    late = {rank for rank, worker in enumerate(workers) if worker.poll() is None}
    for rank in late:
        workers[rank].kill()
        workers[rank].wait()
    return late
