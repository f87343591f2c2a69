// What all views share: the model, the text being read, and where the reader stands.
//
// Where the reader stands is the page's address, so that every sight has a link:
// #read?text=2&word=14&head=L2H1

import { floats, unpackedWeights } from "./bytes.js";
import { Model, Reading } from "./model.js";
import { Tokenizer } from "./tokenizer.js";

export const VIEWS = ["findings", "read", "heads", "write", "off", "inside", "training", "method"];
const OWN = "own";
const PAUSE = 800; // milliseconds
const ANSWERS = ["resolves", "together"]; // labels of a head that answers questions
const DEFAULTS = {
  view: "findings",
  text: "0",
  own: "",
  word: "",
  head: "",
  off: "",
  by: "mean",
  look: "rest",
};

export class App {
  constructor(contents, weights) {
    this.contents = contents;
    this.tokenizer = new Tokenizer(contents.tokenizer);
    this.model = new Model(contents.model, unpackedWeights(weights), floats(contents.means));
    this.reading = new Reading(this.model);
    this.changedReading = new Reading(this.model);
    this.place = placeOf(location.hash);
    this.listeners = [];
    addEventListener("hashchange", () => this.arrive(placeOf(location.hash)));
  }

  // -------------------------------------------------------------------------- where we stand

  onChange(listener) {
    this.listeners.push(listener);
  }

  arrive(place) {
    this.place = place;
    for (const listener of this.listeners) listener();
  }

  // Changes some of it; a new view is a step that the browser's back button takes back.
  go(changes) {
    const place = { ...this.place, ...changes };
    const address = addressOf(place);
    if (place.view !== this.place.view) history.pushState(null, "", address);
    else history.replaceState(null, "", address);
    this.arrive(place);
  }

  link(changes) {
    return addressOf({ ...this.place, ...changes });
  }

  // -------------------------------------------------------------------------- the text

  get isOwn() {
    return this.place.text === OWN;
  }

  // The text chosen: its ids, what a story asks of it, and the characters that no token knows.
  text() {
    const { text, own } = this.place;
    const known = this.lastText;
    if (known?.text !== text || known.own !== own) {
      this.lastText = { text, own, ...(this.isOwn ? this.ownText() : this.exampleText()) };
    }
    return this.lastText;
  }

  exampleText() {
    const { texts, model } = this.contents;
    const { ids, questions } = texts[Number(this.place.text)] ?? texts[0];
    return { ids: ids.slice(0, model.longest), questions, unknown: [], cut: 0 };
  }

  ownText() {
    const { opening, model, tokenizer } = this.contents;
    const own = opening + this.place.own.replace(/^\n/, opening ? "" : "\n");
    const { ids, unknown } = this.tokenizer.encode(own);
    const some = ids.length ? ids : [tokenizer.start];
    const cut = Math.max(ids.length - model.longest, 0);
    return { ids: some.slice(0, model.longest), questions: [], unknown, cut };
  }

  // The place of the chosen word. Where none is chosen: one that asks what the chosen head is for,
  // or the last one.
  word(length) {
    const word = this.place.word === "" ? NaN : Math.trunc(Number(this.place.word));
    if (word >= 0 && word < length) return word;
    const { questions } = this.text();
    const found = this.card.relations.filter(({ label }) => ANSWERS.includes(label));
    const resolved = found.map(({ relation }) => relation);
    const asked = questions.find(({ relation }) => resolved.includes(relation)) ?? questions[0];
    return Math.min(asked?.query ?? length - 1, length - 1);
  }

  // The text as the model reads it, and as it does with the heads that are switched off.
  read() {
    return this.reading.become(this.text().ids);
  }

  readChanged() {
    const off = Object.fromEntries(this.off().map((name) => [name, this.place.by]));
    if (JSON.stringify(off) !== JSON.stringify(this.changedReading.off)) {
      this.changedReading = new Reading(this.model, off);
    }
    return this.changedReading.become(this.text().ids);
  }

  // -------------------------------------------------------------------------- heads

  get card() {
    const { cards } = this.contents;
    const named = (name) => cards.find((card) => card.name === name);
    return named(this.place.head) ?? named(this.contents.first) ?? cards[0];
  }

  // Where a head's rows are in a reading: its place among those of its layer.
  slot(card) {
    return this.model.layers[card.layer].heads.indexOf(card.head);
  }

  weights(reading, card) {
    return reading.layers[card.layer].weights[this.slot(card)];
  }

  off() {
    const known = new Set(this.contents.cards.map((card) => card.name));
    return this.place.off.split(",").filter((name) => known.has(name));
  }

  // Tells a screen reader, once; while someone types, only after a pause.
  say(words) {
    this.toSay = words;
    const said = document.getElementById("said");
    const tell = () => {
      if (this.toSay === words && said.textContent !== words) said.textContent = words;
    };
    if (document.activeElement?.matches("textarea")) setTimeout(tell, PAUSE);
    else tell();
  }
}

function placeOf(hash) {
  const [view, query] = hash.replace(/^#/, "").split(/\?(.*)/s);
  const given = Object.fromEntries(new URLSearchParams(query ?? ""));
  const known = Object.fromEntries(Object.entries(given).filter(([key]) => key in DEFAULTS));
  const place = { ...DEFAULTS, ...known, view: VIEWS.includes(view) ? view : DEFAULTS.view };
  return { ...place, by: place.by === "zero" ? "zero" : "mean" };
}

function addressOf(place) {
  const told = Object.entries(place).filter(
    ([key, value]) => key !== "view" && value !== DEFAULTS[key],
  );
  const query = new URLSearchParams(told.map(([key, value]) => [key, String(value)])).toString();
  return `#${place.view}${query ? `?${query}` : ""}`;
}
