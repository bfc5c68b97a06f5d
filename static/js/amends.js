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
// Asked anew before each tick: what hurries (a bulk under way) may begin and end while the page is open.
const pace = () => Number(($("[data-hurry]") ?? poll).dataset.every) * 1000;
let ticking = poll && setTimeout(function next() { ticking = setTimeout(next, pace()); tick(); }, pace());
if (poll) document.addEventListener("visibilitychange", () => { if (ticking) tick(); });

// Banners are on every page, polled or not: what is frozen, and whether automatic work stands still.
const pulse = $("#pulse");
async function beat() {
  if (document.hidden) return;
  const shown = $("#banners")?.dataset.banners ?? "";
  const answer = await fetch(`${pulse.dataset.banners}?shown=${encodeURIComponent(shown)}`).catch(() => null);
  if (answer?.status === 200 && !answer.redirected) htmx.swap("#freeze-slot", await answer.text(), { swapStyle: "innerHTML" });
}
if (pulse) {
  setInterval(beat, 8000);
  document.addEventListener("visibilitychange", beat);
  pulse.addEventListener("amends:pulse", beat);
}

function mark(alive) {
  if (!live) return;
  live.classList.toggle("off", !alive);
  live.textContent = (alive ? live.dataset.on : live.dataset.off).replace("{time}", checked);
}

// Whether a field holds something else than the server gave it.
function touched(field) {
  if (field.matches("select")) return !field.options[field.selectedIndex]?.defaultSelected && (field.selectedIndex > 0 || Boolean($("[selected]", field)));
  return ["checkbox", "radio"].includes(field.type) ? field.checked !== field.defaultChecked : field.value !== field.defaultValue;
}
// A choice that came with the page (whom a link hands the case to) is as much a draft as one that was made on it.
const isDraft = (field) => field.matches("[type=checkbox], [type=radio]") ? touched(field)
  : field.matches("select") ? field.selectedIndex > 0 || touched(field) : field.value.trim();
const hasDraft = () => all("#run textarea, #run select, #run input:not([type=hidden]), #reject textarea, #reject select").some(isDraft);

// News leaves alone what somebody is at: what they wrote, picked or opened stays as they left it.
let news = false;
Idiomorph.defaults.callbacks.beforeAttributeUpdated = (name, element, change) => {
  // Taking the attribute away would leave the page behind a dialog that is modal.
  if (!news && name === "open" && change === "remove" && element.matches("dialog")) { element.close(); return false; }
  if (!news) return true;
  if (name === "open") return change !== "remove" || !element.matches("details[id], dialog");
  const field = element.closest("textarea, select, input:not([type=radio])");
  if (!field) return true;
  // What a tick stands for may change under it (the version of a case); that it is set may not.
  const theirs = field.matches("[type=checkbox]") ? "checked" : field.matches("select") ? "selected" : "value";
  return name !== theirs || !touched(field);
};

