"""Published figures and tables made again, one file each: a configuration, its run, a table beside the one in print."""
