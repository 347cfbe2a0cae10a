"""The key, the network and the database of a good template, and how each invariant about them can be broken."""

from __future__ import annotations

from typing import Any

from tests.contract.invariants import Invariant, databases, encryption, networks, references, topics


def resource(kind: str, **properties: Any) -> dict[str, Any]:
    return {"Type": kind, "Properties": properties}


def arn(name: str) -> dict[str, Any]:
    return {"Fn::GetAtt": [name, "Arn"]}


def ingress(**properties: Any) -> dict[str, Any]:
    return {"IpProtocol": "tcp", "FromPort": 5432, "ToPort": 5432, **properties}


ACCOUNT = {"AWS": {"Fn::Sub": "arn:${AWS::Partition}:iam::${AWS::AccountId}:root"}}
THROUGH = {"StringEquals": {"kms:ViaService": ["sqs.us-east-1.amazonaws.com"]}}
FOR_QUEUE = {"ArnEquals": {"kms:EncryptionContext:aws:sqs:arn": "arn:aws:sqs:us-east-1:123456789012:failed"}}
OF_ACCOUNT = {"StringEquals": {"aws:SourceAccount": {"Ref": "AWS::AccountId"}}}
OWN = {"StringEquals": {"aws:PrincipalAccount": {"Ref": "AWS::AccountId"}}}
PLAIN = {"Bool": {"aws:SecureTransport": "false"}}

KEY = {
    **resource(
        "AWS::KMS::Key",
        EnableKeyRotation=True,
        KeyPolicy={
            "Statement": [
                {"Principal": ACCOUNT, "Action": ["kms:PutKeyPolicy"]},
                {"Principal": ACCOUNT, "Action": ["kms:Decrypt"], "Condition": THROUGH},
                {"Principal": {"Service": "events.amazonaws.com"}, "Action": "kms:Decrypt", "Condition": FOR_QUEUE},
            ]
        },
    ),
    "DeletionPolicy": "RetainExceptOnCreate",
    "UpdateReplacePolicy": "Retain",
}
CLUSTER = {
    **resource(
        "AWS::RDS::DBCluster",
        KmsKeyId=arn("Key"),
        StorageEncrypted=True,
        DBClusterParameterGroupName={"Ref": "Parameters"},
        BackupRetentionPeriod=7,
        DeletionProtection=True,
        ManageMasterUserPassword=True,
    ),
    "DeletionPolicy": "Snapshot",
    "UpdateReplacePolicy": "Snapshot",
}
RESOURCES: dict[str, Any] = {
    "Key": KEY,
    "Topic": resource("AWS::SNS::Topic", KmsMasterKeyId={"Ref": "Key"}),
    "TopicTransport": resource(
        "AWS::SNS::TopicPolicy",
        Topics=[{"Ref": "Topic"}],
        PolicyDocument={
            "Statement": [
                {"Effect": "Deny", "Principal": "*", "Action": "sns:Publish", "Resource": "*", "Condition": PLAIN}
            ]
        },
    ),
    "Cluster": CLUSTER,
    "Parameters": resource("AWS::RDS::DBClusterParameterGroup", Parameters={"rds.force_ssl": "1"}),
    "Instance": resource(
        "AWS::RDS::DBInstance",
        DBClusterIdentifier={"Ref": "Cluster"},
        PubliclyAccessible=False,
        PerformanceInsightsKMSKeyId=arn("Key"),
    ),
    "Secret": resource("AWS::SecretsManager::Secret", KmsKeyId=arn("Key"), GenerateSecretString={}),
    "Proxy": resource(
        "AWS::RDS::DBProxy",
        RequireTLS=True,
        RoleArn=arn("ProxyRole"),
        Auth=[
            {"SecretArn": {"Ref": "Secret"}},
            {"SecretArn": {"Fn::GetAtt": ["Cluster", "MasterUserSecret.SecretArn"]}},
        ],
    ),
    "ProxyRole": resource(
        "AWS::IAM::Role",
        Policies=[
            {
                "PolicyDocument": {
                    "Statement": [
                        {
                            "Effect": "Allow",
                            "Action": "secretsmanager:GetSecretValue",
                            "Resource": [
                                {"Ref": "Secret"},
                                {"Fn::GetAtt": ["Cluster", "MasterUserSecret.SecretArn"]},
                            ],
                        }
                    ]
                }
            }
        ],
    ),
    "Subnet": resource("AWS::EC2::Subnet", MapPublicIpOnLaunch=False),
    "Clients": resource(
        "AWS::EC2::SecurityGroup", SecurityGroupEgress=[ingress(FromPort=443, ToPort=443, CidrIp="0.0.0.0/0")]
    ),
    "Group": resource(
        "AWS::EC2::SecurityGroup",
        SecurityGroupIngress=[ingress(SourceSecurityGroupId=arn("Clients"))],
        SecurityGroupEgress=[{"IpProtocol": "-1", "CidrIp": "127.0.0.1/32"}],
    ),
    "Ingress": resource("AWS::EC2::SecurityGroupIngress", **ingress(SourceSecurityGroupId=arn("Clients"))),
    "Endpoint": resource(
        "AWS::EC2::VPCEndpoint",
        VpcEndpointType="Interface",
        PrivateDnsEnabled=True,
        PolicyDocument={
            "Statement": [{"Effect": "Allow", "Principal": "*", "Action": "*", "Resource": "*", "Condition": OWN}]
        },
    ),
}

