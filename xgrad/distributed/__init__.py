"""Training by several processes: data parallelism over MPI, and over NCCL between GPUs."""

from xgrad.distributed.communicator import Communicator, RankError
from xgrad.distributed.data_parallel import DataParallel
from xgrad.distributed.processes import world
from xgrad.support import hints

__all__ = ["Communicator", "DataParallel", "RankError", "world"]
hints.install(__name__)
