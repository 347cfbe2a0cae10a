"""Random graphs of jobs end under the engine's claim and finish as a small model says."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import pairwise
from typing import Any, Literal
from uuid import uuid4

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from signalbox.jobs.dependency import Dependency
from signalbox.submit.groups import seal_group, show_group
from signalbox.submit.new_job import NewJob
from signalbox.testing.stage import Stage
from tests.support.attempts import claim
from tests.support.attempts import end as end_attempts
from tests.support.jobs import TEST_JOB_TYPES

End = Literal["completed", "failed", "cancelled"]
ENDS: Sequence[End] = ("completed", "failed", "cancelled")
kinds: st.SearchStrategy[Literal["completion", "success"]] = st.sampled_from(["completion", "success"])
policies: st.SearchStrategy[Literal["fail", "cancel", "proceed"]] = st.sampled_from(["fail", "cancel", "proceed"])


@dataclass(frozen=True)
class Edge:
    """Depend on an earlier job, by its place."""

    parent: int
    type: Literal["completion", "success"]
    on_failure: Literal["fail", "cancel", "proceed"]


@dataclass(frozen=True)
class Graph:
    """Say what each job waits for, how it ends, how often it is retried, and in which order."""

    edges: list[list[Edge]]
    ends: list[End]
    retries: list[int]
    submits: list[int]  # how many of them come together
    order: list[int]  # ranks: who goes first of those that may


@st.composite
def graphs(draw: st.DrawFn) -> Graph:
    size = draw(st.integers(1, 8))
    parents = [sorted(draw(st.sets(st.integers(0, place - 1), max_size=3))) if place else [] for place in range(size)]
    edges = [[Edge(parent, draw(kinds), draw(policies)) for parent in found] for found in parents]
    cuts = sorted({0, size, *draw(st.sets(st.integers(1, size), max_size=3))})
    return Graph(
        edges,
        [draw(st.sampled_from(ENDS)) for _ in range(size)],
        [draw(st.integers(0, 1)) for _ in range(size)],
        [last - first for first, last in pairwise(cuts)],
        draw(st.permutations(range(size))),
    )


class Model:
    """Track which jobs are submitted and, by place, how they ended."""

    def __init__(self, graph: Graph) -> None:
        self.graph, self.submitted = graph, 0
        self.ended: dict[int, set[str]] = {}  # what it may be: two policies at once allow either

    def may_go(self, edge: Edge) -> bool:
        return self.ended[edge.parent] == {"completed"} or edge.type == "completion" or edge.on_failure == "proceed"

    def resolve(self) -> None:
        """End the jobs that can never run, in the order of their submits."""
        for place in range(self.submitted):
            over = [edge for edge in self.graph.edges[place] if edge.parent in self.ended]
            words = {"fail": "failed", "cancel": "cancelled"}
            becomes = {words[edge.on_failure] for edge in over if not self.may_go(edge)}
            if becomes and place not in self.ended:
                self.ended[place] = becomes

    @property
    def ready(self) -> set[int]:
        waiting = (place for place in range(self.submitted) if place not in self.ended)
        return {place for place in waiting if all(edge.parent in self.ended for edge in self.graph.edges[place])}


class Play:
    """Run the engine and the model side by side."""

    def __init__(self, stage: Stage, graph: Graph) -> None:
        self.stage, self.graph, self.model = stage, graph, Model(graph)
        self.ids = [str(uuid4()) for _ in graph.edges]
        self.retries = list(graph.retries)

    def submit(self, number: int) -> None:
        first = self.model.submitted
        self.model.submitted += number
        self.stage.submit_all([self._new(place) for place in range(first, first + number)])
        self.compare()

    def step(self) -> bool:
        """End the first by rank of the jobs that may begin."""
        found = claim(self.stage.db, *self.ids)
        assert found == {self.ids[place] for place in self.model.ready}
        if not found:
            return False
        before = self.model.ready
        chosen = min(before, key=self.graph.order.index)
        others = dict.fromkeys(found - {self.ids[chosen]}, "pending")
        self.retries[chosen] -= 1
        end = "pending" if self.retries[chosen] >= 0 else self.graph.ends[chosen]
        if end != "pending":
            self.model.ended[chosen] = {end}
        self.model.resolve()
        assert end_attempts(self.stage.db, {self.ids[chosen]: end, **others}) == {
            self.ids[p] for p in self.model.ready - before
        }
        self.compare()
        return True

    def compare(self) -> None:
        self.model.resolve()
        for place in range(self.model.submitted):
            status = self.stage.status(self.ids[place])
            assert status in self.model.ended.get(place, {"pending", "queued"})

    def _new(self, place: int) -> NewJob:
        waits = [Dependency(self.ids[edge.parent], edge.type, edge.on_failure) for edge in self.graph.edges[place]]
        return NewJob(job_type="do_nothing", id=self.ids[place], group="g", depends_on=waits)


@pytest.fixture
def jobs_stage(stage: Stage) -> Stage:
    return stage.with_job_types(*TEST_JOB_TYPES)


@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(graph=graphs(), steps=st.integers(0, 3))
def test_every_job_ends_none_before_its_parents_and_as_the_policies_say(
    jobs_stage: Stage, graph: Graph, steps: int
) -> None:
    jobs_stage.db.execute(
        "TRUNCATE signalbox.jobs, signalbox.job_executions, signalbox.job_groups, signalbox.dead_letter_jobs CASCADE"
    )
    play = Play(jobs_stage, graph)
    for number in graph.submits:
        play.submit(number)
        for _ in range(steps):
            play.step()
    while play.step():
        pass
    assert len(play.model.ended) == len(graph.edges)
    _the_group_has_counted_all(play)


def _the_group_has_counted_all(play: Play) -> None:
    db = play.stage.db
    group, due = seal_group(db, play.stage.job_types, "g", datetime.now(UTC), NewJob(job_type="do_nothing"))
    assert due == [group.completion_job_id]
    group = show_group(db, "g")
    states = [play.stage.status(id_) for id_ in play.ids]
    counted: dict[str, Any] = {"completed": group.completed, "failed": group.failed, "cancelled": group.cancelled}
    assert counted == {end: states.count(end) for end in ENDS}
    letters = db.execute("SELECT count(*) FROM signalbox.dead_letter_jobs").fetchone()
    assert letters == (states.count("failed"),)
