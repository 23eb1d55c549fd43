import json

import pytest
from click import Group
from click.testing import CliRunner

from searchsvc import __version__
from searchsvc.cli import main
from tests.notes import write_notes


@pytest.fixture
def run(tmp_path, monkeypatch):
    monkeypatch.setenv("SEARCHSVC_MODEL", "none")
    monkeypatch.setenv("SEARCHSVC_INSTANT_MODEL", "none")
    (tmp_path / "empty.yaml").touch()
    monkeypatch.setenv("SEARCHSVC_CONFIG", str(tmp_path / "empty.yaml"))
    monkeypatch.setenv("SEARCHSVC_DATA_DIR", str(tmp_path / "data"))
    write_notes(tmp_path / "notes")
    monkeypatch.chdir(tmp_path / "notes")

    def invoke(*arguments):
        return CliRunner().invoke(main, arguments)

    return invoke


def test_index_tells_what_it_did_and_a_second_run_finds_nothing_to_do(run):
    assert "notes: 6 notes added" in run("index", ".").output
    assert "0 notes added, 0 changed, 0 removed, 6 unchanged" in run("index", ".").output


def test_index_names_a_root(run):
    assert "wiki: 6 notes added" in run("index", ".", "--name", "wiki").output
    assert "root wiki: 6 notes" in run("status").output


def test_search_shows_rank_path_lines_heading_path_and_snippet(run):
    result = run("search", "water tomatoes")
    assert result.exit_code == 0
    assert " 1 garden/tomatoes.md:9-12" in result.output
    assert "Tomatoes > Watering" in result.output
    assert "Water tomatoes deeply" in result.output


def test_search_prints_json_with_channels_and_terms(run):
    result = json.loads(run("search", "water tomatoes", "--json", "--explain").output)
    best = result["hits"][0]
    assert best["section"]["slug"] == "watering"
    assert best["channels"]["lexical"]["rank"] == 1
    assert set(best["terms"]) == {"water", "tomato"}


def test_search_with_a_budget_prints_the_reply_of_an_agent(run):
    result = run("search", "water tomatoes", "--budget", "300")
    assert "=== 1. garden/tomatoes.md#watering" in result.output


def test_search_filters_by_path_and_tag(run):
    result = json.loads(run("search", "tomatoes", "--json", "--path", "kitchen").output)
    assert {hit["path"] for hit in result["hits"]} == {"kitchen/soup.md"}
    result = json.loads(run("search", "heap", "--json", "--tag", "garden").output)
    assert {hit["path"] for hit in result["hits"]} == {"garden/compost.md"}


def test_nothing_found_has_an_exit_code_of_its_own(run):
    result = run("search", "xylophone quartet")
    assert result.exit_code == 3
    assert "Nothing relevant" in result.output


def test_an_error_is_one_line_and_what_is_not_there_has_the_code_of_nothing_found(run):
    result = run("search", "tomatoes", "--path", "gardn")
    assert result.exit_code == 3
    assert "nearest: 'garden'" in result.output
    assert "Traceback" not in result.output


def test_a_folder_that_is_none_is_named_with_what_was_found(run):
    result = run("index", "index.md")
    assert result.exit_code == 2
    assert "index.md: found a file, expected a folder" in result.output


def test_find_lists_notes_and_their_regions(run):
    result = run("find", "tomatoes")
    assert result.exit_code == 0
    assert "garden/tomatoes.md" in result.output


def test_status_tells_notes_sections_and_links(run):
    run("index", ".")
    output = run("status").output
    assert "6 notes" in output
    assert "model: none" in output


def test_what_config_show_prints_can_be_a_config_file(run, tmp_path):
    file = tmp_path / "pasted.yaml"
    file.write_text(run("config", "show").output)
    assert (
        run("--config", str(file), "config", "show").output.splitlines()[1:]
        == file.read_text().splitlines()[1:]
    )


def test_a_budget_that_is_too_small_or_a_cursor_without_budget_is_wrong_usage(run):
    assert run("search", "tomatoes", "--budget", "5").exit_code == 2
    assert run("search", "tomatoes", "--cursor", "3-abcdef").exit_code == 2


def test_a_config_file_named_in_the_environment_must_exist(run, monkeypatch, tmp_path):
    monkeypatch.setenv("SEARCHSVC_CONFIG", str(tmp_path / "missing.yaml"))
    result = run("status")
    assert result.exit_code == 2
    assert "no config file" in result.output


@pytest.mark.parametrize("value", ["nan", "-1", "soon", "0.1"])
def test_a_number_out_of_range_is_refused(run, monkeypatch, value):
    monkeypatch.setenv("SEARCHSVC_RESCAN_SECONDS", value)
    result = run("status")
    assert result.exit_code == 2
    assert "rescan_seconds" in result.output


def test_an_unknown_model_is_refused_at_once(run):
    result = run("status", "--model", "nomodel")
    assert result.exit_code == 1
    assert "no model named 'nomodel'" in result.output


def test_a_folder_without_notes_is_said_to_be_one(run, tmp_path):
    (tmp_path / "bare").mkdir()
    assert "no Markdown files found" in run("index", str(tmp_path / "bare")).output


def test_config_show_prints_every_setting(run, tmp_path):
    output = run("config", "show").output
    assert f"data_dir: {tmp_path / 'data'}" in output
    assert "model: none" in output


def test_an_unknown_setting_in_the_config_file_names_the_nearest(run, tmp_path):
    file = tmp_path / "bad.yaml"
    file.write_text("modle: none\n")
    result = run("--config", str(file), "status")
    assert result.exit_code == 2
    assert "did you mean 'model'?" in result.output


def test_version_and_help_are_there(run):
    assert __version__ in run("--version").output
    for command in ("index", "search", "find", "serve", "status", "config"):
        assert command in run("--help").output
        assert "Usage" in run(command, "--help").output


def every_command(group):
    for command in group.commands.values():
        yield command
        if isinstance(command, Group):
            yield from every_command(command)


def test_options_of_the_whole_program_may_stand_behind_any_command(run, tmp_path):
    ours = {name for option in main.params for name in option.opts}
    assert ours == {"--config", "--data-dir", "--version"}
    for command in every_command(main):
        assert ours <= {name for option in command.params for name in option.opts}, command.name
    elsewhere = str(tmp_path / "elsewhere")
    assert "6 notes added" in run("index", ".", "--data-dir", elsewhere).output
    for arguments in (["--data-dir", elsewhere, "status"], ["status", f"--data-dir={elsewhere}"]):
        assert "6 notes" in run(*arguments).output
    assert "no index of this version yet" in run("status").output
    assert f"data_dir: {elsewhere}" in run("config", "show", "--data-dir", elsewhere).output
    (tmp_path / "own.yaml").write_text("max_reply_tokens: 777\n", encoding="utf-8")
    assert "max_reply_tokens: 777" in run("config", "show", "--config", str(tmp_path / "own.yaml")).output


def test_results_name_their_notes_as_other_commands_take_them(run, tmp_path):
    for name in ("one", "two"):
        write_notes(tmp_path / name, {"a.md": f"# A\n\nTomatoes of {name}.\n"})
    roots = ("--root", str(tmp_path / "one"), "--root", str(tmp_path / "two"))
    assert " 1 one:a.md:1-3" in run("search", "tomatoes one", *roots).output
    assert "Tomatoes of one." in run("read", "one:a.md:1-3", *roots).output
