# Once a trial, after the last iteration.


rule confirm:
    input:
        reads("confirm"),
    output:
        record("confirm"),
    log:
        log_of("confirm"),
    resources:
        gpu=RUN.cards,
        card_percent=RUN.share(100),
    params:
        code=RUN.code("confirm"),
        given=given("confirm"),
    shell:
        "exec {RUN.stage} confirm --config {RUN.config_path}"
        " --code {params.code} --log {log}"


rule decide:
    input:
        reads("decide"),
    output:
        record("decide"),
    log:
        log_of("decide"),
    params:
        code=RUN.code("decide"),
        given=given("decide"),
    shell:
        "exec {RUN.stage} decide --config {RUN.config_path}"
        " --code {params.code} --log {log}"


rule report:
    input:
        reads("report"),
    output:
        record("report"),
    log:
        log_of("report"),
    params:
        code=RUN.code("report"),
        given=given("report"),
    shell:
        "exec {RUN.stage} report --config {RUN.config_path}"
        " --code {params.code} --log {log}"
