"""The hub's API as the layer calls it, to do what tests do with Python objects."""

from urllib.parse import quote

import requests

from .hub import LAYER_TOKEN


class ApiError(Exception):
    """The hub refuses what a test would have written into the database of JupyterHub."""

    def __init__(self, answer):
        self.status = answer.status_code
        super().__init__(f"{answer.request.method} {answer.url}: {answer.status_code} {answer.text}")


class Api:
    def __init__(self, hub, bring_up):
        self._hub, self._bring_up = hub, bring_up
        self._session = requests.Session()
        self._session.headers["Authorization"] = f"token {LAYER_TOKEN}"
        self._session.headers["Accept"] = "application/jupyterhub-pagination+json, application/json"

    def send(self, method, *path, body=None, query=None, token=None):
        """The JSON of an answer; None where it has none. Raises ApiError from 400 on."""
        self._bring_up()
        url = "/".join([self._hub.api_url, *(quote(part, safe="") for part in path)])
        headers = {} if token is None else {"Authorization": f"token {token}"}
        answer = self._session.request(
            method, url, json=body, params=query, headers=headers, timeout=60
        )
        if answer.status_code >= 400:
            raise ApiError(answer)
        return answer.json() if answer.content else None

    def find(self, *path, query=None):
        """What is there, or None."""
        try:
            return self.send("GET", *path, query=query)
        except ApiError as error:
            if error.status == 404:
                return None
            raise

    def delete(self, *path, body=None, query=None):
        """Deletes what may be gone already."""
        try:
            self.send("DELETE", *path, body=body, query=query)
        except ApiError as error:
            if error.status != 404:
                raise

    def everything(self, *path, query=None):
        """All entries of a list that comes in pages."""
        entries = []
        while True:
            page = self.send(
                "GET", *path, query={"offset": len(entries), "limit": 200, **(query or {})}
            )
            items = page["items"] if isinstance(page, dict) and "items" in page else page
            entries.extend(items.values() if isinstance(items, dict) else items)
            # A test may set that pages are shorter.
            borders = page.get("_pagination") if isinstance(page, dict) else None
            if len(items) < 200 if borders is None else borders["next"] is None:
                return entries
