"use strict";
// The page of `holdall serve`. Names are shown as text only: none is ever read as HTML.

const PIECE = 8 << 20;
const $ = (id) => document.getElementById(id);
let csrf = "";
let next = null;
let shown = 0;

// Paths are addresses as the server gives them: they are taken apart and put together, and never
// read as names. A folder's ends with a slash.
const here = () => location.hash.slice(1) || "/";
// A browser would fold dots away; the server spells them so.
const segment = (name) => /^\.\.?$/.test(name) ? "holdall-hex-" + name.replaceAll(".", "2e") : encodeURIComponent(name);
const join = (folder, name) => (folder.endsWith("/") ? folder : folder + "/") + segment(name);
const bytesOf = (path) => "dav" + path;
const named = (segment) => { try { return decodeURIComponent(segment); } catch { return segment; } };

function make(tag, text, more = {}) {
  const node = document.createElement(tag);
  if (text !== undefined) node.textContent = text;
  for (const [name, value] of Object.entries(more)) node[name] = value;
  return node;
}

function say(text, action, run) {
  $("status").replaceChildren(text);
  if (action) $("status").append(make("button", action, { onclick: run }));
  if (text && !action) setTimeout(() => { if ($("status").textContent === text) say(""); }, 8000);
}

async function ask(method, url, options = {}) {
  const headers = { ...options.headers };
  if (method !== "GET") headers["X-Holdall-CSRF"] = csrf;
  const answer = await fetch(url, { method, headers, body: options.body, signal: options.signal });
  if (answer.status === 401) { showLogin(); throw new Error("log in first"); }
  if (!answer.ok && !(options.also || []).includes(answer.status)) {
    const text = await answer.text();
    let told = text;
    try { told = JSON.parse(text).error || text; } catch { /* plain text */ }
    throw new Error(told.trim() || answer.statusText);
  }
  return answer;
}

function guarded(run) {
  return async (...args) => {
    try { return await run(...args); } catch (e) { say(e.message); }
  };
}

function size(n) {
  const units = ["B", "kB", "MB", "GB", "TB"];
  let at = 0;
  while (n >= 1000 && at < units.length - 1) { n /= 1000; at += 1; }
  return (at && n < 10 ? n.toFixed(1) : Math.round(n)) + " " + units[at];
}

function showLogin() {
  $("app").hidden = true;
  $("login").hidden = false;
  $("name").focus();
}

async function start() {
  const answer = await fetch("session");
  if (!answer.ok) return showLogin();
  const session = await answer.json();
  csrf = session.csrf;
  $("user").textContent = session.name || "everybody";
  $("logout").hidden = !session.name;
  $("enter").hidden = !!session.name;
  $("reload").hidden = !session.health;
  $("health").hidden = !session.health;
  $("login").hidden = true;
  $("app").hidden = false;
  await show();
}

$("login").onsubmit = async (event) => {
  event.preventDefault();
  const body = JSON.stringify({ name: $("name").value, password: $("password").value });
  const headers = { "Content-Type": "application/json" };
  const answer = await fetch("login", { method: "POST", headers, body });
  const told = await answer.json();
  $("wrong").textContent = answer.ok ? "" : told.error;
  $("password").value = "";
  if (answer.ok) await start();
};

$("enter").onclick = showLogin;
$("reload").onclick = guarded(async () => {
  const told = await (await ask("POST", "reload")).json();
  const rest = told.restart.length ? ` A restart takes: ${told.restart.join(", ")}.` : "";
  say("Users, rights and certificates were read again." + rest);
});

$("logout").onclick = guarded(async () => { await ask("POST", "logout"); showLogin(); });

function crumbs(path) {
  const parts = path.split("/").filter(Boolean);
  const links = [make("a", "All", { href: "#" })];
  parts.forEach((part, n) => {
    links.push(make("span", "/"));
    links.push(make("a", named(part), { href: "#/" + parts.slice(0, n + 1).join("/") + "/" }));
  });
  $("crumbs").replaceChildren(...links);
}

function row(entry, write) {
  const path = entry.path;
  const line = document.createElement("tr");
  const name = document.createElement("td");
  if (entry.folder) {
    name.append(make("a", entry.name + "/", { href: "#" + path }));
  } else {
    name.append(make("button", entry.name, { onclick: guarded(() => look(path, entry)) }));
  }
  const changed = entry.modified ? new Date(entry.modified).toLocaleString() : "";
  const acts = make("td", undefined, { className: "acts" });
  if (!entry.folder) {
    const link = make("a", "Download", { href: bytesOf(path), download: entry.name, className: "button" });
    acts.append(link, make("button", "Share", { onclick: guarded(() => share(path, entry)) }));
  }
  if (write) {
    const remove = make("button", "Delete", { onclick: guarded(() => trash(path, entry)) });
    remove.setAttribute("aria-label", "Delete " + entry.name);
    acts.append(remove);
  }
  line.append(
    name,
    make("td", entry.folder ? "" : size(entry.size), { className: "size" }),
    make("td", changed, { className: "time" }),
    acts,
  );
  return line;
}

