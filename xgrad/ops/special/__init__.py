"""Special functions under SciPy's names, computed by kernels of the array libraries.

Derivatives consist of functions of `xgrad.special`, and so are differentiable to any order. The
formulas are from the NIST Digital Library of Mathematical Functions, https://dlmf.nist.gov.
"""
