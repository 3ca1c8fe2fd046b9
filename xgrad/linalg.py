"""Linear algebra: the standard's extension ``linalg``, and functions that it lacks.

Matrices are in the last two axes; the axes before hold a stack of matrices. Wrong shapes raise
ValueError. If an algorithm fails, for a matrix that is singular or not positive definite, every
device but ``cuda`` raises `numpy.linalg.LinAlgError`, which is a ValueError. ``cuda`` does not
synchronize to check: there, results are infinite or NaN.

Eigenvectors, singular vectors and the columns of Q are determined up to a sign, or a phase if they
are complex. Gradients are correct for a loss that does not depend on the sign or phase; for
eigenvectors and singular vectors, the backward pass refuses a loss that depends on phases.
"""

from xgrad.ops import matmul, matrix_transpose, tensordot, vecdot
from xgrad.ops.decompositions import cholesky, qr, svd, svdvals
from xgrad.ops.eigen import eig, eigh, eigvals, eigvalsh
from xgrad.ops.least_squares import lstsq
from xgrad.ops.linalg import det, diagonal, inv, matrix_rank, pinv, slogdet, solve, trace
from xgrad.ops.matrix_functions import expm, sqrtm
from xgrad.ops.matrix_products import cross, matrix_power, outer
from xgrad.ops.norms import matrix_norm, vector_norm
from xgrad.ops.triangular import cholesky_solve, solve_triangular
from xgrad.support import hints

__all__ = [
    "cholesky",
    "cholesky_solve",
    "cross",
    "det",
    "diagonal",
    "eig",
    "eigh",
    "eigvals",
    "eigvalsh",
    "expm",
    "inv",
    "lstsq",
    "matmul",
    "matrix_norm",
    "matrix_power",
    "matrix_rank",
    "matrix_transpose",
    "outer",
    "pinv",
    "qr",
    "slogdet",
    "solve",
    "solve_triangular",
    "sqrtm",
    "svd",
    "svdvals",
    "tensordot",
    "trace",
    "vecdot",
    "vector_norm",
]
hints.install(__name__)
