"""Stands in for `jupyterhub.orm`: objects with its names, whose values are asked from the hub and set over its API."""

import itertools
import os
import signal
import time
from datetime import datetime, timezone
from urllib.parse import quote

from .api import ApiError
from .excluded import Opaque, exclude
from .hub import BASE_PATH, LAYER, STANDARD

_app = None
_numbers = itertools.count(1)


def use(app):
    """Everything here belongs to this hub from now on."""
    global _app
    _app = app
    for kind in (User, Group, Service, Role, OAuthClient):
        kind._known.clear()


def _api():
    if _app is None:
        exclude("a database without a hub")
    return _app.api


def wait(has_come, what):
    deadline = time.monotonic() + 60
    while not has_come():
        if time.monotonic() > deadline:
            raise TimeoutError(f"not within a minute: {what}")
        time.sleep(0.05)


def utcnow():
    return datetime.now(timezone.utc).replace(tzinfo=None)


class LiveList(list):
    """A list whose changes reach the hub at once."""

    def __init__(self, entries, add, remove):
        super().__init__(entries)
        self._add, self._remove = add, remove

    def append(self, entry):
        self._add(entry)
        super().append(entry)

    def extend(self, entries):
        for entry in entries:
            self.append(entry)

    def remove(self, entry):
        self._remove(entry)
        super().remove(entry)

    def clear(self):
        for entry in list(self):
            self.remove(entry)


class Column:
    """A value of an object that queries name by its class: `orm.User.name == "ada"`."""

    def __init__(self, name=None):
        self._name = name

    def __set_name__(self, owner, name):
        self._name = name

    def __get__(self, instance, owner):
        if instance is None:
            return self
        try:
            return instance.__dict__[self._name]
        except KeyError:
            exclude(f"{owner.__name__}.{self._name}")

    def __set__(self, instance, value):
        instance.__dict__[self._name] = value

    def __eq__(self, value):
        return lambda entry: getattr(entry, self._name) == value

    __hash__ = object.__hash__

    def asc(self):
        return self


class Base:
    """An object that a name identifies; the same one for the same name."""

    _known = {}

    def __init_subclass__(cls):
        cls._known = {}

    def __new__(cls, *args, **values):
        name = values.get("name", values.get("identifier"))
        if name is None:
            return super().__new__(cls)
        known = cls._known.get(name)
        if known is None:
            known = cls._known[name] = super().__new__(cls)
            known.__dict__["id"] = next(_numbers)
        return known

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        exclude(f"{type(self).__name__}.{name}")

    def __repr__(self):
        return f"<{type(self).__name__} {self.__dict__.get('name')}>"

    @classmethod
    def find(cls, db, name):
        return cls(name=name) if cls.exists(name) else None


class _Holder(Base):
    """Who holds roles: a user, a group or a service."""

    @property
    def roles(self):
        return LiveList(
            [Role(name=name) for name in as_roles_of_jupyterhub(self.model()["roles"])],
            lambda role: role._assign(self),
            lambda role: role._take(self),
        )

    @roles.setter
    def roles(self, roles):
        before = self.roles
        for role in before:
            if role not in roles:
                before.remove(role)
        for role in roles:
            role = as_role(role)
            if role not in before:
                role._assign(self)


def as_roles_of_jupyterhub(names):
    """The names of roles as JupyterHub would have them."""
    if _app is None or not _app.has_bare_users:
        return names
    return sorted("user" if name == STANDARD else name for name in names if name != "user")


def as_role(role):
    return Role(name=role) if isinstance(role, str) else role


