"""Stands in for `jupyterhub.tests.utils`: the same helpers, for the hub of the layer."""

import re
from urllib.parse import unquote

import pytest

from . import orm
from .csrf import csrf_token
from .excluded import Opaque
from .hub import BASE_PATH
from .web import AsyncSession, async_requests

skip_if_ssl = pytest.mark.skipif(False, reason="no TLS between the parts of the hub")


def join(*parts):
    """One path of several, with single slashes; the first and last slash stay."""
    kept = [part for part in parts if part != ""]
    joined = "/".join(part.strip("/") for part in kept if part.strip("/"))
    begins = "/" if kept and kept[0].startswith("/") else ""
    ends = "/" if kept and kept[-1].endswith("/") and joined else ""
    return f"{begins}{joined}{ends}" or "/"


def find_user(db, name, app=None):
    return orm.User(name=name) if orm.User.exists(name) else None


def add_user(db, app=None, **values):
    name, roles = values.pop("name"), values.pop("roles", None)
    user = orm.User(name=name, admin=values.pop("admin", False))
    user._store(has_default_roles=True)
    for role in roles or ():
        orm.as_role(role)._assign(user)
    return user


def auth_header(db, name):
    user = find_user(db, name)
    if user is None:
        raise KeyError(f"no such user: {name}")
    return {"Authorization": f"token {user.new_api_token()}"}


async def api_request(app, *path, method="get", noauth=False, bypass_proxy=False, **options):
    """A request to the API as `admin`, or as the user `name`; JSON says that it is JSON."""
    headers = dict(options.pop("headers", None) or {})
    name = options.pop("name", "admin")
    if "Authorization" not in headers and not noauth and "cookies" not in options:
        headers.update(auth_header(app.db, name))
    if "cookies" in options:
        headers.setdefault("Referer", f"{app.process.url}hub/test")
        if method.lower() != "get" and headers["Referer"].startswith(app.process.url):
            # As the scripts of the hub's pages send it.
            headers.setdefault("X-CSRF-Token", await csrf_token(app, options["cookies"]))
    xsrf = re.search(r"[?&]_xsrf=([^&]*)", path[-1] if path else "")
    if "cookies" in options and xsrf:
        # Where pages of JupyterHub send the token in the address, those of the hub send a header.
        headers["X-CSRF-Token"] = unquote(xsrf[1])
    if options.get("data") and method.lower() != "get":
        headers.setdefault("Content-Type", "application/json")
    if headers.get("Authorization") == "":
        del headers["Authorization"]
    url = app.process.origin + join(f"{BASE_PATH}hub/api", *path)
    answer = await getattr(async_requests, method)(url, headers=headers, **options)
    return answer


def get_page(path, app, hub=True, **options):
    prefix = f"{BASE_PATH}hub/" if hub else BASE_PATH
    if "/api/" not in path:
        # As browsers ask for what they show.
        options["headers"] = {"Accept": "text/html,*/*;q=0.8", **(options.get("headers") or {})}
    return async_requests.get(app.process.origin + join(prefix, path), **options)


def public_host(app):
    return app.process.origin


def public_url(app, user_or_service=None, path=""):
    prefix = BASE_PATH if user_or_service is None else user_or_service.prefix
    return app.process.origin + (join(prefix, path) if path else prefix)


__all__ = ["AsyncSession", "async_requests"]


def __getattr__(name):
    if name.startswith("__"):
        raise AttributeError(name)
    return Opaque(f"utils.{name}")
