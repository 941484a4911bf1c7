"""Certificates for tests, made on the spot: authorities, and whom they vouch for."""

from __future__ import annotations

import datetime
import ipaddress
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

__all__ = ["Issuer", "make_certificate", "make_certificates"]

Issuer = tuple[x509.Certificate, ec.EllipticCurvePrivateKey]


def make_certificate(path: Path, issuer: Issuer | None, *, days: float = 1, password: bytes | None = None) -> Issuer:
    """Writes ``<path>.pem`` and ``<path>.key``.

    Without an issuer it is an authority; with negative days it has expired.
    """
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, path.name)])
    now = datetime.datetime.now(datetime.timezone.utc)
    issuer_key = key if issuer is None else issuer[1]
    certificate = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject if issuer is None else issuer[0].subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(days=abs(days), hours=1))
        .not_valid_after(now + datetime.timedelta(days=days))
        .add_extension(x509.BasicConstraints(ca=issuer is None, path_length=None), critical=True)
        .add_extension(
            x509.SubjectAlternativeName([x509.DNSName("localhost"), x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]),
            critical=False,
        )
        # Python insists on these from 3.13 on
        .add_extension(
            x509.KeyUsage(
                digital_signature=True,
                content_commitment=False,
                key_encipherment=False,
                data_encipherment=False,
                key_agreement=False,
                key_cert_sign=issuer is None,
                crl_sign=False,
                encipher_only=False,
                decipher_only=False,
            ),
            critical=True,
        )
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(issuer_key.public_key()), critical=False)
        .sign(issuer_key, hashes.SHA256())
    )
    encryption = serialization.NoEncryption() if password is None else serialization.BestAvailableEncryption(password)
    path.with_suffix(".pem").write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
    path.with_suffix(".key").write_bytes(
        key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, encryption)
    )
    return certificate, key


def make_certificates(place: Path) -> Path:
    """ca signs server, client, and expired, which is; other-ca signs stranger. Of secret, the key has a pass phrase."""
    ca = make_certificate(place / "ca", None)
    make_certificate(place / "server", ca)
    make_certificate(place / "client", ca)
    make_certificate(place / "expired", ca, days=-1)
    make_certificate(place / "secret", ca, password=b"pass phrase")
    make_certificate(place / "stranger", make_certificate(place / "other-ca", None))
    return place
