"""Prices of a model from `genai-prices`, as the config's `prices.model` wants them: with source, version and date."""

from decimal import Decimal
from importlib.metadata import version
from typing import Any

from kerneltrial.inputs.installing import install
from kerneltrial.propose.problem import ProposerProblem
from kerneltrial.records.terms import ModelPrices


def listed_prices(model: str, today: str) -> ModelPrices:
    """Return the list price of a model for a million tokens; long-context tiers are left out.

    Raises
    ------
    ProposerProblem
        `genai-prices` is not installed, or does not know the model.
    """
    try:
        from genai_prices import data_snapshot
    except ImportError:
        raise ProposerProblem(f"prices: {install('openai')}, or write prices.model by hand") from None
    try:
        _, found = data_snapshot.get_snapshot().find_provider_model(model, None, None, None)
    except LookupError:
        raise ProposerProblem(
            f"prices: genai-prices {version('genai-prices')} knows no model {model!r}; write prices.model by hand "
            "(zeros for a server of your own)"
        ) from None
    listed: Any = found.prices
    listed = listed[0].prices if isinstance(listed, list) else listed
    fresh = _base(listed.input_mtok)
    written = _base(listed.cache_write_mtok)
    cached = _base(listed.cache_read_mtok)
    return ModelPrices(
        input_usd=fresh,
        cached_input_usd=cached if listed.cache_read_mtok is not None else fresh,
        cache_write_extra_usd=max(Decimal(0), written - fresh) if written else Decimal(0),
        output_usd=_base(listed.output_mtok),
        source=f"genai-prices {version('genai-prices')}",
        date=today,
    )


def _base(price: Any) -> Decimal:
    """A price without tiers; zero where there is none."""
    return Decimal(str(getattr(price, "base", price) or 0))