class Role(Base):
    def __init__(self, name=None, scopes=(), description=""):
        if name is not None and "_wanted" not in self.__dict__:
            self.name, self._wanted = name, list(scopes)

    @staticmethod
    def exists(name):
        return _api().find("roles", _role_name(name)) is not None

    @property
    def scopes(self):
        model = _api().find("roles", _role_name(self.name))
        return self._wanted if model is None else model["scopes"]

    @property
    def users(self):
        return self._holders("users", User)

    @property
    def services(self):
        return self._holders("services", Service)

    @property
    def groups(self):
        return self._holders("groups", Group)

    def _holders(self, kind, of):
        holders = _api().send("GET", "roles", _role_name(self.name))[kind]
        return LiveList([of(name=name) for name in holders], self._assign, self._take)

    def _store(self, scopes=None, description=""):
        wanted = list(self._wanted if scopes is None else scopes)
        body = {"scopes": wanted, "description": description or ""}
        self._wanted = wanted
        if self.exists(self.name):
            _api().send("PATCH", "roles", _role_name(self.name), body=body)
        else:
            _api().send("POST", "roles", _role_name(self.name), body=body)

    def _assign(self, holder):
        if not self.exists(self.name):
            self._store(["self"] if _role_name(self.name) == STANDARD else None)
        body = {holder.kind_of_holder: [holder.name]}
        _api().send("POST", "roles", _role_name(self.name), "assignments", body=body)

    def _take(self, holder):
        if self.name == "user":
            _app.need_bare_users()
        body = {holder.kind_of_holder: [holder.name]}
        _api().delete("roles", _role_name(self.name), "assignments", body=body)

    def _delete(self):
        _api().delete("roles", _role_name(self.name))
        Role._known.pop(self.name, None)


def _role_name(name):
    """The role of the hub that stands for one of JupyterHub."""
    if name == "user" and _app.has_bare_users:
        return STANDARD
    # Names of the layer's own making hold what the hub's may not.
    return name.replace("_", "-")


class Group(_Holder):
    kind = "group"
    kind_of_holder = "groups"

    def __init__(self, name=None):
        if name is not None:
            self.name = name

    @staticmethod
    def exists(name):
        return _api().find("groups", name) is not None

    def model(self):
        return _api().send("GET", "groups", self.name)

    def _store(self):
        if not self.exists(self.name):
            _api().send("POST", "groups", self.name)

    def _delete(self):
        _api().delete("groups", self.name)

    @property
    def users(self):
        model = _api().find("groups", self.name)
        return LiveList(
            [User(name=name) for name in (model or {"users": []})["users"]],
            self._add_user,
            self._remove_user,
        )

    @users.setter
    def users(self, users):
        self._store()
        _api().send("POST", "groups", self.name, "users", body={"users": [u.name for u in users]})

    def _add_user(self, user):
        self._store()
        _api().send("POST", "groups", self.name, "users", body={"users": [user.name]})

    def _remove_user(self, user):
        _api().send("DELETE", "groups", self.name, "users", body={"users": [user.name]})

    @property
    def shared_with_me(self):
        return [Share(model) for model in _api().everything("groups", self.name, "shared")]


class Service(_Holder):
    kind = "service"
    kind_of_holder = "services"

    def __init__(self, name=None):
        if name is not None:
            self.name = name

    @staticmethod
    def exists(name):
        return _api().find("services", name) is not None

    def model(self):
        return _api().send("GET", "services", self.name)

    def _store(self, **settings):
        answer = _api().send("PUT", "services", self.name, body=settings)
        self._settings = settings
        self._made_token = answer.get("api_token", settings.get("api_token"))

    @property
    def _token(self):
        """That of a managed service only its process is told."""
        if self._made_token is not None:
            return self._made_token
        with open(f"/proc/{self.model()['pid']}/environ", encoding="utf8") as file:
            variables = dict(entry.partition("=")[::2] for entry in file.read().split("\0"))
        return variables["JUPYTERHUB_API_TOKEN"]

    def _delete(self):
        _api().delete("services", self.name)

    def new_api_token(self, token=None, **options):
        if token is not None or options:
            exclude("further tokens of a service")
        return self._token

    @property
    def api_tokens(self):
        return [APIToken(token=self._token, owner=self)]

    @property
    def api_token(self):
        return self._token

    def wait_until_ready(self):
        if "command" in self._settings:
            wait(lambda: self.model()["ready"], f"the service {self.name} is ready")

    # What JupyterHub's wrapper of a service has besides.
    @property
    def orm(self):
        return self

    @property
    def url(self):
        return self.model()["url"]

    @property
    def command(self):
        return self._settings["command"]

    @property
    def prefix(self):
        return f"{BASE_PATH}services/{self.name}/"

    @property
    def base_url(self):
        return self.prefix

    @property
    def server(self):
        return Server(self.prefix)

    @property
    def proc(self):
        """The same object for the same process."""
        pid = self.model()["pid"]
        known = self.__dict__.get("_process")
        # Between two processes the hub names none.
        if known is None or pid is not None and known.pid != pid:
            known = self._process = Process(pid)
        return known

    @property
    def href(self):
        return self.prefix

    @property
    def oauth_available(self):
        return True

    @property
    def oauth_client_id(self):
        return self.__dict__.get("_settings", {}).get("oauth_client_id", f"service-{self.name}")

    @property
    def oauth_client(self):
        return OAuthClient(identifier=self.oauth_client_id)


