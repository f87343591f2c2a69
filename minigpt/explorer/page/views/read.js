// The text as text: pick a word and see what the chosen head looks at from there.

import { bar, button, h, percent, radios, replace, svg, table } from "../dom.js";
import { dot } from "../model.js";
import { headChooser, legendOf, shade, sign, textChooser, wordStrip } from "../parts.js";

const LOOKS = {
  rest: "first token left out",
  raw: "raw weights",
  value: "weighted by what is added",
};
const MOST_ARCS = 6;
const FAINTEST_ARC = 0.05;
const TOP = 6;
const MOST_CHIPS = 2; // of each relation

export const read = {
  title: "Read",
  lead: "Pick a word (click, or ← and →); ↑ and ↓ change the head. The stronger a word's colour, the more the head looks at it from there.",
  build(app) {
    const chooser = textChooser(app, ["The dog fetched the ball"]);
    const head = headChooser(app);
    const looks = h("div");
    const arcs = svg("svg", { class: "arcs", "aria-hidden": "true" });
    const strip = wordStrip(app, {
      label: "The text; left and right arrows choose a word, up and down a head",
      dresser: () => dresser(app),
      keys: { ArrowUp: () => step(app, -1), ArrowDown: () => step(app, 1) },
    });
    const page = h("div", { class: "page" }, arcs, strip.element);
    const [sentence, questions, tops, all] = [
      h("p", { class: "sentence" }),
      h("div"),
      h("div"),
      h("div"),
    ];
    const map = heatMap(app);
    const element = h(
      "div",
      {},
      h("div", { class: "controls" }, chooser.element, head.element, looks),
      page,
      sentence,
      questions,
      h("div", { class: "columns" }, tops, all),
      map.element,
    );
    const drawArcs = () => app.place.view === "read" && draw(app, arcs, page, strip.element);
    new ResizeObserver(drawArcs).observe(page);
    const update = () => {
      for (const part of [chooser, head, strip, map]) part.update();
      replace(
        looks,
        radios("Attention", "look", LOOKS, lookOf(app), (look) => app.go({ look })),
      );
      const words = inWords(app);
      replace(sentence, words);
      app.say(words);
      replace(questions, asked(app));
      replace(tops, topTable(app));
      replace(all, everyHead(app));
      drawArcs();
    };
    return { element, update };
  },
};

function step(app, by) {
  const { cards } = app.contents;
  const at = cards.indexOf(app.card) + by;
  app.go({ head: cards[Math.min(Math.max(at, 0), cards.length - 1)].name });
}

function lookOf(app) {
  return app.place.look in LOOKS ? app.place.look : "rest";
}

// ------------------------------------------------------------------------------ attention

// The chosen head's shares from the chosen word: (number of words so far,).
function shares(app, card = app.card, look = lookOf(app)) {
  const reading = app.read();
  const query = app.word(reading.length);
  const weights = Array.from(app.weights(reading, card)[query]);
  if (look === "raw") return weights;
  if (look === "value") {
    const sizes = sizesOf(app, reading, card);
    return shared(weights.map((weight, at) => weight * sizes[at]));
  }
  return query === 0 ? weights : shared([0, ...weights.slice(1)]);
}

function shared(values) {
  const sum = values.reduce((a, b) => a + b, 0);
  return sum < 1e-6 ? values.map(() => 0) : values.map((value) => value / sum);
}

// How much each word adds to the stream where the head looks at it: the length of v · W_O.
function sizesOf(app, reading, card) {
  const { model } = app;
  const slot = app.slot(card);
  const out = model.get(`blocks.${card.layer}.attention.out_proj.weight`);
  const { head_dim: D, embed_dim: E } = model.config;
  const joined = out.length / E;
  return reading.layers[card.layer].values[slot].map((value) => {
    let sum = 0;
    for (let e = 0; e < E; e++)
      sum += dot(value, out.subarray(e * joined + slot * D, e * joined + (slot + 1) * D)) ** 2;
    return Math.sqrt(sum);
  });
}

function best(values, number) {
  const order = values.map((value, at) => [at, value]).sort((a, b) => b[1] - a[1]);
  return order.slice(0, number).filter(([, value]) => value > 0);
}

// ------------------------------------------------------------------------------ the text

function questionsHere(app) {
  const { ids, questions } = app.text();
  const at = app.word(ids.length);
  return questions.filter((question) => question.query === at);
}

// What shows on each word how much the head looks at it.
function dresser(app) {
  const weights = shares(app);
  const questions = questionsHere(app);
  return (word, at) => {
    const share = weights[at] ?? 0;
    word.style.setProperty("--share", `${Math.round(100 * share ** 0.6)}%`);
    if (at >= weights.length) word.classList.add("later");
    for (const { gold, others } of questions) {
      if (gold.includes(at)) word.classList.add("gold");
      else if (others.includes(at)) word.classList.add("other");
    }
  };
}

