# Once a trial, before the first proposal.


rule lock:
    input:
        reads("lock"),
    output:
        record("lock"),
        update(ledger("lock")),
    log:
        log_of("lock"),
    params:
        code=RUN.code("lock"),
        given=given("lock"),
    shell:
        "exec {RUN.stage} lock --config {RUN.config_path} --code {params.code} --log {log}"


rule terms:
    input:
        reads("terms"),
    output:
        record("terms"),
        update(ledger("terms")),
    log:
        log_of("terms"),
    params:
        code=RUN.code("terms"),
        given=given("terms"),
    shell:
        "exec {RUN.stage} terms --config {RUN.config_path} --code {params.code} --log {log}"


rule qualify:
    input:
        reads("qualify"),
    output:
        record("qualify"),
    log:
        log_of("qualify"),
    resources:
        gpu=RUN.cards,
        card_percent=RUN.share(100),
    params:
        code=RUN.code("qualify"),
        given=given("qualify"),
    shell:
        "exec {RUN.stage} qualify --config {RUN.config_path} --code {params.code} --log {log}"


rule prize:
    input:
        reads("prize"),
    output:
        record("prize"),
        update(ledger("prize")),
    log:
        log_of("prize"),
    params:
        code=RUN.code("prize"),
        given=given("prize"),
    shell:
        "exec {RUN.stage} prize --config {RUN.config_path} --code {params.code} --log {log}"
