"""Servers on this machine that answer as a test wants, over http and over https."""

from __future__ import annotations

import contextlib
import datetime
import http.server
import ipaddress
import ssl
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

HOST = "127.0.0.1"
Answer = Callable[[http.server.BaseHTTPRequestHandler], None]


@dataclass
class Served:
    """A running server: what it answers at each path, and the headers of what it was asked."""

    address: str
    answers: dict[str, bytes | Answer] = field(default_factory=dict)
    asked: list[tuple[str, dict[str, str]]] = field(default_factory=list)


def certificate(folder: Path) -> Path:
    """Write a certificate of this machine and its key into one file, and return it."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, HOST)])
    now = datetime.datetime.now(datetime.UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .add_extension(
            x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address(HOST))]),
            critical=False,
        )
        .sign(key, hashes.SHA256())
    )
    file = folder / "certificate.pem"
    file.write_bytes(
        made.public_bytes(serialization.Encoding.PEM)
        + key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
    )
    return file


@contextlib.contextmanager
def serving(secured_by: Path | None = None) -> Iterator[Served]:
    """Yield a server, which speaks https if it has a certificate."""

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            served.asked.append((self.path, dict(self.headers)))
            answer = served.answers.get(self.path.partition("?")[0], missing)
            with contextlib.suppress(OSError):  # whoever asked may have left
                if callable(answer):
                    answer(self)
                else:
                    send(self, answer)

        def log_message(self, *_: object) -> None:
            pass

    with http.server.ThreadingHTTPServer((HOST, 0), Handler) as server:
        server.daemon_threads = True
        server.block_on_close = False
        scheme = "http"
        if secured_by is not None:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(secured_by)
            server.socket = context.wrap_socket(server.socket, server_side=True)
            scheme = "https"
        served = Served(f"{scheme}://{HOST}:{server.server_port}")
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield served
        server.shutdown()


def send(
    handler: http.server.BaseHTTPRequestHandler, data: bytes, code: int = 200, **headers: str
) -> None:
    """Answer with bytes and headers, `Content_Length` among them if it is to be another."""
    handler.send_response(code)
    for name, value in ({"Content_Length": str(len(data))} | headers).items():
        handler.send_header(name.replace("_", "-"), value)
    handler.end_headers()
    handler.wfile.write(data)


def missing(handler: http.server.BaseHTTPRequestHandler) -> None:
    """Answer that there is nothing, in words that a terminal would obey."""
    handler.send_response(404, "\x1b[2J gone")
    handler.end_headers()


def leads_to(address: str) -> Answer:
    """Answer that the file is at another address."""
    return lambda handler: send(handler, b"", 302, Location=address)
