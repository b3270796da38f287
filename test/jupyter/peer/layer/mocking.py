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


def options_of(options):
    """Options as `FormSpawner` reads them from its form; others as they are."""
    if "bounds" not in options or "energy" not in options:
        return options
    bounds = [int(text) for text in options["bounds"].split()]
    return {**options, "bounds": bounds, "notspecified": 5}


class FalsyCallableFormSpawner:
    options_form = ""
    configuration = {}


MockHub = Opaque("MockHub")

__all__ = ["async_requests", "public_host", "public_url"]


def __getattr__(name):
    if name.startswith("__"):
        raise AttributeError(name)
    return Opaque(f"mocking.{name}")
