# A trial of one kernel: lock, qualification, prize, then iterations of propose, build, validate, time, holdout and cost,
# then confirmation, decision and report. What a trial is about stands in config.yaml; README.md says how to read it.
include: "workflow/rules/config.smk"


configfile: "config.yaml"


include: "workflow/rules/common.smk"
include: "workflow/rules/lock.smk"
include: "workflow/rules/iterate.smk"
include: "workflow/rules/decide.smk"


# It names every record: a missing intermediate file is otherwise not noticed.
rule all:
    input:
        every_record(),
