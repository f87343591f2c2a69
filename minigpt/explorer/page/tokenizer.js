// Text <-> ids, as minigpt/tokenizer.py does it: cut by a pattern, look each piece up whole, and
// merge bytes where it is not there. Bytes are strings of characters below 256 here.

const BLANK = "\\p{White_Space}";
const PATTERNS = {
  word: ` ?[\\p{L}\\p{M}]+(?:['’]\\p{L}+)*| ?\\p{N}+| ?[^${BLANK}\\p{L}\\p{M}\\p{N}]|${BLANK}`,
  bpe:
    ` ?[\\p{L}\\p{M}]+(?:['’]\\p{L}+)*| ?\\p{N}{1,3}| ?[^${BLANK}\\p{L}\\p{M}\\p{N}]+|\\n+` +
    `|(?:(?!\\n)${BLANK})+`,
  gpt2:
    `'(?:[sdmt]|ll|ve|re)| ?\\p{L}+| ?\\p{N}+| ?[^${BLANK}\\p{L}\\p{N}]+|${BLANK}+$` +
    `|${BLANK}+(?![^${BLANK}])|${BLANK}`,
};
const SEEN = { " ": "·", "\n": "⏎", "\t": "⇥", "\r": "␍" };
const UNSEEN = /[\p{C}\p{Z}\p{M}]/u; // control, blank, combining mark

export class Tokenizer {
  // `tokens` are texts, or lists of bytes where they are no text.
  constructor({ kind, tokens, start }) {
    this.kind = kind;
    this.start = start;
    this.tokens = tokens.map((token) =>
      typeof token === "string" ? utf8(token) : String.fromCharCode(...token),
    );
    this.ids = new Map(this.tokens.map((token, id) => [token, id]));
    this.pattern = kind in PATTERNS ? new RegExp(PATTERNS[kind], "gu") : null;
  }

  // The ids of a text, and the characters that the vocabulary lacks.
  encode(text) {
    if (this.pattern) {
      return {
        ids: [...text.matchAll(this.pattern)].flatMap(([piece]) => this.piece(piece)),
        unknown: [],
      };
    }
    const parts = this.kind === "char" ? Array.from(text, utf8) : Array.from(utf8(text));
    const unknown = parts.filter((part) => !this.ids.has(part)).map(textOf);
    const ids = parts.filter((part) => this.ids.has(part)).map((part) => this.ids.get(part));
    return { ids, unknown: [...new Set(unknown)] };
  }

  piece(text) {
    const bytes = utf8(text);
    return this.ids.has(bytes) ? [this.ids.get(bytes)] : this.merge(Array.from(bytes));
  }

  // Joins the two neighbours that make the earliest token, again and again.
  merge(parts) {
    for (;;) {
      let best = Infinity;
      let at = -1;
      for (let i = 0; i + 1 < parts.length; i++) {
        const id = this.ids.get(parts[i] + parts[i + 1]);
        if (id !== undefined && id < best) [best, at] = [id, i];
      }
      if (at < 0) return parts.map((part) => this.ids.get(part));
      parts.splice(at, 2, parts[at] + parts[at + 1]);
    }
  }

  decode(ids) {
    return textOf(ids.map((id) => this.tokens[id]).join(""));
  }

  // A token as something to see: `cat` for " cat", `⏎`, `\xe2\x82`.
  label(id) {
    const text = this.decode([id]);
    if (text.includes("\ufffd") && this.tokens[id] !== utf8("\ufffd")) {
      return Array.from(this.tokens[id], (byte) => "\\x" + hex(byte, 2)).join("");
    }
    const shown = text.length > 1 && text.startsWith(" ") ? text.slice(1) : text;
    return Array.from(shown, visible).join("");
  }
}

function visible(character) {
  if (character in SEEN) return SEEN[character];
  return UNSEEN.test(character) ? "\\u" + hex(character, 4) : character;
}

function hex(character, digits) {
  return character.codePointAt(0).toString(16).padStart(digits, "0");
}

function utf8(text) {
  return Array.from(new TextEncoder().encode(text), (byte) => String.fromCharCode(byte)).join("");
}

function textOf(bytes) {
  return new TextDecoder().decode(Uint8Array.from(bytes, (byte) => byte.charCodeAt(0)));
}
