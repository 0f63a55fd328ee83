"""Why something is not as it should be: one enum of codes, each with its class (DESIGN.md section 2)."""

from enum import Enum

from kerneltrial.records.record import Record, Text


class ReasonClass(Enum):
    """Whom a reason speaks of."""

    CANDIDATE = "candidate"  # counts against the candidate
    INFRASTRUCTURE = "infrastructure"  # never counts against a candidate
    UNCHECKED = "unchecked"  # could not be looked at: neither a pass nor a fault


class Reason(Enum):
    """A reason code. The text beside a code says what happened in this case."""

    # candidate: proposal and build
    UNUSABLE_REPLY = "unusable_reply"
    SPACE_EXHAUSTED = "space_exhausted"
    PRIZE_TOO_SMALL = "prize_too_small"  # nothing was asked of the proposer: no kernel could pay back
    BUDGET_SPENT = "budget_spent"  # nothing was asked: the next answer might have cost more than is left
    GOAL_REACHED = "goal_reached"  # nothing was asked: the best is as fast as the trial wants
    SOURCE_REFUSED = "source_refused"  # too large, NUL bytes, broken UTF-8
    INCLUDE_REFUSED = "include_refused"
    DOES_NOT_COMPILE = "does_not_compile"
    COMPILE_LIMIT = "compile_limit"  # the compiler ran out of its time or memory
    ENTRY_MISSING = "entry_missing"
    PARAMETERS_DIFFER = "parameters_differ"  # the binary's parameters are not those of contract and plan
    BAD_PLAN = "bad_plan"
    NO_LAUNCH_FOR_SHAPE = "no_launch_for_shape"
    FORBIDDEN_INSTRUCTION = "forbidden_instruction"
    # candidate: execution
    LAUNCH_FAILED = "launch_failed"
    WRONG_VALUES = "wrong_values"
    WRONG_NONFINITE = "wrong_nonfinite"  # NaN or inf not exactly where the oracle has them
    PRECISION_LOSS = "precision_loss"  # within tolerance, but far worse than the baseline's own error
    OUTPUT_NOT_WRITTEN = "output_not_written"  # results depend on what lay in the output or scratch before
    INPUT_CHANGED = "input_changed"
    GUARD_OVERWRITTEN = "guard_overwritten"
    NOT_DETERMINISTIC = "not_deterministic"
    OUT_OF_BOUNDS = "out_of_bounds"
    MISALIGNED = "misaligned"
    READ_ONLY_WRITTEN = "read_only_written"
    UNINITIALISED_READ = "uninitialised_read"
    SHARED_RACE = "shared_race"
    GLOBAL_RACE = "global_race"
    BARRIER_DIVERGENCE = "barrier_divergence"
    DEADLOCK = "deadlock"
    ENDLESS_LOOP = "endless_loop"
    TRAP = "trap"
    HANG = "hang"  # the watchdog ended it
    DEVICE_FAULT = "device_fault"  # the card reported a fault in this candidate's own process
    HOLDOUT_FAILED = "holdout_failed"
    NOT_FASTER = "not_faster"
    UNDER_ROOFLINE = "under_roofline"
    # infrastructure
    DEVICE_LOST = "device_lost"
    OUT_OF_MEMORY = "out_of_memory"
    RUNNER_DIED = "runner_died"
    COMPILER_DIED = "compiler_died"
    # unchecked
    UNSUPPORTED_INSTRUCTION = "unsupported_instruction"
    UNSUPPORTED_FEATURE = "unsupported_feature"
    CHECK_ABSENT = "check_absent"  # a sanitizer or a counter that is not there
    NOT_MEASURED = "not_measured"
    NEEDS_REVIEW = "needs_review"  # the screen saw something that a person must look at

    @property
    def reason_class(self) -> ReasonClass:
        if self in _INFRASTRUCTURE:
            return ReasonClass.INFRASTRUCTURE
        return ReasonClass.UNCHECKED if self in _UNCHECKED else ReasonClass.CANDIDATE


_INFRASTRUCTURE = frozenset({Reason.DEVICE_LOST, Reason.OUT_OF_MEMORY, Reason.RUNNER_DIED, Reason.COMPILER_DIED})
_UNCHECKED = frozenset(
    {
        Reason.UNSUPPORTED_INSTRUCTION,
        Reason.UNSUPPORTED_FEATURE,
        Reason.CHECK_ABSENT,
        Reason.NOT_MEASURED,
        Reason.NEEDS_REVIEW,
    }
)


class Finding(Record):
    """One thing that was found: a code and, in words, what happened where."""

    reason: Reason
    detail: Text


class Skipped(Record, tag_field="state", tag="skipped"):
    """This stage had nothing to do for the candidate, since an earlier stage ended its way."""

    stage: str
    reason: Reason
