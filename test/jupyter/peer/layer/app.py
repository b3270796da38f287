"""Stands in for the application object of JupyterHub: its settings become the configuration of the hub."""

import json
import re
import sqlite3
from contextlib import closing
from datetime import timedelta

from . import orm, web
from .api import Api
from .excluded import Opaque, exclude
from .csrf import csrf_token
from .hub import BARE_ROLES, BASE_PATH, LAYER, LAYER_ROLES, LAYER_SERVICE, Hub, merge

# Settings of JupyterHub's application, and where they are in the configuration of the hub.
SETTINGS = {
    "allow_named_servers": ("Hub", "allow_named_servers"),
    "named_server_limit_per_user": ("Hub", "named_server_limit_per_user"),
    "concurrent_spawn_limit": ("Hub", "concurrent_spawn_limit"),
    "active_server_limit": ("Hub", "active_server_limit"),
    "api_page_default_limit": ("Hub", "api_page_default_limit"),
    "api_page_max_limit": ("Hub", "api_page_max_limit"),
    "authenticate_prometheus": ("Hub", "authenticate_prometheus"),
    "shutdown_on_logout": ("Hub", "shutdown_on_logout"),
    "default_url": ("Hub", "default_url"),
    "token_expires_in_max_seconds": ("Hub", "token_expires_in_max_seconds"),
    "slow_spawn_timeout": ("Spawner", "slow_start_timeout"),
    "slow_stop_timeout": ("Spawner", "slow_stop_timeout"),
}
TEMPLATE_VARIABLES = {
    "announcement": "announcement",
    "announcement_login": "announcement_login",
    "announcement_home": "announcement_home",
    "announcement_spawn": "announcement_spawn",
    "announcement_logout": "announcement_logout",
}


class Settings(dict):
    """Settings by the names of JupyterHub; what is written here is true at the next request."""

    def __init__(self):
        super().__init__(
            login_url=f"{BASE_PATH}hub/login", logout_url=f"{BASE_PATH}hub/logout"
        )

    def copy(self):
        return dict(self)

    def configuration(self):
        sections = {}
        for name, value in self.items():
            if name in SETTINGS:
                if callable(value):
                    exclude(f"a function as the setting {name}")
                if value is None:
                    continue
                section, setting = SETTINGS[name]
                sections = merge(sections, {section: {setting: value}})
            elif name == "spawner_class":
                sections = merge(sections, value.configuration)
            elif name == "template_vars":
                for variable, text in value.items():
                    if variable in TEMPLATE_VARIABLES:
                        sections = merge(sections, {"Hub": {TEMPLATE_VARIABLES[variable]: text}})
                    elif variable != "announcement_":
                        exclude(f"the template variable {variable}")
            elif name not in ("login_url", "logout_url", "admin_access"):
                exclude(f"the setting {name}")
        return sections


class Authenticator(Opaque):
    """The authenticator, as far as tests set it."""

    _names = {
        "username_pattern": ("Authenticator", "username_pattern"),
        "manage_groups": ("Authenticator", "manage_groups"),
        "enable_auth_state": ("Authenticator", "enable_auth_state"),
        "auto_login": ("Authenticator", "auto_login"),
        "refresh_pre_spawn": ("Authenticator", "refresh_pre_spawn"),
        "refresh_pre_stop": ("Authenticator", "refresh_pre_stop"),
    }

    def __init__(self, folder):
        super().__init__("app.authenticator")
        self.__dict__.update(_folder=folder, _values={}, _changes={})

    def __getattr__(self, name):
        if name in self._names:
            return self._values.get(name, False)
        if name == "auth_state":
            return self._changes.get("authState")
        if name == "refresh_user":
            return None
        return super().__getattr__(name)

    def __setattr__(self, name, value):
        if name in self._names:
            # No pattern is what the hub has by itself, which is not that of the layer.
            if name == "username_pattern" and value == "":
                self._values.pop(name, None)
            else:
                self._values[name] = value
        elif name == "auth_state":
            self._change(authState=value)
        elif name == "refresh_user":
            self._change(loginsHaveEnded=value is not None)
        else:
            super().__setattr__(name, value)

    def __delattr__(self, name):
        setattr(self, name, None)

    def _change(self, **changes):
        self._changes.update(changes)
        told = {name: value for name, value in self._changes.items() if value is not None}
        (self._folder / "authenticator.json").write_text(json.dumps(told))

    def configuration(self):
        sections = {}
        for name, value in self._values.items():
            section, setting = self._names[name]
            if name == "username_pattern":
                # The accounts of the configuration must match too.
                value = f"(?!dne)(?:{value}|admin|user)"
            sections = merge(sections, {section: {setting: value}})
        return sections


