// Keeps a page up to date, and adds what HTML alone can't: keys, copying, dragging over the timetable.
"use strict";

const EVERY = 1500, SLOWEST = 30000;
const FOCUSABLE = "a, button, input, summary, [tabindex]";
const main = document.querySelector("main[data-poll]");
const note = document.getElementById("updated");
const sent = new WeakMap(); // each live region, and its HTML as the server sent it
const waiting = new Map(); // regions that are held, and what is to come
let tag = "", wait = EVERY, last = new Date(), held = sessionStorage.getItem("held") === "1", timer = 0;

// ---- staying up to date ----

async function update() {
  clearTimeout(timer);
  if (held || document.hidden) return;
  try {
    const answer = await fetch(location.href, { headers: tag ? { "If-None-Match": tag } : {}, cache: "no-store" });
    if (answer.redirected) return say("You have been logged out: load the page again.");
    if (answer.status !== 200 && answer.status !== 304) throw new Error(answer.status);
    if (answer.status === 200) {
      tag = answer.headers.get("ETag") || "";
      show(new DOMParser().parseFromString(await answer.text(), "text/html"));
    }
    [wait, last] = [EVERY, new Date()];
    say("");
  } catch (error) {
    wait = Math.min(wait * 2, SLOWEST);
    say(`Not updated since ${last.toLocaleTimeString()}.`);
  }
  timer = setTimeout(update, wait);
}

function show(page) {
  for (const region of document.querySelectorAll("[data-live]")) {
    const fresh = page.getElementById(region.id);
    waiting.delete(region);
    if (!fresh || sent.get(region) === fresh.innerHTML) continue;
    if (isHeld(region)) fill(region, fresh);
    waiting.set(region, fresh);
  }
  tick();
}

function tick() {
  for (const [region, fresh] of waiting) {
    if (isHeld(region)) continue;
    waiting.delete(region);
    replace(region, fresh);
  }
  for (const time of document.querySelectorAll("time")) time.dataset.ago = ago((Date.now() - new Date(time.dateTime)) / 1000);
}

// A list is held while somebody points at it or is in it; and any text while it is being selected.
function isHeld(region) {
  const selection = getSelection();
  if (!selection.isCollapsed && region.contains(selection.anchorNode)) return true;
  return region.matches("[data-rows]") && (region.matches(":hover") || region.contains(document.activeElement));
}

// Rows stay where they are then; only what is in them changes.
function fill(region, fresh) {
  for (const row of region.querySelectorAll("tr[id]")) {
    const next = fresh.querySelector(`#${CSS.escape(row.id)}`);
    for (const [place, cell] of [...row.cells].entries()) {
      const html = next?.cells[place]?.innerHTML;
      if (html !== undefined && !cell.querySelector("input, button") && sent.get(cell) !== html) {
        sent.set(cell, html);
        cell.innerHTML = html;
      }
    }
  }
}

function replace(region, fresh) {
  const checked = [...region.querySelectorAll("input:checked")].map((box) => box.name);
  const open = [...region.querySelectorAll("details[open][id]")].map((one) => one.id);
  const focus = [...region.querySelectorAll(FOCUSABLE)].indexOf(document.activeElement);
  const [x, y] = [region.scrollLeft, region.scrollTop];
  sent.set(region, fresh.innerHTML);
  region.replaceChildren(...fresh.childNodes);
  for (const box of region.querySelectorAll("input[type=checkbox]")) box.checked = checked.includes(box.name);
  for (const id of open) region.querySelector(`#${CSS.escape(id)}`)?.setAttribute("open", "");
  region.scrollTo(x, y);
  if (focus >= 0) region.querySelectorAll(FOCUSABLE)[focus]?.focus({ preventScroll: true });
  rove();
}

function say(text) {
  if (note && note.textContent !== text) note.textContent = text;
}

function hold(on) {
  held = on;
  sessionStorage.setItem("held", on ? "1" : "0");
  document.getElementById("hold")?.setAttribute("aria-pressed", on);
  say(on ? "Updates are held." : "");
  if (!on && main) update();
}

function ago(seconds) {
  const [size, name] = [[86400, "d"], [3600, "h"], [60, "min"], [1, "s"]].find(([size]) => Math.abs(seconds) >= size) || [1, "s"];
  const text = `${Math.floor(Math.abs(seconds) / size)} ${name}`;
  return seconds < 0 ? `in ${text}` : `${text} ago`;
}

