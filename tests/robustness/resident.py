"""What a process holds, as the kernel counts it."""

from pathlib import Path


def resident_bytes(pid: int | str = "self") -> int:
    """Resident memory of a process."""
    for line in Path(f"/proc/{pid}/status").read_text("ascii").splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) * 1024
    raise ProcessLookupError(f"process {pid} has no memory")


def open_files(pid: int | str = "self") -> int:
    """Open descriptors of a process."""
    return sum(1 for _ in Path(f"/proc/{pid}/fd").iterdir())
