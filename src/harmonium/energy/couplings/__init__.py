"""Couplings between two neighbouring layers; nothing else knows the layout of a weight."""