body.addEventListener("htmx:configRequest", (event) => {
  if (event.target !== poll) return;
  const result = $("#result");
  Object.assign(event.detail.parameters, {
    freezes: $("#banners")?.dataset.freezes ?? "",
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
  if (event.detail.xhr?.status === 286) ticking = clearTimeout(ticking);  // nothing further comes of it
  const stamp = event.detail.xhr?.getResponseHeader("X-Checked");
  if (stamp) { checked = stamp; if (live) live.dataset.checked = stamp; }
  mark(event.detail.successful && Boolean(stamp));
  const viewers = event.detail.xhr?.getResponseHeader("X-Viewers");
  if (viewers !== null && $("#viewers")) $("#viewers").textContent = decodeURIComponent(viewers ?? "");
});

// --- Drafts: what was written survives a reload, a refusal and a poll, until it was sent ------------------------
// They are one person's: a logout drops them in every tab, and whoever logs in next finds none of another's.

const written = ":is(textarea, select.code)";
const drafts = `main form[method=post] ${written}`;
const me = `draft:${body.dataset.who}:`;
const actOf = (form) => `${form.elements.verb?.value ?? form.getAttribute("action")}.${form.elements.step?.value ?? ""}`;
const draftOf = (field) => `${me}${location.pathname}:${actOf(field.form)}:${field.name}`;
const keep = (field) => { if (field.value.trim()) sessionStorage.setItem(draftOf(field), field.value); else sessionStorage.removeItem(draftOf(field)); };
const forget = (form) => all(written, form.closest("form") ?? form).forEach((field) => sessionStorage.removeItem(draftOf(field)));
const recall = () => all(drafts).forEach((field) => { if (!field.value) field.value = sessionStorage.getItem(draftOf(field)) ?? ""; });
body.addEventListener("input", (event) => { if (event.target.matches(drafts)) keep(event.target); });

const drop = (but = "") => Object.keys(sessionStorage)
  .filter((key) => key.startsWith("draft:") && !(but && key.startsWith(but)))
  .forEach((key) => sessionStorage.removeItem(key));
const logouts = new BroadcastChannel("logout");
logouts.onmessage = () => drop();
body.addEventListener("submit", (event) => {
  if (!event.defaultPrevented) forget(event.target);  // the page that comes back holds what was refused
  if (!event.target.matches("[data-logout]")) return;
  drop();
  logouts.postMessage("");
});
if (body.dataset.who) drop(me);

// --- Focus is never lost: a result takes it, else it stays where it was -----------------------------------

let focused = "";
let opened = new Set();
body.addEventListener("htmx:beforeSwap", (event) => {
  news = event.detail.requestConfig?.elt === poll;
  // A look for news that failed is told by the live mark. What came of the last thing that somebody did is told once.
  if (news && event.detail.xhr.status >= 400) return void (event.detail.shouldSwap = false);
  if (event.detail.requestConfig?.verb === "post") $("#main > #result")?.remove();
  // Rows that take their time are hidden, and a button in flight is off: what had the focus is what was asked by.
  const held = document.activeElement;
  focused = (held && held !== body ? held : event.detail.requestConfig?.elt)?.id ?? "";
  opened = new Set(all("details[open]").map((one) => one.id).filter(Boolean));
  // To htmx every answer that it swaps in is a success; what was refused was not sent. Before the swap, because a morph
  // may move a field into another form.
  if (event.detail.requestConfig?.verb === "post" && event.detail.xhr.status < 400) forget(event.detail.requestConfig.elt);
  event.detail.target?.setAttribute("aria-busy", "true");
});
body.addEventListener("htmx:afterSettle", (event) => {
  all("[aria-busy]").forEach((one) => one.removeAttribute("aria-busy"));
  const mine = event.detail.requestConfig?.elt !== poll;
  if (!mine || event.detail.target?.id === "case-body") all("details[id]").forEach((one) => { one.open ||= opened.has(one.id); });
  wake();
  const result = $("#result");
  if (mine) reveal(event.detail.target?.id);
  const wrong = $("dialog[open] [aria-invalid]");
  if (mine && wrong) return wrong.focus();
  if (mine && result && !["preview", "stops"].includes(event.detail.target?.id)) return result.focus();
  if (document.activeElement === body || !document.activeElement) {
    const stops = [focused && document.getElementById(focused), $("tr.cur .ttl"), $("#go button"), $("#decide [data-key]"), $("#main")].filter(Boolean);
    // What is hidden or switched off takes no focus: the next one gets it.
    stops.find((one) => { one.focus({ preventScroll: true }); return document.activeElement === one; });
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
  recall();
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
  if (!control.matches("input[type=radio]")) return true;
  // Picked before, and what it would do has been swapped away since: it is shown again.
  if (!control.checked) control.click(); else if (!$("#run")) htmx.trigger(control, "change");
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
  s: () => $("[data-key=s]")?.focus(),
  p: () => $("[data-key=p]")?.focus(),
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
