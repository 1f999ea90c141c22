"""Training: the state of a run, the compiled loop, and everything that keeps a run from being lost."""
