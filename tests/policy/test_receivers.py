"""`on:` of a policy: what may be written, who receives what, and that nothing of a receiver's secrets is shown."""

from __future__ import annotations

from textwrap import dedent

import pytest
import yaml
from tests.policy.schema import policy_schema

from nightkeep.errors import PolicyError
from nightkeep.model.receivers import AirflowConnection, AirflowNotifier, EventKind, Webhook
from nightkeep.policy import PolicyFile, explain_text, load, load_usable, receivers_of, receivers_of_run

HOOK = "https://hooks.example.com/services/T0000-secret-part"
TEXT = f"""\
version: 1
defaults:
  on:
    mismatch: [alerts, {{webhook: '{HOOK}'}}]
    late: [{{webhook: '${{LATE}}'}}]
patterns:
  - match: "shop.*"
    on: {{failed: [shop_team], late: [shop_team]}}
tables:
  - name: shop.orders
    table: paimon:/w/shop.db/orders
    on:
      mismatch: []
      failed: [{{notifier: a.b.Notifier, kwargs: {{to: [x, y]}}}}]
  - name: lab.orders
    table: delta:/w/lab
  - name: lab.broken
    table: delta:${{UNSET}}/w
"""


@pytest.fixture
def policy() -> PolicyFile:
    return load_usable("tables.yaml", text=TEXT, environ={})


def test_layers_set_the_receivers_of_each_event_by_itself(policy: PolicyFile) -> None:
    notifier = AirflowNotifier("a.b.Notifier", {"to": ["x", "y"]})
    assert receivers_of(policy, "shop.orders", EventKind.MISMATCH) == ()
    assert receivers_of(policy, "shop.orders", EventKind.FAILED) == (notifier,)
    assert receivers_of(policy, "lab.orders", EventKind.MISMATCH) == (AirflowConnection("alerts"), Webhook(HOOK))
    assert receivers_of(policy, "lab.orders", EventKind.FAILED) == ()


def test_a_table_without_a_valid_policy_has_the_receivers_of_the_defaults(policy: PolicyFile) -> None:
    assert receivers_of(policy, "lab.broken", EventKind.MISMATCH) == (AirflowConnection("alerts"), Webhook(HOOK))
    assert receivers_of(policy, "never.heard.of", EventKind.HOLD) == ()


def test_a_run_has_the_receivers_that_anything_names(policy: PolicyFile) -> None:
    found = receivers_of_run(policy, EventKind.LATE)
    assert found == (Webhook("${LATE}"), AirflowConnection("shop_team"))


def test_what_is_shown_of_a_receiver_has_no_secret(policy: PolicyFile) -> None:
    text = explain_text(policy.effective("lab.orders"))
    assert "connection alerts, webhook hooks.example.com" in text and "webhook ${LATE}" in text
    assert "secret" not in text


@pytest.mark.parametrize(
    "written",
    [
        "{mismatch: a}",
        "{mismatch: [3]}",
        "{mismatch: ['']}",
        "{mismatch: [{webhook: 3}]}",
        "{mismatch: [{webhook: 'ftp://h/T0000-secret'}]}",
        "{mismatch: [{webhook: 'https://h/x', kwargs: {a: b}}]}",
        "{mismatch: [{notifier: Plain}]}",
        "{mismatch: [{notifier: a.b, kwargs: [T0000-secret]}]}",
        "{mismatch: [{slack: T0000-secret}]}",
        "{mismatch: [{}]}",
        "{mismatched: [a]}",
        "[a]",
    ],
)
def test_anything_else_is_a_fault_that_names_its_line_and_no_secret(written: str) -> None:
    with pytest.raises(PolicyError) as caught:
        load("tables.yaml", text=f"version: 1\ndefaults:\n  on: {written}\n", environ={})
    fault = str(caught.value)
    assert fault.startswith("tables.yaml:3: defaults.on") and "secret" not in fault, fault
    assert ("expected" in fault and "found" in fault) or "did you mean mismatch?" in fault


def test_the_schema_of_editors_accepts_what_the_policy_does() -> None:
    policy_schema().validate(
        yaml.load(TEXT.replace("  on:", "  'on':").replace("    on:", "    'on':"), yaml.SafeLoader)
    )
    wrong = dedent(
        """\
        version: 1
        defaults: {'on': {mismatch: [{webhook: a, notifier: b}]}}
        """
    )
    assert not policy_schema().is_valid(yaml.load(wrong, yaml.SafeLoader))
