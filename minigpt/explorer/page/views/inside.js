// One head at one word, step by step, with the numbers that the model really computes.

import { bar, fixed, h, percent, replace, table } from "../dom.js";
import { attentionWeights, dot } from "../model.js";
import { headChooser, headColour, strip, textChooser, wordStrip } from "../parts.js";

const LATER = 3; // masked words to show
const FEW = 12; // rows of a table before the rest is folded away
const TOP = 5;
const FIRST_NUMBERS = 4;

export const inside = {
  title: "Inside a head",
  lead: "Follow the arithmetic of one head at one word: project, compare, mask and normalise, add up. Every number is the model's own; blue is below zero, orange above.",
  build(app) {
    const [chooser, head] = [textChooser(app, ["The dog fetched the ball"]), headChooser(app)];
    const words = wordStrip(app, { label: "The text; left and right arrows choose a word" });
    const steps = h("div", { class: "steps" });
    const controls = h("div", { class: "controls" }, chooser.element, head.element);
    const element = h("div", {}, controls, h("div", { class: "page" }, words.element), steps);
    const update = () => {
      for (const part of [chooser, head, words]) part.update();
      const look = new Look(app);
      replace(
        steps,
        [project, compare, normalise, mixUp, recombine].map((step) => step(look)),
      );
    };
    return { element, update };
  },
};

// Everything that one head computed at one word.
class Look {
  constructor(app) {
    this.app = app;
    this.card = app.card;
    this.slot = app.slot(this.card);
    this.reading = app.read();
    this.query = app.word(this.reading.length);
    this.layer = this.reading.layers[this.card.layer];
    this.config = app.model.config;
    this.heads = app.model.layers[this.card.layer].heads;
    this.prefix = `blocks.${this.card.layer}.attention.`;
    const name = this.config.embed_dim === 1 ? "number" : "numbers";
    this.size = `${this.config.embed_dim} ${name}`;
  }

  label(at) {
    return `${this.app.tokenizer.label(this.reading.ids[at])}`;
  }

  get word() {
    return `“${this.label(this.query)}”`;
  }

  // The head's vectors at a place.
  of(name, at = this.query) {
    return this.layer[name][this.slot][at];
  }

  // What all heads of the layer have at the word, side by side.
  joined(name) {
    return this.layer[name].flatMap((rows) => Array.from(rows[this.query]));
  }
}

function section(title, words, ...parts) {
  return h("section", { class: "step" }, h("h3", {}, title), h("p", {}, words), ...parts);
}

function numbers(values) {
  const shown = Array.from(values.slice(0, FIRST_NUMBERS), (value) => fixed(value));
  return `${shown.join(", ")}${values.length > FIRST_NUMBERS ? ", …" : ""}`;
}

function numbered(look, at) {
  return `${at + 1} ${look.label(at)}`;
}

// Of a long text the words that get most attention, in order; all of them on demand.
function someRows(look, rows, make) {
  if (rows.length <= FEW) return make(rows, "");
  const weights = look.of("weights");
  const kept = Array.from(weights.keys())
    .sort((a, b) => weights[b] - weights[a])
    .slice(0, FEW)
    .sort((a, b) => a - b);
  const some = make(
    kept.map((at) => rows[at]),
    `: the ${FEW} words that get most attention, of ${rows.length}`,
  );
  const all = h("details", {}, h("summary", {}, `All ${rows.length} words`));
  all.addEventListener(
    "toggle",
    () => all.open && all.children.length === 1 && all.append(make(rows, "")),
  );
  return [some, all];
}

// ------------------------------------------------------------------------------ the steps

function project(look) {
  const { layer, query, config, heads, slot, card } = look;
  const options = { groups: config.head_dim, chosen: slot };
  const row = (name, words) => [
    words,
    strip(
      look.joined(name),
      `${words}: ${heads.length} heads of ${config.head_dim} numbers`,
      options,
    ),
    numbers(look.of(name)),
  ];
  const angle =
    config.positions === "rotary"
      ? " Queries and keys are turned by their position, so that a dot product tells how far apart two words are."
      : "";
  const norm = look.app.model.get(`${look.prefix}query_norm.weight`)
    ? " First they are made equally long."
    : "";
  return section(
    "1. Project and split",
    `Layer ${card.layer} reads ${look.word} as ${look.size} and makes three vectors of it for each head: what it looks for (query), what it offers (key), what it tells (value). Each head has its colour; the tall part is ${card.name}'s: ${config.head_dim} numbers.${norm}${angle}`,
    table(
      "Vectors of the chosen word",
      ["vector", "all heads", `${card.name} begins`],
      [
        ["input", strip(layer.inputs[query], `input: ${look.size}`), numbers(layer.inputs[query])],
        row("queries", "query"),
        row("keys", "key"),
        row("values", "value"),
      ],
    ),
  );
}

