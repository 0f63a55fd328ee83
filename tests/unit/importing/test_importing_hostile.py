"""What a problem's process may send, and what its file may be: one line, and nothing half written. Without torch."""

import json
import os
from contextlib import contextmanager, nullcontext
from pathlib import Path

import msgspec
import numpy as np
import pytest
from msgspec.structs import replace

from kerneltrial.__main__ import main
from kerneltrial.commands import import_problem
from kerneltrial.commands.importing import conversing, problem
from kerneltrial.commands.importing.contract_of import contract_of, output_names
from kerneltrial.commands.importing.conversing import Asked, ProcessEnded
from kerneltrial.commands.importing.cuda_text import baseline
from kerneltrial.commands.importing.lowering import lowered
from kerneltrial.commands.importing.messages import Constant, Given, Node, Traced
from kerneltrial.commands.importing.oracle_text import oracle_text
from kerneltrial.commands.importing.sharp import tried
from kerneltrial.inputs.oracle import load
from kerneltrial.inputs.problem import InputProblem

A, B = {"$": "x0"}, {"$": "x1"}


def _given(name: str, *shape: int, dtype: str = "float32") -> Given:
    return Given(name=name, role="input", dtype=dtype, shape=shape, low=0.0, high=1.0)


def _traced(nodes: list[Node], *given: Given, outputs: tuple[str, ...] = ()) -> Traced:
    given = given or (_given("x0", 4, 8), _given("x1", 8, 3))
    return Traced(
        given=given, constants=(), nodes=tuple(nodes), outputs=outputs or (nodes[-1].name,), evaluated=False, torch="0"
    )


def _node(op: str, args: dict, *shape: int, name: str = "n1", dtype: str = "float32") -> Node:
    return Node(name=name, op=f"aten.{op}", args=args, shape=shape, dtype=dtype)


CONV = {"stride": [1], "padding": [0], "dilation": [1], "transposed": False, "groups": 1}
IMAGE, WEIGHT = _given("x0", 2, 3, 10), _given("x1", 4, 3, 3)
POOL = {"self": A, "kernel_size": [2, 2], "stride": [2, 2]}


@pytest.mark.parametrize(
    ("node", "given"),
    [
        (_node("view.default", {"self": A}, 5, 7), ()),
        (_node("permute.default", {"self": A, "dims": [0, 0]}, 4, 4), ()),
        (_node("expand.default", {"self": A}, 2, 4, 9), ()),
        (_node("slice.Tensor", {"self": A, "dim": 1, "start": 4}, 4, 8), ()),
        (_node("flip.default", {"self": A, "dims": [1]}, 4, 9), ()),
        (_node("constant_pad_nd.default", {"self": A, "pad": [3, 0]}, 4, 9), ()),
        (_node("cat.default", {"tensors": [A, A], "dim": 0}, 9, 8), ()),
        (_node("sum.dim_IntList", {"self": A, "dim": [1]}, 5), ()),
        (_node("mm.default", {"self": A, "mat2": B}, 4, 4), ()),
        (_node("mm.default", {"self": A, "mat2": A}, 4, 8), ()),
        (_node("cumsum.default", {"self": A, "dim": 0}, 4, 9), ()),
        (_node("clamp.default", {"self": A, "min": 0.0}, 9, 9), ()),
        (_node("convolution.default", {"input": A, "weight": B, **CONV}, 2, 4, 9), (IMAGE, WEIGHT)),
        (_node("convolution.default", {"input": A, "weight": B, **CONV}, 2, 5, 8), (IMAGE, WEIGHT)),
        (_node("convolution.default", {"input": A, "weight": B, **CONV, "groups": 0}, 2, 4, 8), (IMAGE, WEIGHT)),
        (
            _node(
                "convolution.default",
                {"input": A, "weight": B, **CONV, "padding": [1 << 40], "stride": [1 << 41]},
                2,
                4,
                1,
            ),
            (IMAGE, WEIGHT),
        ),
        (_node("avg_pool2d.default", POOL, 1, 1, 2, 3), (_given("x0", 1, 1, 4, 4),)),
        (
            _node("gather.default", {"self": A, "dim": 0, "index": B}, 4, 9),
            (_given("x0", 4, 8), _given("x1", 4, 9, dtype="int64")),
        ),
        (
            _node("index_select.default", {"self": A, "dim": 0, "index": B}, 6, 8),
            (_given("x0", 4, 8), _given("x1", 5, dtype="int64")),
        ),
    ],
    ids=lambda one: f"{one.op} {list(one.shape)}" if isinstance(one, Node) else "",
)
def test_a_shape_that_does_not_follow_is_refused(node, given):
    with pytest.raises(InputProblem, match=r"does not follow|in this form is not known"):
        lowered(_traced([node], *given))


