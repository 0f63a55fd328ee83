"""What a problem's own code, or torch, raised, in one line that says what to do."""

LINE = 300  # letters that are told of a fault


def told(fault: BaseException) -> str:
    """What a fault means, where torch's own words would not help."""
    said = _text(fault)
    if "value out of a tracing tensor" in said:
        return "a branch, a shape or a Python number in it depends on values: there is no one graph for all of them"
    if "CUDA" in said or "NVIDIA driver" in said:
        return f"it asks for a GPU, and is traced on the processor; take .cuda() and device='cuda' out: {line(fault)}"
    confined = "; it runs with no network and no files but Python's own" if isinstance(fault, OSError) else ""
    return f"it raises {line(fault)}{confined}"


def line(fault: BaseException) -> str:
    """The fault's name and the first line of its text."""
    first = next((one for one in _text(fault).splitlines() if one.strip()), "")
    return f"{type(fault).__name__}{': ' if first else ''}{first}"[:LINE]


def _text(fault: BaseException) -> str:
    try:
        return str(fault)
    except Exception:  # its __str__ is the problem's too
        return ""
