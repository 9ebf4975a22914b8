"""Several processes that train one model: how they share the work and exchange data.

A single process runs the same code. Processes only exchange tensors, never pickled objects.
"""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from safetensors.torch import load, save
from torch import Tensor, distributed, nn

from pren.foundation.errors import PrenError, SharedError
from pren.problem.inputs import Inputs

PATIENCE = timedelta(minutes=10)  # the longest a process waits for another one


class Fabric(Protocol):
    """A device and the processes that work together: a launched Lightning Fabric has all of this."""

    @property
    def device(self) -> torch.device:
        """Where this process computes."""

    @property
    def world_size(self) -> int:
        """Processes of all machines."""

    @property
    def global_rank(self) -> int:
        """The number of this process among all."""

    @property
    def local_rank(self) -> int:
        """The number of this process on its machine."""

    @property
    def is_global_zero(self) -> bool:
        """Whether this is the first process of all."""


@dataclass(frozen=True)
class OneProcess:
    """A single process. Lightning Fabric takes a second to import, which most commands need not wait for."""

    device: torch.device
    world_size: int = 1
    global_rank: int = 0
    local_rank: int = 0
    is_global_zero: bool = True


def single_process(accelerator: str = "auto") -> Fabric:
    """One process on one device.

    Args:
        accelerator: ``"auto"`` takes a GPU if there is one; ``"gpu"``, ``"cuda"``, ``"mps"`` or ``"cpu"``.

    Raises:
        PrenError: If this machine has no such device.
    """
    there = {"cuda": torch.cuda.is_available(), "mps": torch.backends.mps.is_available(), "cpu": True}
    wanted = {"auto": ("cuda", "mps", "cpu"), "gpu": ("cuda", "mps")}.get(accelerator, (accelerator,))
    for kind in wanted:
        if there.get(kind):
            return OneProcess(torch.device("cpu") if kind == "cpu" else torch.device(kind, 0))
    raise PrenError("no-device", f"There is no {accelerator!r} device here for PyTorch: use --accelerator cpu.")


def apart(fabric: Fabric) -> Fabric:
    """This process alone on its device, independent of the others."""
    return fabric if fabric.world_size == 1 else OneProcess(fabric.device)


def wait_for_all(fabric: Fabric) -> None:
    """Go on when every process has come here."""
    if fabric.world_size > 1:
        distributed.barrier()


def join_processes(accelerator: str, devices: int, nodes: int) -> Fabric:
    """Join the processes that a launcher (``pren fit --devices``, torchrun) has started.

    Args:
        accelerator: As Lightning Fabric names it.
        devices: Processes on each machine.
        nodes: Machines.

    Raises:
        PrenError: If the processes do not connect in time.
    """
    import lightning_fabric
    from lightning_fabric.plugins.environments.lightning import LightningEnvironment
    from lightning_fabric.plugins.environments.torchelastic import TorchElasticEnvironment
    from lightning_fabric.strategies.ddp import DDPStrategy

    elastic = TorchElasticEnvironment.detect()
    environment = TorchElasticEnvironment() if elastic else LightningEnvironment()
    strategy = DDPStrategy(cluster_environment=environment, timeout=PATIENCE)
    fabric = lightning_fabric.Fabric(accelerator=accelerator, devices=devices, num_nodes=nodes, strategy=strategy)
    try:
        fabric.launch()
    except (RuntimeError, ValueError) as error:
        where = f"{environment.main_address}:{environment.main_port}"
        raise PrenError(
            "processes-apart",
            f"The {devices * nodes} processes of this run did not connect at {where} ({_line(error)}): start the "
            "command on every node with its own --node-rank, and check that this address is reachable.",
        ) from error
    return fabric


