"""README, docs/ and the decisions: what they link to and name is there, what they tell people to type exists, and the
README stays short.
"""

import re
from pathlib import Path

import msgspec
import pytest

from kerneltrial.commands.arguments import COMMANDS
from kerneltrial.dag.graph import STAGES
from kerneltrial.inputs.config import Config

CLONE = Path(__file__).parents[3]
PAGES = [CLONE / "README.md", *sorted((CLONE / "docs").glob("*.md"))]
PAGES += [CLONE / "reports/example/README.md", CLONE / "workflow/adr/README.md"]
LINK = re.compile(r"\]\(([^)#]+)(?:#[^)]*)?\)")
MENTION = re.compile(r"`(workflow/adr/[^`]+?)`")
FENCED = re.compile(r"^ *```.*?^ *```$", re.MULTILINE | re.DOTALL)
TYPED = re.compile(r"`kerneltrial ([a-z][a-z-]*)")
IN_A_BLOCK = re.compile(r"(?:^|&& )kerneltrial ([a-z][a-z-]*)", re.MULTILINE)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(CLONE)))
def test_what_a_page_names_is_there(page):
    text = page.read_text()
    links = [page.parent / link for link in LINK.findall(text) if "://" not in link]
    mentioned = [CLONE / path for path in MENTION.findall(text)]
    assert not [str(path) for path in links + mentioned if not path.exists()]
    typed = TYPED.findall(text) + [word for block in FENCED.findall(text) for word in IN_A_BLOCK.findall(block)]
    assert not {*typed} - {*COMMANDS, *STAGES}


DECISIONS = sorted((CLONE / "workflow/adr").glob("[0-9]*.md"))
QUOTED = re.compile(r"`([^`]+)`")
FILE = re.compile(r"(?:tests|workflow|kernels|cases|trials|reports|docs|profiles)/[\w./-]*\w")
KEY = re.compile(r"([a-z_]+)\.(?!md$|html$|py$|json$)([a-z_0-9]+)(?:: .*)?")
NESTED = {field.name: field.type for field in msgspec.structs.fields(Config)}


@pytest.mark.parametrize("page", [*PAGES, *DECISIONS], ids=lambda page: str(page.relative_to(CLONE)))
def test_files_and_config_keys_that_a_page_names_are_there(page):
    quoted = [
        one for one in QUOTED.findall(FENCED.sub("", page.read_text())) if "NAME" not in one and "TRIAL" not in one
    ]
    files = [found for one in quoted for found in FILE.findall(one) if one.startswith((found, "python ", "--"))]
    assert [
        name for name in files if not any((CLONE / at / name).exists() for at in ("", "workflow/kerneltrial"))
    ] == []
    keys = [found.groups() for one in quoted if (found := KEY.fullmatch(one)) and found[1] in NESTED]
    known = {head: NESTED[head].__struct_fields__ for head, _ in keys if hasattr(NESTED[head], "__struct_fields__")}
    assert [f"{head}.{key}" for head, key in keys if head in known and key not in known[head]] == []


def test_every_page_of_docs_is_found_from_the_readme():
    text = PAGES[0].read_text()
    assert not [page.name for page in (CLONE / "docs").glob("*.md") if f"(docs/{page.name})" not in text]


def test_every_decision_stands_first_in_its_file_and_in_the_index():
    index = (CLONE / "workflow/adr/README.md").read_text()
    assert [path.name for path in DECISIONS if index.count(f"({path.name})") != 1] == []
    heads = {path.name: path.read_text().split("\n\n", 2) for path in DECISIONS}
    assert [name for name, parts in heads.items() if not parts[1].startswith(("**Decision.**", "## Decision"))] == []
    assert [name for name, parts in heads.items() if not parts[0].startswith(f"# {name[:4]}: ")] == []


def test_the_readme_is_short():
    assert len(PAGES[0].read_text().splitlines()) <= 230