class Users:
    """Users by name, number or object, as the application of JupyterHub has them."""

    def __init__(self, app):
        self._app = app
        self.settings = app.tornado_settings

    def __getitem__(self, key):
        if isinstance(key, orm.User):
            return key
        if isinstance(key, int):
            for user in orm.User._known.values():
                if user.id == key:
                    return user
            raise KeyError(key)
        if not orm.User.exists(key):
            raise KeyError(key)
        return orm.User(name=key)

    def __contains__(self, key):
        return orm.User.exists(key.name if isinstance(key, orm.User) else key)

    def delete(self, user):
        self[user]._delete()

    def items(self):
        return [(user.id, user) for user in self._app.db.query(orm.User)]

    def count_active_users(self):
        servers = [
            server
            for user in self._app.api.everything("users")
            for server in user["servers"].values()
        ]
        return {
            "pending": sum(server["pending"] is not None for server in servers),
            "active": sum(not server["stopped"] for server in servers),
            "ready": sum(server["ready"] for server in servers),
        }


class HubAddress:
    """Where the pages and the API of the hub are."""

    base_url = f"{BASE_PATH}hub/"
    routespec = BASE_PATH
    cookie_name = "hub-hub-login"

    def __init__(self, hub):
        self.url = f"{hub.origin}{BASE_PATH}hub/"


class Proxy(Opaque):
    """The proxy, whose table the API shows."""

    def __init__(self, app):
        super().__init__("app.proxy")
        self.__dict__["_app"] = app

    @property
    def public_url(self):
        return self._app.process.url

    async def get_all_routes(self):
        return self._app.api.send("GET", "proxy")

    async def add_user(self, *_):
        """The hub routes a server when it is ready."""

    async def add_all_services(self, *_):
        """The hub routes a service when it has been added."""

    async def check_routes(self, *_):
        self._app.api.send("POST", "proxy")


