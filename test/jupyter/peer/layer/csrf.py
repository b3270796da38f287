"""What keeps other sites from acting for a login: the token in the pages of the hub."""

from bs4 import BeautifulSoup

from .web import async_requests


async def csrf_token(app, cookies):
    """The token that the pages of a login hold for their scripts."""
    page = await async_requests.get(f"{app.process.url}hub/home", cookies=cookies)
    meta = BeautifulSoup(page.text, "html.parser").find("meta", attrs={"name": "csrf-token"})
    return meta["content"] if meta else ""
