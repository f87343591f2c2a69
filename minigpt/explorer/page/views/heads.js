// The map of all heads by role, and a card for the chosen one.

import { bar, button, fixed, h, percent, replace, signed, table } from "../dom.js";
import { headMap, legendOf, sign } from "../parts.js";

export const heads = {
  title: "Heads",
  lead: "Every head of the model, lowest layer first. Colour and letter say what it does, size how much the loss depends on it. Choose one for its evidence.",
  build(app) {
    const [grid, card] = [h("div", { class: "map" }), h("section", { class: "card" })];
    const element = h("div", { class: "split" }, h("div", {}, grid, legendOf(app)), card);
    const update = () => {
      replace(grid, mapOf(app));
      replace(card, cardOf(app, app.card));
      app.say(`${app.card.name}: ${app.card.words}`);
    };
    return { element, update };
  },
};

// ------------------------------------------------------------------------------ the map

function mapOf(app) {
  const most = Math.max(...app.contents.cards.map((card) => card.importance ?? 0), 1e-9);
  return headMap(app, (card) => place(app, card, most));
}

function place(app, card, most) {
  const size =
    card.importance === null ? 0.7 : 0.45 + 0.55 * Math.sqrt(Math.max(card.importance, 0) / most);
  return button(
    [sign(app, card.kind), h("span", { class: "name" }, card.name)],
    () => app.go({ head: card.name }),
    {
      class: "head",
      style: { "--size": size },
      "data-head": card.name,
      "aria-pressed": String(card === app.card),
      "aria-label": `${card.name}: ${card.words}`,
    },
  );
}

// ------------------------------------------------------------------------------ a card

function cardOf(app, card) {
  return [
    h("h3", {}, sign(app, card.kind), ` ${card.name} `, h("span", { class: "role" }, card.words)),
    card.claims.length
      ? h(
          "ul",
          { class: "claims" },
          card.claims.map((line) => h("li", {}, line)),
        )
      : null,
    links(app, card),
    relationTable(card),
    effectTable(card),
    cases(app, card),
    offsetTable(card),
    genericTable(card),
  ];
}

function links(app, card) {
  return h(
    "p",
    { class: "links" },
    h("a", { href: app.link({ view: "read", head: card.name }) }, `Read with ${card.name}`),
    h("a", { href: app.link({ view: "off", off: card.name }) }, `Switch ${card.name} off`),
    h("a", { href: app.link({ view: "inside", head: card.name }) }, `Look inside ${card.name}`),
  );
}

function relationTable(card) {
  if (!card.relations.length)
    return h(
      "p",
      { class: "note" },
      "What a head resolves can only be told of models trained on stories, where the right answers are known.",
    );
  const rows = [...card.relations]
    .sort((a, b) => Number(!!b.label) - Number(!!a.label) || (b.score ?? 0) - (a.score ?? 0))
    .map((one) => [
      one.label ? `${one.words} (${SAID[one.label]})` : one.words,
      bar(one.score ?? 0, {
        low: one.low,
        high: one.high,
        tick: one.baseline,
        kind: one.label ?? "",
      }),
      percent(one.score),
      one.low === null ? "–" : `${Math.round(100 * one.low)}–${percent(one.high)}`,
      percent(one.baseline),
      percent(one.untrained),
      signed(one.there),
      signed(one.elsewhere),
      one.born === null ? "–" : String(one.born),
    ]);
  const headings = [
    "relation",
    "",
    "right",
    "interval",
    "without looking",
    "untrained",
    "nats there",
    "elsewhere",
    "born at step",
  ];
  return [
    table("How often it looks at the right word", headings, rows, { class: "wide" }),
    h(
      "p",
      { class: "hint" },
      "Bar and thin line: share of right looks with its interval; upright mark: the best that needs no look. Nats: how much more the words that depend on it, and all others, cost without the head.",
    ),
  ];
}

const SAID = {
  resolves: "resolves",
  together: "with others",
  looks: "looks, no effect",
  needed: "needed, looks elsewhere",
};

function effectTable(card) {
  if (card.effect === null) return null;
  const known = [card.effect_high, card.effect_of_mean, card.effect_of_zero, card.effect].filter(
    (value) => value !== null,
  );
  const most = Math.max(...known.map(Math.abs), 0.01);
  const interval = { low: scaled(card.effect_low, most), high: scaled(card.effect_high, most) };
  const rows = [
    [
      card.relations.length ? "its mean for that kind of word" : "its mean over other texts",
      card.effect,
      interval,
    ],
    ["its mean over all words", card.effect_of_mean, {}],
    ["nothing", card.effect_of_zero, {}],
  ]
    .filter(([, value]) => value !== null)
    .map(([words, value, more]) => [words, bar(value / most, more), signed(value, 3)]);
  return table(
    "More loss a word, in nats, where the head is replaced by",
    ["replaced by", "", "nats a word"],
    rows,
  );
}

function scaled(value, most) {
  return value === null ? null : value / most;
}

function cases(app, card) {
  if (!card.cases.length) return null;
  const items = card.cases.map((one) => {
    const { ids } = app.contents.texts[one.text];
    const place = {
      view: "read",
      head: card.name,
      text: String(one.text),
      word: String(one.query),
    };
    const before = app.tokenizer
      .decode(ids.slice(Math.max(one.query - 7, 0), one.query + 1))
      .trim();
    return h(
      "li",
      {},
      h("span", { class: one.right ? "good" : "bad" }, one.right ? "✓ right" : "✗ wrong"),
      ` ${one.words}, ${percent(one.share)} on right words: `,
      h("a", { href: app.link(place) }, `… ${before}`),
    );
  });
  return [h("h4", {}, "Its clearest and its worst cases"), h("ul", { class: "cases" }, items)];
}

function offsetTable(card) {
  const rows = card.offsets.map((share, offset) => [
    offset === 0 ? "itself" : `${offset} back`,
    bar(share ?? 0),
    percent(share),
  ]);
  return h(
    "details",
    {},
    h("summary", {}, "How far back it looks"),
    table("Mean attention by distance", ["where", "", "share"], rows),
  );
}

function genericTable(card) {
  const rows = Object.entries(card.generic).map(([words, value]) => [
    words,
    bar(value ?? 0),
    fixed(value),
  ]);
  return h(
    "details",
    {},
    h("summary", {}, "Where it looks, whatever the words are"),
    table("Mean attention on", ["on", "", "share"], rows),
  );
}
