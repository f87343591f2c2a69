// Parts that several views use: the choice of text and head, the text as words, signs of roles.

import { button, h } from "./dom.js";

// ------------------------------------------------------------------------------ choices

// Which text: one of the run's, or your own. `examples` are texts to offer as buttons.
export function textChooser(app, examples = []) {
  const select = h("select", {
    id: "text",
    on: { change: () => app.go({ text: select.value, word: "" }) },
  });
  const options = app.contents.texts.map((text, at) =>
    h("option", { value: String(at) }, excerpt(app, text.ids, at)),
  );
  select.append(...options, h("option", { value: "own" }, "a text of your own"));
  const area = h("textarea", {
    rows: "2",
    id: "own",
    spellcheck: "false",
    on: { input: () => app.go({ text: "own", own: area.value, word: "" }) },
  });
  const hint = h("p", { class: "hint" });
  const own = h(
    "div",
    { class: "own" },
    h("label", { for: "own" }, "Your text; type, and the model reads along"),
    area,
    hint,
  );
  const offers = examples.map((text) =>
    button(`“${text}”`, () => app.go({ text: "own", own: text, word: "" })),
  );
  const element = h(
    "div",
    { class: "chooser" },
    h("label", { for: "text" }, "Text"),
    select,
    ...offers,
    own,
  );
  const update = () => {
    select.value = app.isOwn ? "own" : app.place.text;
    if (select.selectedIndex < 0) select.selectedIndex = 0;
    own.hidden = !app.isOwn;
    if (area.value !== app.place.own) area.value = app.place.own;
    hint.textContent = app.isOwn ? warnings(app) : "";
  };
  return { element, update };
}

function excerpt(app, ids, at) {
  const text = app.tokenizer.decode(ids.slice(0, 40)).trim().replaceAll("\n", " ");
  return `${at + 1}: ${text.length > 48 ? `${text.slice(0, 47)}…` : text}`;
}

function warnings(app) {
  const { unknown, cut } = app.text();
  const parts = [];
  if (unknown.length) parts.push(`Left out, not in the model's vocabulary: ${unknown.join(" ")}`);
  if (cut)
    parts.push(
      `Only the first ${app.contents.model.longest} tokens are read; ${cut} are left out.`,
    );
  return parts.join(" ");
}

// Which head.
export function headChooser(app) {
  const select = h("select", { id: "head", on: { change: () => app.go({ head: select.value }) } });
  select.append(
    ...app.contents.cards.map((card) =>
      h("option", { value: card.name }, `${card.name}: ${shortened(card.words, 60)}`),
    ),
  );
  const element = h("div", { class: "chooser" }, h("label", { for: "head" }, "Head"), select);
  return { element, update: () => (select.value = app.card.name) };
}

export function shortened(words, length) {
  return words.length > length ? `${words.slice(0, length - 1)}…` : words;
}

// ------------------------------------------------------------------------------ words

// The text as words to pick with mouse or arrow keys. At each update `dresser()` is asked for a
// function that dresses a word, given its button and its place.
export function wordStrip(app, { label, dresser = () => () => {}, keys = {} }) {
  const words = h("div", { class: "words", role: "group", "aria-label": label });
  words.classList.toggle("tiles", inTiles(app));
  let shown = [];
  words.addEventListener("keydown", (event) => {
    const length = shown.length;
    const at = app.word(length);
    const steps = { ArrowLeft: at - 1, ArrowRight: at + 1, Home: 0, End: length - 1 };
    if (event.key in steps)
      app.go({ word: String(Math.min(Math.max(steps[event.key], 0), length - 1)) });
    else if (event.key in keys) keys[event.key]();
    else return;
    event.preventDefault();
    words.children[app.word(length)]?.focus();
  });
  const update = () => {
    const { ids } = app.text();
    if (ids.length !== shown.length || ids.some((id, at) => id !== shown[at])) {
      shown = ids;
      words.replaceChildren(...ids.map((id, at) => wordButton(app, id, at)));
    }
    const [chosen, dress] = [app.word(ids.length), dresser()];
    Array.from(words.children).forEach((word, at) => {
      word.className = ["word", ...spacing(app, shown[at])].join(" ");
      word.classList.toggle("query", at === chosen);
      word.tabIndex = at === chosen ? 0 : -1;
      word.setAttribute("aria-pressed", String(at === chosen));
      dress(word, at);
    });
  };
  return { element: words, update };
}

