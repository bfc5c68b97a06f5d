// Keys, polling, focus and the live mark. Every page works without this file; no key here runs a write
// except Ctrl+Enter, which presses the visible run button.
const $ = (selector, root = document) => root.querySelector(selector);
const all = (selector, root = document) => [...root.querySelectorAll(selector)];
const body = document.body;
const page = body.dataset.page;
const singleKeys = () => body.dataset.keys === "on";
const typing = (element) => element.closest("input:not([type=radio]):not([type=checkbox]), textarea, select, [contenteditable]");

// --- Live: poll while the page is visible, say when it was last checked -----------------------------------

const poll = $("#poll");
const live = $("#live");
let checked = live?.dataset.checked ?? "";

function tick() {
  if (!document.hidden && !$("[data-ended]")) poll.dispatchEvent(new CustomEvent("amends:tick"));
}
if (poll) {
  setInterval(tick, Number(poll.dataset.every) * 1000);
  document.addEventListener("visibilitychange", tick);
}

function mark(alive) {
  if (!live) return;
  live.classList.toggle("off", !alive);
  live.textContent = (alive ? live.dataset.on : live.dataset.off).replace("{time}", checked);
}

const hasDraft = () => all("#run textarea, #run input:not([type=hidden])").some((field) =>
  field.type === "checkbox" || field.type === "radio" ? field.checked !== field.defaultChecked : field.value.trim());

body.addEventListener("htmx:configRequest", (event) => {
  if (event.target !== poll) return;
  const result = $("#result");
  Object.assign(event.detail.parameters, {
    freezes: body.dataset.freezes ?? "",
    v: $("#seen")?.dataset.version ?? "",
    seq: $("#seen")?.dataset.seq ?? "",
    seen: $("#seen")?.dataset.seen ?? "",
    draft: hasDraft() ? "1" : "0",
    act: $("#acts input:checked")?.value ?? "",
    waiting: result?.dataset.waiting ?? "",
    result: result ? "1" : "0",
  });
});
body.addEventListener("htmx:afterRequest", (event) => {
  if (event.target !== poll) return;
  const stamp = event.detail.xhr?.getResponseHeader("X-Checked");
  if (stamp) { checked = stamp; if (live) live.dataset.checked = stamp; }
  mark(event.detail.successful && Boolean(stamp));
  const viewers = event.detail.xhr?.getResponseHeader("X-Viewers");
  if (viewers !== null && $("#viewers")) $("#viewers").textContent = decodeURIComponent(viewers ?? "");
});

// --- Focus is never lost: a result takes it, else it stays where it was -----------------------------------

let focused = "";
let opened = new Set();
body.addEventListener("htmx:beforeSwap", (event) => {
  focused = document.activeElement?.id ?? "";
  opened = new Set(all("details[open]").map((one) => one.id).filter(Boolean));
  const target = event.detail.target;
  target?.setAttribute("aria-busy", "true");
});
body.addEventListener("htmx:afterSettle", (event) => {
  all("[aria-busy]").forEach((one) => one.removeAttribute("aria-busy"));
  if (event.detail.target?.id === "case-body") all("details[id]").forEach((one) => { one.open ||= opened.has(one.id); });
  wake();
  const mine = event.detail.requestConfig?.elt !== poll;
  const result = $("#result");
  if (mine) reveal(event.detail.target?.id);
  if (mine && result && event.detail.target?.id !== "preview") return result.focus();
  if (document.activeElement === body || !document.activeElement) {
    (focused && document.getElementById(focused) || $("tr.cur .ttl") || $("#go button") || $("#decide [data-key]") || $("#main"))?.focus({ preventScroll: true });
  }
});

// The panel scrolls by itself: a picked preview, or the field that needs fixing, comes into its view.
function reveal(target) {
  const panel = $("#decide");
  const wanted = $("#decide [aria-invalid]")?.closest(".field") ?? (target === "preview" ? $("#preview") : null);
  if (panel && wanted) panel.scrollTop += wanted.getBoundingClientRect().top - panel.getBoundingClientRect().top - 48;
}

// --- Small comforts: copy buttons, dialogs, the help sheet ------------------------------------------------

