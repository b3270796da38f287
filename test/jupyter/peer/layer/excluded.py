"""How a test says that it cannot be translated."""

import pytest


def exclude(reason):
    """Ends the test as excluded: it looks into Python objects that the hub does not have."""
    pytest.skip(f"excluded: {reason}")


class Opaque:
    """Stands for a part of JupyterHub that exists in Python only: any use of it excludes the test."""

    def __init__(self, name):
        self.__dict__["_name"] = name

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        exclude(f"{self._name}.{name}")

    def __setattr__(self, name, value):
        exclude(f"{self._name}.{name} = …")

    def __delattr__(self, name):
        """What was never set is taken back."""

    def __call__(self, *args, **kwargs):
        exclude(f"{self._name}()")

    def __iter__(self):
        exclude(f"iter({self._name})")
