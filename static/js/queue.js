// The queue: the row at hand, a selection that news do not touch, and polls that never move a row. Everything here
// is a comfort: links, checkboxes and forms do the same without it, and no key writes.
const $ = (selector, root = document) => root.querySelector(selector);
const all = (selector, root = document) => [...root.querySelectorAll(selector)];
const body = document.body;
const poll = $("#poll");
const at = () => $("#at").dataset;

// --- The row at hand: one row's controls are in the tab order, J and K or the arrows make another one that row ----

let hand = "";
const stops = () => all("#rows tr[data-ref] .ttl, #rows .fold");
const row = () => (hand ? document.getElementById(hand) : null);

function take(next) {
  hand = next?.id ?? hand;
  all("#rows tbody tr").forEach((one, number) => {
    const current = hand !== "" && one.id === hand;
    one.classList.toggle("cur", current);
    if (current) one.setAttribute("aria-current", "true"); else one.removeAttribute("aria-current");
    if (body.dataset.keys !== "on") return;
    const open = row() ? current : number === 0;
    all("a, button, input", one).forEach((control) => { control.tabIndex = open ? 0 : -1; });
  });
}
function move(by) {
  const places = stops();
  if (!places.length) return;
  const here = places.findIndex((one) => one.closest("tr").id === hand);
  const next = places[Math.min(Math.max(here + by, 0), places.length - 1)];
  take(next.closest("tr"));
  next.focus();
}
body.addEventListener("focusin", (event) => {
  const touched = event.target.closest?.("#rows tbody tr[id]");
  if (touched && touched.id !== hand) take(touched);
});

// --- The selection: references that stay picked while their rows are told anew ------------------------------------

let picked = new Set();
let last = "";
const boxes = () => all("#selection input[name=case]");
const ref = (box) => box.value.split(":")[0];

function tell() {
  const label = $("#selected");
  if (label) label.textContent = label.dataset.some.replace("{n}", picked.size);
  const every = $("#select-all");
  if (every) every.checked = picked.size > 0 && picked.size === boxes().length;
}
function choose(box, on) {
  box.checked = on;
  if (on) picked.add(ref(box)); else picked.delete(ref(box));
  last = ref(box);
}
function clear() {
  boxes().forEach((box) => choose(box, false));
  tell();
}
body.addEventListener("change", (event) => {
  if (event.target.id === "select-all") boxes().forEach((box) => choose(box, event.target.checked));
  else if (event.target.name === "case") choose(event.target, event.target.checked);
  else return;
  tell();
});
body.addEventListener("reset", (event) => { if (event.target.id === "selection") { event.preventDefault(); clear(); } });

function pick(range) {
  const box = $("input[name=case]", row() ?? document.createElement("tr"));
  if (!box) return;
  const every = boxes();
  const from = every.findIndex((one) => ref(one) === last);
  if (!range || from < 0) choose(box, !box.checked);
  else {
    const ends = [from, every.indexOf(box)].sort((a, b) => a - b);
    every.slice(ends[0], ends[1] + 1).forEach((one) => choose(one, true));
  }
  tell();
}

// What was swapped in is as it was: picked, at hand. What has left the page is picked no more.
function restore() {
  const there = boxes();
  picked = new Set(there.map(ref).filter((one) => picked.has(one)));
  there.forEach((box) => { box.checked = picked.has(ref(box)); });
  all("[data-script][hidden]").forEach((one) => { one.hidden = false; });
  take(row());
  tell();
  // The rail counts the same cases.
  all("nav a[href='/handoffs/'] .n").forEach((one) => { one.textContent = $("#load").dataset.open; });
  if (stale) lock(true);
}

// --- Keys that amends.js does not know ----------------------------------------------------------------------------

const go = (hash, act) => { const link = $("a.ttl", row() ?? document.createElement("tr")); if (link) location.assign(link.href + act + hash); };
const keys = {
  j: () => move(1),
  k: () => move(-1),
  x: () => pick(false),
  X: () => pick(true),
  c: () => $(".lnk", row() ?? document.createElement("tr"))?.focus(),
  q: () => (picked.size && $("#bulk-query") ? $("#bulk-query").focus() : go("#decide", "")),
  e: () => (picked.size && $("#bulk-escalate") ? $("#bulk-escalate").focus() : go("#decide", "?act=escalate")),
};
document.addEventListener("amends:key", (event) => {
  const { key, shift } = event.detail;
  if (key === "escape") { if (picked.size) { event.preventDefault(); clear(); } return; }
  const action = keys[shift && key === "x" ? "X" : key];
  if (action) { event.preventDefault(); action(); }
});
document.addEventListener("keydown", (event) => {
  const by = { ArrowDown: 1, ArrowUp: -1 }[event.key];
  if (by && event.target.matches?.("#rows .ttl, #rows .fold")) { event.preventDefault(); move(by); }
});