function compare(look) {
  const { query, config } = look;
  const root = Math.sqrt(config.head_dim);
  const scores = look.layer.keys[look.slot]
    .slice(0, query + 1)
    .map((key) => dot(look.of("queries"), key));
  const rows = scores.map((score, at) => [
    numbered(look, at),
    strip(look.of("keys", at), `key of ${look.label(at)}`),
    fixed(score),
    fixed(score / root),
  ]);
  return section(
    "2. Compare",
    `The query of ${look.word} times the key of every word so far: multiply number by number, add up. Divided by √${config.head_dim} = ${root.toFixed(2)}, so that long vectors don't shout.`,
    h("p", {}, "query: ", strip(look.of("queries"), `query of ${look.word}`)),
    someRows(look, rows, (some, more) =>
      table(
        `Scores at ${look.word}${more}`,
        ["word", "key", "query · key", `÷ ${root.toFixed(2)}`],
        some,
      ),
    ),
  );
}

function normalise(look) {
  const { query, reading } = look;
  const weights = attentionWeights(
    look.of("queries"),
    look.layer.keys[look.slot].slice(0, query + 1),
  );
  const rows = Array.from(weights, (weight, at) => [
    numbered(look, at),
    bar(weight),
    percent(weight),
    fixed(weight, 4),
  ]);
  const later = Array.from({ length: Math.min(LATER, reading.length - query - 1) }, (_, k) => [
    numbered(look, query + 1 + k),
    bar(0),
    "masked",
    "−∞ → 0",
  ]);
  return section(
    "3. Mask and softmax",
    "Words that come later are masked: their score is −∞, for the model must not see what it is to predict. The softmax turns the others into shares that add up to 1: e to the score, divided by the sum of all.",
    someRows(look, rows, (some, more) =>
      table(
        `Attention weights of ${look.word}${more}`,
        ["word", "", "share", "weight"],
        [...some, ...later],
      ),
    ),
  );
}

function mixUp(look) {
  const { query } = look;
  const weights = look.of("weights");
  const order = Array.from(weights.keys())
    .sort((a, b) => weights[b] - weights[a])
    .slice(0, TOP);
  const rows = order.map((at) => [
    numbered(look, at),
    fixed(weights[at], 3),
    strip(look.of("values", at), `value of ${look.label(at)}`),
  ]);
  const more = query + 1 > TOP ? `; the ${TOP} heaviest of ${query + 1} words` : "";
  return section(
    "4. Add up the values",
    `Each word's value, times its weight, all added: that is what ${look.card.name} puts out at ${look.word}.`,
    table(`Weights and values${more}`, ["word", "weight", "value"], rows),
    h(
      "p",
      {},
      "sum: ",
      strip(look.of("outputs"), "output of the head"),
      ` ${numbers(look.of("outputs"))}`,
    ),
  );
}

function recombine(look) {
  const { config, heads, slot, card } = look;
  const parts = heads.map((_, at) => added(look, at));
  const total = parts[0].map((_, e) => parts.reduce((sum, part) => sum + part[e], 0));
  const length = (vector) => Math.sqrt(dot(vector, vector));
  const longest = Math.max(...parts.map(length), 1e-9);
  const rows = heads.map((head, at) => [
    [swatch(at), `L${card.layer}H${head}${at === slot ? " (this one)" : ""}`],
    bar(length(parts[at]) / longest),
    fixed(length(parts[at])),
    promoted(look, parts[at]).join(", "),
  ]);
  const outputs = look.joined("outputs");
  return section(
    "5. Recombine",
    `The outputs of all ${heads.length} heads, side by side, go through out_proj (${outputs.length} × ${config.embed_dim}): each head writes its part into the stream of ${look.size}, and the parts add up. Read by the output layer alone, a part pushes towards the words on the right; later layers may read it otherwise.`,
    h(
      "p",
      {},
      "side by side: ",
      strip(outputs, "outputs of all heads", { groups: config.head_dim, chosen: slot }),
    ),
    h("p", {}, "after out_proj: ", strip(total, "what the layer's attention adds")),
    table("What each head adds", ["head", "", "length", "pushes towards"], rows),
  );
}

function swatch(head) {
  const style = { background: headColour(head) };
  return h("span", { class: "swatch", style, "aria-hidden": "true" });
}

// What one head's output becomes in the stream: (E,).
function added(look, at) {
  const { config, heads, query } = look;
  const out = look.app.model.get(`${look.prefix}out_proj.weight`);
  const { head_dim: D, embed_dim: E } = config;
  const joined = heads.length * D;
  const output = look.layer.outputs[at][query];
  return Float32Array.from({ length: E }, (_, e) =>
    dot(output, out.subarray(e * joined + at * D, e * joined + (at + 1) * D)),
  );
}

// The words whose scores a vector in the stream raises most.
function promoted(look, vector) {
  const { app } = look;
  const head = app.model.get("head.weight") ?? app.model.get("token_embedding.weight");
  const scale = app.model.get("final_norm.weight");
  const scaled = vector.map((value, e) => value * scale[e]);
  const E = vector.length;
  const scores = Float32Array.from({ length: head.length / E }, (_, id) =>
    dot(scaled, head.subarray(id * E, (id + 1) * E)),
  );
  const order = Array.from(scores.keys()).sort((a, b) => scores[b] - scores[a]);
  return order.slice(0, 4).map((id) => app.tokenizer.label(id));
}
