"""Define the settings of the pack, read from its function's environment."""

from __future__ import annotations

from datetime import timedelta
from typing import Annotated, ClassVar, Literal

from pydantic import Field

from signalbox.batches.safety_share import SafetyShare
from signalbox.ledger.context import Context
from signalbox.packs.environment import EnvironmentSettings, StackName

Days = Annotated[int, Field(ge=1, le=3650)]


class ForecastSettings(EnvironmentSettings):
    """Define what the pack reads. Each field is the variable FORECASTS_<FIELD>; structured ones are JSON."""

    prefix: ClassVar[str] = "FORECASTS_"

    # Queues for messages, and buckets for storage.
    notifications_queue: StackName = "{stack}-notifications"
    evaluations_queue: StackName = "{stack}-evaluations"
    forecast_bucket: StackName = "{stack}-forecasts-{account}-{region}"
    archive_bucket: StackName = "{stack}-archive-{account}-{region}"

    # Upstream data. A mirror is {"kind": "s3", "bucket": …} (with "endpoint" if that is not AWS) or
    # {"kind": "https", "url": …}, a tree of index pages: the first that answers serves.
    gfs_mirrors: tuple[dict[str, str], ...] = ({"kind": "s3", "bucket": "noaa-gfs-bdp-pds"},)
    gfs_key_template: str = "gfs.{date}/{cycle}/atmos/gfs.t{cycle}z.pgrb2.0p25.f{hour:03}"
    goes_mirrors: tuple[dict[str, str], ...] = ({"kind": "s3", "bucket": "noaa-goes19"},)
    goes_product: str = "ABI-L2-CMIPF"
    mrms_mirrors: tuple[dict[str, str], ...] = ({"kind": "s3", "bucket": "noaa-mrms-pds"},)
    mrms_product: str = "CONUS/PrecipRate_00.00"
    # How long a file may lag behind its name; listings look back this far behind the newest run.
    upstream_lookback_hours: int = Field(12, ge=1, le=240)
    nowcast_lookback_hours: int = Field(2, ge=1, le=48)
    goes_files_per_instant: int = Field(16, ge=1, le=64)  # for the product: one for each of ABI's channels
    mirror_timeout_seconds: float = Field(8, gt=0, le=60)
    nowcast_tolerance_seconds: int = Field(300, ge=0, le=3600)
    observation_mirror: dict[str, str] = Field(default={"kind": "s3", "bucket": "noaa-mrms-pds"})
    observation_key_template: str = "{product}/{date}/MRMS_{name}_{date}-{hour:02}0000.grib2.gz"
    observation_product: str = "CONUS/MultiSensor_QPE_01H_Pass2_00.00"
    # This share of a window's files must be there; the rest are taken for gaps that will never be filled.
    observation_least_share: float = Field(0.9, gt=0, le=1)
    s3_endpoint_url: str | None = None  # NOAA's buckets; empty: AWS

    # RunPod.
    runpod_base_url: str = "https://api.runpod.ai/v2"
    runpod_endpoint_id: str = ""
    runpod_secret: StackName = "{stack}/forecasts/runpod"  # noqa: S105 - its name
    runpod_timeout_seconds: float = Field(10, gt=0, le=60)
    timeout_nowcast_minutes: int = Field(20, ge=1)
    timeout_medium_range_minutes: int = Field(180, ge=1)
    most_retries: int = Field(3, ge=0, le=20)

    # Stripe.
    stripe_base_url: str = "https://api.stripe.com"
    stripe_secret: StackName = "{stack}/forecasts/stripe"  # noqa: S105 - its name
    stripe_prices: dict[str, str] = Field(default_factory=dict)  # price id or lookup key → plan; none: no Stripe
    stripe_staleness_hours: int = Field(24, ge=1)
    stripe_limit: int = Field(500, ge=1)
    stripe_timeout_seconds: float = Field(8, gt=0, le=60)
    stripe_unsubscribed_plan: str = ""  # for organisations whose subscription has ended; empty: theirs stays

    # How long things are kept, and how much may go at once.
    retention_nowcast_days: Days = 7
    retention_medium_range_days: Days = 90
    retention_deleted_organizations_days: Days = 30
    retention_archived_watchpoints_days: Days = 90
    retention_notifications_days: Days = 90
    retention_audit_days: Days = 365
    archive_storage_class: Literal["STANDARD_IA", "GLACIER_IR", "GLACIER", "DEEP_ARCHIVE"] = "GLACIER"
    retention_security_events_days: Days = 7
    retention_invites_days: int = Field(0, ge=0, le=3650)  # counted from when they expired
    cleanup_batch: int = Field(50, ge=1, le=10_000)  # organisations that a run deletes
    cleanup_watchpoints_batch: int = Field(10_000, ge=1, le=1_000_000)
    safety_share: float = Field(0.2, gt=0, le=1)
    safety_floor: int = Field(10, ge=0)  # this many rows may go whatever their share
    payment_grace_days: Days = 7
    overage_grace_days: Days = 14

    # Verification: how many hours after a run to compare, and for how many days to wait for observations.
    verification_hours_nowcast: int = Field(6, ge=1, le=24)
    verification_hours_medium_range: int = Field(24, ge=1, le=24)
    verification_patience_days: int = Field(3, ge=0, le=30)
    verification_timeout_minutes: int = Field(60, ge=1)

    # Calibration.
    calibration_timeout_minutes: int = Field(120, ge=1)
    calibration_least_samples: int = Field(100, ge=1)
    calibration_days: Days = 30
    calibration_bound: float = Field(0.15, gt=0, le=1)

    @property
    def share(self) -> SafetyShare:
        """Return what share of its table a cleanup may delete in one run."""
        return SafetyShare(self.safety_share, self.safety_floor)

    def timeout_of(self, model: str) -> timedelta:
        minutes = self.timeout_nowcast_minutes if model == "nowcast" else self.timeout_medium_range_minutes
        return timedelta(minutes=minutes)


def settings_of(context: Context) -> ForecastSettings:
    """Return the pack's settings of the function that runs the task."""
    return context.settings_of(ForecastSettings)
