"""Tell the stand-ins of RunPod and Stripe what they know of the story, through their public calls."""

from __future__ import annotations

from signalbox_laptop.stand_ins.tell import tell

# A hung job, a completed one, and one that failed for good. RunPod no longer knows `job-lost`.
JOBS = {
    "job-hung": {"status": "IN_PROGRESS"},
    "job-done": {"status": "COMPLETED"},
    "job-failed": {"status": "FAILED", "error": "CUDA out of memory"},
}
# Customer, status and price. Southern Vines has subscribed to more than we know of; Old Mill's customer is gone; Corner
# Shop has none yet.
SUBSCRIPTIONS = (
    ("cus_alpine", "active", "price_pro"),
    ("cus_harbour", "active", "price_starter"),
    ("cus_vines", "active", "price_pro"),
    ("cus_late", "past_due", "price_starter"),
    ("cus_mars", "active", "price_of_last_year"),
)


def tell_runpod(address: str) -> None:
    for job, known in JOBS.items():
        tell("PUT", f"{address}/_stand_in/jobs/{job}", known)


def tell_stripe(address: str) -> None:
    for customer, status, price in SUBSCRIPTIONS:
        tell("POST", f"{address}/_stand_in/customers", {"id": customer})
        subscription = {"customer": customer, "status": status, "prices": [price]}
        tell("POST", f"{address}/_stand_in/subscriptions", subscription)
