"""Read a tree of index pages as Apache, nginx and NOMADS make them: a folder's files as links, with their sizes.

A page costs one call, and a listing that reaches into sub-folders one for each of these. Sizes are rounded, but zero is
zero. If a page gives none, `has_data` asks for the one file. Services that list in XML are no such tree; those that
speak S3 are mirrors of the kind s3, with an endpoint.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from html.parser import HTMLParser
from urllib.parse import quote, unquote, urldefrag, urljoin

from forecasts.errors import MirrorFailed
from forecasts.sources.mirror import Entry, Span
from signalbox.http.client import HttpClient, Response

_SIZE = re.compile(r"(\d+(?:\.\d+)?)([KMGT]?)i?B?", re.IGNORECASE)
_TITLE = re.compile(r"index of|directory listing", re.IGNORECASE)
_UNITS = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}


class IndexMirror:
    """Read one tree, by the URL of its root."""

    def __init__(self, web: HttpClient, url: str) -> None:
        self._web, self._root = web, f"{url.rstrip('/')}/"
        self._root_is_there = False

    @property
    def name(self) -> str:
        return self._root.rstrip("/")

    def list_keys(self, span: Span) -> list[Entry]:
        folder = span.prefix[: span.prefix.rfind("/") + 1]
        return sorted(self._list(folder, span), key=lambda entry: entry.key)

    def list_folders(self, prefix: str, after: str) -> list[str]:
        folder = prefix[: prefix.rfind("/") + 1]
        names = (link.key.rstrip("/") for link in self._links(folder) if link.key.endswith("/"))
        return sorted(name for name in names if name.startswith(prefix) and name >= after)

    def has_data(self, key: str) -> bool:
        answer = self._send("HEAD", key)
        if answer.passing:
            raise MirrorFailed(f"{answer.words} for /{key}")
        return answer.good and bool(answer.length)

    def reference(self, key: str) -> str:
        return self._root + key

    def _list(self, folder: str, span: Span) -> list[Entry]:
        entries = []
        for link in self._links(folder):
            if not link.key.endswith("/"):
                entries += [link] if span.holds(link.key) else []
            elif link.key.startswith(span.prefix) and _may_hold(link.key, span):
                entries += self._list(link.key, span)
        return entries

    def _links(self, folder: str) -> list[Entry]:
        answer = self._send("GET", folder)
        if answer.status == 404 and folder:
            # Nothing has come there yet. If even the root is missing, the URL is wrong.
            self._root_is_there = self._root_is_there or self._links("") is not None
            return []
        if not answer.good:
            raise MirrorFailed(f"{answer.words} for /{folder}")
        page = read_page(answer.body.decode("utf-8", "replace"), self._root, folder)
        if page is None:
            raise MirrorFailed(f"what it shows for /{folder} is no index page")
        return page

    def _send(self, method: str, key: str) -> Response:
        return self._web.send(method, self._root + quote(key))


def read_page(html: str, root: str, folder: str) -> list[Entry] | None:
    """Return the folder's entries, sub-folders with a slash at the end; None for a page that is no index."""
    reader = _Reader()
    reader.feed(html)
    here = root + folder
    targets = [(urldefrag(urljoin(here, row.href))[0].partition("?")[0], row) for row in reader.rows]
    inside = [(target, row) for target, row in targets if target.startswith(here) and target != here]
    leads_up = any(here.startswith(target) and target != here for target, _ in targets)
    if not (inside or leads_up or _TITLE.search(reader.title)):
        return None
    keys = [(unquote(target.removeprefix(root)), row) for target, row in inside]
    return [Entry(key, row.size()) for key, row in keys if "/" not in key.removeprefix(folder).rstrip("/")]


@dataclass(slots=True)
class _Row:
    """Pair a link with the text that follows it."""

    href: str
    text: str = ""

    def size(self) -> int | None:
        """Return the last word if it is a size: the words before are a date."""
        words = self.text.split()
        found = _SIZE.fullmatch(words[-1]) if words else None
        return None if found is None else round(float(found[1]) * _UNITS[found[2].upper()])


class _Reader(HTMLParser):
    """Collect links, each with the text up to the next."""

    def __init__(self) -> None:
        super().__init__()
        self.rows: list[_Row] = []
        self.title = ""
        self._within = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        href = dict(attrs).get("href")
        if tag == "a" and href:
            self.rows.append(_Row(href))
        if tag in ("a", "title"):
            self._within = tag

    def handle_endtag(self, tag: str) -> None:
        if tag == self._within:
            self._within = ""

    def handle_data(self, data: str) -> None:
        if self._within == "title":
            self.title += data
        elif not self._within and self.rows:
            self.rows[-1].text += f" {data}"


def _may_hold(folder: str, span: Span) -> bool:
    """Say whether a key of the span can lie in that folder."""
    return folder <= span.last and (span.after < folder or span.after.startswith(folder))
