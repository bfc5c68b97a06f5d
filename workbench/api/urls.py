"""Addresses of the REST interface, below /api/v1/."""

from __future__ import annotations

from django.contrib.auth.decorators import login_not_required
from django.urls import path, re_path
from django.views.decorators.csrf import csrf_exempt

from workbench.api import bulks, callbacks, problems, views

app_name = "api"

urlpatterns = [
    path("runs", views.Runs.as_view(), name="runs"),
    path("runs/<str:ref>/replans", views.Replans.as_view(), name="replans"),
    path("runs/<str:ref>/previews", views.RunPreviews.as_view(), name="run-previews"),
    path("runs/<str:ref>/commands/<slug:verb>", views.RunCommands.as_view(), name="run-command"),
    path("runs/<str:ref>", views.RunDetail.as_view(), name="run"),
    path("handoffs/<str:ref>", views.HandoffDetail.as_view(), name="handoff"),
    path("handoffs/<str:ref>/previews", views.Previews.as_view(), name="previews"),
    path("handoffs/<str:ref>/commands/<slug:verb>", views.Commands.as_view(), name="command"),
    path("bulks", bulks.Bulks.as_view(), name="bulks"),
    re_path(
        r"^bulks/(?P<ref>[^/]+)/report\.(?P<form>csv|jsonl)$", bulks.BulkReport.as_view(), name="bulk-report"
    ),
    path("bulks/<str:ref>/<slug:act>", bulks.BulkCommands.as_view(), name="bulk-command"),
    path("bulks/<str:ref>", bulks.BulkDetail.as_view(), name="bulk"),
    path("signoffs", views.Signoffs.as_view(), name="signoffs"),
    path("signoffs/<str:ref>", views.SignoffDetail.as_view(), name="signoff"),
    path("signoffs/<str:ref>/<slug:verb>", views.SignoffCommands.as_view(), name="signoff-command"),
    path("commands/<slug:verb>", views.Commands.as_view(), name="system-command"),
    path("callbacks/<slug:tool>", callbacks.Callbacks.as_view(), name="callback"),
    re_path(r"^(?P<path>.*)$", csrf_exempt(login_not_required(problems.not_found))),
]