class Process:
    """A process of a service, as `subprocess` has it."""

    def __init__(self, pid):
        self.pid = pid

    def _runs(self):
        try:
            with open(f"/proc/{self.pid}/stat", encoding="utf8") as file:
                return file.read().rpartition(")")[2].split()[0] != "Z"
        except (OSError, TypeError):
            return False

    def poll(self):
        return None if self._runs() else 0

    def terminate(self):
        os.kill(self.pid, signal.SIGTERM)

    def wait(self, timeout=30):
        deadline = time.monotonic() + timeout
        while self._runs():
            if time.monotonic() > deadline:
                raise TimeoutError(f"process {self.pid} runs on")
            time.sleep(0.05)


class OAuthClient(Base):
    def __init__(self, identifier=None):
        if identifier is not None:
            self.identifier = self.name = identifier

    @staticmethod
    def exists(identifier):
        return Service.exists(identifier.removeprefix("service-"))

    @property
    def service(self):
        return Service(name=self.identifier.removeprefix("service-"))

    @property
    def spawner(self):
        return None

    @property
    def allowed_scopes(self):
        # To visit itself every client may ask for.
        access = f"access:services!service={self.service.name}"
        return [*self.service._settings.get("oauth_client_allowed_scopes", []), access]

    @allowed_scopes.setter
    def allowed_scopes(self, scopes):
        scopes = [scope for scope in scopes if not scope.startswith("access:services!service=")]
        settings = {**self.service._settings, "oauth_client_allowed_scopes": scopes}
        try:
            body = {"oauth_client_allowed_scopes": scopes}
            _api().send("PATCH", "services", self.service.name, body=body)
        except ApiError:
            # What no one may give at run time, the configuration can.
            self.service._delete()
            _app.configured_services.append({"name": self.service.name, **settings})
        self.service._settings = settings
        self.service.wait_until_ready()


class APIToken(Base):
    user_id = Column()

    def __init__(self, token=None, owner=None, model=None, **others):
        if others or owner is None:
            exclude("a token written into the database")
        self.__dict__.update(token=token, owner=owner, _model=model or {})
        self.user_id = owner.id if isinstance(owner, User) else None

    def __setattr__(self, name, value):
        if name != "user_id":
            exclude(f"APIToken.{name} = …")
        object.__setattr__(self, name, value)

    @property
    def id(self):
        return self._model["id"]

    @property
    def user(self):
        return self.owner if isinstance(self.owner, User) else None

    @property
    def service(self):
        return self.owner if isinstance(self.owner, Service) else None

    @property
    def note(self):
        return self._model["note"]

    @property
    def scopes(self):
        exclude("APIToken.scopes")

    @property
    def expires_in(self):
        ends = datetime.fromisoformat(self._model["expires_at"].replace("Z", "+00:00"))
        return (ends - datetime.now(timezone.utc)).total_seconds()

    @classmethod
    def find(cls, db, token, **_):
        owner = _app.owners_of_tokens.get(token)
        return None if owner is None else cls(token=token, owner=owner)


class Server:
    """Where a server or a service answers."""

    def __init__(self, base_url=None, orm_server=None):
        if base_url is None:
            exclude("a server written into the database")
        self.base_url = base_url

    async def wait_up(self, **_):
        """The hub tells a server to be ready when it answers."""