// Tokens of one letter stand in squares of one size.
export function inTiles(app) {
  return ["char", "byte"].includes(app.contents.tokenizer.kind);
}

function wordButton(app, id, at) {
  return button(app.tokenizer.label(id), () => app.go({ word: String(at) }), { class: "word" });
}

// Whether a token begins with a blank, goes on without one, or breaks the line; and whether it is
// narrower than its button, so that the next word needs no blank.
export function spacing(app, id) {
  const token = app.tokenizer.tokens[id];
  if (/^\n+$/.test(token)) return ["break"];
  const length = app.tokenizer.label(id).length === 1 ? ["short"] : [];
  return /^\s/.test(token) ? ["spaced", ...length] : length;
}

// ------------------------------------------------------------------------------ roles

// The sign of a kind of role: colour, letter and pattern.
export function sign(app, kind) {
  const look = app.contents.legend[kind] ?? app.contents.legend.unlabelled;
  const name = kind.replace(" ", "-");
  return h("span", {
    class: `sign ${name}${look.dark ? " dark" : ""}`,
    style: { "--role": look.colour },
    "data-letter": look.letter,
    "aria-hidden": "true",
  });
}

// All heads, a row for each layer, each as what `headButton` makes of its card.
export function headMap(app, headButton) {
  const { cards, model } = app.contents;
  return app.model.layers.map((_, layer) =>
    h(
      "div",
      {
        class: "layer",
        style: { "--heads": String(model.num_heads) },
        role: "group",
        "aria-label": `Layer ${layer}`,
      },
      h("span", { class: "name", "aria-hidden": "true" }, `L${layer}`),
      cards.filter((card) => card.layer === layer).map(headButton),
    ),
  );
}

export function legendOf(app) {
  const present = new Set(app.contents.cards.map((card) => card.kind));
  const kinds = Object.entries(app.contents.legend).filter(([kind]) => present.has(kind));
  return h(
    "ul",
    { class: "legend" },
    kinds.map(([kind, { words }]) => h("li", {}, sign(app, kind), words)),
  );
}

// ------------------------------------------------------------------------------ numbers as colours

// Numbers as a row of coloured cells: blue below zero, orange above, pale near it. Where they
// belong to heads, `groups` numbers to each, a line under them has the head's colour and the cells
// of the `chosen` one are taller.
export function strip(values, name, { groups = null, chosen = -1 } = {}) {
  const most = Math.max(...Array.from(values, Math.abs), 1e-9);
  const cell = values.length > 160 ? 2 : values.length > 64 ? 4 : 6;
  const canvas = h("canvas", {
    width: String(values.length * cell),
    height: "18",
    class: "strip",
    role: "img",
    "aria-label": name,
  });
  const draw = canvas.getContext("2d");
  values.forEach((value, at) => {
    draw.fillStyle = shade(value / most);
    draw.fillRect(at * cell, 0, cell, groups ? cellHeight(at, groups, chosen) : 18);
  });
  for (let head = 0; groups && head * groups < values.length; head++) {
    draw.fillStyle = headColour(head);
    draw.fillRect(head * groups * cell, 15, groups * cell - 1, 3);
  }
  return canvas;
}

function cellHeight(at, groups, chosen) {
  return Math.floor(at / groups) === chosen ? 15 : 10;
}

// Okabe & Ito 2008, for as many heads as there are colours; then from the start.
const HEADS = [
  "#0072b2",
  "#d55e00",
  "#009e73",
  "#cc79a7",
  "#e69f00",
  "#56b4e9",
  "#999999",
  "#b59f00",
];

export function headColour(head) {
  return HEADS[head % HEADS.length];
}

export function shade(share) {
  const strength = Math.min(Math.abs(share), 1) ** 0.7;
  const [r, g, b] = share < 0 ? [0, 114, 178] : [213, 94, 0];
  const mixed = [r, g, b].map((part) => Math.round(238 + (part - 238) * strength));
  return `rgb(${mixed.join(" ")})`;
}
