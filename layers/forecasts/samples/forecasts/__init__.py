"""Load the forecast platform's sample data: a night with a problem everywhere, told around one instant.

The data are rows, objects in NOAA's buckets and the stack's, and what RunPod and Stripe know. Each task finds something
to do, next to something that it must leave alone; and none fails, for its task can deal with each problem.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any

from samples.forecasts.platform import load_platform
from samples.forecasts.services import tell_runpod, tell_stripe
from samples.forecasts.upstream import publish_upstream, store_forecasts
from signalbox_laptop.aws import client
from signalbox_laptop.home import StackState
from signalbox_laptop.packs import outputs_of


def load_story(stack: StackState, at: datetime) -> bool:
    """Load all of it; do nothing and return False for a stack without the pack."""
    bucket = outputs_of(stack).get("ForecastBucketName")
    if bucket is None:
        return False
    load_platform(stack.database, at)
    tell_runpod(stack.stand_ins["runpod"])
    tell_stripe(stack.stand_ins["stripe"])
    s3: Any = client("s3", stack.endpoint)
    publish_upstream(s3, at)
    store_forecasts(s3, bucket)
    return True
