"""Configure a Django project; a test says which database."""

SECRET_KEY = "of tests"
USE_TZ = True
TIME_ZONE = None  # Django would give the process another one
DATABASES = {"default": {"ENGINE": "django.db.backends.postgresql"}}
INSTALLED_APPS: list[str] = []
TASKS = {
    "default": {
        "BACKEND": "signalbox.django.backend.SignalboxBackend",
        "QUEUES": ["default", "low", "mail"],
        "OPTIONS": {"STACK": "signalbox", "LANES": {"mail": "high"}},
    },
    "patient": {
        "BACKEND": "signalbox.django.backend.SignalboxBackend",
        "OPTIONS": {"STACK": "signalbox", "MAX_ATTEMPTS": 3},
    },
}
