// The dashboard: speaks the broker's HTTP API and nothing else. Whatever comes from outside is inserted as text.

const API = "/api/v1";
const ROWS_MAX = 200; // enough to scroll through; older events are a command away
const LOOK_BACK_BLOCKS = 500; // history shown at the start
const POLL_MS = 2000;
const RATE_WINDOW_MS = 60_000;
const TOPICS_MS = 10_000;
const TOPICS_MAX = 50; // shown beside the events
const $ = (id) => document.getElementById(id);

// --- text into the page

function element(tag, properties = {}, ...children) {
  const made = Object.assign(document.createElement(tag), properties);
  made.append(...children.filter((child) => child !== null)); // strings become text nodes, never markup
  return made;
}

const shorten = (hex) => (hex.length > 20 ? `${hex.slice(0, 10)}…${hex.slice(-6)}` : hex);
const pill = (text, kind = "plain") => element("span", { className: `pill ${kind}` }, text);
const code = (text) => element("code", {}, text);
const count = (number, noun) => `${number} ${noun}${number === 1 ? "" : "s"}`;

function fields(pairs) {
  const shown = pairs.flatMap(([name, value]) => [element("dt", {}, name), element("dd", {}, value)]);
  return element("dl", { className: "fields" }, ...shown);
}

function fill(list, items) {
  $(`${list}-list`).replaceChildren(...items);
  $(`no-${list}s`).hidden = items.length > 0;
}

// --- the broker

let key = sessionStorage.getItem("key") ?? "";

class Refused extends Error {}

async function call(path, options = {}) {
  const headers = { ...(options.headers ?? {}), ...(key ? { Authorization: `Bearer ${key}` } : {}) };
  const response = await fetch(API + path, { ...options, headers });
  if (response.ok) return response;
  if (response.status === 401) $("key-form").hidden = false;
  const problem = await response.json().catch(() => ({}));
  throw new Refused(problem.title ?? `the broker answered with HTTP ${response.status}`);
}

const ask = async (path) => (await call(path)).json();

// Reads server-sent events by fetch: EventSource cannot send a key.
async function* readEvents(path, lastId) {
  const response = await call(path, { headers: lastId ? { "Last-Event-ID": lastId } : {} });
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return;
    const frames = (rest + value).split("\n\n");
    rest = frames.pop();
    for (const frame of frames) yield parseFrame(frame);
  }
}

function parseFrame(frame) {
  const found = { event: "message", id: "", data: "" };
  for (const line of frame.split("\n")) {
    const at = line.indexOf(": ");
    if (at > 0) found[line.slice(0, at)] = line.slice(at + 2);
  }
  return found;
}

// --- what is known

const names = new Map(); // topic id -> name
const rows = new Map(); // place on the chain -> row of the list
const arrivals = []; // times at which events came
const heights = []; // [time, block number]
const reorgs = new Map(); // sequence -> what a reorg took back
const undone = []; // block numbers of undone events whose reorg is not known yet
let wantedName = "";
let journeys = Promise.resolve();

const books = { contract: "", exchanges: new Map(), queues: new Map() }; // what `Exchanges` holds, by id
const isMessage = (event) => books.contract !== "" && event.source.endsWith(books.contract);
const findName = (event) => (isMessage(event) ? books.exchanges.get(event.topic)?.name : names.get(event.topic));
const getName = (event) => `${isMessage(event) ? "exchange/" : ""}${findName(event) ?? shorten(event.topic)}`;
const getQueueName = (queue) => books.queues.get(queue)?.name ?? shorten(queue);
const getPlace = (event) => event.id.slice(0, event.id.lastIndexOf("/"));
const decodeBase64 = (text) => Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
const toHex = (bytes) => `0x${Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("")}`;

// Text where it is some; else the words found in the bytes, then the bytes.
function showPayload(bytes) {
  try {
    const text = new TextDecoder("utf-8", { fatal: true }).decode(bytes);
    if (!/[\p{Cc}\p{Cf}\p{Co}\p{Cn}]/u.test(text)) return text || "(empty)";
  } catch { /* not text */ }
  const words = Array.from(bytes, (byte) => (byte > 32 && byte < 127 ? String.fromCharCode(byte) : " ")).join("").match(/\S{3,}/g);
  return `${words ? `“${words.join(" ")}” in ` : ""}${toHex(bytes)}`;
}

