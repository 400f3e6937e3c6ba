// The examples of docs/browser.md.
import { readFileSync } from "node:fs";

const text = readFileSync(new URL("../../../docs/browser.md", import.meta.url), "utf8");

/** The blocks of a language in the document, with the URL of a server in place of that of the document. */
export function examples(language, server) {
  return [...text.matchAll(new RegExp("^```" + language + "\\n([^]*?)^```", "gm"))]
    .map(([, block]) => block.replaceAll("http://127.0.0.1:8080", server));
}
