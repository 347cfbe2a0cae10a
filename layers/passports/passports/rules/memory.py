"""Remember what was found out about the lists and objects of one evaluation.

Values may share their parts, so that a few expressions make a value of 2^60 elements, or add up the same list a
thousand times. Each part is looked at once, and no expression costs more than the elements that it brought.
"""

from __future__ import annotations

from typing import Any

from passports.rules.operators import Fault, total

MOST_DEEP = 100  # containers in one another
_BOOLEANS = {False: ("boolean", 0), True: ("boolean", 1)}


class Memory:
    """Compare and add up values. It keeps them, so that the id of each is its own."""

    def __init__(self) -> None:
        self._kept: list[Any] = []
        self._keys: dict[int, Any] = {}
        self._shapes: dict[Any, int] = {}
        self._elements: dict[int, frozenset[Any]] = {}
        self._totals: dict[int, float] = {}

    def key(self, value: Any, depth: int = 0) -> Any:
        """Return a key that two values share if they are equal: of one type, and the same in canonical JSON."""
        if isinstance(value, bool):
            return _BOOLEANS[value]
        if isinstance(value, int | float):
            return float(value)
        if not isinstance(value, list | dict):
            return value
        if (known := self._keys.get(id(value))) is None:
            self._kept.append(value)
            known = self._keys[id(value)] = self._key_of_container(value, depth + 1)
        return known

    def _key_of_container(self, value: Any, depth: int) -> tuple[str, int]:
        if depth > MOST_DEEP:
            raise Fault("LIMIT", f"a value is nested more than {MOST_DEEP} deep")
        shape: Any
        if isinstance(value, list):
            shape = tuple([self.key(one, depth) for one in value])
        else:
            shape = frozenset([(name, self.key(one, depth)) for name, one in value.items()])
        return "container", self._shapes.setdefault(shape, len(self._shapes))

    def is_in(self, value: Any, elements: list[Any]) -> bool:
        if (known := self._elements.get(id(elements))) is None:
            self._kept.append(elements)
            known = self._elements[id(elements)] = frozenset([self.key(one) for one in elements])
        return self.key(value) in known

    def total(self, elements: list[Any]) -> float:
        if (known := self._totals.get(id(elements))) is None:
            self._kept.append(elements)
            known = self._totals[id(elements)] = total(elements)
        return known
