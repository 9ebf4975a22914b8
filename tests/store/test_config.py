"""Configurations: one schema for YAML files, the command line and Python."""

from pathlib import Path

import pytest
from refusals import refused

from pren.methods.pren import PrEN
from pren.methods.rivals.eszsl import ESZSL
from pren.store.config import RunConfig, parse_config, read_yaml


class TestResolved:
    def test_every_parameter_is_written_out(self):
        assert RunConfig(data="my.npz", method="pren").resolved().params == PrEN().get_params()
        assert RunConfig(data="my.npz", method="eszsl").resolved().params == ESZSL().get_params()

    @pytest.mark.parametrize("data", ["numbers", "numbers-features", "my.npz"])
    def test_the_data_choose_no_parameters(self, data):
        assert RunConfig(data=data, method="pren").resolved().params == PrEN().get_params()

    def test_what_is_asked_for_wins_over_defaults(self):
        params = RunConfig(data="numbers", method="pren", params={"dim": 3}).resolved().params
        assert params == {**PrEN().get_params(), "dim": 3}

    def test_a_variants_own_parameters_are_there(self):
        params = RunConfig(data="my.npz", method="progressive").resolved().params
        assert (params["heads"], params["projection"], params["subsets"]) == (1, False, "all")

    def test_resolving_twice_changes_nothing(self):
        once = RunConfig(data="numbers", method="progressive", params={"hidden": [3]}).resolved()
        assert once.resolved() == once
        assert once.params["hidden"] == (3,)

    def test_the_original_stays_as_it_was(self):
        config = RunConfig(data="numbers", method="pren", params={"hidden": [3]})
        config.resolved()
        assert config.params == {"hidden": [3]}

    def test_mistakes_are_found(self):
        with refused("unknown-name"):
            RunConfig(data="numbers", method="pern").resolved()
        with refused("param-value"):
            RunConfig(data="numbers", method="pren", params={"ronds": 3}).resolved()

    def test_a_variant_cannot_be_made_another_method(self):
        config = RunConfig(data="numbers", method="progressive", params={"heads": 7})
        with refused("param-preset"):
            config.resolved().create_method()


class TestDifference:
    def test_no_difference(self):
        config = RunConfig(data="a.npz").resolved()
        assert config.difference(config.model_copy()) == []

    def test_the_record_does_not_count(self):
        config = RunConfig(data="a.npz").resolved()
        assert config.difference(config.model_copy(update={"record": {"command": "x"}})) == []

    def test_every_difference_is_named_with_both_values(self):
        one = RunConfig(data="a.npz", method="pren", params={"heads": 3}).resolved()
        two = RunConfig(data="numbers", method="pren", params={"heads": 4}, setting="gzsl").resolved()
        assert one.difference(two) == ["data: 'a.npz', 'numbers'", "setting: 'zsl', 'gzsl'", "params.heads: 3, 4"]

    def test_where_the_data_are_is_no_difference(self):
        one, two = (RunConfig(data=data, root=root).resolved() for data, root in (("a.npz", "x"), ("b/c.npz", "y")))
        assert one.difference(two) == []

    def test_parameters_that_only_one_has_are_named(self):
        one, two = (RunConfig(data="a.npz", method=method).resolved() for method in ("eszsl", "pren"))
        assert "params.heads: None, 50" in one.difference(two)
        assert "params.feature_reg: 1.0, None" in one.difference(two)


class TestFolders:
    def test_a_folder_is_kept_like_a_file(self, tmp_path, monkeypatch):
        monkeypatch.chdir(tmp_path)
        (tmp_path / "mydata").mkdir()
        (tmp_path / "numbers").mkdir()
        config = RunConfig(data="mydata")
        recorded = config.for_record({})
        assert recorded.data == str(tmp_path / "mydata")
        assert RunConfig(data="numbers").for_record({}).data == "numbers"
        (tmp_path / "mydata").rename(tmp_path / "moved")
        assert recorded.is_path()
        assert recorded.resolved().difference(RunConfig(data="moved").resolved()) == []
        assert recorded.record["id"] == RunConfig(data="moved").for_record({}).record["id"]

    @pytest.mark.parametrize("data", ["numbers", "mydata"])
    def test_names_are_no_paths(self, data, tmp_path, monkeypatch):
        monkeypatch.chdir(tmp_path)
        assert not RunConfig(data=data).is_path()


