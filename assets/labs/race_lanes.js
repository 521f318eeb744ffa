// Two loops over the same tokens, side by side: how long each has taken so far, and what each step cost it.
// Both bars have one scale, so the longer one is the slower loop. Drawn anew whenever Python sends more steps.
// With the focus on it, arrow keys read the steps one by one. The numbers as a table are on the page, below.

import { drawnBy } from '../step_page/drawing/canvas.js';
import { themeOf } from '../step_page/drawing/palette.js';
import { takeAway } from '../step_page/picture/take_away.js';

const LANE_GAP = 1; // pixels between steps, where there is room for them
const LANE_BAR = 40, LANE_STEPS = 64; // heights in pixels

export default function ({ data, parentElement }) {
  const root = parentElement.querySelector(".lanes");
  if (!root || !data) return;
  if (root.children.length !== data.ways.length + 2) buildLanes(root, data.ways.length);
  const most = Math.max(1e-9, ...data.ways.map((way) => laneSum(way.ms)));
  const highest = Math.max(1e-9, ...data.ways.flatMap((way) => way.ms));
  data.ways.forEach((way, place) => drawLane(root.children[place], way, most, highest));
  root.querySelector(".agreement").textContent = data.agreement;
  drawText(root.lastElementChild, data);
  Object.assign(readers.get(root), data);
  root.setAttribute("aria-label", data.label);
  root.dataset.theme = themeOf(root);
  const observer = observers.get(root);
  if (observer) observer.again = () => data.ways.forEach((way, i) => drawLane(root.children[i], way, most, highest));
  return () => observers.get(root)?.disconnect();
}

const observers = new WeakMap();
const readers = new WeakMap(); // root -> the newest data, and the step that is read

function buildLanes(root, count) {
  root.replaceChildren();
  for (let i = 0; i < count; i += 1) {
    const lane = laneElement("div", "lane");
    lane.append(laneElement("div", "name"), laneElement("div", "sum"), laneElement("canvas", "bar"), laneElement("canvas", "steps"));
    root.append(lane);
  }
  const text = laneElement("p", "said");
  text.append(laneElement("span", "prompt"), laneElement("span", "drawn"));
  const foot = laneElement("div", "lanes-foot");
  foot.append(laneElement("div", "agreement"), saveLanes(root));
  root.append(foot, text);
  Object.assign(root, { tabIndex: 0, role: "group" });
  root.addEventListener("keydown", (event) => readStep(root, event));
  readers.set(root, { at: -1 });
  const observer = new ResizeObserver(() => observer.again?.());
  observer.observe(root);
  observers.set(root, observer);
}

function drawLane(lane, way, most, highest) {
  const [name, total, bar, steps] = lane.children;
  const ms = laneSum(way.ms);
  name.textContent = way.name;
  total.textContent = `${laneTime(ms)} · ${way.positions.toLocaleString("en")} positions`;
  bar.setAttribute("role", "img");
  bar.setAttribute("aria-label", `${way.name}: ${laneTime(ms)} in ${way.ms.length} steps`);
  steps.setAttribute("aria-hidden", "true");
  paintOn(bar, LANE_BAR, (pen, width) => paintBar(pen, width, way, most));
  paintOn(steps, LANE_STEPS, (pen, width) => paintSteps(pen, width, way, highest));
}

function paintBar(pen, width, way, most) {
  let x = 0;
  way.ms.forEach((step, i) => {
    const wide = (step / most) * width;
    pen.fillStyle = way.colour;
    pen.globalAlpha = i === 0 ? 0.55 : i % 2 ? 1 : 0.82; // step 0 is the prefill
    pen.fillRect(x, 0, Math.max(0.5, wide - (wide > 4 ? LANE_GAP : 0)), LANE_BAR);
    x += wide;
  });
}

function paintSteps(pen, width, way, highest) {
  const wide = width / Math.max(way.of, 1);
  way.ms.forEach((step, i) => {
    const high = Math.max(1, (step / highest) * LANE_STEPS);
    pen.fillStyle = way.colour;
    pen.globalAlpha = i === 0 ? 0.55 : 1;
    pen.fillRect(i * wide, LANE_STEPS - high, Math.max(1, wide - (wide > 3 ? LANE_GAP : 0)), high);
  });
}

/** One step on, one back, the first, the last: both times, read aloud and shown in the line below. */
function readStep(root, event) {
  const reader = readers.get(root);
  const last = reader.ways[0].ms.length - 1;
  const to = { ArrowRight: reader.at + 1, ArrowLeft: reader.at - 1, Home: 0, End: last }[event.key];
  if (to === undefined || last < 0) return;
  event.preventDefault();
  reader.at = Math.max(0, Math.min(to, last));
  const times = reader.ways.map((way) => `${way.name}: ${laneTime(way.ms[reader.at] ?? 0)}`);
  const place = root.querySelector(".agreement");
  place.setAttribute("role", "status");
  place.textContent = `${reader.step.replace("{step}", reader.at)} ${times.join(" · ")}`;
}

function drawText(place, data) {
  place.children[0].textContent = data.prompt;
  place.children[1].textContent = data.drawn;
}

/** The picture as it is drawn; its table is both times of every step. */
function saveLanes(root) {
  return takeAway({
    name: "race", title: "With and without the KV cache",
    picture: () => ({ root, parts: [...root.children] }),
    table: () => {
      const { ways } = readers.get(root);
      return { columns: ["step", ...ways.map(({ name }) => `${name}, ms`)], rows: ways[0].ms.map((_, i) => [i, ...ways.map(({ ms }) => ms[i] ?? "")]) };
    },
  });
}

/** Paint a canvas in CSS pixels, now and whenever a picture of it is taken. */
function paintOn(canvas, height, paint) {
  const width = canvas.clientWidth, ratio = window.devicePixelRatio || 1;
  canvas.width = Math.max(1, Math.round(width * ratio));
  canvas.height = Math.round(height * ratio);
  const pen = canvas.getContext("2d");
  pen.setTransform(ratio, 0, 0, ratio, 0, 0);
  paint(pen, width);
  drawnBy(canvas, (other) => paint(other, width));
}

function laneElement(tag, name) {
  const made = document.createElement(tag);
  made.className = name;
  return made;
}

function laneSum(values) {
  return values.reduce((total, value) => total + value, 0);
}

function laneTime(ms) {
  return ms < 1000 ? `${ms.toFixed(0)} ms` : `${(ms / 1000).toFixed(2)} s`;
}
