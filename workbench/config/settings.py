"""Django's settings for every process, read from the environment once.

AMENDS_ENV says where we are: `demo` (the default: loopback only), `test` or `production`, which has no
defaults for anything secret. Must not open connections or touch files.
"""

import secrets
from pathlib import Path

import django_stubs_ext
from django.utils.csp import CSP
from django.utils.translation import gettext_lazy as _

from workbench.config import env, logs

django_stubs_ext.monkeypatch()

BASE_DIR = Path(__file__).resolve().parent.parent.parent
AMENDS_ENV = env.one_of("AMENDS_ENV", ("demo", "test", "production"), "demo")
PRODUCTION = AMENDS_ENV == "production"

# --- Security -----------------------------------------------------------------------------------------------

DEBUG = False
if PRODUCTION:
    env.none_of("DJANGO_DEBUG", "SIMULATOR_ADMIN_URL", "AMENDS_FAULT_POINTS")
    SECRET_KEY = env.secret_key("DJANGO_SECRET_KEY")
    ALLOWED_HOSTS = env.hosts("AMENDS_HOSTS")
    CSRF_TRUSTED_ORIGINS = [f"https://{'*' * host.startswith('.')}{host}" for host in ALLOWED_HOSTS]
    # The browser itself refuses a __Host- cookie that is not Secure, names a domain or another path.
    SESSION_COOKIE_NAME, CSRF_COOKIE_NAME = "__Host-session", "__Host-csrf"
    CSRF_COOKIE_SECURE = SESSION_COOKIE_SECURE = True
    SECURE_HSTS_SECONDS = 31_536_000
    SECURE_HSTS_INCLUDE_SUBDOMAINS = True
    # Whether a request came over TLS is told by gunicorn, which trusts FORWARDED_ALLOW_IPS only. Probes are plain.
    SECURE_SSL_REDIRECT = True
    SECURE_REDIRECT_EXEMPT = ["^livez$", "^readyz$"]
    # Being in browsers' preload lists is a decision about the whole domain, not ours.
    SILENCED_SYSTEM_CHECKS = ["security.W021"]
else:
    # A forgotten key is replaced by one that nobody knows, never by one that everybody knows.
    SECRET_KEY = env.text("DJANGO_SECRET_KEY", secrets.token_urlsafe(50))
    ALLOWED_HOSTS = env.words("AMENDS_HOSTS", "localhost,127.0.0.1,[::1]")
CSRF_FAILURE_VIEW = "workbench.web.views.errors.old_form"
SECURE_REFERRER_POLICY = "same-origin"
X_FRAME_OPTIONS = "DENY"
SECURE_CSP = {
    "default-src": [CSP.NONE],
    "script-src": [CSP.SELF],
    "style-src": [CSP.SELF],
    "img-src": [CSP.SELF, "data:"],
    "font-src": [CSP.SELF],
    "connect-src": [CSP.SELF],
    "form-action": [CSP.SELF],
    "base-uri": [CSP.NONE],
    "frame-ancestors": [CSP.NONE],
}

# --- Application --------------------------------------------------------------------------------------------

INSTALLED_APPS = [
    "sagas",
    "workbench",
    "rest_framework",
    "django_htmx",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.staticfiles",
]
if not PRODUCTION:
    INSTALLED_APPS.append("workbench.labs")
MIDDLEWARE = [
    "workbench.config.requests.RequestId",
    "django.middleware.security.SecurityMiddleware",
    "django.middleware.csp.ContentSecurityPolicyMiddleware",
    # Fifty rows weigh little only when compressed. What BREACH would need is not there: a page's token is masked anew
    # each time, cookies do not travel with other sites' requests, and Django adds bytes of no fixed number.
    "django.middleware.gzip.GZipMiddleware",
    "whitenoise.middleware.WhiteNoiseMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.locale.LocaleMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    # Every page asks for a login unless its view says otherwise.
    "django.contrib.auth.middleware.LoginRequiredMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    "django_htmx.middleware.HtmxMiddleware",
]
ROOT_URLCONF = "workbench.config.urls"
WSGI_APPLICATION = "workbench.config.wsgi.application"
TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [BASE_DIR / "templates"],
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.template.context_processors.i18n",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
            ],
        },
    }
]

# --- People -------------------------------------------------------------------------------------------------

AUTH_USER_MODEL = "workbench.User"
LOGIN_URL = "/login/"
LOGIN_REDIRECT_URL = "/"
LOGOUT_REDIRECT_URL = LOGIN_URL
SESSION_ENGINE = "django.contrib.sessions.backends.db"
AUTH_PASSWORD_VALIDATORS = [
    {"NAME": f"django.contrib.auth.password_validation.{name}"}
    for name in ("UserAttributeSimilarityValidator", "MinimumLengthValidator", "CommonPasswordValidator")
]
if AMENDS_ENV == "test":
    PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]

# What one person may order within a minute (security.md 3.10): far above any hands, far below a script.
COMMANDS_A_MINUTE = env.count("AMENDS_COMMANDS_A_MINUTE", 60)

# --- Database: two roles on one database --------------------------------------------------------------------

