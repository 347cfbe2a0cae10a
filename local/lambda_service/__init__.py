"""The laptop's Lambda service: what AWS Lambda does with a deployed function, done with processes of this machine.

It reads functions, mappings and their settings through the AWS API, never from the template. `service.LambdaService`
owns everything and `front.Front` is its HTTP side; the other modules are their parts, one noun each.
"""
