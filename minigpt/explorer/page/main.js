// Puts the page together: facts, links to the views, and the view that the address names.

import { App } from "./app.js";
import { floats } from "./bytes.js";
import { h, replace } from "./dom.js";
import { Reading } from "./model.js";
import { findings } from "./views/findings.js";
import { read } from "./views/read.js";
import { heads } from "./views/heads.js";
import { write } from "./views/write.js";
import { off } from "./views/off.js";
import { inside } from "./views/inside.js";
import { training } from "./views/training.js";
import { method } from "./views/method.js";

// Each view has a title, a sentence on what to look at, and `build(app)`, which returns an element
// and a function that brings it up to date.
const ALL = { findings, read, heads, write, off, inside, training, method };
const [CLOSE, VERY_CLOSE] = [1e-2, 1e-4]; // logits; with 16 and with 32 bits a weight

function start() {
  const contents = JSON.parse(document.getElementById("contents").textContent);
  const weights = JSON.parse(document.getElementById("weights").textContent);
  const app = new App(contents, weights);
  document.title = `${contents.run} – minigpt explorer`;
  document.getElementById("title").textContent = contents.run;
  app.difference = compareWithTorch(app);
  app.tolerance = weights.scales === null ? VERY_CLOSE : CLOSE;
  replace(document.getElementById("facts"), facts(app));
  const show = showing(app);
  app.onChange(show);
  show();
  document.querySelector(".skip").addEventListener("click", (event) => {
    event.preventDefault();
    document.getElementById("main").focus();
  });
  document.documentElement.dataset.ready = "yes";
}

// The largest difference between this page's logits and PyTorch's on a reference text.
function compareWithTorch(app) {
  const { ids, rows, logits } = app.contents.reference;
  const theirs = floats(logits);
  const ours = new Reading(app.model).become(ids).logits.slice(-rows);
  let largest = 0;
  ours.forEach((row, t) => {
    row.forEach((logit, id) => {
      largest = Math.max(largest, Math.abs(logit - theirs[t * row.length + id]));
    });
  });
  return largest;
}

function facts(app) {
  const { parameters, step, model } = app.contents;
  const heads = app.contents.cards.length;
  const size = `${parameters.toLocaleString("en")} parameters, ${model.num_layers} layers, ${heads} heads, step ${step.toLocaleString("en")}. `;
  const difference = app.difference.toExponential(1);
  if (app.difference < app.tolerance) {
    return [
      size,
      h(
        "span",
        { class: "good", id: "check" },
        `✓ Computes as PyTorch does (logits differ by ${difference} at most).`,
      ),
    ];
  }
  return [
    size,
    h(
      "span",
      { class: "bad", id: "check" },
      `✗ Differs from PyTorch by ${difference}: don't trust this page.`,
    ),
  ];
}

// A function that shows the view where the reader stands, and keeps it up to date.
function showing(app) {
  const main = document.getElementById("main");
  const built = {};
  let current = null;
  return () => {
    const { view } = app.place;
    if (view !== current) {
      const first = current === null;
      current = view;
      built[view] ??= ALL[view].build(app);
      const { title, lead } = ALL[view];
      const heading = h("h2", { tabindex: "-1" }, title);
      main.replaceChildren(heading, h("p", { class: "lead" }, lead), built[view].element);
      if (!first) {
        scrollTo(0, 0);
        heading.focus({ preventScroll: true });
      }
    }
    replace(document.getElementById("views"), links(app));
    built[view].update();
  };
}

function links(app) {
  return Object.entries(ALL).map(([view, { title }]) => {
    const current = view === app.place.view ? "page" : null;
    return h("a", { href: app.link({ view }), "aria-current": current }, title);
  });
}

start();
