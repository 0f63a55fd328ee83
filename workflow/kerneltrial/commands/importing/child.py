"""The confined child that runs a PyTorch problem: it traces the model, and evaluates it on values that it is handed.

A problem is a file with `Model`, `get_inputs` and `get_init_inputs` (the form of KernelBench, arXiv 2502.10517). Its
code runs here only: no network, no files but Python's own, none to write, limits on time and memory.
"""

import contextlib
import inspect
import math
import random
import sys
import tempfile
import types
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import msgspec

from kerneltrial.commands.importing.decompositions import decomposed
from kerneltrial.commands.importing.faults import LINE, line, told
from kerneltrial.commands.importing.messages import (
    Answer,
    Cannot,
    Constant,
    Evaluate,
    Evaluated,
    Given,
    Node,
    Problem,
    Traced,
)

_KINDS = ("float32", "int32", "int64", "bool")
_CONSTANT_ELEMENTS = 4096
_MOST_OUTPUTS, _MOST_NODES, _MOST_AXES, _MOST_SIZE = 8, 2000, 8, 2**31 - 1  # what the message holds
_PLAIN = bool | int | float | str | None  # inputs that become part of the graph
_RANDOM = ("bernoulli", "rand", "normal", "dropout", "multinomial", "uniform", "exponential")


class _Refused(Exception):
    """The problem is no function of plain tensors, or one that is not understood; the text says why."""


def prepare() -> None:
    """Import torch once, so that children forked later have it; where it is not there, they say so."""
    with contextlib.suppress(Exception):
        import torch

        torch.set_num_threads(1)
        decomposed(torch, lambda one: (torch.softmax(one, 0),), [torch.ones(2)])  # what is imported when it is needed


def serve(argument: bytes, requests: Any) -> None:
    """The child's function: `argument` is a `Problem`; the first reply is the graph, further ones are values."""
    given = msgspec.msgpack.decode(argument, type=Problem)
    tempfile.tempdir = "/nonexistent"  # torch asks for a folder for temporary files, and puts none there
    try:
        import torch
    except Exception as fault:  # whatever a broken installation raises
        requests.get()
        requests.reply(_packed(Cannot(why=f"torch cannot be imported: {line(fault)}")))
        return
    torch.set_num_threads(1)
    problem: _Problem | None = None
    while (content := requests.get()) is not None:
        try:
            if problem is None:
                problem = _Problem(torch, given.source)
                answer: Answer = problem.traced()
            else:
                answer = problem.evaluated(msgspec.msgpack.decode(content, type=Evaluate))
        except _Refused as refusal:
            answer = Cannot(why=str(refusal))
        except MemoryError:
            raise
        except SystemExit as fault:
            answer = Cannot(why=f"it ends the process: SystemExit({fault.code})"[:LINE])
        except BaseException as fault:  # the problem's own code, and torch, raise what they like
            answer = Cannot(why=told(fault))
        requests.reply(_packed(answer))


def _packed(answer: Answer) -> bytes:
    return msgspec.msgpack.encode(answer)


def _initial(model: Any, given: Any) -> tuple[Sequence[Any], dict[str, Any]]:
    """Arguments of the constructor: a list, a dict by name, or both as [[...], {...}]."""
    if isinstance(given, dict):
        return (), given
    words = tuple(given)
    if len(words) == 2 and isinstance(words[0], list | tuple) and isinstance(words[1], dict):
        with contextlib.suppress(TypeError, ValueError):
            inspect.signature(model).bind(*words[0], **words[1])
            return words[0], words[1]
    return words, {}


