# Once an iteration. A bad candidate is a value: the job succeeds, and its record says what was wrong.


rule propose:
    input:
        reads("propose"),
        # Order only: the ledger is never removed, and a price that changes makes no proposal stale.
        prize=ancient(ledger("prize")),
    output:
        record("propose"),
    log:
        log_of("propose"),
    params:
        code=RUN.code("propose"),
        given=given("propose"),
    shell:
        "exec {RUN.stage} propose --iteration {wildcards.i} --config {RUN.config_path}"
        " --code {params.code} --log {log}"


rule build:
    input:
        reads("build"),
    output:
        record("build"),
    log:
        log_of("build"),
    params:
        code=RUN.code("build"),
        given=given("build"),
    shell:
        "exec {RUN.stage} build --iteration {wildcards.i} --config {RUN.config_path}"
        " --code {params.code} --log {log}"


rule validate:
    input:
        reads("validate"),
    output:
        record("validate"),
    log:
        log_of("validate"),
    resources:
        gpu=RUN.cards,
        card_percent=RUN.share(30),
    params:
        code=RUN.code("validate"),
        given=given("validate"),
    shell:
        "exec {RUN.stage} validate --iteration {wildcards.i} --config {RUN.config_path}"
        " --code {params.code} --log {log}"


rule time:
    input:
        reads("time"),
    output:
        record("time"),
    log:
        log_of("time"),
    priority: 1  # the next proposal waits for it, and not for the holdout
    resources:
        gpu=RUN.cards,
        card_percent=RUN.share(100),
    params:
        code=RUN.code("time"),
        given=given("time"),
    shell:
        "exec {RUN.stage} time --iteration {wildcards.i} --config {RUN.config_path}"
        " --code {params.code} --log {log}"


rule holdout:
    input:
        reads("holdout"),
    output:
        record("holdout"),
    log:
        log_of("holdout"),
    resources:
        gpu=RUN.cards,
        card_percent=RUN.share(30),
    params:
        code=RUN.code("holdout"),
        given=given("holdout"),
    shell:
        "exec {RUN.stage} holdout --iteration {wildcards.i} --config {RUN.config_path}"
        " --code {params.code} --log {log}"


rule cost:
    input:
        reads("cost"),
    output:
        record("cost"),
    log:
        log_of("cost"),
    params:
        code=RUN.code("cost"),
        given=given("cost"),
    shell:
        "exec {RUN.stage} cost --iteration {wildcards.i} --config {RUN.config_path}"
        " --code {params.code} --log {log}"
