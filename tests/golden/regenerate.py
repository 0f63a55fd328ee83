"""Write the golden files anew: `python tests/golden/regenerate.py`, then read the difference before committing it."""

from pathlib import Path

from prompts import prompts
from trial_pieces import report_inputs
from trial_stories import STORIES

from kerneltrial.report.render import contents

FOLDER = Path(__file__).parent
NAMES = ("decision.json", "summary.json", "history.json")


def main() -> None:
    for story, tell in STORIES.items():
        made = contents(report_inputs(tell()))
        (FOLDER / story).mkdir(exist_ok=True)
        for name in NAMES:
            (FOLDER / story / name).write_bytes(made[name])
    (FOLDER / "prompts").mkdir(exist_ok=True)
    for name, made_prompt in prompts().items():
        (FOLDER / "prompts" / f"{name}.md").write_text(made_prompt.whole)


if __name__ == "__main__":
    main()
