"""Write a signed passport as PDF, JSON-LD or XML. The same passport gives the same bytes.

Each file has the payload, the receipt and the signature. The payload's and the receipt's hashes are those of their
canonical form (RFC 8785), so a reader who has parsed them writes them canonically to verify them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any
from uuid import UUID
from xml.etree import ElementTree

from passports.encoding.canonical import canonical, read_own
from signalbox.documents.report import Facts, Heading, Paragraph, Part, report

XML_NAMESPACE = "urn:bpc:passport-export:1"
_TERMS = "urn:bpc:passport:"
_HEX = "http://www.w3.org/2001/XMLSchema#hexBinary"
_CONTEXT = {
    "@version": 1.1,
    "@vocab": _TERMS,
    "payload": {"@id": f"{_TERMS}payload", "@type": "@json"},
    "receipt": {"@id": f"{_TERMS}receipt", "@type": "@json"},
    "signature": {"@id": f"{_TERMS}signature", "@type": _HEX},
    "signing_key_public": {"@id": f"{_TERMS}signing_key_public", "@type": _HEX},
}
_NOT_IN_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_NOT_IN_PDF = re.compile("[^!-~]")  # a line may end at a blank, and fonts lack most letters
_LINE, _PARAGRAPH = 72, 50  # characters; lines
_LONGEST_CELL = 500  # characters


@dataclass(frozen=True, slots=True)
class SignedPassport:
    """Hold what an export shows."""

    id: UUID
    version: int
    payload: bytes
    receipt: bytes
    signature: bytes
    key_id: str
    public_key: bytes


def write_json_ld(passport: SignedPassport) -> bytes:
    """Return canonical JSON with its context, so that it holds the payload's and the receipt's own bytes."""
    return canonical(
        {
            "@context": _CONTEXT,
            "@id": f"urn:uuid:{passport.id}",
            "@type": "BatteryPassport",
            "version": passport.version,
            "payload": read_own(passport.payload),
            "receipt": read_own(passport.receipt),
            "signature": passport.signature.hex(),
            "signature_algorithm": "Ed25519",
            "signing_key_id": passport.key_id,
            "signing_key_public": passport.public_key.hex(),
        }
    )


def write_xml(passport: SignedPassport) -> bytes:
    """Return XML as passport.xsd describes it; payload and receipt are JSON in it."""
    root = ElementTree.Element("passport", xmlns=XML_NAMESPACE, id=str(passport.id), version=str(passport.version))
    ElementTree.SubElement(root, "payload").text = _escaped(_NOT_IN_XML, passport.payload.decode())
    ElementTree.SubElement(root, "receipt").text = _escaped(_NOT_IN_XML, passport.receipt.decode())
    signature = ElementTree.SubElement(
        root,
        "signature",
        algorithm="Ed25519",
        key_id=_escaped(_NOT_IN_XML, passport.key_id),
        public_key=passport.public_key.hex(),
    )
    signature.text = passport.signature.hex()
    written: bytes = ElementTree.tostring(root, encoding="utf-8", xml_declaration=True)
    return written


def write_pdf(passport: SignedPassport) -> bytes:
    """Return a report for people. At its end payload and receipt stand as JSON that is exact without line breaks."""
    signature = [
        ("algorithm", "Ed25519"),
        ("signature", passport.signature.hex()),
        ("signing_key_id", passport.key_id),
        ("signing_key_public", passport.public_key.hex()),
    ]
    parts: list[Part] = [
        Facts([("passport_version_id", str(passport.id)), ("version", str(passport.version))]),
        *_sections(read_own(passport.payload)),
        Heading("Receipt"),
        Facts(_cells(read_own(passport.receipt))),
        Heading("Signature of the receipt's SHA-256"),
        Facts(signature),
        Heading("Payload as JSON"),
        *_exact(passport.payload),
        Heading("Receipt as JSON"),
        *_exact(passport.receipt),
    ]
    return report("Battery passport", parts, footer=f"Version {passport.id}")


def _sections(payload: dict[str, Any]) -> Iterator[Part]:
    """Return the payload's own members, then those of its objects: the product and the values."""
    yield Facts(_cells({name: value for name, value in payload.items() if not isinstance(value, dict)}))
    for name, value in sorted(payload.items()):
        if isinstance(value, dict):
            yield Heading(name.capitalize())
            yield Facts(_cells(value))


def _cells(values: dict[str, Any]) -> list[tuple[str, str]]:
    return [(name, _cell(value)) for name, value in sorted(values.items())]


def _cell(value: Any) -> str:
    text = value if isinstance(value, str) else canonical(value).decode()
    return text if len(text) <= _LONGEST_CELL else f"{text[:_LONGEST_CELL]} ... (whole below)"


def _exact(document: bytes) -> Iterator[Paragraph]:
    """Return JSON in lines, with escapes for what a PDF would show otherwise."""
    text = _escaped(_NOT_IN_PDF, document.decode())
    lines = [text[start : start + _LINE] for start in range(0, len(text), _LINE)]
    for start in range(0, len(lines), _PARAGRAPH):
        yield Paragraph("\n".join(lines[start : start + _PARAGRAPH]))


def _escaped(others: re.Pattern[str], text: str) -> str:
    """Write characters as JSON's escapes. In canonical JSON they stand within texts alone, so its value is the same."""
    return others.sub(lambda found: _escape(found[0]), text)


def _escape(character: str) -> str:
    units = character.encode("utf-16-be").hex()
    return "".join(f"\\u{units[start : start + 4]}" for start in range(0, len(units), 4))
