"""Define the engine's errors: one tree, in which the type decides whether a retry can help.

A message says what is wrong, which thing it concerns and what to do next; it never holds a payload or a secret.
"""

from collections.abc import Sequence


class SignalboxError(Exception):
    """The engine itself raised this error."""


class Refused(SignalboxError):
    """The same request would be refused again: correct it first."""


class Unavailable(SignalboxError):
    """Nothing is wrong with the request: the same one may succeed later."""


class ScheduleRefused(Refused):
    """The schedule can't be read, or never fires."""


class PayloadRefused(Refused):
    """The payload is not of the shape that its entry point takes; `faults` pairs fields with what is wrong."""

    def __init__(self, message: str, faults: Sequence[tuple[str, str]] = ()) -> None:
        super().__init__(message)
        self.faults = faults


class TaskUnknown(Refused):
    """No pack in this stack registers a task of that name."""


class TaskDisabled(Refused):
    """The task is registered, and switched off in this stack."""


class ParamsRefused(Refused):
    """The task does not take these params."""


class SettingsRefused(Refused):
    """The function's environment is incomplete or wrong; all faults are listed together."""


class BackfillRefused(Refused):
    """The backfill can't be created as asked."""


class BackfillUnknown(BackfillRefused):
    """No backfill has that id."""


class BulkActionUnknown(Refused):
    """No bulk action has that id."""


class SchemaMismatch(Refused):
    """The database's schema is not the one this code works with."""


class MigrationRefused(Refused):
    """The migration may not be applied: it was changed after the fact, or is older than the database."""


class DatabaseUnavailable(Unavailable):
    """The database can't be reached, or went away."""


class MigrationOverdue(Unavailable):
    """A migration took longer than the migrator has; it was rolled back."""


class AnswerLost(Unavailable):
    """CloudFormation could not be answered about the migrations."""


class MigratorBusy(Unavailable):
    """Another migrator holds the lock."""


class RunLost(Unavailable):
    """The lease passed to another worker while this one was running."""


class JobTypeUnknown(Refused):
    """No pack in this stack registers a job type of that name."""


class JobRefused(Refused):
    """The job can't be submitted as it is; nothing of it was stored."""


class JobUnknown(Refused):
    """No job has that id."""


class TransitionRefused(Refused):
    """The job's state does not allow what was asked for."""


class BackfillStateRefused(BackfillRefused, TransitionRefused):
    """The backfill's state does not allow the step."""


class Forbidden(Refused):
    """The caller may not ask for this."""


class Unauthenticated(Refused):
    """The request does not say who asks, or not in a way that can be trusted."""


class ApiProblem(SignalboxError):
    """The HTTP API refused a request, or did not answer (status 0); `errors` names each wrong field."""

    def __init__(
        self, status: int, detail: str, errors: Sequence[dict[str, str]] = (), request_id: str | None = None
    ) -> None:
        super().__init__(detail)
        self.status, self.errors, self.request_id = status, errors, request_id


class TokenRefused(Refused):
    """The token can't be created or revoked as asked."""


class CapRefused(Refused):
    """The pause or cap concerns something that does not exist."""


class IdRefused(Refused):
    """The given text is not an id."""


class DeadLetterUnknown(Refused):
    """No dead letter has that id."""


class GroupUnknown(Refused):
    """No job has been submitted to a group of that name."""


class ScheduleUnknown(Refused):
    """No schedule of jobs has that name or id."""


class DeletionRefused(Refused):
    """A cleanup would delete a larger share of its table than it may."""


class ArchiveRefused(Refused):
    """Cold storage holds something else where records should go; nothing is overwritten, and nothing deleted."""


class ArchiveUnavailable(Unavailable):
    """Cold storage did not take records, or not as they were sent. They are all still in the database."""


class FolderRefused(Refused):
    """The folder can't be deleted by its name without deleting others' objects."""


class FolderKept(Unavailable):
    """S3 did not delete everything in a folder, or did not say so."""
