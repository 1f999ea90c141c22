"""The negative phase: one Markov kernel a file, all with the same two methods."""
