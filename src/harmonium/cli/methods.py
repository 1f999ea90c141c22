"""Ways to evaluate, with the settings that flags give them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from harmonium.evaluate.ais import AIS
    from harmonium.evaluate.bracket import Bracket

_SETTINGS = {
    "ais": ("annealing", ("chains", "temperatures")),
    "bracket": ("a bracket", ("ladders", "chains", "rungs", "sweeps", "burn_in")),
}


def with_settings(method: str, given: dict[str, Any]) -> str | AIS | Bracket:
    """The method, with those of the flags that were given; raises `SettingError` for one that it does not have."""
    from harmonium.errors import SettingError
    from harmonium.evaluate.ais import AIS
    from harmonium.evaluate.bracket import Bracket

    set_here = {name: value for name, value in given.items() if value is not None}
    _, known = _SETTINGS.get(method, ("", ()))
    for name, value in set_here.items():
        if name not in known:
            owners = [(what, owner) for owner, (what, its) in _SETTINGS.items() if name in its]
            whose = " and ".join(what for what, _ in owners)
            cure = " or ".join(f"--method {owner}" for _, owner in owners)
            use = "may or may not choose; ask for it with" if method == "auto" else "has no use for; use"
            raise SettingError(
                f"--{name.replace('_', '-')} {value} is a setting of {whose}, which --method {method} {use} {cure}"
            )
    if method == "ais":
        return AIS(**set_here)
    return Bracket(**set_here) if method == "bracket" else method