function cells(line, tag, values) {
  line.append(...values.map((value) => make(tag, value)));
  return line;
}

function figures(title, head, rows) {
  const table = document.createElement("table");
  if (head) table.append(cells(document.createElement("tr"), "th", head));
  table.append(...rows.map((row) => cells(document.createElement("tr"), "td", row)));
  const wide = make("div", undefined, { className: "wide" });
  wide.append(table);
  return [make("h2", title), wide];
}

const seconds = (s) => (s === null ? "over 8 s" : s < 1 ? "≤ " + +(s * 1000).toPrecision(3) + " ms" : "≤ " + s + " s");
const percent = (share) => (share * 100).toFixed(1) + " %";

// Space, speed and order of the stores, for who administrates all of their collections.
async function showHealth() {
  crumbs("");
  const turn = ++shown;
  const told = await (await ask("GET", "health")).json();
  if (turn !== shown) return;
  const parts = [];
  told.stores.forEach((store, n) => {
    const { stat } = store, { contract, space } = stat;
    parts.push(...figures(store.name, null, [
      ["Objects", stat.objects.toLocaleString()],
      ["Their bytes", size(stat.logical_bytes)],
      ["File", size(stat.file_bytes)],
      ["Promise on space", `${size(contract.file_bytes)} of at most ${size(contract.most_bytes)}: ${contract.holds ? "kept" : "not kept"}`],
      ["Full", space.reserve_bytes ? `${percent(space.full)} of ${size(space.limit_bytes)}` : "grows with the disk's room"],
      ["Order", store.score.toFixed(3) + " of 1"],
      ["Would help", stat.remedy ? String(stat.remedy.text || stat.remedy) : "nothing needed"],
    ]));
    const map = make("iframe", undefined, { src: "report?store=" + n, title: "How " + store.name + " lies in its file" });
    map.loading = "lazy";
    parts.push(map);
  });
  const rows = told.latencies.map((l) => [l.method, l.count.toLocaleString(), seconds(l.p50), seconds(l.p99)]);
  const times = figures("Answer times since the start", ["Method", "Requests", "Half", "99 of 100"], rows);
  $("state").replaceChildren(...times, ...parts);
  document.title = "Health – Holdall";
}

// What was deleted here and can be brought back.
async function showTrash(more) {
  if (!more) { crumbs(""); next = null; }
  const turn = ++shown;
  const query = new URLSearchParams(more && next ? { after: next } : {});
  const found = await (await ask("GET", "trash?" + query)).json();
  if (turn !== shown) return;
  const rows = found.entries.map((entry) => {
    const line = document.createElement("tr"), acts = make("td", undefined, { className: "acts" });
    const back = make("button", "Restore", { onclick: guarded(() => restore(entry)) });
    back.setAttribute("aria-label", "Restore " + entry.name);
    acts.append(back);
    line.append(
      make("td", entry.collection + "/" + entry.name),
      make("td", "", { className: "size" }),
      make("td", new Date(entry.deleted).toLocaleString(), { className: "time" }),
      acts,
    );
    return line;
  });
  if (more) $("rows").append(...rows); else $("rows").replaceChildren(...rows);
  next = found.next || null;
  $("more").hidden = !next;
  $("empty").hidden = more || rows.length > 0;
  $("about").textContent = `What is deleted here is kept for ${found.days} days.`;
  document.title = "Trash – Holdall";
}

async function restore(entry) {
  await ask("POST", "restore?" + new URLSearchParams({ id: entry.id }));
  say(`“${entry.name}” is back.`);
  await show();
}

async function show(more = false) {
  const folder = here();
  const files = folder.startsWith("/");
  $("state").hidden = folder !== "health";
  document.querySelector("main").hidden = folder === "health";
  $("about").textContent = "";
  $("when").textContent = files ? "Changed" : "Deleted";
  if (!files) $("tools").hidden = true;
  if (folder === "health") return showHealth();
  if (!files) return showTrash(more);
  if (!more) { crumbs(folder); next = null; }
  const turn = ++shown;
  const query = new URLSearchParams({ path: "/-/dav" + folder });
  if (more && next) query.set("after", next);
  const found = await (await ask("GET", "list?" + query)).json();
  if (turn !== shown) return;
  $("tools").hidden = !found.write;
  const rows = found.entries.map((entry) => row(entry, found.write));
  if (more) $("rows").append(...rows); else $("rows").replaceChildren(...rows);
  next = found.next || null;
  $("more").hidden = !next;
  $("empty").hidden = more || rows.length > 0;
  document.title = folder === "/" ? "Holdall" : named(folder.split("/").filter(Boolean).pop()) + " – Holdall";
}

