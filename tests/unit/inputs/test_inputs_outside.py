"""What a trial is made of lies in its folder: a bundle holds nothing else, and elsewhere it would be another file."""

from pathlib import Path, PurePosixPath

import pytest

from kerneltrial.inputs.config import read
from kerneltrial.inputs.problem import InputProblem
from kerneltrial.inputs.sources import leads_out, sources

CLONE = Path(__file__).resolve().parents[3]


@pytest.mark.parametrize(
    ("path", "out"),
    [
        ("a/../b", False),
        ("a/b/../../c", False),
        ("../a", True),
        ("a/../../b", True),
        ("/a", True),
    ],
)
def test_a_path_that_leaves_the_folder_even_for_a_moment_is_seen(path: str, out: bool) -> None:
    assert leads_out(PurePosixPath(path)) == out


@pytest.mark.parametrize("key", ["contract", "baseline", "cases", "oracle", "holdout", "space"])
def test_a_config_names_nothing_outside(tmp_path: Path, key: str) -> None:
    with pytest.raises(InputProblem, match=f"{key}: ../there leads out of the config's folder"):
        read(CLONE / "config.yaml", {key: "../there"})


@pytest.mark.parametrize(
    ("file", "line", "named"),
    [
        ("contract", 'include_folders: ["../outside"]', "../outside"),
        ("contract", 'include_folders: ["/usr/include"]', "/usr/include"),
        ("cases", "cases: [{inputs: {a: {path: ../outside/a.npy}}}]", "../outside/a.npy"),
        ("space", "source: ../outside/space.cu", "../outside/space.cu"),
    ],
)
def test_nor_does_a_file_that_it_names(tmp_path: Path, file: str, line: str, named: str) -> None:
    (tmp_path / "outside").mkdir()
    (tmp_path / "trial").mkdir()
    config = read(CLONE / "config.yaml", {})
    for key in ("contract", "cases", "space"):
        (tmp_path / "trial" / f"{key}.yaml").write_text(line + "\n" if key == file else "source: s.cu\n")
    (tmp_path / "trial/s.cu").write_text("")

    class Named:
        proposer = "search"

        def __getattr__(self, key: str) -> object:
            return f"{key}.yaml" if key in ("contract", "cases", "space") else getattr(config, key)

    with pytest.raises(InputProblem, match="leads out of the trial's folder") as caught:
        sources(Named(), tmp_path / "trial")
    assert named in str(caught.value)
    assert str(caught.value).count("\n") == 0