class App:
    """The hub of a test file, by the names that the application of JupyterHub has."""

    base_url = BASE_PATH
    subdomain_host = ""
    internal_ssl = False
    external_certs = {}
    oauth_token_expires_in = 14 * 86400

    def __init__(self):
        fields = self.__dict__
        fields["process"] = Hub()
        # The hub always knows its own address.
        fields["public_url"] = self.process.url
        fields["tornado_settings"] = Settings()
        fields["authenticator"] = Authenticator(self.process.folder)
        fields["custom_scopes"] = {}
        fields["default_server_name"] = ""
        fields["has_bare_users"] = False
        fields["configured_services"] = []
        fields["owners_of_tokens"] = {}
        fields["secrets_of_tokens"] = {}
        fields["scopes_of_users"] = None
        fields["api"] = Api(self.process, self.bring_up)
        fields["db"] = orm.Database()
        fields["users"] = Users(self)
        fields["hub"] = HubAddress(self.process)
        fields["proxy"] = Proxy(self)
        fields["services"] = []
        fields["service_tokens"] = {}
        fields["_service_map"] = {}

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        exclude(f"app.{name}")

    def __setattr__(self, name, value):
        if name in ("default_server_name", "services", "authenticator"):
            self.__dict__[name] = value
        else:
            exclude(f"app.{name} = …")

    def bring_up(self):
        """Sees to it that the hub runs as it is set now."""
        sections = merge(self.tornado_settings.configuration(), self.authenticator.configuration())
        more = {"Hub": {"custom_scopes": self.custom_scopes}}
        if self.has_bare_users:
            more["Hub"]["load_roles"] = [*LAYER_ROLES, *BARE_ROLES]
        elif self.scopes_of_users is not None:
            user_role = {"name": "user", "scopes": self.scopes_of_users}
            more["Hub"]["load_roles"] = [*LAYER_ROLES, user_role]
        if self.configured_services:
            more["Hub"]["services"] = [LAYER_SERVICE, *self.configured_services]
        if self.default_server_name:
            more["Hub"]["default_server_name"] = self.default_server_name
        if self.process.require(merge(more, sections)):
            for service in self._service_map.values():
                service.wait_until_ready()

    def begin(self):
        self.bring_up()
        orm.use(self)
        web.Translation.app = self
        for name in ("user", "admin"):
            # Both were active when a file begins.
            now = f"{orm.utcnow().isoformat()}Z"
            self.api.send("POST", "users", name, "activity", body={"last_activity": now})

    def need_bare_users(self):
        """Users who hold no role from now on, and the role `user` in JupyterHub's sense for those who have it."""
        if self.has_bare_users:
            return
        self.__dict__["has_bare_users"] = True
        for user in self.db.query(orm.User):
            orm.Role(name="user")._assign(user)

    def need_usual_users(self):
        self.__dict__["has_bare_users"] = False

    async def login_user(self, name):
        answer = await web.async_requests.post(
            f"{self.process.url}hub/login",
            data={"username": name, "password": name},
            allow_redirects=False,
        )
        answer.raise_for_status()
        assert answer.cookies
        if self.has_bare_users and not orm.User(name=name).roles:
            orm.Role(name="user")._assign(orm.User(name=name))
        if web.Translation.has_newer_members:
            token = await csrf_token(self, answer.cookies)
            answer.cookies.set("_xsrf", token, domain="127.0.0.1", path=f"{BASE_PATH}hub/")
        return answer.cookies

    def let_time_pass(self):
        """Where a test has moved the clock of share codes, they end by so much earlier."""
        ahead = orm.ShareCode.now() - orm.utcnow()
        if ahead > timedelta(seconds=10):
            with closing(sqlite3.connect(self.process.folder / "hub.sqlite")) as database, database:
                database.execute(
                    "UPDATE share_codes SET expires_at = expires_at - ?",
                    (ahead // timedelta(milliseconds=1),),
                )

    # Services.

    def init_services(self):
        for definition in self.services:
            self.add_service(definition)

    def add_service(self, definition):
        settings = dict(definition)
        name = settings.pop("name")
        if isinstance(settings.get("api_token"), bytes):
            settings["api_token"] = settings["api_token"].decode()
        roles = settings.pop("oauth_roles", None)
        if roles is not None:
            scopes = [scope for role in roles for scope in orm.Role(name=role).scopes]
            settings["oauth_client_allowed_scopes"] = scopes
        service = orm.Service(name=name)
        service._store(**settings)
        self._service_map[name] = service
        return service

    async def init_api_tokens(self):
        for token, name in self.service_tokens.items():
            if not orm.Service.exists(name):
                self.add_service({"name": name, "api_token": token})

    async def init_role_assignment(self):
        """Services have the roles of their definition at once."""

    def clear(self):
        """Removes what a test has left: servers, users, groups, services and roles."""
        self._service_map.clear()
        self.__dict__["scopes_of_users"] = None
        for user in self.api.everything("users", query={"include_stopped_servers": ""}):
            for name, server in user["servers"].items():
                if not server["stopped"]:
                    path = ["servers", name] if name else ["server"]
                    self.api.delete("users", user["name"], *path)
                    spawner = orm.User(name=user["name"])._spawner(name)
                    orm.wait(lambda spawner=spawner: not spawner.active, "servers of a test end")
            if user["name"] not in ("admin", "user"):
                self.api.delete("users", user["name"])
        self.configured_services.clear()
        for group in self.api.everything("groups"):
            self.api.delete("groups", group["name"])
        for service in self.api.everything("services"):
            if service["name"] != LAYER:
                self.api.delete("services", service["name"])
        self.services.clear()
        self.service_tokens.clear()

    def note_change(self, method, path, body, made):
        """What a test did over the API itself, and the objects of JupyterHub would know of."""
        if method == "post" and self.has_bare_users and re.fullmatch("users(/[^/]+)?", path):
            for user in made if isinstance(made, list) else [made]:
                orm.Role(name="user")._assign(orm.User(name=user["name"]))
        if method == "patch" and re.fullmatch("users/[^/]+", path) and "name" in body:
            orm.User(name=path.removeprefix("users/"))._rename(body["name"])
        if method == "post" and re.fullmatch("services/[^/]+", path):
            service = orm.Service(name=path.removeprefix("services/"))
            service._settings, self._service_map[service.name] = body, service
        if method == "delete" and path.startswith("services/"):
            self._service_map.pop(path.removeprefix("services/"), None)

    def close(self):
        web.Translation.app = None
        self.process.close()
