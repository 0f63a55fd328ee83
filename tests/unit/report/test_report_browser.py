"""The page in a real browser, where one is there: it fits a phone, every text can be read, drawings are described."""

import base64
import json
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from trial_pieces import report_inputs
from trial_stories import STORIES

from kerneltrial.report.render import contents

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="no Chromium here (Debian: apt-get install chromium)")
MEASURE = """<script>addEventListener("load", () => {
document.querySelectorAll("details").forEach(one => one.open = true);
const parts = colour => { const n = colour.match(/[\\d.]+/g).map(Number); return n.length > 3 ? n : [...n, 1] };
const light = rgb => { const [r, g, b] = rgb.map(v => (v /= 255) <= .04045 ? v / 12.92 : ((v + .055) / 1.055) ** 2.4);
  return .2126 * r + .7152 * g + .0722 * b };
const behind = node => { for (; node; node = node.parentElement) {
  const colour = parts(getComputedStyle(node).backgroundColor); if (colour[3] > 0) return colour }
  return [255, 255, 255, 1] };
const faint = [], walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
for (let text; text = walker.nextNode();) {
  const node = text.parentElement, style = getComputedStyle(node);
  if (!text.textContent.trim() || ["STYLE", "SCRIPT"].includes(node.tagName) || node.matches(".sign, style")) continue;
  const ink = parts(node.closest("svg") ? style.fill : style.color);
  const [a, b] = [light(ink.slice(0, 3)), light(behind(node).slice(0, 3))];
  const contrast = (Math.max(a, b) + .05) / (Math.min(a, b) + .05);
  if (contrast < 4.5) faint.push([text.textContent.trim().slice(0, 40), contrast.toFixed(2)]);
}
const drawings = [...document.querySelectorAll("svg")];
parent.postMessage(JSON.stringify({
  wide: document.documentElement.scrollWidth, inner: innerWidth, faint,
  paper: getComputedStyle(document.body).backgroundColor,
  unlabelled: drawings.filter(one => one.getAttribute("role") !== "img" || !one.getAttribute("aria-label")).length,
  drawings: drawings.length,
  lost: [...document.querySelectorAll("a")].filter(a => !document.querySelector(a.getAttribute("href"))).length,
  scrollers: [...document.querySelectorAll(".plot")].filter(one => one.tabIndex !== 0).length,
}), "*")})
</script></head>"""
FRAME = """<title>nothing</title><script>addEventListener("message", e => {
document.title = btoa(unescape(encodeURIComponent(e.data))) })</script>
<iframe src="page.html" style="border:0;width:%dpx;height:800px"></iframe>"""


def seen(page: str, folder: Path, width: int, *, dark: bool = False) -> dict[str, Any]:
    """What the browser measures of the page in a frame of this width.

    The policy that forbids scripts is lifted for this test alone. Headless windows are no narrower than 500 pixels.
    """
    start = page.index('<meta http-equiv="Content-Security-Policy"')
    page = page[:start] + page[page.index(">", start) + 1 :]
    if dark:
        page = page.replace("@media (prefers-color-scheme: dark)", "@media all")
    (folder / "page.html").write_text(page.replace("</head>", MEASURE, 1))
    (folder / "frame.html").write_text(FRAME % width)
    command = [str(CHROMIUM), "--headless", "--no-sandbox", "--disable-gpu", "--window-size=1400,900"]
    command += ["--virtual-time-budget=5000", f"--user-data-dir={folder / 'profile'}"]
    done = subprocess.run(
        [*command, "--dump-dom", f"file://{folder / 'frame.html'}"],
        capture_output=True, text=True, timeout=120,
    )  # fmt: skip
    title = done.stdout[done.stdout.index("<title>") + 7 : done.stdout.index("</title>")]
    found: dict[str, Any] = json.loads(base64.b64decode(title))
    return found


def page_of(story: str, language: str) -> str:
    return contents(replace(report_inputs(STORIES[story]()), language=language))["report.html"].decode()


@pytest.mark.parametrize(("story", "language"), [("failures", "en"), ("go", "ko"), ("go", "en"), ("cpu", "en")])
def test_nothing_scrolls_sideways_on_a_phone(story: str, language: str, tmp_path: Path) -> None:
    found = seen(page_of(story, language), tmp_path, 375)
    assert found["inner"] == 375
    assert found["wide"] <= 375
    assert found["drawings"] == 2
    assert (found["unlabelled"], found["lost"], found["scrollers"]) == (0, 0, 0)


@pytest.mark.parametrize("dark", [False, True])
@pytest.mark.parametrize("story", ["failures", "go", "cpu"])
def test_every_text_stands_out_from_what_is_behind_it(story: str, dark: bool, tmp_path: Path) -> None:
    found = seen(page_of(story, "en"), tmp_path, 1100, dark=dark)
    assert found["paper"] == ("rgb(20, 23, 27)" if dark else "rgb(255, 255, 255)")
    assert found["faint"] == []