// --- events and their journey

function buildRow(event) {
  const payload = decodeBase64(event.data_base64 ?? "");
  const row = { event, payload, journey: null, item: element("li", { className: "new" }) };
  row.steps = element("ol", { className: "journey" });
  row.steps.setAttribute("aria-label", "Journey");
  row.title = element("span", { className: "name" });
  row.detail = element("div", { className: "detail" });
  const head = element("span", { className: "row" },
    element("span", {}, row.title, ` #${Number(event.sequence)}`),
    element("time", { className: "faint", dateTime: event.time }, new Date(event.time).toLocaleTimeString()));
  const summary = element("summary", {}, head, element("span", { className: "payload" }, showPayload(payload)), row.steps);
  const details = element("details", {}, summary, row.detail);
  details.addEventListener("toggle", () => details.open && !row.isDetailed && showDetail(row));
  row.item.append(details);
  showSteps(row);
  return row;
}

function showSteps(row) {
  const { event, journey } = row;
  const delivered = journey?.contracts.filter((one) => one.outcome === "delivered").length;
  row.title.textContent = getName(event);
  row.item.classList.toggle("undone", row.isUndone === true);
  const steps = [
    pill(`published in block ${event.blocknumber}`),
    isMessage(event) ? pill(`key ${showKey(event)}`) : null,
    journey?.held.length ? pill(`held in ${journey.held.map(getQueueName).join(", ")}`, "") : null,
    journey?.contracts.length ? pill(`${delivered} of ${count(journey.contracts.length, "contract")}`, delivered ? "good" : "plain") : null,
    pill(`verified: ${event.trust}`, "good"),
    row.services ? pill(`delivered to ${count(row.services, "service")}`, "good") : null,
    row.isUndone ? pill("undone by a reorg", "bad") : null,
  ];
  row.steps.replaceChildren(...steps.filter(Boolean).map((step) => element("li", {}, step)));
}

async function loadJourney(row) {
  try {
    row.journey = await ask(`/events/${row.event.id}/journey`);
  } catch {
    return; // shown without: the block may have been dropped, or this broker does not tell
  }
  showSteps(row);
}

async function showDetail(row) {
  const { event, payload } = row;
  row.isDetailed = true;
  if (findName(event) === undefined) await showExchanges().catch(() => null);
  row.detail.append(fields([
    [isMessage(event) ? "exchange" : "topic", code(`${findName(event) ?? ""} ${event.topic}`)],
    ["key", code(isMessage(event) ? showKey(event) : event.eventkey)],
    ["contract", code(event.source)],
    ["publisher", code(event.publisher)],
    ["block", code(`${event.blocknumber} ${event.blockhash}`)],
    ["payload", code(showPayload(payload))],
  ]));
  if (!row.journey) await loadJourney(row);
  if (row.journey?.contracts.length) row.detail.append(buildOutcomes(row.journey));
  row.detail.append(buildCheck(row));
}

function buildOutcomes(journey) {
  const isRouted = journey.contracts.some((one) => one.queue);
  const heading = element("tr", {}, ...[isRouted ? "place" : "subscription", isRouted ? "queue" : "contract", "outcome"].map((text) => element("th", { scope: "col" }, text)));
  const lines = journey.contracts.map((one) => element("tr", {},
    element("td", {}, String(one.index)),
    element("td", {}, code(one.queue ? getQueueName(one.queue) : one.contract || "–")),
    element("td", {}, pill(one.outcome, one.outcome === "delivered" ? "good" : "bad"))));
  const caption = `Delivered to contracts in the publishing transaction${journey.remaining ? `, ${journey.remaining} in later pages` : ""}`;
  return element("table", {}, element("caption", {}, caption), element("thead", {}, heading), element("tbody", {}, ...lines));
}

// --- the list

function receive({ event: kind, data }) {
  if (kind === "heartbeat") return;
  const event = JSON.parse(data);
  if (kind === "rewind") {
    for (const row of rows.values()) if (Number(row.event.blocknumber) > event.number) markUndone(row);
    return;
  }
  kind === "undo" ? undo(event) : apply(event);
}

