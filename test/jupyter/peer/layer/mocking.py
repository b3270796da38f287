"""Stands in for `jupyterhub.tests.mocking`."""

from .excluded import Opaque
from .utils import async_requests, public_host, public_url


class MockSpawner:
    configuration = {}


class SlowSpawner:
    configuration = {"MockProcessSpawner": {"mode": "slow"}}


class NeverSpawner:
    configuration = {"MockProcessSpawner": {"mode": "never"}, "Spawner": {"start_timeout": 1}}


class BadSpawner:
    configuration = {"MockProcessSpawner": {"mode": "bad"}}


class SlowBadSpawner:
    configuration = {"MockProcessSpawner": {"mode": "slow-bad"}}


class FormSpawner:
    options_form = "IMAFORM"
    configuration = {"MockProcessSpawner": {"form": True}}


class FalsyCallableFormSpawner:
    options_form = ""
    configuration = {}


MockHub = Opaque("MockHub")

__all__ = ["async_requests", "public_host", "public_url"]


def __getattr__(name):
    if name.startswith("__"):
        raise AttributeError(name)
    return Opaque(f"mocking.{name}")
