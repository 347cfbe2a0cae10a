"""Make a project as small as a deploy needs: one function with a layer, a queue that feeds it, rules, a migrator.

The function writes each event into the table `seen`, so that a test can see what arrived; the migrator makes the
table.
"""

from __future__ import annotations

from pathlib import Path
from textwrap import dedent
from typing import Any

import yaml

_FILES = {
    "functions/archiver/handler.py": """
        import json, os
        import psycopg
        from greeting import GREETING

        def handler(event, context):
            with psycopg.connect(os.environ["SIGNALBOX_DATABASE_URL"]) as connection:
                connection.execute("INSERT INTO seen (event) VALUES (%s)", [json.dumps(event)])
            if isinstance(event, dict) and event.get("fail"):
                raise RuntimeError("as asked")
            return {"greeting": GREETING, "stack": os.environ["SIGNALBOX_STACK"]}
    """,
    "functions/migrator/handler.py": """
        import json, os, urllib.request
        import psycopg

        def handler(event, context):
            answer = {"Status": "SUCCESS", "Reason": "made the table"}
            try:
                with psycopg.connect(os.environ["SIGNALBOX_DATABASE_URL"]) as connection:
                    connection.execute("CREATE TABLE IF NOT EXISTS seen (id serial, event jsonb)")
            except psycopg.Error as error:
                answer = {"Status": "FAILED", "Reason": str(error)}
            body = json.dumps(answer).encode()
            urllib.request.urlopen(urllib.request.Request(event["ResponseURL"], body, method="PUT"), timeout=5).close()
    """,
    "layers/greetings/greeting/__init__.py": "GREETING = 'hello'",
    "layers/greetings/greeting/greet.sql": "SELECT 'hello'",
    "layers/greetings/Makefile": "build:",
    "layers/dependencies/requirements.txt": "psycopg",
    "template.yaml": """
        AWSTemplateFormatVersion: 2010-09-09
        Transform: AWS::Serverless-2016-10-31
        Parameters:
          DatabaseSecretArn: {Type: String}
          Subnets: {Type: CommaDelimitedList, Default: ''}
        Conditions:
          InVpc: !Not [!Equals [!Join ['', !Ref Subnets], '']]
        Globals:
          Function:
            Runtime: python3.13
            Handler: handler.handler
            Layers: [!Ref GreetingsLayer, !Ref DependenciesLayer]
            LoggingConfig: {LogFormat: JSON}
            Environment:
              Variables:
                SIGNALBOX_STACK: !Ref AWS::StackName
                QUEUE_URL: !Ref Inbox
                SECRET: !Ref DatabaseSecretArn
            EventInvokeConfig:
              MaximumRetryAttempts: 0
              DestinationConfig: {OnFailure: {Type: SQS, Destination: !GetAtt Failures.Arn}}
            VpcConfig: !If [InVpc, {SubnetIds: !Ref Subnets, SecurityGroupIds: []}, !Ref AWS::NoValue]
        Resources:
          GreetingsLayer:
            Type: AWS::Serverless::LayerVersion
            Properties: {ContentUri: layers/greetings}
          DependenciesLayer:
            Type: AWS::Serverless::LayerVersion
            Properties: {ContentUri: layers/dependencies}
          ArchiverFunction:
            Type: AWS::Serverless::Function
            Properties:
              FunctionName: !Sub ${AWS::StackName}-archiver
              CodeUri: functions/archiver
              Policies:
                - Version: 2012-10-17
                  Statement:
                    - {Effect: Allow, Action: sqs:SendMessage, Resource: !GetAtt Inbox.Arn}
                    - !If [InVpc, {Effect: Allow, Action: 'ec2:*', Resource: '*'}, !Ref AWS::NoValue]
              Events:
                Inbox:
                  Type: SQS
                  Properties:
                    Queue: !GetAtt Inbox.Arn
                    BatchSize: 5
                    FunctionResponseTypes: [ReportBatchItemFailures]
                    ScalingConfig: {MaximumConcurrency: 2}
          MigratorFunction:
            Type: AWS::Serverless::Function
            Properties:
              FunctionName: !Sub ${AWS::StackName}-migrator
              CodeUri: functions/migrator
          Migrations:
            Type: Custom::SignalboxMigrations
            Properties: {ServiceToken: !GetAtt MigratorFunction.Arn}
          Inbox: {Type: AWS::SQS::Queue}
          Attic: {Type: AWS::S3::Bucket, Properties: {VersioningConfiguration: {Status: Enabled}}}
          AtticPolicy:
            Type: AWS::S3::BucketPolicy
            Properties:
              Bucket: !Ref Attic
              PolicyDocument:
                Version: 2012-10-17
                Statement:
                  - Effect: Deny
                    Principal: '*'
                    Action: s3:DeleteObject
                    Resource: !Sub ${Attic.Arn}/*
          Alerts: {Type: AWS::SNS::Topic}
          AlertsPolicy:
            Type: AWS::SNS::TopicPolicy
            Properties:
              Topics: [!Ref Alerts]
              PolicyDocument:
                Version: 2012-10-17
                Statement:
                  - Effect: Allow
                    Principal: {Service: cloudwatch.amazonaws.com}
                    Action: sns:Publish
                    Resource: !Ref Alerts
          AlertsSubscription:
            Type: AWS::SNS::Subscription
            Properties: {TopicArn: !Ref Alerts, Protocol: email, Endpoint: somebody@example.com}
          Smoke:
            Type: AWS::CloudWatch::Alarm
            Properties:
              Namespace: AWS/Lambda
              MetricName: Errors
              Dimensions: [{Name: FunctionName, Value: !Ref ArchiverFunction}]
              Statistic: Sum
              Period: 60
              EvaluationPeriods: 1
              Threshold: 0
              ComparisonOperator: GreaterThanThreshold
          ArchiverLogs:
            Type: AWS::Logs::LogGroup
            Properties: {LogGroupName: !Sub '/aws/lambda/${AWS::StackName}-archiver'}
          Question:
            Type: AWS::Logs::QueryDefinition
            Properties: {Name: question, LogGroupNames: [!Ref ArchiverLogs], QueryString: fields @timestamp}
          Ticks: {Type: AWS::SQS::Queue}
          Failures: {Type: AWS::SQS::Queue}
          QueuePolicy:
            Type: AWS::SQS::QueuePolicy
            Properties:
              Queues: [!Ref Failures, !Ref Ticks]
              PolicyDocument:
                Version: 2012-10-17
                Statement:
                  - Effect: Allow
                    Principal: {Service: events.amazonaws.com}
                    Action: sqs:SendMessage
                    Resource: '*'
          ArchiverPermission:
            Type: AWS::Lambda::Permission
            Properties:
              FunctionName: !GetAtt ArchiverFunction.Arn
              Action: lambda:InvokeFunction
              Principal: events.amazonaws.com
              SourceArn: !GetAtt PollRule.Arn
          PollRule:
            Type: AWS::Events::Rule
            Properties:
              Name: !Sub ${AWS::StackName}.poll_data
              ScheduleExpression: cron(0/15 * * * ? *)
              Targets:
                - Id: archiver
                  Arn: !GetAtt ArchiverFunction.Arn
                  InputTransformer:
                    InputPathsMap: {time: $.time}
                    InputTemplate: '{"task": "poll_data", "scheduled_time": <time>}'
          TickRule:
            Type: AWS::Events::Rule
            Properties:
              Name: !Sub ${AWS::StackName}.tick
              ScheduleExpression: cron(* * * * ? *)
              Targets: [{Id: queue, Arn: !GetAtt Ticks.Arn}]
          ForbiddenRule:
            Type: AWS::Events::Rule
            Properties:
              Name: !Sub ${AWS::StackName}.forbidden
              ScheduleExpression: cron(30 2 * * ? *)
              Targets:
                - Id: archiver
                  Arn: !GetAtt ArchiverFunction.Arn
                  Input: '{"task": "sweep_runs"}'
                  RetryPolicy: {MaximumRetryAttempts: 3}
                  DeadLetterConfig: {Arn: !GetAtt Failures.Arn}
          DisabledRule:
            Type: AWS::Events::Rule
            Properties:
              Name: !Sub ${AWS::StackName}.disabled
              ScheduleExpression: cron(* * * * ? *)
              State: DISABLED
              Targets: [{Id: queue, Arn: !GetAtt Ticks.Arn}]
        Outputs:
          InboxUrl: {Value: !Ref Inbox}
          TicksUrl: {Value: !Ref Ticks}
          FailuresUrl: {Value: !Ref Failures}
          AtticName: {Value: !Ref Attic}
    """,
}


def write_small_project(folder: Path, **changed: str) -> Path:
    """Write the project, with some files' text changed; return its template's path."""
    for name, text in {**_FILES, **changed}.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(dedent(text))
    return folder / "template.yaml"


def text_of(name: str) -> str:
    """Return a file of the project, to be changed in part."""
    return dedent(_FILES[name])


def write_resources(folder: Path, resources: dict[str, Any], **sections: Any) -> Path:
    """Write a template with these resources only; return its path."""
    path = folder / "template.yaml"
    path.write_text(yaml.safe_dump({"Transform": "AWS::Serverless-2016-10-31", "Resources": resources, **sections}))
    return path
