"""Run an example with its arguments, and fail if the picture that it draws is illegible."""

from __future__ import annotations

import runpy
import sys

import matplotlib.pyplot as plt

from legibility import flaws

sys.argv = sys.argv[1:]
runpy.run_path(sys.argv[0], run_name="__main__")
# as it was saved: another layout might mend it
for number in plt.get_fignums():
    plt.figure(number).set_layout_engine("none")
found = [flaw for number in plt.get_fignums() for flaw in flaws(plt.figure(number))]
if not plt.get_fignums() or found:
    sys.exit(f"expected one legible figure or more, got {len(plt.get_fignums())}: {found}")
