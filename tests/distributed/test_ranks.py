"""Jobs of several processes, compared with one process; faults of ranks end the job and are named.

`make test-distributed` installs MPI for these tests.
"""

from __future__ import annotations

import os
import re
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
from xgrad.distributed.communicator import END_OF_BLOCK, END_OF_EPOCH, END_OF_PROCESS
from xgrad.training import Trainer
from xgrad_cupy import nccl

HAS_MPIEXEC = any(
    shutil.which("mpiexec", path=path) for path in (str(Path(sys.executable).parent), None)
)
needs_mpi = pytest.mark.skipif(
    not (find_spec("mpi4py") and HAS_MPIEXEC),
    reason="needs mpi4py and mpiexec: make test-distributed",
)


def job(ranks: int, *arguments: Any) -> subprocess.CompletedProcess[str]:
    """Run a script on several ranks."""
    command = [
        sys.executable,
        "-m",
        "xgrad.distributed.launch",
        "-n",
        str(ranks),
        *map(str, arguments),
    ]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)


@needs_mpi
@pytest.mark.parametrize("ranks", [2, 4])
def test_job_of_several_ranks_matches_one_process(ranks: int) -> None:
    result = job(ranks, Path(__file__).with_name("ranks.py"), ranks)
    assert result.returncode == 0, result.stderr


JOB = """
import os, signal, sys
import xgrad
from xgrad.distributed import RankError, world
place, rank = sys.argv[1], int(os.environ["PMI_RANK"])
def fault():
    {fault}
if place == "before" and (rank == 1 or {all_ranks}):
    fault()
with world() as ranks:
    ranks.all_reduce(xgrad.ones(3))
    if place == "in" and (rank == 1 or {all_ranks}):
        fault()
    ranks.all_reduce(xgrad.ones(3))
if place == "after" and (rank == 1 or {all_ranks}):
    fault()
with world() as ranks:
    ranks.all_reduce(xgrad.ones(3))
"""


def job_with_fault(
    folder: Path, fault: str, place: str = "in", all_ranks: bool = False
) -> tuple[int, list[str]]:
    """Run a job of two ranks, and return its status and messages.

    Rank 1, or both ranks, run the statement `fault`.
    """
    script = folder / "job.py"
    script.write_text(JOB.format(fault=fault, all_ranks=all_ranks))
    result = job(2, script, place)
    return result.returncode, [
        line for line in result.stderr.splitlines() if line.startswith("xgrad.distributed:")
    ]


@needs_mpi
@pytest.mark.parametrize(
    ("fault", "place", "status", "message"),
    [
        (
            "raise ValueError('no such file')",
            "before",
            1,
            "ended with status 1 before it entered the block of world",
        ),
        ("raise ValueError('no such file')", "in", 1, "failed: ValueError: no such file"),
        (
            "raise ValueError('no such file')",
            "after",
            1,
            "ended by ValueError('no such file') before the others",
        ),
        ("raise RankError('too large')", "in", 1, "failed alone: RankError: too large"),
        ("raise KeyboardInterrupt", "in", 1, "failed: KeyboardInterrupt"),
        ("sys.exit(3)", "before", 3, "ended with status 3 before it entered the block of world()"),
        ("sys.exit(3)", "in", 3, "ended by SystemExit(3) before the others"),
        ("sys.exit(3)", "after", 3, "ended by SystemExit(3) before the others"),
        ("sys.exit('no GPU')", "in", 1, "ended by SystemExit('no GPU') before the others"),
        ("sys.exit()", "before", 1, "came to the end of its process before the others: "),
        ("sys.exit()", "in", 1, "came to the end of the block of world() before the others: "),
        ("sys.exit()", "after", 1, "came to the end of its process before the others: "),
        ("os._exit(0)", "before", 1, "ended with status 0 before it entered the block of world()"),
        ("os._exit(0)", "in", None, "ended with status 0 in the block of world()"),
        ("os._exit(5)", "after", None, "ended with status 5 after the block of world()"),
        ("os.kill(os.getpid(), signal.SIGKILL)", "before", 137, "was killed by SIGKILL"),
        ("os.kill(os.getpid(), signal.SIGKILL)", "in", None, "was killed by SIGKILL"),
        ("os.kill(os.getpid(), signal.SIGTERM)", "in", None, "was killed by SIGTERM"),
        (
            "os.kill(os.getppid(), signal.SIGTERM)",
            "in",
            None,
            "was stopped by SIGTERM, sent to its parent process",
        ),
    ],
)
def test_rank_that_ends_before_the_others_ends_the_job_and_is_named(
    fault: str, place: str, status: int | None, message: str, tmp_path: Path
) -> None:
    """A status of None depends on whether the launcher sees the rank's end or the other's kill."""
    got, (line,) = job_with_fault(tmp_path, fault, place)
    assert line.startswith(f"xgrad.distributed: rank 1 of 2 {message}")
    assert got == status or (status is None and got != 0)