class _Problem:
    """A loaded problem: its model, and the tensors that its forward is a function of."""

    def __init__(self, torch: Any, source: str) -> None:
        self.torch = torch
        module = types.ModuleType("problem")
        sys.modules["problem"] = module
        _seed(torch, 0)
        exec(compile(source, "problem.py", "exec"), module.__dict__)
        for name in ("Model", "get_inputs", "get_init_inputs"):
            if not callable(getattr(module, name, None)):
                raise _Refused(f"it defines no {name}")
        _seed(torch, 0)
        words, keywords = _initial(module.Model, module.get_init_inputs())
        self.model = module.Model(*words, **keywords)
        if not isinstance(self.model, torch.nn.Module):
            raise _Refused("Model is no torch.nn.Module")
        _seed(torch, 1)
        self.inputs, self.form = self._leaves(module.get_inputs())
        self.held = self._tensors()
        self.evaluating = False

    def _leaves(self, given: Any) -> tuple[list[Any], Any]:
        """Tensors and plain values of the inputs, lists and all, and the form that they are put together by."""
        if isinstance(given, self.torch.Tensor) or not hasattr(given, "__iter__"):
            raise _Refused(f"get_inputs gives a {type(given).__name__}; it has to give a list, such as [x]")
        both = ((), dict(given)) if isinstance(given, dict) else (tuple(given), {})
        leaves, form = self.torch.utils._pytree.tree_flatten(both)
        return leaves, form

    def _tensors(self) -> dict[str, tuple[str, str, Any]]:
        """By the contract's name: role, torch's name or the input's place, tensor."""
        torch = self.torch
        found: dict[str, tuple[str, str, Any]] = {}
        named = [
            *(("input", str(i), one) for i, one in enumerate(self.inputs) if isinstance(one, torch.Tensor)),
            *(("parameter", name, one) for name, one in self.model.named_parameters()),
            *(("buffer", name, one) for name, one in self.model.named_buffers()),
        ]
        others = [type(i).__name__ for i in self.inputs if not isinstance(i, torch.Tensor | _PLAIN)]
        if others:
            raise _Refused(f"get_inputs gives a {others[0]}; only tensors, numbers, words and None can be inputs")
        for role, name, tensor in named:
            if tensor.layout is not torch.strided or tensor.is_quantized or tensor.is_nested:
                raise _Refused(f"{role} {name} is sparse, quantised or nested; only plain tensors can be inputs")
            if tensor.device.type != "cpu":
                raise _Refused(f"{role} {name} is on {tensor.device}; it must be on the CPU here")
            if role != "buffer":
                _kind(tensor, f"{role} {name}")
            mine = f"x{name}" if role == "input" else _weight(name, found)
            found[mine] = (role, name, tensor.detach())
        return found

    def traced(self) -> Traced:
        self.model.train()
        try:
            return self._traced()
        except _Refused as refusal:
            if not str(refusal).startswith(("it is random", "it changes")):
                raise
        self.evaluating = True
        self.model.eval()
        return self._traced()

    def _function(self) -> Callable[..., tuple[Any, ...]]:
        names = list(self.held)

        def function(*tensors: Any) -> tuple[Any, ...]:
            given = dict(zip(names, tensors, strict=True))
            state = {name: given[mine] for mine, (role, name, _) in self.held.items() if role != "input"}
            places = {int(name): given[mine] for mine, (role, name, _) in self.held.items() if role == "input"}
            leaves = [places.get(i, one) for i, one in enumerate(self.inputs)]
            words, keywords = self.torch.utils._pytree.tree_unflatten(leaves, self.form)
            result = self.torch.func.functional_call(self.model, state, words, keywords)
            results = tuple(self.torch.utils._pytree.tree_leaves(result))
            others = [type(one).__name__ for one in results if not isinstance(one, self.torch.Tensor)]
            if others or not results:
                raise _Refused(f"forward gives a {(*others, 'list of nothing')[0]}; only tensors can be outputs")
            return results

        return function

    def _traced(self) -> Traced:
        torch = self.torch
        tensors = [tensor.clone() for _, _, tensor in self.held.values()]
        with torch.no_grad():
            graph = decomposed(torch, self._function(), tensors)
        return _Reading(torch, graph, self.held).traced(self.evaluating)

    def evaluated(self, asked: Evaluate) -> Evaluated:
        torch, tensors = self.torch, []
        for mine, (_, _, tensor) in self.held.items():
            content = asked.values.get(mine)  # what the outputs do not rest on has no values
            one = tensor.clone()
            if content is not None:
                one = torch.frombuffer(bytearray(content), dtype=tensor.dtype).reshape(tensor.shape)
            tensors.append(one.double() if asked.double and one.is_floating_point() else one)
        with torch.no_grad():
            results = self._function()(*tensors)
        wide = [one.double() if one.is_floating_point() else one.long() for one in results]
        return Evaluated(outputs=tuple(one.contiguous().numpy().tobytes() for one in wide))


