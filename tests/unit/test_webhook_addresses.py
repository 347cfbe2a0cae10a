"""Webhooks may go only to allowed addresses and URLs, decided without a network."""

from __future__ import annotations

from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network

import pytest
from hypothesis import given
from hypothesis import strategies as st

from signalbox.errors import SettingsRefused
from signalbox.http.allowed_addresses import is_public, may_receive, read_address
from signalbox.http.url import Receiver, ReceiverRefused, read_url, require_allowed
from signalbox.runtime.settings import Settings

LEAST = {"SIGNALBOX_STACK": "s", "SIGNALBOX_DATABASE_URL": "postgresql:///x"}
PUBLIC = """
    1.1.1.1 8.8.8.8 93.184.216.34 100.63.255.255 100.128.0.0 172.15.255.255 172.32.0.0 192.0.1.0 198.17.255.255
    198.20.0.0 223.255.255.255 2606:4700:4700::1111 2a00:1450:4001:800::200e 2001:4860:4860::8888 2600:1f18::1
"""
NOT_PUBLIC_4 = """
    0.0.0.0 0.1.2.3 10.0.0.1 100.64.0.1 100.100.100.200 127.0.0.1 127.255.255.254 169.254.169.254 169.254.170.2
    172.16.0.1 172.31.255.255 192.0.0.1 192.0.0.170 192.0.2.7 192.88.99.1 192.168.1.1 198.18.0.1 198.19.255.255
    198.51.100.1 203.0.113.9 224.0.0.1 239.255.255.255 240.0.0.1 255.255.255.255
"""
NOT_PUBLIC_6 = """
    :: ::1 ::127.0.0.1 ::ffff:127.0.0.1 ::ffff:8.8.8.8 ::ffff:0:8.8.8.8 64:ff9b::169.254.169.254
    64:ff9b::8.8.8.8 64:ff9b:1::a00:1 100::1 2001::1 2001:2::1 2001:10::1 2001:20::1 2001:db8::1 2002:7f00:1::
    2002:a9fe:a9fe::1 3fff::1 4000::1 5f00::1 fc00::1 fd00:ec2::254 fe80::1 feb0::1 fec0::1 ff02::1 ff0e::1
"""
PRIVATE = """
    10.0.0.0/8 127.0.0.0/8 169.254.0.0/16 172.16.0.0/12 192.168.0.0/16 100.64.0.0/10
    224.0.0.0/3 fc00::/7 fe80::/10 ff00::/8 2002::/16
"""


@pytest.mark.parametrize("text", PUBLIC.split())
def test_the_public_internet_may_be_called(text: str) -> None:
    assert is_public(ip_address(text))


@pytest.mark.parametrize("text", NOT_PUBLIC_4.split())
def test_no_other_address_of_ipv4_is_public(text: str) -> None:
    assert not is_public(ip_address(text))


@pytest.mark.parametrize("text", NOT_PUBLIC_6.split())
def test_no_other_address_of_ipv6_is_public(text: str) -> None:
    assert not is_public(ip_address(text))


@given(st.ip_addresses())
def test_what_is_public_is_so_for_the_standard_library_too(address: IPv4Address | IPv6Address) -> None:
    if is_public(address):
        assert address.is_global
        assert not any((address.is_multicast, address.is_reserved, address.is_unspecified))
        if isinstance(address, IPv6Address):
            assert (address.ipv4_mapped, address.sixtofour, address.teredo) == (None, None, None)
            assert not address.is_site_local


@given(st.ip_addresses(v=4), st.integers(0, 2**80 - 1))
def test_no_address_that_wraps_another_is_public(inner: IPv4Address, rest: int) -> None:
    number = int(inner)
    forms = [number, 0xFFFF << 32 | number, int(IPv6Address("64:ff9b::")) | number]
    forms += [0x2002 << 112 | number << 80 | rest, 0x20010000 << 96 | rest]
    assert not any(is_public(IPv6Address(form)) for form in forms)


@given(st.data(), st.sampled_from([ip_network(text) for text in PRIVATE.split()]))
def test_no_address_of_a_private_network_is_public(data: st.DataObject, network: IPv4Network | IPv6Network) -> None:
    address = network[data.draw(st.integers(0, network.num_addresses - 1))]
    assert not is_public(address)


@given(st.ip_addresses(), st.data())
def test_network_is_allowed_only_by_name_and_refused_despite_it(
    address: IPv4Address | IPv6Address, data: st.DataObject
) -> None:
    length = data.draw(st.integers(0, address.max_prefixlen))
    around = ip_network((address, length), strict=False)
    assert may_receive(address, [around], [])
    assert not may_receive(address, [around], [around])
    assert may_receive(address, [], []) == is_public(address)


