"""How gunicorn serves in production: `gunicorn -c python:workbench.config.gunicorn workbench.config.wsgi`.

Number of processes: WEB_CONCURRENCY. Proxies whose X-Forwarded-Proto counts: FORWARDED_ALLOW_IPS. Both are
gunicorn's own variables; everything can be given on the command line too.
"""

import os

from workbench.config.logs import configuration

bind = os.environ.get("AMENDS_BIND", "127.0.0.1:8000")
worker_class = "gthread"
threads = 8
preload_app = True
# Else it would open a control socket in somebody's home folder.
control_socket_disable = True
timeout = 60
# Pages end within the limit of the reads that a decision makes.
graceful_timeout = 30
accesslog = None
logconfig_dict = configuration(as_json=True)