function draw(app, arcs, page, strip) {
  const frame = page.getBoundingClientRect();
  arcs.setAttribute("width", frame.width);
  arcs.setAttribute("height", frame.height);
  const weights = shares(app);
  const query = weights.length - 1;
  const middle = (at) => {
    const box = strip.children[at].getBoundingClientRect();
    return [box.left - frame.left + box.width / 2, box.top - frame.top + 3];
  };
  const drawn = best(weights, MOST_ARCS).filter(
    ([at, share]) => at !== query && share >= FAINTEST_ARC,
  );
  replace(
    arcs,
    strip.children.length ? drawn.map(([at, share]) => arc(middle(query), middle(at), share)) : [],
  );
}

function arc([x0, y0], [x1, y1], share) {
  const rise = Math.min(14 + Math.abs(x1 - x0) / 12, 30);
  const path = `M ${x0} ${y0} C ${x0} ${y0 - rise}, ${x1} ${y1 - rise}, ${x1} ${y1}`;
  return svg("path", { d: path, "stroke-width": 1 + 4 * share, opacity: 0.35 + 0.6 * share });
}

// ------------------------------------------------------------------------------ in words

function inWords(app) {
  const { ids } = app.text();
  const at = app.word(ids.length);
  const weights = shares(app);
  const label = (place) => `“${app.tokenizer.label(ids[place])}”`;
  const tops = best(weights, 3).map(([place, share]) => `${label(place)} ${percent(share)}`);
  const looks = tops.length ? tops.join(", ") : "nothing but the text's first token";
  const answers = questionsHere(app).map(({ words, gold }) => {
    const right = [...new Set(gold.map(label))].join(" or ");
    const share = gold.reduce((sum, place) => sum + (weights[place] ?? 0), 0);
    return ` Here a story asks for ${words}: right is ${right}, which gets ${percent(share)}.`;
  });
  return `${app.card.name} at ${label(at)} (word ${at + 1} of ${ids.length}) looks at ${looks}.${answers.join("")}`;
}

// The questions that the text asks, as buttons that choose their word.
function asked(app) {
  const { ids, questions } = app.text();
  if (!questions.length) return null;
  const at = app.word(ids.length);
  const few = questions.filter(
    (one) =>
      questions.filter(({ relation, query }) => relation === one.relation && query < one.query)
        .length < MOST_CHIPS,
  );
  const chips = few.map(({ query, words }) =>
    button(
      `${words}: “${app.tokenizer.label(ids[query])}”`,
      () => app.go({ word: String(query) }),
      { class: "chip", "aria-pressed": String(query === at) },
    ),
  );
  return [
    h(
      "p",
      { class: "hint" },
      "This story asks, and the answers are known (right words are framed, competing ones dashed):",
    ),
    h("div", { class: "chips" }, chips),
  ];
}

function topTable(app) {
  const { ids } = app.text();
  const rows = best(shares(app), TOP).map(([at, share]) => [
    app.tokenizer.label(ids[at]),
    String(at + 1),
    bar(share),
    percent(share),
  ]);
  return table(
    `${app.card.name} from this word, ${LOOKS[lookOf(app)]}`,
    ["looks at", "word", "", "share"],
    rows,
  );
}

function everyHead(app) {
  const { ids } = app.text();
  const rows = app.contents.cards.map((card) => {
    const [[at, share] = [0, 0]] = best(shares(app, card), 1);
    const choose = button([sign(app, card.kind), card.name], () => app.go({ head: card.name }), {
      class: "plain",
      "aria-pressed": String(card === app.card),
    });
    return [choose, share ? app.tokenizer.label(ids[at]) : "–", bar(share), percent(share)];
  });
  return [
    table("What every head looks at most from this word", ["head", "looks at", "", "share"], rows),
    legendOf(app),
  ];
}

// ------------------------------------------------------------------------------ all words at once

function heatMap(app) {
  const canvas = h("canvas", { class: "heat", role: "img" });
  const draw = () => details.open && app.place.view === "read" && drawMap(app, canvas);
  const details = h(
    "details",
    { on: { toggle: draw } },
    h("summary", {}, "All words at once, as a map"),
    canvas,
  );
  const update = () => {
    const name = `Where ${app.card.name} looks: rows are words, columns the words they look at`;
    canvas.setAttribute("aria-label", `${name}. The tables above tell it for one word.`);
    draw();
  };
  return { element: details, update };
}

function drawMap(app, canvas) {
  const reading = app.read();
  const cell = Math.max(3, Math.min(14, Math.floor(560 / reading.length)));
  canvas.width = canvas.height = cell * reading.length;
  const context = canvas.getContext("2d");
  app.weights(reading, app.card).forEach((row, query) => {
    row.forEach((weight, at) => {
      context.fillStyle = shade(weight);
      context.fillRect(at * cell, query * cell, cell, cell);
    });
  });
}