// --- News ---------------------------------------------------------------------------------------------------------

let told = performance.now();
let asked = "";

body.addEventListener("htmx:configRequest", (event) => {
  if (event.target !== poll) return;
  asked = at().cursor;
  event.detail.path = at().changes;
  event.detail.headers["Amends-Shown"] = at().shown;
  // Deadlines come nearer without anybody changing anything: once a minute every row is told anew.
  Object.assign(event.detail.parameters, { since: asked, aged: performance.now() - told > 60_000 ? "1" : "0" });
});
body.addEventListener("htmx:beforeSwap", (event) => {
  if (event.detail.requestConfig?.elt !== poll) return;
  // The answer to a question about a page that has been replaced meanwhile, or no answer of ours at all.
  if (asked !== at().cursor || event.detail.xhr.status >= 400) event.detail.shouldSwap = false;
});
body.addEventListener("htmx:afterRequest", (event) => {
  clearTimeout(slow);
  $("#cases").classList.remove("slow");
  const answer = event.detail.xhr;
  const good = Boolean(answer) && answer.status > 0 && answer.status < 400;
  if (event.target !== poll) return good || event.detail.target?.id !== "cases" ? undefined : fail();
  if (!good || !answer.getResponseHeader("X-Cursor")) return fail();
  fresh();
  if (asked !== at().cursor) return;
  at().cursor = answer.getResponseHeader("X-Cursor");
  if (answer.status === 200 && performance.now() - told > 60_000) told = performance.now();
  look(JSON.parse(decodeURIComponent(answer.getResponseHeader("X-Viewers") ?? "{}")));
});
function look(viewers) {
  all("#rows tr[data-ref]").forEach((one) => {
    const note = $(".viewing", one);
    const there = viewers[one.dataset.ref];
    const alone = there?.who.length === 1 && there.who[0] === note.dataset.holder;
    const says = alone ? at().alone : there?.says ?? "";
    if (note.textContent !== says) note.textContent = says;
  });
}
body.addEventListener("htmx:afterSettle", (event) => {
  if (event.detail.target?.id === "cases" || event.detail.elt?.id === "cases") told = performance.now();
  restore();
});
body.addEventListener("htmx:oobAfterSwap", restore);

// --- A list that cannot be refreshed says so, and nothing is done on the strength of it ----------------------------

let stale = 0;
let slow = 0;
const note = $("#stale");

function fail() {
  const since = $("#live")?.dataset.checked ?? "";
  const says = $("[data-says]", note);
  const again = $("[data-again]", note);
  let left = Number(($("[data-hurry]") ?? poll).dataset.every);
  clearInterval(stale);
  stale = setInterval(() => { left = Math.max(left - 1, 1); again.textContent = again.dataset.again.replace("{n}", left); }, 1000);
  again.textContent = again.dataset.again.replace("{n}", left);
  const words = says.dataset.says.replace("{time}", since);
  if (says.textContent !== words) says.textContent = words;
  note.hidden = false;
  lock(true);
}
function fresh() {
  if (!stale) return;
  clearInterval(stale);
  stale = 0;
  note.hidden = true;
  lock(false);
}
function lock(on) {
  all("#cases button").forEach((button) => { if (on) button.setAttribute("aria-disabled", "true"); else button.removeAttribute("aria-disabled"); });
}
for (const kind of ["click", "submit"]) {
  document.addEventListener(kind, (event) => {
    const control = kind === "click" ? event.target.closest?.("#cases button") : event.target.closest?.("#cases form");
    if (stale && control) { event.preventDefault(); event.stopImmediatePropagation(); }
  }, true);
}
body.addEventListener("htmx:beforeRequest", (event) => {
  if (event.target === poll || event.detail.target?.id !== "cases") return;
  clearTimeout(slow);
  slow = setTimeout(() => { $("#cases").classList.add("slow"); $("#cases").setAttribute("aria-busy", "true"); }, 400);
});

if (matchMedia("(max-width: 720px)").matches) $(".picks").open = false;
restore();
