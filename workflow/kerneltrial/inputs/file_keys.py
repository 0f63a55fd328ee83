"""The config keys that name files: a group of a trial's files each. Alone here, so that every stage starts soon."""

FILE_KEYS = (
    "contract",
    "baseline",
    "cases",
    "oracle",
    "reference",
    "holdout",
    "space",
    "candidates",
    "replies",
    "program",
    "reviewers",
    "application",
)
