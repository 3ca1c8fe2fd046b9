"""The call paths, a file for each subject of SciPy and scikit-learn."""
