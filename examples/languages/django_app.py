import os
import sys
from urllib.parse import urlsplit

from django.conf import settings
from django.core.management import execute_from_command_line
from django.http import HttpResponse, HttpResponseForbidden
from django.urls import path
from hub_client import Identity

# With accounts of its own, a project uses django.contrib.auth's RemoteUserMiddleware, with header = "HTTP_X_HUB_USER".
settings.configure(
    ROOT_URLCONF=__name__,
    SECRET_KEY=os.environ["HUB_API_TOKEN"],
    ALLOWED_HOSTS=["*"],  # The gateway answers for no others.
    USE_X_FORWARDED_HOST=True,
)


def greet(request):
    visitor = Identity.of(request.headers)
    if visitor is None:
        return HttpResponseForbidden("This page is for visitors of the hub.")
    text = f"Hello, {visitor.name}. Groups: {', '.join(visitor.groups)}"
    return HttpResponse(text, content_type="text/plain; charset=utf-8")


urlpatterns = [path("", greet)]

if __name__ == "__main__":
    address = urlsplit(os.environ["HUB_SERVICE_URL"]).netloc
    execute_from_command_line([sys.argv[0], "runserver", "--noreload", address])
