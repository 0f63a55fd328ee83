"""Thousands of collected tests stay until the end: garbage collection need not look through them again and again."""

import gc


def pytest_collection_finish() -> None:
    """Keep what was imported and collected out of every collection to come."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000, 20, 20)  # as the stages themselves do (commands/attended.py)
