"""Why a configuration is tried, in one plain sentence, and the pattern that it stands for."""

import numpy as np

from kerneltrial.inputs.expressions import ExpressionProblem
from kerneltrial.inputs.problem import InputProblem
from kerneltrial.propose.history import Tried
from kerneltrial.propose.search.card import Card
from kerneltrial.propose.search.prior import Dimensions, estimate
from kerneltrial.propose.search.space import Space
from kerneltrial.propose.search.space_file import Because, Parameters, check_reasons, sentence
from kerneltrial.records.candidate import Pattern


class Reasoning:
    """Sentences for the configurations of a space; `case` is the performance case that they speak of."""

    def __init__(self, space: Space, case: Dimensions, card: Card) -> None:
        known = {*space.table, *case, "blocks", "multiprocessors"}
        check_reasons(space.path, space.file, known, {"case"})
        self.space = space
        self.case = case
        self.card = card

    def explain(self, parameters: Parameters, parent: Tried | None, different: bool) -> tuple[str, Pattern, bool]:
        """Return the sentence, its pattern, and whether the configuration is a change of the parent."""
        for seed in self.space.file.seeds:
            if seed.parameters == parameters:
                return seed.hypothesis, seed.pattern, False
        if parent is None:
            because = self._because(self.space.file.reasons)
            lead = "Structurally different from what was tried" if different else "First by occupancy, bytes and waves"
            return self._join(lead, because, parameters), because.pattern, False
        before = parent.origin.parameters
        changed = [name for name in parameters if parameters[name] != before[name]]
        changes = ", ".join(f"{name} {before[name]} to {parameters[name]}" for name in changed)
        because = self._because(changed)
        lead = (
            f"Structurally different from the best so far ({changes})" if different else f"Best so far with {changes}"
        )
        return self._join(lead, because, parameters), because.pattern, True

    def _because(self, among: object) -> Because:
        """Return the first reason, in the order of the file, for one of these parameters."""
        names = among if isinstance(among, list | dict) else ()
        return next((why for name, why in self.space.file.reasons.items() if name in names), Because(because=""))

    def _join(self, lead: str, because: Because, parameters: Parameters) -> str:
        if not because.because:
            return f"{lead}."
        named = self.space.named(parameters)
        row = {name: np.array([value], dtype=np.int64) for name, value in named.items()}
        blocks = int(estimate(self.space.file, row, self.case, self.card).blocks[0])
        known = {**named, **self.case, "blocks": blocks, "multiprocessors": self.card.multiprocessors}
        words = {"case": "x".join(str(size) for size in self.case.values())}
        of_model = "{multiprocessors}" in because.because and self.card.assumed
        card = " (of the Hopper card that the search's model assumes here)" if of_model else ""
        try:
            return f"{lead}: {sentence(because.because, known, words)}{card}."
        except ExpressionProblem as fault:
            raise InputProblem(
                f"{self.space.path}: reasons, {because.because!r} at {dict(parameters)}: {fault}"
            ) from None
