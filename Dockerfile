# The image of web, worker, sweep, relay and migration: one code, one lock, an account without rights.
FROM python:3.13-slim AS packages
COPY requirements/production.txt /
RUN python -m venv /venv \
 && /venv/bin/pip install --no-cache-dir --no-deps --require-hashes --requirement /production.txt

FROM python:3.13-slim
ENV PATH=/venv/bin:$PATH PYTHONUNBUFFERED=1 PYTHONDONTWRITEBYTECODE=1
COPY --from=packages /venv /venv
WORKDIR /srv/amends
# .dockerignore leaves out the proving ground, the simulated world and the tests.
COPY . .
# Collecting needs settings, not servers: these addresses reach nobody and the key is thrown away with the command.
RUN AMENDS_ENV=production AMENDS_HOSTS=build.invalid \
    DATABASE_URL=postgresql://amends_app@build.invalid/amends REDIS_URL=redis://build.invalid/0 \
    DJANGO_SECRET_KEY="$(python -c 'import secrets; print(secrets.token_urlsafe(60))')" \
    python manage.py collectstatic --noinput --verbosity=0 \
 && python -m compileall -q tools sagas workbench
USER 10001:10001
EXPOSE 8000
CMD ["gunicorn", "--config", "python:workbench.config.gunicorn", "workbench.config.wsgi"]
