# Looks at config files before Snakemake reads them, so that what is wrong with one is one line. Include it first.
import os
import sys
from pathlib import Path

BESIDE = Path(workflow.current_basedir).parent
if (
    BESIDE / "kerneltrial"
).is_dir():  # a clone: the package beside these rules is the one that runs
    sys.path.insert(0, str(BESIDE))
    os.environ["PYTHONPATH"] = os.pathsep.join(
        filter(None, (str(BESIDE), os.environ.get("PYTHONPATH")))
    )
from kerneltrial.dag import asked

if workflow.is_main_process:
    asked.at_home(
        Path.cwd(), workflow.overwrite_configfiles, Path(workflow.main_snakefile)
    )
    asked.look(
        Path.cwd(),
        workflow.overwrite_configfiles,
        workflow.config_settings.replace_workflow_config,
        sys.argv[1:],
    )