class Spawner(Base):
    """A server of a user, running or not."""

    def __init__(self, user, name):
        self.__dict__.update(user=user, name=name)

    def __setattr__(self, name, value):
        exclude(f"Spawner.{name} = …")

    @property
    def orm_spawner(self):
        return self

    def model(self):
        user = _api().find("users", self.user.name, query={"include_stopped_servers": ""})
        return ((user or {}).get("servers") or {}).get(self.name)

    def _value(self, name, missing=None):
        model = self.model()
        return missing if model is None else model[name]

    @property
    def active(self):
        return self._value("stopped", True) is False

    @property
    def ready(self):
        return self._value("ready", False)

    @property
    def pending(self):
        return self._value("pending")

    @property
    def _spawn_pending(self):
        return self.pending == "spawn"

    @property
    def _stop_pending(self):
        return self.pending == "stop"

    @property
    def user_options(self):
        from .mocking import options_of

        return options_of(self._value("user_options", {}))

    @property
    def state(self):
        return (self._value("state") or {}) if self.active else {}

    @property
    def server(self):
        return Server(self.user.server_url(self.name)) if self.ready else None

    async def poll(self):
        return None if self.active else 0

    @property
    def shares(self):
        return [
            Share(model) for model in _api().everything("shares", self.user.name, self.name)
        ]

    @property
    def handler(self):
        return None

    @property
    def delay(self):
        return 0


class _Spawners(dict):
    """The servers of a user by name."""

    def __init__(self, user, include_stopped):
        self._user, self._include_stopped = user, include_stopped
        super().__init__()

    def _names(self):
        query = {"include_stopped_servers": ""} if self._include_stopped else None
        model = _api().find("users", self._user.name, query=query) or {}
        return set(model.get("servers") or {})

    def __contains__(self, name):
        return name in self._names()

    def __getitem__(self, name):
        return self._user._spawner(name)

    def keys(self):
        return self._names() | {""}

    def items(self):
        return [(name, self[name]) for name in self._names()]

    def values(self):
        return [self[name] for name in self._names()]


