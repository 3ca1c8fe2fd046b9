"""Special functions under SciPy's names, computed by kernels of the array libraries.

Derivatives are composed of functions of `xgrad.special`, so they are differentiable to any order.
The formulas are from the NIST Digital Library of Mathematical Functions, https://dlmf.nist.gov.
"""
