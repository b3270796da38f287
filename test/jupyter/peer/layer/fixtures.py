"""Stands in for `jupyterhub.tests.conftest`: the fixtures that JupyterHub's tests ask for."""

import asyncio
import itertools
import sys
from pathlib import Path
from unittest import mock

import pytest

from . import mocking, orm
from .app import App
from .excluded import exclude
from .hub import free_port
from .utils import add_user

_numbers = itertools.count(1)
DEBIAN_TESTS = Path("/usr/lib/python3/dist-packages/jupyterhub/tests")


def new_username(prefix="testuser"):
    return f"{prefix}-{next(_numbers)}"


def new_group_name(prefix="testgroup"):
    return f"{prefix}-{next(_numbers)}"


@pytest.fixture(scope="module")
def event_loop():
    loop = asyncio.new_event_loop()
    asyncio.set_event_loop(loop)
    yield loop
    loop.close()


@pytest.fixture(scope="module")
def io_loop(event_loop):
    exclude("the event loop of JupyterHub")


@pytest.fixture
def db():
    exclude("a database without a hub")


@pytest.fixture(scope="module")
def _hub_of_file():
    app = App()
    try:
        app.begin()
        yield app
    finally:
        app.close()


@pytest.fixture
def app(_hub_of_file, request):
    if "create_user_with_scopes" in request.fixturenames:
        _hub_of_file.need_bare_users()
    else:
        _hub_of_file.need_usual_users()
    yield _hub_of_file
    _hub_of_file.clear()


@pytest.fixture
def username():
    return new_username()


@pytest.fixture
def user(app):
    return add_user(app.db, app, name=new_username())


@pytest.fixture
def admin_user(app):
    return add_user(app.db, app, name=new_username("testadmin"), admin=True)


@pytest.fixture
def groupname():
    return new_group_name()


@pytest.fixture
def group(app):
    group = orm.Group(name=new_group_name())
    group._store()
    return group


@pytest.fixture
def auth_state_enabled(app):
    app.authenticator.auth_state = {"who": "cares"}
    app.authenticator.enable_auth_state = True
    yield
    app.authenticator.enable_auth_state = False
    app.authenticator.auth_state = None


def _mock_service(app, **settings):
    service = app.add_service(
        {"name": f"mock-service-{next(_numbers)}", "admin": True, **settings}
    )
    service.wait_until_ready()
    return service


@pytest.fixture
def service_name():
    return f"runtime-service-{next(_numbers)}"


@pytest.fixture
def service_data(service_name):
    """Of a service that is added over the API."""
    return {
        "api_token": f"token-of-{service_name}",
        "oauth_client_id": f"service-{service_name}",
        "oauth_redirect_uri": "http://127.0.0.1:5555/callback",
        "oauth_no_confirm": True,
        "info": {"of": "a test"},
    }


_command = [sys.executable, str(DEBIAN_TESTS / "mockservice.py")]


@pytest.fixture
def mockservice(app):
    return _mock_service(app, command=_command)


@pytest.fixture
def mockservice_external(app):
    return _mock_service(app, oauth_redirect_uri=f"http://127.0.0.1:{free_port()}")


@pytest.fixture
def mockservice_url(app):
    return _mock_service(app, command=_command, url=f"http://127.0.0.1:{free_port()}")


def _with_settings(**settings):
    @pytest.fixture
    def fixture(app):
        with mock.patch.dict(app.tornado_settings, settings):
            yield

    return fixture


admin_access = _with_settings(admin_access=True)
no_patience = _with_settings(slow_spawn_timeout=0.1, slow_stop_timeout=0.1)
slow_spawn = _with_settings(spawner_class=mocking.SlowSpawner)
never_spawn = _with_settings(spawner_class=mocking.NeverSpawner)
bad_spawn = _with_settings(spawner_class=mocking.BadSpawner)
slow_bad_spawn = _with_settings(spawner_class=mocking.SlowBadSpawner)


@pytest.fixture
def full_spawn(app):
    """Servers that check their visitors, as Jupyter does."""
    exclude("a whole Jupyter server")
    yield


@pytest.fixture
def role(app):
    exclude("a role written into the database")


@pytest.fixture
def create_temp_role(app):
    made = []

    def create(scopes, role_name=None):
        role = orm.Role(name=role_name or f"temp_role_{next(_numbers)}")
        role._store(scopes)
        made.append(role)
        return role

    yield create
    for role in made:
        role._delete()


@pytest.fixture
def create_user_with_scopes(app, create_temp_role):
    numbers = itertools.count(1)

    def create(*scopes, name=None):
        user = orm.User(name=name or f"temp_user_{next(numbers)}")
        user._store()
        create_temp_role(scopes)._assign(user)
        return user

    return create


@pytest.fixture
def create_service_with_scopes(app, create_temp_role):
    numbers = itertools.count(1)

    def create(*scopes, name=None):
        service = app.add_service({"name": name or f"temp_service_{next(numbers)}"})
        create_temp_role(scopes)._assign(service)
        return service

    return create


@pytest.fixture
def preserve_scopes(app):
    from jupyterhub import scopes

    before = dict(scopes.scope_definitions)
    yield before
    app.custom_scopes.clear()
    scopes.scope_definitions.clear()
    scopes.scope_definitions.update(before)