class User(_Holder):
    kind = "user"
    kind_of_holder = "users"
    id = Column()
    name = Column()

    def __init__(self, name=None, admin=False):
        if name is None:
            exclude("a user without a name")
        self.__dict__.setdefault("_servers", {})
        self.__dict__.update(name=name, _admin=admin)

    def __setattr__(self, name, value):
        if name in ("roles", "groups"):
            object.__setattr__(self, name, value)
        elif name == "admin":
            _api().send("PATCH", "users", self.name, body={"admin": value})
        elif name == "name":
            pass
        else:
            exclude(f"User.{name} = …")

    @staticmethod
    def exists(name):
        return _api().find("users", name) is not None

    def model(self):
        return _api().send("GET", "users", self.name)

    def _store(self, has_default_roles=False):
        """Accounts begin with the role `user`; those that tests write into the database hold none."""
        if self.exists(self.name):
            return
        if not has_default_roles:
            _app.need_bare_users()
        _api().send("POST", "users", self.name, body={"admin": self._admin})
        if has_default_roles and _app.has_bare_users:
            Role(name="user")._assign(self)

    def _rename(self, name):
        known = User._known
        known[name] = known.pop(self.name)
        self.__dict__["name"] = name

    def _delete(self):
        for name, spawner in self.spawners.items():
            if spawner.active:
                self._stop(name)
        _api().delete("users", self.name)

    @property
    def orm_user(self):
        return self

    @property
    def admin(self):
        return self.model()["admin"]

    @property
    def groups(self):
        return LiveList(
            [Group(name=name) for name in self.model()["groups"]],
            lambda group: group._add_user(self),
            lambda group: group._remove_user(self),
        )

    @groups.setter
    def groups(self, groups):
        for group in self.groups:
            group._remove_user(self)
        for group in groups:
            group._add_user(self)

    # Tokens.

    def new_api_token(self, token=None, *, roles=None, scopes=None, note="", expires_in=None, **others):
        if token is not None or others:
            exclude("a token of the test's own choice")
        body = {"note": note or "of a test"}
        if expires_in is not None:
            body["expires_in"] = expires_in
        if roles:
            body["roles"] = [_role_name(as_role(role).name) for role in roles]
        elif roles is not None:
            body["scopes"] = []
        if scopes is not None:
            body["scopes"] = sorted(scopes)
        try:
            made = _api().send("POST", "users", self.name, "tokens", body=body)
        except ApiError as error:
            raise ValueError(str(error)) from error
        _app.owners_of_tokens[made["token"]] = self
        _app.secrets_of_tokens[made["id"]] = made["token"]
        return made["token"]

    @property
    def api_tokens(self):
        models = _api().send("GET", "users", self.name, "tokens")["api_tokens"]
        return [
            APIToken(token=_app.secrets_of_tokens.get(model["id"]), owner=self, model=model)
            for model in models
        ]

    async def get_auth_state(self):
        return _api().send("GET", "users", self.name, query={"include_auth_state": ""}).get("auth_state")

    async def save_auth_state(self, auth_state):
        # It belongs to a login.
        await _app.login_user(self.name)
        _api().send("PATCH", "users", self.name, body={"auth_state": auth_state})

    # Servers.

    def _spawner(self, name):
        known = self._servers.get(name)
        if known is None:
            known = self._servers[name] = Spawner(self, name)
        return known

    @property
    def spawners(self):
        return _Spawners(self, include_stopped=False)

    @property
    def orm_spawners(self):
        return _Spawners(self, include_stopped=True)

    @property
    def spawner(self):
        return self._spawner("")

    @property
    def prefix(self):
        return f"{BASE_PATH}user/{quote(self.name, safe='@~')}/"

    @property
    def base_url(self):
        return self.prefix

    @property
    def url(self):
        return self.prefix

    def public_url(self, name=""):
        return _app.process.origin + self.server_url(name)

    def server_url(self, name=""):
        return f"{self.prefix}{quote(name)}/" if name else self.prefix

    @property
    def proxy_spec(self):
        return self.prefix

    @property
    def running(self):
        return self.spawner.ready

    @property
    def active(self):
        return any(spawner.active for spawner in self.spawners.values())

    @property
    def allow_named_servers(self):
        return bool(_app.tornado_settings.get("allow_named_servers"))

    def _server_path(self, name):
        return ("users", self.name, "servers", name) if name else ("users", self.name, "server")

    async def spawn(self, name="", options=None):
        _api().send("POST", *self._server_path(name), body=options or {})
        wait(lambda: self._spawner(name).ready, f"server {name!r} of {self.name} is ready")

    def _stop(self, name):
        _api().delete(*self._server_path(name))
        wait(lambda: not self._spawner(name).active, f"server {name!r} of {self.name} ends")

    async def stop(self, name=""):
        if self._spawner(name).active:
            self._stop(name)

    # Sharing.

    @property
    def shares(self):
        return [Share(model) for model in _api().everything("shares", self.name)]

    @property
    def shared_with_me(self):
        return [Share(model) for model in _api().everything("users", self.name, "shared")]


class Share:
    """What a user or a group may do with another user's server."""

    now = staticmethod(utcnow)

    def __init__(self, model):
        self._model = model
        self.scopes = model["scopes"]
        self.owner = User(name=model["server"]["user"]["name"])
        self.spawner = self.owner._spawner(model["server"]["name"])
        self.user = User(name=model["user"]["name"]) if model["user"] else None
        self.group = Group(name=model["group"]["name"]) if model["group"] else None

    @staticmethod
    def _recipient(share_with):
        return {"group" if isinstance(share_with, Group) else "user": share_with.name}

    @classmethod
    def grant(cls, db, spawner, share_with, scopes=None):
        if not isinstance(share_with, (User, Group)):
            raise TypeError("servers are shared with users and groups")
        share_with._store()
        body = cls._recipient(share_with)
        if scopes is not None:
            body["scopes"] = list(scopes)
        return cls(_api().send("POST", "shares", spawner.user.name, spawner.name, body=body))

    @classmethod
    def find(cls, db, spawner, share_with):
        kind = "groups" if isinstance(share_with, Group) else "users"
        path = (kind, share_with.name, "shared", spawner.user.name, spawner.name)
        model = _api().find(*path)
        return None if model is None else cls(model)

    @classmethod
    def revoke(cls, db, spawner, share_with, scopes=None):
        body = cls._recipient(share_with)
        if scopes is not None:
            body["scopes"] = list(scopes)
        model = _api().send("PATCH", "shares", spawner.user.name, spawner.name, body=body)
        return cls(model) if model else None

    def _delete(self):
        self.revoke(None, self.spawner, self.user or self.group)


