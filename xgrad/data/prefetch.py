"""Jobs that run in order on request, or ahead in threads."""

from __future__ import annotations

from _thread import start_new_thread
from collections import deque
from collections.abc import Callable, Generator, Iterator
from contextlib import closing
from itertools import islice
from queue import SimpleQueue
from threading import Lock, Thread
from typing import Any

Jobs = Generator[Callable[[], Any], None, None]

END: Any = object()  # result of a job after the last one


def run(jobs: Jobs) -> Generator[Any, None, None]:
    """Yield the results of jobs, each run on request."""
    with closing(jobs):
        for job in jobs:
            if (result := job()) is END:
                return
            yield result


def prefetch(jobs: Jobs, workers: int, ahead: int) -> Generator[Any, None, None]:
    """Yield the results of jobs in order, while threads run a number of later jobs.

    A signal handler, which runs in the main thread, may raise inside a lock of Python code, and so
    leave other threads waiting forever. Therefore the main thread and other threads share only
    queues, which are implemented in C, and a separate thread starts the workers and uses the pool.
    """
    tasks: SimpleQueue[Any] = SimpleQueue()
    active, started = [True], Lock()
    dispatcher = Thread(target=_dispatch, args=(tasks, workers, active), daemon=True)

    def submit(number: int) -> Iterator[SimpleQueue[Any]]:
        for job in islice(jobs, number):
            outcome: SimpleQueue[Any] = SimpleQueue()
            tasks.put((job, outcome))
            yield outcome

    with closing(jobs):
        started.acquire()
        try:
            try:
                start_new_thread(_start, (dispatcher, tasks, started))
            except RuntimeError:  # no thread to wait for
                started.release()
                raise
            pending = deque(submit(ahead))
            while pending and (result := _result(pending.popleft())) is not END:
                pending.extend(submit(1))
                yield result
        finally:  # also if the loop ends early, and closes this generator
            try:
                active.clear()
            finally:  # always, or the dispatcher would wait forever
                tasks.put(None)
            with started:
                if dispatcher.ident is not None:
                    dispatcher.join()


def _start(dispatcher: Thread, tasks: SimpleQueue[Any], started: Any) -> None:
    """Start a thread; on failure, answer each job from the queue, up to None, with the error."""
    try:
        dispatcher.start()
    except RuntimeError as error:
        while (task := tasks.get()) is not None:
            task[1].put((None, error))
    finally:
        started.release()


def _dispatch(tasks: SimpleQueue[Any], workers: int, active: list[bool]) -> None:
    """Submit jobs from a queue, up to None, to a pool of threads."""
    from concurrent.futures import ThreadPoolExecutor  # not at the top: slow to import

    with ThreadPoolExecutor(workers, thread_name_prefix="xgrad-data") as pool:
        while (task := tasks.get()) is not None:
            job, outcome = task
            try:
                pool.submit(_execute, job, outcome, active)
            except RuntimeError as error:  # no thread could be started
                outcome.put((None, error))


def _execute(job: Callable[[], Any], outcome: SimpleQueue[Any], active: list[bool]) -> None:
    """Run a job if the iteration is still active, and put its result or exception in a queue."""
    if active:
        try:
            outcome.put((job(), None))
        except BaseException as error:
            outcome.put((None, error))


def _result(outcome: SimpleQueue[Any]) -> Any:
    result, error = outcome.get()
    if error is not None:
        try:
            raise error
        finally:
            del error  # it refers to this frame
    return result
