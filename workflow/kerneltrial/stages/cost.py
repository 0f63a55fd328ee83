"""Cost: what the trial has used so far, and the provisional payback."""

from kerneltrial.decide.cost import cost
from kerneltrial.records.cost import Cost
from kerneltrial.records.terms import Prices, Workload
from kerneltrial.stages.gathered import judged, spent_so_far
from kerneltrial.stages.job import Job
from kerneltrial.store.canonical import convert


def run(job: Job) -> Cost:
    """Sums of write-once usage entries, so that the cost is the same when it is made again."""
    prices, workload = convert(Prices, job.given["prices"]), convert(Workload, job.given["workload"])
    return cost(job.iteration, spent_so_far(job, prices, workload), judged(job), prices, workload)
