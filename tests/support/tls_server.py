"""Take PostgreSQL's request for TLS, shake hands under an authority of its own, and hang up."""

from __future__ import annotations

import socket
import ssl
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from threading import Thread

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

HOST = "db.example.test"


class TlsServer:
    """Give an address that names a remote host, and one that is local."""

    def __init__(self, folder: Path) -> None:
        self.bundle, self._chain = folder / "ca.pem", folder / "server.pem"
        self.handshakes = 0
        write_certificate(self.bundle, self._chain, HOST)

    def __enter__(self) -> str:
        self.handshakes = 0
        self._socket = socket.create_server(("127.0.0.1", 0))
        Thread(target=self._serve, daemon=True).start()
        port = self._socket.getsockname()[1]
        return f"postgresql://u:sesame@{HOST}:{port}/d?hostaddr=127.0.0.1"

    def __exit__(self, *_: object) -> None:
        with suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()

    def _serve(self) -> None:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(self._chain)
        with suppress(OSError):
            while True:
                connection, _ = self._socket.accept()
                with connection, suppress(ssl.SSLError):
                    connection.recv(8)  # SSLRequest
                    connection.sendall(b"S")
                    with context.wrap_socket(connection, server_side=True) as secured:
                        if secured.recv(1):  # the client goes on only once it trusts us
                            self.handshakes += 1


def write_certificate(bundle: Path, chain: Path, host: str) -> None:
    """Write a self-signed certificate: for clients that trust it, and with its key for a server of that name."""
    key, name = ec.generate_private_key(ec.SECP256R1()), x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, host)])
    now = datetime.now(UTC)
    certificate = (
        x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
        .not_valid_before(now - timedelta(hours=1))
        .not_valid_after(now + timedelta(hours=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(host)]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    public = certificate.public_bytes(serialization.Encoding.PEM)
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    bundle.write_bytes(public)
    chain.write_bytes(private + public)
