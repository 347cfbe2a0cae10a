"""An organisation's status and plan follow from all that Stripe says about its customer."""

from __future__ import annotations

import pytest

from forecasts.billing.standing import Price, Standing, Subscription, standing_of

PLANS = {"price_pro": "pro", "price_pro_yearly": "pro", "starter_monthly": "starter"}
PRO, STARTER = Price("price_pro"), Price("price_17", "starter_monthly")


def subscription(status: str, *prices: Price, created: int = 1, id_: str = "sub_1") -> Subscription:
    return Subscription(id_, status, created, prices)


def standing(*subscriptions: Subscription, unsubscribed: str | None = None) -> Standing:
    return standing_of(subscriptions, PLANS, unsubscribed)


@pytest.mark.parametrize("status", ["active", "trialing", "past_due"])
def test_customer_in_good_standing_or_grace_has_the_prices_plan(status: str) -> None:
    assert standing(subscription(status, PRO)) == Standing(status, "pro")


@pytest.mark.parametrize("status", ["unpaid", "paused", "incomplete", "a_status_of_tomorrow"])
def test_any_other_status_says_nothing_about_the_plan(status: str) -> None:
    assert standing(subscription(status, PRO), unsubscribed="free") == Standing(status, None)


@pytest.mark.parametrize("status", ["canceled", "incomplete_expired"])
@pytest.mark.parametrize("unsubscribed", [None, "free"])
def test_an_ended_subscription_leaves_the_plan_of_those_without_one(status: str, unsubscribed: str | None) -> None:
    assert standing(subscription(status, PRO), unsubscribed=unsubscribed) == Standing(status, unsubscribed)


@pytest.mark.parametrize("unsubscribed", [None, "free"])
def test_without_any_subscription_there_is_no_status(unsubscribed: str | None) -> None:
    assert standing(unsubscribed=unsubscribed) == Standing(None, unsubscribed)


def test_price_is_found_by_id_first_then_by_lookup_key() -> None:
    assert standing(subscription("active", STARTER)).plan == "starter"
    assert standing(subscription("active", Price("price_pro", "starter_monthly"))).plan == "pro"


def test_the_one_that_runs_counts_before_a_newer_one_that_has_ended() -> None:
    ended = subscription("canceled", STARTER, created=9, id_="sub_9")
    assert standing(ended, subscription("past_due", PRO, created=1)) == Standing("past_due", "pro")


@pytest.mark.parametrize("lesser", ["unpaid", "paused", "incomplete", "canceled"])
def test_one_that_grants_counts_before_a_newer_one_that_does_not(lesser: str) -> None:
    newer = subscription(lesser, STARTER, created=9, id_="sub_9")
    assert standing(newer, subscription("trialing", PRO)).status == "trialing"


def test_unknown_status_counts_after_unpaid_and_before_ended() -> None:
    unknown = subscription("a_status_of_tomorrow", created=5, id_="sub_5")
    assert standing(unknown, subscription("unpaid")).status == "unpaid"
    assert standing(unknown, subscription("canceled", created=9)).status == "a_status_of_tomorrow"


def test_newer_running_subscription_counts_and_twins_resolve_alike() -> None:
    older, newer = subscription("active", PRO, created=1), subscription("active", STARTER, created=2, id_="sub_2")
    twin = subscription("past_due", PRO, created=2, id_="sub_1")
    assert standing(older, newer).plan == standing(newer, older).plan == "starter"
    assert standing(twin, newer) == standing(newer, twin) == Standing("active", "starter")


def test_price_without_plan_is_reported_unless_beside_a_known_one() -> None:
    unknown = standing(subscription("active", Price("price_odd")))
    assert (unknown.status, unknown.plan) == ("active", None)
    assert "price_odd" in (unknown.doubt or "")
    assert standing(subscription("active", Price("price_odd"), PRO)) == Standing("active", "pro")


def test_two_prices_give_their_common_plan_and_else_are_doubtful() -> None:
    assert standing(subscription("active", PRO, Price("price_pro_yearly"))).plan == "pro"
    several = standing(subscription("active", PRO, STARTER))
    assert several.plan is None
    assert "several plans: pro, starter" in (several.doubt or "")


def test_a_subscription_without_any_price_is_doubtful() -> None:
    assert "(none)" in (standing(subscription("active")).doubt or "")
