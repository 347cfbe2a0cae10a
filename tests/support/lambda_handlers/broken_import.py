"""Fail at import."""

import a_module_that_nobody_has  # type: ignore[import-not-found]  # noqa: F401
