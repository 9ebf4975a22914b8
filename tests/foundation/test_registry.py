"""Names that can be added to from outside."""

import logging
from importlib.metadata import EntryPoint

import pytest
from refusals import refused

from pren.foundation import registry
from pren.foundation.registry import Registry


@pytest.fixture
def fruit():
    names = Registry("fruit")
    names.add("apple", "A")
    names.add("pear", "P")
    return names


@pytest.fixture
def plugins(monkeypatch):
    """Pretend that packages with these entry points are installed."""

    def install(*points):
        monkeypatch.setattr(registry, "entry_points", lambda group: [p for p in points if p.group == group])
        registry.load_plugins.cache_clear()

    yield install
    registry.load_plugins.cache_clear()


def test_it_is_a_mapping_in_the_order_of_addition(fruit):
    assert dict(fruit) == {"apple": "A", "pear": "P"}
    assert list(fruit) == ["apple", "pear"]
    assert len(fruit) == 2


def test_an_unknown_name_is_answered_with_the_nearest(fruit):
    with refused("unknown-name"):
        fruit["aple"]


def test_nothing_to_offer():
    with refused("unknown-name"):
        Registry("fruit")["fig"]


def test_a_default_for_an_unknown_name(fruit):
    assert fruit.get("apple") == "A"
    assert fruit.get("fig") is None
    assert fruit.get("fig", "F") == "F"


def test_a_decorator_registers_and_returns_what_it_decorates(fruit):
    @fruit.register("fig")
    def fig():
        return "F"

    assert fruit["fig"] is fig


def test_a_name_stands_for_one_thing(fruit):
    with refused("name-taken"):
        fruit.add("apple", "another")
    fruit.add("apple", "A")


def test_names_by_pattern(fruit):
    assert fruit.matching("*p*e*") == ["apple", "pear"]
    assert fruit.matching("p*") == ["pear"]


def test_a_plugin_is_imported_when_a_name_is_looked_up(fruit, plugins, tmp_path, monkeypatch):
    (tmp_path / "orchard.py").write_text("import basket\nbasket.fruit.add('plum', 'from outside')\n")
    (tmp_path / "basket.py").write_text("fruit = None\n")
    monkeypatch.syspath_prepend(tmp_path)
    import basket

    basket.fruit = fruit
    plugins(EntryPoint("orchard", "orchard", registry.PLUGINS))
    assert "plum" in fruit
    assert fruit["plum"] == "from outside"


def test_a_broken_plugin_is_named_and_left_out(fruit, plugins, caplog):
    plugins(EntryPoint("rotten", "no_such_module_anywhere", registry.PLUGINS))
    with caplog.at_level(logging.WARNING):
        assert fruit["apple"] == "A"
    assert "rotten" in caplog.text
