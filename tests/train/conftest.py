import os
import signal
import subprocess
import sys
import textwrap
from collections.abc import Callable
from pathlib import Path

import pytest

Killed = Callable[..., int]


@pytest.fixture
def killed(tmp_path: Path) -> Killed:
    """Runs a program in ``tmp_path`` with a fault armed; it must die by SIGKILL, so that no test kills nothing.

    Returns how many lines the program printed before it died.
    """

    def run(fault: str, program: str) -> int:
        done = subprocess.run(
            [sys.executable, "-c", textwrap.dedent(program)],
            cwd=tmp_path,
            env={**os.environ, "HARMONIUM_FAULT": fault},
            capture_output=True,
            text=True,
            timeout=60,
        )
        assert done.returncode == -signal.SIGKILL, done.stderr
        return len(done.stdout.splitlines())

    return run
