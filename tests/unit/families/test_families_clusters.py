"""What kernels of clusters do beside their exchange is judged on `cpu`, which has no clusters but of one block.

The few functions that speak to the cluster are replaced by what they are to a block alone. The exchange itself is
judged on a card (`tests/gpu/test_gpu_hopper.py`).
"""

import re

import msgspec
import pytest
from family_court import CLONE, Family

from kerneltrial.propose.search.space import read_space
from kerneltrial.records.device import Device
from kerneltrial.records.plan import LaunchPlan
from kerneltrial.records.validation import Validated
from kerneltrial.store.canonical import digest

HOPPER = Device(kind="cuda", arch="sm_90a", name="", fingerprint={})
ALONE = {
    "void arrive_in_cluster": "",
    "void wait_for_cluster": "__syncthreads();",
    "unsigned place_in": "return own;",
    "void prepare": "",
    "void expect": "",
    "void wait_for_bytes": "__syncthreads();",
}


def with_body(source: str, function: str, body: str) -> str:
    """The source with another body of a function: of one line, or up to the first brace at a line's start."""
    pattern = re.escape(function) + r"(\([^)]*\)) \{([^\n]*\}|\n.*?\n\})\n"
    found, count = re.subn(pattern, lambda m: f"{function}{m[1]} {{ {body} }}\n", source, flags=re.DOTALL)
    assert count <= 1, function
    return found


def of_one_block(source: str) -> str:
    for function, body in ALONE.items():
        source = with_body(source, function, body)
    source = source.replace('asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");', "")
    source = re.sub(
        r"st\.async\.shared::cluster\.mbarrier::complete_tx::bytes(\S+ \[%0\], [^;]*), \[%\d\];",
        r"st.shared\1;",
        source,
    )
    source = source.replace("st.shared::cluster", "st.shared")
    assert not re.search(r"cluster\.|mbarrier|mapa", source)
    return source


def alone(plan: LaunchPlan, clusters: int) -> LaunchPlan:
    """The plan without clusters, and so few of those that stay that they draw rows."""
    content = msgspec.to_builtins(plan)
    for variant in content["variants"]:
        # rows of one block, which have no cluster on a card, are what this looks at
        variant["when"] = re.sub(r" and cols > \d+$", "", variant["when"])
        for launch in variant["launches"]:
            if launch.pop("cluster", None) and launch["entry"].startswith("ring"):
                launch["grid"] = [launch["grid"][0], f"min(rows, {clusters})", "1"]
    return msgspec.convert(content, LaunchPlan)


@pytest.mark.parametrize(
    ("way", "hint", "fast"), [(4, 0, 0), (5, 0, 0), (6, 0, 1), (7, 0, 0), (8, 1, 0), (9, 0, 0), (9, 1, 1)]
)
def test_a_wide_softmax_in_clusters_of_one_block_is_valid(way: int, hint: int, fast: int) -> None:
    family = Family("softmax_wide_f32", checks="all")
    space = read_space(CLONE / "kernels/softmax_wide_f32/space.yaml", HOPPER)
    # the space's own have more shared memory than the `cpu` device gives a block
    small = {"THREADS": 256, "VEC": 4, "FLIGHT": 8, "CHUNK": 8192, "WAY": way, "BACK": 0, "HINT": hint, "FAST": fast}
    plan = alone(space.plan(small), 2 if way in (6, 8, 9) else 1)
    subject = family.subject(of_one_block(space.source(small).decode()).encode(), plan)
    judge = family.judge(family.small, 0)
    outcome = judge.judge_subject(digest(repr(small).encode()), subject, judge.cases)
    assert isinstance(outcome, Validated), outcome
