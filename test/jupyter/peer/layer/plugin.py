"""The pytest plugin: puts the layer in the place of the modules that JupyterHub's tests import."""

import json
import sys
from pathlib import Path

import jupyterhub
import pytest

from . import fixtures, mocking, orm, roles, utils, web
from .excluded import Opaque, exclude
from .hub import INTERFACE_VERSION


def _replace(name, module):
    package, _, last = name.rpartition(".")
    sys.modules[name] = module
    setattr(sys.modules[package], last, module)


_replace("jupyterhub.orm", orm)
_replace("jupyterhub.roles", roles)

import jupyterhub.scopes  # noqa: E402  it takes the classes of the layer
import jupyterhub.tests  # noqa: E402

import jupyterhub.apihandlers.base  # noqa: E402, F401  it counts with the metrics of its own process

jupyterhub.metrics = Opaque("metrics")
# The hub says which interface it has; the package is that of the tests' helpers.
jupyterhub.__version__ = INTERFACE_VERSION

_replace("jupyterhub.tests.conftest", fixtures)
_replace("jupyterhub.tests.mocking", mocking)
_replace("jupyterhub.tests.utils", utils)

_define_custom_scopes = jupyterhub.scopes.define_custom_scopes


def define_custom_scopes(definitions):
    _define_custom_scopes(definitions)
    if web.Translation.app is not None:
        web.Translation.app.custom_scopes.update(definitions)


def get_scopes_for(holder):
    """What a user, a service or a token may do, as the hub says."""
    if isinstance(holder, orm.APIToken):
        token = holder.token
    elif isinstance(holder, (orm.User, orm.Service)):
        token = holder.new_api_token()
    else:
        exclude(f"the scopes of a {type(holder).__name__}")
    if token is None:
        exclude("the scopes of a token that is not known")
    scopes = web.Translation.app.api.send("GET", "user", token=token)["scopes"]
    return frozenset(scope for scope in scopes if web.is_scope_of_jupyterhub(scope))


def access_scopes(oauth_client=None, service=None, spawner=None):
    """The scopes that let in to a server or to the service of a client."""
    if spawner is not None:
        return {f"access:servers!server={spawner.user.name}/{spawner.name}"}
    service = service or oauth_client.service
    return {f"access:services!service={service.name}"}


jupyterhub.scopes.access_scopes = access_scopes
jupyterhub.scopes.define_custom_scopes = define_custom_scopes
jupyterhub.scopes.get_scopes_for = get_scopes_for

for _name, _value in vars(fixtures).items():
    if hasattr(_value, "_pytestfixturefunction"):
        globals()[_name] = _value


def pytest_addoption(parser):
    parser.addoption("--results", help="file for what became of each test")
    parser.addoption("--newer", action="store_true", help="the tests are of JupyterHub 5")


def pytest_configure(config):
    web.Translation.has_newer_members = config.getoption("--newer")
    if config.getoption("--results"):
        config.pluginmanager.register(Results(config.getoption("--results")))
    for argument in config.args:
        folder = Path(argument.partition("::")[0]).parent
        # Files of another folder are modules of the same package.
        if str(folder) not in jupyterhub.tests.__path__:
            jupyterhub.tests.__path__.insert(0, str(folder))
    for mark in ("user", "group", "role", "services", "slow"):
        config.addinivalue_line("markers", f"{mark}: of JupyterHub's own tests")


def pytest_collection_modifyitems(items):
    for item in items:
        if "caplog" in item.fixturenames:
            reason = "excluded: reads what Python code of JupyterHub logs"
            item.add_marker(pytest.mark.skip(reason=reason))
        if "app" not in item.fixturenames:
            reason = "excluded: asks Python code of JupyterHub, and no hub"
            item.add_marker(pytest.mark.skip(reason=reason))


class Results:
    """Writes what became of each test, a JSON object a line."""

    def __init__(self, file):
        self._file, self._outcomes = open(file, "w", encoding="utf8"), {}

    def pytest_runtest_logreport(self, report):
        name = report.nodeid.partition("::")[2]
        outcome, reason = "passed", ""
        if report.skipped:
            outcome, reason = "excluded", str(report.longrepr[2]).removeprefix("Skipped: ")
        elif report.failed:
            crash = getattr(report.longrepr, "reprcrash", None)
            reason = (crash.message if crash else str(report.longrepr)).splitlines()[0][:200]
            outcome = "failed"
        known = self._outcomes.get(name, ("passed", ""))
        if known[0] == "passed":
            self._outcomes[name] = (outcome, reason)
        if report.when == "teardown":
            outcome, reason = self._outcomes.pop(name)
            line = {"name": name, "outcome": outcome, "reason": reason}
            self._file.write(json.dumps(line) + "\n")
            self._file.flush()
