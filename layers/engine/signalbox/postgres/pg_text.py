"""Check and clean text and JSON for PostgreSQL: no NUL, no half of a surrogate pair, no NaN or infinity."""

from __future__ import annotations

import json
import re
from typing import Any

# As JSON writes it; two backslashes before it are an escaped backslash of the text.
_NUL = re.compile(r"(?<!\\)(?:\\\\)*\\u0000")


def clean(text: str) -> str:
    """Return the text, with what PostgreSQL can't store replaced."""
    return text.replace("\0", "\ufffd").encode("utf-8", "replace").decode("utf-8")


def holds_nul(json_text: str) -> bool:
    return "\\u0000" in json_text and _NUL.search(json_text) is not None


def fault_of_json(value: Any) -> str | None:
    """Return why a jsonb column can't hold the value, or None where it can."""
    try:
        text = json.dumps(value, allow_nan=False, ensure_ascii=False)
        text.encode()
    except UnicodeEncodeError:
        return "it holds half of a surrogate pair"
    except (TypeError, ValueError, RecursionError) as error:
        return str(error)
    return "it holds a NUL character" if holds_nul(text) else None
