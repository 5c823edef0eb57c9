"""Run every measure, print a table, and write build/bench.json."""

import json
import os
import platform
import sys
from pathlib import Path

import fanout
import fingerprint
import grpc
import resolve

TARGETS = {
    "resolve_throughput_ratio": (">=", 0.9),
    "fingerprint_time_ratio": ("<=", 0.5),
    "fanout_p99_ratio": ("<=", 1.3),
}


def main() -> None:
    """Measure what is named, or everything."""
    measures = {"fingerprint": fingerprint.measure, "resolve": resolve.measure, "fanout": fanout.measure}
    results: dict[str, float | int | str] = {
        "machine": f"{platform.machine()}, {os.cpu_count()} cores",
        "python": platform.python_version(),
        "grpcio": grpc.__version__,
    }
    for name in sys.argv[1:] or measures:
        print(f"measuring {name} …", file=sys.stderr, flush=True)
        results.update(measures[name]())
    missed = []
    for key, value in results.items():
        if not isinstance(value, float):
            print(f"{key:42} {value}")
            continue
        line = f"{key:42} {value:12.3f}"
        if key in TARGETS:
            relation, target = TARGETS[key]
            met = value >= target if relation == ">=" else value <= target
            line += f"   target {relation} {target}   {'met' if met else 'MISSED'}"
            if not met:
                missed.append(key)
        print(line)
    output = Path("build/bench.json")
    output.parent.mkdir(exist_ok=True)
    output.write_text(json.dumps(results, indent=2) + "\n")
    print(f"written to {output}" + (f"; missed: {', '.join(missed)}" if missed else ""))


if __name__ == "__main__":
    main()
