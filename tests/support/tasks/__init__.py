"""Register tasks for tests: each does one thing that a real task might."""

from signalbox.packs.task import CatchUp, Overlap, Task

_HERE = "tests.support.tasks"

TEST_TASKS = (
    Task("note_run", "writes a row for each run", f"{_HERE}.note_run", schedule="cron(0/15 * * * ? *)"),
    Task(
        "note_alone",
        "as note_run, one slot at a time",
        f"{_HERE}.note_run",
        schedule="cron(0/15 * * * ? *)",
        overlap=Overlap.FORBID,
    ),
    Task("fail_once", "fails until told otherwise", f"{_HERE}.fail_once", schedule="cron(0 * * * ? *)"),
    Task("mark_rows", "marks rows in committed batches", f"{_HERE}.mark_rows", schedule="cron(0 0 * * ? *)"),
    Task("catch_all", "catches up with all", f"{_HERE}.note_run", schedule="cron(0 * * * ? *)", catch_up=CatchUp.ALL),
    Task(
        "catch_latest",
        "catches up with the latest",
        f"{_HERE}.note_run",
        schedule="cron(0 * * * ? *)",
        catch_up=CatchUp.LATEST,
    ),
    Task("stop_halfway", "is killed half way", f"{_HERE}.stop_halfway", schedule="cron(0 * * * ? *)"),
    Task(
        "catch_alone",
        "catches up with all, one slot at a time",
        f"{_HERE}.note_run",
        schedule="cron(0 * * * ? *)",
        catch_up=CatchUp.ALL,
        overlap=Overlap.FORBID,
    ),
    Task("wait_for_crowd", "outlasts the others", f"{_HERE}.wait_for_crowd", schedule="cron(0 * * * ? *)"),
    Task(
        "stop_alone",
        "as stop_halfway, one slot at a time",
        f"{_HERE}.stop_halfway",
        schedule="cron(0 * * * ? *)",
        overlap=Overlap.FORBID,
    ),
    Task("greet", "takes params", f"{_HERE}.greet"),
)
