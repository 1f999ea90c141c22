"""Data names: parsing, refusals with the nearest name, and the table of parameters."""

import inspect

import pytest

from harmonium.data import data_names, data_parameters, describe_name, load_data
from harmonium.data.names import _NAMED, given_parameters
from harmonium.errors import SettingError


def test_names_of_the_contract():
    assert {"digits", "bars-and-stripes", "shifting-bars"} <= set(data_names())


@pytest.mark.parametrize("entry", _NAMED, ids=lambda entry: entry.name)
def test_listed_parameters_are_those_of_the_function(entry):
    takes = inspect.signature(entry.build).parameters
    assert tuple(takes) == tuple(parameter.name for parameter in entry.parameters)
    for parameter in entry.parameters:
        default = takes[parameter.name].default
        if default is not None:
            assert parameter.default == str(default).lower()
        assert f"  {parameter.name}=" in describe_name(entry.name)


def test_parameters_become_values():
    assert given_parameters("bars-and-stripes:side=3, repeat=TRUE") == {"side": 3, "repeat": True}
    assert given_parameters("digits") == given_parameters("digits:") == {}
    assert [p.name for p in data_parameters("shifting-bars:length=9")] == ["length", "bar"]


@pytest.mark.parametrize(
    ("name", "said"),
    [
        (
            "bars-and-stripes:sides=4",
            r"no parameter 'sides' \(did you mean 'side'\?\); its parameters are side, repeat",
        ),
        ("shifting-bars:q=4", "no parameter 'q'; its parameters are length, bar"),
        ("digits:gray=true", r"did you mean 'grey'"),
        ("digits:grey", r"write grey=true\|false instead of 'grey'"),
        ("digits:grey=1", "grey must be true or false, got '1'"),
        ("bars-and-stripes:side=4.0", "side must be a whole number, got '4.0'"),
        ("bars-and-stripes:side=", "side must be a whole number, got ''"),
        ("bars-and-stripes:side=4,side=5", "side is given twice"),
        ("digit", r"no data name or file 'digit' \(did you mean 'digits'\?\); the names are digits, bars"),
        ("bars_and_stripes:side=4", "did you mean 'bars-and-stripes'"),
        ("mnist", r"no data name or file 'mnist' \(did you mean 'mnist-5k'\?\)"),
        ("faces", "no data name or file 'faces'; the names are"),
        ("", "no data name or file ''"),
    ],
)
def test_wrong_names_are_refused_with_the_cure(name, said):
    with pytest.raises(SettingError, match=said):
        load_data(name)


def test_unknown_names_are_refused_by_the_lists():
    with pytest.raises(SettingError, match="did you mean 'digits'"):
        data_parameters("digitss")
    with pytest.raises(SettingError, match="there is no data name 'x'; the names are"):
        describe_name("x")
