"""What lies in results is a plain file or a folder; and what is printed of names steers no terminal."""

import os

import pytest

from kerneltrial.store.plain import require_plain
from kerneltrial.store.printed import printed
from kerneltrial.store.problem import StoreProblem


@pytest.fixture
def root(tmp_path):
    (tmp_path / "results/t/iterations/0001").mkdir(parents=True)
    (tmp_path / "results/t/lock.json").write_text("{}")
    (tmp_path / "results/t/iterations/0001/build.json").write_text("{}")
    return tmp_path


def refused(root, links=True):
    with pytest.raises(StoreProblem) as caught:
        require_plain(root, "results/t", links=links)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_a_trial_as_it_is_made_is_taken(root):
    require_plain(root, "results/t", "reports/t")


def test_a_folder_in_the_place_of_a_record_is_named(root):
    (root / "results/t/decision.json").mkdir()
    assert refused(root).startswith("results/t/decision.json: is a folder where a file belongs")


def test_a_folder_in_the_place_of_an_object_is_named(root):
    name = "ab" + "0" * 62
    (root / f"results/t/objects/sha256/ab/{name}").mkdir(parents=True)
    assert name in refused(root)


def test_a_pipe_is_named_and_not_waited_for(root):
    os.mkfifo(root / "results/t/iterations/0001/timing.json")
    assert refused(root).startswith("results/t/iterations/0001/timing.json: is a pipe")


def test_a_link_to_nothing_is_named(root):
    (root / "results/t/prize.json").symlink_to("nowhere")
    assert "prize.json: is a link to nothing" in refused(root)


def test_a_bundle_holds_no_links_at_all(root):
    (root / "results/t/prize.json").symlink_to("lock.json")
    require_plain(root, "results/t")
    assert "prize.json: is a link where a file belongs" in refused(root, links=False)


def test_results_that_are_no_folder_are_named(tmp_path):
    (tmp_path / "results").write_text("x")
    assert refused(tmp_path).startswith("results: is a file where a folder belongs")
    (tmp_path / "results").unlink()
    (tmp_path / "results").symlink_to("nowhere")
    assert refused(tmp_path).startswith("results: is a link to nothing where a folder belongs")


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("results/a b.json", "results/a b.json"),
        ("a\x1b[31m\n\nall whole", "a\\x1b[31m\\n\\nall whole"),
        ("a\r\x9bb", "a\\r\\x9bb"),
        ("a\xa0b\u3000c", "a\xa0b\u3000c"),
        ("\u202egpj", "\\u202egpj"),
        ("\udcff", "\\udcff"),
        ("\u204f\ubcf4\uace0\uc11c", "\u204f\ubcf4\uace0\uc11c"),
    ],
)
def test_what_steers_a_terminal_is_escaped(text, shown):
    assert printed(text) == shown
