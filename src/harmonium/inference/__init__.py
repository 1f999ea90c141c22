"""The positive phase: how hidden layers are inferred once the data are clamped."""
