"""Requests of tests, as a browser or a client of JupyterHub would make them, and answers as lenient as the layer is."""

import asyncio
import json
import re
from concurrent.futures import ThreadPoolExecutor
from urllib.parse import urljoin, urlsplit

import requests
from bs4 import BeautifulSoup

from . import orm
from .hub import BASE_PATH, LAYER, STANDARD

# Members of JupyterHub's models, by their kind; the hub may have more, which a test of equality must not see.
MEMBERS = {
    "user": "name kind admin roles groups server pending created last_activity servers auth_state "
    "session_id scopes token_id",
    "server": "name last_activity started pending ready stopped url user_options progress_url state",
    "service": "name kind admin roles command pid prefix url info display session_id scopes token_id",
    "group": "name kind users roles",
}
NEWER_MEMBERS = {
    "server": "full_name full_url full_progress_url",
    "group": "properties",
}
MEMBERS = {kind: frozenset(names.split()) for kind, names in MEMBERS.items()}
NEWER_MEMBERS = {kind: frozenset(names.split()) for kind, names in NEWER_MEMBERS.items()}
ALIAS = re.compile("^access:users:servers(!|$)")
START = re.compile(r"/hub/api/users/[^/]+/(server|servers/[^/?]+)/?(\?|$)")


FORM_COOKIE, XSRF_COOKIE = "hub-form", "_xsrf"


class Translation:
    """What this run asks of answers: which version of JupyterHub the tests are of."""

    has_newer_members = False
    app = None
    form_cookies = set()

    @classmethod
    def has_form_spawner(cls):
        chosen = cls.app.tornado_settings.get("spawner_class") if cls.app is not None else None
        return getattr(chosen, "options_form", "") != ""


def members_of(kind):
    known = MEMBERS[kind]
    return known | NEWER_MEMBERS.get(kind, frozenset()) if Translation.has_newer_members else known


def is_scope_of_jupyterhub(scope):
    """Whether the version of the tests has it, and it is not the alias that the hub lists beside it."""
    from jupyterhub.scopes import scope_definitions

    return not ALIAS.match(scope) and scope.partition("!")[0] in scope_definitions


def as_jupyterhub_says(value):
    """The body of an answer without members that JupyterHub does not have."""
    if isinstance(value, list):
        return [as_jupyterhub_says(entry) for entry in value]
    if not isinstance(value, dict):
        return value
    if set(value) >= {"status", "message"}:
        return {name: value[name] for name in ("status", "message")}
    kind = value.get("kind")
    if kind in ("user", "service", "group") and "server" in value and "created_at" in value:
        return value  # a share has the same kinds
    if kind in MEMBERS:
        value = {name: entry for name, entry in value.items() if name in members_of(kind)}
    if kind == "user" and "servers" in value:
        kept = members_of("server")
        value["servers"] = {
            name: {key: as_state(key, entry) for key, entry in server.items() if key in kept}
            for name, server in value["servers"].items()
        }
    if isinstance(value.get("roles"), list):
        value["roles"] = orm.as_roles_of_jupyterhub(value["roles"])
    if isinstance(value.get("scopes"), list):
        value["scopes"] = [scope for scope in value["scopes"] if is_scope_of_jupyterhub(scope)]
    if kind is None:
        beyond = {LAYER, "hub_version"}
        value = {name: as_jupyterhub_says(entry) for name, entry in value.items() if name not in beyond}
    return value


def as_state(name, value):
    """What a spawner keeps of a process; that of JupyterHub keeps its number alone."""
    return {"pid": value["pid"]} if name == "state" and value and "pid" in value else value


def translate_answer(answer):
    """Makes an answer what a lenient reader takes it for, and remembers the forms of a page."""
    for step in (*answer.history, answer):
        kind = step.headers.get("Content-Type", "")
        if kind.partition(";")[0] in ("application/json", "text/event-stream", "text/css"):
            step.headers["Content-Type"] = kind.partition(";")[0]
    if answer.headers.get("Content-Type", "").startswith("text/html") and answer._content:
        # The part of a page that JupyterHub's templates call so.
        page = answer.content.replace(b"<main", b'<div class="container"><main')
        page = page.replace(b"</main>", b"</main></div>")
        # The forms of the menu are on every page, where those of JupyterHub have links.
        page = re.sub(rb'<form [^>]*action="[^"]*/hub/(preferences|logout)".*?</form>', b"", page, flags=re.DOTALL)
        page = page.replace(b"<nav", b'<div id="thenavbar"><nav', 1)
        answer._content = page.replace(b"</nav>", b"</nav></div>", 1)
    for cookie in list(answer.cookies):
        if cookie.name == FORM_COOKIE:
            answer.cookies.clear(cookie.domain, cookie.path, FORM_COOKIE)
            answer.cookies.set(XSRF_COOKIE, cookie.value, domain=cookie.domain, path=cookie.path)
            Translation.form_cookies.add(cookie.value)
    is_start = answer.request.method == "POST" and START.search(answer.request.url)
    if is_start and answer.status_code in (201, 202):
        answer._content = b""
    elif re.search("/hub/api|/services/", answer.url) and answer._content:
        # Nothing yet is what a stream has. Services call their JSON a page.
        try:
            answer._content = json.dumps(as_jupyterhub_says(answer.json())).encode()
        except ValueError:
            pass
    return answer


def in_form_of_hub(data):
    """What a test fills into the form of `FormSpawner`, with the names that the fields have on a page of the hub."""
    values = {name: [value] if isinstance(value, str) else value for name, value in data.items()}
    return {f"option-{name}": " ".join(texts) for name, texts in values.items()}