function apply(event) {
  arrivals.push(Date.now());
  const place = getPlace(event);
  rows.get(place)?.item.remove(); // applied again after it was undone
  const row = buildRow(event);
  rows.set(place, row);
  $("event-list").prepend(row.item);
  $("no-events").hidden = true;
  for (const [old, { item }] of rows) {
    if (rows.size <= ROWS_MAX) break;
    item.remove();
    rows.delete(old);
  }
  applyFilter(row);
  journeys = journeys.then(() => loadJourney(row)); // one after the other: a page full of events is no flood of requests
}

function undo(event) {
  const row = rows.get(getPlace(event));
  if (row) markUndone(row);
  undone.push(Number(event.blocknumber));
}

function markUndone(row) {
  row.isUndone = true;
  showSteps(row);
}

// Newest first, as the broker lists them; events are those that this page has seen undone.
function showReorgs(found) {
  for (const one of found) {
    const known = reorgs.get(one.sequence) ?? { time: new Date(), events: 0 };
    const mine = undone.filter((number) => number >= one.first && number <= one.last);
    undone.splice(0, undone.length, ...undone.filter((number) => !mine.includes(number)));
    reorgs.set(one.sequence, { ...known, events: known.events + mine.length });
  }
  $("reorg-count").textContent = String(found.length);
  fill("reorg", found.map(({ sequence, first, last }) => element("li", {},
    element("span", { className: "row" }, pill("undone", "bad"), element("span", { className: "faint" }, `seen ${reorgs.get(sequence).time.toLocaleTimeString()}`)),
    `${count(reorgs.get(sequence).events, "event")} of ${first === last ? `block ${last}` : `blocks ${first} to ${last}`}`)));
}

function applyFilter(row) {
  const pattern = wantedName.replace(/[.+^${}()|[\]\\]/g, "\\$&").replaceAll("*", ".*").replaceAll("?", ".");
  row.item.hidden = wantedName !== "" && !new RegExp(`^${pattern}$`).test(findName(row.event) ? getName(row.event) : "");
}

// --- figures and lists beside

function countRate(times) {
  while (times.length && times[0] < Date.now() - RATE_WINDOW_MS) times.shift();
  return times.length;
}

function countBlocks(number) {
  const now = Date.now();
  heights.push([now, number]);
  while (heights[0][0] < now - RATE_WINDOW_MS) heights.shift();
  return number - heights[0][1];
}

async function showStatus() {
  const status = await ask("/status");
  $("chain").textContent = String(status.chain);
  $("latest").textContent = String(status.blocks.latest.number);
  $("finalized").textContent = String(status.blocks.finalized.number);
  $("block-rate").textContent = String(Math.max(countBlocks(status.blocks.latest.number), 0));
  $("event-rate").textContent = String(countRate(arrivals));
  showReorgs(status.reorgs);
}

// The list may be long, so it is asked for when an event's topic is unknown, and now and then.
async function showTopics() {
  const isUnknown = [...rows.values()].some((row) => !isMessage(row.event) && !names.has(row.event.topic));
  if (!isUnknown && Date.now() < topicsDue) return;
  topicsDue = Date.now() + TOPICS_MS;
  const topics = [];
  for (let after = ""; after !== null; ) {
    const page = await ask(`/topics?limit=1000${after && `&after=${after}`}`);
    topics.push(...page.topics);
    after = page.next;
  }
  if (topics.length === names.size) return; // names never change
  for (const { topic, name } of topics) names.set(topic, name);
  const shown = topics.slice(0, TOPICS_MAX).map(({ topic, name }) => element("li", {}, element("span", { className: "name" }, name), code(shorten(topic))));
  if (topics.length > TOPICS_MAX) shown.push(element("li", { className: "faint" }, `and ${topics.length - TOPICS_MAX} more`));
  fill("topic", shown);
  for (const row of rows.values()) {
    showSteps(row);
    applyFilter(row);
  }
}

let topicsDue = 0;

// --- exchanges and queues

const showKey = (event) => showPayload(Uint8Array.from(event.eventkey.slice(2).match(/../g) ?? [], (pair) => parseInt(pair, 16)));
let shownBooks = "";

