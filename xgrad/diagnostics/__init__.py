"""Diagnosis of computations: anomalies, interception of ops and their rules, memory."""
