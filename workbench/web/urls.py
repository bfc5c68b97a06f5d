"""The addresses of the pages: every filter, tab and picked action is in one of them."""

from __future__ import annotations

from django.contrib.auth.decorators import login_not_required
from django.urls import path

from workbench.web.views import (
    account,
    case,
    freeze,
    queue,
    runs,
    search,
    session,
    signoffs,
    stops,
    system,
    tools,
    trail,
    workflows,
)

urlpatterns = [
    path("", queue.home, name="home"),
    path("login/", login_not_required(session.LogIn.as_view()), name="login"),
    path("logout/", session.LogOut.as_view(), name="logout"),
    path("handoffs/", queue.queue, name="queue"),
    path("handoffs/changes", queue.changes, name="queue-changes"),
    path("handoffs/<str:ref>/", case.case, name="case"),
    path("handoffs/<str:ref>/preview/", case.preview, name="preview"),
    path("handoffs/<str:ref>/act/", case.act, name="act"),
    path("handoffs/<str:ref>/claim/", queue.claim, name="claim"),
    path("handoffs/<str:ref>/changes/", case.changes, name="case-changes"),
    path("handoffs/<str:ref>/trail/", trail.trail, name="trail"),
    path("signoffs/", signoffs.signoffs, name="signoffs"),
    path("signoffs/changes", signoffs.news, name="signoffs-changes"),
    path("signoffs/<str:ref>/", signoffs.signoff, name="signoff"),
    path("signoffs/<str:ref>/changes/", signoffs.changes, name="signoff-changes"),
    path("signoffs/<str:ref>/sign/", signoffs.decide, {"verb": "sign"}, name="signoff-sign"),
    path("signoffs/<str:ref>/reject/", signoffs.decide, {"verb": "reject"}, name="signoff-reject"),
    path("runs/", runs.runs, name="runs"),
    path("runs/<str:ref>/", runs.run, name="run"),
    path("workflows/", workflows.workflows, name="workflows"),
    path("workflows/<str:name>/", workflows.workflow, name="workflow"),
    path("workflows/<str:name>/v<int:version>/", workflows.workflow, name="workflow-version"),
    path("tools/", tools.tools, name="tools"),
    path("tools/<str:name>/", tools.tool, name="tool"),
    path("tools/<str:name>/v<int:version>/", tools.tool, name="tool-version"),
    path("runs/<str:ref>/stop/", stops.stop, name="run-stop"),
    path("runs/<str:ref>/act/", stops.act, name="run-act"),
    path("system/", system.system, name="system"),
    path("system/now/", system.numbers, name="system-now"),
    path("search/", search.search, name="search"),
    path("freeze/", freeze.freeze, name="freeze"),
    path("freeze/now/", freeze.act, {"verb": "freeze"}, name="freeze-now"),
    path("freeze/lift/", freeze.act, {"verb": "unfreeze"}, name="freeze-lift"),
    path("freeze/keep/", freeze.act, {"verb": "keep_frozen"}, name="freeze-keep"),
    path("freeze/open-tool/", freeze.act, {"verb": "open_tool"}, name="tool-open"),
    path("account/", account.account, name="account"),
    path("help/", account.help_sheet, name="help"),
]
