"""Jobs of several processes; `make test-distributed` installs MPI for them."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import xgrad
from xgrad.capture import CaptureWarning
from xgrad.cli import main, train
from xgrad.cli.arguments import UsageError
from xgrad.data import DataLoader, Subset, TensorDataset
from xgrad.distributed import Communicator, DataParallel, launch, mpi, processes
from xgrad.training import Trainer
from xgrad_cupy import nccl

HAS_MPIEXEC = any(shutil.which("mpiexec", path=path) for path in (str(Path(sys.executable).parent), None))
needs_mpi = pytest.mark.skipif(
    not (find_spec("mpi4py") and HAS_MPIEXEC), reason="needs mpi4py and mpiexec: make test-distributed"
)


def job(ranks: int, *arguments: Any) -> subprocess.CompletedProcess[str]:
    """Run a script on several ranks."""
    command = [sys.executable, "-m", "xgrad.distributed.launch", "-n", str(ranks), *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)


@needs_mpi
@pytest.mark.parametrize("ranks", [2, 4])
def test_job_of_several_ranks_matches_one_process(ranks: int) -> None:
    result = job(ranks, Path(__file__).with_name("ranks.py"), ranks)
    assert result.returncode == 0, result.stderr


@needs_mpi
@pytest.mark.parametrize(
    ("fault", "message"),
    [
        ("os.kill(os.getpid(), signal.SIGKILL)", "rank 1 of 2 was killed by SIGKILL"),
        ("raise ValueError('no such file')", "rank 1 of 2 failed: ValueError: no such file"),
        ("raise RankError('expected finite losses')", None),
    ],
)
def test_failing_rank_ends_the_job_and_is_named(fault: str, message: str | None, tmp_path: Path) -> None:
    script = tmp_path / "job.py"
    script.write_text(
        "import os, signal\nimport xgrad\nfrom xgrad.distributed import RankError, world\n"
        "with world() as ranks:\n"
        f"    if ranks.rank == 1 or {message is None}:\n        {fault}\n"
        "    ranks.all_reduce(xgrad.ones(3))\n"
    )
    result = job(2, script)
    assert result.returncode != 0
    lines = [line for line in result.stderr.splitlines() if line.startswith("xgrad.distributed:")]
    assert len(lines) == 1 and lines[0].startswith(f"xgrad.distributed: {message or 'expected finite losses'}")


@needs_mpi
@pytest.mark.skipif(sys.platform != "linux", reason="processes of other systems get the signal of a group twice")
def test_ctrl_c_writes_a_checkpoint_and_ends_all_ranks(tmp_path: Path) -> None:
    command = "-m xgrad.distributed.launch -n 2 xgrad train digits --no-download --hidden 8 --epochs 9999 --distributed"
    with subprocess.Popen(
        [sys.executable, *command.split(), "--out", tmp_path / "out"],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True,
    ) as launcher:  # fmt: skip
        assert launcher.stdout is not None and "training" in launcher.stdout.readline()
        assert "epoch 1/" in launcher.stdout.readline()
        os.killpg(launcher.pid, signal.SIGINT)  # as a terminal
        try:
            _, err = launcher.communicate(timeout=30)
        finally:
            with suppress(ProcessLookupError):
                os.killpg(launcher.pid, signal.SIGTERM)  # to end its ranks
    assert launcher.returncode != 0 and "xgrad train: interrupted after step " in err
    (checkpoint,) = (tmp_path / "out" / "checkpoints").iterdir()
    assert xgrad.load(checkpoint)["history"]


@needs_mpi
def test_interrupted_rank_ends_the_others(tmp_path: Path) -> None:
    script = tmp_path / "job.py"
    script.write_text(
        "import sys\nfrom xgrad.cli import main\nfrom xgrad.distributed.mpi import MPICommunicator\n"
        "all_reduce = MPICommunicator.all_reduce\n"
        "def interrupted(self, *args, **options):\n    if self.rank == 0:\n        raise KeyboardInterrupt\n"
        "    return all_reduce(self, *args, **options)\n"
        "MPICommunicator.all_reduce = interrupted\n"
        f"sys.exit(main('train digits --hidden 8 --epochs 2 --distributed --out {tmp_path / 'out'}'.split()))\n"
    )
    result = job(2, script)
    assert result.returncode != 0 and "xgrad train: interrupted: nothing was written" in result.stderr


@needs_mpi
def test_train_command_on_ranks_matches_one_process_and_resumes_on_another_number(tmp_path: Path) -> None:
    options = "train digits --no-download --hidden 32 --epochs 2 --batch-size 64".split()
    assert main([*options, "--quiet", "--out", str(tmp_path / "one")]) == 0
    out = tmp_path / "job"
    extra = ["--out", out, "--shard-state", "--checkpoint-every", "11", "--keep", "9"]
    assert job(2, "xgrad", *options, "--distributed", *extra).returncode == 0
    _, *later = sorted((out / "checkpoints").iterdir())
    for path in later:
        path.unlink()
    assert main(["train", "--resume", str(out), "--distributed", "--quiet"]) == 0  # one rank, without MPI
    one, weights = (xgrad.load(folder / "weights.safetensors") for folder in (tmp_path / "one", out))
    assert all(np.allclose(one[name].numpy(), weights[name].numpy(), atol=1e-4) for name in one)


def test_launch_prints_the_command_of_each_launcher(capsys: pytest.CaptureFixture[str]) -> None:
    assert launch.main(["-n", "8", "--slurm", "--print", "--option=--nodes=2", "train.py", "--epochs", "3"]) == 0
    line = capsys.readouterr().out
    assert line.startswith("srun --ntasks=8 --kill-on-bad-exit=1 --nodes=2 ") and line.endswith("train.py --epochs 3\n")
    if HAS_MPIEXEC:
        assert launch.main(["-n", "2", "--print", "xgrad", "train"]) == 0
        assert "mpiexec -n 2 " in capsys.readouterr().out


def test_process_without_launcher_is_one_rank() -> None:
    with processes.world() as ranks:
        assert (ranks.rank, ranks.size, ranks.gather_objects("x")) == (0, 1, ["x"])
        model = xgrad.nn.Linear(2, 2, bias=False)
        optimizer = xgrad.optim.Muon(model.parameters())
        with pytest.raises(ValueError, match="each element by itself for shard_state, got Muon"):
            xgrad.distributed.DataParallel(model, optimizer, ranks, shard_state=True)


def of_three(rank: int) -> Communicator:
    """Return a communicator that knows its rank, and no other process."""
    ranks = Communicator()
    ranks.rank, ranks.size = rank, 3
    return ranks


@pytest.mark.parametrize("kind", ["tensors", "subset", "list", "iterable"])
def test_parts_of_a_batch_make_up_the_batch(kind: str) -> None:
    tensors = TensorDataset(xgrad.arange(8))
    datasets = {"tensors": tensors, "subset": Subset(tensors, range(8)), "list": [*range(8)], "iterable": {*range(8)}}

    def batches(ranks: Communicator | None) -> list[list[int]]:
        xgrad.manual_seed(1)
        loader = DataLoader(datasets[kind], 5, shuffle=kind != "iterable", ranks=ranks)
        return [(batch[0] if isinstance(batch, tuple) else batch).tolist() for batch in loader]

    parts = zip(*(batches(of_three(rank)) for rank in range(3)), strict=True)
    assert [a + b + c for a, b, c in parts] == batches(None)
    with pytest.raises(ValueError, match="expected batches of at least 3 samples, one for each rank, got one of 2: "):
        list(DataLoader(datasets[kind], 6, ranks=of_three(0)))


@pytest.mark.parametrize("options", ["--batch-size 2", "--batch-size 359", "--validation 1435"])
def test_train_command_refuses_a_batch_of_fewer_images_than_ranks(options: str) -> None:
    args = train.parser().parse_args(["digits", "--device", "cpu", "--distributed", *options.split()])
    with pytest.raises(UsageError, match="--batch-size: expected batches of at least 3 images, one for each rank"):
        train.train(args, {}, of_three(0))


def test_trainer_needs_the_ranks_of_its_loader() -> None:
    model = xgrad.nn.Linear(1, 1)
    optimizer = xgrad.optim.SGD(model.parameters())
    ranks = Communicator()
    parallel = DataParallel(model, optimizer, ranks, shard_state=True)
    for loader_ranks, options in (
        (ranks, {}),
        (None, {"parallel": parallel}),
        (ranks, {"parallel": parallel, "amp": True}),
    ):
        loader = DataLoader(TensorDataset(xgrad.ones((2, 1)), xgrad.ones((2, 1))), ranks=loader_ranks)
        with pytest.raises(ValueError, match="expected a train_loader with the ranks of `parallel`"):
            Trainer(model, optimizer, xgrad.nn.functional.mse_loss, loader, **options)


def test_step_that_waits_for_ranks_is_not_captured() -> None:
    model = xgrad.nn.Linear(1, 1)
    optimizer = xgrad.optim.SGD(model.parameters())
    parallel = DataParallel(model, optimizer, Communicator())

    @xgrad.capture
    def step(x: xgrad.Tensor) -> None:
        optimizer.zero_grad()
        model(x).sum().backward()
        parallel.reduce_gradients()
        optimizer.step()

    step(xgrad.ones((2, 1)))
    with pytest.warns(CaptureWarning, match="DataParallel.reduce_gradients waits for other processes: capture the"):
        step(xgrad.ones((2, 1)))


def test_nccl_calls_have_the_signatures_of_cupy(monkeypatch: pytest.MonkeyPatch) -> None:
    """Not yet run on a GPU: the names and arguments are those of CuPy 14.2."""
    calls: list[tuple[Any, ...]] = []

    class Peers:
        def __init__(self, ndev: int, commId: tuple[int, ...], rank: int) -> None:
            pass

        def allReduce(self, sendbuf: int, recvbuf: int, count: int, datatype: int, op: int, stream: int) -> None:
            calls.append(("allReduce", sendbuf, recvbuf, count, datatype, op, stream))

        def reduce(
            self, sendbuf: int, recvbuf: int, count: int, datatype: int, op: int, root: int, stream: int
        ) -> None:
            calls.append(("reduce", sendbuf - 100, recvbuf - 100, count, datatype, op, root, stream))

        def broadcast(self, sendbuff: int, recvbuff: int, count: int, datatype: int, root: int, stream: int) -> None:
            calls.append(("broadcast", sendbuff - 100, recvbuff - 100, count, datatype, root, stream))

    def start(communicator: mpi.MPICommunicator) -> None:
        communicator.rank, communicator.size = 0, 2

    fakes = {
        "cupy": SimpleNamespace(cuda=SimpleNamespace(get_current_stream=lambda: SimpleNamespace(ptr=9))),
        "cupy.cuda.nccl": SimpleNamespace(
            available=True,
            get_unique_id=tuple,
            NcclCommunicator=Peers,
            NCCL_SUM=0,
            NCCL_FLOAT32=7,
            groupStart=lambda: calls.append(("groupStart",)),
            groupEnd=lambda: calls.append(("groupEnd",)),
        ),
    }
    monkeypatch.setattr(nccl, "import_module", fakes.__getitem__)
    monkeypatch.setattr(mpi.MPICommunicator, "__init__", start)
    monkeypatch.setattr(mpi.MPICommunicator, "broadcast_object", lambda self, x: x)
    cpu = xgrad.Device("cpu")
    communicator = nccl.Communicator(cpu)
    array: Any = SimpleNamespace(data=SimpleNamespace(ptr=100), size=3, itemsize=4, dtype=np.dtype("float32"))
    communicator.sum_array(array, cpu)
    communicator.sum_parts(array, cpu)
    communicator.gather_parts(array, cpu)
    assert calls == [
        ("allReduce", 100, 100, 3, 7, 0, 9),
        ("groupStart",),
        ("reduce", 0, 0, 1, 7, 0, 0, 9),
        ("reduce", 4, 4, 2, 7, 0, 1, 9),
        ("groupEnd",),
        ("groupStart",),
        ("broadcast", 0, 0, 1, 7, 0, 9),
        ("broadcast", 4, 4, 2, 7, 1, 9),
        ("groupEnd",),
    ]
