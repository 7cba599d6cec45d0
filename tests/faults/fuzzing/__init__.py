"""Input that nobody would send on purpose: whatever comes, the answer is right, or an error that says why.

`python -m tests.faults fuzzing` does the long form. `python -m tests.faults.fuzzing TARGET FILE ...` tries
the inputs of files again, such as those in `corpus/`, where everything that was ever found stays.
"""
