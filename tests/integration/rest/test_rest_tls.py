from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from firesteel.cluster.rest.tls import TlsConfigurationError, server_context
from firesteel.common import Configuration
from firesteel.rest.client import ConnectionFailedError, RestClient
from tests.support.rest.samples import LOG, SUBMIT, TOKEN, Handlers, Note, serving
from tests.support.services.certificates import make_certificates

ON = {"security.ssl.rest.enabled": "true"}


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_certificates(tmp_path_factory.mktemp("certificates"))


def settings(place: Path, name: str | None = None, ca: str | None = "ca", **more: str) -> dict[str, str]:
    made = dict(ON)
    if name is not None:
        made["security.ssl.rest.certificate"] = str(place / f"{name}.pem")
        made["security.ssl.rest.key"] = str(place / f"{name}.key")
    if ca is not None:
        made["security.ssl.rest.ca"] = str(place / f"{ca}.pem")
    return {**made, **more}


def client(url: str, using: Mapping[str, str], token: str | None = None) -> RestClient:
    return RestClient(url, token=token, configuration=Configuration.from_dict(dict(using)), timeout=60)


def test_tls_with_a_token(certificates: Path) -> None:
    with serving(Handlers().routes(), settings(certificates, "server")) as server:
        assert server.url.startswith("https://localhost:")
        with client(server.url, settings(certificates), TOKEN) as known:
            assert known.call(LOG) == "line ü\n"
            assert known.call(SUBMIT, body=Note("hi"), uploads={"a": ("x", b"x" * 200_000)}).note == Note("hi")
        with client(server.url, settings(certificates, ca="other-ca")) as distrustful:
            with pytest.raises(ConnectionFailedError, match="TLS failed"):
                distrustful.call(LOG)
        with RestClient(f"http://localhost:{server.address[1]}", timeout=60) as plain:
            with pytest.raises(ConnectionFailedError):
                plain.call(LOG)


def test_a_client_certificate_counts_as_the_token(certificates: Path) -> None:
    required = {"security.ssl.rest.authentication-enabled": "true", "rest.bind-address": "0.0.0.0"}
    with serving(Handlers().routes(), {**settings(certificates, "server"), **required}) as server:
        with client(server.url, settings(certificates, "client")) as known:
            assert known.call(SUBMIT, body=Note("hi"), uploads={"a": ("x", b"x")}).note == Note("hi")
        for stranger in (settings(certificates), settings(certificates, "stranger")):
            with client(server.url, stranger, TOKEN) as unknown, pytest.raises(ConnectionFailedError):
                unknown.call(LOG)


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"security.ssl.rest.certificate": ""}, "security.ssl.rest.certificate"),
        ({"security.ssl.rest.key": "/missing.key"}, "/missing.key"),
        ({"security.ssl.rest.key": "{place}/client.key"}, "cannot be used"),
        (
            {"security.ssl.rest.certificate": "{place}/secret.pem", "security.ssl.rest.key": "{place}/secret.key"},
            "security.ssl.rest.key",
        ),
        ({"security.ssl.rest.authentication-enabled": "true", "security.ssl.rest.ca": "/missing.pem"}, "/missing.pem"),
        ({"security.ssl.rest.authentication-enabled": "true", "security.ssl.rest.ca": ""}, "security.ssl.rest.ca"),
        (
            {"security.ssl.rest.authentication-enabled": "true", "security.ssl.rest.enabled": "false"},
            "authentication-enabled needs TLS",
        ),
    ],
)
def test_what_cannot_be_set_up_says_why(certificates: Path, change: dict[str, str], says: str) -> None:
    changed = {key: value.format(place=certificates) for key, value in change.items()}
    configuration = Configuration.from_dict({**settings(certificates, "server"), **changed})
    with pytest.raises(TlsConfigurationError) as caught:
        server_context(configuration)
    assert says in str(caught.value)
