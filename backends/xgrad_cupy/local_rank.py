"""The local rank of a launched process: its number among the processes of its job on one machine.

The first local rank that is set counts. Open MPI, MVAPICH, MPICH and torchrun may run within a step
of Slurm, whose variable then describes their own process, so it is the last.
"""

from __future__ import annotations

from collections.abc import Mapping

from xgrad.backend import DeviceError

#: Environment variables of Open MPI, MVAPICH, MPICH and Intel MPI, torchrun, Slurm.
VARIABLES = (
    "OMPI_COMM_WORLD_LOCAL_RANK",
    "MV2_COMM_WORLD_LOCAL_RANK",
    "MPI_LOCALRANKID",
    "LOCAL_RANK",
    "SLURM_LOCALID",
)


def local_rank(environment: Mapping[str, str]) -> int:
    """Return the local rank that a launcher has set; 0 without a launcher.

    An empty variable counts as not set. Another value that is no local rank raises DeviceError,
    since all processes would use one GPU if it were ignored.
    """
    for name in VARIABLES:
        if value := environment.get(name):
            # `int` raises for thousands of digits
            if not (value.isascii() and value.isdecimal() and len(value) < 10):
                raise DeviceError(
                    "cuda: expected the number of this process on this machine, 0 or more, in the"
                    f" environment variable {name}, got {value[:20]!r}: correct it, or unset it"
                )
            return int(value)
    return 0
