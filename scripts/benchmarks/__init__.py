"""What `scripts/benchmark.py` measures, a file for each question."""
