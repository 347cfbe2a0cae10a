"""Compose the report of a pack: each kind has its own sections, for its own readers."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from compliance.reports import pack_sections
from compliance.reports.pack import Pack
from signalbox.documents.report import Heading, Part

_Section = tuple[str, Callable[[Pack], list[Part]]]
_KINDS: Mapping[str, tuple[str, Sequence[_Section]]] = {
    "AUDIT_PACK": (
        "Audit Pack",
        (
            ("Cover Page", pack_sections.cover),
            ("Summary", pack_sections.summary),
            ("Compliance Matrix", pack_sections.matrix),
            ("Obligation Details", pack_sections.details),
            ("Evidence Appendix", pack_sections.appendix),
        ),
    ),
    "REGULATOR_INSPECTION": (
        "Regulator Inspection Pack",
        (
            ("Cover Page", pack_sections.cover),
            ("Executive Summary", pack_sections.summary),
            ("Permit Summary", pack_sections.permit),
            ("Compliance Dashboard", pack_sections.dashboard),
            ("Obligation Matrix", pack_sections.matrix),
            ("Gap Analysis", pack_sections.gap_table),
            ("Evidence Appendix", pack_sections.appendix),
        ),
    ),
    "TENDER_CLIENT_ASSURANCE": (
        "Client Assurance Pack",
        (
            ("Cover Page", pack_sections.cover),
            ("Compliance Overview", pack_sections.summary),
            ("Evidence Samples", pack_sections.samples),
            ("Risk Assessment", pack_sections.risks),
            ("Action Plan", pack_sections.actions),
        ),
    ),
    "BOARD_MULTI_SITE_RISK": (
        "Board Multi-Site Risk Pack",
        (
            ("Executive Summary", pack_sections.cover_and_summary),
            ("Risk Dashboard", pack_sections.dashboard),
            ("Site-by-Site Compliance Matrix", pack_sections.sites),
            ("Trend Analysis", pack_sections.trend),
            ("Key Metrics", pack_sections.metrics),
            ("Risk Prioritization", pack_sections.gap_table),
            ("Action Items", pack_sections.actions),
        ),
    ),
    "INSURER_BROKER": (
        "Insurer and Broker Pack",
        (
            ("Risk Narrative", pack_sections.risks),
            ("Compliance Controls Summary", pack_sections.cover_and_summary),
            ("Evidence Overview", pack_sections.evidence_overview),
            ("Gap Analysis", pack_sections.gap_table),
            ("Compliance Certification", pack_sections.certification),
        ),
    ),
}


def title_of(pack: Pack) -> str:
    return _KINDS[pack.pack_type][0]


def parts_of(pack: Pack) -> list[Part]:
    """Return the report's parts in their order; a page of warnings follows where files are at fault."""
    parts: list[Part] = []
    for heading, section in _KINDS[pack.pack_type][1]:
        parts += [Heading(heading), *section(pack)]
    return parts + (pack_sections.integrity_warnings(pack) if pack.faults else [])
