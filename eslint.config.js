import js from "@eslint/js";

const BROWSER =
  "addEventListener atob document history location performance scrollTo setTimeout " +
  "ResizeObserver TextDecoder TextEncoder URLSearchParams";

export default [
  js.configs.recommended,
  {
    files: ["minigpt/explorer/page/**/*.js"],
    languageOptions: {
      globals: Object.fromEntries(BROWSER.split(" ").map((name) => [name, "readonly"])),
    },
    rules: { "no-unused-vars": ["error", { argsIgnorePattern: "^_" }], eqeqeq: "error" },
  },
];
