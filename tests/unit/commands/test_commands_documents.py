"""README and docs/: what they link to is there, what they tell people to type exists, and the README stays short."""

import re
from pathlib import Path

import pytest

from kerneltrial.commands.arguments import COMMANDS
from kerneltrial.dag.graph import STAGES

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


def test_every_page_of_docs_is_found_from_the_readme():
    text = PAGES[0].read_text()
    assert not [page.name for page in (CLONE / "docs").glob("*.md") if f"(docs/{page.name})" not in text]


def test_every_decision_stands_first_in_its_file_and_in_the_index():
    decisions = sorted((CLONE / "workflow/adr").glob("[0-9]*.md"))
    index = (CLONE / "workflow/adr/README.md").read_text()
    assert [path.name for path in decisions if index.count(f"({path.name})") != 1] == []
    heads = {path.name: path.read_text().split("\n\n", 2) for path in decisions}
    assert [name for name, parts in heads.items() if not parts[1].startswith(("**Decision.**", "## Decision"))] == []
    assert [name for name, parts in heads.items() if not parts[0].startswith(f"# {name[:4]}: ")] == []


def test_the_readme_is_short():
    assert len(PAGES[0].read_text().splitlines()) <= 230
