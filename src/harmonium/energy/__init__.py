"""Undirected models: an energy, the fields it puts on every layer, and block Gibbs sweeps."""