async function showExchanges() {
  const found = await ask("/exchanges");
  const state = JSON.stringify(found);
  if (state === shownBooks) return; // what is open stays open
  shownBooks = state;
  books.contract = found.contract;
  books.exchanges = new Map(found.exchanges.map((one) => [one.exchange, one]));
  books.queues = new Map(found.queues.map((one) => [one.queue, one]));
  fill("exchange", found.exchanges.slice(0, TOPICS_MAX).map(buildExchange));
  fill("queue", found.queues.slice(0, TOPICS_MAX).map(buildQueue));
  for (const row of rows.values()) {
    showSteps(row);
    applyFilter(row);
  }
}

function buildExchange(one) {
  const bindings = one.bindings.map(({ queue, key }) => element("li", {}, code(key), ` → ${getQueueName(queue)}`));
  return element("li", {},
    element("span", { className: "row" }, element("span", { className: "name" }, one.name), pill(count(one.messages, "message"))),
    element("details", {}, element("summary", {}, count(one.bindings.length, "binding")), element("ul", { className: "bindings" }, ...bindings)),
    code(shorten(one.exchange)));
}

function buildQueue(one) {
  const value = one.held_value_wei === "0" ? "" : `, ${one.held_value_wei} wei`;
  const held = one.held ? pill(`${one.held} held${value}`, "") : pill("nothing held", "good");
  return element("li", {},
    element("span", { className: "row" }, element("span", { className: "name" }, one.name), held),
    `${count(one.messages, "message")} for ${count(one.subscribers, "subscriber")}, delivered ${DELIVERED[one.condition] ?? ""}`,
    code(shorten(one.queue)));
}

const DELIVERED = {
  "at once": "at once", time: "after a time", event: "after an event", above: "above a gauge’s value",
  below: "below a gauge’s value", account: "by an account",
};

async function poll() {
  for (const look of [showStatus, showExchanges, showTopics, showSubscriptions, showPeers]) await look().catch(() => null);
  setTimeout(poll, POLL_MS);
}

// --- peers of the overlay: those beside this broker, and whom they are connected with

const GRAPH = { width: 340, height: 260, radius: 95 };
const SVG = "http://www.w3.org/2000/svg";
let shownPeers = "";

function draw(tag, attributes, ...children) {
  const made = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, String(value));
  made.append(...children);
  return made;
}

async function showPeers() {
  const { peers } = await ask("/peers");
  const state = JSON.stringify(peers);
  if (state === shownPeers) return; // drawing again would take the keyboard's place in the graph
  shownPeers = state;
  $("peers").hidden = peers.length === 0;
  drawGraph(peers);
}

function drawGraph(peers) {
  const nodes = new Map(peers.map((one) => [one.peer ?? one.name, { ...one, kind: one.problem ? "gone" : "own" }]));
  for (const id of peers.flatMap((one) => one.neighbours ?? [])) if (!nodes.has(id)) nodes.set(id, { peer: id, kind: "other" });
  const ids = [...nodes.keys()].sort();
  const places = new Map(ids.map((id, at) => [id, placeAt(at, ids.length)]));
  const pairs = peers.flatMap((one) => (one.neighbours ?? []).map((other) => [one.peer, other].sort().join(" ")));
  const lines = [...new Set(pairs)].map((pair) => drawLine(...pair.split(" "), places));
  const held = document.activeElement?.dataset?.peer;
  const graph = $("peer-graph");
  graph.setAttribute("viewBox", `0 0 ${GRAPH.width} ${GRAPH.height}`);
  graph.replaceChildren(...lines, ...ids.map((id) => drawPeer(id, nodes.get(id), places.get(id))));
  for (const one of graph.querySelectorAll("g")) if (one.dataset.peer === held) one.focus();
}

function placeAt(index, total) {
  const angle = (2 * Math.PI * index) / total - Math.PI / 2;
  const radius = total === 1 ? 0 : GRAPH.radius;
  return [GRAPH.width / 2 + 1.35 * radius * Math.cos(angle), GRAPH.height / 2 - 8 + radius * Math.sin(angle)];
}

function drawLine(one, other, places) {
  const [[x1, y1], [x2, y2]] = [places.get(one), places.get(other)];
  return draw("line", { x1, y1, x2, y2, "data-ends": `${one} ${other}` });
}

