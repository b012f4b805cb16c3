"use strict";
const byId = id => document.getElementById(id);
const size = b => { const u = ["B", "kB", "MB", "GB", "TB"]; let i = 0; while (b >= 1000 && i < 4) { b /= 1000; i++; } return (i ? b.toFixed(1) : Math.round(b)) + " " + u[i]; };
const percent = part => (100 * part).toFixed(1) + " %";
const plural = (n, noun) => n + " " + noun + (n === 1 ? "" : "s");
// A time in nanoseconds.
const time = ns => ns >= 1e9 ? (ns / 1e9).toFixed(3) + " s" : ns >= 1e6 ? (ns / 1e6).toFixed(3) + " ms" : ns >= 1e3 ? (ns / 1e3).toFixed(2) + " µs" : Math.round(ns) + " ns";
function row(cells, tag) {
  const tr = document.createElement("tr");
  for (const cell of cells) { const td = document.createElement(tag); if (cell instanceof Node) td.append(cell); else td.textContent = cell; if (tag === "th") td.scope = "col"; tr.append(td); }
  return tr;
}
function table(id, heads, rows) {
  const head = document.createElement("thead"), body = document.createElement("tbody");
  head.append(row(heads, "th")); body.append(...rows.map(cells => row(cells, "td")));
  byId(id).replaceChildren(head, body);
}
// Name and value of each fact; one with an id is found by it.
function facts(id, all) {
  byId(id).replaceChildren(...all.map(([name, value, its]) => {
    const box = document.createElement("div"), dt = document.createElement("dt"), dd = document.createElement("dd");
    dt.textContent = name; dd.textContent = value; if (its) dd.id = its; box.append(dt, dd); return box;
  }));
}
// A colour of the page, by its name, as it is now: light or dark.
const ink = name => getComputedStyle(document.documentElement).getPropertyValue("--" + name).trim();
function legend(id, all) {
  byId(id).replaceChildren(...all.map(([name, text]) => {
    const it = document.createElement("li"), box = document.createElement("i");
    box.style.background = "var(--" + name + ")"; it.append(box, text); return it;
  }));
}
function context(canvas, height) {
  const scale = window.devicePixelRatio || 1, width = canvas.clientWidth;
  canvas.style.height = height + "px"; canvas.width = Math.round(width * scale); canvas.height = Math.round(height * scale);
  const c = canvas.getContext("2d"); c.scale(scale, scale); c.font = "12px system-ui, 'DejaVu Sans', sans-serif"; return [c, width];
}
// A step of 1, 2 or 5 times a power of ten, of which there are ten at most in a range.
function stepOf(range) {
  const ten = Math.pow(10, Math.floor(Math.log10(range / 10)));
  return [1, 2, 5, 10].map(it => it * ten).find(it => range / it <= 10) || 10 * ten;
}
// A time with as many digits as tell it from the next one.
function tickTime(t, step, last) {
  const [unit, name] = last >= 1e9 ? [1e9, "s"] : last >= 1e6 ? [1e6, "ms"] : last >= 1e3 ? [1e3, "µs"] : [1, "ns"];
  return (t / unit).toFixed(Math.max(0, Math.min(12, Math.ceil(-Math.log10(step / unit) - 1e-9)))) + " " + name;
}
const digits = step => Math.max(0, Math.min(6, Math.ceil(-Math.log10(step) - 1e-9)));
// The axis of time above a chart between `left` and the width, with lines down to `bottom`.
function timeAxis(c, left, width, y, bottom, from, to) {
  let step = stepOf(to - from);
  // Labels that would touch each other are fewer.
  while (c.measureText(tickTime(to, step, to)).width + 8 > step / (to - from) * (width - left)) step *= 2;
  c.fillStyle = ink("quiet"); c.strokeStyle = ink("grid"); c.textAlign = "left";
  for (let i = Math.ceil(from / step); i * step <= to; i++) {
    const x = left + (i * step - from) / (to - from) * (width - left), label = tickTime(i * step, step, to);
    c.beginPath(); c.moveTo(x, y + 4); c.lineTo(x, bottom); c.stroke(); if (x + 4 + c.measureText(label).width < width) c.fillText(label, x + 2, y);
  }
}
// The axis of values from 0 to `top` left of a chart.
function valueAxis(c, left, y, top, label) {
  const step = stepOf(2 * top); c.fillStyle = ink("quiet"); c.strokeStyle = ink("line"); c.textAlign = "right";
  for (let i = 0; i * step <= top * (1 + 1e-9); i++) { const v = i * step; c.fillText(label(v, step), left - 6, Math.max(y(v) + 4, y(top) + 9)); c.beginPath(); c.moveTo(left - 3, y(v)); c.lineTo(left, y(v)); c.stroke(); }
  c.textAlign = "left";
}
const tip = byId("tip");
function show(event, text) {
  if (!tip) return;
  tip.style.display = text ? "block" : "none"; tip.textContent = text;
  tip.style.left = Math.max(0, Math.min(event.clientX + 12, innerWidth - tip.offsetWidth - 8)) + "px";
  tip.style.top = Math.min(event.clientY + 14, innerHeight - tip.offsetHeight - 8) + "px";
}
// Calls `draw` once before the next picture, however often it is asked for.
function later(draw) { let asked = false; return () => { if (!asked) { asked = true; requestAnimationFrame(() => { asked = false; draw(); }); } }; }
function redraws(draw) { const soon = later(draw); addEventListener("resize", soon); matchMedia("(prefers-color-scheme: dark)").addEventListener("change", soon); draw(); }
