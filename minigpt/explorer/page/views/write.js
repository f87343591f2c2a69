// The model writes; every word shows what else it might have been.

import { bar, button, h, percent, replace, table } from "../dom.js";
import { inTiles, spacing } from "../parts.js";
import { Writing } from "../writing.js";

const MOST_CANDIDATES = 8;
const PER_FRAME = 12; // milliseconds of writing before the page is drawn again

export const write = {
  title: "Write",
  lead: "Let the model write. Pick a word that it wrote to see what else might have stood there; take another candidate, and it goes on from there.",
  build(app) {
    const desk = new Desk(app);
    return { element: desk.element, update: () => {} };
  },
};

// A form, the text, and the candidates of the chosen step.
class Desk {
  constructor(app) {
    this.app = app;
    this.writing = null;
    this.running = false;
    this.chosen = null; // a step
    this.fields = fieldsOf(app);
    this.go = h("button", { type: "submit", class: "main", id: "write" }, "Write");
    this.one = button("One more word", () => this.oneMore());
    this.text = h("div", {
      class: "written",
      role: "group",
      "aria-label": "What the model wrote; arrow keys choose a word",
    });
    this.text.classList.toggle("tiles", inTiles(app));
    this.text.addEventListener("keydown", (event) => this.key(event));
    this.rate = h(
      "p",
      { class: "hint", role: "status" },
      "Press Write, or take one word at a time.",
    );
    this.candidates = h("div");
    const form = h("form", {
      class: "controls",
      novalidate: true,
      on: { submit: (event) => this.submit(event) },
    });
    form.append(
      ...Object.values(this.fields).map(({ label }) => label),
      h("div", { class: "buttons" }, this.go, this.one),
    );
    this.element = h(
      "div",
      {},
      form,
      h("div", { class: "page" }, this.text),
      this.rate,
      this.candidates,
    );
  }

  settings() {
    const number = (name, empty) => {
      const { input } = this.fields[name];
      return input.value === "" || !input.validity.valid ? empty : Number(input.value);
    };
    return {
      temperature: number("temperature", 1),
      topK: number("top_k", null),
      topP: number("top_p", null),
      minP: number("min_p", null),
      seed: number("seed", 0),
      length: number("length", 100),
    };
  }

  prompt() {
    const { opening, tokenizer } = this.app.contents;
    const given = this.fields.prompt.input.value;
    const { ids, unknown } = this.app.tokenizer.encode(
      opening ? opening + given.replace(/^\n/, "") : given,
    );
    this.rate.textContent = unknown.length
      ? `Left out, not in the model's vocabulary: ${unknown.join(" ")}`
      : "";
    return ids.length ? ids : [tokenizer.start];
  }

  // By the button, or by Enter in a field.
  submit(event) {
    event.preventDefault();
    if (this.running) this.stop();
    else this.begin();
  }

  begin() {
    this.writing = new Writing(this.app.model, this.prompt());
    this.chosen = null;
    this.run(this.settings().length);
  }

  oneMore() {
    this.running = false;
    this.writing ??= new Writing(this.app.model, this.prompt());
    this.writing.step(this.settings());
    this.chosen = this.writing.steps.length - 1;
    this.draw();
  }

  take(id) {
    this.writing.take(this.chosen, id);
    this.run(this.settings().length - this.writing.steps.length);
  }

  stop() {
    this.running = false;
  }

  // Writes up to `number` more tokens, a few at a time, so that the page stays alive.
  async run(number) {
    const { writing } = this;
    const settings = this.settings();
    const started = performance.now();
    this.running = true;
    this.go.textContent = "Stop";
    let written = 0;
    while (this.running && written < number && writing === this.writing) {
      const until = performance.now() + PER_FRAME;
      for (; written < number && performance.now() < until; written++) writing.step(settings);
      this.draw();
      await new Promise((resolve) => setTimeout(resolve));
    }
    if (writing !== this.writing) return;
    this.running = false;
    this.go.textContent = "Write";
    const seconds = (performance.now() - started) / 1000;
    this.rate.textContent = `${written} tokens, ${Math.round(written / Math.max(seconds, 0.001))} a second. Choose a word to see its candidates.`;
    this.element.dataset.done = String(writing.steps.length);
    this.draw();
  }