function drawPeer(id, peer, [x, y]) {
  const name = peer.name ?? `…${id.slice(-6)}`;
  const label = draw("text", { x, y: y + 26 }, name);
  const drawn = draw("g", { class: peer.kind, tabindex: 0, role: "button", "aria-label": describePeer(id, peer), "data-peer": id }, draw("circle", { cx: x, cy: y, r: 10 }), label);
  drawn.addEventListener("click", () => choosePeer(drawn));
  drawn.addEventListener("focus", () => choosePeer(drawn));
  return drawn;
}

function choosePeer(drawn) {
  for (const one of $("peer-graph").querySelectorAll("g")) one.classList.toggle("chosen", one === drawn);
  for (const line of $("peer-graph").querySelectorAll("line")) line.classList.toggle("near", line.dataset.ends.split(" ").includes(drawn.dataset.peer));
  $("peer-detail").textContent = drawn.getAttribute("aria-label");
}

function describePeer(id, peer) {
  if (peer.problem) return `${peer.name}: ${peer.problem}`;
  if (peer.kind === "other") return `${id}, a neighbour`;
  const wanted = peer.subscriptions.length ? `subscribed to ${peer.subscriptions.join(", ")}` : "no subscription";
  return `${peer.name}, ${id}: ${count(peer.neighbours.length, "neighbour")}, knows ${count(peer.known, "peer")}, ${count(peer.delivered, "event")} delivered, ${wanted}`;
}

// --- services

const SUBSCRIPTIONS_MAX = 100;
const ATTEMPTS_MAX = 100;
const getPath = (subscription) => `/subscriptions/${encodeURIComponent(subscription.name)}`;

async function showSubscriptions() {
  const { subscriptions } = await ask(`/subscriptions?limit=${SUBSCRIPTIONS_MAX}`);
  fill("subscription", subscriptions.map(buildSubscription));
  await showServices(subscriptions.filter((one) => one.transport === "webhook" || one.transport === "kafka"));
  await showLetters(subscriptions.filter((one) => one.dead_letters > 0));
}

function buildSubscription(one) {
  const lag = one.lag_blocks === 0 && one.pending === 0 ? "up to date" : `${count(one.lag_blocks, "block")} behind, ${one.pending} pending`;
  const wanted = one.filter.topic ?? one.filter.contract ?? one.filter.publisher ?? "everything";
  return element("li", {},
    element("span", { className: "row" },
      element("span", { className: "name" }, one.name),
      pill(one.status, one.status === "active" ? "good" : "bad")),
    element("span", { className: "row faint" },
      element("span", {}, `${one.transport} of `, code(names.get(wanted) ?? shorten(wanted))),
      element("span", {}, lag)),
    one.reason ? element("span", {}, one.reason) : null);
}

// Which of the shown events a receiver has taken.
async function showServices(subscriptions) {
  const takers = new Map();
  for (const one of subscriptions) {
    const { deliveries } = await ask(`${getPath(one)}/deliveries?limit=${ATTEMPTS_MAX}`);
    for (const { event, outcome } of deliveries) {
      if (outcome === "acknowledge") takers.set(event, (takers.get(event) ?? new Set()).add(one.name));
    }
  }
  for (const row of rows.values()) {
    const services = takers.get(row.event.id)?.size ?? 0;
    if (services === row.services) continue;
    row.services = services;
    showSteps(row);
  }
}

async function showLetters(subscriptions) {
  const found = [];
  for (const one of subscriptions) {
    const { dead_letters: letters } = await ask(`${getPath(one)}/dead-letters?limit=${ATTEMPTS_MAX}`);
    found.push(...letters.map((letter) => ({ subscription: one, ...letter })));
  }
  const shown = JSON.stringify(found.map(({ subscription, ordinal }) => [subscription.name, ordinal]));
  if (shown === shownLetters) return; // a button that is about to be pressed stays where it is
  shownLetters = shown;
  fill("letter", found.map(buildLetter));
}

let shownLetters = "";

