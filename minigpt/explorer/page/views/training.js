// How the model came about: its loss, what counting alone reaches, what it wrote, births of heads.

import { chart } from "../chart.js";
import { fixed, h } from "../dom.js";

export const training = {
  title: "Training",
  lead: "How the loss fell, beside the lowest that any model could reach and what counting words alone gives; what it wrote on the way; when heads found their role.",
  build(app) {
    const { training: told } = app.contents;
    const element = h("div", {}, losses(told), samples(told), births(told));
    return { element, update: () => {} };
  },
};

const WIDEST = 700; // pixels; narrower on a phone, so that its letters stay legible
const ORDERS = { 1: "counting single tokens", 2: "counting pairs", 3: "counting triples" };

function losses({ train, val, floor, ngrams }) {
  const curves = [
    { name: "training loss (smoothed)", points: train, kind: "train", late: true },
    { name: "validation loss", points: val, kind: "val" },
  ];
  const levels = Object.entries(ngrams).map(([order, y]) => ({
    name: `${ORDERS[order]}: ${fixed(y)}`,
    y,
    kind: `order-${order}`,
  }));
  if (floor !== null)
    levels.push({ name: `exact floor: ${fixed(floor, 3)}`, y: floor, kind: "floor" });
  const drawn = curves.filter(({ points }) => points.length > 1);
  if (!drawn.length) return h("p", { class: "note" }, "This run kept no losses.");
  const every = Math.max(Math.ceil(train.length / 40), 1);
  const at = new Map(val);
  const steps = [
    ...new Set([
      ...train.filter((_, place) => place % every === 0).map(([step]) => step),
      ...at.keys(),
    ]),
  ].sort((a, b) => a - b);
  const of = new Map(train);
  const cells = steps.map((step) => [String(step), fixed(of.get(step)), fixed(at.get(step), 3)]);
  return [
    h("h3", {}, "Loss, in nats per token"),
    chart({
      name: "Loss by step",
      curves: drawn,
      levels,
      wide: Math.min(document.documentElement.clientWidth, WIDEST),
      rows: { headings: ["training", "validation"], cells },
    }),
  ];
}

function samples({ samples: told }) {
  if (!told.length) return null;
  const text = h("blockquote", { class: "sample" });
  const said = h("output", { for: "step" });
  const input = h("input", {
    type: "range",
    id: "step",
    min: "0",
    max: String(told.length - 1),
    value: String(told.length - 1),
    on: { input: () => update() },
  });
  const update = () => {
    const { step, text: wrote } = told[Number(input.value)];
    said.textContent = ` step ${step.toLocaleString("en")}`;
    input.setAttribute("aria-valuetext", `step ${step}`);
    text.textContent = wrote;
  };
  update();
  return [
    h("h3", {}, "What it wrote on the way"),
    h("p", {}, h("label", { for: "step" }, "At step "), input, said),
    text,
  ];
}

function births({ births: told }) {
  if (!told.length)
    return h(
      "p",
      { class: "note" },
      "When heads found their role is recorded for models trained on stories.",
    );
  const words =
    "The loss of the words that depend on a relation, and the step from which on a labelled head reliably looked at the right place.";
  return [
    h("h3", {}, "Births of roles"),
    h("p", {}, words),
    h("div", { class: "births" }, told.map(one)),
  ];
}

function one({ words, loss, floor, heads }) {
  const marks = heads.map(({ head, step }) => ({ x: step, name: head }));
  const levels =
    floor === null || floor === undefined
      ? []
      : [{ name: `floor ${fixed(floor)}`, y: floor, kind: "floor" }];
  const born = heads
    .map(({ head, step }) => `${head} at step ${step.toLocaleString("en")}`)
    .join(", ");
  const cells = loss.map(([step, value]) => [String(step), fixed(value)]);
  const curves = [
    {
      name: born ? `loss; born: ${born}` : "loss; no head is labelled for it",
      points: loss,
      kind: "val",
    },
  ];
  return h(
    "section",
    {},
    h("h4", {}, words),
    chart({
      name: `Loss of ${words} by step`,
      curves,
      levels,
      marks,
      logarithmic: true,
      wide: 340,
      high: 210,
      rows: { headings: ["loss"], cells },
    }),
  );
}