ENCRYPTED_BY = "Bucket.BucketEncryption.ServerSideEncryptionConfiguration.0"
USE, SERVICE = "Key.KeyPolicy.Statement.1", "Key.KeyPolicy.Statement.2"
FOR_ANYBODY = resource("AWS::EC2::SecurityGroupIngress", **ingress(CidrIp="0.0.0.0/0"))
EVERY_PORT = {"IpProtocol": "-1", "SourceSecurityGroupId": arn("Clients")}
READABLE = "ProxyRole.Policies.0.PolicyDocument.Statement.0.Resource"

BROKEN: list[tuple[Invariant, str, Any, str]] = [
    (topics.refuse_plain_http, "TopicTransport", None, "Topic"),
    (topics.refuse_plain_http, "TopicTransport.PolicyDocument.Statement.0.Action", "sns:Subscribe", "Topic"),
    (encryption.is_by_a_key_of_the_stack, "Queue.KmsMasterKeyId", None, "Queue"),
    (encryption.is_by_a_key_of_the_stack, "Dead.KmsMasterKeyId", "alias/aws/sqs", "Dead"),
    (encryption.is_by_a_key_of_the_stack, "Logs.KmsKeyId", None, "Logs"),
    (encryption.is_by_a_key_of_the_stack, "Worker.KmsKeyArn", None, "Worker"),
    (encryption.is_by_a_key_of_the_stack, "Topic.KmsMasterKeyId", None, "Topic"),
    (encryption.is_by_a_key_of_the_stack, "Secret.KmsKeyId", None, "Secret"),
    (encryption.is_by_a_key_of_the_stack, "Cluster.KmsKeyId", {"Ref": "Other"}, "Cluster"),
    (encryption.is_by_a_key_of_the_stack, "Instance.PerformanceInsightsKMSKeyId", None, "Instance"),
    (encryption.is_by_a_key_of_the_stack, "Bucket.BucketEncryption", None, "Bucket"),
    (encryption.is_by_a_key_of_the_stack, f"{ENCRYPTED_BY}.ServerSideEncryptionByDefault", {}, "Bucket"),
    (encryption.is_by_a_key_of_the_stack, f"{ENCRYPTED_BY}.BucketKeyEnabled", None, "Bucket"),
    (encryption.has_keys_that_rotate_and_stay, "Key.EnableKeyRotation", False, "Key"),
    (encryption.has_keys_that_rotate_and_stay, "Key", KEY | {"DeletionPolicy": "Delete"}, "Key"),
    (encryption.has_keys_that_are_used_through_services, f"{USE}.Condition", None, "Key"),
    (encryption.has_keys_that_are_used_through_services, f"{USE}.Action", "kms:*", "Key"),
    (encryption.has_keys_that_are_used_through_services, f"{SERVICE}.Condition", None, "Key"),
    (encryption.has_keys_that_are_used_through_services, f"{SERVICE}.Condition", OF_ACCOUNT, "Key"),
    (databases.are_hard_to_lose, "Cluster.DeletionProtection", False, "Cluster"),
    (databases.are_hard_to_lose, "Cluster.BackupRetentionPeriod", None, "Cluster"),
    (databases.are_hard_to_lose, "Cluster", CLUSTER | {"DeletionPolicy": "Delete"}, "Cluster"),
    (databases.are_hard_to_lose, "Cluster", CLUSTER | {"UpdateReplacePolicy": "Delete"}, "Cluster"),
    (databases.are_encrypted_at_rest_and_on_the_way, "Cluster.StorageEncrypted", None, "Cluster"),
    (databases.are_encrypted_at_rest_and_on_the_way, "Parameters.Parameters", {"rds.force_ssl": "0"}, "Cluster"),
    (databases.are_encrypted_at_rest_and_on_the_way, "Cluster.DBClusterParameterGroupName", None, "Cluster"),
    (databases.are_encrypted_at_rest_and_on_the_way, "Proxy.RequireTLS", None, "Proxy"),
    (databases.are_private, "Instance.PubliclyAccessible", None, "Instance"),
    (databases.keep_passwords_out_of_the_template, "Cluster.MasterUserPassword", "secret", "Cluster"),
    (databases.keep_passwords_out_of_the_template, "Cluster.ManageMasterUserPassword", None, "Cluster"),
    (databases.keep_passwords_out_of_the_template, "Secret.SecretString", "secret", "Secret"),
    (databases.let_every_user_through_their_proxy, "Proxy.Auth", [{"SecretArn": {"Ref": "Secret"}}], "Proxy"),
    (databases.let_every_user_through_their_proxy, READABLE, [{"Ref": "Secret"}], "Proxy"),
    (networks.let_in_named_groups_only, "Ingress", FOR_ANYBODY, "Ingress"),
    (networks.let_in_named_groups_only, "Group.SecurityGroupIngress", [ingress(CidrIp="10.0.0.0/8")], "Group"),
    (networks.let_in_named_groups_only, "Group.SecurityGroupIngress", [EVERY_PORT], "Group"),
    (networks.say_where_they_lead, "Group.SecurityGroupEgress", None, "Group"),
    (networks.say_where_they_lead, "Clients.SecurityGroupEgress.0.ToPort", 65535, "Clients"),
    (networks.have_no_way_out, "Gateway", resource("AWS::EC2::NatGateway"), "Gateway"),
    (networks.have_no_way_out, "Subnet.MapPublicIpOnLaunch", True, "Subnet"),
    (networks.have_endpoints_for_this_account, "Endpoint.PrivateDnsEnabled", None, "Endpoint"),
    (networks.have_endpoints_for_this_account, "Endpoint.PolicyDocument", None, "Endpoint"),
    (networks.have_endpoints_for_this_account, "Endpoint.PolicyDocument.Statement.0.Condition", None, "Endpoint"),
    (references.lead_somewhere, "Instance.DBClusterIdentifier", {"Ref": "Nowhere"}, "Instance"),
    (references.lead_somewhere, "Instance", {**RESOURCES["Instance"], "DependsOn": "Nowhere"}, "Instance"),
    (references.lead_somewhere, "Topic.TopicName", {"Fn::Sub": "${AWS::StackName}-${Nowhere.Arn}"}, "Topic"),
]