class TestOptions:
    def test_they_reach_the_data_set(self):
        options = {"per_class": 1, "pool_per_class": 2, "shift": {"noise": 0}}
        problem, _ = RunConfig(data="numbers", options=options).load_data()
        assert (len(problem.train), len(problem.pool)) == (80, 40)
        assert problem.source["shift"]["noise"] == 0

    def test_unknown_ones_are_refused(self):
        with refused("data-option-unknown"):
            RunConfig(data="numbers", options={"fold": 1}).load_data()

    def test_every_difference_is_named(self):
        one = RunConfig(data="cub", options={"fold": 1, "train_on": "all"}).resolved()
        two = RunConfig(data="cub", options={"fold": 2, "train_on": "all", "features": "x.mat"}).resolved()
        assert one.difference(two) == ["options.fold: 1, 2", "options.features: None, 'x.mat'"]

    def test_where_a_file_is_makes_no_difference(self):
        one, two, three = (
            RunConfig(data="cub", options={"features": path}).resolved() for path in ("x.mat", "a/x.mat", "a/y.mat")
        )
        assert one.difference(two) == []
        assert two.difference(three) == ["options.features: 'x.mat', 'y.mat'"]
        ids = [config.for_record({}).record["id"] for config in (one, two, three)]
        assert ids[0] == ids[1] != ids[2]

    def test_where_a_folder_is_and_what_it_is_called_makes_no_difference(self):
        options = ({"images": True}, {"images": "photos"}, {"images": Path("a/birds")}, {"images": False}, {})
        usual, bare, path, no, nothing = (RunConfig(data="cub", method="pren", options=o).resolved() for o in options)
        assert usual.difference(bare) == bare.difference(path) == path.difference(usual) == []
        assert path.difference(no) == ["options.images: True, False"]
        assert nothing.difference(bare) == ["options.images: None, True"]
        ids = [config.for_record({}).record["id"] for config in (usual, bare, path, no, nothing)]
        assert ids[0] == ids[1] == ids[2]
        assert len(set(ids)) == 3

    def test_only_options_that_name_files_are_paths(self):
        one, two = (RunConfig(data="numbers", options={"features": path}).resolved() for path in ("a/x", "b/x"))
        assert one.difference(two)

    def test_paths_hold_in_any_working_folder(self, tmp_path, monkeypatch):
        monkeypatch.chdir(tmp_path)
        for given, kept in (
            ("a/x.mat", str(tmp_path / "a/x.mat")),
            ("./x.mat", str(tmp_path / "x.mat")),
            ("x.mat",) * 2,
        ):
            config = RunConfig(data="cub", options={"features": given, "fold": 1}).for_record({})
            assert config.options == {"features": kept, "fold": 1}
        for given, kept in (("a/b", str(tmp_path / "a/b")), ("b", str(tmp_path / "b")), (True,) * 2, (None,) * 2):
            assert RunConfig(data="cub", options={"images": given}).for_record({}).options == {"images": kept}

    def test_they_are_part_of_the_identity(self):
        ids = {RunConfig(data="cub", options=o).for_record({}).record["id"] for o in ({}, {"fold": 1}, {"fold": 2})}
        assert len(ids) == 3

    def test_where_weights_are_makes_no_difference(self):
        one, two, three = (
            RunConfig(data="x.npz", extractor={"weights": weights}).resolved()
            for weights in ("a.pth", "b/a.pth", "random")
        )
        assert one.difference(two) == []
        assert one.difference(three)
        assert one.identity({}) == two.identity({}) != three.identity({})

    def test_they_survive_being_written(self, tmp_path):
        config = RunConfig(data="cub", options={"features": "x.mat", "fold": 1, "train_on": None})
        path = tmp_path / "config.yaml"
        path.write_text(config.to_yaml(), encoding="utf-8")
        assert parse_config(read_yaml(path), "here") == config


