import getpass
import json
import os
import socket

import pytest

from harmonium.train.environment import describe_environment, differences


def test_it_names_versions_devices_and_switches() -> None:
    described = describe_environment()
    assert described["packages"]["jax"]
    assert described["packages"]["numpy"]
    assert described["python"]["version"]
    assert described["devices"]
    assert described["jax"]["jax_default_prng_impl"]
    assert described["cpu"]["count"] >= 1


def test_it_says_nothing_about_the_person_or_the_place(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XLA_FLAGS", "--xla_dump_to=/home/me/dump --xla_cpu_enable_fast_math=false")
    described = describe_environment()
    text = json.dumps(described)
    assert described["xla_flags"] == ["--xla_cpu_enable_fast_math=false"]
    for private in (os.getcwd(), os.path.expanduser("~"), "/home/me", socket.gethostname()):
        assert private not in text
    assert getpass.getuser() not in text.split('"')
    assert text == json.dumps(describe_environment())  # no clock


def test_differences_are_named() -> None:
    old = {"packages": {"jax": "0.10.2", "numpy": "2.4"}, "cpu": {"features": ["avx"]}}
    new = {
        "packages": {"jax": "0.11.0", "numpy": "2.4", "optax": "1"},
        "cpu": {"features": ["avx", "avx512f"]},
    }
    assert differences(old, old) == []
    assert differences(old, new) == [
        "cpu.features was ['avx'], is ['avx', 'avx512f']",
        "packages.jax was '0.10.2', is '0.11.0'",
        "packages.optax was None, is '1'",
    ]
