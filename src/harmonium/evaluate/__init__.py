"""Evaluators turn models into numbers with a direction and an error."""