@needs_mpi
@pytest.mark.parametrize(("fault", "status"), [("sys.exit(3)", 3), ("sys.exit()", 0)])
@pytest.mark.parametrize("place", ["in", "after"])
def test_exit_of_all_ranks_has_their_status(
    fault: str, status: int, place: str, tmp_path: Path
) -> None:
    assert job_with_fault(tmp_path, fault, place, all_ranks=True) == (status, [])


@needs_mpi
def test_rank_error_of_all_ranks_is_printed_once(tmp_path: Path) -> None:
    status, lines = job_with_fault(
        tmp_path, "raise RankError('expected finite losses')", all_ranks=True
    )
    assert (status, lines) == (1, ["xgrad.distributed: expected finite losses"])


@needs_mpi
@pytest.mark.parametrize(
    ("call", "described"),
    [
        (
            "ranks.all_reduce(xgrad.ones((3, 1)))",
            r"the sum of an array of shape \(3, 1\) and dtype float32",
        ),
        (
            "ranks.all_reduce(xgrad.ones(3, dtype=xgrad.float64))",
            r"the sum of an array of shape \(3,\) and dtype float64",
        ),
        ("ranks.gather_objects(3)", "gather_objects"),
        ("ranks.broadcast_object(3)", "broadcast_object"),
    ],
)
def test_different_calls_of_ranks_end_the_job_and_are_named(
    call: str, described: str, tmp_path: Path
) -> None:
    status, (line,) = job_with_fault(tmp_path, call)
    expected = (
        r"xgrad\.distributed: expected the same calls on all ranks in the same order, got the sum"
        r" of an array of shape "
        rf"\(3,\) and dtype float32 on rank 0 \(job\.py:14\) and {described} on rank 1"
        r" \(job\.py:7\): "
    )
    assert status == 1 and re.match(expected, line)


FEWER = {
    "loop": (
        "for _ in range(5 - ranks.rank):\n"
        "        model(xgrad.ones((2, 1))).sum().backward()\n"
        "        parallel.reduce_gradients(samples=2)"
    ),
    "trainer": (
        "class Fewer(DataLoader):\n        __iter__ = lambda self: islice(super().__iter__(), 1)\n "
        "   data = TensorDataset(xgrad.ones((8, 1)), xgrad.ones((8, 1)))\n    loader = (Fewer if"
        " ranks.rank == 1 else DataLoader)(data, batch_size=4, ranks=ranks)\n    Trainer(model,"
        " optimizer, xgrad.nn.functional.mse_loss, loader, parallel=parallel).fit(2)"
    ),
}


@needs_mpi
@pytest.mark.parametrize(
    ("kind", "end"),
    [
        ("loop", "the end of the block of world()"),
        ("trainer", "the end of an epoch of Trainer.fit"),
    ],
)
def test_rank_with_fewer_batches_is_named(kind: str, end: str, tmp_path: Path) -> None:
    script = tmp_path / "job.py"
    script.write_text(
        "from itertools import islice\nimport xgrad\nfrom xgrad.data import DataLoader,"
        " TensorDataset\nfrom xgrad.distributed import DataParallel, world\nfrom xgrad.training"
        " import Trainer\nwith world() as ranks:\n    model = xgrad.nn.Linear(1, 1)\n    optimizer"
        " = xgrad.optim.SGD(model.parameters(), lr=0.01)\n    parallel = DataParallel(model,"
        f" optimizer, ranks)\n    {FEWER[kind]}\n"
    )
    result = job(2, script)
    assert result.returncode == 1
    assert (
        f"xgrad.distributed: rank 1 of 2 came to {end} before the others: expected the same calls"
        in result.stderr
    )
    assert (
        "got reduce_gradients on rank 0 (job.py:" in result.stderr
        and "Traceback" not in result.stderr
    )


