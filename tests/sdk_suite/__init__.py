"""The session tests of the Agents SDK, run with our classes in place of its own.

The tests come from the source distribution of the SDK. `expected.toml` lists each test that fails, with the
reason. Run `make sdk-suite`; it downloads packages, so it is no part of `make test`.
"""