function buildLetter({ subscription, event, reason, ordinal, attempts, undone }) {
  const title = `${getName(event)} #${Number(event.sequence)} for ${subscription.name}`;
  const button = element("button", { type: "button", ariaLabel: `Redrive ${title}` }, "Redrive");
  const verdict = element("span", {}, undone ? "undone by a reorg since" : `${reason}, after ${count(attempts, "attempt")}`);
  button.addEventListener("click", async () => {
    button.disabled = true;
    try {
      const headers = { "Content-Type": "application/json" };
      const body = JSON.stringify({ ordinals: [ordinal] });
      const done = await (await call(`${getPath(subscription)}/dead-letters/redrive`, { method: "POST", headers, body })).json();
      verdict.textContent = done.redriven ? "sent again" : "dropped: the chain has taken it back";
    } catch (error) {
      verdict.textContent = error.message;
      button.disabled = false;
    }
  });
  return element("li", {}, element("span", { className: "row" }, element("span", { className: "name" }, title), button), verdict);
}

// --- following

const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

function showState(text, kind) {
  $("state").textContent = text;
  $("state").className = `pill ${kind}`;
}

async function follow() {
  let lastId = "";
  for (let failures = 0; ; failures += 1) {
    try {
      const newest = (await ask("/status")).blocks.latest.number;
      const start = `block:${Math.max(newest - LOOK_BACK_BLOCKS, 0)}`;
      for await (const found of readEvents(`/events/stream?start=${start}`, lastId)) {
        failures = 0;
        showState("live", "good");
        if (found.id) lastId = found.id;
        receive(found);
      }
      showState("the broker ended the stream", "");
    } catch (error) {
      showState(error instanceof Refused ? error.message : "the broker does not answer", "bad");
    }
    await pause(Math.min(500 * 2 ** Math.min(failures, 5), 10_000));
  }
}

// --- evidence, checked in this browser

function buildCheck(row) {
  const input = element("input", { placeholder: row.event.blockhash, spellcheck: false, autocomplete: "off" });
  const label = element("label", {}, "Hash of a block that you trust; else this event’s own block, as the broker names it", input);
  const button = element("button", { type: "submit" }, "Check evidence");
  const verdict = element("p", { className: "verdict", hidden: true });
  verdict.setAttribute("role", "status");
  const form = element("form", { className: "check" }, label, button);
  form.addEventListener("submit", async (submitted) => {
    submitted.preventDefault();
    button.disabled = true;
    const [text, kind] = await judge(row, input.value.trim());
    verdict.textContent = text;
    verdict.className = `verdict ${kind}`;
    verdict.hidden = button.disabled = false;
  });
  return element("div", { className: "checking" }, form, verdict);
}

async function judge({ event }, named) {
  const trusted = (named || event.blockhash).toLowerCase();
  if (!/^0x[0-9a-f]{64}$/.test(trusted)) return ["A block hash is 0x and 64 hexadecimal digits.", "bad"];
  try {
    const query = named && trusted !== event.blockhash ? `?trust=${trusted}` : "";
    const response = await call(`/events/${event.id}/evidence${query}`);
    verifyEvidence(new Uint8Array(await response.arrayBuffer()), trusted, event);
  } catch (error) {
    return [`Not proven: ${error.message}.`, "bad"];
  }
  const believed = named ? "the block that you trust" : `block ${shorten(trusted)}; compare that hash with a node that you trust`;
  return [`Checked in this browser: topic, sequence, key, publisher and payload are in a log that leads by hashes to ${believed}.`, "good"];
}

function require(isTrue, what) {
  if (!isTrue) throw new Error(what);
}

// The rules of chain/evidence.py for headers, receipt and log; the word of trust and the transaction are not looked at.
function verifyEvidence(data, trusted, event) {
  const parts = decode(data);
  require(Array.isArray(parts.list) && parts.list.length === 8, "the evidence has not eight parts");
  const [form, , headers, index, position, logHash, receiptProof] = parts.list;
  require(new TextDecoder().decode(form.bytes) === "proofcast evidence 1", "this is no evidence");
  const header = verifyPath(headers.list, trusted);
  const receipt = verifyProof(toHex(header[5].bytes), index.raw, receiptProof.list.map((node) => node.bytes));
  const logs = decode(receipt[0] < 0x80 ? receipt.subarray(1) : receipt).list[3].list;
  const log = logs[toNumber(position.bytes)];
  require(log && toHex(keccak(log.raw)) === toHex(logHash.bytes), "the receipt has another log there");
  verifyEvent(log.list, event);
}

