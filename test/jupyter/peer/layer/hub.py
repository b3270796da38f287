"""The hub as a process: its configuration follows what tests set, and it is restarted where that has changed."""

import json
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from pathlib import Path

import requests

CHECKOUT = Path(__file__).resolve().parents[4]
BASE_PATH = "/base/path/"
LAYER = "layer"
LAYER_TOKEN = "token-of-the-translation-layer"
READY_SECONDS = 120
# Of JupyterHub, which the hub says it has.
INTERFACE_VERSION = "5.0.0"

# What the layer gives to users of a test, it must hold itself.
LAYER_SCOPES = [
    "admin-ui",
    "admin:users",
    "admin:auth_state",
    "admin:servers",
    "admin:server_state",
    "admin:services",
    "admin:groups",
    "admin:roles",
    "admin:announcements",
    "tokens",
    "list:services",
    "read:services",
    "read:hub",
    "read:roles",
    "read:metrics",
    "read:audit",
    "proxy",
    "shutdown",
    "access:services",
    "access:servers",
    "shares",
    "users:shares",
    "groups:shares",
]
LAYER_SERVICE = {"name": LAYER, "admin": True, "api_token": LAYER_TOKEN}
LAYER_ROLES = [{"name": LAYER, "scopes": LAYER_SCOPES, "services": [LAYER]}]

# Every user of the hub holds the role `user`; those of JupyterHub's tests often do not. With these roles that one
# allows nothing, and another stands for the one of JupyterHub.
STANDARD = "standard-user"
BARE_ROLES = [{"name": "user", "scopes": []}]


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def merge(base, changes):
    """A copy of one configuration with what another one says over it."""
    merged = dict(base)
    for key, value in changes.items():
        if isinstance(value, dict) and isinstance(merged.get(key), dict):
            merged[key] = merge(merged[key], value)
        else:
            merged[key] = value
    return merged


class Hub:
    """One hub with a database of its own, on free ports, from the first request to `close`."""

    def __init__(self):
        self.folder = Path(tempfile.mkdtemp(prefix="hub-peer-"))
        self.port, self.internal_port = free_port(), free_port()
        self.origin = f"http://127.0.0.1:{self.port}"
        self.url = self.origin + BASE_PATH
        self.api_url = f"http://127.0.0.1:{self.internal_port}{BASE_PATH}hub/api"
        self.starts = 0
        self._process = None
        self._running = None
        self._log = open(self.folder / "hub.log", "ab")

    def _base_configuration(self):
        return {
            "Hub": {
                "bind_url": self.url,
                "hub_bind_url": f"http://127.0.0.1:{self.internal_port}",
                "instance_name": self.folder.name,
                "database_url": "sqlite:hub.sqlite",
                "plugins_dir": str(CHECKOUT / "test/jupyter/peer/plugins"),
                "authenticator_class": "same-as-name",
                "environment_prefixes": ["HUB", "JUPYTERHUB"],
                "allow_managed_services_at_runtime": True,
                "api_token_limit_per_user": 0,
                "session_limit_per_user": 0,
                # As JupyterHub does without any setting.
                "redirect_to_server": True,
                "implicit_spawn_seconds": 1,
                "services": [LAYER_SERVICE],
                "load_roles": LAYER_ROLES,
            },
            "Authenticator": {
                "allow_all": True,
                "admin_users": ["admin"],
                "allowed_users": ["user"],
                # As accounts that no one on the machine has, which JupyterHub's tests call so.
                "username_pattern": "(?!dne).*",
                "lockout_attempts": 1_000_000,
            },
            "Spawner": {
                "class": "mock-process",
                "cmd": ["/usr/bin/python3", "-m", "jupyterhub.tests.mocksu"],
                "poll_interval": 1,
                "stop_timeout": 3,
                # Far more than JupyterHub's: no test fails because the machine is slow.
                "slow_start_timeout": 60,
                "slow_stop_timeout": 60,
                # One folder for all: no user of a test is the later owner of the files of another.
                "home_dir": "homes",
            },
            "Proxy": {"max_connections_per_address": 0},
        }

    def require(self, changes):
        """Sees to it that the hub runs with these settings over the usual ones; true where it had to be started."""
        wanted = json.dumps(merge(self._base_configuration(), changes), sort_keys=True)
        if self._process is not None and self._process.poll() is None and wanted == self._running:
            return False
        self.stop()
        self._start(wanted)
        return True

    def _start(self, configuration):
        file = self.folder / "hub.config.json"
        file.write_text(configuration)
        command = [str(CHECKOUT / "node_modules/.bin/node"), str(CHECKOUT / "src/main.ts")]
        self._process = subprocess.Popen(
            [*command, "start", "--config", str(file)],
            cwd=self.folder,
            stdout=self._log,
            stderr=self._log,
            env={**os.environ, "PYTHONPATH": ""},
        )
        deadline = time.monotonic() + READY_SECONDS
        while True:
            if self._process.poll() is not None:
                self._running = None
                raise RuntimeError(f"the hub ended at its start:\n{self.log_end()}")
            try:
                if requests.get(f"{self.api_url}/ready", timeout=5).status_code == 200:
                    break
            except requests.RequestException:
                pass
            if time.monotonic() > deadline:
                raise RuntimeError(f"the hub is not ready:\n{self.log_end()}")
            time.sleep(0.05)
        self._running = configuration
        self.starts += 1

    def log_end(self):
        return (self.folder / "hub.log").read_text(errors="replace")[-3000:]

    def stop(self):
        if self._process is None:
            return
        if self._process.poll() is None:
            self._process.send_signal(signal.SIGTERM)
            try:
                self._process.wait(60)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()
        self._process = None

    def close(self):
        """Ends the hub and every process that it started, and removes its folder."""
        self.stop()
        self._log.close()
        for process in Path("/proc").iterdir():
            if not process.name.isdigit():
                continue
            try:
                is_ours = self.folder.name.encode() in (process / "environ").read_bytes() or str(
                    self.folder
                ) in os.readlink(process / "cwd")
            except OSError:
                continue
            if is_ours:
                os.kill(int(process.name), signal.SIGKILL)
        if os.environ.get("PEER_KEEP"):
            print(f"kept {self.folder}")
        else:
            shutil.rmtree(self.folder, ignore_errors=True)
