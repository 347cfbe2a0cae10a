"""The engine's errors: one tree, in which the type decides whether trying again can help.

A message says what is wrong, which thing it concerns and what to do next; it never holds a payload or a secret.
"""


class SignalboxError(Exception):
    """Anything the engine itself raises."""


class Refused(SignalboxError):
    """The same request would be refused again: mend it first."""


class Unavailable(SignalboxError):
    """Nothing is wrong with the request: the same one may succeed later."""


class ScheduleRefused(Refused):
    """A schedule that can't be read, or that never fires."""


class PayloadRefused(Refused):
    """A payload that is not of the shape its entry point takes."""


class TaskUnknown(Refused):
    """No pack in this stack registers a task of that name."""


class TaskDisabled(Refused):
    """The task is registered, and switched off in this stack."""


class ParamsRefused(Refused):
    """The task does not take these params."""


class SettingsRefused(Refused):
    """The function's environment is incomplete or wrong; all faults are listed together."""


class BackfillRefused(Refused):
    """A backfill that can't be made, or a step its state does not allow."""


class SchemaMismatch(Refused):
    """The database's schema is not the one this code works with."""


class MigrationRefused(Refused):
    """A migration that may not be applied: changed after the fact, or older than the database."""


class DatabaseUnavailable(Unavailable):
    """The database can't be reached, or went away."""


class MigrationOverdue(Unavailable):
    """A migration took longer than the migrator has; nothing of it is left."""


class AnswerLost(Unavailable):
    """CloudFormation could not be told how the migrations went."""


class MigratorBusy(Unavailable):
    """Another migrator holds the lock."""


class RunLost(Unavailable):
    """The lease passed to another worker while this one was at work."""


class JobTypeUnknown(Refused):
    """No pack in this stack registers a job type of that name."""


class JobRefused(Refused):
    """A job that can't be submitted as it is; nothing of it was stored."""


class JobUnknown(Refused):
    """No job has that id."""


class TransitionRefused(Refused):
    """What was asked for is not possible in the job's state."""


class CapRefused(Refused):
    """A pause or cap of something that there is not."""


class IdRefused(Refused):
    """What was given is not an id."""


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
    """A folder's name is such that it can't be deleted without others' objects."""


class FolderKept(Unavailable):
    """S3 did not delete all that lies in a folder, or did not say so."""
