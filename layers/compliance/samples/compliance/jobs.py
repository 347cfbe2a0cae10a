"""Submit the jobs that the product's own pages would: each waits for the one that it needs."""

from __future__ import annotations

from typing import Any

from samples.compliance.files import IMPORT
from signalbox.client.http_client import HttpClient
from signalbox_laptop.home import StackState

_COMPANY, _SITE = "c0000000-0000-4000-8000-000000000001", "50000000-0000-4000-8000-000000000001"
_OWNER = "a0000000-0000-4000-8000-000000000001"


def submit_jobs(stack: StackState) -> None:
    """Submit them one by one; each knows the id of the one before."""
    if stack.api is None or stack.token is None:
        return  # the stack serves no HTTP
    api = HttpClient(stack.api, stack.token)
    _submit(api, "document_processing", {"document_id": "d0000000-0000-4000-8000-000000000001"})
    checked = _submit(api, "excel_import_processing", _import("VALIDATE"))
    _submit(api, "excel_import_processing", _import("CREATE"), after=checked)
    pack = {
        "pack_type": "AUDIT_PACK",
        "company_id": _COMPANY,
        "site_id": _SITE,
        "date_range_start": "2025-10-01",
        "date_range_end": "2026-03-31",
        "output_format": "ZIP",
        "requested_by": _OWNER,
    }
    pack_id = _submit(api, "audit_pack_generation", pack)
    distribution = {
        "pack_id": pack_id,
        "distribution_method": "SHARED_LINK",
        "recipients": [{"email": "auditor@agency.example"}],
        "requested_by": _OWNER,
    }
    _submit(api, "pack_distribution", distribution, after=pack_id)


def _submit(api: HttpClient, job_type: str, payload: dict[str, Any], after: str | None = None) -> str:
    depends_on = [after] if after else []
    return str(api.submit(job_type, payload, tenant=_COMPANY, depends_on=depends_on)["id"])


def _import(phase: str) -> dict[str, Any]:
    return {
        "import_id": "e0000000-0000-4000-8000-000000000001",
        "file_path": IMPORT,
        "site_id": _SITE,
        "user_id": _OWNER,
        "import_options": {},
        "phase": phase,
    }