@pytest.mark.parametrize(
    ("calls", "at_fault"),
    [
        (["a", "a", "b", "a"], "rank 2 of 4 made another call than the others: "),
        (
            ["b", "a", "b", "a"],
            (
                "expected the same calls on all ranks in the same order, got b on ranks 0, 2"
                " (job.py:0) "
            ),
        ),
        (["c", "a", "a", "b", "a"], "ranks 0, 3 of 5 made another call than the others: "),
        (
            [END_OF_BLOCK, "a", END_OF_BLOCK],
            "ranks 0, 2 of 3 came to the end of the block of world() before the ",
        ),
        (
            [END_OF_EPOCH, END_OF_BLOCK, "a"],
            "rank 1 of 3 came to the end of the block of world() before the others: ",
        ),
        (
            [END_OF_PROCESS, END_OF_BLOCK],
            "rank 0 of 2 came to the end of its process before the others: ",
        ),
    ],
)
def test_ranks_at_fault_are_those_that_end_first_or_the_minority(
    calls: list[str], at_fault: str
) -> None:
    message = mpi._different([(call, f"job.py:{rank}") for rank, call in enumerate(calls)])
    assert message.startswith(at_fault)


@needs_mpi
@pytest.mark.skipif(
    sys.platform != "linux", reason="the end of a parent process ends its child on Linux only"
)
def test_end_of_the_launcher_by_sigterm_ends_the_ranks(tmp_path: Path) -> None:
    script = tmp_path / "job.py"
    # One call writes the line: unbuffered, print would write its end apart, after the line of the
    # other rank.
    script.write_text("import os, time\nos.write(1, b'started\\n')\ntime.sleep(60)\n")
    command = [sys.executable, "-m", "xgrad.distributed.launch", "-n", "2", script]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as launcher:
        assert launcher.stdout is not None and launcher.stdout.readline() == "started\n"
        launcher.terminate()
        _, err = launcher.communicate(timeout=30)  # which the ranks hold open until they end
    assert launcher.returncode != 0 and "Traceback" not in err


@pytest.mark.parametrize("n", ["0", "-1", "65537"])
def test_launch_refuses_an_impossible_number_of_ranks(
    n: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        launch.main(["-n", n, "--print", "train.py"])
    assert f"-n: expected a number of ranks from 1 to 65536, got {n}" in capsys.readouterr().err


@needs_mpi
@pytest.mark.skipif(
    sys.platform != "linux", reason="processes of other systems get the signal of a group twice"
)
def test_ctrl_c_writes_a_checkpoint_and_ends_all_ranks(tmp_path: Path) -> None:
    command = (
        "-m xgrad.distributed.launch -n 2 xgrad train digits --no-download --hidden 8 --epochs 9999"
        " --distributed"
    )
    with subprocess.Popen(
        [sys.executable, *command.split(), "--out", tmp_path / "out"],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True,
    ) as launcher:  # fmt: skip
        assert launcher.stdout is not None
        assert any("epoch 1/" in line for line in launcher.stdout)
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
        "import sys\nfrom xgrad.cli import main\nfrom xgrad.distributed.mpi import"
        " MPICommunicator\nall_reduce = MPICommunicator.all_reduce\ndef interrupted(self, *args,"
        " **options):\n    if self.rank == 0:\n        raise KeyboardInterrupt\n    return"
        " all_reduce(self, *args, **options)\nMPICommunicator.all_reduce ="
        " interrupted\nsys.exit(main('train digits --hidden 8 --epochs 2 --distributed --out"
        f" {tmp_path / 'out'}'.split()))\n"
    )
    result = job(2, script)
    assert (
        result.returncode != 0 and "xgrad train: interrupted: nothing was written" in result.stderr
    )


@needs_mpi
def test_train_command_on_ranks_matches_one_process_and_resumes_on_another_number(
    tmp_path: Path,
) -> None:
    options = "train digits --no-download --hidden 32 --epochs 2 --batch-size 64".split()
    assert main([*options, "--quiet", "--out", str(tmp_path / "one")]) == 0
    out = tmp_path / "job"
    extra = ["--out", out, "--shard-state", "--checkpoint-every", "11", "--keep", "9"]
    assert job(2, "xgrad", *options, "--distributed", *extra).returncode == 0
    _, *later = sorted((out / "checkpoints").iterdir())
    for path in later:
        path.unlink()
    # one rank, without MPI
    assert main(["train", "--resume", str(out), "--distributed", "--quiet"]) == 0
    one, weights = (
        xgrad.load(folder / "weights.safetensors") for folder in (tmp_path / "one", out)
    )
    assert all(np.allclose(one[name].numpy(), weights[name].numpy(), atol=1e-4) for name in one)