_ADDRESS = None if PRODUCTION else "postgresql://amends_app@localhost/amends"
_LIMITS = {"lock_timeout": "5s", "idle_in_transaction_session_timeout": "30s"}
DATABASES = {"default": env.database("DATABASE_URL", _ADDRESS, {**_LIMITS, "statement_timeout": "60s"})}
# The role that migrations grant rights to.
APP_DB_ROLE = DATABASES["default"]["USER"] or "amends_app"
# Only what migrates is given the owner's address; web, worker, sweep and relay do without.
if env.text("DATABASE_OWNER_URL", ""):
    DATABASES["owner"] = {**env.database("DATABASE_OWNER_URL", None, _LIMITS), "CONN_MAX_AGE": 0}
    if PRODUCTION:
        env.two_roles(APP_DB_ROLE, DATABASES["owner"]["USER"])

# --- The outside world and the bell -------------------------------------------------------------------------

# Contracts name a system, never a host: {"stock": "http://127.0.0.1:4711/stock"}.
TOOL_SYSTEMS = env.string_map("AMENDS_SYSTEMS")
# Where systems report the end of what they had only accepted; "" = they are asked instead.
CALLBACK_URL = env.text("AMENDS_CALLBACK_URL", "")
CALLBACK_SECRETS = env.string_map("AMENDS_CALLBACK_SECRETS")
if PRODUCTION:
    # Hosts that only our own network reaches; they may be spoken to without TLS.
    _INTERNAL = env.words("AMENDS_INTERNAL_HOSTS", "")
    env.encrypted("AMENDS_SYSTEMS", TOOL_SYSTEMS.values(), _INTERNAL)
    env.encrypted("AMENDS_CALLBACK_URL", [CALLBACK_URL] if CALLBACK_URL else [], _INTERNAL)
# The simulator's ledger and its switches; for the demo and the tests only.
SIMULATOR_ADMIN_URL = env.text("SIMULATOR_ADMIN_URL", "")

# A message is a bell and may be lost, so it is acknowledged early, never retried and answered by nothing.
# What the sweep does at every look beside its own work, by name: the engine does not know what it is.
AMENDS_ERRANDS = ["workbench.bulks.runner.go_on"]
CELERY_BROKER_URL = env.broker("REDIS_URL", None if PRODUCTION else "redis://127.0.0.1:6379/0")
CELERY_BROKER_CONNECTION_RETRY_ON_STARTUP = True
CELERY_BROKER_CONNECTION_MAX_RETRIES = None
CELERY_BROKER_TRANSPORT_OPTIONS = {
    "global_keyprefix": "amends:",
    # A broker that is frozen takes connections and never answers: whoever rings waits two seconds at most for it.
    "socket_connect_timeout": 1.5,
    "socket_timeout": 1.5,
    "health_check_interval": 20,
    # A ring without a broker fails at once: whoever rings has other work, and must be able to stop.
    "max_retries": 0,
    "interval_start": 0,
    "interval_step": 0,
    "interval_max": 0,
}
CELERY_TASK_DEFAULT_QUEUE = "bell"
CELERY_TASK_ACKS_LATE = False
CELERY_TASK_REJECT_ON_WORKER_LOST = False
CELERY_TASK_IGNORE_RESULT = True
CELERY_TASK_PUBLISH_RETRY = False
CELERY_TASK_SERIALIZER = "json"
CELERY_ACCEPT_CONTENT = ["json"]
# Far above any tool's deadline: it ends a worker that hangs; the leases in the database do the rest.
CELERY_TASK_TIME_LIMIT = 600
CELERY_WORKER_PREFETCH_MULTIPLIER = 1
CELERY_WORKER_HIJACK_ROOT_LOGGER = False
CELERY_WORKER_REDIRECT_STDOUTS = False

# --- REST ---------------------------------------------------------------------------------------------------

REST_FRAMEWORK = {
    "DEFAULT_AUTHENTICATION_CLASSES": ["workbench.api.tokens.TokenAuthentication"],
    "DEFAULT_PERMISSION_CLASSES": ["rest_framework.permissions.IsAuthenticated"],
    "DEFAULT_RENDERER_CLASSES": ["rest_framework.renderers.JSONRenderer"],
    "DEFAULT_PARSER_CLASSES": ["rest_framework.parsers.JSONParser"],
    "EXCEPTION_HANDLER": "workbench.api.problems.handler",
    "TEST_REQUEST_DEFAULT_FORMAT": "json",
}

# --- Language, time, files ----------------------------------------------------------------------------------

LANGUAGE_CODE = "en"
LANGUAGES = [("en", _("English")), ("zh-hans", _("Simplified Chinese"))]
LOCALE_PATHS = [BASE_DIR / "locale"]
USE_TZ = True
TIME_ZONE = "UTC"

STATIC_URL = "/static/"
STATICFILES_DIRS = [BASE_DIR / "static"]
if PRODUCTION:
    STATIC_ROOT = Path(env.text("AMENDS_STATIC_ROOT", str(BASE_DIR / "staticfiles")))
    STORAGES = {
        "default": {"BACKEND": "django.core.files.storage.InMemoryStorage"},
        "staticfiles": {"BACKEND": "whitenoise.storage.CompressedManifestStaticFilesStorage"},
    }
else:
    # A bare clone has collected nothing: serve the files from where they lie.
    WHITENOISE_USE_FINDERS = True

# --- Logs: one event a line, JSON where machines read it ----------------------------------------------------

LOGGING = logs.configuration(as_json=PRODUCTION)
