import os
from urllib.parse import urlsplit

from flask import Flask, request
from hub_client import Identity

app = Flask(__name__)


@app.get("/")
def greet():
    visitor = Identity.of(request.headers)
    if visitor is None:
        return "This page is for visitors of the hub.", 403
    return f"Hello, {visitor.name}. Groups: {', '.join(visitor.groups)}"


if __name__ == "__main__":
    address = urlsplit(os.environ["HUB_SERVICE_URL"])
    app.run(address.hostname, address.port)
