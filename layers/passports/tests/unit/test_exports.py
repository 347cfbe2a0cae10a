"""Each format holds payload, receipt and signature, so that its reader can verify it, whatever the texts are."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any
from uuid import UUID
from xml.etree import ElementTree

import pytest

from passports.encoding.canonical import canonical, sha256
from passports.issuing import exports
from passports.issuing.exports import SignedPassport, write_json_ld, write_pdf, write_xml
from passports.issuing.signature import is_signed, public_key_of, sign
from signalbox.documents.pdf_text import read_pages

PRIVATE = bytes(32)
STRANGE = 'é 中 \U0001f50b \ufffe\uffff\x01\x7f\x85 <b>&amp;]]>\t\r\n"\\  -- \u2028 -' + "-W " * 300
PAYLOADS: dict[str, dict[str, Any]] = {
    "plain": {"product": {"sku": "BP-1"}, "values": {"mass_kg": 19.75}},
    "empty": {"product": {"sku": ""}, "values": {}},
    "strange": {"product": {"sku": STRANGE, STRANGE: [STRANGE]}, "values": {"a": 1e21, "b": 5e-324, "c": [[]]}},
    "large": {"product": {"sku": "BP-1"}, "values": {f"v{n}": "x y " * 10 for n in range(1500)}},
}


def signed(name: str) -> SignedPassport:
    ids = {"format": "BPC-PAYLOAD-1", "issued_at": "2026-03-01T08:00:00.000000Z", "passport_id": "p"}
    payload = canonical(ids | PAYLOADS[name])
    receipt = canonical({"build_id": STRANGE, "payload_hash": sha256(payload).hex()})
    key_id = "key-1" if name != "strange" else STRANGE
    return SignedPassport(
        UUID(int=5), 1, payload, receipt, sign(PRIVATE, sha256(receipt)), key_id, public_key_of(PRIVATE)
    )


def read_json_ld(data: bytes) -> tuple[Any, Any, str, str]:
    found = json.loads(data)
    return found["payload"], found["receipt"], found["signature"], found["signing_key_public"]


def read_xml(data: bytes) -> tuple[Any, Any, str, str]:
    root: Any = ElementTree.fromstring(data)
    payload, receipt, signature = root
    return json.loads(payload.text), json.loads(receipt.text), signature.text, signature.get("public_key")


def read_pdf(data: bytes) -> tuple[Any, Any, str, str]:
    """Join the lines of the pages, without those at their feet."""
    lines = [line for page in read_pages(data, 1000) for line in page.split("\n")]
    text = "".join("".join(line.split()) for line in lines if not line.startswith("Version 0"))
    before, payload_and_receipt = text.split("PayloadasJSON")
    payload, receipt = payload_and_receipt.split("ReceiptasJSON")
    signature = before.rpartition("Ed25519signature")[2]
    return json.loads(payload), json.loads(receipt), signature[:128], before[-64:]


FORMATS = [(write_json_ld, read_json_ld), (write_xml, read_xml), (write_pdf, read_pdf)]


@pytest.mark.parametrize("name", PAYLOADS)
@pytest.mark.parametrize(("write", "read"), FORMATS)
def test_file_alone_verifies(write: Any, read: Any, name: str) -> None:
    passport = signed(name)
    data = write(passport)
    payload, receipt, signature, public_key = read(data)
    assert (canonical(payload), canonical(receipt)) == (passport.payload, passport.receipt)
    assert receipt["payload_hash"] == sha256(canonical(payload)).hex()
    assert is_signed(bytes.fromhex(public_key), bytes.fromhex(signature), sha256(canonical(receipt)))
    assert write(signed(name)) == data


def is_valid(data: bytes) -> bool:
    """Say whether XML is as the pack's schema has it."""
    etree: Any = pytest.importorskip("lxml.etree", reason="lxml is not installed, which knows XSD")
    schema = etree.XMLSchema(etree.parse(Path(exports.__file__).with_name("passport.xsd")))
    return bool(schema.validate(etree.fromstring(data)))


@pytest.mark.parametrize("name", PAYLOADS)
def test_xml_is_valid(name: str) -> None:
    assert is_valid(write_xml(signed(name)))


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (b"Ed25519", b"RSA"),
        (b'version="1"', b""),
        (b'public_key="', b'public_key="A'),
        (b"</receipt>", b"</receipt><x/>"),
    ],
)
def test_schema_refuses_other_xml(old: bytes, new: bytes) -> None:
    data = write_xml(signed("plain"))
    assert old in data
    assert not is_valid(data.replace(old, new))


def test_json_ld_needs_no_network_and_keeps_json() -> None:
    jsonld: Any = pytest.importorskip("pyld.jsonld", reason="PyLD is not installed, which reads JSON-LD")
    passport = signed("plain")

    def refuse(url: str, _: Any) -> Any:
        raise AssertionError(f"{url} was asked for")

    [found] = jsonld.expand(json.loads(write_json_ld(passport)), {"documentLoader": refuse})
    assert (found["@id"], found["@type"]) == (f"urn:uuid:{passport.id}", ["urn:bpc:passport:BatteryPassport"])
    [payload] = found["urn:bpc:passport:payload"]
    assert payload == {"@type": "@json", "@value": json.loads(passport.payload)}
    [signature] = found["urn:bpc:passport:signature"]
    assert signature["@value"] == passport.signature.hex()


def test_json_ld_holds_the_signed_bytes() -> None:
    passport = signed("strange")
    data = write_json_ld(passport)
    assert passport.payload in data
    assert passport.receipt in data


def test_pdf_shows_product_and_values_to_people() -> None:
    text = "\n".join(read_pages(write_pdf(signed("plain")), 5))
    shown = ["Battery passport", "Product", "sku BP-1", "Values", "mass_kg 19.75", "signing_key_id key-1", "page 1"]
    assert [words for words in shown if words not in text] == []


def test_pdf_is_sound_for_another_reader(tmp_path: Path) -> None:
    reader = shutil.which("qpdf")
    if reader is None:
        pytest.skip("qpdf is not installed: `apt install qpdf` lets this test check the PDF")
    path = tmp_path / "passport.pdf"
    path.write_bytes(write_pdf(signed("plain")))
    checked = subprocess.run([reader, "--check", str(path)], capture_output=True, text=True, check=False)
    assert (checked.returncode, checked.stderr) == (0, "")
