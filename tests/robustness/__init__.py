"""The robustness suite: a real service under faults, and every client's record judged by its log.

Run it from `tests/`: `PYTHONPATH=.:support python -m robustness --seed 7 --seconds 60`.
"""