function wake() {
  // A dialog that came open, because something in it needs fixing, keeps the focus inside like any other.
  all("dialog.dlg[open]").forEach((dialog) => { if (!dialog.matches(":modal")) { dialog.close(); dialog.showModal(); } });
  if (navigator.clipboard) all("[data-copy][hidden]").forEach((button) => { button.hidden = false; });
}
body.addEventListener("click", (event) => {
  const copy = event.target.closest("[data-copy]");
  if (copy) navigator.clipboard.writeText(copy.dataset.copy);
  const opener = event.target.closest("[data-dialog]");
  if (opener) { event.preventDefault(); document.getElementById(opener.dataset.dialog)?.showModal(); }
  if (event.target.closest("[data-close]")) { event.preventDefault(); event.target.closest("dialog").close(); }
  const sheet = event.target.closest("[data-sheet]");
  if (sheet && !event.ctrlKey && !event.metaKey) {
    event.preventDefault();
    openSheet(sheet.href);
  }
});
async function openSheet(address) {
  const dialog = $("#sheet");
  await htmx.ajax("GET", address, { target: "#sheet", swap: "innerHTML" });
  if (!dialog.open) dialog.showModal();
}

// --- Keys: pick and move ----------------------------------------------------------------------------------

const links = { g: { h: "/handoffs/", s: "/signoffs/", r: "/runs/", w: "/workflows/", o: "/tools/", y: "/system/" } };
let prefix = "";

function move(selector, by) {
  const stops = all(selector);
  if (!stops.length) return;
  const here = stops.findIndex((one) => one === document.activeElement || one.closest("tr.cur"));
  const next = stops[Math.min(Math.max(here + by, 0), stops.length - 1)];
  all("tr.cur").forEach((row) => { row.classList.remove("cur"); row.removeAttribute("aria-current"); });
  const row = next.closest("tr");
  row?.classList.add("cur");
  row?.setAttribute("aria-current", "true");
  next.focus();
}

function select(text) {
  if (!text) return;
  text.focus();
  getSelection().selectAllChildren(text);
}

function pick(key) {
  const control = $(`#decide [data-key="${key}"]`);
  if (!control) return false;
  control.focus();
  if (control.matches("input[type=radio]") && !control.checked) control.click();
  return true;
}

const actions = {
  "?": () => openSheet($("[data-sheet]")?.href ?? "/help/"),
  "/": () => $("#search")?.focus(),
  f: () => $("#filter")?.focus(),
  u: () => $("[data-key=fresh]")?.click(),
  n: () => $("#comment")?.focus(),
  v: () => $("[data-key=use]")?.focus(),
  d: () => select($("[data-key=digest]")),
  j: () => (page === "case" ? move(".step > summary", 1) : move(".rl .ttl", 1)),
  k: () => (page === "case" ? move(".step > summary", -1) : move(".rl .ttl", -1)),
  o: () => { const step = document.activeElement?.closest("details"); if (step) step.open = !step.open; },
  c: () => $("[data-verb=claim]")?.focus(),
};

document.addEventListener("keydown", (event) => {
  if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) {
    const run = $("#run #go button[type=submit]");
    if (run && !$("dialog[open]")) { event.preventDefault(); run.click(); }
    return;
  }
  if (event.key === "Escape" && !event.defaultPrevented) return escape(event);
  if (!singleKeys() || event.ctrlKey || event.metaKey || event.altKey || event.isComposing) return;
  if (typing(event.target) || $("dialog[open]")) return;
  const key = event.key.length === 1 ? event.key.toLowerCase() : "";
  if (!key) return;
  if (prefix === "g") {
    prefix = "";
    const target = key === "t" ? $("[data-key=trail]")?.href : links.g[key];
    if (target) { event.preventDefault(); location.assign(target); }
    return;
  }
  if (key === "g") { prefix = "g"; setTimeout(() => { prefix = ""; }, 1500); return; }
  if (taken(key, event.shiftKey)) return event.preventDefault();
  if (pick(key)) return event.preventDefault();
  if (actions[key]) { event.preventDefault(); actions[key](); }
});

// A page with a script of its own is asked first; what it takes is not handled here.
function taken(key, shift = false) {
  return !document.dispatchEvent(new CustomEvent("amends:key", { detail: { key, shift }, cancelable: true }));
}

function escape(event) {
  if ($("dialog[open]")) return;
  if (typing(event.target)) return event.target.blur();
  if (taken("escape")) return event.preventDefault();
  const up = all(".crumb a").at(-1);
  if (up) location.assign(up.href);
}

wake();
