"""What can go wrong made to go wrong, many times: each module is a command that prints its figures as JSON.

``python -m tests.reliability.kill --count 1000`` and so on; docs/reliability.rst has the commands and what they found.
`tests/test_reliability.py` runs each of them in small.
"""
