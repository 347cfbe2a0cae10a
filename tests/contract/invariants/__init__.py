"""What every template of this project keeps: each function gives a line for each fault that it finds.

They look at resources as they are deployed, so that it makes no difference whether SAM wrote them or a person
did, and none which pack or lane brought them. tests/contract/test_invariants.py proves that each can fail.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from tests.contract.invariants import (
    buckets,
    databases,
    encryption,
    functions,
    migrations,
    networks,
    permissions,
    queues,
    references,
    rules,
    topics,
)
from tests.support.template import Template

Invariant = Callable[[Template], Iterator[str]]

INVARIANTS: tuple[Invariant, ...] = (
    rules.pass_the_scheduled_instant,
    rules.have_a_retry_policy,
    rules.have_a_dead_letter_queue,
    rules.fire_on_the_clock,
    rules.may_invoke_their_function,
    functions.have_a_log_group_with_retention,
    functions.lose_no_metrics,
    functions.report_failed_invocations,
    functions.are_built_like_their_layers,
    functions.have_roles_of_their_own,
    permissions.hold_no_wildcard,
    permissions.come_from_no_managed_policy_of_awss,
    queues.hide_messages_for_six_timeouts,
    queues.bear_throttling,
    queues.let_only_their_own_dead_letters_in,
    queues.keep_dead_letters_longer_than_letters,
    queues.are_read_by_who_may,
    queues.have_a_window_for_more_than_ten,
    queues.are_answered_message_by_message,
    queues.are_read_with_bounded_concurrency,
    queues.are_read_whole,
    queues.keep_what_can_be_moved_back_apart,
    queues.refuse_plain_http,
    buckets.are_closed_to_the_public,
    buckets.refuse_plain_http,
    buckets.forget_half_uploads,
    buckets.outlive_their_stack,
    migrations.are_asked_of_what_was_just_deployed,
    migrations.are_asked_for_again_by_what_changes,
    migrations.are_waited_for_no_longer_than_they_take,
    migrations.come_before_all_other_functions,
    topics.refuse_plain_http,
    encryption.is_by_a_key_of_the_stack,
    encryption.has_keys_that_rotate_and_stay,
    encryption.has_keys_that_are_used_through_services,
    databases.are_hard_to_lose,
    databases.are_encrypted_at_rest_and_on_the_way,
    databases.are_private,
    databases.keep_passwords_out_of_the_template,
    databases.let_every_user_through_their_proxy,
    networks.let_in_named_groups_only,
    networks.say_where_they_lead,
    networks.have_no_way_out,
    networks.have_endpoints_for_this_account,
    references.lead_somewhere,
)


def name_of(invariant: Invariant) -> str:
    """As a test's name says it: rules_fire_on_the_clock."""
    return f"{invariant.__module__.rpartition('.')[2]}_{invariant.__name__}"
