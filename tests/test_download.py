"""A course or a bundle from an address: https, one deadline, and no more bytes than it may have."""

from __future__ import annotations

import gzip
import http.server
import os
import shutil
import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from commandline import Cli, Said
from servers import Answer, Served, certificate, leads_to, send, serving

from grader.course import download, places

SECONDS = 0.6  # of a download in these tests
KEY = "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8="  # of a bundle


@pytest.fixture(scope="module")
def pem(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The certificate of this machine."""
    return certificate(tmp_path_factory.mktemp("tls"))


@pytest.fixture
def zipped_course(cli: Cli, tiny_copy: Path, tmp_path: Path) -> bytes:
    """The students' files of the tiny course as a zip."""
    assert cli("build", "--course", tiny_copy).code == 0
    source = tmp_path / "zipped"
    shutil.copytree(tiny_copy / "exercises", source / "course-main" / "exercises")
    return Path(shutil.make_archive(str(tmp_path / "tiny"), "zip", source)).read_bytes()


@pytest.fixture
def plain(zipped_course: bytes) -> Iterator[Served]:
    """A server that speaks http and has the course."""
    with serving() as server:
        server.answers["/tiny.zip"] = zipped_course
        yield server


@pytest.fixture
def secure(zipped_course: bytes, pem: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Served]:
    """A server that speaks https, with a certificate that is accepted here, and has the course."""
    monkeypatch.setenv("SSL_CERT_FILE", str(pem))
    with serving(pem) as server:
        server.answers["/tiny.zip"] = zipped_course
        yield server


@pytest.fixture(autouse=True)
def without_proxies(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in list(os.environ):
        if name.lower().endswith("_proxy"):
            monkeypatch.delenv(name)


def taken(cli: Cli, address: str, tmp_path: Path, *options: str) -> Said:
    """Take the exercises from an address."""
    return cli("init", tmp_path / "mine", "--course", address, *options)


def refused(cli: Cli, address: str, tmp_path: Path, *options: str) -> str:
    """Take the exercises from an address that is refused; return what is said."""
    said = taken(cli, address, tmp_path, *options)
    assert said.code == 2, said.err
    return said.err


# --- which addresses ------------------------------------------------------------------------------


def test_a_course_is_loaded_over_https(cli: Cli, secure: Served, tmp_path: Path) -> None:
    said = taken(cli, f"{secure.address}/tiny.zip", tmp_path)
    assert said.code == 0, said.err
    assert (tmp_path / "mine/exercises/scale.py").is_file()


def test_a_server_with_an_unknown_certificate_is_refused(
    cli: Cli, secure: Served, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("SSL_CERT_FILE")
    for options in ((), ("--insecure",)):  # which is about http alone
        said = refused(cli, f"{secure.address}/tiny.zip", tmp_path, *options)
        assert "certificate is not accepted" in said


@pytest.mark.parametrize("scheme", ["http", "HTTP"])
def test_http_is_refused_without_a_word_to_the_server_unless_it_is_asked_for(
    scheme: str, cli: Cli, plain: Served, tmp_path: Path
) -> None:
    address = f"{plain.address}/tiny.zip".replace("http", scheme, 1)
    said = refused(cli, address, tmp_path)
    assert "anybody on the way can change" in said
    assert "--insecure" in said
    assert plain.asked == []
    assert taken(cli, address, tmp_path, "--insecure").code == 0


def test_a_bundle_over_http_is_refused_as_well(
    cli: Cli, plain: Served, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GRADER_COURSE_KEY", KEY)
    said = cli("check", tmp_path, "--bundle", f"{plain.address}/tiny.bundle")
    assert (said.code, "over http" in said.err, plain.asked) == (2, True, [])


@pytest.mark.parametrize(
    "address", ["ftp://h/c.zip", "file:///etc/passwd", "FILE:///etc/passwd", "https:///c.zip"]
)
@pytest.mark.parametrize("options", [(), ("--insecure",)])
def test_other_schemes_are_never_loaded(
    address: str, options: tuple[str, ...], cli: Cli, tmp_path: Path
) -> None:
    said = refused(cli, address, tmp_path, *options)
    assert "only https" in said or "is not an address" in said


@pytest.mark.parametrize("sign", ["\n", "\r\nX-Evil: 1", " ", "\t", "\x1b[2J", "é", "\0"])
def test_an_address_with_signs_that_none_has_is_refused_and_shown_harmless(
    sign: str, cli: Cli, secure: Served, tmp_path: Path
) -> None:
    said = refused(cli, f"{secure.address}/ti{sign}ny.zip", tmp_path)
    assert "characters that no address has" in said
    assert sign in " é" or f"ti{sign}ny" not in said
    assert secure.asked == []


# --- where a redirect leads -----------------------------------------------------------------------


def test_a_redirect_to_https_is_followed(cli: Cli, secure: Served, tmp_path: Path) -> None:
    secure.answers["/old.zip"] = leads_to("/newer.zip")
    secure.answers["/newer.zip"] = leads_to(f"{secure.address}/tiny.zip")
    assert taken(cli, f"{secure.address}/old.zip", tmp_path).code == 0


@pytest.mark.parametrize("options", [(), ("--insecure",)])
@pytest.mark.parametrize("to", ["http", "file:///etc/passwd", "ftp://h/c.zip", "data:,x"])
def test_a_redirect_from_https_leads_to_https_alone(
    to: str, options: tuple[str, ...], cli: Cli, secure: Served, plain: Served, tmp_path: Path
) -> None:
    to = f"{plain.address}/tiny.zip" if to == "http" else to
    secure.answers["/old.zip"] = leads_to(to)
    assert "which is not https" in refused(cli, f"{secure.address}/old.zip", tmp_path, *options)
    assert plain.asked == []


@pytest.mark.parametrize("to", ["file:///etc/passwd", "ftp://127.0.0.1/c.zip", "data:,x"])
def test_an_insecure_redirect_leads_to_no_lesser_scheme(
    to: str, cli: Cli, plain: Served, tmp_path: Path
) -> None:
    plain.answers["/old.zip"] = leads_to(to)
    assert "which is not https" in refused(cli, f"{plain.address}/old.zip", tmp_path, "--insecure")


def test_redirects_in_a_loop_end(cli: Cli, secure: Served, tmp_path: Path) -> None:
    secure.answers["/old.zip"] = leads_to("/old.zip")
    assert "from one address to another" in refused(cli, f"{secure.address}/old.zip", tmp_path)
    assert len(secure.asked) == download.MAX_REDIRECTS + 1


# --- what it may take -----------------------------------------------------------------------------


def endless(start: str, piece: bytes, seconds: float = 0.0) -> Answer:
    """Answer with the start of a response, and with a piece again and again, for ever."""

    def answer(handler: http.server.BaseHTTPRequestHandler) -> None:
        handler.wfile.write(f"HTTP/1.1 {start}".replace("\n", "\r\n").encode())
        while True:
            handler.wfile.write(piece)
            time.sleep(seconds)

    return answer


def dripping_redirects(handler: http.server.BaseHTTPRequestHandler) -> None:
    time.sleep(0.2)
    send(handler, b"", 302, Location=handler.path + "x")


DRIPPING = {  # a piece now and then
    "the file": endless("200 OK\n\n", b"x", 0.05),
    "chunks": endless("200 OK\nTransfer-Encoding: chunked\n\n", b"1\r\nx\r\n", 0.05),
    "headers": endless("200 OK\n", b"X", 0.05),
    "redirects": dripping_redirects,
}


@pytest.mark.parametrize("drips", DRIPPING)
def test_the_deadline_is_one_for_the_whole_download(
    drips: str, cli: Cli, secure: Served, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(download, "SECONDS", SECONDS)
    for count in range(download.MAX_REDIRECTS):
        secure.answers["/slow.zip" + count * "x"] = DRIPPING[drips]
    before = time.monotonic()
    assert "takes longer than" in refused(cli, f"{secure.address}/slow.zip", tmp_path)
    assert time.monotonic() - before < 5 * SECONDS


def test_a_server_that_never_begins_to_speak_is_waited_for_until_the_deadline(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(download, "SECONDS", SECONDS)
    with socket.create_server(("127.0.0.1", 0)) as silent:  # its TLS handshake never comes
        address = f"https://127.0.0.1:{silent.getsockname()[1]}/c.zip"
        assert "takes longer than" in refused(cli, address, tmp_path)


def test_a_name_server_that_does_not_answer_is_waited_for_until_the_deadline(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stuck = threading.Event()
    monkeypatch.setattr(download, "SECONDS", SECONDS)
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: stuck.wait(30))
    assert "takes longer than" in refused(cli, "https://grader.invalid/c.zip", tmp_path)
    stuck.set()


def test_no_more_is_read_than_a_course_may_have(
    cli: Cli, secure: Served, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(places, "MAX_BYTES", 1 << 20)
    secure.answers["/endless.zip"] = endless("200 OK\n\n", bytes(1 << 16))
    assert "larger than 1 MiB" in refused(cli, f"{secure.address}/endless.zip", tmp_path)


def test_what_comes_with_a_redirect_is_not_read(cli: Cli, secure: Served, tmp_path: Path) -> None:
    start = "302 Found\nLocation: /tiny.zip\n\n"
    secure.answers["/old.zip"] = endless(start, bytes(1 << 16))
    assert taken(cli, f"{secure.address}/old.zip", tmp_path).code == 0


def test_a_gzip_bomb_is_not_decoded(cli: Cli, secure: Served, tmp_path: Path) -> None:
    bomb = gzip.compress(bytes(200 << 20), compresslevel=1)
    secure.answers["/bomb.zip"] = lambda it: send(it, bomb, Content_Encoding="gzip")
    said = refused(cli, f"{secure.address}/bomb.zip", tmp_path)
    assert "the zip of the course cannot be read" in said


@pytest.mark.parametrize(
    ("length", "says"),
    [("+9", "9 bytes early"), ("-9", "cannot be read"), ("=-1", ""), ("=x", "")],
)
def test_a_wrong_length_is_noticed_or_does_no_harm(
    length: str, says: str, cli: Cli, secure: Served, zipped_course: bytes, tmp_path: Path
) -> None:
    stated = length[1:] if length[0] == "=" else str(len(zipped_course) + int(length))
    secure.answers["/odd.zip"] = lambda it: send(it, zipped_course, Content_Length=stated)
    said = taken(cli, f"{secure.address}/odd.zip", tmp_path)
    assert says in said.err
    assert (said.code == 0) == (not says)


# --- what is not printed --------------------------------------------------------------------------


@pytest.mark.parametrize("path", ["missing.zip", "odd.zip", "away.zip", "no port:x"])
def test_no_credentials_of_an_address_are_printed(
    path: str,
    cli: Cli,
    secure: Served,
    plain: Served,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("GRADER_COURSE_KEY", KEY)
    secure.answers["/odd.zip"] = b"no zip"
    secure.answers["/away.zip"] = leads_to(f"{plain.address}/x?signature=s3cret")
    host = secure.address.removeprefix("https://")
    if path == "no port:x":
        host, path = f"{host}x", "tiny.zip"
    address = f"https://me:s3cret@{host}/{path}?token=s3cret#s3cret"
    for option in ("--course", "--bundle"):
        said = cli("check", tmp_path, option, address)
        assert said.code == 2
        assert "s3cret" not in said.out + said.err
        assert "\x1b" not in said.err


def test_a_user_and_password_go_to_their_own_host_alone(
    cli: Cli, secure: Served, pem: Path, zipped_course: bytes, tmp_path: Path
) -> None:
    with serving(pem) as other:
        other.answers["/tiny.zip"] = zipped_course
        secure.answers["/old.zip"] = leads_to(f"{other.address}/tiny.zip")
        address = f"{secure.address}/old.zip".replace("://", "://me:s3cret@")
        assert taken(cli, address, tmp_path).code == 0
    assert secure.asked[0][1]["Authorization"] == "Basic bWU6czNjcmV0"
    assert "Authorization" not in other.asked[0][1]


def test_the_folder_of_a_course_is_not_named_after_a_token(
    cli: Cli, secure: Served, zipped_course: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    secure.answers["/"] = zipped_course
    assert cli("init", "--course", f"{secure.address}/?token=s3cret").code == 0
    assert (tmp_path / "course/exercises/scale.py").is_file()
    assert not list(tmp_path.glob("*s3cret*"))


def test_the_proxy_of_the_environment_is_used(
    cli: Cli, plain: Served, zipped_course: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plain.answers["http://course.invalid/tiny.zip"] = zipped_course
    monkeypatch.setenv("http_proxy", plain.address)
    assert taken(cli, "http://course.invalid/tiny.zip", tmp_path, "--insecure").code == 0
    assert [path for path, _ in plain.asked] == ["http://course.invalid/tiny.zip"]
