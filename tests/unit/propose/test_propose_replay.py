"""Replay: the digest and the first field that differs, and nothing that could reach a network."""

import ast
from pathlib import Path

import pytest

from kerneltrial.propose import replay
from kerneltrial.propose.openai.exchange import Answered, Exchange, Exchanges, Request
from kerneltrial.propose.problem import ProposerProblem
from kerneltrial.propose.replay import Replay


def request(content: str = "one two three", model: str = "m", sample: int = 0, **more: object) -> Request:
    body = {"model": model, "input": [{"role": "user", "content": content}], **more}
    return Request(api="responses", body=body, sample=sample)


def recorded(folder: Path, *requests: Request) -> Replay:
    for one in requests:
        Exchanges(folder).keep(Exchange(request=one, outcome=Answered(status=200, body="{}", lost=0)))
    return Replay(folder)


def test_a_recorded_reply_is_found_again(tmp_path):
    source = recorded(tmp_path, request(), request("other"))
    assert source.answer(request()).request == request()


@pytest.mark.parametrize(
    ("asked", "says"),
    [
        (request("one two four"), "body.input[0].content at character 8: recorded 'one two three', now 'one two four'"),
        (request(model="n"), "body.model at character 0: recorded 'm', now 'n'"),
        (request(sample=3), "sample: recorded 0, now 3"),
        (request(effort="low"), "body.effort, which only one of them has"),
    ],
)
def test_a_miss_names_the_digest_and_the_first_field_that_differs(tmp_path, asked, says):
    source = recorded(tmp_path, request(), request("quite another question", "z"))
    with pytest.raises(ProposerProblem) as caught:
        source.answer(asked)
    assert f"no reply is recorded for request {asked.digest}" in str(caught.value)
    assert says in str(caught.value)


def test_an_empty_folder_is_one_line(tmp_path):
    with pytest.raises(ProposerProblem, match="the folder holds no reply"):
        Replay(tmp_path).answer(request())


def test_replay_imports_nothing_that_sends():
    tree = ast.parse(Path(replay.__file__).read_text())
    names = {node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    assert not [name for name in names if name and ("transport" in name or "live" in name or "socket" in name)]
