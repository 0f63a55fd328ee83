# Checks the config, takes the trial's lock, sets stale records aside; and what the rules share.
from pathlib import Path

from kerneltrial.dag import graph, prepared

RUN = prepared.prepare(
    config,
    Path.cwd(),
    workflow.is_main_process,
    workflow.overwrite_configfiles or workflow.configfiles,
    dry=workflow.output_settings.dryrun,
)
TRIAL = RUN.trial


onstart:
    RUN.import_ahead()


onerror:
    RUN.ending.failed = True  # what stopped is said again, last


wildcard_constraints:
    i=r"\d{4}",


def every_record():
    return [
        graph.record_path(TRIAL, stage, i) for stage, i in graph.jobs(RUN.iterations)
    ]


def reads(stage):
    """The files whose bytes a job depends on: sources, then records."""
    return lambda wildcards: RUN.inputs(stage, int(wildcards.get("i", 0)))


def record(stage):
    """The path of a stage's record, with the wildcard `i` where it is made once an iteration."""
    return RUN.pattern(stage)


def ledger(stage):
    return graph.ledger_path(TRIAL, stage)


def given(stage):
    """The config keys that a stage reads. Handed over by a function, as Snakemake takes braces in a text for wildcards."""
    return lambda wildcards: RUN.given(stage)


def log_of(stage):
    return RUN.log(stage)
