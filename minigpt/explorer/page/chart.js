// Curves over steps, as a picture with a table behind it.

import { h, svg, table } from "./dom.js";

const [LEFT, BOTTOM, TOP, RIGHT] = [44, 36, 12, 20]; // around the curves

// `curves`: [{ name, points: [[x, y]], kind }]; `levels`: [{ name, y, kind }]; `marks`: [{ x, name }].
export function chart({
  name,
  curves,
  levels = [],
  marks = [],
  logarithmic = false,
  wide = 700,
  high = 280,
  rows,
}) {
  const scale = scaleOf(curves, levels, { wide, high, logarithmic });
  const picture = svg(
    "svg",
    { viewBox: `0 0 ${wide} ${high}`, class: "chart", role: "img", "aria-label": name },
    axes(scale),
    levels.map(({ y, kind }) =>
      line(
        [
          [scale.left, y],
          [scale.right, y],
        ],
        scale,
        kind,
      ),
    ),
    marks.map(({ x, name: said }, at) => mark(x, said, at, scale)),
    curves.map(({ points, kind }) => line(points, scale, kind)),
  );
  const keys = [...curves, ...levels].map(({ name: said, kind }) =>
    h("li", {}, h("span", { class: `key ${kind}`, "aria-hidden": "true" }), said),
  );
  const numbers = h(
    "details",
    {},
    h("summary", {}, "The numbers"),
    table(name, ["step", ...rows.headings], rows.cells),
  );
  return h("figure", {}, picture, h("ul", { class: "legend" }, keys), numbers);
}

function scaleOf(curves, levels, { wide, high, logarithmic }) {
  const xs = curves.flatMap(({ points }) => points.map(([x]) => x));
  const ys = [
    ...curves.flatMap(({ points, late }) =>
      (late ? points.slice(Math.ceil(points.length / 20)) : points).map(([, y]) => y),
    ),
    ...levels.map(({ y }) => y),
  ];
  const [left, right] = [Math.min(...xs), Math.max(...xs, Math.min(...xs) + 1)];
  const [low, most] = [Math.min(0, ...ys), Math.max(...ys, 0.01) * 1.05];
  const place = logarithmic ? (x) => Math.log(Math.max(x, 1)) : (x) => x;
  const along = (x) =>
    LEFT + ((place(x) - place(left)) / (place(right) - place(left))) * (wide - LEFT - RIGHT);
  const up = (y) =>
    high - BOTTOM - ((Math.min(y, most) - low) / (most - low)) * (high - BOTTOM - TOP);
  return { left, right, low, most, wide, high, along, up, logarithmic };
}

function line(points, { along, up }, kind) {
  const path = points
    .map(([x, y], at) => `${at ? "L" : "M"} ${along(x).toFixed(1)} ${up(y).toFixed(1)}`)
    .join(" ");
  return svg("path", { d: path, class: `line ${kind}`, fill: "none" });
}

function mark(x, name, number, { along, wide, high }) {
  const at = along(x).toFixed(1);
  const turned = Number(at) > wide - 60;
  return svg(
    "g",
    { class: "mark" },
    svg("line", { x1: at, x2: at, y1: TOP, y2: high - BOTTOM }),
    svg(
      "text",
      {
        x: at,
        y: TOP + 10 + 14 * number,
        dx: turned ? -4 : 4,
        "text-anchor": turned ? "end" : "start",
      },
      name,
    ),
  );
}

function axes({ left, right, low, most, wide, high, along, up, logarithmic }) {
  const down = ticks(low, most, 5).map((y) => [
    svg("line", { x1: LEFT, x2: wide - RIGHT, y1: up(y), y2: up(y), class: "grid" }),
    svg("text", { x: LEFT - 6, y: up(y) + 4, "text-anchor": "end" }, trimmed(y)),
  ]);
  const steps = logarithmic
    ? [left, 10, 30, 100, 300, 1000, 3000, 10000, right].filter((x) => x >= left && x <= right)
    : ticks(left, right, 6);
  const apart = steps.filter(
    (x, at) => !steps.some((other, place) => place > at && Math.abs(along(other) - along(x)) < 40),
  );
  const across = apart.map((x) =>
    svg(
      "text",
      { x: along(x), y: high - BOTTOM + 16, "text-anchor": "middle" },
      Math.round(x).toLocaleString("en"),
    ),
  );
  const name = svg(
    "text",
    { x: wide - RIGHT, y: high - 4, "text-anchor": "end" },
    logarithmic ? "step (logarithmic)" : "step",
  );
  return svg("g", { class: "axes" }, down, across, name);
}

// Round numbers between two.
function ticks(low, high, number) {
  const rough = (high - low) / number;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((factor) => factor * power).find((one) => one >= rough);
  const first = Math.ceil(low / step - 1e-9);
  return Array.from(
    { length: Math.floor(high / step + 1e-9) - first + 1 },
    (_, at) => (first + at) * step,
  );
}

function trimmed(value) {
  return String(Number(value.toFixed(4)));
}