class _Reading:
    """A graph module as plain values."""

    def __init__(self, torch: Any, graph: Any, held: dict[str, tuple[str, str, Any]]) -> None:
        self.torch, self.graph = torch, graph
        self.held = held
        self.names: dict[Any, str] = {}
        self.constants: list[Constant] = []

    def traced(self, evaluated: bool) -> Traced:
        names = iter(self.held)
        nodes: list[Node] = []
        outputs: tuple[str, ...] = ()
        for count, node in enumerate(self.graph.graph.nodes):
            if node.op == "placeholder":
                self.names[node] = next(names)
            elif node.op == "get_attr":
                self.names[node] = f"c{count}"
                self.constants.append(self._constant(f"c{count}", getattr(self.graph, node.target)))
            elif node.op == "output":
                outputs = tuple(self.names[one] for one in node.args[0])
            else:
                self.names[node] = f"n{count}"
                nodes.append(self._node(node))
        if len(nodes) > _MOST_NODES or len(outputs) > _MOST_OUTPUTS:
            many = f"{len(nodes)} operations, {len(outputs)} outputs"
            raise _Refused(f"it has {many}; at most {_MOST_NODES} and {_MOST_OUTPUTS} are taken")
        used = set(outputs) | {ref for node in nodes for ref in _references(node.args)}
        given = tuple(self._given(name) for name in self.held if name in used)
        if not any(one.role == "input" for one in given):
            raise _Refused("its outputs depend on no input")
        return Traced(
            given=given,
            constants=tuple(self.constants),
            nodes=tuple(nodes),
            outputs=outputs,
            evaluated=evaluated,
            torch=str(self.torch.__version__),
        )

    def _given(self, name: str) -> Given:
        role, theirs, tensor = self.held[name]
        kind = _kind(tensor, f"{role} {theirs}")
        if not tensor.numel():
            raise _Refused(f"{role} {theirs} is empty")
        low, high = float(tensor.min()), float(tensor.max())
        return Given(name=name, role=role, dtype=kind, shape=tuple(tensor.shape), low=low, high=high)  # type: ignore[arg-type]

    def _constant(self, name: str, tensor: Any) -> Constant:
        if tensor.numel() > _CONSTANT_ELEMENTS:
            raise _Refused(f"it holds a tensor of {tensor.numel()} elements that is no parameter and no buffer")
        kind = _kind(tensor, "a tensor that it holds")
        values = tuple(float(value) for value in tensor.detach().flatten().tolist())
        return Constant(name=name, dtype=kind, shape=tuple(tensor.shape), values=values)

    def _node(self, node: Any) -> Node:
        name = str(node.target) if not isinstance(node.target, str) else node.target
        if getattr(node.target, "__name__", "") == "getitem":
            name, args = "getitem", {"self": node.args[0], "index": node.args[1]}
        else:
            args = _bound(node)
        if any(word in name for word in _RANDOM):
            raise _Refused(f"it is random ({name}), in training and in evaluation")
        if name.startswith("aten.copy_"):
            role, theirs, _ = self.held.get(self.names.get(node.args[0], ""), ("input", "or weight", None))
            raise _Refused(f"it changes {role} {theirs} in place, in training and in evaluation; work on a clone")
        seen = node.meta.get("val")
        first = seen[0] if isinstance(seen, tuple | list) else seen
        if not isinstance(first, self.torch.Tensor):
            raise _Refused(f"{name} gives no tensor of a known shape: a branch or a shape depends on values")
        kind = _kind(first, name)
        plain = {key: self._plain(value) for key, value in args.items()}
        return Node(name=self.names[node], op=name, args=plain, shape=tuple(first.shape), dtype=kind)

    def _plain(self, value: Any) -> Any:
        if value in self.names if isinstance(value, self.torch.fx.Node) else False:
            return {"$": self.names[value]}
        if isinstance(value, list | tuple):
            return [self._plain(one) for one in value]
        if isinstance(value, float) and not math.isfinite(value):
            return str(value)  # JSON holds no infinity
        if value is None or isinstance(value, bool | int | float | str):
            return value
        return str(value)


def _weight(name: str, taken: dict[str, Any]) -> str:
    """The contract's name of a weight: its own, or a number where that is long, strange or taken."""
    word = "w_" + name.lower().replace(".", "_")
    plain = word.isascii() and word.replace("_", "").isalnum() and len(word) <= 50
    return word if plain and word not in taken else f"w_{len(taken)}"


def _seed(torch: Any, seed: int) -> None:
    """The same numbers in every process, whichever module a problem draws them from."""
    torch.manual_seed(seed)
    random.seed(seed)
    with contextlib.suppress(Exception):  # torch works without NumPy
        import numpy

        numpy.random.seed(seed)


def _kind(tensor: Any, what: str) -> Any:
    """The type of a tensor's elements; whoever has another, or a shape that no message holds, is refused."""
    kind = str(tensor.dtype).removeprefix("torch.")
    if kind not in _KINDS:
        raise _Refused(f"{what} is {kind}; read are {', '.join(_KINDS)}")
    if len(tensor.shape) > _MOST_AXES or any(size > _MOST_SIZE for size in tensor.shape):
        many = f"{list(tensor.shape)}; at most {_MOST_AXES} axes and {_MOST_SIZE} elements along one are taken"
        raise _Refused(f"{what} has the shape {many}")
    return kind


def _bound(node: Any) -> dict[str, Any]:
    """Arguments by the schema's names, with its defaults."""
    schema = node.target._schema.arguments
    found = {one.name: one.default_value for one in schema if one.has_default_value()}
    found |= dict(zip((one.name for one in schema), node.args, strict=False))
    return found | dict(node.kwargs)


def _references(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        if "$" in value:
            yield value["$"]
        else:
            for one in value.values():
                yield from _references(one)
    elif isinstance(value, Sequence) and not isinstance(value, str):
        for one in value:
            yield from _references(one)
