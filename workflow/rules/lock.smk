# Once a trial, before the first proposal.


rule lock:
    input:
        reads("lock"),
    output:
        record("lock"),
        update(ledger("lock")),
    params:
        code=RUN.code("lock"),
        given=RUN.given("lock"),
    log:
        log_of("lock"),
    shell:
        "exec {sys.executable} -m kerneltrial lock --config {RUN.config_path} --code {params.code} --log {log}"


rule terms:
    input:
        reads("terms"),
    output:
        record("terms"),
        update(ledger("terms")),
    params:
        code=RUN.code("terms"),
        given=RUN.given("terms"),
    log:
        log_of("terms"),
    shell:
        "exec {sys.executable} -m kerneltrial terms --config {RUN.config_path} --code {params.code} --log {log}"


rule qualify:
    input:
        reads("qualify"),
    output:
        record("qualify"),
    params:
        code=RUN.code("qualify"),
        given=RUN.given("qualify"),
    resources:
        gpu=1,
    log:
        log_of("qualify"),
    shell:
        "exec {sys.executable} -m kerneltrial qualify --config {RUN.config_path} --code {params.code} --log {log}"


rule prize:
    input:
        reads("prize"),
    output:
        record("prize"),
        update(ledger("prize")),
    params:
        code=RUN.code("prize"),
        given=RUN.given("prize"),
    log:
        log_of("prize"),
    shell:
        "exec {sys.executable} -m kerneltrial prize --config {RUN.config_path} --code {params.code} --log {log}"