def share(fabric: Fabric, tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    """The first process's tensors, in every process."""
    if fabric.world_size == 1:
        return tensors
    content = bytearray(save({key: value.cpu().contiguous() for key, value in tensors.items()}))
    size = torch.tensor([len(content)], device=fabric.device)
    distributed.broadcast(size, 0)
    if fabric.global_rank > 0:
        content = bytearray(int(size))
    block = torch.frombuffer(content, dtype=torch.uint8).to(fabric.device)
    distributed.broadcast(block, 0)
    return load(block.cpu().numpy().tobytes())


def share_text(fabric: Fabric, text: str) -> str:
    """The first process's text, in every process."""
    content = torch.from_numpy(np.frombuffer(text.encode(), dtype=np.uint8).copy())
    return share(fabric, {"text": content})["text"].numpy().tobytes().decode()


def share_weights(fabric: Fabric, network: nn.Module) -> None:
    """Give every process the weights of the first one: other machines may round differently."""
    if fabric.world_size == 1:
        return
    for value in network.state_dict().values():
        distributed.broadcast(value.view(torch.uint8) if value.dtype == torch.bool else value, 0)


def gather(fabric: Fabric, rows: NDArray[Any]) -> NDArray[Any]:
    """The rows of all processes, in the order of the processes; each may have a different number."""
    if fabric.world_size == 1:
        return rows
    counts = [torch.zeros(1, dtype=torch.int64, device=fabric.device) for _ in range(fabric.world_size)]
    distributed.all_gather(counts, torch.tensor([len(rows)], device=fabric.device))
    most = max(int(count) for count in counts)
    padded = np.zeros((most, *rows.shape[1:]), dtype=rows.dtype)
    padded[: len(rows)] = rows
    mine = torch.from_numpy(padded).to(fabric.device)
    parts = [torch.empty_like(mine) for _ in counts]
    distributed.all_gather(parts, mine)
    return np.concatenate([part[: int(count)].cpu().numpy() for part, count in zip(parts, counts, strict=True)])


def mean(fabric: Fabric, value: float) -> float:
    """The mean over the processes."""
    return float(np.mean(gather(fabric, np.array([value]))))


@torch.inference_mode()
def over_chunks(fabric: Fabric, inputs: Inputs, size: int, function: Callable[[Tensor], Tensor]) -> NDArray[Any]:
    """Apply a function to all inputs, chunk by chunk; every process takes its share of the chunks.

    The chunks, and so the results, do not depend on the number of processes.

    Args:
        fabric: The device and the processes.
        inputs: N inputs.
        size: Inputs in a chunk.
        function: (n, *sample_shape) -> (n, ...), called on the device.

    Returns:
        (N, ...) in every process, gathered once at the end.
    """
    first, end = _share_of_chunks(len(inputs), size, fabric.global_rank, fabric.world_size)
    result = None
    for start in range(first, max(end, first + 1), size):  # no inputs are one empty chunk
        chunk = inputs[np.arange(start, min(start + size, end))]
        part = function(chunk.to(fabric.device)).cpu().numpy()
        if result is None:
            result = np.empty((end - first, *part.shape[1:]), dtype=part.dtype)
        result[start - first : start - first + len(part)] = part
    assert result is not None
    return gather(fabric, result)


def _share_of_chunks(total: int, size: int, rank: int, processes: int) -> tuple[int, int]:
    """The first input of a process's share and its end: whole chunks, in the order of the processes."""
    chunks = -(-total // size)
    first, end = (chunks * place // processes * size for place in (rank, rank + 1))
    return min(first, total), min(end, total)


@contextmanager
def agreed(fabric: Fabric) -> Iterator[None]:
    """Run a block in every process; an error in one is raised in all, with the same message."""
    if fabric.world_size == 1:
        yield
        return
    message = b""
    try:
        yield
    except PrenError as error:
        message = f"{error.code}\n{error}".encode("utf-8", "backslashreplace")
    messages = gather(fabric, np.frombuffer(message, dtype=np.uint8))
    lengths = gather(fabric, np.array([len(message)]))
    if lengths.any():
        rank = int(lengths.argmax())
        start = int(lengths[:rank].sum())
        code, _, text = messages[start : start + int(lengths[rank])].tobytes().decode().partition("\n")
        raise SharedError(code, text if rank == 0 else f"Process {rank} of this run: {text}")


@contextmanager
def watching(fabric: Fabric) -> Iterator[None]:
    """Turn the errors that follow the end of another process into a `SharedError`."""
    try:
        yield
    except RuntimeError as error:
        if fabric.world_size == 1 or not _is_connection_error(error):
            raise
        raise SharedError(
            "process-ended",
            f"Another process of this run has ended, so this one ({fabric.global_rank} of {fabric.world_size}, on "
            f"{socket.gethostname()}) ends too: read the message of the other one. Finished work is kept.",
        ) from error


def _is_connection_error(error: RuntimeError) -> bool:
    text = str(error)
    return isinstance(error, distributed.DistError) or any(word in text for word in ("gloo", "NCCL", "Connection"))


def _line(error: Exception) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0]
