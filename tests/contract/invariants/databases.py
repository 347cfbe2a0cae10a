"""What every database that a stack makes keeps: encrypted, backed up, hard to lose, and reached by TLS alone."""

from __future__ import annotations

from collections.abc import Iterator

from tests.support.template import SECRET_KIND, Template, referred

CLUSTER, INSTANCE, PROXY = "AWS::RDS::DBCluster", "AWS::RDS::DBInstance", "AWS::RDS::DBProxy"
PARAMETERS = "AWS::RDS::DBClusterParameterGroup"


def are_hard_to_lose(template: Template) -> Iterator[str]:
    """Three things go wrong one after the other before data is gone: protection, last snapshot, backups."""
    for name, cluster in template.of(CLUSTER).items():
        resource = template.resources[name]
        if cluster.get("DeletionProtection") is not True:
            yield f"{name}: no DeletionProtection"
        if (resource.get("DeletionPolicy"), resource.get("UpdateReplacePolicy")) != ("Snapshot", "Snapshot"):
            yield f"{name}: DeletionPolicy and UpdateReplacePolicy leave no snapshot"
        if "BackupRetentionPeriod" not in cluster:
            yield f"{name}: no BackupRetentionPeriod"


def are_encrypted_at_rest_and_on_the_way(template: Template) -> Iterator[str]:
    """The engine takes plain connections, unless its parameters or the proxy refuse them."""
    for name, cluster in template.of(CLUSTER).items():
        parameters = template.of(PARAMETERS).get(referred(cluster.get("DBClusterParameterGroupName")) or "", {})
        if cluster.get("StorageEncrypted") is not True:
            yield f"{name}: storage is not encrypted"
        if parameters.get("Parameters", {}).get("rds.force_ssl") != "1":
            yield f"{name}: its parameters do not set rds.force_ssl"
    for name, proxy in template.of(PROXY).items():
        if proxy.get("RequireTLS") is not True:
            yield f"{name}: takes connections without TLS"


def are_private(template: Template) -> Iterator[str]:
    """From the internet they can't be reached, whatever their security groups come to say."""
    for name, instance in template.of(INSTANCE).items():
        if instance.get("PubliclyAccessible") is not False:
            yield f"{name}: PubliclyAccessible is not false"


def keep_passwords_out_of_the_template(template: Template) -> Iterator[str]:
    """One that is written down is known; these are made where nobody looks."""
    for name, cluster in template.of(CLUSTER).items():
        if "MasterUserPassword" in cluster or cluster.get("ManageMasterUserPassword") is not True:
            yield f"{name}: RDS does not make its owner's password"
    for name, secret in template.of(SECRET_KIND).items():
        if "SecretString" in secret or "GenerateSecretString" not in secret:
            yield f"{name}: its value is written down"


def let_every_user_through_their_proxy(template: Template) -> Iterator[str]:
    """A proxy takes log-ins of those users only whose secrets it knows, and it has to be able to read them."""
    wanted = {*template.of(SECRET_KIND), *template.of(CLUSTER)}
    for name, proxy in template.of(PROXY).items():
        role = template.of("AWS::IAM::Role").get(referred(proxy.get("RoleArn")) or "", {})
        known = {referred(log_in.get("SecretArn")) for log_in in proxy.get("Auth", [])}
        readable = {
            referred(secret)
            for policy in role.get("Policies", [])
            for statement in policy["PolicyDocument"]["Statement"]
            if statement["Action"] == "secretsmanager:GetSecretValue"
            for secret in statement["Resource"]
        }
        if missing := wanted - (known & readable):
            yield f"{name}: does not know, or may not read, the secret of {', '.join(sorted(missing))}"
