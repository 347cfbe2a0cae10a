"""The laptop's endpoint over HTTP: Lambda's Invoke API, and everything else passed on to moto."""