// ---- the timetable: arrows move, Shift or a drag marks a range of one row ----

const cells = (row) => [...row.querySelectorAll("button.cell")];
let first = null, ended = null;

function rove() {
  const all = document.querySelectorAll("button.cell");
  for (const cell of all) cell.tabIndex = -1;
  if (all.length) all[all.length - 1].tabIndex = 0;
}

function mark(to) {
  if (!first || to?.closest("tr") !== first.closest("tr")) return;
  ended = to;
  const row = cells(first.closest("tr"));
  const [low, high] = [row.indexOf(first), row.indexOf(to)].sort((one, other) => one - other);
  for (const cell of document.querySelectorAll(".cell.marked")) cell.classList.remove("marked");
  for (const cell of row.slice(low, high + 1)) cell.classList.add("marked");
}

function plan() {
  if (!first || !ended || first === ended) return false;
  const step = Number(first.closest("table").dataset.step);
  const ends = [first, ended].map((cell) => new Date(cell.value.split(" ")[1] + "Z")).sort((one, other) => one - other);
  const query = new URLSearchParams(new FormData(document.getElementById("grid-form")));
  query.set("task", first.closest("tr").dataset.task);
  query.set("from", ends[0].toISOString());
  query.set("to", new Date(ends[1].getTime() + (step - 1) * 1000).toISOString());
  location.assign(`/timetable?${query}`);
  return true;
}

function move(cell, key) {
  const row = cell.closest("tr"), place = cell.closest("td").cellIndex;
  const along = { ArrowLeft: -1, ArrowRight: 1 }[key];
  if (along) return cells(row)[cells(row).indexOf(cell) + along];
  const next = key === "ArrowUp" ? row.previousElementSibling : row.nextElementSibling;
  return next?.cells[place]?.querySelector("button") || (next && cells(next)[0]);
}

document.addEventListener("pointerdown", (event) => {
  const cell = event.target.closest("button.cell");
  if (cell && event.pointerType === "mouse") first = ended = cell;
});
document.addEventListener("pointerover", (event) => event.buttons === 1 && mark(event.target.closest?.("button.cell")));
document.addEventListener("pointerup", () => { plan(); first = null; });

// ---- keys, copying, the login by a link ----

let going = false;
document.addEventListener("keydown", (event) => {
  const cell = event.target.closest("button.cell");
  if (cell && event.key.startsWith("Arrow")) {
    const to = move(cell, event.key);
    event.preventDefault();
    if (!to) return;
    to.focus();
    if (event.shiftKey) { first ||= cell; mark(to); } else first = null;
    return;
  }
  if (cell && event.key === "Enter" && first && plan()) return event.preventDefault();
  if (event.target.matches("input, select, textarea") || event.ctrlKey || event.metaKey || event.altKey) return;
  if (going) document.querySelector(`nav a[data-key="${CSS.escape(event.key)}"]`)?.click();
  going = event.key === "g" && !going;
  if (event.key === "h") hold(!held);
  if (event.key === "?") document.getElementById("key-list")?.showModal();
  if (event.key === "/") { event.preventDefault(); document.querySelector("main input:not([type=hidden]), main select")?.focus(); }
});
document.addEventListener("click", async (event) => {
  if (event.target.id === "hold") hold(!held);
  if (event.target.id === "keys") document.getElementById("key-list").showModal();
  if (event.target.matches(".copy")) {
    await navigator.clipboard.writeText(event.target.previousElementSibling.textContent);
    event.target.textContent = "Copied";
  }
});

const login = document.getElementById("login");
if (login && location.hash.startsWith("#token=")) {
  login.elements.token.value = decodeURIComponent(location.hash.slice(7));
  history.replaceState(null, "", location.pathname + location.search);
  if (["127.0.0.1", "localhost"].includes(location.hostname)) login.requestSubmit();
}
for (const region of document.querySelectorAll("[data-live]")) sent.set(region, region.innerHTML);
rove();
[...document.querySelectorAll(".grid tbody tr:first-child .cell")].pop()?.scrollIntoView({ block: "nearest", inline: "end" });
tick();
setInterval(tick, 1000);
if (main) {
  if (held) hold(true);
  document.addEventListener("visibilitychange", update);
  timer = setTimeout(update, EVERY);
}
