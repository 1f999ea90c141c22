"""The errors and warnings of harmonium.

Every error says in one sentence what was wrong, with its value, and what to do about it. The command line turns each
kind into an exit status, so a kind is chosen by *whose fault it is*: the caller's words, the data, a file, or the run.
"""


class HarmoniumError(Exception):
    """Root of every error that harmonium raises on purpose."""


class SettingError(HarmoniumError, ValueError):
    """A setting, name or argument that cannot be honoured."""


class DataError(HarmoniumError, ValueError):
    """Data that do not fit the model: out of range, not finite, of the wrong width, or empty."""


class BudgetError(HarmoniumError, ValueError):
    """An exact computation that would cost more than its budget allows."""


class FileError(HarmoniumError, OSError):
    """A file that is missing, damaged, of another format, or already there."""


class RunBusyError(HarmoniumError, OSError):
    """A run folder in which another process is writing."""


class DivergenceError(HarmoniumError, ArithmeticError):
    """A training run whose parameters stopped being finite or whose model left the data behind."""


class MissingExtraError(HarmoniumError, ImportError):
    """An optional feature whose extra is not installed."""


class HarmoniumWarning(UserWarning):
    """Something a reader of the result should know, though the work went on."""