function verifyPath(headers, trusted) {
  require(headers.length > 0, "the evidence has no header");
  let parent = null;
  for (const header of headers) {
    require(parent === null || toHex(header.list[0].bytes) === parent, "the headers do not follow each other");
    parent = toHex(keccak(header.raw));
  }
  require(parent === trusted, `it leads to ${shorten(parent)}, not to ${shorten(trusted)}`);
  return headers[0].list;
}

// Of the contract `Exchanges`: Routed(exchange, sequence, publisher; value, queues, key, payload).
const ROUTED = "Routed(bytes32,uint256,address,uint256,uint256,bytes,bytes)";

function readBytes(data, word) {
  const at = toNumber(data.subarray(32 * word, 32 * word + 32));
  return data.subarray(at + 32, at + 32 + toNumber(data.subarray(at, at + 32)));
}

function verifyMessage([address, topics, data], event) {
  const [, exchange, sequence, publisher] = topics.list.map((one) => toHex(one.bytes));
  require(event.source.endsWith(toHex(address.bytes)), "the log is of another contract");
  require(exchange === event.topic, "the log is of another exchange");
  require(BigInt(sequence) === BigInt(event.sequence), "the log has another sequence number");
  require(`0x${publisher.slice(-40)}` === event.publisher, "the log names another publisher");
  require(toHex(readBytes(data.bytes, 2)) === event.eventkey, "the log has another routing key");
  require(toHex(readBytes(data.bytes, 3)) === toHex(decodeBase64(event.data_base64 ?? "")), "the log has another payload");
}

function verifyEvent([address, topics, data], event) {
  const kind = toHex(topics.list[0]?.bytes ?? new Uint8Array());
  if (kind === toHex(keccak(new TextEncoder().encode(ROUTED)))) return verifyMessage([address, topics, data], event);
  const [, topic, sequence, eventKey] = topics.list.map((one) => toHex(one.bytes));
  const words = data.bytes;
  const length = toNumber(words.subarray(64, 96));
  const payload = words.subarray(96, 96 + length);
  const none = `0x${"0".repeat(64)}`;
  require(event.source.endsWith(toHex(address.bytes)), "the log is of another contract");
  require(topic === event.topic, "the log is of another topic");
  require(BigInt(sequence) === BigInt(event.sequence), "the log has another sequence number");
  require((eventKey === none ? "0x" : eventKey) === event.eventkey, "the log has another key");
  require(toHex(words.subarray(12, 32)) === event.publisher, "the log names another publisher");
  require(toHex(payload) === toHex(decodeBase64(event.data_base64 ?? "")), "the log has another payload");
}

// A Merkle-Patricia proof: each node is named by the hash, or by the bytes, that its parent holds.
function verifyProof(root, keyBytes, nodes) {
  let path = Array.from(keyBytes).flatMap((byte) => [byte >> 4, byte & 15]);
  let node = takeNode(root, nodes);
  for (;;) {
    if (node.list.length === 17) {
      const next = path.length ? node.list[path[0]] : node.list[16];
      if (path.length === 0) return next.bytes;
      path = path.slice(1);
      node = next.list ? next : takeNode(toHex(next.bytes), nodes);
      continue;
    }
    const [{ bytes: compact }, next] = node.list;
    const nibbles = Array.from(compact).flatMap((byte) => [byte >> 4, byte & 15]).slice(compact[0] & 16 ? 1 : 2);
    require(nibbles.every((nibble, at) => path[at] === nibble), "the proof is of another receipt");
    path = path.slice(nibbles.length);
    if (compact[0] & 32) {
      require(path.length === 0, "the proof is of another receipt");
      return next.bytes;
    }
    node = next.list ? next : takeNode(toHex(next.bytes), nodes);
  }
}

function takeNode(hash, nodes) {
  const raw = nodes.shift();
  require(raw !== undefined && toHex(keccak(raw)) === hash, "a hash of the receipt’s proof does not fit");
  return decode(raw);
}

// RLP: a string has `bytes`, a list has `list`, both have `raw`, their own encoding.
function decode(data) {
  const [item, end] = decodeAt(data, 0);
  require(end === data.length, "there are bytes behind the evidence");
  return item;
}