def form_fields(answer):
    """What the form of a page sends besides what its reader fills in: the CSRF token, and that the reader agrees."""
    page = BeautifulSoup(answer.text, "html.parser")
    forms = [form for form in page.find_all("form", method="post") if form.find(attrs={"name": "_csrf"})]
    asked = urlsplit(answer.url).path.rstrip("/")
    own = [form for form in forms if urlsplit(form.get("action") or asked).path.rstrip("/") == asked]
    for form in (*own, *forms):
        # Of a form for something else, the token alone.
        names = None if form in own else ["_csrf"]
        fields = form.find_all(["input", "button"], attrs={"name": names or True})
        return {
            field["name"]: field.get("value", "")
            for field in fields
            if field.get("type") == "hidden" or field.get("value") == "allow"
        }
    return {}


class Browser(requests.Session):
    """A session that sends forms of the hub's pages as a browser does: as they were shown."""

    def __init__(self):
        super().__init__()
        self.forms = {}

    def request(self, method, url, **options):
        if Translation.app is not None:
            Translation.app.bring_up()
        if Translation.app is not None and Translation.app.has_bare_users:
            # A role that a service asks for by its name.
            url = re.sub(r"(request-scope=(?:\w+\+)*)user\b", rf"\1{STANDARD}", url)
        path = urlsplit(url).path
        of_hub = path.startswith(f"{BASE_PATH}hub/")
        data = options.get("data")
        is_page = of_hub and not path.startswith(f"{BASE_PATH}hub/api/")
        is_form = is_page or path == f"{BASE_PATH}hub/api/oauth2/authorize"
        if of_hub and isinstance(data, dict) and "_xsrf" in data:
            # The token that a client of JupyterHub takes from its cookie and a form of the hub holds.
            data["_csrf"] = data.pop("_xsrf")
        elif method.lower() == "post" and is_form and (data is None or isinstance(data, dict)):
            if Translation.has_form_spawner() and "/hub/spawn" in path:
                data = in_form_of_hub(data or {})
            if url not in self.forms:
                shown = {key: options[key] for key in ("cookies",) if key in options}
                self.forms[url] = form_fields(super().request("get", url, **shown))
            fields = dict(self.forms[url])
            fields.update(data or {})
            options["data"] = fields
            # What a script cannot send a browser does by itself.
            options.setdefault("headers", {})
            options["headers"] = {**options["headers"], "Origin": f"{urlsplit(url).scheme}://{urlsplit(url).netloc}"}
        options.setdefault("timeout", 60)
        if Translation.app is not None:
            Translation.app.let_time_pass()
        self._name_cookies(options)
        answer = super().request(method, url, **options)
        self._note_change(answer)
        answer = translate_answer(self._start_by_itself(answer, options))
        answer.url = re.sub(rf"(request-scope=(?:\w+\+)*){STANDARD}", r"\1user", answer.url)
        if answer.headers.get("Content-Type", "").startswith("text/html"):
            self.forms[answer.url] = form_fields(answer)
        return answer


    @staticmethod
    def _name_cookies(options):
        """The cookie of a form by the name that the hub knows it by."""
        cookies = options.get("cookies")
        for cookie in list(cookies) if isinstance(cookies, requests.cookies.RequestsCookieJar) else ():
            if cookie.name == XSRF_COOKIE and cookie.value in Translation.form_cookies:
                options["cookies"] = requests.cookies.merge_cookies(
                    requests.cookies.cookiejar_from_dict({FORM_COOKIE: cookie.value}), cookies
                )

    @staticmethod
    def _note_change(answer):
        path = urlsplit(answer.url).path.partition("/hub/api/")[2]
        if Translation.app is None or not path or answer.status_code >= 300:
            return
        try:
            body = json.loads(answer.request.body or "{}")
            made = answer.json() if answer.content else None
        except (ValueError, TypeError):
            return
        Translation.app.note_change(answer.request.method.lower(), path, body, made)

    def _start_by_itself(self, answer, options):
        """What a browser goes on to from `/hub/spawn`, whose script presses the button for starting a server."""
        is_start = urlsplit(answer.url).path.startswith(f"{BASE_PATH}hub/spawn")
        if not is_start or not options.get("allow_redirects", True):
            return answer
        form = BeautifulSoup(answer.text, "html.parser").find("form", {"data-start-seconds": True})
        if form is None:
            return answer
        fields = {field["name"]: field["value"] for field in form.find_all("input")}
        url = urljoin(answer.url, form["action"])
        sent = {name: options[name] for name in ("cookies", "timeout") if name in options}
        origin = "{0.scheme}://{0.netloc}".format(urlsplit(url))
        started = super().request("post", url, data=fields, headers={"Origin": origin}, **sent)
        if started.history:
            # The page and its form are one step of JupyterHub's.
            started.history[0].url = answer.url
        started.history = [*answer.history, *started.history]
        return started


class _Requests:
    """The functions of `requests` as awaitables, in one thread."""

    def __init__(self):
        self._pool = ThreadPoolExecutor(1)
        self.executor = self

    def submit(self, function, *args, **options):
        return asyncio.wrap_future(self._pool.submit(function, *args, **options))

    def __getattr__(self, name):
        def call(url, **options):
            def send():
                with Browser() as browser:
                    return browser.request(name, url, **options)

            return self.submit(send)

        return call


async_requests = _Requests()


class AsyncSession(Browser):
    """A browser whose requests are awaited."""

    def request(self, *args, **options):
        return async_requests.submit(super().request, *args, **options)
