import os
from urllib.parse import urlsplit

import uvicorn
from fastapi import Depends, FastAPI, HTTPException, Request
from fastapi.responses import PlainTextResponse
from hub_client import Identity

app = FastAPI()


def visitor(request: Request) -> Identity:
    found = Identity.of(request.headers)
    if found is None:
        raise HTTPException(403, "This page is for visitors of the hub.")
    return found


@app.get("/", response_class=PlainTextResponse)
def greet(who: Identity = Depends(visitor)):
    return f"Hello, {who.name}. Groups: {', '.join(who.groups)}"


if __name__ == "__main__":
    address = urlsplit(os.environ["HUB_SERVICE_URL"])
    uvicorn.run(app, host=address.hostname, port=address.port)
