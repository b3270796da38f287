"""A client of the hub's API in one file: copy it beside your script. Python 3.9 or newer, nothing else.

    from hub_client import Hub

    hub = Hub("https://hub.example.org", token)
    for user in hub.each("/users"):
        print(user["name"], user["last_activity"])
    hub.start_server("ada", options={"profile": "small"})
"""

import json
import os
import time
from dataclasses import dataclass
from typing import Any, Iterator, Mapping, Optional
from urllib.error import HTTPError
from urllib.parse import quote, unquote, urlencode
from urllib.request import Request, urlopen

PAGES = "application/jupyterhub-pagination+json"
#: Answers that ask to come again.
BUSY = (429, 503)


class HubError(Exception):
    """What the hub refused, in its own words."""

    def __init__(self, status: int, error: Mapping[str, Any]):
        self.status = status
        self.code = error.get("code", "")
        self.hint = error.get("hint")
        message = error.get("message", f"the hub answered {status}")
        super().__init__(message if self.hint is None else f"{message} {self.hint}")


@dataclass(frozen=True)
class Identity:
    """Who visits an app behind the gateway (``"access": "gateway"``)."""

    name: str
    groups: tuple
    scopes: tuple
    email: Optional[str]

    @classmethod
    def of(cls, headers: Mapping[str, str]) -> Optional["Identity"]:
        """From the headers of a request, in any case; None for the hub itself, which looks whether the app is there."""
        sent = {name.lower(): value for name, value in headers.items()}
        name = sent.get("x-hub-user")
        if not name:
            return None
        return cls(
            name=unquote(name),
            groups=tuple(unquote(group) for group in sent.get("x-hub-groups", "").split(",") if group),
            scopes=tuple(sent.get("x-hub-scopes", "").split()),
            email=sent.get("x-hub-email"),
        )


class Hub:
    """The API below ``/hub/api``. A service needs no arguments: the hub gives it what it takes by its environment."""

    def __init__(self, url: Optional[str] = None, token: Optional[str] = None, timeout: float = 30):
        api = f"{url.rstrip('/')}/hub/api" if url else os.environ["HUB_API_URL"]
        self.api = api.rstrip("/")
        self.token = token or os.environ["HUB_API_TOKEN"]
        self.timeout = timeout

    def call(self, method: str, path: str, body: Any = None, **query: Any) -> Any:
        """The decoded answer, None for an empty one. Raises HubError; asks again where the hub is busy."""
        with self._open(method, path, body, query) as answer:
            text = answer.read()
        return json.loads(text) if text else None

    def each(self, path: str, **query: Any) -> Iterator[Any]:
        """All items of a list, however many pages it has."""
        offset = 0
        while True:
            page_query = {**query, "offset": offset}
            with self._open("GET", path, None, page_query, PAGES) as answer:
                page = json.load(answer)
            yield from page["items"]
            following = page["_pagination"]["next"]
            if following is None:
                return
            offset = following["offset"]

    def events(self, path: str, **query: Any) -> Iterator[Any]:
        """What a stream of server-sent events tells, until it ends."""
        with self._open("GET", path, None, query, "text/event-stream") as answer:
            for line in answer:
                if line.startswith(b"data:"):
                    yield json.loads(line[5:])

    def whoami(self) -> Any:
        return self.call("GET", "/user")

    def start_server(self, user: str, name: str = "", options: Any = None) -> Any:
        """Starts a server and waits until it is ready. Raises HubError where it fails."""
        path = server_path(user, name)
        self.call("POST", path, {} if options is None else {"user_options": options})
        last: Mapping[str, Any] = {}
        for last in self.events(f"{path}/progress"):
            pass
        if not last.get("ready"):
            raise HubError(500, {"message": last.get("message", "the server did not start")})
        return self.call("GET", path)

    def stop_server(self, user: str, name: str = "") -> None:
        """Stops a server and waits until it has ended."""
        path = server_path(user, name)
        self.call("DELETE", path)
        while (self.call("GET", path) or {}).get("pending") == "stop":
            time.sleep(0.5)

    def _open(self, method: str, path: str, body: Any, query: Mapping[str, Any], accept: str = "application/json"):
        given = {name: value for name, value in query.items() if value is not None}
        url = f"{self.api}{path}" + (f"?{urlencode(given, doseq=True)}" if given else "")
        headers = {"Authorization": f"token {self.token}", "Accept": accept}
        data = None
        if body is not None:
            data = json.dumps(body).encode()
            headers["Content-Type"] = "application/json"
        deadline = time.monotonic() + self.timeout
        while True:
            try:
                return urlopen(Request(url, data, headers, method=method), timeout=self.timeout)
            except HTTPError as error:
                wait = float(error.headers.get("Retry-After") or 1)
                if error.code not in BUSY or time.monotonic() + wait > deadline:
                    raise HubError(error.code, decoded(error.read())) from None
                time.sleep(wait)


def server_path(user: str, name: str = "") -> str:
    owner = f"/users/{quote(user, safe='')}"
    return f"{owner}/servers/{quote(name, safe='')}" if name else f"{owner}/server"


def decoded(text: bytes) -> Mapping[str, Any]:
    try:
        error = json.loads(text)
    except ValueError:
        return {}
    return error if isinstance(error, dict) else {}
