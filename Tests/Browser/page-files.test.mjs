// The files of the page for people, without a browser.
import assert from "node:assert/strict";
import { readFileSync, readdirSync } from "node:fs";
import { test } from "node:test";
import { gzipSync } from "node:zlib";

const folder = new URL("../../Sources/BrowserAssets/", import.meta.url);
const read = (name) => readFileSync(new URL(name, folder), "utf8");
const parts = readdirSync(folder).filter((name) => name.startsWith("page"));
const code = parts.map(read).join("\n");
const { texts } = await import(`data:text/javascript,${encodeURIComponent(read("texts.js"))}`);

test("all languages have the same texts with the same values, and every text is used", () => {
  const values = (pattern) =>
    [...new Set(Object.values(typeof pattern === "object" ? pattern : { pattern }).join(" ").match(/\{\w+\}/g))].sort();
  for (const [language, table] of Object.entries(texts)) {
    assert.deepEqual(Object.keys(table), Object.keys(texts.en), language);
    for (const [key, pattern] of Object.entries(table)) {
      assert.deepEqual(values(pattern), values(texts.en[key]), `${language}: ${key}`);
    }
  }
  assert.deepEqual(Object.keys(texts.en).filter((key) => !new RegExp(`["']${key}["']`).test(code)), []);
  const used = Array.from(code.matchAll(/\btext\("(\w+)"|data-(?:text|label)="(\w+)"/g), ([, one, other]) => one ?? other);
  assert.deepEqual(used.filter((key) => !Object.hasOwn(texts.en, key)), []);
});

test("data never becomes markup, and the policy of the page needs no exception", () => {
  for (const pattern of [/innerHTML|outerHTML|insertAdjacentHTML|document\.write/, /\bstyle=/, /<\w[^>]*\son\w+=/, /\beval\(|new Function/, /https?:/]) {
    assert.doesNotMatch(code, pattern);
  }
});

test("the types declare what the module offers: every function, option and code of an error", async () => {
  const types = read("onward.d.ts");
  const module = read("onward.js");
  const { onward } = await import("./kit/module.mjs");
  const exported = Array.from(types.matchAll(/^export (const|function|class) (\w+)/gm), ([, kind, name]) => [name, kind]);
  assert.ok(exported.length >= 5, `${exported}`);
  for (const [name, kind] of exported) assert.equal(typeof onward[name], kind === "const" ? "string" : "function", name);
  const blockOf = (name) => new RegExp(`(?:interface|type) ${name}\\b([^]*?)\n\n?(?:}|export)`).exec(types)[1];
  const found = (text, pattern) => [...new Set(Array.from(text.matchAll(pattern), ([, one]) => one))].sort();
  assert.deepEqual(found(blockOf("UploadErrorCode"), /"([\w-]+)"/g), found(module, /UploadError(?:\.of)?\(\s*"([\w-]+)"/g));
  for (const state of found(blockOf("UploadState"), /"(\w+)"/g)) assert.ok(module.includes(`"${state}"`), state);
  for (const option of found(blockOf("UploadOptions"), /^  (\w+)\??:/gm)) {
    assert.match(module, new RegExp(`options\\.${option}\\b|[{,] ${option}\\b[^}]*} = this\\.#options`), option);
  }
});

test("nothing moves if the system asks for reduced motion", () => {
  const style = read("page.css");
  const [allowed] = /^@media \(prefers-reduced-motion: no-preference\) {[^]*?^}/m.exec(style) ?? [""];
  assert.match(allowed, /transition:/);
  assert.doesNotMatch(style.replace(allowed, "") + code.replace(style, ""), /transition|animation|smooth|animate\(/);
});

test("the page is small", () => {
  const size = (names) => gzipSync(names.map(read).join("\n"), { level: 9 }).length;
  const [page, all] = [size([...parts, "texts.js"]), size([...parts, "texts.js", "onward.js"])];
  assert.ok(page < 35_000 && all < 60_000, `${page} and ${all} bytes`);
});
