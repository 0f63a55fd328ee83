"""The page in a real browser, where one is there: it fits a phone, and every drawing has a text alternative."""

import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest
from trial_pieces import report_inputs
from trial_stories import STORIES

from kerneltrial.report.render import contents

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="no Chromium here (Debian: apt-get install chromium)")
MEASURE = """<script>addEventListener("load", () => {
document.title = [document.documentElement.scrollWidth, innerWidth, getComputedStyle(document.body).backgroundColor,
  document.querySelectorAll("svg[role=img][aria-label]").length, document.querySelectorAll("svg").length].join(" ")})
</script></head>"""


def seen(page: str, folder: Path, width: int, *options: str) -> list[str]:
    """What the browser measures of the page; the policy that forbids scripts is lifted for this test alone."""
    start = page.index('<meta http-equiv="Content-Security-Policy"')
    page = page[:start] + page[page.index(">", start) + 1 :]
    (folder / "page.html").write_text(page.replace("</head>", MEASURE, 1))
    command = [str(CHROMIUM), "--headless", "--no-sandbox", "--disable-gpu", f"--window-size={width},900"]
    done = subprocess.run(
        [*command, *options, f"--user-data-dir={folder / 'profile'}", "--dump-dom", f"file://{folder / 'page.html'}"],
        capture_output=True, text=True, timeout=120,
    )  # fmt: skip
    title = done.stdout[done.stdout.index("<title>") + 7 : done.stdout.index("</title>")]
    return title.split(" ", 2)


@pytest.mark.parametrize(("story", "language"), [("failures", "en"), ("go", "ko")])
def test_nothing_scrolls_sideways_on_a_phone(story: str, language: str, tmp_path: Path) -> None:
    page = contents(replace(report_inputs(STORIES[story]()), language=language))["report.html"].decode()
    wide, inner, rest = seen(page, tmp_path, 500)  # headless windows are no narrower
    assert int(wide) <= int(inner)
    labelled, drawings = rest.split()[-2:]
    assert labelled == drawings == "2"
