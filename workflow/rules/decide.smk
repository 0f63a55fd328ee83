# Once a trial, after the last iteration.


rule confirm:
    input:
        reads("confirm"),
    output:
        record("confirm"),
    params:
        code=RUN.code("confirm"),
        given=RUN.given("confirm"),
    resources:
        gpu=1,
    log:
        log_of("confirm"),
    shell:
        "exec {sys.executable} -m kerneltrial confirm --config {RUN.config_path}"
        " --code {params.code} --log {log}"


rule decide:
    input:
        reads("decide"),
    output:
        record("decide"),
    params:
        code=RUN.code("decide"),
        given=RUN.given("decide"),
    log:
        log_of("decide"),
    shell:
        "exec {sys.executable} -m kerneltrial decide --config {RUN.config_path}"
        " --code {params.code} --log {log}"


rule report:
    input:
        reads("report"),
    output:
        record("report"),
    params:
        code=RUN.code("report"),
        given=RUN.given("report"),
    log:
        log_of("report"),
    shell:
        "exec {sys.executable} -m kerneltrial report --config {RUN.config_path}"
        " --code {params.code} --log {log}"
