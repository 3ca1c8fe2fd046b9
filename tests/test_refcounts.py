"""Reference counts, compared with known counts in all builds of Python.

Writes to constants are in place where nothing else refers to the memory.
"""

from __future__ import annotations

import shutil
import subprocess
import sys

from xgrad.support import refcounts

COUNTS = """
import runpy, sys, threading
references = runpy.run_path(sys.argv[1])["references"]
x, y = object(), object()
objects = [x, y]
assert references([]) == references([object()]) == 0
assert references(objects) == 2
other = [x, x, y]
assert references(objects) == 5
del other[0], y
assert references(objects) == 3
keep, done = threading.Event(), threading.Event()
def hold(argument):
    done.set()
    keep.wait()
thread = threading.Thread(target=hold, args=(objects[1],))
before = references(objects)
thread.start()
done.wait()
assert references(objects) > before > 3
keep.set()
thread.join()
del thread
assert references(objects) == 3
"""


def test_references_are_counted_alike_in_all_builds_of_python() -> None:
    builds = [sys.executable, *filter(None, map(shutil.which, ("python3.13t", "python3.14t")))]
    for build in builds:
        subprocess.run([build, "-c", COUNTS, refcounts.__file__], check=True, timeout=60)