def test_a_tensor_without_elements_is_told():
    with pytest.raises(InputProblem, match="without elements"):
        lowered(_traced([_node("slice.Tensor", {"self": A, "dim": 0, "end": 0}, 0, 8)]))


def test_what_would_fill_the_memory_is_refused_before_anything_is_made():
    with pytest.raises(InputProblem, match="make its shapes smaller"):
        lowered(_traced([_node("relu.default", {"self": A}, 2**30, 2**30)], _given("x0", 2**30, 2**30)))


def test_what_nothing_reads_any_more_is_freed(tmp_path):
    """A long chain holds two results at a time; what is read again at the end is held until then."""
    big = _given("x0", 2**27)
    chain = [_node("sin.default", {"self": {"$": f"n{i - 1}"} if i else A}, 2**27, name=f"n{i}") for i in range(9)]
    graph = lowered(_traced(chain, big))
    assert graph.most_held() == 2**28
    assert '    n1 = point("sin", "float32", n0)\n    del n0\n' in oracle_text(graph, output_names(graph), "a test")
    again = [
        _node("add.Tensor", {"self": {"$": f"n{8 - i}"}, "other": {"$": f"n{8 + i}"}}, 2**27, name=f"n{9 + i}")
        for i in range(9)
    ]
    with pytest.raises(InputProblem, match=r"at one time.*make its shapes smaller"):
        lowered(_traced(chain + again, big))


def test_a_view_holds_what_it_is_a_view_of():
    nodes = [
        _node("sin.default", {"self": A}, 4, 8, name="n0"),
        _node("permute.default", {"self": {"$": "n0"}, "dims": [1, 0]}, 8, 4, name="n1"),
        _node("expand.default", {"self": {"$": "n1"}}, 100, 8, 4, name="n2"),
        _node("sum.dim_IntList", {"self": {"$": "n2"}, "dim": [0]}, 8, 4, name="n3"),
        _node("cos.default", {"self": {"$": "n3"}}, 8, 4, name="n4"),
    ]
    graph = lowered(_traced(nodes, _given("x0", 4, 8)))
    assert graph.freed() == {"n0": ("x0",), "n1": ("n0",), "n2": ("n1",), "n3": ("n2",), "n4": ("n3",)}
    assert graph.most_held() == 64


def test_expressions_stay_short_and_shallow():
    """A view that is read twice doubles the text each time, and a long chain would be a deep recursion."""
    double, narrow = [], []
    for i in range(0, 120, 2):
        before = {"$": f"n{i - 1}"} if i else A
        double = _node("cat.default", {"tensors": [before, before], "dim": 1}, 4, 16, name=f"n{i}")
        half = _node("slice.Tensor", {"self": {"$": f"n{i}"}, "dim": 1, "start": 1, "end": 9}, 4, 8, name=f"n{i + 1}")
        narrow += [double, half]
    graph = lowered(_traced(narrow, _given("x0", 4, 8)))
    assert len(baseline(graph, output_names(graph)).source) < 200_000
    chain = [_node("sin.default", {"self": {"$": f"n{i - 1}"} if i else A}, 4, 8, name=f"n{i}") for i in range(1500)]
    graph = lowered(_traced(chain, _given("x0", 4, 8)))
    assert len(baseline(graph, output_names(graph)).launches) > 16


class Told(Asked):
    """A process that answers with an oracle's own numbers, or ends."""

    def __init__(self, oracle, contract, ends=False):
        self.oracle, self.contract, self.ends, self.asked = oracle, contract, ends, 0

    def outputs(self, values, double):
        self.asked += 1
        if self.ends:
            raise ProcessEnded("its process ended: exit status 0")
        answer = self.oracle.answer(self.contract, values, {})
        return tuple(one.astype(np.float64).tobytes() for one in answer.outputs.values())


def _told(tmp_path, nodes, ends=False):
    traced = _traced(nodes, _given("x0", 4, 8))
    graph = lowered(traced)
    contract = contract_of("told", "", graph, {"x0": (None, None)}, 32)
    path = tmp_path / "oracle.py"
    path.write_text(oracle_text(graph, output_names(graph), "a test"))
    oracle = load(path)
    asked = Told(oracle, contract, ends)
    return lambda: tried(asked, contract, oracle, graph.given, 1.0), asked


