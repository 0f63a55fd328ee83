"""One call to OpenAI itself, where a key is set; it costs a few cents."""

import os
from pathlib import Path

import pytest

from kerneltrial.propose.openai.asking import Asking
from kerneltrial.propose.openai.budget import Budget
from kerneltrial.propose.openai.exchange import Exchanges
from kerneltrial.propose.openai.live import Diary, Live
from kerneltrial.propose.openai.prices import listed_prices
from kerneltrial.propose.openai.transport import key_of, poster
from kerneltrial.propose.prompt.prompt import Prompt
from kerneltrial.propose.proposer import Draft
from kerneltrial.records.asking import Model
from kerneltrial.store.objects import Objects

pytestmark = pytest.mark.skipif(not os.environ.get("OPENAI_API_KEY"), reason="needs OPENAI_API_KEY, and pays")

PROMPT = Prompt(
    "You write CUDA kernels. Return one JSON object of the schema. The plan launches the kernel.",
    'Write extern "C" __global__ void twice(float* x, int n), which doubles x; one thread an element, blocks of 128.',
    (),
)


def test_a_model_that_is_served_gives_a_draft(tmp_path: Path) -> None:
    model = Model(effort="low", max_output_tokens=4000, budget_calls=1)
    budget = Budget(model, listed_prices(model.name, "2026-12-01"))
    live = Live(
        Exchanges(tmp_path / "replies"), budget, Diary(lambda event: None, dict),
        lambda: poster(model, key_of(model)),
    )  # fmt: skip
    drafts, usage = Asking(live, budget, ("cuda_cpp",), Objects(tmp_path / "objects")).ask([PROMPT], 0)
    assert isinstance(drafts[0], Draft), drafts[0]
    assert usage.output_tokens > 0
    assert live.answer(next(iter(live.exchanges.all())).request)
