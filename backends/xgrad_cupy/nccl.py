"""Communication between GPUs by NCCL, through CuPy.

Written from the API of CuPy 14.2; not yet run on a GPU.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

from xgrad.backend.device import Device
from xgrad.distributed.mpi import MPICommunicator


class Communicator(MPICommunicator):
    """Processes with one GPU each.

    NCCL passes arrays between GPUs, on the current stream. MPI passes objects.
    """

    def __init__(self, device: Device) -> None:
        super().__init__()
        self._cupy, self._nccl = import_module("cupy"), import_module("cupy.cuda.nccl")
        if not self._nccl.available:
            raise ImportError(
                "xgrad.distributed: NCCL is missing: pip install nvidia-nccl-cu12, or -cu13"
            )
        identifier = self.broadcast_object(self._nccl.get_unique_id() if self.rank == 0 else None)
        with device.active():
            self._peers = self._nccl.NcclCommunicator(self.size, identifier, self.rank)

    def _sum(self, array: Any, device: Device) -> None:
        kind, stream = self._kind(array), self._stream()
        self._peers.allReduce(
            array.data.ptr, array.data.ptr, array.size, kind, self._nccl.NCCL_SUM, stream
        )

    def _sum_parts(self, array: Any, device: Device) -> None:
        kind, stream = self._kind(array), self._stream()
        # a group is one launch, and allows parts of unequal sizes, which reduceScatter does not
        self._nccl.groupStart()
        for rank, (pointer, count) in enumerate(self._parts(array)):
            self._peers.reduce(pointer, pointer, count, kind, self._nccl.NCCL_SUM, rank, stream)
        self._nccl.groupEnd()

    def _gather_parts(self, array: Any, device: Device) -> None:
        kind, stream = self._kind(array), self._stream()
        self._nccl.groupStart()
        for rank, (pointer, count) in enumerate(self._parts(array)):
            self._peers.broadcast(pointer, pointer, count, kind, rank, stream)
        self._nccl.groupEnd()

    def _kind(self, array: Any) -> int:
        return int(getattr(self._nccl, f"NCCL_{array.dtype.name.upper()}"))

    def _stream(self) -> int:
        return int(self._cupy.cuda.get_current_stream().ptr)

    def _parts(self, array: Any) -> list[tuple[int, int]]:
        parts = [self.part(array.size, rank) for rank in range(self.size)]
        return [
            (array.data.ptr + part.start * array.itemsize, part.stop - part.start) for part in parts
        ]
