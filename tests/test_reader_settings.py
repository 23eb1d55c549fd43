"""The settings of the reader: off unless said, and imports beside the roots only when wanted."""

import pytest

from searchsvc.config import Config, imports_dir, load, with_imports
from searchsvc.errors import ConfigError
from tests.notes import write_notes


def test_arguments_about_models_are_off_unless_the_operator_says_so(tmp_path):
    roots = {"roots": str(write_notes(tmp_path / "notes"))}
    assert load(roots, environment={}).allow_provider_arguments is False
    assert load(roots, environment={"SEARCHSVC_ALLOW_PROVIDER_ARGUMENTS": "yes"}).allow_provider_arguments
    with pytest.raises(ConfigError, match="allow_provider_arguments.*true or false"):
        load(roots, environment={"SEARCHSVC_ALLOW_PROVIDER_ARGUMENTS": "perhaps"})


def test_imports_are_one_more_root_when_they_are_wanted(tmp_path):
    settings = {"roots": str(write_notes(tmp_path / "notes")), "data_dir": str(tmp_path / "data")}
    assert [root.name for root in load(settings, environment={}).roots] == ["notes"]
    assert not (tmp_path / "data").exists()
    config = load(settings | {"include_imports": True}, environment={})
    assert [root.name for root in config.roots] == ["notes", "imports"]
    assert config.roots[1].path == imports_dir(config)
    assert config.roots[1].path.is_dir()
    assert with_imports(config) == config


def test_a_root_of_the_same_name_keeps_it(tmp_path):
    settings = {"roots": str(write_notes(tmp_path / "imports")), "data_dir": str(tmp_path / "data")}
    config = load(settings | {"include_imports": True}, environment={})
    assert [root.name for root in config.roots] == ["imports", "imports-2"]


def test_a_folder_that_cannot_be_made_is_an_error_that_says_what_to_do(tmp_path):
    (tmp_path / "data").write_text("a file", encoding="utf-8")
    with pytest.raises(ConfigError, match="choose another data_dir"):
        with_imports(Config(data_dir=tmp_path / "data"))