@pytest.mark.parametrize("factor", [0.0, 1.0])
def test_outputs_that_no_input_changes_are_no_trial(tmp_path, factor):
    found = _told(tmp_path, [_node("mul.Tensor", {"self": A, "other": factor}, 4, 8)])[0]()
    assert (found == 1) if factor else ("the same whatever its inputs are" in found)


def test_nothing_is_asked_of_a_process_that_is_gone(tmp_path):
    attempt, asked = _told(tmp_path, [_node("relu.default", {"self": A}, 4, 8)], ends=True)
    with pytest.raises(ProcessEnded):
        attempt()
    assert asked.asked == 1


@pytest.mark.parametrize(
    ("file", "name"),
    [
        ("softmax.py", "softmax"),
        ("no.py", "p_no"),
        ("on.py", "p_on"),
        ("null.py", "p_null"),
        ("true.py", "p_true"),
        ("class.py", "p_class"),
        ("lambda.py", "p_lambda"),
        ("1e5.py", "p_1e5"),
        ("...py", "p_"),
        ("x;rm -rf.py", "x_rm__rf"),
        ("ünïcode.py", "n_code"),
        ("²x.py", "x"),
        ("a" * 200 + ".py", "a" * 58),
    ],
)
def test_a_files_name_becomes_one_that_yaml_and_python_read_as_text(file, name):
    assert problem.name_of(Path(file)) == name


GRAPH = _traced([_node("relu.default", {"self": A}, 4, 8)], _given("x0", 4, 8))


def _import(monkeypatch, tmp_path, answers, content=b"x = 1\n"):
    """Import a file whose processes say `answers`, one after another; what was told, and what lies in the folder."""
    waiting, sources = iter(answers), []

    class Answering(Asked):
        def __init__(self):
            self.graph = next(waiting)

        def traced(self):
            if isinstance(self.graph, Exception):
                raise self.graph
            return self.graph

        def outputs(self, values, double):
            return (np.maximum(values["x0"], 0).astype(np.float64).tobytes(),)

    @contextmanager
    def asking(nursery, source):
        sources.append(source)
        yield Answering()

    monkeypatch.setattr(problem, "asking", asking)
    path = tmp_path / "one.py"
    path.write_bytes(content)
    found = problem.imported(None, path, tmp_path / "out")
    return found, sorted(p.name for p in (tmp_path / "out").glob("*")) if (tmp_path / "out").is_dir() else [], sources


def test_a_problem_becomes_a_whole_folder(monkeypatch, tmp_path):
    found, there, _ = _import(monkeypatch, tmp_path, [GRAPH, GRAPH])
    assert isinstance(found, problem.Imported)
    assert there == ["one"]
    assert (tmp_path / "out/one/problem.py").read_bytes() == b"x = 1\n"
    assert (tmp_path / "out/one/config.yaml").is_file()


def test_a_graph_that_changes_from_process_to_process_is_no_function(monkeypatch, tmp_path):
    other = replace(GRAPH, nodes=(replace(GRAPH.nodes[0], op="aten.abs.default"),))
    found, there, _ = _import(monkeypatch, tmp_path, [GRAPH, other])
    assert "another function each time" in found.why
    assert there == []


@pytest.mark.parametrize(
    "graph",
    [
        replace(GRAPH, nodes=(_node("constant_pad_nd.default", {"self": A, "pad": [0.5, 0]}, 4, 8),)),
        replace(GRAPH, nodes=(_node("cumsum.default", {"self": A, "dim": 0.5}, 4, 8),)),
        replace(
            GRAPH,
            constants=(Constant(name="c9", dtype="int64", shape=(2,), values=(float("inf"), 1.0)),),
            nodes=(_node("mul.Tensor", {"self": A, "other": {"$": "c9"}}, 4, 2),),
            given=(_given("x0", 4, 1),),
        ),
    ],
    ids=["half a pad", "half an axis", "an infinite integer"],
)
def test_a_graph_that_no_torch_gave_is_one_line(monkeypatch, tmp_path, graph):
    found, there, _ = _import(monkeypatch, tmp_path, [graph, graph])
    assert isinstance(found, problem.NotImported)
    assert "\n" not in found.why
    assert str(tmp_path) not in found.why
    assert there == []


