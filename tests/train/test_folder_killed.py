import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from harmonium.errors import RunBusyError
from harmonium.train.folder import LOCK, RunFolder

HOLDER = """
import sys, time
from harmonium.train.folder import RunFolder
folder = RunFolder.create(sys.argv[1])
folder.write_config({"seed": 1})
folder.append_metrics({"index": 1})
print("locked", "jax" in sys.modules, flush=True)
time.sleep(60)
"""


def test_a_second_process_is_refused_and_a_killed_one_lets_go(tmp_path: Path) -> None:
    path = tmp_path / "run"
    with subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(path)], stdout=subprocess.PIPE, text=True
    ) as holder:
        try:
            assert holder.stdout is not None
            assert (
                holder.stdout.readline() == "locked False\n"
            )  # and without the second and a half that jax takes
            folder = RunFolder.open(path)
            with pytest.raises(
                RunBusyError, match=f"another process is writing in {path}; wait until it ends"
            ):
                folder.lock()
            with pytest.raises(RunBusyError):
                RunFolder.create(path, force=True)
            assert folder.read_metrics() == [{"index": 1}]
        finally:
            holder.send_signal(signal.SIGKILL)
    with folder:
        folder.append_metrics({"index": 2})
    assert len(folder.read_metrics()) == 2
    with RunFolder.create(path, force=True):
        pass


@pytest.mark.parametrize("kind", ["config", "data"])
@pytest.mark.parametrize("moment", ["before-temp", "mid-temp", "after-temp", "after-rename"])
def test_a_kill_leaves_the_old_file_or_the_new_one(
    tmp_path: Path, killed: Callable[..., int], kind: str, moment: str
) -> None:
    program = """
        import numpy as np
        from harmonium.train.folder import RunFolder
        folder = RunFolder.create("run")
        for n in (1, 2, 3):
            folder.write_config({"seed": n})
            folder.write_data({"x": np.full(9, n)}, {"n": n})
        """
    killed(f"{kind}.{moment}:2", program)
    with RunFolder.open(tmp_path / "run") as folder:
        new = moment == "after-rename"
        assert folder.read_config() == {"seed": 1 + (new or kind == "data")}
        assert folder.read_data()[1] == {"n": 1 + (new and kind == "data")}
        folder.write_config({"seed": 9})
        folder.write_data({}, {})
    assert sorted(os.listdir(tmp_path / "run")) == [LOCK, "config.toml", "data.safetensors"]
