"""A winner's case runs again from its file alone."""

import json

import pytest

pytestmark = pytest.mark.e2e


def cases(trial):
    return sorted((trial.folder / "reports/tiny").glob("best-case-*.json"))


def test_every_case_of_the_winner_runs_again_and_is_right(finished, tmp_path):
    assert [path.name for path in cases(finished)] == ["best-case-1.json", "best-case-2.json"]
    said = []
    for path in cases(finished):
        alone = tmp_path / path.name  # nothing of the trial lies beside it
        alone.write_bytes(path.read_bytes())
        done = finished.kerneltrial("rerun", str(alone), "--device", "cpu")
        assert done.returncode == 0, done.stdout + done.stderr
        said.append(done.stdout)
    assert "right: all 256 elements looked at" in said[0]
    assert "case large of tiny" in said[0]
    assert "case ragged of tiny" in said[1]


@pytest.mark.parametrize(
    ("change", "status", "words"),
    [
        (lambda told: told.update(source=told["source"].replace("fmaf(alpha, x[i], y[i])", "y[i]")), 1, "wrong: "),
        (lambda told: told.update(source="no C++"), 1, "was not built"),
        (lambda told: told["expected"]["out"]["want"].__setitem__(3, "7"), 1, "wrong: 1 of 103 elements"),
        (lambda told: told["case"].update(seed=99), 3, "are not those of the file"),
        (lambda told: told.pop("plan"), 3, "is no best case"),
    ],
)
def test_what_does_not_fit_is_told_in_a_line(finished, tmp_path, change, status, words):
    told = json.loads(cases(finished)[1].read_bytes())
    change(told)
    path = tmp_path / "changed.json"
    path.write_text(json.dumps(told))
    done = finished.kerneltrial("rerun", str(path), "--device", "cpu")
    text = done.stdout + done.stderr
    assert done.returncode == status, text
    assert words in text
    assert text.count("\n") == 1
