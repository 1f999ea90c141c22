"""Rules turn particles into a scalar whose gradient trains."""
