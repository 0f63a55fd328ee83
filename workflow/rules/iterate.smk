# Once an iteration. A bad candidate is a value: the job succeeds, and its record says what was wrong.


rule propose:
    input:
        reads("propose"),
        # Order only: the ledger is never removed, and a price that changes makes no proposal stale.
        prize=ancient(ledger("prize")),
    output:
        record("propose"),
    params:
        code=RUN.code("propose"),
        given=RUN.given("propose"),
    log:
        log_of("propose"),
    shell:
        "exec {sys.executable} -m kerneltrial propose --iteration {wildcards.i} --config {RUN.config_path}"
        " --code {params.code} --log {log}"


rule build:
    input:
        reads("build"),
    output:
        record("build"),
    params:
        code=RUN.code("build"),
        given=RUN.given("build"),
    log:
        log_of("build"),
    shell:
        "exec {sys.executable} -m kerneltrial build --iteration {wildcards.i} --config {RUN.config_path}"
        " --code {params.code} --log {log}"


rule validate:
    input:
        reads("validate"),
    output:
        record("validate"),
    params:
        code=RUN.code("validate"),
        given=RUN.given("validate"),
    resources:
        gpu=1,
    log:
        log_of("validate"),
    shell:
        "exec {sys.executable} -m kerneltrial validate --iteration {wildcards.i} --config {RUN.config_path}"
        " --code {params.code} --log {log}"


rule time:
    input:
        reads("time"),
    output:
        record("time"),
    params:
        code=RUN.code("time"),
        given=RUN.given("time"),
    resources:
        gpu=1,
    log:
        log_of("time"),
    shell:
        "exec {sys.executable} -m kerneltrial time --iteration {wildcards.i} --config {RUN.config_path}"
        " --code {params.code} --log {log}"


rule holdout:
    input:
        reads("holdout"),
    output:
        record("holdout"),
    params:
        code=RUN.code("holdout"),
        given=RUN.given("holdout"),
    resources:
        gpu=1,
    log:
        log_of("holdout"),
    shell:
        "exec {sys.executable} -m kerneltrial holdout --iteration {wildcards.i} --config {RUN.config_path}"
        " --code {params.code} --log {log}"


rule cost:
    input:
        reads("cost"),
    output:
        record("cost"),
    params:
        code=RUN.code("cost"),
        given=RUN.given("cost"),
    log:
        log_of("cost"),
    shell:
        "exec {sys.executable} -m kerneltrial cost --iteration {wildcards.i} --config {RUN.config_path}"
        " --code {params.code} --log {log}"
