"""The command line: one file per verb, and no training logic.

Nothing here is imported before it is needed: ``harmonium --help`` loads neither jax nor numpy.
"""