  key(event) {
    const last = (this.writing?.steps.length ?? 0) - 1;
    const at = this.chosen ?? last;
    const steps = { ArrowLeft: at - 1, ArrowRight: at + 1, Home: 0, End: last };
    if (!(event.key in steps)) return;
    event.preventDefault();
    this.choose(Math.min(Math.max(steps[event.key], 0), last));
    this.text.querySelector(`[data-step="${this.chosen}"]`)?.focus();
  }

  choose(at) {
    this.chosen = at;
    this.draw();
  }

  draw() {
    const { tokenizer } = this.app;
    const { prompt, steps } = this.writing;
    const said = h("span", { class: "prompt" }, tokenizer.decode(prompt).replace(/^\n/, ""));
    while (this.text.children.length > steps.length + 1) this.text.lastChild.remove();
    if (this.text.children.length) this.text.firstChild.replaceWith(said);
    else this.text.append(said);
    steps.forEach((step, at) => {
      const old = this.text.children[at + 1];
      if (!old) this.text.append(this.word(step, at));
      else if (old.dataset.id !== String(step.id)) old.replaceWith(this.word(step, at));
    });
    const focused = this.chosen ?? steps.length - 1;
    Array.from(this.text.children)
      .slice(1)
      .forEach((word, at) => {
        word.tabIndex = at === focused ? 0 : -1;
        word.setAttribute("aria-pressed", String(at === this.chosen));
      });
    replace(this.candidates, this.chosen === null ? null : this.candidateTable(steps[this.chosen]));
  }

  word(step, at) {
    const { tokenizer } = this.app;
    const classes = ["word", ...spacing(this.app, step.id)].join(" ");
    return button(tokenizer.label(step.id), () => this.choose(at), {
      class: classes,
      "data-step": String(at),
      "data-id": String(step.id),
    });
  }

  candidateTable(step) {
    const { tokenizer } = this.app;
    const rows = step.candidates.slice(0, MOST_CANDIDATES).map(({ id, probability }) => {
      const label = tokenizer.label(id);
      const act =
        id === step.id
          ? h("span", {}, "written")
          : button("take it", () => this.take(id), { "aria-label": `take it: “${label}”` });
      return [label, bar(probability), percent(probability), act];
    });
    const number = step.candidates.length;
    const words =
      number > rows.length
        ? `the ${rows.length} best of ${number} candidates`
        : `${number === 1 ? "the only candidate" : `all ${number} candidates`}`;
    return table(
      `Word ${this.chosen + 1}: ${words}, as likely as they were to be drawn`,
      ["candidate", "", "probability", "choice"],
      rows,
    );
  }
}

// Inputs by name, each in its label, filled with the run's own settings.
function fieldsOf(app) {
  const { prompt, temperature, top_k, top_p, min_p, seed } = app.contents.sampling;
  const number = (name, words, value, limits) =>
    field(name, words, { type: "number", value: value ?? "", ...limits });
  return {
    prompt: field("prompt", "Begin with", {
      type: "text",
      value: prompt,
      autocomplete: "off",
      spellcheck: "false",
    }),
    temperature: number("temperature", "Temperature (0: always the likeliest)", temperature, {
      min: "0",
      max: "10",
      step: "any",
    }),
    top_k: number("top_k", "Top-k (empty: all)", top_k, { min: "0", step: "1" }),
    top_p: number("top_p", "Top-p (empty: all)", top_p, { min: "0", max: "1", step: "any" }),
    min_p: number("min_p", "Min-p (empty: all)", min_p, { min: "0", max: "1", step: "any" }),
    seed: number("seed", "Seed", seed, { min: "0", step: "1" }),
    length: number("length", "Tokens", 100, { min: "1", max: "2000", step: "1" }),
  };
}

function field(name, words, attributes) {
  const input = h("input", { name, id: `write-${name}`, ...attributes });
  return { input, label: h("label", { class: name }, words, input) };
}
