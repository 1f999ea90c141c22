"""Numbers only: no probability model is known in this folder."""