def test_launch_prints_the_command_of_each_launcher(capsys: pytest.CaptureFixture[str]) -> None:
    assert (
        launch.main(
            ["-n", "8", "--slurm", "--print", "--option=--nodes=2", "train.py", "--epochs", "3"]
        )
        == 0
    )
    line = capsys.readouterr().out
    assert line.startswith("srun --ntasks=8 --kill-on-bad-exit=1 --nodes=2 ") and line.endswith(
        "train.py --epochs 3\n"
    )
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
    datasets = {
        "tensors": tensors,
        "subset": Subset(tensors, range(8)),
        "list": [*range(8)],
        "iterable": {*range(8)},
    }

    def batches(ranks: Communicator | None) -> list[list[int]]:
        xgrad.manual_seed(1)
        loader = DataLoader(datasets[kind], 5, shuffle=kind != "iterable", ranks=ranks)
        return [(batch[0] if isinstance(batch, tuple) else batch).tolist() for batch in loader]

    parts = zip(*(batches(of_three(rank)) for rank in range(3)), strict=True)
    assert [a + b + c for a, b, c in parts] == batches(None)
    with pytest.raises(
        ValueError,
        match="expected batches of at least 3 samples, one for each rank, got one of 2: ",
    ):
        list(DataLoader(datasets[kind], 6, ranks=of_three(0)))


@pytest.mark.parametrize("options", ["--batch-size 2", "--batch-size 359", "--validation 1435"])
def test_train_command_refuses_a_batch_of_fewer_images_than_ranks(options: str) -> None:
    args = train.parser().parse_args(
        ["digits", "--device", "cpu", "--distributed", *options.split()]
    )
    with pytest.raises(
        UsageError, match="--batch-size: expected batches of at least 3 images, one for each rank"
    ):
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
        loader = DataLoader(
            TensorDataset(xgrad.ones((2, 1)), xgrad.ones((2, 1))), ranks=loader_ranks
        )
        with pytest.raises(
            ValueError, match="expected a train_loader with the ranks of `parallel`"
        ):
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
    with pytest.warns(
        CaptureWarning, match="DataParallel.reduce_gradients waits for other processes: capture the"
    ):
        step(xgrad.ones((2, 1)))


def test_nccl_calls_have_the_signatures_of_cupy(monkeypatch: pytest.MonkeyPatch) -> None:
    """Not yet run on a GPU: the names and arguments are those in CuPy 14.2."""
    calls: list[tuple[Any, ...]] = []

    class Peers:
        def __init__(self, ndev: int, commId: tuple[int, ...], rank: int) -> None:
            pass

        def allReduce(
            self, sendbuf: int, recvbuf: int, count: int, datatype: int, op: int, stream: int
        ) -> None:
            calls.append(("allReduce", sendbuf, recvbuf, count, datatype, op, stream))

        def reduce(
            self,
            sendbuf: int,
            recvbuf: int,
            count: int,
            datatype: int,
            op: int,
            root: int,
            stream: int,
        ) -> None:
            calls.append(
                ("reduce", sendbuf - 100, recvbuf - 100, count, datatype, op, root, stream)
            )

        def broadcast(
            self, sendbuff: int, recvbuff: int, count: int, datatype: int, root: int, stream: int
        ) -> None:
            calls.append(
                ("broadcast", sendbuff - 100, recvbuff - 100, count, datatype, root, stream)
            )

    def start(communicator: mpi.MPICommunicator) -> None:
        communicator.rank, communicator.size = 0, 2

    fakes = {
        "cupy": SimpleNamespace(
            cuda=SimpleNamespace(get_current_stream=lambda: SimpleNamespace(ptr=9))
        ),
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
    monkeypatch.setattr(
        mpi.MPICommunicator, "meet", lambda self, call, nbytes=0: calls.append(("meet", call))
    )
    cpu = xgrad.Device("cpu")
    communicator = nccl.Communicator(cpu)
    pointer, kind = SimpleNamespace(ptr=100), np.dtype("float32")
    array: Any = SimpleNamespace(data=pointer, size=3, shape=(3,), itemsize=4, dtype=kind)
    communicator.sum_array(array, cpu)
    communicator.sum_parts(array, cpu)
    communicator.gather_parts(array, cpu)
    what = "an array of shape (3,) and dtype float32"
    assert calls == [
        ("meet", f"the sum of {what}"),
        ("allReduce", 100, 100, 3, 7, 0, 9),
        ("meet", f"the sum of parts of {what}"),
        ("groupStart",),
        ("reduce", 0, 0, 1, 7, 0, 0, 9),
        ("reduce", 4, 4, 2, 7, 0, 1, 9),
        ("groupEnd",),
        ("meet", f"the gathering of parts of {what}"),
        ("groupStart",),
        ("broadcast", 0, 0, 1, 7, 0, 9),
        ("broadcast", 4, 4, 2, 7, 1, 9),
        ("groupEnd",),
    ]
