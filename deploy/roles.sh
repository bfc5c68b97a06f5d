#!/bin/sh
# The two roles and the database, made once when PostgreSQL's data folder is new. docs/operations.md says what each
# may do. Passwords are read by psql itself, so that no list of processes shows them.
set -eu
psql --no-psqlrc --set=ON_ERROR_STOP=1 --username="$POSTGRES_USER" --dbname=postgres <<'SQL'
\getenv owner_password AMENDS_OWNER_PASSWORD
\getenv app_password AMENDS_APP_PASSWORD
CREATE ROLE amends_owner LOGIN PASSWORD :'owner_password';
CREATE ROLE amends_app LOGIN PASSWORD :'app_password';
CREATE DATABASE amends OWNER amends_owner ENCODING 'UTF8' TEMPLATE template0;
REVOKE ALL ON DATABASE amends FROM PUBLIC;
GRANT CONNECT ON DATABASE amends TO amends_app;
SQL