class ShareCode:
    """A code that shares a server with all who accept it."""

    now = staticmethod(utcnow)
    _now = staticmethod(utcnow)
    default_expires_in = 86400
    _ids = {}

    def __init__(self, spawner, owner=None, scopes=(), **others):
        if others:
            exclude("a code written into the database")
        self.spawner, self.owner, self.scopes = spawner, spawner.user, list(scopes)

    def _store(self):
        body = {"scopes": self.scopes}
        model = _api().send("POST", "share-codes", self.owner.name, self.spawner.name, body=body)
        self.id = model["id"].removeprefix("sc_")
        self._ids[model["code"]] = self
        return model["code"]

    @classmethod
    def new(cls, db, spawner, scopes, **others):
        code = cls(spawner, scopes=scopes, **others)
        return code, code._store()

    def _model(self):
        models = _api().everything("share-codes", self.owner.name, self.spawner.name)
        return next((model for model in models if model["id"] == f"sc_{self.id}"), None)

    @classmethod
    def find(cls, db, code):
        found = cls._ids.get(code)
        return found if found is not None and found._model() is not None else None

    @property
    def exchange_count(self):
        return self._model()["exchange_count"]


def get_class(kind):
    return {"users": User, "groups": Group, "services": Service}[kind]


class Query:
    """The few queries that tests make."""

    def __init__(self, kind, entries):
        self._kind, self._entries = kind, entries

    def _all(self):
        return self._entries()

    def __iter__(self):
        return iter(self._all())

    def __getattr__(self, name):
        exclude(f"Query.{name}")

    def filter_by(self, **values):
        def entries():
            return [
                entry
                for entry in self._all()
                if all(getattr(entry, name) == value for name, value in values.items())
            ]

        return Query(self._kind, entries)

    def filter(self, *conditions):
        if not all(callable(condition) for condition in conditions):
            exclude("a query with a condition")
        return Query(
            self._kind,
            lambda: [entry for entry in self._all() if all(is_so(entry) for is_so in conditions)],
        )

    def order_by(self, *_):
        return self

    def count(self):
        return len(self._all())

    def first(self):
        return next(iter(self._all()), None)

    def one(self):
        (entry,) = self._all()
        return entry

    def one_or_none(self):
        return self.first()

    def all(self):
        return self._all()


class Database:
    """Stands for the session of JupyterHub's database. What is added is written at once."""

    def query(self, kind):
        listings = {
            User: lambda: [User(name=model["name"]) for model in _api().everything("users")],
            Group: lambda: [Group(name=model["name"]) for model in _api().everything("groups")],
            Service: lambda: [
                Service(name=model["name"])
                for model in _api().everything("services")
                if model["name"] != LAYER
            ],
            OAuthClient: lambda: [
                Service(name=model["name"]).oauth_client for model in _api().everything("services")
            ],
            APIToken: lambda: [
                token for user in self.query(User) for token in user.api_tokens
            ],
            Role: lambda: [Role(name=model["name"]) for model in _api().everything("roles")],
        }
        if kind is Server:
            return Query(kind, lambda: [])
        if kind not in listings:
            exclude(f"a query for {kind}")
        return Query(kind, listings[kind])

    def add(self, entry):
        if not hasattr(type(entry), "_store"):
            exclude(f"a {type(entry).__name__} written into the database")
        entry._store()

    def delete(self, entry):
        if not hasattr(type(entry), "_delete"):
            exclude(f"a {type(entry).__name__} deleted from the database")
        entry._delete()

    def commit(self):
        """Nothing waits to be written."""

    rollback = flush = commit

    def expire(self, *_):
        """Nothing is remembered."""

    refresh = expire

    def __getattr__(self, name):
        exclude(f"db.{name}")


def __getattr__(name):
    if name.startswith("__"):
        raise AttributeError(name)
    return Opaque(f"orm.{name}")
