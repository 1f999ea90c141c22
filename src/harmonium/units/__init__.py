"""Layers of variables: one file per kind, each known to the rest by its natural parameter alone."""