function decodeAt(data, at) {
  const first = data[at];
  require(first !== undefined, "the evidence ends too early");
  if (first < 0x80) return [{ bytes: data.subarray(at, at + 1), raw: data.subarray(at, at + 1) }, at + 1];
  const isList = first >= 0xc0;
  const size = first - (isList ? 0xc0 : 0x80);
  const extra = size > 55 ? size - 55 : 0;
  const begin = at + 1 + extra;
  const end = begin + (extra ? toNumber(data.subarray(at + 1, begin)) : size);
  require(end <= data.length, "the evidence ends too early");
  const raw = data.subarray(at, end);
  if (!isList) return [{ bytes: data.subarray(begin, end), raw }, end];
  const list = [];
  for (let next = begin; next < end; ) {
    const [item, behind] = decodeAt(data, next);
    list.push(item);
    next = behind;
  }
  return [{ list, raw }, end];
}

const toNumber = (bytes) => bytes.reduce((sum, byte) => sum * 256 + byte, 0);

// --- Keccak-256

const MASK = (1n << 64n) - 1n;
const rotate = (lane, by) => (by ? ((lane << by) | (lane >> (64n - by))) & MASK : lane);
const ROUNDS = buildRounds();
const OFFSETS = buildOffsets();

function buildRounds() {
  const constants = [];
  let register = 1;
  for (let round = 0; round < 24; round += 1) {
    let constant = 0n;
    for (let bit = 0; bit < 7; bit += 1) {
      if (register & 1) constant ^= 1n << ((1n << BigInt(bit)) - 1n);
      register = (register << 1) ^ (register & 0x80 ? 0x171 : 0);
    }
    constants.push(constant);
  }
  return constants;
}

function buildOffsets() {
  const offsets = Array(25).fill(0n);
  for (let step = 0, x = 1, y = 0; step < 24; step += 1) {
    offsets[x + 5 * y] = BigInt((((step + 1) * (step + 2)) / 2) % 64);
    [x, y] = [y, (2 * x + 3 * y) % 5];
  }
  return offsets;
}

function permute(lanes) {
  for (const constant of ROUNDS) {
    const columns = [0, 1, 2, 3, 4].map((x) => lanes[x] ^ lanes[x + 5] ^ lanes[x + 10] ^ lanes[x + 15] ^ lanes[x + 20]);
    const mixed = Array(25);
    for (let x = 0; x < 5; x += 1) {
      const change = columns[(x + 4) % 5] ^ rotate(columns[(x + 1) % 5], 1n);
      for (let y = 0; y < 5; y += 1) {
        mixed[y + 5 * ((2 * x + 3 * y) % 5)] = rotate(lanes[x + 5 * y] ^ change, OFFSETS[x + 5 * y]);
      }
    }
    for (let y = 0; y < 25; y += 5) {
      for (let x = 0; x < 5; x += 1) lanes[y + x] = mixed[y + x] ^ (~mixed[y + ((x + 1) % 5)] & MASK & mixed[y + ((x + 2) % 5)]);
    }
    lanes[0] ^= constant;
  }
}

function keccak(data) {
  const rate = 136;
  const padded = new Uint8Array((Math.floor(data.length / rate) + 1) * rate);
  padded.set(data);
  padded[data.length] ^= 0x01;
  padded[padded.length - 1] ^= 0x80;
  const lanes = Array(25).fill(0n);
  const view = new DataView(padded.buffer);
  for (let block = 0; block < padded.length; block += rate) {
    for (let lane = 0; lane < rate / 8; lane += 1) lanes[lane] ^= view.getBigUint64(block + 8 * lane, true);
    permute(lanes);
  }
  const digest = new DataView(new ArrayBuffer(32));
  for (let lane = 0; lane < 4; lane += 1) digest.setBigUint64(8 * lane, lanes[lane], true);
  return new Uint8Array(digest.buffer);
}

// --- begin

$("key-form").addEventListener("submit", (submitted) => {
  submitted.preventDefault();
  key = $("key").value;
  sessionStorage.setItem("key", key);
  $("key-form").hidden = true;
});
$("filter").addEventListener("input", () => {
  wantedName = $("filter").value.trim();
  rows.forEach(applyFilter);
});
poll();
follow();