class TestYaml:
    @pytest.mark.parametrize(
        "text", ["numbers", "a b", "ä/日本", "null", "1.5", "[x]", "a: b # c", "'\"", "x\ny", "!!int 3"]
    )
    def test_a_configuration_survives_being_written(self, tmp_path, text):
        params = {"hidden": (3, 4), "completion": "null"}
        config = RunConfig(data=f"{text}.npz", root=text, method="pren", setting="gzsl", params=params).resolved()
        path = tmp_path / "config.yaml"
        path.write_text(config.to_yaml(), encoding="utf-8")
        again = parse_config(read_yaml(path), "here")
        assert again.resolved() == config
        assert again.resolved().difference(config) == []

    def test_floats_survive_to_the_bit(self, tmp_path):
        for value in (1e-3, 0.1 + 0.2, 1e-300, 123456789.123456789):
            path = tmp_path / "config.yaml"
            path.write_text(RunConfig(data="x.npz", params={"gamma": value}).resolved().to_yaml())
            assert parse_config(read_yaml(path), "here").resolved().params["gamma"] == value

    @pytest.mark.parametrize("content", ["", "just text", "- a\n- b", "3"])
    def test_a_file_that_is_no_mapping(self, tmp_path, content):
        path = tmp_path / "config.yaml"
        path.write_text(content)
        with refused("config-form"):
            read_yaml(path)

    @pytest.mark.parametrize("content", [b"a: [1, 2", b"a: b: c", b"\xff\xfe\x00", b"a: \x01"])
    def test_a_file_that_is_no_yaml(self, tmp_path, content):
        path = tmp_path / "config.yaml"
        path.write_bytes(content)
        with refused("yaml") as error:
            read_yaml(path)
        assert "\n" not in str(error.value)

    @pytest.mark.parametrize("content", ["data: 2001-99-99", "data: !!int abc", "data: !!float x", "a: &a [*a]\nb: 1"])
    def test_values_that_yaml_cannot_build(self, tmp_path, content):
        path = tmp_path / "config.yaml"
        path.write_text(content)
        with refused("yaml"):
            parse_config(read_yaml(path), str(path))

    def test_no_file(self, tmp_path):
        with refused("file-odd"):
            read_yaml(tmp_path / "nowhere.yaml")
        with refused("file-odd"):
            read_yaml(tmp_path)

    @pytest.mark.parametrize("tag", ["!!python/object/apply:pathlib.Path.touch", "!!python/object/new:pathlib.Path"])
    def test_tags_run_no_code(self, tmp_path, tag):
        path = tmp_path / "config.yaml"
        path.write_text(f"data: {tag} ['{tmp_path / 'trap'}']\n")
        with refused("yaml"):
            read_yaml(path)
        assert not (tmp_path / "trap").exists()

    @pytest.mark.parametrize(
        ("content", "facts"),
        [
            ({"data": "x", "methd": "pren"}, "here methd method"),
            ({}, "here data"),
            ({"data": 3}, "here data"),
            ({"data": "x", "setting": "gzls"}, "here setting 'zsl' 'gzsl'"),
            ({"data": "x", "params": [1]}, "here params"),
            ({"data": "x", "params": {1: 2}}, "here params"),
            ({"data": "x", 1: 2}, "here 1"),
        ],
    )
    def test_what_does_not_describe_a_run(self, content, facts):
        with refused(f"config-invalid {facts}"):
            parse_config(content, "here")
