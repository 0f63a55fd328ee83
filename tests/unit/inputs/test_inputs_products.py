"""Which torch expressions are matrix products that a vendor library can be asked for."""

import msgspec
import pytest

from kerneltrial.inputs.calls import Product
from kerneltrial.inputs.contracts import read_contract
from kerneltrial.inputs.products import product_of
from kerneltrial.records.contract import Array, Contract

MATMUL = "kernels/matmul_f32/contract.yaml"


@pytest.fixture
def matmul(request) -> Contract:
    return read_contract(request.config.rootpath / MATMUL)


@pytest.mark.parametrize(
    ("expression", "product"),
    [
        ("torch.matmul(a, b)", Product(left="a", right="b", out="c")),
        ("torch.mm(a,b)", Product(left="a", right="b", out="c")),
        (" a @ b ", Product(left="a", right="b", out="c")),
        ("b.T @ a.t()", Product(left="b", right="a", out="c", left_transposed=True, right_transposed=True)),
        ("torch.matmul(a, b.mT)", Product(left="a", right="b", out="c", right_transposed=True)),
    ],
)
def test_products_are_recognised(matmul, expression, product):
    assert product_of(msgspec.structs.replace(matmul, torch=expression)) == product


@pytest.mark.parametrize(
    "expression",
    [
        "",
        "torch.softmax(a, dim=1)",
        "torch.matmul(a, b, out=c)",
        "torch.matmul(a, b) + 1",
        "torch.matmul(a, c)",  # an output is no factor
        "torch.matmul(a, x)",
        "os.matmul(a, b)",
        "torch.matmul(a, b",
        "__import__('os').system('true')",
        "(" * 5000,
        "a @ b @ b",
    ],
)
def test_everything_else_is_no_product_and_is_never_run(matmul, expression):
    assert product_of(msgspec.structs.replace(matmul, torch=expression)) is None


def test_tf32_is_the_contracts_word(matmul):
    found = product_of(msgspec.structs.replace(matmul, tf32=True))
    assert found is not None
    assert found.tf32


def test_factors_of_two_types_or_other_ranks_are_no_product(matmul):
    def with_a(**changes) -> Contract:
        arguments = tuple(
            msgspec.structs.replace(one, **changes) if isinstance(one, Array) and one.name == "a" else one
            for one in matmul.arguments
        )
        return msgspec.structs.replace(matmul, arguments=arguments)

    assert product_of(with_a(dtype="float16")) is None
    assert product_of(with_a(shape=("m", "k", "1"))) is None
    assert product_of(with_a(role="inout")) is None
