"""Stand in for what the pack forecasts finds outside the stack: RunPod, Stripe, and NOAA's buckets.

The stack is told of them as a person would tell it, by parameters and by secrets with keys in them. Only the addresses
of the two services come from the laptop, in the functions' environment: there is no other difference.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from signalbox_laptop.aws import client
from stand_ins import runpod, stripe
from stand_ins.runpod import RunPodStandIn
from stand_ins.stripe import StripeStandIn

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client
    from mypy_boto3_secretsmanager import SecretsManagerClient

# GFS has two places, as in reality: one may fail.
GFS = ("noaa-gfs-bdp-pds", "global-forecast-system")
GOES, MRMS = "noaa-goes19", "noaa-mrms-pds"
PRICES = {"price_starter": "starter", "price_pro": "pro"}


class Outside:
    """Own the two stand-ins."""

    def __init__(self) -> None:
        self._runpod, self._stripe = RunPodStandIn(), StripeStandIn()

    def start(self) -> None:
        self._runpod.start()
        self._stripe.start()

    def stop(self) -> None:
        self._runpod.stop()
        self._stripe.stop()

    @property
    def addresses(self) -> dict[str, str]:
        """Return where each takes instructions, below /_stand_in/."""
        return {"runpod": self._runpod.url.removesuffix("/v2"), "stripe": self._stripe.url}

    @property
    def environment(self) -> dict[str, str]:
        """Return variables that lead the functions there and not to the real services."""
        return {"FORECASTS_RUNPOD_BASE_URL": self._runpod.url, "FORECASTS_STRIPE_BASE_URL": self._stripe.url}

    def furnish(self, stack: str, moto: str) -> dict[str, str]:
        """Make what exists before the stack; return the parameters that name it."""
        s3: S3Client = client("s3", moto)
        for bucket in (*GFS, GOES, MRMS):
            # They are read unsigned, which moto, too, allows only for public buckets.
            s3.create_bucket(Bucket=bucket, ACL="public-read")
        mirrors = [{"kind": "s3", "bucket": bucket} for bucket in GFS]
        secrets: SecretsManagerClient = client("secretsmanager", moto)
        for name, key in (("runpod", runpod.KEY), ("stripe", stripe.KEY)):
            secrets.create_secret(Name=f"{stack}/forecasts/{name}", SecretString=json.dumps({"api_key": key}))
        settings = {"gfs_mirrors": mirrors, "runpod_endpoint_id": self._runpod.endpoint, "stripe_prices": PRICES}
        return {"ForecastsSettings": json.dumps(settings)}
