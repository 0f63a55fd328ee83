"""Where the `cpu` device is known to differ from an H200 (driver 580.159, 2026-12-01).

Each entry is expected to differ, strictly: one that is mended must leave this list, and nothing new joins it unseen.
"""

INSTRUCTIONS: dict[str, str] = {}
KERNELS: dict[str, str] = {}