def test_a_network_of_ipv4_does_not_allow_what_wraps_it() -> None:
    assert not may_receive(ip_address("::ffff:127.0.0.1"), [ip_network("127.0.0.0/8")], [])


def test_an_address_that_is_bound_to_an_interface_is_none() -> None:
    assert read_address("fe80::1%eth0") is None


@pytest.mark.parametrize(
    ("url", "target"),
    [
        ("https://hooks.example.org", Receiver("https", "hooks.example.org", 443, "/")),
        ("HTTPS://Hooks.Example.ORG:8443/A?b=%20&c", Receiver("https", "hooks.example.org", 8443, "/A?b=%20&c")),
        ("https://hooks.example.org?x", Receiver("https", "hooks.example.org", 443, "/?x")),
        ("http://1.2.3.4/", Receiver("http", "1.2.3.4", 80, "/")),
        ("https://[2606:4700::1]:443/x", Receiver("https", "2606:4700::1", 443, "/x")),
    ],
)
def test_a_url_is_taken_apart(url: str, target: Receiver) -> None:
    assert read_url(url) == target


@pytest.mark.parametrize(
    "url",
    ["", "hooks.example.org", "//hooks.example.org/", "ftp://a.example/", "file:///etc/passwd", "gopher://a.example/",
     "https://", "https:///path", "https://user@a.example/", "https://user:word@a.example/", "https://a.example@b.example/",
     "https://a.example/#top", "https://a.example/ b", "https://a.example/\r\nHost: b", "https://a.example\\@b.example/",
     "https://a.example:99999/", "https://a.example:x/", "https://bücher.example/", "https://a..example/",
     "https://[fe80::1%25eth0]/", "https://[::1", "https://[1.2.3.4]/", "https://a.example/" + "x" * 2000],
)  # fmt: skip
def test_a_url_that_could_be_read_in_two_ways_is_refused(url: str) -> None:
    with pytest.raises(ReceiverRefused) as caught:
        read_url(url)
    assert "example" not in str(caught.value)  # a URL may hold a secret


def test_a_host_header_names_the_port_unless_it_is_the_usual_one() -> None:
    assert read_url("https://a.example:443/").authority == "a.example"
    assert read_url("https://a.example:8443/").authority == "a.example:8443"
    assert read_url("https://[2606:4700::1]:8443/").authority == "[2606:4700::1]:8443"


def test_https_on_its_usual_ports_is_what_a_stack_allows() -> None:
    settings = Settings.read(LEAST)
    require_allowed(read_url("https://a.example/"), settings)
    require_allowed(read_url("https://a.example:8443/"), settings)
    for url in ("https://a.example:22/", "https://a.example:6379/", "https://a.example:0/"):
        with pytest.raises(ReceiverRefused, match="port"):
            require_allowed(read_url(url), settings)
    with pytest.raises(ReceiverRefused, match="SIGNALBOX_WEBHOOK_ALLOW_HTTP is off"):
        require_allowed(read_url("http://a.example:443/"), settings)


def test_settings_name_networks_and_ports() -> None:
    settings = Settings.read(
        LEAST
        | {
            "SIGNALBOX_WEBHOOK_ALLOW_HTTP": "on",
            "SIGNALBOX_WEBHOOK_PORTS": "443, 8000-8999",
            "SIGNALBOX_WEBHOOK_ALLOWED_NETWORKS": "127.0.0.0/8,::1/128",
            "SIGNALBOX_WEBHOOK_REFUSED_NETWORKS": "2600:1f18::/32",
        }
    )
    require_allowed(read_url("http://a.example:8500/"), settings)
    assert settings.webhook_allowed_networks == (ip_network("127.0.0.0/8"), ip_network("::1"))
    assert settings.webhook_refused_networks == (ip_network("2600:1f18::/32"),)


@pytest.mark.parametrize(
    ("name", "value"),
    [("ALLOW_HTTP", "yes"), ("PORTS", "0"), ("PORTS", "70000"), ("PORTS", "9-8"), ("PORTS", "https"), ("PORTS", "-"),
     ("ALLOWED_NETWORKS", "127.0.0.1/8"), ("REFUSED_NETWORKS", "inside")],
)  # fmt: skip
def test_settings_that_name_none_are_refused(name: str, value: str) -> None:
    with pytest.raises(SettingsRefused, match=f"SIGNALBOX_WEBHOOK_{name}.*'{value}'"):
        Settings.read(LEAST | {f"SIGNALBOX_WEBHOOK_{name}": value})
