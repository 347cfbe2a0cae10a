"""What every network keeps, given or made: nothing gets in from outside, and each group says where it may go."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from tests.support.template import Template

GROUP, INGRESS = "AWS::EC2::SecurityGroup", "AWS::EC2::SecurityGroupIngress"
SUBNET, ENDPOINT = "AWS::EC2::Subnet", "AWS::EC2::VPCEndpoint"
OPENINGS = ("AWS::EC2::InternetGateway", "AWS::EC2::NatGateway", "AWS::EC2::EIP", "AWS::EC2::Route")


def let_in_named_groups_only(template: Template) -> Iterator[str]:
    """A block of addresses, were it the whole network's, lets in what comes to stand there later."""
    for name, group in template.of(GROUP).items():
        for rule in group.get("SecurityGroupIngress", []):
            yield from _faults(name, rule)
    for name, rule in template.of(INGRESS).items():
        yield from _faults(name, rule)


def say_where_they_lead(template: Template) -> Iterator[str]:
    """A group that says nothing leads everywhere."""
    for name, group in template.of(GROUP).items():
        if not group.get("SecurityGroupEgress"):
            yield f"{name}: no SecurityGroupEgress, which allows everything"
        for rule in group.get("SecurityGroupEgress", []):
            if rule.get("CidrIp") == "0.0.0.0/0" and rule.get("FromPort") != rule.get("ToPort", "any"):
                yield f"{name}: leads everywhere by more than one port"


def have_no_way_out(template: Template) -> Iterator[str]:
    """What the functions need of AWS has endpoints; a way out would be a way for data, too."""
    for kind in OPENINGS:
        for name in template.of(kind):
            yield f"{name}: {kind} in a network that has no need for it"
    for name, subnet in template.of(SUBNET).items():
        if subnet.get("MapPublicIpOnLaunch") is not False:
            yield f"{name}: hands out public addresses"


def have_endpoints_for_this_account(template: Template) -> Iterator[str]:
    """Credentials from elsewhere would carry data away through them."""
    for name, endpoint in template.of(ENDPOINT).items():
        if endpoint["VpcEndpointType"] == "Interface" and endpoint.get("PrivateDnsEnabled") is not True:
            yield f"{name}: functions would not find it, without PrivateDnsEnabled"
        for statement in endpoint.get("PolicyDocument", {"Statement": [{"Action": "*"}]})["Statement"]:
            account = statement.get("Condition", {}).get("StringEquals", {}).get("aws:PrincipalAccount")
            if statement["Action"] == "*" and account != {"Ref": "AWS::AccountId"}:
                yield f"{name}: is open to other accounts"


def _faults(name: str, rule: Mapping[str, Any]) -> Iterator[str]:
    if "SourceSecurityGroupId" not in rule:
        yield f"{name}: lets in {rule.get('CidrIp') or rule.get('CidrIpv6') or 'no group'}"
    if rule.get("IpProtocol") != "tcp" or rule.get("FromPort") != rule.get("ToPort"):
        yield f"{name}: lets in by more than one port"