window.onhashchange = guarded(() => show());
$("more").onclick = guarded(() => show(true));

function open(title, ...nodes) {
  $("title").textContent = title;
  $("content").replaceChildren(...nodes);
  $("look").showModal();
}

$("close").onclick = () => $("look").close();
$("look").onclose = () => $("content").replaceChildren();

async function look(path, entry) {
  const kind = entry.kind || "", src = bytesOf(path);
  if (/^image\//.test(kind)) return open(entry.name, make("img", undefined, { src, alt: entry.name }));
  if (/^video\//.test(kind)) return open(entry.name, make("video", undefined, { src, controls: true }));
  if (/^audio\//.test(kind)) return open(entry.name, make("audio", undefined, { src, controls: true }));
  if (/^text\/|json|xml|javascript/.test(kind) || entry.size === 0) {
    const headers = { Range: "bytes=0-65535" };
    const text = entry.size ? await (await ask("GET", src, { headers })).text() : "";
    const rest = entry.size > 65536 ? make("p", "The first 64 KiB of " + size(entry.size) + ".") : "";
    return open(entry.name, make("pre", text), rest);
  }
  const link = make("a", "Download " + size(entry.size), { href: src, download: entry.name });
  return open(entry.name, make("p", kind || "unknown type"), link);
}

async function share(path, entry) {
  const query = new URLSearchParams({ path: "/-/dav" + path, seconds: 86400 });
  const told = await (await ask("POST", "share?" + query)).json();
  const field = make("input", undefined, { value: told.url, readOnly: true });
  const copy = make("button", "Copy", { onclick: async () => {
    field.select();
    await navigator.clipboard.writeText(told.url);
    copy.textContent = "Copied";
  } });
  open("Link to " + entry.name, make("p", "Whoever has it reads the object for a day."), field, copy);
  field.select();
}

async function trash(path, entry) {
  const query = new URLSearchParams({ path: "/-/dav" + path });
  const told = await (await ask("POST", "trash?" + query)).json();
  await show();
  const undo = guarded(() => restore({ id: told.id, name: entry.name }));
  say(`“${entry.name}” is in the trash for ${told.days} days.`, "Undo", undo);
}

$("folder").onclick = guarded(async () => {
  const name = prompt("Name of the folder");
  if (!name) return;
  await ask("MKCOL", bytesOf(join(here(), name)));
  await show();
});

// A large file comes in pieces under a name of its own, so that an upload that was cut off goes on
// where it ended, and the file is there whole or not at all.
async function send(file, folder, progress, signal) {
  const path = join(folder, file.name);
  const headers = { "Content-Type": file.type || "application/octet-stream" };
  if (file.size <= PIECE) {
    await ask("PUT", bytesOf(path), { headers, body: file, signal });
    return progress(file.size);
  }
  const part = bytesOf(join(folder, `.${file.name}.${file.size}.${file.lastModified}.upload`));
  const known = await fetch(part, { method: "HEAD", signal });
  let at = known.ok ? Number(known.headers.get("Content-Length")) : 0;
  if (!known.ok || at > file.size) {
    at = 0;
    await ask("PUT", part, { headers, body: new Blob([]), signal });
  }
  while (at < file.size) {
    progress(at);
    const body = file.slice(at, at + PIECE);
    const range = `bytes=${at}-${at + body.size - 1}`;
    const type = "application/x-sabredav-partialupdate";
    await ask("PATCH", part, { headers: { "Content-Type": type, "X-Update-Range": range }, body, signal });
    at += body.size;
  }
  progress(at);
  await ask("MOVE", part, { headers: { Destination: "/-/dav" + path, "Holdall-Replace": "bytes" }, signal });
}

const upload = guarded(async (files) => {
  const folder = here();
  if (folder === "/" || !folder.startsWith("/")) return say("Open a collection first.");
  for (const file of files) {
    const stop = new AbortController();
    const bar = make("progress", undefined, { max: file.size || 1, value: 0 });
    const line = make("li", file.name);
    line.append(bar, make("button", "Cancel", { onclick: () => stop.abort() }));
    $("uploads").append(line);
    try {
      await send(file, folder, (n) => { bar.value = n || 1; }, stop.signal);
      line.remove();
    } catch (e) {
      line.replaceChildren(`${file.name}: ${e.message} `, make("button", "Go on", {
        onclick: () => { line.remove(); upload([file]); },
      }));
    }
  }
  await show();
});

$("files").onchange = () => upload([...$("files").files]).then(() => { $("files").value = ""; });
document.ondragover = (event) => { event.preventDefault(); document.body.classList.add("over"); };
document.ondragleave = () => document.body.classList.remove("over");
document.ondrop = (event) => {
  event.preventDefault();
  document.body.classList.remove("over");
  upload([...event.dataTransfer.files]);
};

start().catch((e) => say(e.message));