def test_what_a_process_says_steers_no_terminal(monkeypatch, tmp_path):
    found, _, _ = _import(monkeypatch, tmp_path, [InputProblem("it raises \x1b[2J\x07\u202e")])
    assert found.why == r"it raises \x1b[2J\x07\u202e"


@pytest.mark.parametrize(
    ("content", "source"),
    [
        (b"\xef\xbb\xbfx = 1\r\n", "x = 1\n"),
        (b"# -*- coding: latin-1 -*-\n# \xe9\n", "# -*- coding: latin-1 -*-\n# é\n"),
    ],
    ids=["byte order mark", "latin-1"],
)
def test_a_file_is_read_as_python_reads_it(monkeypatch, tmp_path, content, source):
    _, _, sources = _import(monkeypatch, tmp_path, [GRAPH, GRAPH], content)
    assert sources == [source, source]
    assert (tmp_path / "out/one/problem.py").read_bytes() == content


@pytest.mark.parametrize(
    ("content", "said"),
    [(b"\xff\xfex\x00", "no text in UTF-8"), (b"# coding: nonsense\n", "no text"), (b"#" * (2 << 20), "more than")],
    ids=["UTF-16", "no encoding", "two MiB"],
)
def test_a_file_that_is_no_text_is_told(monkeypatch, tmp_path, content, said):
    found, there, _ = _import(monkeypatch, tmp_path, [], content)
    assert said in found.why
    assert there == []


class Saying:
    """A conversation whose one reply is what it was made with."""

    def __init__(self, reply):
        self.reply = reply

    def ask(self, request, wall_s):
        return self.reply


def _nested(depth):
    """A map within a map: `traced` with one node whose arguments go down without end."""
    good = msgspec.msgpack.encode(GRAPH)
    return good.replace(msgspec.msgpack.encode(A), b"\x81\xa1$" * depth + b"\xc0")


@pytest.mark.parametrize(
    "reply",
    [b"", b"\xc1", _nested(5000), b"\x00" * (conversing._LONGEST_GRAPH + 1)],
    ids=["none", "junk", "deep", "long"],
)
def test_a_reply_that_is_no_answer_ends_the_talk(reply):
    with pytest.raises(ProcessEnded, match="no proper answer"):
        Asked(Saying(reply)).traced()


def test_what_was_imported_before_an_interrupt_is_in_the_list(monkeypatch, tmp_path, capsys):
    monkeypatch.chdir(tmp_path)
    for name in ("a", "b", "c"):
        (tmp_path / f"{name}.py").write_text("x = 1\n")
    done = []

    def one(nursery, path, out):
        if done:
            raise KeyboardInterrupt
        done.append(path)
        return problem.NotImported(name="a", level="l", problem="0" * 64, why="a \x1b test")

    monkeypatch.setattr(import_problem, "require_torch", lambda: None)
    monkeypatch.setattr(import_problem, "nursery", lambda: nullcontext(None))
    monkeypatch.setattr(import_problem, "imported", one)
    assert main(["import", "torch", "a.py", "b.py", "c.py"]) == 130
    assert [row["name"] for row in json.loads((tmp_path / "imported/imports.json").read_text())] == ["a"]
    assert "\x1b" not in capsys.readouterr().out


@pytest.mark.parametrize(
    "place", ["a file", "a list that is none", "a name that leads nowhere", "a pipe for a problem"]
)
def test_a_place_that_will_not_do_is_told_before_the_work(monkeypatch, tmp_path, capsys, place):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(import_problem, "require_torch", lambda: None)
    monkeypatch.setattr(import_problem, "nursery", lambda: pytest.fail("work was begun"))
    (tmp_path / "a.py").write_text("x = 1\n")
    (tmp_path / "full").mkdir()
    (tmp_path / "full/imports.json").write_text('[{"state": "imported"')
    (tmp_path / "linked").mkdir()
    (tmp_path / "linked/a").symlink_to("nowhere")
    os.mkfifo(tmp_path / "pipe.py")
    words, said = {
        "a file": (["a.py", "--out", "a.py"], "a.py: is no folder"),
        "a list that is none": (["a.py", "--out", "full"], "full/imports.json: is no list of imports"),
        "a name that leads nowhere": (["a.py", "--out", "linked"], "linked/a: is there already"),
        "a pipe for a problem": (["pipe.py"], "pipe.py: is neither a file nor a folder"),
    }[place]
    assert main(["import", "torch", *words]) == 3
    told = capsys.readouterr().err
    assert said in told
    assert told.count("\n") == 1
